"""Frontier exploration as a sequence of decisions: the next viewpoint, the end of the exploration, and the return to
the start.

A `ViewpointSelector` chooses the next viewpoint; the default is `select_viewpoint`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from roboyard.config import Config, parameter
from roboyard.geometry import SE2, wrap_angle
from roboyard.grids import OccupancyGrid
from roboyard.navigation.exploration.frontiers import FrontierConfig, FrontierMap, Viewpoint, find_frontiers

_HEADING_TOLERANCE = math.pi / 4.0


@dataclass(frozen=True, slots=True)
class FailedViewpoint:
    """A viewpoint that could not be reached, or from which the sensors saw nothing new (explore_lite's blacklist).

    Attributes:
        pose: Pose ``T_map_base`` of the viewpoint.
        was_reached: Whether the robot reached it; then viewpoints with other headings at this position still count.
    """

    pose: SE2
    was_reached: bool = False

    def matches(self, viewpoint: Viewpoint, radius: float) -> bool:
        """Return whether a viewpoint is the failed one, within ``radius`` [m]."""
        heading_change = abs(wrap_angle(viewpoint.pose.theta - self.pose.theta))
        return viewpoint.pose.distance(self.pose) < radius and not (
            self.was_reached and heading_change > _HEADING_TOLERANCE
        )


class ViewpointSelectionConfig(Config):
    """Utility of a viewpoint: gain^``gain_exponent`` · exp(-``distance_decay`` · path cost), after
    H. González-Baños and J.-C. Latombe, "Navigation strategies for exploring indoor environments", IJRR 21 (2002)."""

    distance_decay: float = parameter(
        1.0, unit="1/m", low=0.0, high=100.0, doc="Rate at which the utility decreases with the path cost."
    )
    gain_exponent: float = parameter(0.5, low=0.0, high=10.0, doc="Exponent of the gain; 0: only the path cost counts.")
    hysteresis: float = parameter(
        0.5, low=0.0, high=100.0, doc="Relative gain of utility at which another viewpoint replaces the present goal."
    )
    same_place_radius: float = parameter(
        0.6, unit="m", low=0.0, high=100.0, doc="Distance within which two viewpoints are the same place."
    )
    max_attempts: int = parameter(
        3,
        low=1,
        doc="Maximum number of failures at a place; after the first failure it is used only if no other is left.",
    )

    def utility(self, viewpoint: Viewpoint) -> float:
        """Return the utility of a viewpoint."""
        return math.pow(max(viewpoint.gain, 1e-3), self.gain_exponent) * math.exp(
            -self.distance_decay * viewpoint.path_cost
        )


def select_viewpoint(
    viewpoints: Sequence[Viewpoint],
    goal: SE2 | None,
    failures: Sequence[FailedViewpoint],
    config: ViewpointSelectionConfig | None = None,
) -> Viewpoint | None:
    """Return the viewpoint with the highest utility; None if none is left.

    Args:
        viewpoints: Candidates; of equal ones the first is returned.
        goal: Pose ``T_map_base`` of the present goal; None without one.
        failures: Viewpoints that have failed so far.
        config: Parameters of the utility.
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


class ViewpointSelector(Protocol):
    """Function that selects the next viewpoint of an exploration, as `select_viewpoint` does.

    `Explorer` calls it after each new map.  It must be deterministic and must not change its arguments.  Returning None
    ends the exploration.
    """

    def __call__(
        self,
        viewpoints: Sequence[Viewpoint],
        goal: SE2 | None,
        failures: Sequence[FailedViewpoint],
        config: ViewpointSelectionConfig | None = None,
    ) -> Viewpoint | None:
        """Return one of the viewpoints, or None; for the arguments see `select_viewpoint`."""
        ...


class ExplorationPhase(Enum):
    """Phase of an exploration; the values stand in roboyard_msgs/ExplorationStatus."""

    EXPLORING = "explore"
    """The robot drives to viewpoints of frontiers."""
    RETURNING = "return"
    """No frontier is left, and the robot drives back to the start."""
    COMPLETED = "done"
    FAILED = "failed"
    """The robot could not return to the start."""


@dataclass(frozen=True, slots=True)
class ExplorationProgress:
    """Progress of an exploration.

    Attributes:
        phase: Present phase.
        known_area: Area of the known free space [m²].
        n_frontiers: Number of frontiers left.
        n_goals: Number of goals so far.
        n_failures: Number of goals that were not reached, or at which the sensors saw nothing new.
    """

    phase: ExplorationPhase
    known_area: float
    n_frontiers: int
    n_goals: int
    n_failures: int


class Explorer:
    """Decides where the robot drives.  Its user calls ``update`` with each new map, and ``report_arrival`` or
    ``report_failure`` at the end of each drive.

    Args:
        start: Pose ``T_map_base`` to return to at the end; None: the robot stays where the exploration ends.
        frontier_config: Parameters of the search for frontiers.
        selection_config: Parameters of the selection of viewpoints.
        max_goals: Maximum number of goals.
        selector: Function that selects the next viewpoint.

    Attributes:
        phase: Present phase.
        goal: Present goal ``T_map_base``; None without one.
        last_frontiers: Frontiers of the last map.
        n_goals: Number of goals so far.
        failures: Viewpoints that have failed.
    """

    def __init__(
        self,
        start: SE2 | None,
        frontier_config: FrontierConfig | None = None,
        selection_config: ViewpointSelectionConfig | None = None,
        *,
        max_goals: int = 1000,
        selector: ViewpointSelector = select_viewpoint,
    ) -> None:
        self.start = start
        self.phase = ExplorationPhase.EXPLORING
        self.goal: SE2 | None = None
        self.last_frontiers: FrontierMap | None = None
        self.n_goals = 0
        self.failures: list[FailedViewpoint] = []
        self.frontier_config = frontier_config or FrontierConfig()
        self._selection_config = selection_config or ViewpointSelectionConfig()
        self._max_goals, self._selector = max_goals, selector
        self._arrival_pose: SE2 | None = None  # pose of the last arrival, until the next map
        self._n_failed_returns = 0

    @property
    def is_finished(self) -> bool:
        """Whether the exploration has ended."""
        return self.phase in (ExplorationPhase.COMPLETED, ExplorationPhase.FAILED)

    @property
    def progress(self) -> ExplorationProgress:
        """Progress so far."""
        frontier_map = self.last_frontiers
        count, known_area = (0, 0.0) if frontier_map is None else (len(frontier_map.cells), frontier_map.known_area)
        return ExplorationProgress(self.phase, known_area, count, self.n_goals, len(self.failures))

    def update(self, grid: OccupancyGrid, pose: SE2) -> SE2 | None:
        """Return the goal ``T_map_base`` for a new map; None at the end of the exploration.

        Args:
            grid: Map that was made after the last arrival of the robot.
            pose: Present pose ``T_map_base``.
        """
        return (
            self.set_frontiers(find_frontiers(grid, pose, self.frontier_config))
            if self.phase is ExplorationPhase.EXPLORING
            else self.goal
        )

    def set_frontiers(self, frontier_map: FrontierMap) -> SE2 | None:
        """Select the next goal from frontiers that the caller has found."""
        if self.phase is not ExplorationPhase.EXPLORING:
            return self.goal
        self.last_frontiers = frontier_map
        if self._arrival_pose is not None:
            visited_viewpoint, self._arrival_pose = FailedViewpoint(self._arrival_pose, was_reached=True), None
            if any(
                visited_viewpoint.matches(viewpoint, self._selection_config.same_place_radius)
                for viewpoint in frontier_map.viewpoints
            ):
                self.failures.append(visited_viewpoint)  # the frontier is still there: this viewpoint shows nothing new
        viewpoint = self._selector(frontier_map.viewpoints, self.goal, self.failures, self._selection_config)
        if viewpoint is None or self.n_goals >= self._max_goals:
            self._start_return()
        elif self.goal is None or viewpoint.pose.distance(self.goal) >= self._selection_config.same_place_radius:
            self.goal = viewpoint.pose
            self.n_goals += 1
        return self.goal

    def report_arrival(self) -> None:
        """Process the arrival of the robot at the goal."""
        if self.phase is ExplorationPhase.EXPLORING:
            self._arrival_pose, self.goal = self.goal, None
        elif self.phase is ExplorationPhase.RETURNING:
            self.phase, self.goal = ExplorationPhase.COMPLETED, None

    def report_failure(self) -> None:
        """Process the failure of the drive to the goal."""
        if self.goal is None:
            return
        if self.phase is ExplorationPhase.EXPLORING:
            self.failures.append(FailedViewpoint(self.goal))
            self.goal = None
        elif self.phase is ExplorationPhase.RETURNING:
            self._n_failed_returns += 1
            if self._n_failed_returns >= self._selection_config.max_attempts:
                self.phase, self.goal = ExplorationPhase.FAILED, None

    def stop(self) -> None:
        """End the exploration early; the robot returns to the start."""
        if self.phase is ExplorationPhase.EXPLORING:
            self._start_return()

    def _start_return(self) -> None:
        if self.start is not None:
            self.phase, self.goal = ExplorationPhase.RETURNING, self.start
        else:
            self.phase, self.goal = ExplorationPhase.COMPLETED, None

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, without the frontiers, which the next map gives again."""
        poses = (self.start, self.goal, self._arrival_pose)
        return {
            "poses": [None if pose is None else pose.to_tuple() for pose in poses],
            "failures": [(failure.pose.to_tuple(), failure.was_reached) for failure in self.failures],
            "counts": (self.phase.value, self.n_goals, self._n_failed_returns),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        self.start, self.goal, self._arrival_pose = (SE2.from_tuple(pose) if pose else None for pose in saved["poses"])
        self.failures = [FailedViewpoint(SE2.from_tuple(pose), reached) for pose, reached in saved["failures"]]
        phase, self.n_goals, self._n_failed_returns = saved["counts"]
        self.phase = ExplorationPhase(phase)
