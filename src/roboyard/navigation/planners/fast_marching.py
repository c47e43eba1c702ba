"""Fast marching: the arrival times of a wave from the goal, and paths down their gradient.

The eikonal equation |∇T| = w on the grid is solved with Godunov's upwind scheme over the four neighbors (Sethian 1996);
its gradient leads along shortest paths of any direction.  navfn solves the same equation with a fitted parabola.  Cells
wait in a ring of buckets (as in Yatziv, Bartesaghi, Sapiro 2006); a cell is updated again when a neighbor's time falls,
until no time changes by more than ``_CONVERGENCE_TOLERANCE``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import check, parameter
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.navigation.costmap import Costmap, InflationLayer, LayeredCostmap, StaticLayer
from roboyard.navigation.errors import NavigationError, NoPathError
from roboyard.navigation.path import Path, resample_polyline
from roboyard.navigation.planners.cost_grid import (
    BLOCK_MASK,
    NO_BLOCK,
    TraversalGrid,
    example_grid,
    line_cost,
    make_bucket_queue,
    open_block,
    polyline_cost,
    pop_all,
    pull_string,
    release_block,
)
from roboyard.navigation.planners.planner import (
    TraversalCosts,
    path_from_grid,
    to_grid,
    validate_start_and_goal,
)

_ONE = np.uint64(1)
_HALF, _TWO = np.float32(0.5), np.float32(2.0)
_CONVERGENCE_TOLERANCE = np.float32(1e-3)
"""Changes of a time that are smaller than this do not update the neighbors [cells]."""
_MIN_GAIN = np.float32(0.2)
"""A neighbor is updated again if its time is later by more than this fraction of its weight; what it could gain
otherwise is less than 2 % of a step.  navfn takes 0.71, and its times have errors of 3 %."""
_BUCKETS_PER_COST = np.float32(2.0)
"""Number of buckets per cost of a cell."""
_MANHATTAN_RATIO = np.float32(1.4143)
"""Largest ratio between the cost of a path along rows and columns, which selects a cell's bucket, and its time: √2."""


@kernel(examples=lambda: [(example_grid(), np.zeros(25, dtype=np.float32), 0, -1)])
def propagate_wave(grid: TraversalGrid, arrival_times: NDArray[np.float32], source: int, target: int) -> int:
    """Compute the arrival times of a wave from ``source``, until that of the target is known.

    The kernel updates cells in the order in which a wave along rows and columns would reach them.  Where weights do not
    change, both neighbors on which a time depends are known by then, and each cell is updated once.  (In the order of
    the times themselves one of the two often comes too late, and branch prediction fails: half as fast.)  Corrections
    follow one bucket behind, and so overtake the wave.

    Args:
        grid: Traversal costs of the cells.
        arrival_times: (rows * columns,) result [cells], filled with infinity.
        source: Flat index of the source.
        target: Flat index of the target, or -1 for all cells.

    Returns:
        Number of updates.
    """
    flat, weights = grid.cells.ravel(), grid.weights
    stride = np.uint64(grid.cells.shape[1])
    queue = make_bucket_queue(flat.size, _BUCKETS_PER_COST * weights.max() + 2.0)  # each cell waits in one bucket only
    blocks, ends, _ = queue
    ring = len(ends)
    mask = np.int64(ring - 1)
    bucket_leads = np.empty(len(weights), dtype=np.int64)
    for k in range(len(weights)):
        bucket_leads[k] = np.int64(_BUCKETS_PER_COST * weights[k] + _HALF)
    is_queued = np.zeros(flat.size, dtype=np.uint8)
    start = np.uint64(source)
    arrival_times[start] = 0.0
    end = open_block(queue, 0) - 1
    for v in (start - _ONE, start + _ONE, start - stride, start + stride):
        if weights[flat[v]] > 0.0:
            end += 1
            blocks[end] = v
            is_queued[v] = 1
    ends[0] = end
    n_updated = 0
    level = np.int64(0)
    empty = 0
    while empty < ring:
        if ends[level & mask] == NO_BLOCK:
            empty += 1
            level += 1
            if target >= 0 and level > _MANHATTAN_RATIO * _BUCKETS_PER_COST * arrival_times[target] + ring:
                break
            continue
        empty = 0
        end = pop_all(queue, level & mask)
        while end != NO_BLOCK:
            block = end - (end & BLOCK_MASK)
            n_updated += end - block
            for i in range(block + 1, end + 1):
                u = np.uint64(blocks[np.uint64(i)])
                is_queued[u] = 0
                w = weights[flat[u]]
                north, south, east, west = u + stride, u - stride, u + _ONE, u - _ONE
                tn, ts, te, tw = arrival_times[north], arrival_times[south], arrival_times[east], arrival_times[west]
                a, b = min(tn, ts), min(te, tw)
                gap = abs(a - b)
                time = _HALF * (a + b + math.sqrt(_TWO * w * w - gap * gap)) if gap < w else min(a, b) + w
                if time > arrival_times[u] - _CONVERGENCE_TOLERANCE:
                    continue
                arrival_times[u] = time
                for v, t in ((north, tn), (south, ts), (east, te), (west, tw)):
                    if t <= time or is_queued[v] != 0:
                        continue
                    ww = weights[flat[v]]
                    if (ww > 0.0) & (t > time + _MIN_GAIN * ww):
                        lead = 1 if t < np.inf else bucket_leads[flat[v]]
                        q = np.uint64((level + lead) & mask)
                        slot = ends[q] + 1
                        if slot & BLOCK_MASK == 0:
                            slot = open_block(queue, q)
                        blocks[np.uint64(slot)] = v
                        ends[q] = slot
                        is_queued[v] = 1
            end = int(blocks[block])
            release_block(queue, block)
        level += 1
    return n_updated


@kernel(examples=lambda: [(example_grid(), np.zeros((5, 5), np.float32), 2.5, 2.5, 10, 0.5)])
def descend_gradient(
    grid: TraversalGrid, arrival_times: NDArray[np.float32], row: float, column: float, max_points: int, step: float
) -> NDArray[np.float64]:
    """Follow the gradient of the arrival times down to the source.

    Args:
        grid: Traversal costs of the cells.
        arrival_times: (rows, columns) result of `propagate_wave`.
        row: Fractional row of the start; the center of cell (0, 0) is (0, 0).
        column: Fractional column of the start.
        max_points: Largest number of points.
        step: Distance between points [cells].

    Returns:
        Points (n, 2), rows and columns; the last one lies in the source's cell unless ``max_points`` is too small.
    """
    points = np.empty((max_points, 2))
    points[0] = row, column
    count = 1
    is_recentered = False
    while count < max_points:
        r, c = math.floor(row + 0.5), math.floor(column + 0.5)
        current_time = arrival_times[r, c]
        if current_time == 0.0:
            break
        gradient_row, gradient_column = _upwind_gradient(arrival_times, r, c)
        magnitude = math.hypot(gradient_row, gradient_column)
        candidate_row, candidate_column = row, column
        if magnitude > 0.0:
            candidate_row, candidate_column = (
                row - step * gradient_row / magnitude,
                column - step * gradient_column / magnitude,
            )
        is_free = (
            magnitude > 0.0
            and not is_recentered
            and line_cost(grid, row, column, candidate_row, candidate_column) < np.inf
        )
        next_r, next_c = math.floor(candidate_row + 0.5), math.floor(candidate_column + 0.5)
        # each step must lead to an earlier cell, or the path could run in a circle
        if is_free and ((next_r == r and next_c == c) or arrival_times[next_r, next_c] < current_time):
            row, column = candidate_row, candidate_column
        elif not is_recentered and (row != r or column != c):
            # beside an obstacle the gradient may point into it: go to the center of the cell instead,
            row, column = float(r), float(c)
            is_recentered = True
        else:
            # and from there to the center of the earliest neighbor
            is_recentered = False
            min_row, min_column, min_time = r, c, current_time
            for dr in range(-1, 2):
                for dc in range(-1, 2):
                    time = arrival_times[r + dr, c + dc]
                    is_passable = arrival_times[r + dr, c] < np.inf and arrival_times[r, c + dc] < np.inf
                    if time < min_time and is_passable:
                        min_row, min_column, min_time = r + dr, c + dc, time
            row, column = float(min_row), float(min_column)
        points[count] = row, column
        count += 1
    return points[:count]


def trace_descent(
    grid: TraversalGrid, arrival_times: NDArray[np.float32], row: float, column: float
) -> NDArray[np.float64]:
    """Return the whole path (n, 2) of `descend_gradient`, with points half a cell apart."""
    max_points = 256
    while True:
        points = descend_gradient(grid, arrival_times, row, column, max_points, 0.5)
        if len(points) < max_points:
            return points
        max_points *= 4


@kernel
def _upwind_gradient(arrival_times: NDArray[np.float32], row: int, column: int) -> tuple[float, float]:
    """Return the upwind gradient of the times in a cell: towards the earlier neighbor of each axis, if there is one."""
    current_time = arrival_times[row, column]
    north, south, east, west = (
        arrival_times[row + 1, column],
        arrival_times[row - 1, column],
        arrival_times[row, column + 1],
        arrival_times[row, column - 1],
    )
    along_r = along_c = 0.0
    if min(north, south) < current_time:
        along_r = current_time - south if south <= north else north - current_time
    if min(east, west) < current_time:
        along_c = current_time - west if west <= east else east - current_time
    return along_r, along_c


@dataclass(frozen=True, slots=True)
class FastMarchingPlanner:
    """Planner that descends the gradient of the arrival times of a wave from the goal, as navfn does.

    Attributes:
        traversal: Traversal costs.
        pull_string: Whether to shorten the path to straight lines that bend at obstacles and where costs change (string
            pulling).  Without it the path is as smooth as the arrival times.
        spacing: Distance between the poses of a shortened path [cells].
    """

    traversal: TraversalCosts = parameter(factory=TraversalCosts, doc="Traversal costs.")
    pull_string: bool = parameter(True, doc="Shorten the path to straight lines between the corners of obstacles.")
    spacing: float = parameter(
        1.0, low=0.1, high=5.0, doc="Distance between the poses of a shortened path, in cells of the costmap."
    )

    def __post_init__(self) -> None:
        check(self, "FastMarchingPlanner")

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """Plan the path down the gradient; see the contract in `GlobalPlanner.plan`."""
        first, last = validate_start_and_goal(costmap, self.traversal, start, goal)
        grid, arrival_times = self._propagate(costmap, last, first)
        if not np.isfinite(arrival_times[first[0] + 1, first[1] + 1]):
            raise NoPathError(
                "no collision-free path from start to goal", valid="a goal on the robot's side of the obstacles"
            )
        grid_start, grid_goal = to_grid(costmap, start) + 1.0, to_grid(costmap, goal) + 1.0
        points = np.concatenate([trace_descent(grid, arrival_times, grid_start[0], grid_start[1]), grid_goal[None]])
        if self.pull_string:
            points = pull_string(grid, points, 20)
        cost = polyline_cost(grid, points, 0)
        if self.pull_string:
            points = resample_polyline(points, self.spacing)
        return path_from_grid(costmap, points - 1.0, start, goal, cost)

    def potential(self, costmap: Costmap, goal: SE2) -> NDArray[np.float32]:
        """Compute the cost of the path to the goal from every cell [m of free space]; infinite if there is none.

        Returns:
            Costs (rows, columns) from the centers of the cells to the center of the goal's cell.

        Raises:
            NavigationError: The robot cannot be at the goal.
        """
        last, _ = validate_start_and_goal(costmap, self.traversal, goal, goal)
        return self._propagate(costmap, last, None)[1][1:-1, 1:-1] * np.float32(costmap.geometry.resolution)

    def _propagate(
        self, costmap: Costmap, source: tuple[int, int], target: tuple[int, int] | None
    ) -> tuple[TraversalGrid, NDArray[np.float32]]:
        """Return the traversal costs, and the arrival times (rows + 2, columns + 2) of the wave [cells]."""
        grid = self.traversal.make_grid(costmap.cells)
        arrival_times = np.full(grid.cells.size, np.inf, dtype=np.float32)
        propagate_wave(grid, arrival_times, grid.flat_index(source), -1 if target is None else grid.flat_index(target))
        return grid, arrival_times.reshape(grid.cells.shape)


PlanarPose = tuple[float, float, float]


def travel_cost_function(grid: OccupancyGrid, radius: float) -> Callable[[PlanarPose, PlanarPose], float]:
    """Make a function of two poses x, y [m] and yaw [rad] that returns the cost of the path between them.

    The cost [m of free space] is infinite if there is no path for a circle of the given radius through known space.
    The function computes one wave for each second pose, and keeps it.

    Args:
        grid: Map.
        radius: Radius of the robot [m].
    """
    static, inflation = StaticLayer(), InflationLayer(radius, radius + grid.geometry.resolution)
    static.set_map(grid)
    layers = LayeredCostmap(grid.geometry, [static, inflation], track_unknown_space=True)
    layers.update()
    costmap = layers.snapshot()
    planner = FastMarchingPlanner()
    potentials: dict[PlanarPose, NDArray[np.float32] | None] = {}

    def travel_cost(a: PlanarPose, b: PlanarPose) -> float:
        if b not in potentials:
            try:
                potentials[b] = planner.potential(costmap, SE2(*b))
            except NavigationError:
                potentials[b] = None
        potential = potentials[b]
        cell = grid.geometry.cells_of_points(np.array(a[:2]))
        if potential is None or not grid.geometry.contains(cell):
            return float("inf")
        return float(potential[cell[0], cell[1]])

    return travel_cost
