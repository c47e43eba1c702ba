"""MoveIt's error codes for our causes."""

from __future__ import annotations

from typing import Any, Final

from roboyard.bus.transforms import TransformError
from roboyard.errors import RoboyardError, UnknownNameError
from roboyard.messages import msg

_CODES: Final = {
    "start_in_collision": "START_STATE_IN_COLLISION",
    "start_outside_limits": "START_STATE_INVALID",
    "goal_in_collision": "GOAL_IN_COLLISION",
    "goal_outside_limits": "GOAL_STATE_INVALID",
    "goal_unreachable": "NO_IK_SOLUTION",
    "constraint_broken": "GOAL_VIOLATES_PATH_CONSTRAINTS",
    "line_blocked": "PLANNING_FAILED",
    "effort_exceeded": "PLANNING_FAILED",
    "too_fast": "PLANNING_FAILED",
    "too_late": "TIMED_OUT",
    "budget_spent": "TIMED_OUT",
    "cancelled": "PREEMPTED",
    "in_the_way": "MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE",
    "not_followed": "CONTROL_FAILED",
    "preempted": "PREEMPTED",
    "unknown_group": "INVALID_GROUP_NAME",
    "bad_goal": "INVALID_GOAL_CONSTRAINTS",
    "bad_state": "INVALID_ROBOT_STATE",
    "bad_plan": "INVALID_MOTION_PLAN",
    "unknown_link": "INVALID_LINK_NAME",
    "unknown_object": "INVALID_OBJECT_NAME",
    "no_transform": "FRAME_TRANSFORM_FAILURE",
    "joints_unknown": "ROBOT_STATE_STALE",
    "scene_unknown": "SENSOR_INFO_STALE",
    "no_controller": "COMMUNICATION_FAILURE",
}


class MoveError(RoboyardError):
    """A motion that is refused or was not done; ``cause`` names why in one word.

    Args:
        what: See ``RoboyardError``.
        cause: One of those that have an error code.
        valid: See there.
    """

    def __init__(self, what: str, cause: str, *, valid: str | None = None) -> None:
        super().__init__(what, valid=valid)
        self.cause = cause


def cause_of(error: RoboyardError) -> str:
    """One word for an error."""
    if isinstance(error, TransformError):
        return "no_transform"
    return str(getattr(error, "cause", "unknown_planner" if isinstance(error, UnknownNameError) else "bad_goal"))


def code_of(error: RoboyardError | None) -> Any:
    """moveit_msgs/MoveItErrorCodes of an error; of none: success."""
    codes = msg.moveit_msgs.MoveItErrorCodes
    if error is None:
        return codes(val=codes.SUCCESS)
    return codes(val=getattr(codes, _CODES.get(cause_of(error), "FAILURE")), message=str(error), source="roboyard")
