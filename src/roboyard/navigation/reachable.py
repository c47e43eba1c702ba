"""Of cells where one may be: the nearest to a place, and those that a way leads to."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.grids.regions import label_components


def joined(passable: NDArray[np.bool_], frame: GridGeometry, place: SE2) -> NDArray[np.bool_]:
    """Which cells (rows, columns) a way leads to from a place on a passable one.

    Ways go over four neighbours: none leads across an obstacle's corner.
    """
    labels, _ = label_components(np.ascontiguousarray(passable), False)
    row, column = frame.cells_of_points(place.xy)
    return np.asarray(labels == labels[row, column])


def nearest(wanted: NDArray[np.bool_], frame: GridGeometry, pose: SE2, radius: float = math.inf) -> SE2 | None:
    """The middle of the wanted cell (rows, columns) nearest to a pose, the first of equals, with the pose's heading.

    Args:
        wanted: Where to look.
        frame: Where the cells lie.
        pose: In the frame's map; itself the answer if it lies on a wanted cell.
        radius: How far to look [m].
    """
    cell = frame.cells_of_points(pose.xy)
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
    points = frame.cell_centers(cells)
    distances = np.hypot(points[:, 0] - pose.x, points[:, 1] - pose.y)
    best = int(np.argmin(distances))
    if distances[best] > radius:
        return None
    return SE2(float(points[best, 0]), float(points[best, 1]), pose.theta)
