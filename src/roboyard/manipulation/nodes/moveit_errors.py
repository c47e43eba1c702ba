"""Errors of arm motions, and the codes of moveit_msgs/MoveItErrorCodes for their causes.

The causes of `PlanningError` and of `ArmMotionError` stand in one table; `error_code_table` lists them for the manual.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from roboyard.bus.transforms import TransformError
from roboyard.errors import InputError, RoboyardError, UnknownNameError
from roboyard.messages import msg

ERROR_CODE_NAMES: Final[Mapping[str, str]] = {
    "failed": "PLANNING_FAILED",
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
    "unknown_planner": "FAILURE",
}
"""Name of MoveIt's error code for each cause."""
_MEANINGS: Final[Mapping[str, str]] = {
    "failed": "The planner failed for another reason.",
    "start_in_collision": "The start state touches something, and no free state is near it.",
    "start_outside_limits": "A joint of the start state is outside its limits.",
    "goal_in_collision": "All joint positions that reach the goal touch something; the message names the pair.",
    "goal_outside_limits": "The goal requires a joint outside its limits.",
    "goal_unreachable": "No joint positions reach the goal; the message says how near the nearest ones come.",
    "constraint_broken": "Start or goal violates the path constraint.",
    "line_blocked": "The tool cannot follow its straight path to the end; the message states the fraction.",
    "effort_exceeded": "A joint cannot hold or move its load.",
    "too_fast": "A joint cannot follow the timed poses.",
    "too_late": "The start time of the timed poses was over when they were planned.",
    "budget_spent": "The planner sampled as many states as it may, and found no path.",
    "cancelled": "The client cancelled the goal, or the controller's stop service stopped the arm.",
    "in_the_way": "An obstacle blocks the motion, and no further plan was permitted or found.",
    "not_followed": "The controller aborted the trajectory; the message states its reason.",
    "preempted": "A newer goal replaced the goal.",
    "unknown_group": "The planning group is not that of the node.",
    "bad_goal": "The goal, the request or the scene message is invalid or not supported.",
    "bad_state": "The start state is invalid or not supported.",
    "bad_plan": "The trajectory is invalid, or starts elsewhere.",
    "unknown_link": "A link or a tool is unknown.",
    "unknown_object": "An object is unknown.",
    "no_transform": "A transform is unknown.",
    "joints_unknown": "The joints are not measured, or were measured too long ago.",
    "scene_unknown": "No octomap arrived for too long.",
    "no_controller": "No action server follows trajectories.",
    "unknown_planner": "The planner_id is unknown.",
}


class ArmMotionError(RoboyardError):
    """A motion was rejected or failed; ``cause`` names the reason in one word.

    Args:
        message: What is wrong.
        cause: One of ``ERROR_CODE_NAMES``.
        valid: What would be right.

    Raises:
        InputError: There is no such cause.
    """

    def __init__(self, message: str, cause: str, *, valid: str | None = None) -> None:
        if cause not in ERROR_CODE_NAMES:
            raise InputError(f"no cause {cause!r} of an arm motion's error", valid=", ".join(ERROR_CODE_NAMES))
        super().__init__(message, valid=valid)
        self.cause = cause


def error_cause(error: RoboyardError) -> str:
    """Return the cause of an error in one word, a key of ``ERROR_CODE_NAMES``."""
    if isinstance(error, TransformError):
        return "no_transform"
    cause = str(getattr(error, "cause", "unknown_planner" if isinstance(error, UnknownNameError) else "bad_goal"))
    return cause if cause in ERROR_CODE_NAMES else "failed"  # of a planner that somebody else wrote


def moveit_error_code(error: RoboyardError | None) -> Any:
    """Return the moveit_msgs/MoveItErrorCodes of an error; of None: success."""
    error_codes = msg.moveit_msgs.MoveItErrorCodes
    if error is None:
        return error_codes(val=error_codes.SUCCESS)
    return error_codes(
        val=getattr(error_codes, ERROR_CODE_NAMES[error_cause(error)]), message=str(error), source="roboyard"
    )


def error_code_table() -> list[tuple[str, ...]]:
    """Return the rows of a table of all causes: cause, MoveIt's error code, meaning."""
    rows = [(f"`{cause}`", name, _MEANINGS[cause]) for cause, name in ERROR_CODE_NAMES.items()]
    return [("cause", "MoveItErrorCodes", "meaning"), *rows]
