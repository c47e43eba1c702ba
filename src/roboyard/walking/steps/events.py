"""What an event does to a partial plan, and what else may happen to one: beginning, taking over, turning off."""

from __future__ import annotations

from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.draws import triangular
from roboyard.walking.steps.herd import BENT, LIFTED, SET, Herd, Log, PlanningContext, Ways, note, sample_parts
from roboyard.walking.steps.stretch import in_table, inside_by, polygon_edges, reach_along, widen
from roboyard.walking.steps.ways import bend_way

DEAD: Final = 0
ALIVE: Final = 1
ARRIVED: Final = 2
FULL: Final = 3
"""The log is."""
_BONUS: Final = 3.0


@kernel(no_refcount=True, examples=lambda: [(*sample_parts(), 0, 0)])
def begin(world: PlanningContext, ways: Ways, herd: Herd, log: Log, i: int, w: int) -> bool:
    """Begin a plan on a way: all feet down where they are; whether they hold the body there, and the log has room.

    The first row of a plan's log has leg -1, and the stretch at the start.
    """
    n0, places, end = world.number, ways.places, ways.size[w] - 1
    herd.events[i], herd.way[i], herd.at[i], herd.most[i], herd.last[i] = 0, w, 0, 0, -1
    for leg in range(herd.down.shape[1]):
        herd.down[i, leg], herd.bonus[i, leg] = True, _BONUS
        for k in range(3):
            herd.feet[i, leg, k] = world.feet[leg, k]
        dx, dy = world.feet[leg, 0] - places[w, 0, 0], world.feet[leg, 1] - places[w, 0, 1]
        if not in_table(
            world.table, world.low, leg, n0.cos * dx + n0.sin * dy, n0.cos * dy - n0.sin * dx,
            world.feet[leg, 2] - places[w, 0, 2], n0.cells, n0.layers,
        ):  # fmt: skip
            return False
        herd.reach[i, leg, 0], herd.reach[i, leg, 1] = reach_along(
            world.table, world.low, places, w, end, leg, herd.feet, i, n0.cos, n0.sin, n0.cells, n0.layers, 0
        )
    count = polygon_edges(herd.feet, herd.down, i, -1, herd.edges)
    if count < 3 or inside_by(herd.edges, count, places[w, 0, 0], places[w, 0, 1]) < n0.margin:
        return False
    widen(places, ways.size, herd, i, 0, herd.edges, count, n0.margin)
    return note(herd, log, i, -1, SET)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0, 0, 10, 0, 10, 0.5)])
def body_at(at: int, low: int, high: int, low_after: int, high_after: int, draw: float) -> int:
    """Where the body is at an event: in the stretches before and after it.

    By a draw from 0 to 1 triangular over both, most likely where it was (Herms 2004); without one (less than 0) in the
    middle of both, but not back if that can be.
    """
    first, last = max(low, low_after), min(high, high_after)
    if draw < 0.0:
        return min(max(at, (first + last) // 2), last)
    return int(triangular(draw, float(first), float(min(max(at, first), last)), float(last)) + 0.5)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts()[2:], 0, 0, LIFTED)])
def changed(herd: Herd, log: Log, i: int, leg: int, kind: int) -> int:
    """Write down that a foot rose or was set down: ALIVE, or FULL."""
    for k in range(herd.bonus.shape[1]):
        herd.bonus[i, k] += 1.0
    herd.bonus[i, leg] = 0.0
    herd.events[i] += 1
    herd.most[i] = max(herd.most[i], herd.at[i])
    if kind == LIFTED:
        herd.rose[i, leg] = herd.at[i]
    return ALIVE if note(herd, log, i, leg, kind) else FULL


@kernel(no_refcount=True, examples=lambda: [(*sample_parts(), 0, 0, LIFTED, np.zeros(3), 0)])
def repeat(
    world: PlanningContext, ways: Ways, herd: Herd, log: Log, i: int, leg: int, kind: int, place: Array, sample: int
) -> bool:
    """Add an event of another plan, at which the body is at a sample of the way; whether there is room for it."""
    n0 = world.number
    herd.down[i, leg], herd.wish[i, 0], herd.wish[i, 1] = kind != LIFTED, place[0], place[1]
    if kind != LIFTED:
        for k in range(3):
            herd.feet[i, leg, k] = place[k]
        herd.reach[i, leg, 0], herd.reach[i, leg, 1] = reach_along(
            world.table, world.low, ways.places, herd.way[i], ways.size[herd.way[i]] - 1, leg, herd.feet, i, n0.cos,
            n0.sin, n0.cells, n0.layers, sample,
        )  # fmt: skip
    count = polygon_edges(herd.feet, herd.down, i, -1, herd.edges)
    if count < 3:
        return False
    herd.at[i] = sample
    widen(ways.places, ways.size, herd, i, sample, herd.edges, count, n0.margin)
    return bool(changed(herd, log, i, leg, kind) == ALIVE)


@kernel(no_refcount=True, examples=lambda: [(*sample_parts(), 0, 0.5, 0.5)])
def turn_off(world: PlanningContext, ways: Ways, herd: Herd, log: Log, i: int, u: float, v: float) -> int:
    """Go on another way from where the body was farthest, see `bend_way`: ALIVE, FULL, or DEAD where that cannot be."""
    n0, w = world.number, herd.way[i]
    if not bend_way(world, ways, w, herd.most[i] + 1, u, v):
        return DEAD
    for leg in range(herd.down.shape[1]):
        if herd.down[i, leg]:
            herd.reach[i, leg, 0], herd.reach[i, leg, 1] = reach_along(
                world.table, world.low, ways.places, w, ways.size[w] - 1, leg, herd.feet, i, n0.cos, n0.sin, n0.cells,
                n0.layers, herd.at[i],
            )  # fmt: skip
    count = polygon_edges(herd.feet, herd.down, i, -1, herd.edges)
    widen(ways.places, ways.size, herd, i, herd.at[i], herd.edges, count, n0.margin)
    return ALIVE if note(herd, log, i, -1, BENT) else FULL
