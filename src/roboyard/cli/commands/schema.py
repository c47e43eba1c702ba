"""``roboyard schema``: JSON Schema of the files that people write, for editors."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from roboyard.cli.app import JsonOption

FILE_TYPES: dict[str, tuple[str, str]] = {
    "scenario": ("roboyard.scenarios.schema:ScenarioConfig", "Scenario, for `roboyard run`."),
    "robot": ("roboyard.bringup.robot_config:RobotConfig", "Robot: its description and its nodes."),
    "groups": ("roboyard.manipulation.groups.file:GroupsFile", "Joint groups, tools and named poses of a robot."),
    "legs": ("roboyard.walking.walker_file:WalkerFile", "Legs of a robot and their stance."),
    "servos": ("roboyard.hardware.dynamixel.config:ServosConfig", "Servos of a real robot, for `roboyard bringup`."),
    "operator": ("roboyard.scenarios.operator:OperatorScriptFile", "Script of an operator who drives a robot."),
    "tasks": ("roboyard.behavior.goals.file:Tasks", "Conditions, actions and goals, for `roboyard check tasks`."),
    "steps": (
        "roboyard.walking.steps.plan_file:StepPlanFile",
        "Step plan of a legged robot, for `roboyard show step-plan`.",
    ),
    "animation": ("roboyard.simulation.people.key_poses:KeyPoses", "Key poses of a person's motion."),
    "gamepad": ("roboyard.control.teleoperation.pad_maps:PadMap", "Axes and buttons of a gamepad."),
}
"""Type that holds a file's content, and a summary, by the name of the file's kind."""
_KIND_NAMES = ", ".join(FILE_TYPES)


def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help=f"{_KIND_NAMES} or node; default: list them.")
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Of a node: as in `roboyard list nodes`, or file.py:Class.")
    ] = None,
    everything: Annotated[
        Path | None, typer.Option("--all", metavar="DIR", help="Write all schemas into this folder.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print the JSON Schema of a kind of file, for editors.

    Editors that know the schema complete keys, show their meaning and mark mistakes while you type.
    """
    from roboyard.cli.terminal import print_columns, print_json
    from roboyard.errors import InputError

    if everything is not None:
        if kind is not None:
            raise InputError(f"--all and {kind!r} exclude each other", valid="one of them")
        _write_all(everything, json)
    elif kind is None:
        if json:
            print_json({"kinds": [{"name": one, "about": summary} for one, (_, summary) in FILE_TYPES.items()]})
        else:
            summaries = [(one, summary) for one, (_, summary) in FILE_TYPES.items()]
            print_columns([*summaries, ("node NAME", "Parameters of a node.")])
    else:
        _print_schema(make_schema(kind, name))


def make_schema(kind: str, name: str | None = None) -> dict[str, Any]:
    """Return the schema of a kind of file, or of a node's parameters.

    Args:
        kind: A key of `FILE_TYPES`, or "node".
        name: Name or class of the node.

    Raises:
        InputError: There is no such kind, or a name is missing or needless.
        UnknownNameError: There is no such node.
    """
    from roboyard.bringup.catalog import resolve_node_class
    from roboyard.config import did_you_mean, json_schema
    from roboyard.errors import InputError

    if kind == "node":
        if name is None:
            raise InputError("schema node: the name of the node is missing", valid="a name of `roboyard list nodes`")
        cls = resolve_node_class(name)
        summary = (cls.__doc__ or "").strip().split("\n", 1)[0]
        return json_schema(cls.config_class, title=f"Parameters of {name}", description=summary)
    if kind not in FILE_TYPES:
        raise InputError(f"unknown kind of file {kind!r}{did_you_mean(kind, FILE_TYPES)}", valid=f"{_KIND_NAMES}, node")
    if name is not None:
        raise InputError(f"schema {kind} takes no name, got {name!r}", valid=f"roboyard schema {kind}")
    target, summary = FILE_TYPES[kind]
    module, _, attribute = target.partition(":")
    return json_schema(getattr(import_module(module), attribute), title=f"Roboyard {kind} file", description=summary)


def _print_schema(schema: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_line

    print_line(_format_schema(schema).rstrip())


def _format_schema(schema: dict[str, Any]) -> str:
    import json

    return json.dumps(schema, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _write_all(folder: Path, as_json: bool) -> None:
    """Write the schemas of all kinds of files and of all registered nodes."""
    from roboyard.bringup import catalog
    from roboyard.cli.terminal import print_json, print_line
    from roboyard.config import write_atomic
    from roboyard.errors import InputError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--all {folder}: {error.strerror}", valid="a folder that can be made") from error
    written: list[Path] = []
    for kind, name in [*((kind, None) for kind in FILE_TYPES), *(("node", name) for name in catalog.NODES.names())]:
        path = folder / f"{kind if name is None else f'node-{name}'}.schema.json"
        write_atomic(path, _format_schema(make_schema(kind, name)))
        written.append(path)
    if as_json:
        print_json({"ok": True, "files": written})
    else:
        print_line(f"{len(written)} schemas in {folder}")
