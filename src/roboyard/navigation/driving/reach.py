"""Places near one that cannot be had: where a robot in an obstacle's reach gets free, how near it comes to a goal."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from roboyard.geometry import SE2
from roboyard.navigation.costmap import INSCRIBED, UNKNOWN, Costmap


def nearest_free(costmap: Costmap, pose: SE2, radius: float) -> SE2 | None:
    """The free cell's middle that is nearest to a pose, with its heading; the pose itself if it is free.

    Args:
        costmap: Its frame in the map.
        pose: In the map.
        radius: How far to look [m].
    """
    return _nearest(costmap, costmap.cells < INSCRIBED, pose, radius)


def nearest_reachable(costmap: Costmap, start: SE2, goal: SE2, escape: float, *, unknown: bool = False) -> SE2 | None:
    """The place nearest to a goal that a way from the start leads to; None if the start is not free.

    Args:
        costmap: Its frame in the map.
        start: In the map; or the free place within ``escape`` [m] of it.
        goal: In the map.
        escape: See ``start``.
        unknown: Whether ways may lead over unknown ground.
    """
    free = costmap.cells < INSCRIBED
    begin = _nearest(costmap, free, start, escape)
    if begin is None:
        return None
    passable = free | (costmap.cells == UNKNOWN) if unknown else free
    labels, _ = ndimage.label(passable)  # four neighbours: no way leads across an obstacle's corner
    row, column = costmap.frame.cells(begin.xy)
    return _nearest(costmap, labels == labels[row, column], goal, math.inf)


def _nearest(costmap: Costmap, wanted: NDArray[np.bool_], pose: SE2, radius: float) -> SE2 | None:
    frame = costmap.frame
    cell = frame.cells(pose.xy)
    if frame.contains(cell) and wanted[cell[0], cell[1]]:
        return pose
    top, left, bottom, right = 0, 0, frame.shape[0], frame.shape[1]
    if math.isfinite(radius):
        reach = math.ceil(radius / frame.resolution) + 1
        top, left = max(int(cell[0]) - reach, 0), max(int(cell[1]) - reach, 0)
        bottom, right = max(int(cell[0]) + reach + 1, 0), max(int(cell[1]) + reach + 1, 0)
    cells = np.argwhere(wanted[top:bottom, left:right]) + np.array([top, left])
    if not len(cells):
        return None
    points = frame.points(cells)
    distances = np.hypot(points[:, 0] - pose.x, points[:, 1] - pose.y)
    best = int(np.argmin(distances))
    if distances[best] > radius:
        return None
    return SE2(float(points[best, 0]), float(points[best, 1]), pose.theta)
