"""``roboyard action``: actions of the nodes of a live run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.options import JsonOption, RunOption
from roboyard.errors import RunError

if TYPE_CHECKING:
    from roboyard.cli.source import LiveSource
    from roboyard.messages.convert.action_goals import GoalStatus


app = command_group("Actions: list, info, send_goal.")

ActionArgument = Annotated[str, typer.Argument(metavar="ACTION", help="Action; the leading slash may be left out.")]
_REASON_TIMEOUT = 1.0
"""Maximum wait for the reason of a rejection [wall s]."""


@app.command("list")
def list_command(run: RunOption = None, json: JsonOption = False) -> None:
    """List all actions with their types."""
    from roboyard.cli.graph import list_actions
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_result, print_table

    with open_live_source(run) as source:
        actions = list_actions(source)
    print_result({"actions": actions}, json, lambda found: print_table(("action", "type"), found["actions"].items()))


@app.command("info")
def info(action: ActionArgument, run: RunOption = None, json: JsonOption = False) -> None:
    """Show the type, the servers and the clients of an action."""
    from roboyard.cli.graph import find_endpoint, list_action_clients, list_actions, list_nodes
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_fields, print_result

    with open_live_source(run) as source:
        name, type_name = find_endpoint(source, "action", action, list_actions(source))
        servers = [node["name"] for node in list_nodes(source) if name in node["actions"]]
        clients = list_action_clients(source, name)
    result = {"action": name, "type": type_name, "servers": servers, "clients": clients}
    fields = [
        ("action", name),
        ("type", type_name),
        ("servers", ", ".join(servers) or "none"),
        ("clients", ", ".join(clients) or "none"),
    ]
    print_result(result, json, lambda _: print_fields(fields))


@app.command("send_goal")
def send_goal_command(
    action: ActionArgument,
    type_and_values: Annotated[
        list[str] | None, typer.Argument(metavar="[TYPE] [GOAL]", help="e.g. '{order: 5}'; the type may be left out.")
    ] = None,
    run: RunOption = None,
    feedback: Annotated[bool, typer.Option("--feedback", "-f", help="Print each feedback message.")] = False,
    json: JsonOption = False,
) -> None:
    """Send a goal and wait for its result.

    Ctrl-C cancels the goal.

    Exit code 1: the goal did not succeed.
    """
    from roboyard.cli.arguments import parse_type_and_values
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.message_text import to_plain, to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import flush_output, print_line, print_result

    def print_feedback(message: object) -> None:
        print_line(f"feedback:\n{_indent(to_text(message))}")
        flush_output()

    type_name, values = parse_type_and_values(type_and_values or [])
    with open_live_source(run) as source:
        name, types, goal = make_goal(source, action, type_name, values)
        outcome = send_goal(source, name, types, goal, print_feedback if feedback and not json else None)

    def show(_: object) -> None:
        print_line(f"result:\n{_indent(to_text(outcome.result))}")
        print_line(f"goal {outcome.status}" + (f": {outcome.reason}" if outcome.reason else ""))

    result = {
        "action": name, "status": outcome.status, "reason": outcome.reason, "result": to_plain(outcome.result)
    }  # fmt: skip
    print_result(result, json, show)
    exit_unless_success(ExitCode.SUCCESS if outcome.status == "succeeded" else ExitCode.FAILURE)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def make_goal(source: LiveSource, action: str, type_name: str | None, values: Any) -> tuple[str, Any, Any]:
    """Return the absolute name of an action, its type, and the goal message.

    Args:
        source: The run.
        action: Its name, with or without the leading slash.
        type_name: The type that the user expects; None accepts any.
        values: Fields of the goal as plain data.

    Raises:
        UnknownNameError: There is no such action.
        InputError: It has another type.
        MessageError: The values do not fit the goal.
    """
    from roboyard.cli.graph import find_interface
    from roboyard.messages.from_data import message_from_data

    name, types = find_interface(source, "action", action, type_name)
    return name, types, message_from_data(types.Goal, values)


@dataclass(frozen=True, slots=True)
class GoalResult:
    """Result of a goal: its status "succeeded", "aborted" or "canceled", the reason, and the result message."""

    status: str
    reason: str
    result: Any


def send_goal(
    source: LiveSource, action: str, types: Any, goal: Any, feedback: Callable[[Any], None] | None
) -> GoalResult:
    """Send a goal and wait for its result.

    Args:
        source: The run.
        action: Absolute name.
        types: The action's type.
        goal: Goal message.
        feedback: Called with each feedback message.

    Raises:
        RunError: The node rejects the goal, or the run ends before the goal.
        KeyboardInterrupt: The user interrupts; the function cancels the goal before.
    """
    from roboyard.bus.actions import endpoint
    from roboyard.messages.convert.action_goals import GoalStatus, uuid_from_msg, uuid_of_text, uuid_to_msg

    connection = source.connection
    topics = {part: endpoint(action, part) for part in ("feedback", "status", "error")}
    for topic in topics.values():
        connection.subscribe(topic)
    # unlike a random number this gives the same recording when the run is repeated with the same clients
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
    from roboyard.messages.convert.action_goals import GoalStatus, uuid_from_msg

    for entry in message.status_list:
        if uuid_from_msg(entry.goal_info.goal_id) == goal:
            return GoalStatus(entry.status)
    return previous


def _rejection_reason(source: LiveSource, topic: str, goal: bytes) -> str:
    from roboyard.messages.convert.action_goals import uuid_from_msg

    for item in source.connection.messages(_REASON_TIMEOUT):
        if item.topic == topic and uuid_from_msg(item.message.goal_id) == goal:
            return str(item.message.error_message)
    return "no reason given"


def _cancel_goal(source: LiveSource, action: str, goal_id: Any) -> None:
    """Cancel a goal on a second connection; the first may have been interrupted in the middle of a frame."""
    from roboyard.bus.actions import endpoint
    from roboyard.bus.socket import RunConnection
    from roboyard.messages import message_type, service_type

    types = service_type("action_msgs/srv/CancelGoal")
    info = message_type("action_msgs/msg/GoalInfo")(goal_id=goal_id)
    with RunConnection(source.connection.run) as other:
        other.call(endpoint(action, "cancel_goal"), types, types.Request(goal_info=info))
