"""Standing up from flat on the ground, and lying down again."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.walking.movement import PERIOD
from roboyard.walking.walker import Walker

_WAY: Final = 25
"""Places of the feet between the ground and the stance."""


def rising(walker: Walker, present: ArrayLike, *, ground: float, period: float = PERIOD, speed: float = 0.8) -> Array:
    """Set-points (t, l, 3) from where the joints are to the stance [rad], one each period.

    First the feet go to the ground below their places in the stance while the body lies; then they push it up.

    Args:
        walker: Who.
        present: (l, 3) joints as they are [rad].
        ground: Height in the body at which the ground is while it lies: above the stance's feet [m].
        period: Between two set-points [s].
        speed: Share of the joints' speeds that is used.

    Raises:
        InputError: the ground is below the feet of the stance.
        RoboyardError: a foot cannot be there.
    """
    return _timed(walker, [np.asarray(present, dtype=np.float64), *_lifts(walker, ground)], period, speed)


def lying_down(
    walker: Walker, present: ArrayLike, *, ground: float, period: float = PERIOD, speed: float = 0.8
) -> Array:
    """Set-points (t, l, 3) from where the joints are to those at rest; the arguments are those of `rising`.

    Raises:
        InputError, RoboyardError: as there.
    """
    down = _lifts(walker, ground)[::-1]
    return _timed(walker, [np.asarray(present, dtype=np.float64), *down, walker.rest], period, speed)


def returning(walker: Walker, present: ArrayLike, *, period: float = PERIOD, speed: float = 0.8) -> Array:
    """Set-points (t, l, 3) from where the joints are straight to the stance; the arguments are those of `rising`."""
    return _timed(walker, [np.asarray(present, dtype=np.float64), walker.stance], period, speed)


def _lifts(walker: Walker, ground: float) -> list[Array]:
    """Joints (l, 3) on the way of the body from the ground to its height in the stance."""
    stance = walker.stance_feet
    if ground <= float(stance[:, 2].max()):
        raise InputError(f"ground at {ground:g} m", location=walker.robot, valid="above the feet of the stance")
    near, found = walker.stance, []
    for share in np.linspace(1.0, 0.0, _WAY):
        feet = stance.copy()
        feet[:, 2] += (1.0 - share) * (ground - stance[:, 2])
        near = walker.reach(feet, near)
        found.append(near)
    return found[::-1]


def _timed(walker: Walker, points: list[Array], period: float, speed: float) -> Array:
    """Through the points, gently at both ends, no joint faster than its share of its speed."""
    parts: list[Array] = []
    for through in (points[:2], points[1:-1], points[-2:]) if len(points) > 3 else (points,):
        way = np.array(through)
        lengths = np.array([(np.abs(b - a) / walker.speeds).max() for a, b in pairwise(way)])
        along = np.concatenate([[0.0], np.cumsum(lengths)])
        if along[-1] < 1e-9:
            continue
        ticks = max(1, math.ceil(along[-1] * 0.5 * math.pi / (speed * period)))
        wanted = along[-1] * (0.5 - 0.5 * np.cos(math.pi * np.arange(1, ticks + 1) / ticks))
        k = np.clip(np.searchsorted(along, wanted) - 1, 0, len(lengths) - 1)
        share = np.clip((wanted - along[k]) / np.maximum(lengths[k], 1e-12), 0.0, 1.0)
        parts.append(way[k] + share[:, None, None] * (way[k + 1] - way[k]))
    return np.concatenate(parts) if parts else points[-1][None]
