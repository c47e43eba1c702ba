"""States of a goal and the names of an action's services and topics."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from roboyard.errors import MessageError
from roboyard.messages import ActionType

PREEMPTED = "preempted"
"""Cause of a goal's end when a newer one has taken its place."""


class GoalStatus(IntEnum):
    """The numbers of action_msgs/GoalStatus."""

    UNKNOWN = 0
    ACCEPTED = 1
    EXECUTING = 2
    CANCELING = 3
    SUCCEEDED = 4
    CANCELED = 5
    ABORTED = 6

    @property
    def is_terminal(self) -> bool:
        """Whether the goal has ended."""
        return self >= GoalStatus.SUCCEEDED


def check_action(action_type: Any, node: str) -> None:
    """Refuse what is no type of an action.

    Raises:
        MessageError: it is none.
    """
    if not isinstance(action_type, ActionType):
        raise MessageError(
            f"{getattr(action_type, '__name__', action_type)!r:.80} is no action", location=f"node {node}",
            valid="e.g. ry.action.NavigateToPose",
        )  # fmt: skip


def endpoint(action: str, part: str) -> str:
    """Name of one of an action's services (send_goal, cancel_goal, get_result) or topics (feedback, status, reason)."""
    return f"{action}/_action/{part}"
