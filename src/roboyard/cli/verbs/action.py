"""``roboyard action``: goals for nodes of a live run."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.grammar import JsonOption, RunOption, group

app = group("Actions: list, info, send_goal.")


@app.command("list")
def list_actions(run: RunOption = None, json: JsonOption = False) -> None:
    """All actions with their types."""
    from roboyard.cli.graph import actions_of
    from roboyard.cli.lookup import live
    from roboyard.cli.terminal import emit, table

    with live(run) as source:
        actions = actions_of(source)
    if json:
        emit({"actions": actions})
    else:
        table(("action", "type"), actions.items())


@app.command("info")
def info(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="Its name, with or without the leading slash.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """One action: its type, who serves it and who sends it goals."""
    from roboyard.cli.graph import actions_of, clients_of, known, nodes_of
    from roboyard.cli.lookup import live
    from roboyard.cli.terminal import emit, fields

    with live(run) as source:
        name, served = known(source, "action", action, actions_of(source))
        servers = [node["name"] for node in nodes_of(source) if name in node["actions"]]
        clients = clients_of(source, name)
    if json:
        emit({"action": name, "type": served, "servers": servers, "clients": clients})
    else:
        ends = [("served by", ", ".join(servers) or "nobody"), ("used by", ", ".join(clients) or "nobody")]
        fields([("action", name), ("type", served), *ends])


@app.command("send_goal")
def send_goal(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="Its name, with or without the leading slash.")],
    what: Annotated[
        list[str] | None, typer.Argument(metavar="[TYPE] [GOAL]", help="e.g. '{order: 5}'; the type may be left out.")
    ] = None,
    run: RunOption = None,
    feedback: Annotated[bool, typer.Option("--feedback", "-f", help="Show how it goes.")] = False,
    json: JsonOption = False,
) -> None:
    """Send a goal and wait for its result.

    Ctrl-C cancels it.  Exit code 1 if it does not succeed.
    """
    from roboyard.cli.goals import pursue
    from roboyard.cli.graph import actions_of, known
    from roboyard.cli.lookup import live
    from roboyard.cli.message_text import to_plain, to_text
    from roboyard.cli.publishing import type_and_values
    from roboyard.cli.terminal import emit, flush, say
    from roboyard.errors import InputError
    from roboyard.messages import action_type
    from roboyard.messages.from_data import message_from_data

    def show(message: object) -> None:
        say(f"feedback:\n{_indented(to_text(message))}")
        flush()

    with live(run) as source:
        name, served = known(source, "action", action, actions_of(source))
        kind, data = type_and_values(what or [])
        if kind is not None and action_type(kind).name != served:
            raise InputError(f"action {name} is a {served}, not a {kind}", location=source.where)
        types = action_type(served)
        end = pursue(source, name, types, message_from_data(types.Goal, data), show if feedback and not json else None)
    if json:
        emit({"action": name, "status": end.status, "reason": end.reason, "result": to_plain(end.result)})
    else:
        say(f"result:\n{_indented(to_text(end.result))}")
        say(f"goal {end.status}" + (f": {end.reason}" if end.reason else ""))
    if end.status != "succeeded":
        raise typer.Exit(1)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
