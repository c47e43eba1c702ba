"""Resolves a loaded scenario: criteria and operator scripts read, paths absolute, calibrations written out; the YAML
that repeats a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from roboyard.bringup.calibration_store import calibrated_parameters, load_calibration, may_have_calibration
from roboyard.bringup.catalog import find_file
from roboyard.bringup.robot_loader import load_robot
from roboyard.config import dump, read_yaml
from roboyard.scenarios.criteria import Criterion
from roboyard.scenarios.evaluator import metric_names
from roboyard.scenarios.loading import LoadedScenario
from roboyard.scenarios.missions import find_mission_file
from roboyard.scenarios.operator import OperatorScript, load_script
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.world.barn import is_barn_world


def resolve_to_yaml(loaded: LoadedScenario) -> str:
    """YAML that ``roboyard run`` takes again and that gives the same run: scripts written out, overrides in place."""
    data = resolve_to_dict(loaded)
    for key in ("variants", "randomize"):
        data.pop(key, None)  # they are in place already
    origin = {"scenario": loaded.name, "smoke": loaded.is_smoke, **collect_provenance().to_dict()}
    data["provenance"] = {**origin, "seed": loaded.config.seed}
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    return text


def resolve_to_dict(loaded: LoadedScenario) -> dict[str, Any]:
    """The scenario as plain data: complete, with scripts written out and paths that hold from anywhere."""
    data: dict[str, Any] = _remove_empty(dump(loaded.config))
    base_folder = loaded.base_folder
    data["world"] = _absolute_path(data["world"], base_folder)
    for robot in data.get("robots", {}).values():
        _resolve_calibration(robot, base_folder)
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
    if "movement" in data:
        data["movement"] = str(find_file(data["movement"], base_folder).resolve())
    if "mission" in data:
        _resolve_mission(data, base_folder)
    for name, option in loaded.config.options.items():
        for choice in option.choices:  # also one that changes nothing is a choice
            data["options"][name]["choices"].setdefault(choice, {})
    operator = data.get("operator")
    if isinstance(operator, dict):
        data["operator"] = {robot: _inline_script(script, base_folder) for robot, script in operator.items()}
    elif operator is not None:
        data["operator"] = _inline_script(operator, base_folder)
    return data


def _resolve_mission(entry: dict[str, Any], base_folder: Path) -> None:
    mission = entry["mission"]
    file = str(find_mission_file(mission if isinstance(mission, str) else mission["file"], base_folder))
    entry["mission"] = file if isinstance(mission, str) else {**mission, "file": file}


def _resolve_calibration(robot: dict[str, Any], base_folder: Path) -> None:
    """The numbers of a stored calibration, which may be another one day; what the scenario says goes before."""
    package = (
        load_robot(robot["model"], base_folder, robot.get("xacro_args"), use_calibration=False)
        if may_have_calibration(robot["model"], base_folder)
        else None
    )
    calibration, _ = load_calibration(package) if package is not None else (None, ())
    if package is None or calibration is None:
        return
    parameters = robot.get("parameters", {})
    calibrated = calibrated_parameters(package, calibration)
    robot["parameters"] = {
        **parameters,
        **{node: {**values, **parameters.get(node, {})} for node, values in calibrated.items()},
    }


def _absolute_path(name: str, base_folder: Path) -> str:
    """A path as it holds from anywhere; a name as it is."""
    file, mark, number = name.rpartition("#") if is_barn_world(name) else (name, "", "")
    if "/" in file or (base_folder / file).is_file():
        return f"{find_file(file, base_folder).resolve()}{mark}{number}"
    return name


def _inline_script(source: Any, base_folder: Path) -> Any:
    return read_yaml(find_file(source, base_folder)).to_data() if isinstance(source, str) else source


def _remove_empty(data: Any) -> Any:
    """Without keys that say nothing (null, empty mapping, empty text): they are their defaults."""
    if isinstance(data, dict):
        cleaned = {key: _remove_empty(value) for key, value in data.items()}
        return {key: value for key, value in cleaned.items() if value is not None and value not in ({}, "")}
    return [_remove_empty(value) for value in data] if isinstance(data, list) else data


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
    """The operator's script for each robot that has one.

    Raises:
        ConfigError, InputError: a script is not there or not right.
    """
    operator = loaded.config.operator
    if operator is None:
        return {}
    main_robot = loaded.config.main_robot
    by_robot = operator if isinstance(operator, dict) else {main_robot: operator} if main_robot else {}
    scripts: dict[str, OperatorScript] = {}
    for robot, source in by_robot.items():
        if isinstance(source, str):
            scripts[robot] = load_script(find_file(source, loaded.base_folder))
        else:
            scripts[robot] = source if isinstance(source, OperatorScript) else OperatorScript(source)
    return scripts
