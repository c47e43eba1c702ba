"""Planners that follow a wave's gradient: navfn's behaviour, and ways pulled taut."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.errors import NoPath
from roboyard.navigation.path import Path
from roboyard.navigation.planning.base import Traversal, start_and_goal
from roboyard.navigation.planning.grid_ways import path_through, place, spaced
from roboyard.navigation.planning.ground import Ground
from roboyard.navigation.planning.lines import pull_taut, way_cost
from roboyard.navigation.planning.marching import march, way_down


@dataclass(frozen=True, slots=True)
class WavePlanner:
    """Way down the potential that a wave from the goal leaves behind, as navfn finds it, in any direction.

    Attributes:
        traversal: What a metre costs.
        taut: Pull the way taut: it bends at obstacles only, or where costs change.  Without, it is as smooth as the
            potential.
        spacing: Between the poses of a taut way, in cells.
    """

    traversal: Traversal = field(default_factory=Traversal)
    taut: bool = True
    spacing: float = 1.0

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """See ``GlobalPlanner``."""
        first, last = start_and_goal(costmap, self.traversal, start, goal)
        ground, times = self._wave(costmap, last, first)
        if not np.isfinite(times[first[0] + 1, first[1] + 1]):
            raise NoPath("no way leads from the start to the goal", valid="a goal on the robot's side of the obstacles")
        here, there = place(costmap, start) + 1.0, place(costmap, goal) + 1.0
        way = np.concatenate([way_down(ground, times, here[0], here[1]), there[None]])
        if self.taut:
            way = pull_taut(ground, way, 20)
        cost = way_cost(ground, way, 0)
        if self.taut:
            way = spaced(way, self.spacing)
        return path_through(costmap, way - 1.0, start, goal, cost)

    def potential(self, costmap: Costmap, goal: SE2) -> NDArray[np.float32]:
        """What the way to the goal costs from every cell, in metres of free ground; infinite where none leads there.

        Returns:
            (rows, columns), from the middles of cells to that of the goal's.

        Raises:
            NavigationError: the goal lies where the robot cannot be.
        """
        last, _ = start_and_goal(costmap, self.traversal, goal, goal)
        return self._wave(costmap, last, None)[1][1:-1, 1:-1] * np.float32(costmap.frame.resolution)

    def _wave(
        self, costmap: Costmap, source: tuple[int, int], until: tuple[int, int] | None
    ) -> tuple[Ground, NDArray[np.float32]]:
        """The ground, and the times (rows + 2, columns + 2) on it [cells]."""
        ground = self.traversal.ground(costmap.cells)
        times = np.full(ground.cells.size, np.inf, dtype=np.float32)
        march(ground, times, ground.flat(source), -1 if until is None else ground.flat(until))
        return ground, times.reshape(ground.cells.shape)
