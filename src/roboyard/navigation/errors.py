"""Why there is no way: one error for each cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roboyard.errors import RoboyardError

if TYPE_CHECKING:
    from roboyard.navigation.planning.explanation import Explanation


class NavigationError(RoboyardError):
    """The robot cannot be brought there; ``cause`` names why in one word, for results and metrics."""

    cause = "failed"


class StartOutsideMap(NavigationError):
    """The robot stands beyond the costmap."""

    cause = "start_outside_map"


class GoalOutsideMap(NavigationError):
    """The goal lies beyond the costmap."""

    cause = "goal_outside_map"


class StartOccupied(NavigationError):
    """The robot stands in an obstacle."""

    cause = "start_occupied"


class GoalOccupied(NavigationError):
    """The goal lies in an obstacle, or so near to one that the robot does not fit."""

    cause = "goal_occupied"


class GoalUnknown(NavigationError):
    """The goal lies where nobody has looked, and unknown space is not to be entered."""

    cause = "goal_unknown"


class NoPath(NavigationError):
    """Start and goal are free, and no way joins them.

    Args:
        what: See ``RoboyardError``.
        where: See there.
        valid: See there.
        explanation: What is in the way, where somebody has looked for it.
    """

    cause = "no_path"

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        valid: str | None = None,
        explanation: Explanation | None = None,
    ) -> None:
        super().__init__(what, location=where, valid=valid)
        self.explanation = explanation


class BudgetSpent(NavigationError):
    """The search looked at as many places as it was allowed to, and had not arrived."""

    cause = "budget_spent"


class NoSafeCommand(NavigationError):
    """Whatever the base could do, it would touch something."""

    cause = "no_safe_command"


class Blocked(NavigationError):
    """Something stands where the robot is to move."""

    cause = "blocked"


class TimeOut(NavigationError):
    """It was not done in the time allowed."""

    cause = "timeout"


class NoProgress(NavigationError):
    """The robot has not come on for too long."""

    cause = "no_progress"


class SensorSilent(NavigationError):
    """Nothing was heard from a sensor for too long."""

    cause = "sensor_silent"


class PoseUnknown(NavigationError):
    """Where the robot is in the map is not known, or not known any more."""

    cause = "pose_unknown"


class GoalInvalid(NavigationError):
    """What was asked for is no pose in the map: not finite, or in a frame that nobody knows."""

    cause = "goal_invalid"


class WaypointMissed(NavigationError):
    """A waypoint could not be reached, and the others were not to be tried after that."""

    cause = "waypoint_missed"
