"""Grid search over eight neighbors without cutting corners: Dijkstra's algorithm and A*.

A step from cell u to v costs its length, 1 or √2 cells, times the mean of both weights: the trapezoid rule for the line
integral of the weight, so a path costs the same in both directions.  A diagonal step needs both cells beside it free.

The queue is a ring of buckets half a cell's cost wide.  Dial 1969; Denardo and Fox 1979: with real lengths and buckets
no wider than the shortest step, all cells in the lowest bucket are final, in any order.  With a heuristic, steps may
add nothing to the estimate; then a cell is expanded again whenever its cost falls, which keeps the result exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import check, parameter
from roboyard.geometry import SE2
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.errors import NoPathError
from roboyard.navigation.path import Path
from roboyard.navigation.planners.cost_grid import (
    BLOCK_MASK,
    NO_BLOCK,
    BucketQueue,
    TraversalGrid,
    close_block,
    example_grid,
    grow,
    has_capacity,
    line_cost,
    make_bucket_queue,
    open_block,
)
from roboyard.navigation.planners.planner import (
    TraversalCosts,
    distance_to_nearest_obstacle,
    path_from_grid,
    to_grid,
    validate_start_and_goal,
)

_SQRT_TWO = math.sqrt(2.0)
_ONE = np.uint64(1)
_BUCKETS_PER_COST = 2.0
"""Buckets per cell's cost: with one, a directed search looks at twice as many cells; with four, it waits for memory."""
_INITIAL_CAPACITY = 10_000
"""Cells for which the queue has room at first."""


@kernel(examples=lambda: [(example_grid(), np.zeros(25), np.zeros(1, dtype=np.int64), -1, 0.0, False)])
def search_grid(
    grid: TraversalGrid,
    costs: NDArray[np.float64],
    sources: NDArray[np.int64],
    target: int,
    cost_margin: float,
    use_heuristic: bool,
) -> int:
    """Compute the costs of the cheapest paths from the nearest of ``sources``, until that to the target is known.

    Args:
        grid: Traversal costs of the cells.
        costs: (rows * columns,) in cells, filled with infinity; those up to the target's, and ``cost_margin`` it, are
            final
            afterwards, and where the search is directed, those along its way.
        sources: (n,) flat indices.
        target: Flat index, or -1 for all cells.
        cost_margin: By how much ways may be dearer than the target's, and still be found [cells].
        use_heuristic: Whether to prefer cells nearer to the target (A*, for one source), or not (Dijkstra's algorithm).

    Returns:
        Number of cells taken from the queue.
    """
    columns = np.int64(grid.cells.shape[1])
    is_queued = np.zeros(grid.cells.size, dtype=np.uint8)
    level = 0
    if use_heuristic:
        row, column = np.int64(target) // columns, np.int64(target) % columns
        dr, dc = abs(sources[0] // columns - row), abs(sources[0] % columns - column)
        level = int(_BUCKETS_PER_COST * (max(dr, dc) + (_SQRT_TWO - 1.0) * min(dr, dc)))
    # as many buckets as hold what a step can add to a cost or an estimate
    queue = make_bucket_queue(
        len(sources) + _INITIAL_CAPACITY, _BUCKETS_PER_COST * 2.0 * _SQRT_TWO * grid.weights.max() + 2.0
    )
    first = level & np.int64(len(queue.ends) - 1)
    for source in sources:
        if is_queued[source] == 0:
            costs[source] = 0.0
            end = queue.ends[first] + 1
            if end & BLOCK_MASK == 0:
                end = open_block(queue, first)
            queue.blocks[end] = source
            queue.ends[first] = end
            is_queued[source] = 1
    n_expanded = 0
    while True:
        level, n_new = _expand(grid, costs, is_queued, target, cost_margin, use_heuristic, queue, level)
        n_expanded += n_new
        if level < 0:
            return n_expanded
        queue = grow(queue)


@kernel
def _expand(
    grid: TraversalGrid,
    costs: NDArray[np.float64],
    is_queued: NDArray[np.uint8],
    target: int,
    cost_margin: float,
    use_heuristic: bool,
    queue: BucketQueue,
    level: int,
) -> tuple[int, int]:
    """Expand the cells of the queue until the search is finished or the queue is full.

    Returns:
        Level of the queue, or -1 if the search is finished; and the number of expanded cells.
    """
    flat = grid.cells.ravel()
    weights = grid.weights.astype(np.float64)
    columns = np.int64(grid.cells.shape[1])
    stride = np.uint64(columns)
    row, column = np.int64(target) // columns, np.int64(target) % columns
    blocks, ends, _ = queue
    ring = len(ends)
    mask = np.int64(ring - 1)
    n_expanded = 0
    empty = 0
    while empty < ring:
        k = np.uint64(level & mask)
        end = ends[k]
        if end == NO_BLOCK:
            empty += 1
            level += 1
            if target >= 0 and (costs[target] + cost_margin) * _BUCKETS_PER_COST < level:
                break  # all remaining cells cost more
            continue
        if not has_capacity(queue, 8):
            return level, n_expanded
        empty = 0
        u = np.uint64(blocks[np.uint64(end)])
        ends[k] = end - 1
        if end & BLOCK_MASK == 1:
            close_block(queue, k)
        if is_queued[u] == 0:
            continue  # the search has reached the cell at a lower cost, and expanded it then
        is_queued[u] = 0
        n_expanded += 1
        cost = costs[u]
        cell_weight = weights[flat[u]]
        north, south, east, west = u + stride, u - stride, u + _ONE, u - _ONE
        wn, ws, we, ww = weights[flat[north]], weights[flat[south]], weights[flat[east]], weights[flat[west]]
        for step in range(8):
            v = (north, south, east, west, north + _ONE, north - _ONE, south + _ONE, south - _ONE)[step]
            if step < 4:
                w = (wn, ws, we, ww)[step]
                x = cost + 0.5 * (cell_weight + w)
            else:
                if (wn, wn, ws, ws)[step - 4] == 0.0 or (we, ww, we, ww)[step - 4] == 0.0:
                    continue
                w = weights[flat[v]]
                x = cost + 0.5 * _SQRT_TWO * (cell_weight + w)
            if w > 0.0 and x < costs[v]:
                costs[v] = x
                is_queued[v] = 1
                if use_heuristic:
                    dr, dc = abs(np.int64(v) // columns - row), abs(np.int64(v) % columns - column)
                    x += max(dr, dc) + (_SQRT_TWO - 1.0) * min(dr, dc)
                q = np.uint64(np.int64(x * _BUCKETS_PER_COST) & mask)
                end = ends[q] + 1
                if end & BLOCK_MASK == 0:
                    end = open_block(queue, q)
                blocks[np.uint64(end)] = v
                ends[q] = end
    return -1, n_expanded


@dataclass(frozen=True, slots=True)
class GridSearchPlanner:
    """Planner of the cheapest path over the eight neighbors of each cell, never across the corner of an obstacle.

    Attributes:
        traversal: Traversal costs.
        use_heuristic: Whether to expand cells towards the goal first (A*), or in all directions (Dijkstra's algorithm).
            Both find paths of the same cost.
    """

    traversal: TraversalCosts = parameter(factory=TraversalCosts, doc="Traversal costs.")
    use_heuristic: bool = parameter(
        True, aliases=("use_astar",), doc="Expand cells towards the goal first (A*), not in all directions (Dijkstra)."
    )

    def __post_init__(self) -> None:
        check(self, "GridSearchPlanner")

    @staticmethod
    def expect_kernels() -> None:
        """Compile the kernels of `plan` in the background if they are not cached."""
        expect_kernels(search_grid, trace_path, line_cost, distance_to_nearest_obstacle)

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """Plan the cheapest path; see the contract in `GlobalPlanner.plan`."""
        first, last = validate_start_and_goal(costmap, self.traversal, start, goal)
        grid = self.traversal.make_grid(costmap.cells)
        source, target = grid.flat_index(first), grid.flat_index(last)
        costs = np.full(grid.cells.size, np.inf)
        search_grid(grid, costs, np.array([source]), target, 0.0, self.use_heuristic)
        if not np.isfinite(costs[target]):
            raise NoPathError(
                "no collision-free path from start to goal", valid="a goal on the robot's side of the obstacles"
            )
        cells = trace_path(grid, costs, source, target)
        centers = np.column_stack(np.divmod(cells, grid.cells.shape[1])).astype(np.float64)
        points = _connect_endpoints(grid, centers, to_grid(costmap, start) + 1.0, to_grid(costmap, goal) + 1.0) - 1.0
        return path_from_grid(costmap, points, start, goal, float(costs[target]))

    def potential(self, costmap: Costmap, goal: SE2) -> NDArray[np.float64]:
        """Compute the cost of the path to the goal from every cell [m of free space]; infinite if there is none.

        Returns:
            Costs (rows, columns) from the centers of the cells to the center of the goal's cell.

        Raises:
            NavigationError: The robot cannot be at the goal.
        """
        cell, _ = validate_start_and_goal(costmap, self.traversal, goal, goal)
        grid = self.traversal.make_grid(costmap.cells)
        costs = np.full(grid.cells.size, np.inf)
        search_grid(grid, costs, np.array([grid.flat_index(cell)]), -1, 0.0, False)
        return costs.reshape(grid.cells.shape)[1:-1, 1:-1] * costmap.geometry.resolution


def _connect_endpoints(
    grid: TraversalGrid, centers: NDArray[np.float64], start: NDArray[np.float64], goal: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The way through the cells' middles, from and to places in the first and last cell.

    Those cells' own middles are left out where a straight line to the next is free.
    """
    if len(centers) < 2:
        return np.stack([start, goal])
    without_first = centers[1:] if math.isfinite(line_cost(grid, *start, *centers[1])) else centers
    inner_points = (
        without_first[:-1]
        if len(without_first) > 1 and math.isfinite(line_cost(grid, *without_first[-2], *goal))
        else without_first
    )
    if len(without_first) == 1 and math.isfinite(line_cost(grid, *start, *goal)):
        inner_points = without_first[:0]
    return np.concatenate([start[None], inner_points, goal[None]])


@kernel(examples=lambda: [(example_grid(), np.zeros(25), 0, 0)])
def trace_path(grid: TraversalGrid, costs: NDArray[np.float64], source: int, target: int) -> NDArray[np.int64]:
    """Cells of the cheapest way, from the source to the target; arguments as in `search_grid`."""
    flat, stride, weights = grid.cells.ravel(), grid.cells.shape[1], grid.weights.astype(np.float64)
    path_cells = np.empty(flat.size, dtype=np.int64)
    current, count = target, 0
    while current != source:
        path_cells[count] = current
        count += 1
        best, predecessor = np.inf, current
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                neighbor = current + dr * stride + dc
                if weights[flat[neighbor]] == 0.0 or neighbor == current:
                    continue
                length = 1.0
                if dr != 0 and dc != 0:
                    if weights[flat[current + dr * stride]] == 0.0 or weights[flat[current + dc]] == 0.0:
                        continue
                    length = np.sqrt(2.0)
                cost = costs[neighbor] + 0.5 * length * (weights[flat[neighbor]] + weights[flat[current]])
                if cost < best:
                    best, predecessor = cost, neighbor
        current = predecessor
    path_cells[count] = source
    return path_cells[: count + 1][::-1].copy()
