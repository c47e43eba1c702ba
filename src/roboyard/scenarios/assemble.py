"""Puts a scenario together: world, robots, nodes, operator, faults."""

from __future__ import annotations

from pathlib import Path

from roboyard.bus import NodeError
from roboyard.description import load_world
from roboyard.description.extent import bounding_radius
from roboyard.errors import ConfigError, RoboyardError
from roboyard.scenarios.catalog import find, find_file, find_robot
from roboyard.scenarios.expressions import Criterion
from roboyard.scenarios.faults.deeds import deeds_of
from roboyard.scenarios.faults.node import Faults
from roboyard.scenarios.floor import floor_of
from roboyard.scenarios.ground import with_terrain
from roboyard.scenarios.metrics import metric_names
from roboyard.scenarios.missions import MISSION, add_mission
from roboyard.scenarios.movements import with_movement
from roboyard.scenarios.node_factory import make_node
from roboyard.scenarios.operator import Operator
from roboyard.scenarios.people import add_crowd
from roboyard.scenarios.residents import can_wake, renamed, resident
from roboyard.scenarios.robot_handle import RobotHandle
from roboyard.scenarios.robot_package import RobotPackage
from roboyard.scenarios.run import Run
from roboyard.scenarios.schema import FurnitureEntry, PersonEntry, RobotEntry, Scenario
from roboyard.scenarios.script import Script, load_script
from roboyard.scenarios.setting import set_out
from roboyard.scenarios.spec import Spec
from roboyard.scenarios.thing_truth import ThingTruthNode

_ROOM = 0.15
"""Left round a robot that is put in a free place [m]."""


def assemble(spec: Spec, *, out: Path | None = None, record: bool = True) -> Run:
    """A run with everything the scenario names, at time zero.

    Raises:
        InputError and its kinds: something the scenario names is not there or not right.
    """
    scenario = spec.scenario
    read_criteria(spec)
    read_scripts(spec)
    world = load_world(find("world", scenario.world, spec.base))
    terrain = None if scenario.terrain is None else scenario.terrain.make(scenario.seed)
    if terrain is not None:
        world = with_terrain(world, terrain)
    there = len(world.models)
    world = set_out(world, scenario.things, scenario.looks, scenario.seed, spec.base)
    living = {resident(entry.model): name for name, entry in scenario.robots.items() if resident(entry.model)}
    run = Run(
        renamed(world, living) if living else world,
        seed=scenario.seed,
        timestep=scenario.timestep,
        out=out,
        record=record,
        exclude=scenario.record.exclude_topics,
        cameras=scenario.record.camera_rate,
        base=spec.base,
        name=spec.name,
    )
    run.terrain = terrain
    run.things = tuple(placed.name for placed in world.models[there:])
    try:
        for name, thing in scenario.furniture.items():
            _add_furniture(run, name, thing)
        packages: dict[tuple[object, ...], RobotPackage] = {}
        for name, entry in scenario.robots.items():
            movement = scenario.movement if name == scenario.main_robot else None
            _add_robot(run, name, entry, spec.base, movement, packages)
        for name, person in scenario.people.items():
            _add_person(run, name, person)
        add_crowd(run, scenario.people)
        for name in can_wake(run.world):
            if name not in run.robots:
                run.wake(name)
        if run.things:
            run.bus.add(ThingTruthNode(simulation=run.simulation, things=run.things), "thing_truth")
        for name, script in read_scripts(spec).items():
            _add_operator(run.robots[name], script)
        _add_nodes(run, scenario)
        if scenario.mission is not None:
            add_mission(run.robots[scenario.main_robot or ""], scenario.mission, spec.base)
        if scenario.faults:
            deeds = deeds_of(run, scenario.faults, spec.place)
            run.bus.add(Faults(deeds=deeds, events=run.events), "faults")
    except BaseException:
        run.close()
        raise
    return run


def read_criteria(spec: Spec) -> tuple[dict[str, Criterion], Criterion | None]:
    """The criteria by name, and the one that ends the run; their metrics are checked.

    Raises:
        ConfigError: one is no expression or uses a metric that the run will not have.
    """
    scenario = spec.scenario
    known = metric_names(tuple(scenario.robots))

    def where(key: str) -> str:
        place = spec.place(key)
        return f"{place}, {key}" if place else key

    criteria = {name: Criterion(text, where(f"criteria.{name}")) for name, text in scenario.criteria.items()}
    until = Criterion(scenario.until, where("until")) if scenario.until else None
    compared = [Criterion(name, where("compared")) for name in scenario.compared]
    for criterion in [*criteria.values(), *([until] if until else []), *compared]:
        criterion.check_names(known)
    return criteria, until


def read_scripts(spec: Spec) -> dict[str, Script]:
    """The operator's script for each robot that has one.

    Raises:
        ConfigError, InputError: a script is not there or not right.
    """
    operator = spec.scenario.operator
    if operator is None:
        return {}
    main = spec.scenario.main_robot
    by_robot = operator if isinstance(operator, dict) else {main: operator} if main else {}
    found: dict[str, Script] = {}
    for robot, source in by_robot.items():
        if isinstance(source, str):
            found[robot] = load_script(find_file(source, spec.base))
        else:
            found[robot] = source if isinstance(source, Script) else Script(source)
    return found


def _add_robot(
    run: Run,
    name: str,
    entry: RobotEntry,
    base: Path,
    movement: str | None,
    packages: dict[tuple[object, ...], RobotPackage],
) -> None:
    """Add a robot; ``packages`` keeps those that were found, so that robots of one kind share what was read."""
    where = f"robots.{name}"
    try:
        if resident(entry.model):
            run.wake(name, namespace=entry.namespace, nodes=entry.nodes)
            return
        kind = (entry.model, *sorted(entry.arguments.items()), entry.repair)
        if kind not in packages:
            packages[kind] = find_robot(entry.model, base, entry.arguments, repair=entry.repair)
        package = packages[kind].customised(entry.parameters, entry.remap)
        if movement is not None:
            package = with_movement(package, movement, base, entry.arguments)
        at = _free_place(run, package, entry) if entry.at == "free" else entry.at
        run.add(
            package, name, at=at, namespace=entry.namespace, nodes=entry.nodes, arguments=entry.arguments,
            repair=entry.repair, fixed=entry.fixed,
        )  # fmt: skip
    except (ConfigError, NodeError):  # they name their place
        raise
    except RoboyardError as error:
        error.location = error.location or where
        raise


def _add_furniture(run: Run, name: str, entry: FurnitureEntry) -> None:
    try:
        run.add_furniture(entry.model, name, entry.at, entry.start)
    except ConfigError:
        raise
    except RoboyardError as error:
        error.location = error.location or f"furniture.{name}"
        raise


def _add_person(run: Run, name: str, entry: PersonEntry) -> None:
    try:
        run.add_person(name, entry)
    except RoboyardError as error:
        error.location = f"people.{name}" if error.location is None else f"people.{name}: {error.location}"
        raise


def _free_place(run: Run, package: RobotPackage, entry: RobotEntry) -> tuple[float, float, float]:
    """Where the robot has room, nearest to the world's origin."""
    model = package.load_model(entry.arguments, repair=entry.repair)
    x, y = floor_of(run.simulation).free_place(bounding_radius(model) + _ROOM)
    return x, y, 0.0


def _add_operator(robot: RobotHandle, script: Script) -> None:
    operator = Operator(script=script, radius=bounding_radius(robot.model), base_frame=robot.package.file.base_frame)
    robot.add_node(operator, "operator")


def _add_nodes(run: Run, scenario: Scenario) -> None:
    for name, entry in scenario.nodes.items():
        if name == MISSION and scenario.mission is not None:
            continue
        robot = run.robots[entry.robot] if entry.robot else None
        node = make_node(
            entry.use,
            entry.parameters,
            robot.resources() if robot else run.resources(),
            base=run.base,
            where=f"nodes.{name}",
        )
        if robot is not None:
            robot.add_node(node, name, remap=entry.remap, namespace=entry.namespace)
        else:
            run.add_node(node, name, namespace=entry.namespace or "", remap=entry.remap)
