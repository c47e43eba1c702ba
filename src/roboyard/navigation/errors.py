"""Errors of navigation: one class for each cause, with the error codes of Nav2's actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from roboyard.errors import RoboyardError

if TYPE_CHECKING:
    from roboyard.navigation.path import PathFailure


class NavigationError(RoboyardError):
    """The robot cannot reach its goal.

    Attributes:
        cause: Short name of the reason, for results and metrics.
        compute_path_code: ``error_code`` of nav2_msgs/ComputePathToPose for this reason.
        follow_path_code: ``error_code`` of nav2_msgs/FollowPath for this reason.
    """

    cause: ClassVar[str] = "failed"
    compute_path_code: ClassVar[int] = 200
    follow_path_code: ClassVar[int] = 100


class StartOutsideMapError(NavigationError):
    """The robot is outside of the costmap."""

    cause = "start_outside_map"
    compute_path_code = 203


class GoalOutsideMapError(NavigationError):
    """The goal lies outside of the costmap."""

    cause = "goal_outside_map"
    compute_path_code = 204


class StartOccupiedError(NavigationError):
    """The robot collides at its pose, or is in unknown space that the planner must not enter."""

    cause = "start_occupied"
    compute_path_code = 205


class GoalOccupiedError(NavigationError):
    """The goal lies in an obstacle, or so near to one that the robot does not fit."""

    cause = "goal_occupied"
    compute_path_code = 206


class GoalUnknownError(NavigationError):
    """The goal lies in unknown space, which the planner must not enter."""

    cause = "goal_unknown"
    compute_path_code = 206


class NoPathError(NavigationError):
    """Start and goal are free, but no path connects them.

    Args:
        message: What is wrong.
        location: What it is wrong with.
        valid: What would be right.
        explanation: Position, width and sources of the barrier, if it was computed.
    """

    cause = "no_path"
    compute_path_code = 208

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
    compute_path_code = 207


class NoSafeCommandError(NavigationError):
    """Every command that the base can execute leads to a collision."""

    cause = "no_safe_command"
    follow_path_code = 106


class MotionBlockedError(NavigationError):
    """An obstacle blocks a motion."""

    cause = "blocked"


class TimeAllowanceExceededError(NavigationError):
    """A task exceeded its time allowance."""

    cause = "timeout"


class NoProgressError(NavigationError):
    """The robot has made no progress for too long."""

    cause = "no_progress"
    follow_path_code = 105


class SensorTimeoutError(NavigationError):
    """A sensor has sent no data for longer than its timeout."""

    cause = "sensor_silent"
    follow_path_code = 104


class PoseUnknownError(NavigationError):
    """The robot's pose in the map is unknown or outdated."""

    cause = "pose_unknown"
    compute_path_code = 202
    follow_path_code = 102


class InvalidGoalError(NavigationError):
    """The goal is not a pose in the map: not finite, or in an unknown frame."""

    cause = "goal_invalid"


class WaypointFailedError(NavigationError):
    """A waypoint could not be reached, and the others were not to be tried after that."""

    cause = "waypoint_missed"
