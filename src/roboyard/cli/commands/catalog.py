"""``roboyard list`` and ``roboyard new``: what is installed or running, and files to start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.app import JsonOption, command_group
from roboyard.cli.registry_listing import SHOWN_WITHOUT_KIND, RegistryKind, list_entries_of

if TYPE_CHECKING:
    from roboyard.scenarios.scaffold import CreatedFiles


def list_entries(
    kind: Annotated[
        RegistryKind | None,
        typer.Argument(metavar="[KIND]", help="What to list; default: robots, worlds, scenarios and live runs."),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Of a node: show its topics and parameters.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """What there is by name, and which runs are live."""
    from roboyard.cli.terminal import print_columns, print_heading, print_json, print_line

    if name is not None:
        _print_node(kind, name, json)
        return
    kinds = [kind] if kind else list(SHOWN_WITHOUT_KIND)
    found = {each.value: list_entries_of(each) for each in kinds}
    if json:
        print_json(found)
        return
    entries_by_kind = {name: entries for name, entries in found.items() if entries or kind}
    for number, (name, entries) in enumerate(entries_by_kind.items()):
        if len(entries_by_kind) > 1:
            print_heading(("\n" if number else "") + name)
        print_columns(
            [(("  " if len(entries_by_kind) > 1 else "") + e["name"], _first_sentence(e["summary"])) for e in entries]
        )
        if not entries:
            print_line("none")


def _print_node(kind: RegistryKind | None, name: str, as_json: bool) -> None:
    from roboyard.cli.terminal import print_fields, print_heading, print_json, print_line, print_table
    from roboyard.errors import InputError

    if kind is not RegistryKind.NODES:
        raise InputError(
            f"list {kind.value if kind else ''}: unexpected name {name!r}", valid="a name only after `list nodes`"
        )
    from roboyard.bringup.node_documentation import describe_node

    node = describe_node(name)
    if as_json:
        print_json({"node": node})
        return
    print_fields([
        ("node", node.name), ("class", node.class_name), ("", node.summary), *node.interfaces,
        ("resources", ", ".join(node.resources) or None), *(("", text) for text in node.details),
    ])  # fmt: skip
    if not node.parameters:
        print_line("\nno parameters")
        return
    print_heading("\nparameters")
    rows = [(row.key, row.default, "yes" if row.runtime else "no", row.expected, row.doc) for row in node.parameters]
    print_table(("name", "default", "runtime", "must be", "meaning"), rows)


def _first_sentence(text: str) -> str:
    """The first one; --json has the whole text."""
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]


new_app = command_group("Start a robot, world, scenario or node of your own.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits, _.")]


@new_app.command("robot")
def robot(name: NameArgument, json: JsonOption = False) -> None:
    """A robot that drives: NAME/NAME.yaml and its description.

    A small carrier with a lidar, as URDF with xacro, and the nodes that bring it up.
    """
    from roboyard.scenarios.scaffold import create_from_template

    created = create_from_template("robot", name)
    _print_files(
        created,
        json,
        f"roboyard check robot {created.files[0]}",
        f"roboyard new scenario try --robot {created.files[0]}",
    )


@new_app.command("world")
def world(name: NameArgument, json: JsonOption = False) -> None:
    """A walled yard: NAME.sdf."""
    from roboyard.scenarios.scaffold import create_from_template

    created = create_from_template("world", name)
    _print_files(
        created,
        json,
        f"roboyard check world {created.files[0]}",
        f"roboyard new scenario try --world {created.files[0]}",
    )


@new_app.command("node")
def node(name: NameArgument, json: JsonOption = False) -> None:
    """A node that drives about: NAME.py."""
    from roboyard.scenarios.scaffold import create_from_template

    created = create_from_template("node", name)
    class_path = f"{created.files[0]}:{''.join(word.capitalize() for word in name.split('_'))}"
    _print_files(created, json, f"roboyard new scenario try --node {class_path}")


@new_app.command("scenario")
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
    from roboyard.bringup.catalog import WORLDS, resolve_node_class
    from roboyard.bringup.robot_loader import load_robot
    from roboyard.scenarios.scaffold import create_from_template

    WORLDS.resolve(world)
    load_robot(robot)
    if node:
        resolve_node_class(node)
    created = create_from_template("scenario", name, robot=robot, world=world, node=node)
    _print_files(created, json, f"roboyard check scenario {created.files[0]}", f"roboyard run {created.files[0]}")


def _print_files(created: CreatedFiles, as_json: bool, *commands: str) -> None:
    from roboyard.cli.terminal import print_json, print_line

    if as_json:
        print_json(
            {"ok": True, "kind": created.kind, "name": created.name, "files": [Path(file) for file in created.files]}
        )
        return
    for file in created.files:
        print_line(str(file))
    print_line("\nnow:")
    for command in commands:
        print_line(f"  {command}")
