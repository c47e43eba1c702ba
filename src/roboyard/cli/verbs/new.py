"""``roboyard new``: files to start from, in the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.grammar import JsonOption, group

if TYPE_CHECKING:
    from roboyard.scenarios.scaffold import Made

app = group("Start a robot, world, scenario or node of your own.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits, _.")]


@app.command("robot")
def robot(name: NameArgument, json: JsonOption = False) -> None:
    """A robot that drives: NAME/NAME.yaml and its description.

    A small carrier with a lidar, as URDF with xacro, and the nodes that bring it up.
    """
    from roboyard.scenarios.scaffold import make

    made = make("robot", name)
    _tell(made, json, f"roboyard check robot {made.files[0]}", f"roboyard new scenario try --robot {made.files[0]}")


@app.command("world")
def world(name: NameArgument, json: JsonOption = False) -> None:
    """A walled yard: NAME.sdf."""
    from roboyard.scenarios.scaffold import make

    made = make("world", name)
    _tell(made, json, f"roboyard check world {made.files[0]}", f"roboyard new scenario try --world {made.files[0]}")


@app.command("node")
def node(name: NameArgument, json: JsonOption = False) -> None:
    """A node that drives about: NAME.py."""
    from roboyard.scenarios.scaffold import make

    made = make("node", name)
    called = f"{made.files[0]}:{''.join(word.capitalize() for word in name.split('_'))}"
    _tell(made, json, f"roboyard new scenario try --node {called}")


@app.command("scenario")
def scenario(
    name: NameArgument,
    robot: Annotated[str, typer.Option(metavar="FILE|NAME", help="Who drives.")] = "rover",
    world: Annotated[str, typer.Option(metavar="FILE|NAME", help="Where.")] = "arena",
    node: Annotated[
        str, typer.Option(metavar="FILE:CLASS|NAME", help="What drives it; default: an operator's script.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """A scenario with criteria: NAME.yaml.

    Robot, world and node are looked for before it is written.
    """
    from roboyard.scenarios.catalog import find, find_robot, node_class
    from roboyard.scenarios.scaffold import make

    find("world", world)
    find_robot(robot)
    if node:
        node_class(node)
    made = make("scenario", name, robot=robot, world=world, node=node)
    _tell(made, json, f"roboyard check scenario {made.files[0]}", f"roboyard run {made.files[0]}")


def _tell(made: Made, as_json: bool, *commands: str) -> None:
    from roboyard.cli.terminal import emit, say

    if as_json:
        emit({"ok": True, "kind": made.kind, "name": made.name, "files": [Path(file) for file in made.files]})
        return
    for file in made.files:
        say(str(file))
    say("\nnow:")
    for command in commands:
        say(f"  {command}")
