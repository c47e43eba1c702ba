"""Kernels of planners that drive: what a motion runs over, and the shortest one that needs no search.

A motion is a length (negative backwards) and the turn made on it: an arc, a straight line, or a turn on the spot.
Poses are x, y in cells from the grid's corner and headings in the grid's frame.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.planar_kernels import wrap_angle
from roboyard.navigation.costmap import LETHAL
from roboyard.navigation.footprint import fitted_cost
from roboyard.navigation.planning.curves import driven, dubins, reeds_shepp
from roboyard.navigation.planning.ground import Ground

FORWARDS, BOTH_WAYS, ON_THE_SPOT = 0, 1, 2
"""What a base can do: a car that drives forwards, one that also reverses, and one that turns on the spot."""


@kernel
def moved(pose: NDArray[np.float64], length: float, turn: float, share: float, out: NDArray[np.float64]) -> None:
    """Where a share of a motion leads."""
    if length == 0.0:
        out[0], out[1], out[2] = pose[0], pose[1], pose[2] + share * turn
    else:
        out[0], out[1], out[2] = driven(pose, share * length, turn / length)


@kernel
def weight_along(
    cells: NDArray[np.uint8],
    ground: Ground,
    border: NDArray[np.float64],
    possible: int,
    pose: NDArray[np.float64],
    length: float,
    turn: float,
    spacing: float,
    far: float,
) -> float:
    """Mean weight of a motion, or infinite where the robot touches something on it.

    Args:
        cells: (rows, columns) of the costmap.
        ground: What those cells cost, with a rim.
        border: (n, 2) points of the outline [cells], see ``fitted_cost``.
        possible: See there.
        pose: (3,) where the motion begins; that pose itself is not looked at.
        length: Of the motion [cells].
        turn: On it [rad].
        spacing: No point of the robot moves farther from one looked at pose to the next [cells].
        far: Distance of the robot's farthest point from its centre [cells].
    """
    count = max(math.ceil((abs(length) + far * abs(turn)) / spacing), 1)
    here = np.empty(3)
    total = 0.0
    for k in range(1, count + 1):
        moved(pose, length, turn, k / count, here)
        if fitted_cost(cells, border, possible, here[0], here[1], here[2]) == LETHAL:
            return np.inf
        weight = ground.weights[ground.cells[int(here[1]) + 1, int(here[0]) + 1]]
        if weight == 0.0:
            return np.inf
        total += weight
    return total / count


@kernel
def direct(
    base: int,
    radius: float,
    start: NDArray[np.float64],
    goal: NDArray[np.float64],
    lengths: NDArray[np.float64],
    turns: NDArray[np.float64],
) -> float:
    """The shortest motions from pose to pose where nothing is in the way.

    Args:
        base: ``FORWARDS``, ``BOTH_WAYS`` or ``ON_THE_SPOT``.
        radius: Of the tightest circle [cells]; on the spot, what a radian of turning counts as.
        start: (3,) pose.
        goal: (3,) pose.
        lengths: (5,) result [cells], negative backwards.
        turns: (5,) result [rad].

    Returns:
        The whole length, turns on the spot included [cells].
    """
    dx, dy = goal[0] - start[0], goal[1] - start[1]
    lengths[:] = 0.0
    turns[:] = 0.0
    if base == ON_THE_SPOT:
        far = math.hypot(dx, dy)
        ahead = math.atan2(dy, dx) if far > 1e-9 else goal[2]
        turns[0] = wrap_angle(ahead - start[2])
        lengths[1] = far
        turns[2] = wrap_angle(goal[2] - ahead)
        return float(far + radius * (abs(turns[0]) + abs(turns[2])))
    c, s = math.cos(start[2]), math.sin(start[2])
    x, y = (c * dx + s * dy) / radius, (-s * dx + c * dy) / radius
    sides = np.zeros(5, dtype=np.int64)
    phi = wrap_angle(goal[2] - start[2])
    total = dubins(x, y, phi, sides, lengths) if base == FORWARDS else reeds_shepp(x, y, phi, sides, lengths)
    for k in range(5):
        turns[k] = sides[k] * lengths[k]
        lengths[k] *= radius
    return float(total * radius)
