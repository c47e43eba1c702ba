"""Errors of arm motions and MoveIt's error codes for their causes."""

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


class ArmMotionError(RoboyardError):
    """A motion was rejected or failed; ``cause`` names the reason in one word.

    Args:
        message: See ``RoboyardError``.
        cause: One of those that have an error code.
        valid: See there.
    """

    def __init__(self, message: str, cause: str, *, valid: str | None = None) -> None:
        super().__init__(message, valid=valid)
        self.cause = cause


def error_cause(error: RoboyardError) -> str:
    """Return the cause of an error in one word."""
    if isinstance(error, TransformError):
        return "no_transform"
    return str(getattr(error, "cause", "unknown_planner" if isinstance(error, UnknownNameError) else "bad_goal"))


def moveit_error_code(error: RoboyardError | None) -> Any:
    """Return the moveit_msgs/MoveItErrorCodes of an error; of None: success."""
    error_codes = msg.moveit_msgs.MoveItErrorCodes
    if error is None:
        return error_codes(val=error_codes.SUCCESS)
    return error_codes(
        val=getattr(error_codes, _CODES.get(error_cause(error), "FAILURE")), message=str(error), source="roboyard"
    )
