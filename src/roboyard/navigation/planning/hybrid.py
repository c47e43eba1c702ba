"""Planners for bases that cannot go just anywhere: cars, and long robots that turn on the spot."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, polygons
from roboyard.grids import distance_transform
from roboyard.navigation.costmap import LETHAL, Costmap
from roboyard.navigation.errors import BudgetSpent, GoalOccupied, NoPath, StartOccupied
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path
from roboyard.navigation.planning.base import Traversal, start_and_goal
from roboyard.navigation.planning.grid_ways import outline_clearance
from roboyard.navigation.planning.hybrid_search import FOUND, SPENT, search
from roboyard.navigation.planning.marching import march
from roboyard.navigation.planning.motions import BOTH_WAYS, FORWARDS, ON_THE_SPOT, moved
from roboyard.navigation.planning.path_cost import cost_along

_MARGIN = 0.3
"""The outline is looked at that much wider, at points half a cell apart: no corner of an obstacle's cell gets between
two of them unseen [cells]."""


class Prices(Config):
    """What makes one way better than another of the same length."""

    reverse: float = parameter(
        2.0, low=1.0, high=100.0, doc="Cost of a distance backward per cost of the same distance forward."
    )
    turning: float = parameter(
        1.05, low=1.0, high=100.0, doc="Cost of a distance in a turn per cost of the same distance straight."
    )
    change: float = parameter(
        0.5, unit="m", low=0.0, high=100.0, doc="Cost of a change between forward and backward, as a distance."
    )
    steering: float = parameter(
        0.05, unit="m", low=0.0, high=100.0, doc="Cost of a change of the steering angle, as a distance."
    )


@dataclass(frozen=True, slots=True)
class HybridAStar:
    """Ways that a base drives without leaving them, its whole outline free all along.

    With a turning radius it is a car (Hybrid-A*), which reverses unless told not to; its ways bend no tighter.  Without
    one it turns on the spot (a state lattice).

    Attributes:
        footprint: Outline of the robot.
        turning_radius: Of the tightest circle its base's origin can drive [m]; 0: it turns on the spot.
        reverse: Whether a car may drive backwards.
        traversal: What a metre costs.
        prices: What else does.
        heading_tolerance: How far off the goal's heading the robot may end [rad]; π and more: it may look anywhere.
        headings: Into so many directions the circle is parted.
        budget: Poses at most to look on from.

    Raises:
        ConfigError: a number out of range.
    """

    footprint: Footprint
    turning_radius: float = 0.5
    reverse: bool = True
    traversal: Traversal = field(default_factory=Traversal)
    prices: Prices = field(default_factory=Prices)
    heading_tolerance: float = 0.0
    headings: int = 72
    budget: int = 200_000

    def __post_init__(self) -> None:
        for name, low, high in (
            ("turning_radius", 0.0, 1000.0), ("heading_tolerance", 0.0, math.inf), ("headings", 8, 720),
            ("budget", 1, 10_000_000),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} = {value}", location="HybridAStar", valid=f"{low:g} to {high:g}")

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """See ``GlobalPlanner``.

        Raises:
            BudgetSpent: it looked on from as many poses as it was allowed to.
        """
        first, last = start_and_goal(costmap, self.traversal, start, goal)
        self._check_outline(costmap, start, goal)
        resolution = costmap.frame.resolution
        ground = self.traversal.ground(costmap.cells)
        times = np.full(ground.cells.shape, np.inf, dtype=np.float32)
        march(ground, times.ravel(), ground.flat(last), -1)
        if not np.isfinite(times[first[0] + 1, first[1] + 1]):
            raise NoPath("no way leads from the start to the goal", valid="a goal on the robot's side of the obstacles")
        radius = (self.turning_radius or max(self.footprint.inscribed_radius, resolution)) / resolution
        base = ON_THE_SPOT if not self.turning_radius else BOTH_WAYS if self.reverse else FORWARDS
        prices = self.prices
        outcome, motions, _ = search(
            costmap.cells, ground, times, self._border(resolution), self._possible(costmap), _inside(costmap, start),
            self._goals(_inside(costmap, goal)), base, radius, self._stride(radius), self.headings,
            np.array([prices.reverse, prices.turning, prices.change / resolution, prices.steering / resolution]),
            self.budget,
        )  # fmt: skip
        if outcome == SPENT:
            raise BudgetSpent(f"no way was found from {self.budget} poses", valid="a larger budget, or a nearer goal")
        if outcome != FOUND:
            raise NoPath(
                "a way leads from the start to the goal, but none that this robot could drive",
                valid="a goal with more room about it, or another heading",
            )
        return self._path(costmap, motions, start, goal)

    def _goals(self, goal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Poses (n, 3) to end at, that of the goal first."""
        if not self.heading_tolerance:
            return goal[None]
        count = min(math.ceil(self.heading_tolerance / math.radians(15.0)), 12)
        aside = np.arange(1, count + 1) / count * min(self.heading_tolerance, math.pi)
        turned = np.concatenate([[0.0], aside, -aside])
        return np.column_stack([np.repeat(goal[None, :2], len(turned), axis=0), goal[2] + turned])

    def _stride(self, radius: float) -> int:
        """Directions that a motion turns by: so many that it leaves its cell."""
        if not self.turning_radius:
            return max(self.headings // 24, 1)
        return max(math.ceil(math.sqrt(2.0) / (radius * 2.0 * math.pi / self.headings)), 1)

    def _border(self, resolution: float) -> NDArray[np.float64]:
        """Points (n, 2) of the outline, a little wider [cells]."""
        corners = polygons.make_counter_clockwise(self.footprint.corners / resolution)
        edges = np.roll(corners, -1, axis=0) - corners
        normals = np.column_stack([edges[:, 1], -edges[:, 0]]) / np.linalg.norm(edges, axis=1)[:, None]
        before = np.roll(normals, 1, axis=0)
        share = np.maximum(1.0 + (before * normals).sum(axis=1), 0.3)[:, None]
        return Footprint(corners + _MARGIN * (before + normals) / share).border(0.5)

    def _possible(self, costmap: Costmap) -> int:
        """The least cost of a cell from which the outline may reach an obstacle."""
        reach = self.footprint.circumscribed_radius / costmap.frame.resolution + 2.0
        near = distance_transform(costmap.cells == LETHAL) <= reach
        rim = math.ceil(reach)
        near[:rim] = near[-rim:] = True
        near[:, :rim] = near[:, -rim:] = True
        return int(costmap.cells[near].min(initial=LETHAL))

    def _check_outline(self, costmap: Costmap, start: SE2, goal: SE2) -> None:
        """Raises where the robot stands or shall stand in something."""
        for pose, kind, name in ((start, StartOccupied, "start"), (goal, GoalOccupied, "goal")):
            if kind is GoalOccupied and self.heading_tolerance:
                continue
            outline = np.array([pose @ corner for corner in self.footprint.corners])
            if outline_clearance(costmap, outline) <= 0.0:
                where = f"({pose.x:.2f}, {pose.y:.2f}, {pose.theta:.2f})"
                raise kind(
                    f"at the {name} {where} the robot's outline touches an obstacle or the map's edge",
                    valid="a free place",
                )

    def _path(self, costmap: Costmap, motions: NDArray[np.float64], start: SE2, goal: SE2) -> Path:
        poses = [_inside(costmap, start)]
        for length, turn in motions:
            count = max(math.ceil(max(abs(length), abs(turn) / 0.1)), 1)
            pieces = np.empty((count, 3))
            for k in range(count):
                moved(poses[-1], length, turn, (k + 1) / count, pieces[k])
            poses.extend(pieces)
        found = np.array(poses)
        T_map_grid, resolution = costmap.frame.T_map_grid, costmap.frame.resolution
        xy = T_map_grid @ (found[:, :2] * resolution)
        theta = np.arctan2(np.sin(found[:, 2] + T_map_grid.theta), np.cos(found[:, 2] + T_map_grid.theta))
        placed = np.column_stack([xy, theta])
        # what was computed forth and back is the start and the goal but for rounding
        placed[0] = start.x, start.y, start.theta
        placed[-1, :2] = goal.x, goal.y
        if not self.heading_tolerance:
            placed[-1, 2] = goal.theta
        return cost_along(costmap, placed, self.traversal)


def _inside(costmap: Costmap, pose: SE2) -> NDArray[np.float64]:
    """The pose in cells from the grid's corner (3,)."""
    T_grid_base = costmap.frame.T_map_grid.inverse() @ pose
    resolution = costmap.frame.resolution
    return np.array([T_grid_base.x / resolution, T_grid_base.y / resolution, T_grid_base.theta])
