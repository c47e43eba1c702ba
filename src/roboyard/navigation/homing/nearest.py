"""The place nearest to an unreachable point that the robot can drive to."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, distance_transform
from roboyard.navigation.reachable import joined, nearest


def nearest_reachable(
    costs: ArrayLike,
    frame: GridGeometry,
    start: SE2,
    target: SE2,
    *,
    blocked: int = 99,
    reach: float = 0.5,
    room: float = 0.0,
) -> SE2 | None:
    """Where to go instead of ``target``: the passable place joined to the robot's that lies nearest to it.

    Args:
        costs: Of the cells (rows, columns), as in nav_msgs/OccupancyGrid: -1 unknown, which is not entered.
        frame: Where the cells lie.
        start: The robot's pose in the grid's map.
        target: The point that cannot be reached.
        blocked: Cost from which the robot's middle may not be in a cell.
        reach: The robot may stand up to so far from the nearest passable place itself [m].
        room: What another place keeps from obstacles [m], if any does: who drives there shall be able to turn there.

    Returns:
        Pose in the map that looks at the target; the target itself if a way leads there; None if there is nothing
        passable near the robot.
    """
    cells = np.asarray(costs)
    passable = (cells >= 0) & (cells < blocked)
    here = nearest(passable, frame, start, reach)
    if here is None:
        return None
    there = joined(passable, frame, here)
    row, column = frame.cells_of_points(target.xy)
    if frame.contains((row, column)) and there[row, column]:
        return target
    roomy = there & (distance_transform(cells > blocked, frame.resolution) >= room)
    found = nearest(roomy if roomy.any() else there, frame, target)
    if found is None:
        return None
    return SE2(found.x, found.y, math.atan2(target.y - found.y, target.x - found.x))
