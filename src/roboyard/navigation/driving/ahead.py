"""Whether a velocity can be driven without touching anything more than the robot touches already."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.control import PlanarTwist
from roboyard.geometry import SE2
from roboyard.navigation.costmap import LETHAL, Costmap
from roboyard.navigation.footprint import Footprint

_STEP = 0.5
"""Between looks, in cells."""


def free_time(costmap: Costmap, footprint: Footprint, pose: SE2, twist: PlanarTwist, horizon: float) -> float:
    """How long the robot can keep to a velocity before its outline meets an obstacle [s], at most ``horizon``.

    A robot that already overlaps obstacles (they came near, or the map is coarse) may move wherever it overlaps them no
    more than now: it can always back out.

    Args:
        costmap: Its frame in the map.
        footprint: Of the robot.
        pose: ``T_map_base``.
        twist: In the base's frame.
        horizon: How far ahead to look [s].
    """
    resolution = costmap.frame.resolution
    border = footprint.border(resolution) / resolution
    here = costmap.frame.T_map_grid.inverse() @ pose
    fastest = math.hypot(twist.vx, twist.vy) + abs(twist.wz) * footprint.circumscribed_radius
    if fastest * horizon == 0.0:
        return horizon
    step = _STEP * resolution / fastest
    return float(
        overlap_free(
            costmap.cells, border, here.x / resolution, here.y / resolution, here.theta, twist.vx / resolution,
            twist.vy / resolution, twist.wz, min(step, horizon), horizon,
        )
    )  # fmt: skip


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), np.zeros((4, 2)), 1.0, 1.0, 0.0)])
def overlap(cells: NDArray[np.uint8], border: NDArray[np.float64], x: float, y: float, theta: float) -> int:
    """How many points of the outline lie on obstacles.

    Args:
        cells: (rows, columns) of a costmap.
        border: (n, 2) points of the outline [cells].
        x: Of the base's origin, in cells from the grid's corner, along columns.
        y: The same along rows.
        theta: Heading in the grid's frame [rad].
    """
    rows, columns = cells.shape
    c, s = math.cos(theta), math.sin(theta)
    count = 0
    for k in range(len(border)):
        px = x + c * border[k, 0] - s * border[k, 1]
        py = y + s * border[k, 0] + c * border[k, 1]
        if px >= 0.0 and py >= 0.0 and px < columns and py < rows and cells[int(py), int(px)] == LETHAL:
            count += 1
    return count


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), np.zeros((4, 2)), 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.1, 1.0)])
def overlap_free(
    cells: NDArray[np.uint8],
    border: NDArray[np.float64],
    x: float,
    y: float,
    theta: float,
    vx: float,
    vy: float,
    wz: float,
    step: float,
    horizon: float,
) -> float:
    """See ``free_time``; velocities in cells/s and rad/s."""
    most = overlap(cells, border, x, y, theta)
    time = 0.0
    while time < horizon:
        middle = theta + 0.5 * wz * step
        c, s = math.cos(middle), math.sin(middle)
        x += (c * vx - s * vy) * step
        y += (s * vx + c * vy) * step
        theta += wz * step
        found = overlap(cells, border, x, y, theta)
        if found > most:
            return time
        most = found
        time += step
    return horizon
