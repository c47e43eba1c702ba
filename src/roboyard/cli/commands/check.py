"""``roboyard check``: whether a file is valid, without running it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import JsonOption, command_group

if TYPE_CHECKING:
    from roboyard.description.sensors import Sensor, SensorSpec


if TYPE_CHECKING:
    from roboyard.description import Model, Repair
    from roboyard.errors import DescriptionError
    from roboyard.simulation import Simulation

    Diagnosis = Callable[[Path], tuple[tuple[DescriptionError, ...], tuple[Repair, ...]]]

app = command_group("Check a scenario, robot, world, tree or tasks.")

SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value, e.g. robots.rover.pose=[1,0,0].")
]
ImageOption = Annotated[
    Path | None, typer.Option("--picture", metavar="FILE", help="Also draw it: a .png or .jpg file.")
]
ArgumentOption = Annotated[
    list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help="A xacro argument, e.g. ur_type=ur5e.")
]
RepairOption = Annotated[bool, typer.Option("--repair", help="Mend what can be mended, and say what was done.")]


@app.command("scenario")
def scenario(
    file: Annotated[str, typer.Argument(metavar="SCENARIO", help="A file, or a name of `roboyard list`.")],
    robot: Annotated[str | None, typer.Option(metavar="FILE|NAME", help="Instead of the main robot.")] = None,
    world: Annotated[str | None, typer.Option(metavar="FILE|NAME", help="Instead of the world.")] = None,
    settings: SetOption = None,
    json: JsonOption = False,
) -> None:
    """A scenario and everything it names.

    World, robots, nodes, scripts, criteria.
    """
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.scenarios import check_scenario

    found = check_scenario(file, overrides=tuple(settings or ()), robot=robot, world=world)
    if json:
        print_json({"ok": True, "check": found})
        return
    print_fields(
        [
            ("scenario", found.scenario),
            ("world", found.world),
            *(("robot", f"{name}: {', '.join(nodes) or 'no nodes'}") for name, nodes in found.robots.items()),
            ("topics", f"{len(found.topics)}"),
            ("criteria may use", ", ".join(found.metrics)),
        ]
    )
    _print_findings(found.findings)


@app.command("tree")
def tree(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Behaviour trees in BehaviorTree.CPP's XML.")],
    main: Annotated[
        str | None, typer.Option("--tree", metavar="ID", help="Which of its trees, if not the main.")
    ] = None,
    mock: Annotated[bool, typer.Option("--mock", help="Let unknown node types pass, with stand-ins.")] = False,
    json: JsonOption = False,
) -> None:
    """A behaviour tree: nodes, ports, scripts, subtrees.

    Files that it includes are looked at too.  An error says file, line, node, port and what would be right.
    """
    from roboyard.behavior import load_tree, load_trees
    from roboyard.cli.terminal import print_fields, print_json, print_line

    trees = [load_tree(file, main=main, mock=mock)] if main else load_trees(file, mock=mock)
    tree_data: list[dict[str, Any]] = []
    for found in trees:
        types = {node.type_name for node in found.nodes.values() if type(node).__module__.endswith(".mocks")}
        entries = dict.fromkeys(key for part in found.parts for key, _ in part.blackboard)
        subtrees = [part.tree for part in found.parts[1:]]
        tree_data.append(
            {"tree": found.name, "nodes": len(found.nodes), "subtrees": subtrees, "entries": list(entries)}
            | {"mocked": sorted(types)}
        )
    if json:
        print_json({"ok": True, "trees": tree_data})
        return
    for one in tree_data:
        rows = {
            key: value if isinstance(value, (str, int)) else ", ".join(map(str, value)) or "none"
            for key, value in one.items()
        }
        print_fields([(key, value) for key, value in rows.items() if key != "mocked" or mock])
    print_line("it is right" if tree_data else "it is right, and has no tree")


@app.command("tasks")
def tasks(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Conditions, actions and goals in YAML.")],
    json: JsonOption = False,
) -> None:
    """Tasks: whether they make sense, and what goals cost.

    A goal that is impossible is no error: it says why.
    """
    from roboyard.behavior.goals import Impossible, as_xml, load_tasks, make_plan
    from roboyard.behavior.tree import read_tree
    from roboyard.cli.terminal import print_columns, print_json, print_line

    found = load_tasks(file)
    domain, world = found.domain(), found.start()
    goal_results: dict[str, dict[str, Any]] = {}
    for name in found.goals:
        try:
            plan = make_plan(domain, world, found.goal(name))
            read_tree(as_xml(plan, domain, world), source=f"{file}: the plan for {name}")
            goal_results[name] = {"cost": plan.cost, "steps": [step.name for step in plan.steps]}
        except Impossible as error:
            goal_results[name] = {"impossible": error.message}
    if json:
        print_json({"ok": True, "actions": list(found.actions), "goals": goal_results})
        return
    print_columns(
        [name, f"{one['cost']:.4g}", f"{len(one['steps'])} steps"] if "cost" in one else [name, "-", one["impossible"]]
        for name, one in goal_results.items()
    )
    print_line("it is right")


@app.command("robot")
def robot(
    file: Annotated[str, typer.Argument(metavar="ROBOT", help="A file, or a name of `roboyard list`.")],
    arg: ArgumentOption = None,
    repair: RepairOption = False,
    image: ImageOption = None,
    json: JsonOption = False,
) -> None:
    """A robot: what it is made of, and how it stands.

    Its description, the nodes that bring it up, and whether it keeps its balance.
    Every fault is said with its file and line.  With --repair each is mended where that can be, and listed.
    """
    from roboyard.bringup.catalog import ROBOTS
    from roboyard.bringup.robot_loader import load_robot
    from roboyard.cli import robot_summary as report
    from roboyard.cli.terminal import print_columns, print_fields, print_heading, print_json
    from roboyard.compute import compile_on_demand
    from roboyard.description import World, diagnose_model
    from roboyard.errors import DescriptionError
    from roboyard.scenarios import Run

    _check_image_path(image)
    arguments = _parse_xacro_arguments(arg or [])
    try:
        package = load_robot(file, arguments=arguments, repair=True)  # so that all faults are found, not only the first
    except DescriptionError as error:
        _reject_unrepairable(ROBOTS.resolve(file), partial(diagnose_model, arguments=arguments), error, json)
        raise
    with (
        compile_on_demand(),
        Run(World("nowhere"), record=False) as run,
    ):  # what physics or a node cannot take is found out by trying
        model = run.add_robot(package, "robot", nodes="all", xacro_args=arguments, repair=True).model
        _reject_required_repairs(model.repairs, repair, json)
        if not repair and model.repairs:  # none is needed: it is looked at as it stands
            model = package.load_model(arguments)
        findings = list(dict.fromkeys([*package.findings, *map(str, model.warnings), *run.simulation.notes]))
        _save_image(run.simulation, image)
    standing = _describe_standing(model)
    movable_joints = report.describe_joints(model)
    data: dict[str, Any] = {
        "robot": package.name,
        "description": str(package.description),
        "links": len(model.links),
        "tree": report.format_tree(model),
        "masses": report.describe_links(model),
        "joints": [joint["name"] for joint in movable_joints if not joint["closes_loop"]],
        "limits": movable_joints,
        "mass": model.mass,
        "sensors": report.describe_sensors(model),
        "interfaces": report.describe_interfaces(model),
        "nodes": {name: spec.type for name, spec in package.config.nodes.items()},
        "standing": standing,
        "warnings": findings,
        "repairs": [str(one) for one in model.repairs],
        "picture": image,
    }
    if json:
        print_json({"ok": True, **data})
        return
    print_fields(
        [
            ("robot", data["robot"]),
            ("description", data["description"]),
            ("links", f"{data['links']}, {data['mass']:.4g} kg in all"),
            ("moving joints", ", ".join(data["joints"]) or "none"),
            ("sensors", ", ".join(f"{one['name']} ({one['kind']})" for one in data["sensors"]) or "none"),
            (
                "takes commands",
                ", ".join(name for name, one in data["interfaces"].items() if one["commands"]) or "none",
            ),
            ("nodes", ", ".join(data["nodes"]) or "none"),
            ("on the ground", standing or "it has nothing to stand on"),
        ]
    )
    print_heading("tree")
    print_columns([(f"  {line}",) for line in data["tree"]])
    if movable_joints:
        print_heading("joints")
        print_columns([(f"  {one['name']}", one["type"], report.format_limits(one)) for one in movable_joints])
    _print_findings(findings, model.repairs)


@app.command("world")
def world(
    file: Annotated[str, typer.Argument(metavar="WORLD", help="A file, or a name of `roboyard list`.")],
    repair: RepairOption = False,
    image: ImageOption = None,
    json: JsonOption = False,
) -> None:
    """A world: what stands in it.

    Every fault is said with its file and line.  With --repair each is mended where that can be, and listed.
    """
    from roboyard.bringup.catalog import WORLDS
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.description import diagnose_world, load_world
    from roboyard.errors import DescriptionError
    from roboyard.simulation import Simulation

    _check_image_path(image)
    path: Path = WORLDS.resolve(file)
    try:
        found = load_world(path, repair=True)
    except DescriptionError as error:
        _reject_unrepairable(path, diagnose_world, error, json)
        raise
    simulation = Simulation(found)  # what physics cannot take is found out by trying
    _reject_required_repairs(found.repairs, repair, json)
    if not repair and found.repairs:  # none is needed: it is looked at as it stands
        found = load_world(path)
    findings = [*map(str, found.warnings), *simulation.notes]
    _save_image(simulation, image)
    simulation.close()
    models = [placed.name for placed in found.models]
    movable_masses = {placed.name: placed.model.mass for placed in found.models if not placed.model.static}
    lights = [light.name for light in found.lights]
    repairs = [str(one) for one in found.repairs]
    if json:
        summary = {"world": found.name, "path": path, "models": models, "moving": movable_masses, "lamps": lights}
        print_json({"ok": True, **summary, "warnings": findings, "repairs": repairs, "picture": image})
        return
    movable_text = ", ".join(f"{name} ({mass:.4g} kg)" for name, mass in movable_masses.items())
    print_fields(
        [
            ("world", found.name),
            ("file", path),
            ("models", ", ".join(models) or "none"),
            ("that can move", movable_text or "none"),
            ("lamps", ", ".join(lights) or "none"),
        ]
    )
    _print_findings(findings, found.repairs)


def _parse_xacro_arguments(texts: list[str]) -> dict[str, str]:
    """``--arg NAME=VALUE`` as a mapping. Raises InputError."""
    from roboyard.errors import InputError

    found = {}
    for one in texts:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--arg {one[:100]!r} is no argument", valid="NAME=VALUE, as in --arg ur_type=ur5e")
        found[name.strip()] = value
    return found


def _reject_unrepairable(path: Path, diagnose: Diagnosis, error: DescriptionError, json: bool) -> None:
    """Say every fault of a description of which one cannot be mended, and end with exit code 2.

    Returns where ``path`` is no file of a description: then ``error`` says it all.
    """
    from roboyard.bringup.catalog import DESCRIPTION_SUFFIXES, WORLD_SUFFIXES
    from roboyard.cli.exit_codes import BAD_INPUT
    from roboyard.cli.terminal import format_count, print_error, print_json, print_note

    if path.suffix not in (*DESCRIPTION_SUFFIXES, *WORLD_SUFFIXES):
        return
    faults, repairs = diagnose(path)
    if not faults:
        faults = (error,)
    required_repairs = [one for one in repairs if one.is_required]
    faults_with_repairability = [(str(one), False) for one in faults] + [
        (one.error_text, True) for one in required_repairs
    ]
    for text, is_repairable in faults_with_repairability[:_MAX_FAULTS]:
        print_error(text + (" [--repair mends it]" if is_repairable else ""))
    if len(faults_with_repairability) > _MAX_FAULTS:
        print_note(f"and {format_count(len(faults_with_repairability) - _MAX_FAULTS, 'more fault')}")
    print_note(f"{format_count(len(faults), 'fault')} cannot be mended, {len(required_repairs)} can")
    if json:
        fault_rows = [{"fault": text, "mendable": is_repairable} for text, is_repairable in faults_with_repairability]
        fault_texts = [text for text, _ in faults_with_repairability]
        print_json(
            {
                "ok": False,
                "error": faults_with_repairability[0][0],
                "faults": fault_texts,
                "listed": fault_rows,
                "exit_code": BAD_INPUT,
            }
        )
    raise typer.Exit(BAD_INPUT)


def _check_image_path(image: Path | None) -> None:
    if image is not None:
        from roboyard.simulation.render.portrait import check_picture

        check_picture(image)


def _save_image(simulation: Simulation, image: Path | None) -> None:
    if image is not None:
        from roboyard.simulation.render.portrait import save_portrait

        save_portrait(simulation, image)


def _reject_required_repairs(repairs: Sequence[Repair], repair: bool, json: bool) -> None:
    """Without ``repair`` say each fault that must be mended, and end with exit code 2."""
    from roboyard.cli.exit_codes import BAD_INPUT
    from roboyard.cli.terminal import format_count, print_error, print_json, print_note

    faults = [one.error_text for one in repairs if one.is_required]
    if repair or not faults:
        return
    for fault in faults[:_MAX_FAULTS]:
        print_error(fault)
    if len(faults) > _MAX_FAULTS:
        print_note(f"and {format_count(len(faults) - _MAX_FAULTS, 'more fault')}")
    print_note("--repair mends " + ("it" if len(faults) == 1 else "them") + " and lists what was done")
    if json:
        print_json({"ok": False, "error": faults[0], "faults": faults, "exit_code": BAD_INPUT})
    raise typer.Exit(BAD_INPUT)


_MAX_FAULTS = 20
"""Faults that are said at most."""


def _describe_standing(model: Model) -> str:
    """What becomes of the robot on level ground, its joints held; empty if it has nothing to stand on."""
    from roboyard.simulation.standing import stand

    if model.static or any(joint.parent == "world" for joint in model.joints):
        return "it is fixed to the world"
    standing = stand(model)
    if standing is None:
        return ""
    if standing.fell():
        reason = "it tips" if standing.balances() else "its centre of mass does not lie above what it stands on"
        return f"it falls over with its joints held: {reason}"
    if not standing.rests():
        return f"it does not come to rest: {standing.speed:.2g} m/s after a second, {standing.depth * 1e3:.2g} mm deep"
    return f"it rests, {standing.depth * 1e3:.2g} mm deep"


def _print_findings(findings: Sequence[str], repairs: Sequence[Repair] = ()) -> None:
    from roboyard.cli.terminal import format_count, merge_findings, print_line, print_note

    for finding in merge_findings(findings):
        print_note(f"warning: {finding}")
    for repaired in repairs:
        print_note(f"mended: {repaired}")
    counts = [format_count(len(found), word) for found, word in ((findings, "warning"), (repairs, "mending")) if found]
    print_line("it is right" + (f", with {' and '.join(counts)}" if counts else ""))


def sensor(
    file: Annotated[
        str,
        typer.Argument(
            metavar="SENSOR",
            help="file.py:Class, module:Class, a name of `roboyard list sensors`, or a robot: all of its own.",
        ),
    ],
    json: JsonOption = False,
) -> None:
    """A sensor: whether it keeps the contract.

    Frozen readings, chance from the seed, nothing disturbed, state saved.

    Exit code 1 if it breaks the contract.
    """
    from roboyard.cli.terminal import print_error, print_json, print_line
    from roboyard.simulation.sensors.check import SensorFaultError, check_sensor

    results: dict[str, Any] = {}
    has_fault = False
    for name, one, kind in _find_sensors(file):
        try:
            results[name] = {"ok": True, "holds": list(check_sensor(one, kind))}
        except SensorFaultError as error:
            has_fault, results[name] = True, {"ok": False, "error": str(error)}
    if json:
        print_json({"ok": not has_fault, "sensors": results})
    for name, found in () if json else results.items():
        if found["ok"]:
            print_line(f"{name}: keeps the contract")
            for line in found["holds"]:
                print_line(f"  \u2713 {line}")
        else:
            print_error(f"{name}: {found['error']}")
    if has_fault:
        raise typer.Exit(1)


def _find_sensors(file: str) -> list[tuple[str, Sensor, Any]]:
    """(name, description, class or None for the registered one) of what ``file`` names."""
    from roboyard.bringup.robot_loader import load_robot
    from roboyard.description.sensor_presets import PRESETS
    from roboyard.description.sensors import Sensor
    from roboyard.errors import ConfigError, InputError
    from roboyard.geometry import SE3
    from roboyard.simulation.sensors.registry import SENSORS

    if file in PRESETS:
        preset = PRESETS[file]
        return [(file, Sensor(file, preset.kind, "body", SE3(), preset.update_rate, file, "body", preset.spec), None)]
    if file in SENSORS.entry_points():
        registered_class = SENSORS[file]
        return [
            (
                file,
                Sensor(file, file, "body", SE3(), 50.0, file, "body", _example_spec(registered_class)),
                registered_class,
            )
        ]
    if ":" in file:
        sensor_class = SENSORS.resolve(file)
        kind = getattr(sensor_class, "kind", "")
        if not isinstance(kind, str) or not kind:
            raise ConfigError(f"{file} has no kind", valid='kind = "sonar", as files call it')
        return [
            (
                sensor_class.__name__,
                Sensor(kind, kind, "body", SE3(), 50.0, kind, "body", _example_spec(sensor_class)),
                sensor_class,
            )
        ]
    from roboyard.description import load_model

    simulated_kinds = SENSORS.names()
    model = load_model(load_robot(file).description)
    simulated_sensors = [(one.name, one, None) for one in model.sensors if one.kind in simulated_kinds]
    if not simulated_sensors:
        raise InputError(f"{file} has no sensor that is simulated", valid=f"kinds: {', '.join(simulated_kinds)}")
    return simulated_sensors


def _example_spec(kind: Any) -> SensorSpec:
    """The description by which a class wants to be tried: its ``example``, else an empty one."""
    from roboyard.description.sensors import CustomSensorSpec

    found: SensorSpec = getattr(kind, "example", CustomSensorSpec())
    return found
