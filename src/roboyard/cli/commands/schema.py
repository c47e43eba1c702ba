"""``roboyard schema``: JSON Schema of scenario, robot and other files, for editors."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from typing import Annotated, Any

import typer

from roboyard.cli.options import OUT, JsonOption

FILE_TYPES: dict[str, tuple[str, str]] = {
    "scenario": ("roboyard.scenarios.json_schema:scenario_json_schema", "Scenario, for `roboyard run`."),
    "robot": ("roboyard.bringup.robot_config:RobotConfig", "Robot: its description and its nodes."),
    "groups": (
        "roboyard.manipulation.semantics.groups_file:SemanticDescriptionConfig",
        "Joint groups, tools and named poses of a robot.",
    ),
    "legs": ("roboyard.walking.legged_robot:LegsFile", "Legs of a robot and their stance."),
    "servos": ("roboyard.hardware.dynamixel.config:ServosConfig", "Servos of a real robot, for `roboyard bringup`."),
    "operator": ("roboyard.scenarios.operator:OperatorScriptFile", "Script of an operator who drives a robot."),
    "tasks": (
        "roboyard.task_planning.task_file:TaskFile",
        "Conditions, actions and goals, for `roboyard check tasks`.",
    ),
    "steps": (
        "roboyard.walking.free_gait.plan_file:StepPlanFile",
        "Step plan of a legged robot, for `roboyard show step-plan`.",
    ),
    "animation": ("roboyard.people.clip_library:KeyframeClip", "Keyframes of a person's motion."),
    "gamepad": ("roboyard.control.teleoperation.gamepad:GamepadMapping", "Axes and buttons of a gamepad."),
}
"""Type of a file's content, or the function that makes its schema, and a summary, by the name of the file's kind."""
_KIND_NAMES = ", ".join(FILE_TYPES)


def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help=f"{_KIND_NAMES} or node; default: list them.")
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A node: a name of `roboyard list nodes`, or file.py:Class.")
    ] = None,
    out: Annotated[Path | None, OUT(": a folder for all schemas", metavar="DIR")] = None,
    json: JsonOption = False,
) -> None:
    """Print the JSON Schema of a kind of file, for editors.

    Editors that know the schema complete keys, show their meaning and mark mistakes.
    """
    from roboyard.cli.terminal import print_columns, print_line, print_lines, print_result
    from roboyard.errors import InputError

    if out is not None:
        if kind is not None:
            raise InputError(f"only one of --out and {kind!r} is allowed", valid="one of them")
        written = _write_all(out)
        print_result({"ok": True, "files": written}, json, lambda _: print_line(f"{len(written)} schemas in {out}"))
    elif kind is None:
        kinds = [{"name": one, "summary": summary} for one, (_, summary) in FILE_TYPES.items()]
        rows = [*((one["name"], one["summary"]) for one in kinds), ("node NAME", "Parameters of a node.")]
        print_result({"kinds": kinds}, json, lambda _: print_columns(rows))
    else:
        found = make_schema(kind, name)
        print_result(found, json, lambda _: print_lines([format_schema(found).rstrip()]))


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
    content = getattr(import_module(module), attribute)
    make = content if isfunction(content) else partial(json_schema, content)
    schema: dict[str, Any] = make(title=f"Roboyard {kind} file", description=summary)
    return schema


def format_schema(schema: dict[str, Any]) -> str:
    """Return a schema as the text of its file."""
    import json

    return json.dumps(schema, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _write_all(folder: Path) -> list[Path]:
    """Write the schemas of all kinds of files and of all registered nodes; return the files."""
    from roboyard.bringup import catalog
    from roboyard.config import write_atomic
    from roboyard.errors import InputError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: {error.strerror}", valid="a folder that can be created") from error
    written: list[Path] = []
    for kind, name in [*((kind, None) for kind in FILE_TYPES), *(("node", name) for name in catalog.NODES.names())]:
        path = folder / f"{kind if name is None else f'node-{name}'}.schema.json"
        write_atomic(path, format_schema(make_schema(kind, name)))
        written.append(path)
    return written
