"""Follows one goal of an action from outside the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roboyard.bus.actions import GoalStatus, endpoint
from roboyard.cli.lookup import LiveSource
from roboyard.errors import RunError
from roboyard.messages.convert.uuids import uuid_from_msg, uuid_of_text, uuid_to_msg

_REASON_TIMEOUT = 1.0
"""How long to wait for the reason of a rejection [wall s]."""


@dataclass(frozen=True, slots=True)
class GoalEnd:
    """How a goal ended: "succeeded", "aborted" or "canceled", why, and the result message."""

    status: str
    reason: str
    result: Any


def pursue(source: LiveSource, action: str, types: Any, goal: Any, feedback: Callable[[Any], None] | None) -> GoalEnd:
    """Send a goal and wait for its end.

    Args:
        source: The run.
        action: Absolute name.
        types: The action's type.
        goal: Goal message.
        feedback: Called with each feedback message.

    Raises:
        RunError: the goal is rejected, or the run ends before it does.
        KeyboardInterrupt: somebody wants no more; the goal is cancelled first.
    """
    connection = source.connection
    topics = {part: endpoint(action, part) for part in ("feedback", "status", "error")}
    for topic in topics.values():
        connection.subscribe(topic)
    # unlike a random number this makes the same recording when the run is repeated with the same clients
    own = uuid_of_text(f"{connection.name} {action}")
    goal_id = uuid_to_msg(own)
    answer = connection.call(
        endpoint(action, "send_goal"), types.SendGoal, types.SendGoal.Request(goal_id=goal_id, goal=goal)
    )
    if not answer.accepted:
        raise RunError(f"the goal was rejected: {_reason(source, topics['error'], own)}", location=action)
    status, reason = GoalStatus.EXECUTING, ""
    try:
        for item in connection.messages():
            message = item.message
            if item.topic == topics["feedback"] and uuid_from_msg(message.goal_id) == own and feedback is not None:
                feedback(message.feedback)
            elif item.topic == topics["error"] and uuid_from_msg(message.goal_id) == own:
                reason = message.error_message
            elif item.topic == topics["status"]:
                status = _status(message, own, status)
                if status.is_terminal:
                    break
        else:
            raise RunError("the run ended before the goal did", location=action)
    except KeyboardInterrupt:
        _cancel(source, action, goal_id)
        raise
    request = types.GetResult.Request(goal_id=goal_id)
    result = connection.call(endpoint(action, "get_result"), types.GetResult, request)
    return GoalEnd(status.name.lower(), reason, result.result)


def _status(message: Any, goal: bytes, before: GoalStatus) -> GoalStatus:
    for entry in message.status_list:
        if uuid_from_msg(entry.goal_info.goal_id) == goal:
            return GoalStatus(entry.status)
    return before


def _reason(source: LiveSource, topic: str, goal: bytes) -> str:
    for item in source.connection.messages(_REASON_TIMEOUT):
        if item.topic == topic and uuid_from_msg(item.message.goal_id) == goal:
            return str(item.message.error_message)
    return "no reason given"


def _cancel(source: LiveSource, action: str, goal_id: Any) -> None:
    """On a connection of its own: the other one may have been interrupted in the middle of a frame."""
    from roboyard.bus.socket import RunConnection
    from roboyard.messages import message_type, service_type

    types = service_type("action_msgs/srv/CancelGoal")
    info = message_type("action_msgs/msg/GoalInfo")(goal_id=goal_id)
    with RunConnection(source.connection.run) as other:
        other.call(endpoint(action, "cancel_goal"), types, types.Request(goal_info=info))
