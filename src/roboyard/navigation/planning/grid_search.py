"""Planners that step from cell to cell: Dijkstra's algorithm and A*."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.geometry import SE2
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.errors import NoPath
from roboyard.navigation.path import Path
from roboyard.navigation.planning import octile
from roboyard.navigation.planning.base import Traversal, start_and_goal
from roboyard.navigation.planning.grid_ways import nearest_obstacle, path_through, place
from roboyard.navigation.planning.ground import Ground, smallest
from roboyard.navigation.planning.lines import line_cost


@dataclass(frozen=True, slots=True)
class GridSearch:
    """Cheapest way over the eight neighbours of each cell, never across an obstacle's corner.

    Attributes:
        traversal: What a metre costs.
        directed: A*, which looks towards the goal first; else Dijkstra's algorithm.  Both find ways of the same cost.
    """

    traversal: Traversal = field(default_factory=Traversal)
    directed: bool = True

    @staticmethod
    def expect_kernels() -> None:
        """Compile the kernels of `plan` in the background, if they are not cached."""
        expect_kernels(octile.search, trace, line_cost, nearest_obstacle)

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """See ``GlobalPlanner``."""
        first, last = start_and_goal(costmap, self.traversal, start, goal)
        ground = self.traversal.ground(costmap.cells)
        source, target = ground.flat(first), ground.flat(last)
        costs = np.full(ground.cells.size, np.inf)
        octile.search(ground, costs, np.array([source]), target, 0.0, self.directed)
        if not np.isfinite(costs[target]):
            raise NoPath("no way leads from the start to the goal", valid="a goal on the robot's side of the obstacles")
        cells = trace(ground, costs, source, target)
        middles = np.column_stack(np.divmod(cells, ground.cells.shape[1])).astype(np.float64)
        way = _from_place_to_place(ground, middles, place(costmap, start) + 1.0, place(costmap, goal) + 1.0) - 1.0
        return path_through(costmap, way, start, goal, float(costs[target]))

    def potential(self, costmap: Costmap, goal: SE2) -> NDArray[np.float64]:
        """What the way to the goal costs from every cell, in metres of free ground; infinite where none leads there.

        Returns:
            (rows, columns), from the middles of cells to that of the goal's.

        Raises:
            NavigationError: the goal lies where the robot cannot be.
        """
        cell, _ = start_and_goal(costmap, self.traversal, goal, goal)
        ground = self.traversal.ground(costmap.cells)
        costs = np.full(ground.cells.size, np.inf)
        octile.search(ground, costs, np.array([ground.flat(cell)]), -1, 0.0, False)
        return costs.reshape(ground.cells.shape)[1:-1, 1:-1] * costmap.frame.resolution


def _from_place_to_place(
    ground: Ground, middles: NDArray[np.float64], start: NDArray[np.float64], goal: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The way through the cells' middles, from and to places in the first and last cell.

    Those cells' own middles are left out where a straight line to the next is free.
    """
    if len(middles) < 2:
        return np.stack([start, goal])
    ahead = middles[1:] if math.isfinite(line_cost(ground, *start, *middles[1])) else middles
    behind = ahead[:-1] if len(ahead) > 1 and math.isfinite(line_cost(ground, *ahead[-2], *goal)) else ahead
    if len(ahead) == 1 and math.isfinite(line_cost(ground, *start, *goal)):
        behind = ahead[:0]
    return np.concatenate([start[None], behind, goal[None]])


@kernel(examples=lambda: [(smallest(), np.zeros(25), 0, 0)])
def trace(ground: Ground, costs: NDArray[np.float64], source: int, target: int) -> NDArray[np.int64]:
    """Cells of the cheapest way, from the source to the target; arguments as in ``octile.search``."""
    flat, stride, weights = ground.cells.ravel(), ground.cells.shape[1], ground.weights.astype(np.float64)
    way = np.empty(flat.size, dtype=np.int64)
    here, count = target, 0
    while here != source:
        way[count] = here
        count += 1
        best, chosen = np.inf, here
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                there = here + dr * stride + dc
                if weights[flat[there]] == 0.0 or there == here:
                    continue
                length = 1.0
                if dr != 0 and dc != 0:
                    if weights[flat[here + dr * stride]] == 0.0 or weights[flat[here + dc]] == 0.0:
                        continue
                    length = np.sqrt(2.0)
                cost = costs[there] + 0.5 * length * (weights[flat[there]] + weights[flat[here]])
                if cost < best:
                    best, chosen = cost, there
        here = chosen
    way[count] = source
    return way[: count + 1][::-1].copy()
