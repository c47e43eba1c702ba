"""From rows and columns of a padded grid to poses in the map."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2
from roboyard.navigation.costmap import LETHAL, Costmap
from roboyard.navigation.path import Path


def place(costmap: Costmap, pose: SE2) -> NDArray[np.float64]:
    """Row and column (2,) of a position; the middle of the costmap's cell (0, 0) is (0, 0)."""
    inside = costmap.frame.T_map_grid.inverse() @ pose.xy
    return np.asarray(inside[::-1] / costmap.frame.resolution - 0.5)


def path_through(costmap: Costmap, way: NDArray[np.float64], start: SE2, goal: SE2, cost: float) -> Path:
    """A path along ``way``, looking where it goes.

    Args:
        costmap: The map.
        way: (n, 2) rows and columns from the start to the goal, see ``place``.
        start: Where it begins.
        goal: Where it ends, and how the robot looks there.
        cost: In cells.
    """
    points = costmap.frame.T_map_grid @ ((way[:, ::-1] + 0.5) * costmap.frame.resolution)
    # what was computed forth and back is the start and the goal but for rounding
    points[0], points[-1] = (start.x, start.y), (goal.x, goal.y)
    steps = np.diff(points, axis=0)
    headings = np.arctan2(steps[:, 1], steps[:, 0])
    if not steps.any():
        headings[:] = start.theta
    poses = np.column_stack([points, np.append(headings, goal.theta)])
    nearest = nearest_obstacle(costmap.cells, way) * costmap.frame.resolution
    return Path(poses, cost * costmap.frame.resolution, nearest)


def spaced(way: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """The same line (n, 2) with points no farther than ``spacing`` from each other, its corners kept."""
    pieces = [way[:1]]
    for first, last in itertools.pairwise(way):
        count = max(math.ceil(float(np.hypot(*(last - first))) / spacing), 1)
        pieces.append(first + (last - first) * (np.arange(1, count + 1) / count)[:, None])
    return np.concatenate(pieces)


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), np.ones((2, 2)))])
def nearest_obstacle(cells: NDArray[np.uint8], way: NDArray[np.float64]) -> float:
    """Distance from the points of a way to the nearest lethal cell's square [cells]; infinite if there is none.

    The farther the search has come, the smaller the area about a point in which something nearer could lie.
    """
    rows, columns = cells.shape
    best = math.hypot(rows, columns)
    found = False
    for k in range(len(way)):
        y, x = way[k]
        r0, r1 = max(math.floor(y - best), 0), min(math.ceil(y + best), rows - 1)
        c0, c1 = max(math.floor(x - best), 0), min(math.ceil(x + best), columns - 1)
        for r in range(r0, r1 + 1):
            dy = max(abs(r - y) - 0.5, 0.0)
            if dy >= best:
                continue
            for c in range(c0, c1 + 1):
                if cells[r, c] == LETHAL:
                    distance = math.hypot(dy, max(abs(c - x) - 0.5, 0.0))
                    if distance < best or not found:
                        best, found = distance, True
    return best if found else np.inf
