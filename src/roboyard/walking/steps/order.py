"""Whether feet of a side keep in order, on the ground and on their way through the air."""

from __future__ import annotations

import math
from typing import Final

from roboyard.compute import kernel
from roboyard.walking.steps.herd import Herd, PlanningContext, Ways, sample_parts, sample_world

PASSING: Final = 0.1
"""Of the gap between feet of a side is kept where one is in the air."""


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_world(), *sample_parts()[1:3], 0, 0, 0)])
def neighbours(world: PlanningContext, ways: Ways, herd: Herd, i: int, leg: int, sample: int) -> tuple[float, float]:
    """Between which places along the body, which is at a sample, a foot keeps in order with the others of its side.

    A foot that is in the air is taken to be where the body saw it when it rose.
    """
    n0, home, side, p, w = world.number, world.home, world.side, ways.places, herd.way[i]
    low, high = -math.inf, math.inf
    for k in range(herd.down.shape[1]):
        if k == leg or side[k] != side[leg]:
            continue
        x, y, gap = herd.feet[i, k, 0], herd.feet[i, k, 1], n0.gap
        if not herd.down[i, k]:
            gap *= PASSING
            x, y = x + p[w, sample, 0] - p[w, herd.rose[i, k], 0], y + p[w, sample, 1] - p[w, herd.rose[i, k], 1]
        other = n0.cos * x + n0.sin * y
        if home[k, 0] > home[leg, 0]:
            high = min(high, other - gap)
        else:
            low = max(low, other + gap)
    return low, high


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_world(), *sample_parts()[1:3], 0, 0)])
def clear_of_air(world: PlanningContext, ways: Ways, herd: Herd, i: int, at: int) -> bool:
    """Whether feet that are down keep in order with those in the air, with the body at a sample.

    Those in the air are taken to be where the body saw them when they rose; going to and fro it brings others by them.
    """
    n0, home, side, p, w = world.number, world.home, world.side, ways.places, herd.way[i]
    for k in range(herd.down.shape[1]):
        if herd.down[i, k]:
            continue
        rose = herd.rose[i, k]
        began = n0.cos * (herd.feet[i, k, 0] - p[w, rose, 0]) + n0.sin * (herd.feet[i, k, 1] - p[w, rose, 1])
        for m in range(herd.down.shape[1]):
            if herd.down[i, m] and side[m] == side[k]:
                other = n0.cos * (herd.feet[i, m, 0] - p[w, at, 0]) + n0.sin * (herd.feet[i, m, 1] - p[w, at, 1])
                ahead = other - began if home[m, 0] > home[k, 0] else began - other
                if ahead < PASSING * n0.gap:
                    return False
    return True


@kernel(
    no_refcount=True, forceinline=True, examples=lambda: [(sample_world(), *sample_parts()[1:3], 0, 0, 0.0, 0.0, 0)]
)
def in_order(world: PlanningContext, ways: Ways, herd: Herd, i: int, leg: int, x: float, y: float, at: int) -> bool:
    """Whether a foot that is set down with the body at a sample kept in order with the others of its side on its way.

    Feet that are down go back as the body sees them; one that swings back as well shall pass none of them, whichever of
    both is sooner.
    """
    n0, home, side, p, w = world.number, world.home, world.side, ways.places, herd.way[i]
    rose = herd.rose[i, leg]
    since = n0.cos * p[w, rose, 0] + n0.sin * p[w, rose, 1]
    now = n0.cos * p[w, at, 0] + n0.sin * p[w, at, 1]
    began = n0.cos * herd.feet[i, leg, 0] + n0.sin * herd.feet[i, leg, 1] - since
    ends = n0.cos * x + n0.sin * y - now
    low, high = neighbours(world, ways, herd, i, leg, at)
    if not (low <= ends + now <= high and clear_of_air(world, ways, herd, i, at)):
        return False
    for k in range(herd.down.shape[1]):
        if k == leg or side[k] != side[leg] or not herd.down[i, k]:
            continue
        other = n0.cos * herd.feet[i, k, 0] + n0.sin * herd.feet[i, k, 1]
        if home[k, 0] > home[leg, 0]:
            if began > min(other - since, other - now) - PASSING * n0.gap:
                return False
        elif ends < began and ends < max(other - since, other - now) + PASSING * n0.gap:
            return False
    return True
