"""Resolves a loaded scenario: every file that it names is found and read once, and every reference is checked.

The result builds the run, and is written into the run folder as the YAML that repeats the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from roboyard.bringup.catalog import DEVICES, WORLDS, find_file
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_loader import load_robot
from roboyard.bringup.robot_nodes import DescribedRobot
from roboyard.config import YamlNode, dump, read_yaml, schema_comment
from roboyard.description import Model, World, load_model, load_world
from roboyard.evaluation.plugin import scenario_keys
from roboyard.grids.terrain import Terrain
from roboyard.scenarios.criteria import Criterion
from roboyard.scenarios.evaluator import metric_names
from roboyard.scenarios.loading import LoadedScenario, world_model_name
from roboyard.scenarios.merge import errors_located_at
from roboyard.scenarios.missions import find_mission_file
from roboyard.scenarios.operator import OperatorScript, parse_script
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.schema import ScenarioConfig, ScenarioRobotConfig
from roboyard.scenarios.world.barn import is_barn_world
from roboyard.scenarios.world.objects import add_objects_and_appearance
from roboyard.scenarios.world.terrain import world_with_terrain


@dataclass(frozen=True, slots=True)
class ResolvedRobot:
    """A robot of a scenario with its package.

    Attributes:
        config: What the scenario says of it.
        package: Its nodes and description, with the scenario's parameters and names and what keys of run plug-ins set;
            None where the robot is a model of the world's own file.
    """

    config: ScenarioRobotConfig
    package: RobotPackage | None


@dataclass(frozen=True, slots=True)
class ResolvedScenario:
    """A scenario with every file read that it names: what a run is built from.

    Attributes:
        loaded: What the scenario's own file says, with the places where it says it.
        world: The world with terrain, objects, light and floor.
        terrain: Uneven ground; None without.
        objects: Names of the objects that the scenario places.
        devices: Models of the devices by name.
        robots: By name, the first is the main one.
        scripts: Operator scripts by robot.
        criteria: Success criteria by name.
        stop_condition: The expression that ends the run early; None without.
        script_documents: Script files as plain data by robot, for the YAML that repeats the run.
        plugin_values: Values of the keys that run plug-ins contribute, by key, with absolute paths.
    """

    loaded: LoadedScenario
    world: World
    terrain: Terrain | None
    objects: tuple[str, ...]
    devices: dict[str, Model]
    robots: dict[str, ResolvedRobot]
    scripts: dict[str, OperatorScript]
    criteria: dict[str, Criterion]
    stop_condition: Criterion | None
    script_documents: dict[str, Any]
    plugin_values: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.loaded.name

    @property
    def config(self) -> ScenarioConfig:
        """What the scenario says."""
        return self.loaded.config

    def to_yaml(self) -> str:
        """The YAML that ``roboyard run`` reads again for the same run: scripts and overrides are written out."""
        data = self.to_dict()
        for key in ("variants", "randomize"):
            data.pop(key, None)  # they are in place already
        origin = {"scenario": self.name, "smoke": self.loaded.is_smoke, **collect_provenance().to_dict()}
        data["provenance"] = {**origin, "seed": self.config.seed}
        text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
        return schema_comment("scenario") + text

    def to_dict(self) -> dict[str, Any]:
        """The scenario as plain data: complete, with scripts written out and paths that hold from anywhere."""
        data: dict[str, Any] = _remove_empty(dump(self.config))
        base_folder = self.loaded.base_folder
        data["world"] = _absolute_path(data["world"], base_folder)
        for name, robot in data.get("robots", {}).items():
            _write_out_calibration(robot, self.robots[name].package)
            robot["model"] = _absolute_path(robot["model"], base_folder)
        for model_entry in [*data.get("devices", {}).values(), *data.get("objects", {}).values()]:
            model_entry["model"] = _absolute_path(model_entry["model"], base_folder)
        for person in data.get("people", {}).values():
            if "animations" in person:
                person["animations"] = {
                    name: _absolute_path(file, base_folder) for name, file in person["animations"].items()
                }
            if "mission" in person:
                _resolve_mission(person, base_folder)
        for node in data.get("nodes", {}).values():
            module_path, colon, name = node["type"].rpartition(":")
            if module_path.endswith(".py"):
                node["type"] = f"{_absolute_path(module_path, base_folder)}{colon}{name}"
        for fault in data.get("faults", []):
            if fault.get("type") == "spawn" and "/" in fault["model"]:
                fault["model"] = _absolute_path(fault["model"], base_folder)
        data |= {key: _remove_empty(dump(value)) for key, value in self.plugin_values.items()}
        if "mission" in data:
            _resolve_mission(data, base_folder)
        for name, option in self.config.options.items():
            for choice in option.choices:  # also one that changes nothing is a choice
                data["options"][name]["choices"].setdefault(choice, {})
        operator = data.get("operator")
        if isinstance(operator, dict):
            data["operator"] = {robot: self.script_documents.get(robot, script) for robot, script in operator.items()}
        elif operator is not None:
            data["operator"] = self.script_documents.get(self.config.main_robot or "", operator)
        return data


def resolve_scenario(loaded: LoadedScenario) -> ResolvedScenario:
    """Find and read everything that a scenario names.

    Raises:
        InputError and its kinds: something that the scenario names is not there or not right.
    """
    config, base_folder = loaded.config, loaded.base_folder
    criteria, stop_condition = read_criteria(loaded)
    documents = _read_script_documents(loaded)
    tree = loaded.source_tree
    with errors_located_at(tree, "world"):
        world_file = WORLDS.resolve(config.world, base_folder)
    world = load_world(world_file)
    terrain = None if config.terrain is None else config.terrain.generate(config.seed)
    if terrain is not None:
        world = world_with_terrain(world, terrain)
    plugin_values = _resolve_plugin_values(loaded)
    world = _transform_world(loaded, plugin_values, world)
    n_world_models = len(world.models)
    with errors_located_at(tree):
        world = add_objects_and_appearance(world, config.objects, config.appearance, config.seed, base_folder)
    packages: dict[tuple[object, ...], RobotPackage] = {}
    return ResolvedScenario(
        loaded=loaded,
        world=world,
        terrain=terrain,
        objects=tuple(placed.name for placed in world.models[n_world_models:]),
        devices={name: _load_device(name, device.model, loaded) for name, device in config.devices.items()},
        robots={
            name: ResolvedRobot(robot, _load_package(name, robot, loaded, packages, plugin_values))
            for name, robot in config.robots.items()
        },
        scripts=_read_scripts(loaded, documents),
        criteria=criteria,
        stop_condition=stop_condition,
        script_documents={robot: node.to_data() for robot, node in documents.items()},
        plugin_values=plugin_values,
    )


def _load_device(name: str, model: str, loaded: LoadedScenario) -> Model:
    with errors_located_at(loaded.source_tree, f"devices.{name}.model"):
        return load_model(DEVICES.resolve(model, loaded.base_folder))


def _load_package(
    name: str,
    config: ScenarioRobotConfig,
    loaded: LoadedScenario,
    packages: dict[tuple[object, ...], RobotPackage],
    plugin_values: Mapping[str, Any],
) -> RobotPackage | None:
    """Load a robot's package; robots of one kind share what ``packages`` holds already."""
    if world_model_name(config.model):
        return None
    tree = loaded.source_tree
    key = (config.model, *sorted(config.xacro_args.items()), config.repair)
    with errors_located_at(tree, f"robots.{name}.model"):
        if key not in packages:
            packages[key] = load_robot(config.model, loaded.base_folder, config.xacro_args, repair=config.repair)
    with errors_located_at(tree, f"robots.{name}"):
        package = packages[key].with_overrides(config.parameters, config.remap, loaded.robot_source(name))
    with errors_located_at(tree, f"robots.{name}.nodes"):
        package.select_nodes(config.nodes)
    return _with_plugin_parameters(package, name, loaded, plugin_values)


@dataclass(frozen=True)
class _ScenarioRobot(DescribedRobot):
    """A robot of a scenario, as keys of run plug-ins see it."""

    is_main: bool

    @property
    def node_types(self) -> dict[str, str]:
        """Types of the nodes that it offers, by name."""
        return {name: node.type for name, node in self.package.config.nodes.items()}

    def node_parameters(self, name: str) -> dict[str, Any]:
        """Return the parameters of a node that its package and the scenario state."""
        return self.package.node(name).parameters


def _resolve_plugin_values(loaded: LoadedScenario) -> dict[str, Any]:
    """Return the values of the keys that run plug-ins contribute, by key, with the files that they name found."""

    def find_absolute_file(name: str) -> Path:
        return find_file(name, loaded.base_folder).resolve()

    stated = loaded.config.plugin_values()
    keys = scenario_keys() if stated else {}
    values = {}
    for key, value in stated.items():
        with errors_located_at(loaded.source_tree, key):
            values[key] = keys[key].resolve(value, find_absolute_file)
    return values


def _transform_world(loaded: LoadedScenario, plugin_values: Mapping[str, Any], world: World) -> World:
    for key, value in plugin_values.items():
        with errors_located_at(loaded.source_tree, key):
            world = scenario_keys()[key].transform_world(value, world, loaded.config.seed)
    return world


def _with_plugin_parameters(
    package: RobotPackage, name: str, loaded: LoadedScenario, plugin_values: Mapping[str, Any]
) -> RobotPackage:
    """Return a robot's package with the parameters that keys of run plug-ins set for its nodes."""
    if not plugin_values:
        return package
    config = loaded.config.robots[name]
    model = package.load_model(config.xacro_args, repair=config.repair)
    for key, value in plugin_values.items():
        with errors_located_at(loaded.source_tree, key):
            robot = _ScenarioRobot(package, model, name == loaded.config.main_robot)
            package = package.with_overrides(scenario_keys()[key].node_parameters(value, robot), {})
    return package


def read_criteria(loaded: LoadedScenario) -> tuple[dict[str, Criterion], Criterion | None]:
    """The criteria by name, and the one that ends the run; their metrics are checked.

    Raises:
        ConfigError: one is no expression or uses a metric that the run will not have.
    """
    config = loaded.config
    metrics = metric_names(tuple(config.robots))

    def locate(key: str) -> str:
        location = loaded.source_location(key)
        return f"{location}, {key}" if location else key

    criteria = {name: Criterion(text, locate(f"criteria.{name}")) for name, text in config.criteria.items()}
    stop_condition = Criterion(config.stop_when, locate("stop_when")) if config.stop_when else None
    comparison_metrics = [Criterion(name, locate("comparison_metrics")) for name in config.comparison_metrics]
    for criterion in [*criteria.values(), *([stop_condition] if stop_condition else []), *comparison_metrics]:
        criterion.validate_names(metrics)
    return criteria, stop_condition


def read_scripts(loaded: LoadedScenario) -> dict[str, OperatorScript]:
    """The operator's script for each robot that has one. Raises ConfigError, InputError."""
    return _read_scripts(loaded, _read_script_documents(loaded))


def _script_sources(config: ScenarioConfig) -> dict[str, Any]:
    """What the key ``operator`` says for each robot: a path, steps, or a script."""
    if config.operator is None:
        return {}
    if isinstance(config.operator, dict):
        return dict(config.operator)
    return {config.main_robot: config.operator} if config.main_robot else {}


def _read_script_documents(loaded: LoadedScenario) -> dict[str, YamlNode]:
    """The script files, read, for each robot whose script is a file. Raises ConfigError, InputError."""
    documents: dict[str, YamlNode] = {}
    for robot, source in _script_sources(loaded.config).items():
        if isinstance(source, str):
            key = f"operator.{robot}" if isinstance(loaded.config.operator, dict) else "operator"
            with errors_located_at(loaded.source_tree, key):
                file = find_file(source, loaded.base_folder)
            documents[robot] = read_yaml(file)
    return documents


def _read_scripts(loaded: LoadedScenario, documents: dict[str, YamlNode]) -> dict[str, OperatorScript]:
    """The operator's script for each robot that has one. Raises ConfigError."""
    scripts: dict[str, OperatorScript] = {}
    for robot, source in _script_sources(loaded.config).items():
        if robot in documents:
            scripts[robot] = parse_script(documents[robot])
        else:
            scripts[robot] = source if isinstance(source, OperatorScript) else OperatorScript(source)
    return scripts


def _resolve_mission(entry: dict[str, Any], base_folder: Path) -> None:
    mission = entry["mission"]
    file = str(find_mission_file(mission if isinstance(mission, str) else mission["file"], base_folder))
    entry["mission"] = file if isinstance(mission, str) else {**mission, "file": file}


def _write_out_calibration(robot: dict[str, Any], package: RobotPackage | None) -> None:
    """Write the numbers of a stored calibration, which may change later; what the scenario says takes precedence."""
    if package is None or not package.calibrated_parameters:
        return
    parameters = robot.get("parameters", {})
    robot["parameters"] = {
        **parameters,
        **{node: {**values, **parameters.get(node, {})} for node, values in package.calibrated_parameters.items()},
    }


def _absolute_path(name: str, base_folder: Path) -> str:
    """A path as it holds from anywhere; a name as it is."""
    file, mark, number = name.rpartition("#") if is_barn_world(name) else (name, "", "")
    if "/" in file or (base_folder / file).is_file():
        return f"{find_file(file, base_folder).resolve()}{mark}{number}"
    return name


def _remove_empty(data: Any) -> Any:
    """Without keys that say nothing (null, empty mapping, empty text): they are their defaults."""
    if isinstance(data, dict):
        cleaned = {key: _remove_empty(value) for key, value in data.items()}
        return {key: value for key, value in cleaned.items() if value is not None and value not in ({}, "")}
    return [_remove_empty(value) for value in data] if isinstance(data, list) else data
