"""``roboyard check``: checks of scenarios, robots, worlds, trees, tasks and sensors without a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.arguments import PHOTO_SUFFIXES, validate_output_path
from roboyard.cli.options import (
    ROBOT,
    WORLD,
    JsonOption,
    MockOption,
    PhotoOption,
    RepairOption,
    RobotArgument,
    ScenarioArgument,
    SettingsOption,
    TreeOption,
    WorldArgument,
)

if TYPE_CHECKING:
    from roboyard.description import Repair
    from roboyard.errors import DescriptionError
    from roboyard.simulation import Simulation

    Diagnosis = Callable[[Path], tuple[tuple[DescriptionError, ...], tuple[Repair, ...]]]

app = command_group("Check a scenario, robot, world, tree, tasks or sensor.")

ArgumentOption = Annotated[
    list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help="Argument of xacro, e.g. ur_type=ur5e.")
]
_MAX_FAULTS = 20
"""Maximum number of printed faults."""


@app.command("scenario")
def scenario(
    scenario: ScenarioArgument,
    robot: Annotated[str | None, ROBOT("; it replaces the main one")] = None,
    world: Annotated[str | None, WORLD("; it replaces the scenario's")] = None,
    settings: SettingsOption = None,
    json: JsonOption = False,
) -> None:
    """Check a scenario with its world, robots, nodes and criteria."""
    from roboyard.cli.terminal import print_fields, print_result
    from roboyard.scenarios import check_scenario

    found = check_scenario(scenario, overrides=tuple(settings or ()), robot=robot, world=world)

    def show(_: object) -> None:
        print_fields(
            [
                ("scenario", found.scenario),
                ("world", found.world),
                *(("robot", f"{name}: {', '.join(nodes) or 'no nodes'}") for name, nodes in found.robots.items()),
                ("topics", f"{len(found.topics)}"),
                (
                    "metrics of criteria",
                    f"{len(found.metrics)} (`roboyard list metrics` describes them)",
                ),
            ]
        )
        _print_findings(found.findings)

    print_result({"ok": True, "check": found}, json, show)


@app.command("tree")
def tree(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Behavior trees in the XML of BehaviorTree.CPP.")],
    main: TreeOption = None,
    mock: MockOption = False,
    json: JsonOption = False,
) -> None:
    """Check a behavior tree: nodes, ports, scripts, subtrees.

    The check includes the files that it includes. An error names file, line, node, port and the expected value.
    """
    from roboyard.behavior import load_tree, load_trees
    from roboyard.cli.terminal import print_result

    trees = [load_tree(file, main=main, mock=mock)] if main else load_trees(file, mock=mock)
    tree_data: list[dict[str, Any]] = []
    for found in trees:
        types = {node.type_name for node in found.nodes.values() if type(node).__module__.endswith(".tree_builder")}
        entries = dict.fromkeys(key for part in found.subtrees for key, _ in part.blackboard)
        subtrees = [part.tree_id for part in found.subtrees[1:]]
        tree_data.append(
            {"tree": found.name, "nodes": len(found.nodes), "subtrees": subtrees, "blackboard": list(entries)}
            | {"mocked": sorted(types)}
        )
    print_result({"ok": True, "trees": tree_data}, json, lambda _: _print_trees(tree_data, mock))


def _print_trees(trees: Sequence[dict[str, Any]], shows_mocks: bool) -> None:
    from roboyard.cli.terminal import print_fields, print_line

    for one in trees:
        rows = {
            key: value if isinstance(value, (str, int)) else ", ".join(map(str, value)) or "none"
            for key, value in one.items()
        }
        print_fields([(key, value) for key, value in rows.items() if key != "mocked" or shows_mocks])
    print_line("valid" if trees else "valid, without a tree")


@app.command("tasks")
def planning_problems(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Conditions, actions and goals in YAML.")],
    json: JsonOption = False,
) -> None:
    """Check a task file, and print the cost of each goal.

    A goal without a plan is no error; the command prints the reason.
    """
    from roboyard.behavior.tree import read_tree
    from roboyard.cli.terminal import print_result
    from roboyard.task_planning import NoPlanError, load_tasks, make_plan, plan_to_xml

    found = load_tasks(file)
    domain, world = found.domain(), found.initial_world_state()
    goals: dict[str, dict[str, Any]] = {}
    for name in found.goals:
        try:
            plan = make_plan(domain, world, found.goal(name))
            read_tree(plan_to_xml(plan, domain, world), source=f"{file}: the plan for {name}")
            goals[name] = {"cost": plan.cost, "steps": [step.name for step in plan.steps]}
        except NoPlanError as error:
            goals[name] = {"reason": error.message}
    print_result({"ok": True, "actions": list(found.actions), "goals": goals}, json, _print_tasks)


def _print_tasks(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_columns, print_line

    print_columns(
        [name, f"{goal['cost']:.4g}", f"{len(goal['steps'])} steps"] if "cost" in goal else [name, "-", goal["reason"]]
        for name, goal in result["goals"].items()
    )
    print_line("valid")


@app.command("robot")
def robot(
    robot: RobotArgument,
    arg: ArgumentOption = None,
    repair: RepairOption = False,
    image: PhotoOption = None,
    json: JsonOption = False,
) -> None:
    """Check a robot: description, nodes, and stability.

    The command prints every fault with its file and line.
    """
    from roboyard.bringup.catalog import ROBOTS
    from roboyard.bringup.robot_loader import load_robot
    from roboyard.cli.terminal import print_result
    from roboyard.compute import compile_on_demand
    from roboyard.description import World, diagnose_model
    from roboyard.description.model_summary import (
        describe_interfaces,
        describe_joints,
        describe_links,
        describe_sensors,
        format_tree,
    )
    from roboyard.errors import DescriptionError
    from roboyard.scenarios import Run
    from roboyard.simulation.stability_check import describe_stability

    validate_output_path("--picture", image, PHOTO_SUFFIXES)
    arguments = _parse_xacro_arguments(arg or [])
    try:
        package = load_robot(robot, arguments=arguments, repair=True)  # finds all faults, not only the first
    except DescriptionError as error:
        _reject_unrepairable(ROBOTS.resolve(robot), partial(diagnose_model, arguments=arguments), error, json)
        raise
    with (
        compile_on_demand(),
        Run(World("nowhere"), record=False) as run,
    ):  # the simulation and the nodes reject what they cannot use
        model = run.add_robot(package, "robot", nodes="all", xacro_args=arguments, repair=True).model
        _reject_required_repairs(model.repairs, repair, json)
        if not repair and model.repairs:  # no repair is required: the model is used as it is
            model = package.load_model(arguments)
        findings = list(dict.fromkeys([*package.findings, *map(str, model.warnings), *run.simulation.warnings]))
        _save_image(run.simulation, image)
    joints = describe_joints(model)
    result = {
        "ok": True,
        "robot": package.name,
        "description": str(package.description),
        "links": len(model.links),
        "tree": format_tree(model),
        "masses": describe_links(model),
        "joints": [joint["name"] for joint in joints if not joint["closes_loop"]],
        "limits": joints,
        "mass": model.mass,
        "sensors": describe_sensors(model),
        "interfaces": describe_interfaces(model),
        "nodes": {name: spec.type for name, spec in package.config.nodes.items()},
        "standing": describe_stability(model),
        "warnings": findings,
        "repairs": [str(one) for one in model.repairs],
        "picture": image,
    }
    print_result(result, json, _print_robot)


def _print_robot(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_columns, print_fields, print_heading
    from roboyard.description.model_summary import format_limits

    commanded = [name for name, one in result["interfaces"].items() if one["commands"]]
    print_fields(
        [
            ("robot", result["robot"]),
            ("description", result["description"]),
            ("links", f"{result['links']}, {result['mass']:.4g} kg"),
            ("moving joints", ", ".join(result["joints"]) or "none"),
            ("sensors", ", ".join(f"{one['name']} ({one['kind']})" for one in result["sensors"]) or "none"),
            ("commanded joints", ", ".join(commanded) or "none"),
            ("nodes", ", ".join(result["nodes"]) or "none"),
            ("stability", result["standing"] or "the robot has no contact with the ground"),
        ]
    )
    print_heading("tree")
    print_columns([(f"  {line}",) for line in result["tree"]])
    if result["limits"]:
        print_heading("joints")
        print_columns([(f"  {one['name']}", one["type"], format_limits(one)) for one in result["limits"]])
    _print_findings(result["warnings"], result["repairs"])


@app.command("world")
def world(
    world: WorldArgument,
    repair: RepairOption = False,
    image: PhotoOption = None,
    json: JsonOption = False,
) -> None:
    """Check a world and list its models.

    The command prints every fault with its file and line.
    """
    from roboyard.bringup.catalog import WORLDS
    from roboyard.cli.terminal import print_result
    from roboyard.description import diagnose_world, load_world
    from roboyard.errors import DescriptionError
    from roboyard.simulation import Simulation

    validate_output_path("--picture", image, PHOTO_SUFFIXES)
    path: Path = WORLDS.resolve(world)
    try:
        found = load_world(path, repair=True)
    except DescriptionError as error:
        _reject_unrepairable(path, diagnose_world, error, json)
        raise
    simulation = Simulation(found)  # the simulation rejects what it cannot use
    _reject_required_repairs(found.repairs, repair, json)
    if not repair and found.repairs:  # no repair is required: the world is used as it is
        found = load_world(path)
    findings = [*map(str, found.warnings), *simulation.warnings]
    _save_image(simulation, image)
    simulation.close()
    result = {
        "ok": True,
        "world": found.name,
        "path": path,
        "models": [placed.name for placed in found.models],
        "movable_masses": {placed.name: placed.model.mass for placed in found.models if not placed.model.static},
        "lights": [light.name for light in found.lights],
        "warnings": findings,
        "repairs": [str(one) for one in found.repairs],
        "picture": image,
    }
    print_result(result, json, _print_world)


def _print_world(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields

    masses = ", ".join(f"{name} ({mass:.4g} kg)" for name, mass in result["movable_masses"].items())
    print_fields(
        [
            ("world", result["world"]),
            ("file", result["path"]),
            ("models", ", ".join(result["models"]) or "none"),
            ("movable models", masses or "none"),
            ("lights", ", ".join(result["lights"]) or "none"),
        ]
    )
    _print_findings(result["warnings"], result["repairs"])


def _parse_xacro_arguments(texts: list[str]) -> dict[str, str]:
    from roboyard.errors import InputError

    found = {}
    for one in texts:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--arg {one[:100]!r}", valid="NAME=VALUE, e.g. --arg ur_type=ur5e")
        found[name.strip()] = value
    return found


def _reject_unrepairable(path: Path, diagnose: Diagnosis, error: DescriptionError, json: bool) -> None:
    """Print every fault of a description, of which at least one cannot be repaired, and end with bad input.

    The function returns where ``path`` is no description; then ``error`` holds everything.
    """
    from roboyard.bringup.catalog import DESCRIPTION_SUFFIXES, WORLD_SUFFIXES

    if path.suffix not in (*DESCRIPTION_SUFFIXES, *WORLD_SUFFIXES):
        return
    faults, repairs = diagnose(path)
    repairable = [one.error_text for one in repairs if one.is_required]
    _reject([(str(one), False) for one in faults or (error,)] + [(text, True) for text in repairable], json)


def _reject_required_repairs(repairs: Sequence[Repair], repair: bool, json: bool) -> None:
    """Without ``repair``, print each fault that must be repaired, and end with bad input."""
    faults = [one.error_text for one in repairs if one.is_required]
    if faults and not repair:
        _reject([(text, True) for text in faults], json)


def _reject(faults: Sequence[tuple[str, bool]], json: bool) -> None:
    """Print faults, each with whether --repair repairs it, and end with bad input."""
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import format_count, print_error, print_note, print_result

    n_repairable = sum(is_repairable for _, is_repairable in faults)
    for text, is_repairable in faults[:_MAX_FAULTS]:
        print_error(text + (" [--repair repairs it]" if is_repairable and n_repairable < len(faults) else ""))
    if len(faults) > _MAX_FAULTS:
        print_note(f"and {format_count(len(faults) - _MAX_FAULTS, 'more fault')}")
    if n_repairable == len(faults):
        print_note("--repair repairs " + ("it" if len(faults) == 1 else "them") + " and lists the repairs")
    elif n_repairable:
        print_note(f"{format_count(len(faults) - n_repairable, 'fault')} cannot be repaired, {n_repairable} can")
    result = {
        "ok": False, "error": faults[0][0],
        "faults": [{"message": text, "repairable": is_repairable} for text, is_repairable in faults],
        "exit_code": ExitCode.BAD_INPUT,
    }  # fmt: skip
    print_result(result, json, lambda _: None)
    exit_unless_success(ExitCode.BAD_INPUT)


def _save_image(simulation: Simulation, image: Path | None) -> None:
    if image is not None:
        from roboyard.simulation.overview_image import save_overview_image

        save_overview_image(simulation, image)


def _print_findings(findings: Sequence[str], repairs: Sequence[str] = ()) -> None:
    from roboyard.cli.terminal import format_count, merge_findings, print_line, print_note

    for finding in merge_findings(findings):
        print_note(f"warning: {finding}")
    for repair in repairs:
        print_note(f"repaired: {repair}")
    counts = [format_count(len(found), word) for found, word in ((findings, "warning"), (repairs, "repair")) if found]
    print_line("valid" + (f", with {' and '.join(counts)}" if counts else ""))


def sensor_contract(
    sensor: Annotated[
        str, typer.Argument(metavar="SENSOR", help="file.py:Class, module:Class, a name, or a robot with sensors.")
    ],
    json: JsonOption = False,
) -> None:
    """Check whether a sensor meets the contract of sensors.

    Readings are immutable, random numbers come from the seed, the simulation is not changed, the state is saved.

    Exit code 1: the sensor violates the contract.
    """
    from roboyard.bringup.sensor_lookup import find_sensors
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_result
    from roboyard.simulation.sensor_contract import SensorContractError, check_sensor

    results: dict[str, Any] = {}
    for name, one, sensor_class in find_sensors(sensor):
        try:
            results[name] = {"ok": True, "passed": list(check_sensor(one, sensor_class))}
        except SensorContractError as error:
            results[name] = {"ok": False, "error": str(error)}
    is_valid = all(found["ok"] for found in results.values())
    print_result({"ok": is_valid, "sensors": results}, json, _print_sensors)
    exit_unless_success(ExitCode.SUCCESS if is_valid else ExitCode.FAILURE)


def _print_sensors(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_error, print_line

    for name, found in result["sensors"].items():
        if found["ok"]:
            print_line(f"{name}: meets the contract")
            for line in found["passed"]:
                print_line(f"  \u2713 {line}")
        else:
            print_error(f"{name}: {found['error']}")
