"""``roboyard action``: goals for nodes of a live run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import JsonOption, RunOption, command_group
from roboyard.cli.source import LiveSource
from roboyard.errors import RunError

if TYPE_CHECKING:
    from roboyard.bus.actions import GoalStatus


app = command_group("Actions: list, info, send_goal.")


@app.command("list")
def list_command(run: RunOption = None, json: JsonOption = False) -> None:
    """All actions with their types."""
    from roboyard.cli.graph import list_actions
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_table

    with open_live_source(run) as source:
        actions = list_actions(source)
    if json:
        print_json({"actions": actions})
    else:
        print_table(("action", "type"), actions.items())


@app.command("info")
def info(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="Its name, with or without the leading slash.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """One action: its type, who serves it and who sends it goals."""
    from roboyard.cli.graph import find_endpoint, list_action_clients, list_actions, list_nodes
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_fields, print_json

    with open_live_source(run) as source:
        name, served = find_endpoint(source, "action", action, list_actions(source))
        servers = [node["name"] for node in list_nodes(source) if name in node["actions"]]
        clients = list_action_clients(source, name)
    if json:
        print_json({"action": name, "type": served, "servers": servers, "clients": clients})
    else:
        ends = [("served by", ", ".join(servers) or "nobody"), ("used by", ", ".join(clients) or "nobody")]
        print_fields([("action", name), ("type", served), *ends])


@app.command("send_goal")
def send_goal_command(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="Its name, with or without the leading slash.")],
    type_and_values: Annotated[
        list[str] | None, typer.Argument(metavar="[TYPE] [GOAL]", help="e.g. '{order: 5}'; the type may be left out.")
    ] = None,
    run: RunOption = None,
    feedback: Annotated[bool, typer.Option("--feedback", "-f", help="Show how it goes.")] = False,
    json: JsonOption = False,
) -> None:
    """Send a goal and wait for its result.

    Ctrl-C cancels it.  Exit code 1 if it does not succeed.
    """
    from roboyard.cli.arguments import parse_type_and_values
    from roboyard.cli.graph import find_endpoint, list_actions
    from roboyard.cli.message_text import to_plain, to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import flush_output, print_json, print_line
    from roboyard.errors import InputError
    from roboyard.messages import action_type
    from roboyard.messages.from_data import message_from_data

    def print_feedback(message: object) -> None:
        print_line(f"feedback:\n{_indent(to_text(message))}")
        flush_output()

    with open_live_source(run) as source:
        name, served = find_endpoint(source, "action", action, list_actions(source))
        kind, data = parse_type_and_values(type_and_values or [])
        if kind is not None and action_type(kind).name != served:
            raise InputError(f"action {name} is a {served}, not a {kind}", location=source.name)
        types = action_type(served)
        outcome = send_goal(
            source, name, types, message_from_data(types.Goal, data), print_feedback if feedback and not json else None
        )
    if json:
        print_json(
            {"action": name, "status": outcome.status, "reason": outcome.reason, "result": to_plain(outcome.result)}
        )
    else:
        print_line(f"result:\n{_indent(to_text(outcome.result))}")
        print_line(f"goal {outcome.status}" + (f": {outcome.reason}" if outcome.reason else ""))
    if outcome.status != "succeeded":
        raise typer.Exit(1)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


_REASON_TIMEOUT = 1.0
"""How long to wait for the reason of a rejection [wall s]."""


@dataclass(frozen=True, slots=True)
class GoalResult:
    """How a goal ended: "succeeded", "aborted" or "canceled", why, and the result message."""

    status: str
    reason: str
    result: Any


def send_goal(
    source: LiveSource, action: str, types: Any, goal: Any, feedback: Callable[[Any], None] | None
) -> GoalResult:
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
    from roboyard.bus.actions import GoalStatus, endpoint
    from roboyard.messages.convert.uuids import uuid_from_msg, uuid_of_text, uuid_to_msg

    connection = source.connection
    topics = {part: endpoint(action, part) for part in ("feedback", "status", "error")}
    for topic in topics.values():
        connection.subscribe(topic)
    # unlike a random number this makes the same recording when the run is repeated with the same clients
    goal_uuid = uuid_of_text(f"{connection.name} {action}")
    goal_id = uuid_to_msg(goal_uuid)
    response = connection.call(
        endpoint(action, "send_goal"), types.SendGoal, types.SendGoal.Request(goal_id=goal_id, goal=goal)
    )
    if not response.accepted:
        raise RunError(
            f"the goal was rejected: {_rejection_reason(source, topics['error'], goal_uuid)}", location=action
        )
    status, reason = GoalStatus.EXECUTING, ""
    try:
        for item in connection.messages():
            message = item.message
            if (
                item.topic == topics["feedback"]
                and uuid_from_msg(message.goal_id) == goal_uuid
                and feedback is not None
            ):
                feedback(message.feedback)
            elif item.topic == topics["error"] and uuid_from_msg(message.goal_id) == goal_uuid:
                reason = message.error_message
            elif item.topic == topics["status"]:
                status = _goal_status(message, goal_uuid, status)
                if status.is_terminal:
                    break
        else:
            raise RunError("the run ended before the goal did", location=action)
    except KeyboardInterrupt:
        _cancel_goal(source, action, goal_id)
        raise
    request = types.GetResult.Request(goal_id=goal_id)
    result = connection.call(endpoint(action, "get_result"), types.GetResult, request)
    return GoalResult(status.name.lower(), reason, result.result)


def _goal_status(message: Any, goal: bytes, previous: GoalStatus) -> GoalStatus:
    from roboyard.bus.actions import GoalStatus
    from roboyard.messages.convert.uuids import uuid_from_msg

    for entry in message.status_list:
        if uuid_from_msg(entry.goal_info.goal_id) == goal:
            return GoalStatus(entry.status)
    return previous


def _rejection_reason(source: LiveSource, topic: str, goal: bytes) -> str:
    from roboyard.messages.convert.uuids import uuid_from_msg

    for item in source.connection.messages(_REASON_TIMEOUT):
        if item.topic == topic and uuid_from_msg(item.message.goal_id) == goal:
            return str(item.message.error_message)
    return "no reason given"


def _cancel_goal(source: LiveSource, action: str, goal_id: Any) -> None:
    """On a connection of its own: the other one may have been interrupted in the middle of a frame."""
    from roboyard.bus.actions import endpoint
    from roboyard.bus.socket import RunConnection
    from roboyard.messages import message_type, service_type

    types = service_type("action_msgs/srv/CancelGoal")
    info = message_type("action_msgs/msg/GoalInfo")(goal_id=goal_id)
    with RunConnection(source.connection.run) as other:
        other.call(endpoint(action, "cancel_goal"), types, types.Request(goal_info=info))
