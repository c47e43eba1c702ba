"""Errors of navigation: one class for each cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roboyard.errors import RoboyardError

if TYPE_CHECKING:
    from roboyard.navigation.path import PathFailure


class NavigationError(RoboyardError):
    """The robot cannot be brought there; ``cause`` names why in one word, for results and metrics."""

    cause = "failed"


class StartOutsideMapError(NavigationError):
    """The robot stands beyond the costmap."""

    cause = "start_outside_map"


class GoalOutsideMapError(NavigationError):
    """The goal lies beyond the costmap."""

    cause = "goal_outside_map"


class StartOccupiedError(NavigationError):
    """The robot stands in an obstacle."""

    cause = "start_occupied"


class GoalOccupiedError(NavigationError):
    """The goal lies in an obstacle, or so near to one that the robot does not fit."""

    cause = "goal_occupied"


class GoalUnknownError(NavigationError):
    """The goal lies in unknown space, which the planner must not enter."""

    cause = "goal_unknown"


class NoPathError(NavigationError):
    """Start and goal are free, but no path connects them.

    Args:
        message: See ``RoboyardError``.
        location: See there.
        valid: See there.
        explanation: Position, width and sources of the barrier, if it was computed.
    """

    cause = "no_path"

    def __init__(
        self,
        message: str,
        *,
        location: str | None = None,
        valid: str | None = None,
        explanation: PathFailure | None = None,
    ) -> None:
        super().__init__(message, location=location, valid=valid)
        self.explanation = explanation


class SearchBudgetExceededError(NavigationError):
    """The search used its budget of expansions without reaching the goal."""

    cause = "budget_spent"


class NoSafeCommandError(NavigationError):
    """Every command that the base can execute leads to a collision."""

    cause = "no_safe_command"


class MotionBlockedError(NavigationError):
    """An obstacle blocks a motion."""

    cause = "blocked"


class TimeAllowanceExceededError(NavigationError):
    """A task exceeded its time allowance."""

    cause = "timeout"


class NoProgressError(NavigationError):
    """The robot has made no progress for too long."""

    cause = "no_progress"


class SensorTimeoutError(NavigationError):
    """A sensor has sent no data for longer than its timeout."""

    cause = "sensor_silent"


class PoseUnknownError(NavigationError):
    """The robot's pose in the map is unknown or outdated."""

    cause = "pose_unknown"


class InvalidGoalError(NavigationError):
    """The goal is not a pose in the map: not finite, or in an unknown frame."""

    cause = "goal_invalid"


class WaypointFailedError(NavigationError):
    """A waypoint could not be reached, and the others were not to be tried after that."""

    cause = "waypoint_missed"
