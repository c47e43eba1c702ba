"""``roboyard param``: declared parameters of nodes of a live run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roboyard.cli.grammar import JsonOption, RunOption, group

app = group("Parameters: list, get, set, describe, dump, load.")

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="Its name, with or without the leading slash.")]
NameArgument = Annotated[str, typer.Argument(metavar="PARAMETER")]


@app.command("list")
def list_parameters(
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="Only this node's.")] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """All parameters with their values."""
    from roboyard.cli.lookup import live
    from roboyard.cli.message_text import to_text
    from roboyard.cli.parameters import parameters_of
    from roboyard.cli.terminal import emit, table

    with live(run) as source:
        found = parameters_of(source, node)
    if json:
        emit({"parameters": found})
        return
    rows = [(name, key, to_text(value)) for name, values in found.items() for key, value in values.items()]
    table(("node", "parameter", "value"), rows)


@app.command("get")
def get(node: NodeArgument, name: NameArgument, run: RunOption = None, json: JsonOption = False) -> None:
    """One value."""
    from roboyard.cli.lookup import live
    from roboyard.cli.message_text import to_text
    from roboyard.cli.parameters import value_of
    from roboyard.cli.terminal import emit, say

    with live(run) as source:
        full_name, value = value_of(source, node, name)
    if json:
        emit({"node": full_name, "parameter": name, "value": value})
    else:
        say(to_text(value))


@app.command("set", context_settings={"ignore_unknown_options": True})  # negative numbers are values
def set_value(
    node: NodeArgument,
    name: NameArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="In YAML: 0.5, true, [a, b].")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Change one value; the node may refuse."""
    from roboyard.cli.lookup import live
    from roboyard.cli.message_text import to_text
    from roboyard.cli.parameters import change
    from roboyard.cli.terminal import emit, say

    with live(run) as source:
        full_name, now = change(source, node, name, value)
    if json:
        emit({"node": full_name, "parameter": name, "value": now})
    else:
        say(f"{full_name} {name}: {to_text(now)}")


@app.command("describe")
def describe(
    node: NodeArgument,
    names: Annotated[list[str] | None, typer.Argument(metavar="[PARAMETER]…", help="Default: all.")] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """What a parameter does and which values it takes."""
    from roboyard.cli.lookup import live
    from roboyard.cli.parameters import descriptions
    from roboyard.cli.terminal import emit, table

    with live(run) as source:
        full_name, found = descriptions(source, node, names or [])
    if json:
        emit({"node": full_name, "parameters": found})
        return
    rows = [(d["name"], d["allowed"], "fixed" if d["read_only"] else "", d["description"]) for d in found]
    table(("parameter", "takes", "", "what it does"), rows)


@app.command("dump")
def dump(node: NodeArgument, run: RunOption = None, json: JsonOption = False) -> None:
    """All values of a node as a ROS 2 parameter file."""
    from roboyard.cli.lookup import live
    from roboyard.cli.message_text import to_text
    from roboyard.cli.parameters import parameters_of
    from roboyard.cli.terminal import emit, plain, say

    with live(run) as source:
        ((full_name, values),) = parameters_of(source, node).items()
    data = {full_name: {"ros__parameters": plain(values)}}
    if json:
        emit(data)
    else:
        say(to_text(data))


@app.command("load")
def load(
    node: NodeArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A ROS 2 parameter file, as dump writes it.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Set a node's values from a ROS 2 parameter file.

    Those that it has already are left alone.
    """
    from roboyard.cli.lookup import live
    from roboyard.cli.message_text import to_text
    from roboyard.cli.parameters import load_file
    from roboyard.cli.terminal import emit, say

    with live(run) as source:
        full_name, changed = load_file(source, node, file)
    if json:
        emit({"node": full_name, "changed": changed})
        return
    for name, value in changed.items():
        say(f"{full_name} {name}: {to_text(value)}")
    if not changed:
        say(f"{full_name}: nothing to change")
