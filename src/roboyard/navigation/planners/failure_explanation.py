"""Explanation why there is no path: the widest gap or the thinnest barrier, its width, and the sources of its cells."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids.distance_field import squared_distance_transform
from roboyard.navigation.costmap import LETHAL, UNKNOWN, LayeredCostmap
from roboyard.navigation.errors import NoPathError
from roboyard.navigation.path import BarrierKind, PathFailure
from roboyard.navigation.planners.cost_grid import TraversalGrid
from roboyard.navigation.planners.fast_marching import propagate_wave, trace_descent


@kernel(examples=lambda: [(np.zeros((5, 5)), 1, 1, 2, 2)])
def maximum_clearance_path(
    squared_clearances: NDArray[np.float64], start_row: int, start_column: int, goal_row: int, goal_column: int
) -> tuple[int, int]:
    """Find the path whose narrowest place is widest, over the eight neighbors without cutting corners.

    The search expands cells from the start in the order of their clearance.  It reaches each cell first on its widest
    path, so each cell is queued once, in a list for each clearance (maximum-capacity path; Pollack 1960).

    Args:
        squared_clearances: (rows, columns) squared distance of each cell from the nearest obstacle [cells²], 0 within
            obstacles.
        start_row: Row of the start.
        start_column: Column of the start.
        goal_row: Row of the goal.
        goal_column: Column of the goal.

    Returns:
        Squared clearance at the narrowest place and its flat index; 0 and -1 if every path crosses obstacles.
    """
    rows, columns = squared_clearances.shape
    flat = squared_clearances.ravel()
    max_square = rows * rows + columns * columns
    start, end = start_row * columns + start_column, goal_row * columns + goal_column
    level = np.int64(min(flat[start], max_square))
    buckets = np.full(level + 1, -1, dtype=np.int64)
    next_cell = np.full(rows * columns, -2, dtype=np.int64)
    narrowest_cell = np.zeros(rows * columns, dtype=np.int64)
    next_cell[start], buckets[level], narrowest_cell[start] = -1, start, start
    while level > 0:
        u = buckets[level]
        if u == -1:
            level -= 1
            continue
        buckets[level] = next_cell[u]
        if u == end:
            return int(level), int(narrowest_cell[u])
        r, c = u // columns, u % columns
        for dr in range(-1, 2):
            for dc in range(-1, 2):
                rr, cc = r + dr, c + dc
                if rr < 0 or cc < 0 or rr >= rows or cc >= columns:
                    continue
                v = rr * columns + cc
                if (
                    next_cell[v] != -2
                    or flat[v] == 0.0
                    or squared_clearances[r, cc] == 0.0
                    or squared_clearances[rr, c] == 0.0
                ):
                    continue
                narrowest_cell[v] = v if flat[v] < level else narrowest_cell[u]
                bucket = np.int64(min(flat[v], level))
                next_cell[v] = buckets[bucket]
                buckets[bucket] = v
    return 0, -1


_OBSTACLE_WEIGHT = 30.0
"""Cost of a cell of an obstacle, in cells of detour, in the search for the thinnest place of a wall."""


def explain_no_path(
    layers: LayeredCostmap, start: SE2, goal: SE2, radius: float, *, allow_unknown: bool = True
) -> PathFailure:
    """Explain why no path leads from the start to the goal.

    Args:
        layers: The costmap with its layers.
        start: Pose of the robot.
        goal: Pose of the goal.
        radius: Inscribed radius of the robot [m].
        allow_unknown: Whether the path may cross unknown cells.

    Raises:
        InputError: The start or the goal lies outside of the map, or the radius is negative or not finite.
    """
    if not 0.0 <= radius < math.inf:
        raise InputError(f"a robot of radius {radius}", valid="meters, 0 or more")
    costmap, geometry = layers.snapshot(), layers.geometry
    ends = geometry.cells_of_points([[start.x, start.y], [goal.x, goal.y]])
    for name, cell, pose in zip(("start", "goal"), ends, (start, goal), strict=True):
        if not geometry.contains(cell):
            raise InputError(f"the {name} ({pose.x:.2f}, {pose.y:.2f}) lies outside of the map", valid="a place in it")
    is_blocked = costmap.cells == LETHAL
    if not allow_unknown:
        is_blocked |= costmap.cells == UNKNOWN
    squared_clearances = squared_distance_transform(is_blocked)
    for barrier, cell, pose in ((BarrierKind.START, ends[0], start), (BarrierKind.GOAL, ends[1], goal)):
        distance = math.sqrt(squared_clearances[tuple(cell)])
        if distance * geometry.resolution <= radius or distance == 0.0:
            nearest = _nearest_blocked_cell(is_blocked, cell, distance)
            clearance = max(distance - 0.5, 0.0) * geometry.resolution
            return PathFailure(
                barrier, (pose.x, pose.y), clearance, radius, nearest[None], layers.find_cost_origins(nearest[None])
            )
    square, saddle = maximum_clearance_path(squared_clearances, *(int(index) for index in ends.ravel()))
    if square == 0:
        return _explain_wall(layers, is_blocked, ends, radius)
    saddle_cell = np.array(divmod(saddle, geometry.shape[1]))
    distance = math.sqrt(squared_clearances[tuple(saddle_cell)])
    barrier = BarrierKind.NO_BARRIER if distance * geometry.resolution > radius else BarrierKind.GAP
    return _explain_gap(layers, barrier, is_blocked, saddle_cell, distance, radius)


def no_path_error(
    layers: LayeredCostmap, start: SE2, goal: SE2, radius: float, *, allow_unknown: bool = True
) -> NoPathError:
    """Return the error of a missing path, with its explanation; arguments and errors are those of `explain_no_path`."""
    failure = explain_no_path(layers, start, goal, radius, allow_unknown=allow_unknown)
    return NoPathError(f"no collision-free path from start to goal: {failure}", explanation=failure)


def _explain_gap(
    layers: LayeredCostmap,
    barrier: BarrierKind,
    is_blocked: NDArray[np.bool_],
    saddle: NDArray[np.int64],
    distance: float,
    radius: float,
) -> PathFailure:
    """Explain a gap between the obstacle nearest to its center and the nearest one opposite, or the edge of the map."""
    geometry = layers.geometry
    if not math.isfinite(distance):
        center = geometry.cell_centers(saddle)
        return PathFailure(barrier, (center[0], center[1]), math.inf, 2.0 * radius, saddle[:0].reshape(0, 2), ())
    first = _nearest_blocked_cell(is_blocked, saddle, distance)
    radius_cells = math.ceil(3.0 * distance) + 3
    low = np.maximum(saddle - radius_cells, 0)
    nearby = np.argwhere(is_blocked[low[0] : saddle[0] + radius_cells + 1, low[1] : saddle[1] + radius_cells + 1]) + low
    opposite = nearby[(nearby - saddle) @ (first - saddle) < 0.0]
    if not len(opposite):
        # a gap between an obstacle and the edge of the map, up to which the center of the robot may go
        cells, width, required_width, center = first[None], distance - 0.5, radius, saddle.astype(np.float64)
    else:
        second = opposite[np.argmin(np.linalg.norm(opposite - saddle, axis=1))]
        cells, required_width = np.stack([first, second]), 2.0 * radius
        width = _cell_gap(first, second)
        center = 0.5 * (first + second)
    x, y = geometry.cell_centers(center)
    return PathFailure(
        barrier,
        (float(x), float(y)),
        width * geometry.resolution,
        required_width,
        cells,
        layers.find_cost_origins(cells),
    )


def _explain_wall(
    layers: LayeredCostmap, is_blocked: NDArray[np.bool_], ends: NDArray[np.int64], radius: float
) -> PathFailure:
    """Explain the wall that a path crosses which avoids obstacles as well as it can."""
    geometry = layers.geometry
    weights = np.zeros(256, dtype=np.float32)
    weights[:2] = 1.0, _OBSTACLE_WEIGHT
    grid = TraversalGrid.with_border(is_blocked.astype(np.uint8), weights)
    arrival_times = np.full(grid.cells.size, np.inf, dtype=np.float32)
    propagate_wave(grid, arrival_times, grid.flat_index((int(ends[1, 0]), int(ends[1, 1]))), -1)
    points = trace_descent(grid, arrival_times.reshape(grid.cells.shape), float(ends[0, 0] + 1), float(ends[0, 1] + 1))
    path_cells = np.floor(points + 0.5).astype(np.int64) - 1
    crossed = path_cells[is_blocked[path_cells[:, 0], path_cells[:, 1]]]
    _, order = np.unique(crossed, axis=0, return_index=True)
    cells = crossed[np.sort(order)]
    x, y = geometry.cell_centers(cells.mean(axis=0))
    return PathFailure(
        BarrierKind.WALL, (float(x), float(y)), 0.0, 2.0 * radius, cells, layers.find_cost_origins(cells)
    )


def _nearest_blocked_cell(is_blocked: NDArray[np.bool_], cell: NDArray[np.int64], distance: float) -> NDArray[np.int64]:
    """Return the blocked cell at the given distance [cells]."""
    radius_cells = math.ceil(distance)
    low = np.maximum(cell - radius_cells, 0)
    nearby = np.argwhere(is_blocked[low[0] : cell[0] + radius_cells + 1, low[1] : cell[1] + radius_cells + 1]) + low
    return np.asarray(nearby[np.argmin(np.linalg.norm(nearby - cell, axis=1))])


def _cell_gap(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the distance between the squares of two cells [cells]."""
    return float(np.linalg.norm(np.maximum(np.abs(first - second) - 1, 0)))
