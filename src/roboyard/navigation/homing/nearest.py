"""The place nearest to an unreachable point that the robot can drive to."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import label

from roboyard.geometry import SE2
from roboyard.grids import GridFrame, distance_to


def nearest_reachable(
    costs: ArrayLike,
    frame: GridFrame,
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
    parts, _ = label(passable)
    here = _nearest(passable, frame, start)
    if here is None or math.dist(here[1], (start.x, start.y)) > reach:
        return None
    joined = parts == parts[here[0]]
    row, column = frame.cells(target.xy)
    if frame.contains((row, column)) and joined[row, column]:
        return target
    roomy = joined & (distance_to(cells > blocked, frame.resolution) >= room)
    found = _nearest(roomy if roomy.any() else joined, frame, target)
    if found is None:
        return None
    x, y = found[1]
    return SE2(x, y, math.atan2(target.y - y, target.x - x))


def _nearest(
    wanted: NDArray[np.bool_], frame: GridFrame, pose: SE2
) -> tuple[tuple[int, int], tuple[float, float]] | None:
    """The wanted cell nearest to a pose, and its middle [m]; the first of equals."""
    candidates = np.argwhere(wanted)
    if not len(candidates):
        return None
    middles = frame.points(candidates)
    index = int(np.argmin(np.hypot(middles[:, 0] - pose.x, middles[:, 1] - pose.y)))
    row, column = candidates[index]
    return (int(row), int(column)), (float(middles[index, 0]), float(middles[index, 1]))
