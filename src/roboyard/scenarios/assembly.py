"""Builds a run from a loaded scenario: world, robots, devices, people, nodes, operator, mission, faults; checks a
scenario without running it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from roboyard.bringup.catalog import find_catalog_file, find_file
from roboyard.bringup.legged_robot import create_legged_robot
from roboyard.bringup.plugins.mapping import map_plugins
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_loader import load_robot
from roboyard.bringup.robot_nodes import create_node
from roboyard.bus import NodeError
from roboyard.compute import compile_on_demand
from roboyard.description import World, load_world
from roboyard.description.extent import bounding_radius
from roboyard.errors import ConfigError, InputError, RoboyardError, UnknownNameError
from roboyard.scenarios.evaluator import metric_names
from roboyard.scenarios.faults.injection import schedule_faults
from roboyard.scenarios.loading import LoadedScenario, load_scenario, world_model_name
from roboyard.scenarios.missions import MISSION, add_mission
from roboyard.scenarios.nodes.faults import FaultScheduleNode
from roboyard.scenarios.nodes.ground_truth import ObjectGroundTruthNode
from roboyard.scenarios.nodes.operator import OperatorNode
from roboyard.scenarios.operator import OperatorScript
from roboyard.scenarios.people import add_crowd
from roboyard.scenarios.resolve import read_criteria, read_scripts
from roboyard.scenarios.robot_handle import RobotHandle
from roboyard.scenarios.run import Run
from roboyard.scenarios.schema import DeviceConfig, PersonConfig, ScenarioConfig, ScenarioRobotConfig
from roboyard.scenarios.world.free_space import top_down_map
from roboyard.scenarios.world.objects import add_objects_and_appearance
from roboyard.scenarios.world.terrain import add_terrain
from roboyard.simulation.furniture import furniture_of
from roboyard.walking.movement import Between, play
from roboyard.walking.movement_file import load_movement

_FREE_POSITION_CLEARANCE = 0.15
"""Left round a robot that is put in a free place [m]."""


def build_run(loaded: LoadedScenario, *, out: Path | None = None, record: bool = True) -> Run:
    """A run with everything the scenario names, at time zero.

    Raises:
        InputError and its kinds: something the scenario names is not there or not right.
    """
    config = loaded.config
    read_criteria(loaded)
    read_scripts(loaded)
    world = load_world(find_catalog_file("world", config.world, loaded.base_folder))
    terrain = None if config.terrain is None else config.terrain.generate(config.seed)
    if terrain is not None:
        world = add_terrain(world, terrain)
    n_world_models = len(world.models)
    world = add_objects_and_appearance(world, config.objects, config.appearance, config.seed, loaded.base_folder)
    robot_names = {
        world_model_name(entry.model): name for name, entry in config.robots.items() if world_model_name(entry.model)
    }
    run = Run(
        rename_world_models(world, robot_names) if robot_names else world,
        seed=config.seed,
        timestep=config.timestep,
        out=out,
        record=record,
        exclude_topics=config.record.exclude_topics,
        camera_rate=config.record.camera_rate,
        base_folder=loaded.base_folder,
        name=loaded.name,
    )
    run.terrain = terrain
    run.objects = tuple(placed.name for placed in world.models[n_world_models:])
    try:
        for name, device in config.devices.items():
            _add_device(run, name, device)
        packages: dict[tuple[object, ...], RobotPackage] = {}
        for name, entry in config.robots.items():
            movement = config.movement if name == config.main_robot else None
            _add_robot(run, name, entry, loaded.base_folder, movement, packages)
        for name, person in config.people.items():
            _add_person(run, name, person)
        add_crowd(run, config.people)
        for name in drivable_world_models(run.world):
            if name not in run.robots:
                run.activate_model(name)
        if run.objects:
            run.bus.add(ObjectGroundTruthNode(simulation=run.simulation, objects=run.objects), "thing_truth")
        for name, script in read_scripts(loaded).items():
            _add_operator(run.robots[name], script)
        _add_nodes(run, config)
        if config.mission is not None:
            add_mission(run.robots[config.main_robot or ""], config.mission, loaded.base_folder)
        if config.faults:
            faults = schedule_faults(run, config.faults, loaded.source_location)
            run.bus.add(FaultScheduleNode(faults=faults, events=run.events), "faults")
    except BaseException:
        run.close()
        raise
    return run


def _add_robot(
    run: Run,
    name: str,
    config: ScenarioRobotConfig,
    base_folder: Path,
    movement: str | None,
    packages: dict[tuple[object, ...], RobotPackage],
) -> None:
    """Add a robot; ``packages`` keeps those that were found, so that robots of one kind share what was read."""
    location = f"robots.{name}"
    try:
        if world_model_name(config.model):
            run.activate_model(name, namespace=config.namespace, nodes=config.nodes)
            return
        package_key = (config.model, *sorted(config.xacro_args.items()), config.repair)
        if package_key not in packages:
            packages[package_key] = load_robot(config.model, base_folder, config.xacro_args, repair=config.repair)
        package = packages[package_key].with_overrides(config.parameters, config.remap)
        if movement is not None:
            package = with_movement(package, movement, base_folder, config.xacro_args)
        pose = _find_free_pose(run, package, config) if config.pose == "free" else config.pose
        run.add_robot(
            package, name, pose=pose, namespace=config.namespace, nodes=config.nodes, xacro_args=config.xacro_args,
            repair=config.repair, fixed_base=config.fixed_base,
        )  # fmt: skip
    except (ConfigError, NodeError):  # they name their place
        raise
    except RoboyardError as error:
        error.location = error.location or location
        raise


def _add_device(run: Run, name: str, config: DeviceConfig) -> None:
    try:
        run.add_device(config.model, name, config.pose, config.initial_command)
    except ConfigError:
        raise
    except RoboyardError as error:
        error.location = error.location or f"devices.{name}"
        raise


def _add_person(run: Run, name: str, config: PersonConfig) -> None:
    try:
        run.add_person(name, config)
    except RoboyardError as error:
        error.location = f"people.{name}" if error.location is None else f"people.{name}: {error.location}"
        raise


def _find_free_pose(run: Run, package: RobotPackage, config: ScenarioRobotConfig) -> tuple[float, float, float]:
    """Where the robot has room, nearest to the world's origin."""
    model = package.load_model(config.xacro_args, repair=config.repair)
    x, y = top_down_map(run.simulation).find_free_position(bounding_radius(model) + _FREE_POSITION_CLEARANCE)
    return x, y, 0.0


def _add_operator(robot: RobotHandle, script: OperatorScript) -> None:
    operator = OperatorNode(
        script=script, radius=bounding_radius(robot.model), base_frame=robot.package.config.base_frame
    )
    robot.add_node(operator, "operator")


def _add_nodes(run: Run, config: ScenarioConfig) -> None:
    for name, node_config in config.nodes.items():
        if name == MISSION and config.mission is not None:
            continue
        robot = run.robots[node_config.robot] if node_config.robot else None
        node = create_node(
            node_config.type,
            node_config.parameters,
            robot.resources() if robot else run.resources(),
            base_folder=run.base_folder,
            location=f"nodes.{name}",
        )
        if robot is not None:
            robot.add_node(node, name, remap=node_config.remap, namespace=node_config.namespace)
        else:
            run.add_node(node, name, namespace=node_config.namespace or "", remap=node_config.remap)


def drivable_world_models(world: World) -> tuple[str, ...]:
    """Models of the world whose plugins drive them or command their joints.

    Raises:
        DescriptionError: their plugins make no sense.
    """
    names = []
    for placed in world.models:
        if not placed.model.plugins or placed.model.static or furniture_of(placed.model) is not None:
            continue
        mapping = map_plugins(placed.model)
        if mapping.is_drive or mapping.command_groups or mapping.nodes:
            names.append(placed.name)
    return tuple(names)


def rename_world_models(world: World, new_names: Mapping[str, str]) -> World:
    """The world with models called as ``new_names`` (old: new) says.

    Raises:
        UnknownNameError: the world has no such model, or another one has the new name already.
    """
    model_names = [placed.name for placed in world.models]
    for old, new in new_names.items():
        if old not in model_names:
            raise UnknownNameError(
                f"the world has no model {old!r}",
                location=str(world.source or world.name),
                valid=", ".join(model_names) or "none",
            )
        if new in model_names and new != old and new not in new_names:
            raise UnknownNameError(f"the world has a model {new!r} already", valid="another name for the robot")

    def rename_link(name: str) -> str:
        model, colons, link = name.partition("::")
        return f"{new_names.get(model, model)}{colons}{link}"

    models = tuple(replace(placed, name=new_names.get(placed.name, placed.name)) for placed in world.models)
    joints = tuple(
        replace(joint, parent=rename_link(joint.parent), child=rename_link(joint.child)) for joint in world.joints
    )
    return replace(world, models=models, joints=joints)


_MOVEMENT_KEY = "movement"


def with_movement(
    package: RobotPackage, file: str, base_folder: Path | None = None, xacro_args: Mapping[str, str] | None = None
) -> RobotPackage:
    """The package of a robot whose gait node plays a movement file, looked through from its first step to its last.

    Args:
        package: Of a robot on legs.
        file: The movement, beside the scenario or as seen from the working folder.
        base_folder: The scenario's folder.
        xacro_args: For xacro.

    Raises:
        InputError: there is no such file, or the robot has no legs or no gait node.
        DescriptionError: it is no movement file.
        RoboyardError: the robot cannot play it; with step, leg, joint, value and limit.
    """
    try:
        path = find_file(file, base_folder)
    except InputError as error:
        raise InputError(error.message, location=_MOVEMENT_KEY, valid=error.valid) from None
    legs = create_legged_robot(package, package.load_model(xacro_args))
    gait_node = next((name for name, spec in package.config.nodes.items() if spec.type == "gait"), None)
    if legs is None or gait_node is None:
        raise InputError(
            f"{package.name} plays none", location=_MOVEMENT_KEY, valid="a robot on legs with a node `gait`"
        )
    interpolation: Between = "spline" if package.node(gait_node).parameters.get("between") == "spline" else "cosine"
    try:
        play(load_movement(path), legs, between=interpolation)
    except RoboyardError as error:
        if str(path) not in str(error):
            error.location = f"{path}, {error.location}" if error.location else str(path)
        raise
    return package.with_overrides({gait_node: {"movement": str(path.resolve())}}, {})


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a scenario holds.

    Attributes:
        scenario: Its name.
        world: Name of its world.
        robots: With the names of their nodes.
        nodes: Full names of all nodes.
        topics: With their types.
        metrics: Names that criteria may use.
        findings: What was guessed or not understood in descriptions; no errors.
    """

    scenario: str
    world: str
    robots: dict[str, tuple[str, ...]]
    nodes: tuple[str, ...]
    topics: dict[str, str]
    metrics: tuple[str, ...]
    findings: tuple[str, ...]


def check_scenario(
    name: str | Path,
    *,
    overrides: Sequence[str] = (),
    smoke: bool = False,
    robot: str | None = None,
    world: str | None = None,
) -> CheckReport:
    """Read a scenario and assemble it, physics and nodes included, without letting time pass.

    Args:
        name: Its name or a path.
        overrides: ``key.path=value``.
        smoke: Check the smoke variant.
        robot: Instead of the main robot's model.
        world: Instead of the world.

    Raises:
        InputError and its kinds: the first thing that is not right.
    """
    loaded = load_scenario(name, overrides=overrides, smoke=smoke, robot=robot, world=world)
    read_criteria(loaded)
    with compile_on_demand(), build_run(loaded, record=False) as run:
        findings = [str(finding) for finding in run.world.warnings]
        for handle in run.robots.values():
            findings += [f"{handle.name}: {finding}" for finding in handle.package.findings]
            findings += [str(finding) for finding in handle.model.warnings]
        findings += list(run.simulation.notes)
        return CheckReport(
            loaded.name,
            run.world.name,
            {handle.name: tuple(handle.nodes) for handle in run.robots.values()},
            tuple(run.bus.nodes),
            {topic: run.bus.topics[topic].type_name for topic in sorted(run.bus.topics)},
            metric_names(tuple(loaded.config.robots)),
            tuple(dict.fromkeys(findings)),
        )
