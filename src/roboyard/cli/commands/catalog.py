"""``roboyard list`` and ``roboyard new``: installed and running entries by name, and new files from templates."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.completion import complete_nodes
from roboyard.cli.options import NODE, ROBOT, WORLD, JsonOption

if TYPE_CHECKING:
    from roboyard.bringup.node_documentation import NodeDescription
    from roboyard.config.registry import Registry
    from roboyard.scenarios.scaffold import CreatedFiles


Entry = dict[str, Any]
"""One row: name, summary, and further keys that ``--json`` prints."""


class RegistryKind(enum.StrEnum):
    """Kinds of things that can be listed."""

    ROBOTS = "robots"
    WORLDS = "worlds"
    DEVICES = "devices"
    OBJECTS = "objects"
    SCENARIOS = "scenarios"
    NODES = "nodes"
    SENSORS = "sensors"
    PLANNERS = "planners"
    CONTROLLERS = "controllers"
    STEP_PLANNERS = "step-planners"
    LAYERS = "layers"
    BEHAVIORS = "behaviors"
    MOTION_PLANNERS = "motion-planners"
    TIME_PARAMETERIZATIONS = "time-parameterizations"
    SLAM = "slam"
    MOTION_MODELS = "motion-models"
    LASER_MODELS = "laser-models"
    STATE_ESTIMATORS = "state-estimators"
    SKILLS = "skills"
    SKILL_METHODS = "skill-methods"
    ZONE_ACTIONS = "zone-actions"
    FAULTS = "faults"
    GAITS = "gaits"
    TERRAINS = "terrains"
    TREE_NODES = "tree-nodes"
    WORLD_SOURCES = "world-sources"
    METRICS = "metrics"
    RUNS = "runs"


SHOWN_WITHOUT_KIND = (RegistryKind.ROBOTS, RegistryKind.WORLDS, RegistryKind.SCENARIOS, RegistryKind.RUNS)
"""Kinds that ``roboyard list`` shows when none is named."""


def list_entries(
    kind: Annotated[
        RegistryKind | None,
        typer.Argument(
            metavar="KIND",
            help=f"Kind of entries: {', '.join(RegistryKind)}. Default: robots, worlds, scenarios and live runs.",
            show_choices=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A node whose topics and parameters are shown.", autocompletion=complete_nodes
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List robots, worlds, scenarios, nodes and live runs.

    `roboyard list nodes NAME` shows the topics and the parameters of a node.
    """
    from roboyard.cli.terminal import print_result

    if name is not None:
        _show_node(kind, name, json)
        return
    kinds = [kind] if kind else list(SHOWN_WITHOUT_KIND)
    show = _print_metrics if kind is RegistryKind.METRICS else _print_entries
    print_result({each.value: list_entries_of(each) for each in kinds}, json, show)


def _print_entries(entries_by_kind: dict[str, list[Entry]]) -> None:
    from roboyard.cli.terminal import print_columns, print_heading, print_line

    is_single = len(entries_by_kind) == 1
    visible = {name: entries for name, entries in entries_by_kind.items() if entries or is_single}
    for number, (name, entries) in enumerate(visible.items()):
        if len(visible) > 1:
            print_heading(("\n" if number else "") + name)
        indent = "  " if len(visible) > 1 else ""
        print_columns([(indent + entry["name"], _first_sentence(entry["summary"])) for entry in entries])
        if not entries:
            print_line("none")


def _print_metrics(entries_by_kind: dict[str, list[Entry]]) -> None:
    from roboyard.cli.terminal import print_table

    rows = [
        (entry["name"], entry["of"], entry["unit"], entry["summary"])
        for entry in entries_by_kind[RegistryKind.METRICS.value]
    ]
    print_table(("metric", "of", "unit", "meaning"), rows)


def _show_node(kind: RegistryKind | None, name: str, as_json: bool) -> None:
    from roboyard.cli.terminal import print_result
    from roboyard.errors import InputError

    if kind is not RegistryKind.NODES:
        raise InputError(
            f"list {kind.value if kind else ''}: unexpected name {name!r}", valid="a name only after `list nodes`"
        )
    from roboyard.bringup.node_documentation import describe_node

    print_result({"node": describe_node(name)}, as_json, _print_node)


def _print_node(result: dict[str, NodeDescription]) -> None:
    from roboyard.cli.terminal import print_fields, print_heading, print_line, print_table

    node = result["node"]
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


def list_entries_of(kind: RegistryKind) -> list[Entry]:
    """Return all entries of a kind, sorted as the registry sorts them.

    Raises:
        ConfigError: An installed package does not offer what its entry point says.
    """
    match kind:
        case RegistryKind.METRICS:
            return _metric_entries()
        case RegistryKind.ROBOTS | RegistryKind.WORLDS | RegistryKind.DEVICES | RegistryKind.OBJECTS:
            return _file_entries(kind)
        case RegistryKind.SCENARIOS:
            return _file_entries(kind)
        case RegistryKind.NODES:
            from roboyard.bringup.catalog import NODES

            return list(_registry_entries(NODES))
        case RegistryKind.SENSORS:
            return _sensor_entries()
        case RegistryKind.PLANNERS:
            from roboyard.navigation.plugins import PLANNERS

            return list(_registry_entries(PLANNERS))
        case RegistryKind.CONTROLLERS:
            from roboyard.navigation.plugins import CONTROLLERS

            return list(_registry_entries(CONTROLLERS))
        case RegistryKind.STEP_PLANNERS:
            from roboyard.walking.free_gait.planners.planner import STEP_PLANNERS

            return list(_registry_entries(STEP_PLANNERS))
        case RegistryKind.LAYERS:
            from roboyard.navigation.costmap import COSTMAP_LAYERS

            return list(_registry_entries(COSTMAP_LAYERS))
        case RegistryKind.BEHAVIORS:
            from roboyard.navigation.navigator.behavior import BEHAVIORS

            return list(_registry_entries(BEHAVIORS))
        case RegistryKind.MOTION_PLANNERS:
            from roboyard.manipulation import MOTION_PLANNERS

            return list(_registry_entries(MOTION_PLANNERS))
        case RegistryKind.TIME_PARAMETERIZATIONS:
            from roboyard.manipulation import TIME_PARAMETERIZATIONS

            return list(_registry_entries(TIME_PARAMETERIZATIONS))
        case RegistryKind.SLAM:
            from roboyard.mapping.slam import SLAM_ALGORITHMS

            return [{"name": name, "summary": SLAM_ALGORITHMS[name].title} for name in SLAM_ALGORITHMS.names()]
        case RegistryKind.MOTION_MODELS:
            from roboyard.localization.amcl.config import MOTION_MODELS

            return list(_registry_entries(MOTION_MODELS))
        case RegistryKind.LASER_MODELS:
            from roboyard.localization.amcl.config import LASER_MODELS

            return list(_registry_entries(LASER_MODELS))
        case RegistryKind.STATE_ESTIMATORS:
            from roboyard.localization.kalman.filters import STATE_ESTIMATORS

            return list(_registry_entries(STATE_ESTIMATORS))
        case RegistryKind.SKILLS:
            from roboyard.manipulation.skills import SKILLS

            return list(_registry_entries(SKILLS))
        case RegistryKind.SKILL_METHODS:
            from roboyard.manipulation.nodes.skill_method import SKILL_METHODS

            return list(_registry_entries(SKILL_METHODS))
        case RegistryKind.ZONE_ACTIONS:
            from roboyard.safety.collision_monitor import ZONE_ACTIONS

            return list(_registry_entries(ZONE_ACTIONS))
        case RegistryKind.FAULTS:
            from roboyard.scenarios.faults.schema import FAULTS

            return list(_registry_entries(FAULTS))
        case RegistryKind.GAITS:
            from roboyard.walking import GAITS

            return list(_registry_entries(GAITS))
        case RegistryKind.TERRAINS:
            from roboyard.grids.terrain import TERRAINS

            return [_entry(name, TERRAINS[name].make_heights) for name in TERRAINS.names()]
        case RegistryKind.TREE_NODES:
            from roboyard.behavior.factory import TREE_NODES

            return list(_registry_entries(TREE_NODES))
        case RegistryKind.WORLD_SOURCES:
            from roboyard.bringup.catalog import WORLD_SOURCES

            return list(_registry_entries(WORLD_SOURCES))
        case RegistryKind.RUNS:
            from roboyard.bus.socket import live_runs

            return [{"name": run.name, "summary": f"pid {run.pid}", "pid": run.pid} for run in live_runs()]


def _metric_entries() -> list[Entry]:
    from roboyard.evaluation.plugin import RUN_METRICS, robot_metrics

    metrics = [*(("run", metric) for metric in RUN_METRICS), *(("robot", metric) for metric in robot_metrics())]
    return [
        {
            "name": metric.name, "summary": re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", metric.doc), "of": owner,
            "unit": metric.unit, "better": metric.better,
        }
        for owner, metric in metrics
    ]  # fmt: skip


def _file_entries(kind: RegistryKind) -> list[Entry]:
    from roboyard.bringup import catalog

    registry: catalog.FileRegistry = {
        RegistryKind.ROBOTS: catalog.ROBOTS,
        RegistryKind.WORLDS: catalog.WORLDS,
        RegistryKind.DEVICES: catalog.DEVICES,
        RegistryKind.OBJECTS: catalog.OBJECTS,
        RegistryKind.SCENARIOS: catalog.SCENARIOS,
    }[kind]
    return [
        {"name": one.name, "summary": one.summary, "path": str(one.path), "origin": one.origin}
        for one in registry.entries()
    ]


def _registry_entries(registry: Registry[Any]) -> Iterator[Entry]:
    """Give name and first line of the docstring of each object; read from its source, so that nothing is imported."""
    from roboyard.bringup.node_documentation import read_docstring

    points = registry.entry_points()
    for name in registry.names():
        if name not in points:
            yield _entry(name, registry[name])
            continue
        docstring = read_docstring(points[name].module, points[name].attr)
        summary = _first_line(registry[name].__doc__ if docstring is None else docstring)
        yield {"name": name, "summary": summary, "class": points[name].value}


def _sensor_entries() -> list[Entry]:
    from roboyard.description.sensor_presets import PRESETS
    from roboyard.description.sensor_reader import plugin_sensor_kinds

    presets = [{"name": name, "summary": one.summary, "kind": one.kind} for name, one in PRESETS.items()]
    plugin_kinds = sorted(plugin_sensor_kinds())
    return presets + [{"name": name, "summary": "sensor of another package", "kind": name} for name in plugin_kinds]


def _entry(name: str, documented: Any) -> Entry:
    return {"name": name, "summary": _first_line(inspect.getdoc(documented))}


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n", 1)[0].partition("  in:")[0].rstrip()


def _first_sentence(text: str) -> str:
    """The first one; --json has the whole text."""
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]


new_app = command_group("Create a robot, world, node or scenario from a template.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name: lower-case letters, digits, _.")]


@new_app.command("robot")
def robot(name: NameArgument, json: JsonOption = False) -> None:
    """Create a wheeled robot: NAME/NAME.yaml and its description.

    A small carrier with a lidar, as URDF with xacro, and its nodes.
    """
    from roboyard.scenarios.scaffold import create_from_template

    created = create_from_template("robot", name)
    file = created.files[0]
    _print_files(created, json, f"roboyard check robot {file}", f"roboyard new scenario try --robot {file}")


@new_app.command("world")
def world(name: NameArgument, json: JsonOption = False) -> None:
    """Create a walled world: NAME.sdf."""
    from roboyard.scenarios.scaffold import create_from_template

    created = create_from_template("world", name)
    file = created.files[0]
    _print_files(created, json, f"roboyard check world {file}", f"roboyard new scenario try --world {file}")


@new_app.command("node")
def node(name: NameArgument, json: JsonOption = False) -> None:
    """Create a node that drives the robot: NAME.py."""
    from roboyard.scenarios.scaffold import create_from_template

    created = create_from_template("node", name)
    class_path = f"{created.files[0]}:{''.join(word.capitalize() for word in name.split('_'))}"
    _print_files(created, json, f"roboyard new scenario try --node {class_path}")


@new_app.command("scenario")
def scenario(
    name: NameArgument,
    robot: Annotated[str, ROBOT()] = "rover",
    world: Annotated[str, WORLD()] = "arena",
    node: Annotated[str, NODE(" that drives the robot: a type by name or file.py:Class; default: a script")] = "",
    json: JsonOption = False,
) -> None:
    """Create a scenario with criteria: NAME.yaml.

    The command checks first that the robot, the world and the node exist.
    """
    from roboyard.bringup.catalog import WORLDS, resolve_node_class
    from roboyard.bringup.robot_loader import load_robot
    from roboyard.scenarios.scaffold import create_from_template

    WORLDS.resolve(world)
    load_robot(robot)
    if node:
        resolve_node_class(node)
    created = create_from_template("scenario", name, robot=robot, world=world, node=node)
    file = created.files[0]
    _print_files(created, json, f"roboyard check scenario {file}", f"roboyard run {file}")


def _print_files(created: CreatedFiles, as_json: bool, *commands: str) -> None:
    from roboyard.cli.terminal import print_lines, print_result

    def show(_: object) -> None:
        print_lines([*map(str, created.files), "\nnext commands:", *(f"  {command}" for command in commands)])

    result = {"ok": True, "kind": created.kind, "name": created.name, "files": [Path(file) for file in created.files]}
    print_result(result, as_json, show)
