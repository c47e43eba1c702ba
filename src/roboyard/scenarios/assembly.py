"""Builds a run from a resolved scenario: physics, robots, devices, people, nodes, operator, mission, faults; and checks
a scenario without running it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from roboyard.bringup.plugins.mapping import map_plugins
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_nodes import create_node
from roboyard.compute import compile_on_demand
from roboyard.description import World
from roboyard.description.extent import bounding_radius
from roboyard.errors import UnknownNameError
from roboyard.evaluation.plugin import scenario_keys
from roboyard.scenarios.evaluator import metric_names
from roboyard.scenarios.faults.injection import schedule_faults
from roboyard.scenarios.loading import LoadedScenario, errors_in_variant, load_scenario, load_variants, world_model_name
from roboyard.scenarios.merge import errors_located_at
from roboyard.scenarios.missions import MISSION, add_mission
from roboyard.scenarios.nodes.faults import FaultScheduleNode
from roboyard.scenarios.nodes.ground_truth import ObjectGroundTruthNode
from roboyard.scenarios.nodes.operator import OperatorNode
from roboyard.scenarios.operator import OperatorScript
from roboyard.scenarios.people import add_crowd
from roboyard.scenarios.resolve import ResolvedRobot, ResolvedScenario, read_criteria, read_scripts, resolve_scenario
from roboyard.scenarios.robot_handle import RobotHandle
from roboyard.scenarios.run import Run
from roboyard.scenarios.schema import ScenarioRobotConfig
from roboyard.scenarios.world.free_space import top_down_map
from roboyard.simulation.moving_devices import read_moving_device

_FREE_POSITION_CLEARANCE = 0.15
"""Left round a robot that is put in a free place [m]."""


def build_run(resolved: ResolvedScenario, *, out: Path | None = None, record: bool = True) -> Run:
    """Build the run of a scenario: physics, robots, people, nodes and faults, at time zero.

    Args:
        resolved: The scenario, from `resolve_scenario`.
        out: Folder of the recording, new or empty; None: a temporary one.
        record: False records nothing.

    Raises:
        InputError and its kinds: something that the scenario names does not fit.
    """
    config = resolved.config
    robot_names = {
        world_model_name(entry.model): name for name, entry in config.robots.items() if world_model_name(entry.model)
    }
    run = Run(
        rename_world_models(resolved.world, robot_names) if robot_names else resolved.world,
        seed=config.seed,
        timestep=config.timestep,
        out=out,
        record=config.record if record else False,
        base_folder=resolved.loaded.base_folder,
        name=resolved.name,
    )
    run.terrain, run.objects = resolved.terrain, resolved.objects
    tree = resolved.loaded.source_tree
    try:
        for name, device in config.devices.items():
            with errors_located_at(tree, f"devices.{name}"):
                run.add_device(resolved.devices[name], name, device.pose, device.initial_command)
        for name, robot in resolved.robots.items():
            with errors_located_at(tree, f"robots.{name}"):
                _add_robot(run, name, robot)
        for name, person in config.people.items():
            with errors_located_at(tree, f"people.{name}"):
                run.add_person(name, person)
        add_crowd(run, config.people)
        for name in drivable_world_models(run.world):
            if name not in run.robots:
                run.activate_model(name)
        if run.objects:
            run.bus.add(ObjectGroundTruthNode(simulation=run.simulation, objects=run.objects), "thing_truth")
        for name, script in resolved.scripts.items():
            _add_operator(run.robots[name], script)
        _add_nodes(run, resolved.loaded)
        if config.mission is not None:
            with errors_located_at(tree, MISSION):
                add_mission(run.robots[config.main_robot or ""], config.mission, resolved.loaded.base_folder)
        for key, value in resolved.plugin_values.items():
            with errors_located_at(tree, key):
                scenario_keys()[key].apply(value, run)
        if config.faults:
            faults = schedule_faults(run, config.faults, resolved.loaded.source_location)
            run.bus.add(FaultScheduleNode(faults=faults, events=run.events), "faults")
    except BaseException:
        run.close()
        raise
    return run


def _add_robot(run: Run, name: str, robot: ResolvedRobot) -> None:
    config, package = robot.config, robot.package
    if package is None:
        run.activate_model(name, namespace=config.namespace, nodes=config.nodes)
        return
    pose = _find_free_pose(run, package, config) if config.pose == "free" else config.pose
    run.add_robot(
        package, name, pose=pose, namespace=config.namespace, nodes=config.nodes, xacro_args=config.xacro_args,
        repair=config.repair, fixed_base=config.fixed_base,
    )  # fmt: skip


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


def _add_nodes(run: Run, loaded: LoadedScenario) -> None:
    for name, node_config in loaded.config.nodes.items():
        if name == MISSION and loaded.config.mission is not None:
            continue
        robot = run.robots[node_config.robot] if node_config.robot else None
        with errors_located_at(loaded.source_tree, f"nodes.{name}"):
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
        if not placed.model.plugins or placed.model.static or read_moving_device(placed.model) is not None:
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

    All its variants, and all values of its options in each, are read too, but not assembled.

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
    for variant, loaded_variant in load_variants(name, overrides):
        with errors_in_variant(variant):
            read_criteria(loaded_variant)
            read_scripts(loaded_variant)
    with compile_on_demand(), build_run(resolve_scenario(loaded), record=False) as run:
        findings = [str(finding) for finding in run.world.warnings]
        for handle in run.robots.values():
            findings += [f"{handle.name}: {finding}" for finding in handle.package.findings]
            findings += [str(finding) for finding in handle.model.warnings]
        findings += list(run.simulation.warnings)
        return CheckReport(
            loaded.name,
            run.world.name,
            {handle.name: tuple(handle.nodes) for handle in run.robots.values()},
            tuple(run.bus.nodes),
            {topic: run.bus.topics[topic].type_name for topic in sorted(run.bus.topics)},
            metric_names(tuple(loaded.config.robots)),
            tuple(dict.fromkeys(findings)),
        )
