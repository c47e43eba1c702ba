"""Exploration as a sequence of decisions: selection of the next viewpoint, end of the exploration, and return to the
start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from roboyard.config import Config, parameter
from roboyard.geometry import SE2, wrap_angle
from roboyard.grids import OccupancyGrid
from roboyard.navigation.exploration.frontiers import FrontierConfig, FrontierMap, Viewpoint, find_frontiers

_HEADING_TOLERANCE = math.pi / 4.0


@dataclass(frozen=True, slots=True)
class FailedViewpoint:
    """A viewpoint that could not be reached, or showed nothing new.

    Attributes:
        pose: ``T_map_base`` there.
        was_reached: Whether the robot got there; then other headings are still worth a look.
    """

    pose: SE2
    was_reached: bool = False

    def matches(self, viewpoint: Viewpoint, radius: float) -> bool:
        """Whether the view is of that place."""
        heading_change = abs(wrap_angle(viewpoint.pose.theta - self.pose.theta))
        return viewpoint.pose.distance(self.pose) < radius and not (
            self.was_reached and heading_change > _HEADING_TOLERANCE
        )


class ViewpointSelectionConfig(Config):
    """Utility of a viewpoint: gain^``gain_power`` · exp(-``way_decay`` · way), after González-Baños and Latombe
    2002."""

    distance_decay: float = parameter(
        1.0, unit="1/m", low=0.0, high=100.0, doc="Rate at which the worth falls with the cost of the path."
    )
    gain_exponent: float = parameter(0.5, low=0.0, high=10.0, doc="Exponent of the gain; 0: only the path counts.")
    hysteresis: float = parameter(
        0.5, low=0.0, high=100.0, doc="Share by which another view must be worth more than the present goal."
    )
    same_place_radius: float = parameter(
        0.6, unit="m", low=0.0, high=100.0, doc="Distance within which views are the same place."
    )
    max_attempts: int = parameter(
        3, low=1, doc="Largest number of failures at a place; after the first one it is a last resort."
    )

    def utility(self, viewpoint: Viewpoint) -> float:
        """Of a view."""
        return math.pow(max(viewpoint.gain, 1e-3), self.gain_exponent) * math.exp(
            -self.distance_decay * viewpoint.path_cost
        )


def select_viewpoint(
    viewpoints: Sequence[Viewpoint],
    goal: SE2 | None,
    failures: Sequence[FailedViewpoint],
    config: ViewpointSelectionConfig | None = None,
) -> Viewpoint | None:
    """The view worth most; None when none is left.

    Args:
        viewpoints: To choose from; of equal ones the first is taken.
        goal: Where the robot is going now, if anywhere.
        failures: So far.
        config: What counts.
    """
    config = config or ViewpointSelectionConfig()
    failure_counts = [
        sum(failure.matches(viewpoint, config.same_place_radius) for failure in failures) for viewpoint in viewpoints
    ]
    remaining_viewpoints = [
        viewpoint for viewpoint, count in zip(viewpoints, failure_counts, strict=True) if count < config.max_attempts
    ]
    untried_viewpoints = [viewpoint for viewpoint, count in zip(viewpoints, failure_counts, strict=True) if count == 0]

    def utility(viewpoint: Viewpoint) -> float:
        factor = (
            1.0 + config.hysteresis
            if goal is not None and viewpoint.pose.distance(goal) < config.same_place_radius
            else 1.0
        )
        return factor * config.utility(viewpoint)

    return max(untried_viewpoints or remaining_viewpoints, key=utility, default=None)


ExplorationPhase = Literal["explore", "return", "done", "failed"]


@dataclass(frozen=True, slots=True)
class ExplorationProgress:
    """How far it has come.

    Attributes:
        phase: "explore", "return"; at the end "done", or "failed" if it did not get back.
        known_area: Free ground that is known [m²].
        n_frontiers: How many are left.
        n_goals: How many places it set out for.
        n_failures: How often it did not get there, or saw nothing new there.
    """

    phase: ExplorationPhase
    known_area: float
    n_frontiers: int
    n_goals: int
    n_failures: int


class Explorer:
    """Decides where to drive; whoever drives says ``report_arrival`` or ``report_failure``, and ``update`` with each
    new map.

    Args:
        start: Where to return to, ``T_map_base``; None: not to return.
        frontier_config: What counts as a frontier.
        selection_config: What counts in choosing one.
        max_goals: Places to set out for, at most.
    """

    def __init__(
        self,
        start: SE2 | None,
        frontier_config: FrontierConfig | None = None,
        selection_config: ViewpointSelectionConfig | None = None,
        *,
        max_goals: int = 1000,
    ) -> None:
        self.start = start
        self.phase: ExplorationPhase = "explore"
        self.goal: SE2 | None = None
        self.last_frontiers: FrontierMap | None = None
        self.n_goals = 0
        self.failures: list[FailedViewpoint] = []
        self.frontier_config = frontier_config or FrontierConfig()
        self._selection_config = selection_config or ViewpointSelectionConfig()
        self._max_goals = max_goals
        self._arrival_pose: SE2 | None = None  # where it arrived and has not had a map since
        self._n_failed_returns = 0

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.phase in ("done", "failed")

    @property
    def progress(self) -> ExplorationProgress:
        """How far it has come."""
        frontier_map = self.last_frontiers
        count, known_area = (0, 0.0) if frontier_map is None else (len(frontier_map.cells), frontier_map.known_area)
        return ExplorationProgress(self.phase, known_area, count, self.n_goals, len(self.failures))

    def update(self, grid: OccupancyGrid, pose: SE2) -> SE2 | None:
        """Where to drive with what is known now; None when it is over.

        Args:
            grid: The map, made after the robot last arrived somewhere.
            pose: ``T_map_base`` now.
        """
        return (
            self.set_frontiers(find_frontiers(grid, pose, self.frontier_config))
            if self.phase == "explore"
            else self.goal
        )

    def set_frontiers(self, frontier_map: FrontierMap) -> SE2 | None:
        """Select the next goal from frontiers that the caller has found."""
        if self.phase != "explore":
            return self.goal
        self.last_frontiers = frontier_map
        if self._arrival_pose is not None:
            visited_viewpoint, self._arrival_pose = FailedViewpoint(self._arrival_pose, was_reached=True), None
            if any(
                visited_viewpoint.matches(viewpoint, self._selection_config.same_place_radius)
                for viewpoint in frontier_map.viewpoints
            ):
                self.failures.append(visited_viewpoint)  # what is still a frontier there shows nothing from there
        viewpoint = select_viewpoint(frontier_map.viewpoints, self.goal, self.failures, self._selection_config)
        if viewpoint is None or self.n_goals >= self._max_goals:
            self._start_return()
        elif self.goal is None or viewpoint.pose.distance(self.goal) >= self._selection_config.same_place_radius:
            self.goal = viewpoint.pose
            self.n_goals += 1
        return self.goal

    def report_arrival(self) -> None:
        """The robot is at the goal."""
        if self.phase == "explore":
            self._arrival_pose, self.goal = self.goal, None
        elif self.phase == "return":
            self.phase, self.goal = "done", None

    def report_failure(self) -> None:
        """The robot cannot get to the goal."""
        if self.goal is None:
            return
        if self.phase == "explore":
            self.failures.append(FailedViewpoint(self.goal))
            self.goal = None
        elif self.phase == "return":
            self._n_failed_returns += 1
            if self._n_failed_returns >= self._selection_config.max_attempts:
                self.phase, self.goal = "failed", None

    def stop(self) -> None:
        """Explore no further, but return."""
        if self.phase == "explore":
            self._start_return()

    def _start_return(self) -> None:
        self.phase, self.goal = ("return", self.start) if self.start is not None else ("done", None)

    def save_state(self) -> dict[str, Any]:
        """State as plain data; frontiers are looked for anew."""

        def pose_to_tuple(pose: SE2 | None) -> tuple[float, float, float] | None:
            return None if pose is None else (pose.x, pose.y, pose.theta)

        return {
            "poses": [pose_to_tuple(pose) for pose in (self.start, self.goal, self._arrival_pose)],
            "failures": [(pose_to_tuple(failure.pose), failure.was_reached) for failure in self.failures],
            "counts": (self.phase, self.n_goals, self._n_failed_returns),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of ``save``."""
        self.start, self.goal, self._arrival_pose = (SE2(*pose) if pose else None for pose in saved["poses"])
        self.failures = [FailedViewpoint(SE2(*pose), was_reached) for pose, was_reached in saved["failures"]]
        self.phase, self.n_goals, self._n_failed_returns = saved["counts"]
