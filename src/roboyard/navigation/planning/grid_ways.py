"""From rows and columns of a padded grid to poses in the map."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2, polygons
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


def outline_clearance(costmap: Costmap, outline: NDArray[np.float64]) -> float:
    """How far an outline (n, 2) in the map is from the nearest obstacle's middle [m]; 0 where it holds one."""
    low = costmap.frame.cells_of_points(outline).min(axis=0)
    high = costmap.frame.cells_of_points(outline).max(axis=0)
    if not costmap.frame.contains(np.stack([low, high])).all():
        return 0.0
    around = np.argwhere(costmap.cells[low[0] : high[0] + 1, low[1] : high[1] + 1] == LETHAL) + low
    return float(polygons.distance(outline, costmap.frame.cell_centers(around)).min(initial=math.inf))


def spaced(way: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """The same line (n, 2) with points no farther than ``spacing`` from each other, its corners kept."""
    pieces = [way[:1]]
    for first, last in itertools.pairwise(way):
        count = max(math.ceil(float(np.hypot(*(last - first))) / spacing), 1)
        pieces.append(first + (last - first) * (np.arange(1, count + 1) / count)[:, None])
    return np.concatenate(pieces)


_BLOCK = 8
_EMPTY, _HOLDS = 1, 2
"""What a block is known to be; 0 before it was looked through."""


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), np.ones((2, 2)))])
def nearest_obstacle(cells: NDArray[np.uint8], way: NDArray[np.float64]) -> float:
    """Distance from the points of a way to the nearest lethal cell's square [cells]; infinite if there is none.

    A search from one point also looks somewhat beyond the nearest obstacle so far, which spares those points after it
    that cannot have come nearer than that; and blocks of cells without an obstacle are looked through once.
    """
    rows, columns = cells.shape
    blocks = np.zeros((rows // _BLOCK + 1, columns // _BLOCK + 1), dtype=np.uint8)
    best = np.inf
    k = 0
    while k < len(way):
        distance = _distance_at(cells, blocks, way[k, 0], way[k, 1], best + max(0.5 * best, 2.0))
        if distance == np.inf:
            return np.inf
        best = min(best, distance)
        here = k
        k += 1
        while k < len(way) and math.hypot(way[k, 0] - way[here, 0], way[k, 1] - way[here, 1]) <= distance - best:
            k += 1
    return best


@kernel
def _distance_at(cells: NDArray[np.uint8], blocks: NDArray[np.uint8], y: float, x: float, reach: float) -> float:
    """Distance from a point to the nearest lethal cell's square, or ``reach`` where none is as near.

    Blocks are looked at in rings about that of the point, or about the nearest where it lies beyond the map.
    """
    rows, columns = cells.shape
    block_rows, block_columns = blocks.shape
    middle_r = int(min(max(y + 0.5, 0.0), rows - 1.0)) // _BLOCK
    middle_c = int(min(max(x + 0.5, 0.0), columns - 1.0)) // _BLOCK
    best = reach
    for ring in range(max(block_rows, block_columns)):
        if (ring - 1) * _BLOCK >= best:
            break
        for r in range(max(middle_r - ring, 0), min(middle_r + ring + 1, block_rows)):
            across = 1 if abs(r - middle_r) == ring else max(2 * ring, 1)
            for c in range(middle_c - ring, middle_c + ring + 1, across):
                if c < 0 or c >= block_columns or blocks[r, c] == _EMPTY:
                    continue
                best = _distance_in(cells, blocks, r, c, y, x, best)
    return best


@kernel
def _distance_in(
    cells: NDArray[np.uint8], blocks: NDArray[np.uint8], block_r: int, block_c: int, y: float, x: float, best: float
) -> float:
    """Distance from a point to the nearest lethal cell's square of a block, or ``best`` where none is nearer."""
    r0, c0 = block_r * _BLOCK, block_c * _BLOCK
    r1, c1 = min(r0 + _BLOCK, cells.shape[0]), min(c0 + _BLOCK, cells.shape[1])
    aside = max(r0 - 0.5 - y, y - (r1 - 0.5), 0.0), max(c0 - 0.5 - x, x - (c1 - 0.5), 0.0)
    if math.hypot(aside[0], aside[1]) >= best:
        return best
    found = _EMPTY
    for r in range(r0, r1):
        dy = max(abs(r - y) - 0.5, 0.0)
        for c in range(c0, c1):
            if cells[r, c] == LETHAL:
                found = _HOLDS
                best = min(best, math.hypot(dy, max(abs(c - x) - 0.5, 0.0)))
    blocks[block_r, block_c] = found
    return best
