"""States of a goal and the names of an action's services and topics."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """The numbers of action_msgs/GoalStatus."""

    UNKNOWN = 0
    ACCEPTED = 1
    EXECUTING = 2
    CANCELING = 3
    SUCCEEDED = 4
    CANCELED = 5
    ABORTED = 6

    @property
    def final(self) -> bool:
        """Whether the goal has ended."""
        return self >= Status.SUCCEEDED


def endpoint(action: str, part: str) -> str:
    """Name of one of an action's services (send_goal, cancel_goal, get_result) or topics (feedback, status, reason)."""
    return f"{action}/_action/{part}"
