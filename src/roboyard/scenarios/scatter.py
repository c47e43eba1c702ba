"""Places drawn at random, each with room.  Pure: a generator and a sector in, poses out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE2

_TRIES, _LAYOUTS = 100, 200
"""Draws for one thing until it has room, and how often all begin anew."""


@dataclass(frozen=True, slots=True)
class Sector:
    """Part of a ring in the plane.

    Attributes:
        about: Its middle (x, y) [m].
        radius: Inner and outer [m].
        bearing: From and to, counterclockwise [rad].
    """

    about: tuple[float, float]
    radius: tuple[float, float]
    bearing: tuple[float, float] = (-math.pi, math.pi)

    def draw(self, rng: np.random.Generator) -> tuple[float, float]:
        """A place in it (x, y) [m], each part of its area as likely as any other of its size."""
        low, high = self.radius
        r = math.sqrt(rng.uniform(low * low, high * high))
        angle = rng.uniform(*self.bearing)
        return self.about[0] + r * math.cos(angle), self.about[1] + r * math.sin(angle)


def scatter(
    rng: np.random.Generator,
    sector: Sector,
    count: int,
    apart: float,
    taken: Sequence[tuple[float, float]] = (),
    turn: float = math.pi,
) -> list[SE2]:
    """Poses of things that lie about.

    Args:
        rng: Draws them.
        sector: Where.
        count: How many.
        apart: Least distance between middles, also to those ``taken`` [m].
        taken: Middles of what lies there already (x, y) [m].
        turn: Each is turned by as much at most, either way [rad].

    Raises:
        InputError: there is no room for so many.
    """
    for _ in range(0 if _covered(sector, apart, taken) else _LAYOUTS):
        places = _layout(rng, sector, count, apart, taken)
        if len(places) == count:
            return [SE2(x, y, float(rng.uniform(-turn, turn))) for x, y in places]
    raise InputError(
        f"no room for {count} things {apart:g} m apart", valid="fewer, nearer to each other, or a larger sector"
    )


def _covered(sector: Sector, apart: float, taken: Sequence[tuple[float, float]]) -> bool:
    """Whether all of a sector is too near to one place."""
    return any(math.dist(place, sector.about) + sector.radius[1] < apart for place in taken)


def _layout(
    rng: np.random.Generator, sector: Sector, count: int, apart: float, taken: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """One after the other while there is room: ``count`` middles, or fewer."""
    found: list[tuple[float, float]] = []
    for _ in range(count):
        for _ in range(_TRIES):
            x, y = sector.draw(rng)
            if all(math.hypot(x - u, y - v) >= apart for u, v in (*taken, *found)):
                found.append((x, y))
                break
        else:
            break
    return found
