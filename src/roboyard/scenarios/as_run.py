"""The scenario as it was run: complete, with paths that hold from anywhere, and how it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from roboyard.config import dump, read_yaml
from roboyard.scenarios.barn import is_numbered
from roboyard.scenarios.calibrated import may_exist, parameters_of, stored
from roboyard.scenarios.catalog import find_file, find_robot
from roboyard.scenarios.missions import mission_file
from roboyard.scenarios.provenance import provenance
from roboyard.scenarios.spec import Spec


def scenario_as_run(spec: Spec) -> str:
    """YAML that ``roboyard run`` takes again and that gives the same run: scripts written out, overrides in place."""
    data = plain_scenario(spec)
    for key in ("smoke", "elsewhere", "draws"):
        data.pop(key, None)  # they are in place already
    about = {"scenario": spec.name, "smoke": spec.smoke, **provenance().to_dict()}
    data["run"] = {**about, "seed": spec.scenario.seed}
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    return text


def plain_scenario(spec: Spec) -> dict[str, Any]:
    """The scenario as plain data: complete, with scripts written out and paths that hold from anywhere."""
    data: dict[str, Any] = _without_nothing(dump(spec.scenario))
    base = spec.base
    data["world"] = _absolute(data["world"], base)
    for robot in data.get("robots", {}).values():
        _write_out_calibration(robot, base)
        robot["model"] = _absolute(robot["model"], base)
    for thing in [*data.get("furniture", {}).values(), *data.get("things", {}).values()]:
        thing["model"] = _absolute(thing["model"], base)
    for person in data.get("people", {}).values():
        if "clips" in person:
            person["clips"] = {name: _absolute(file, base) for name, file in person["clips"].items()}
        if "mission" in person:
            _write_out_mission(person, base)
    for node in data.get("nodes", {}).values():
        place, colon, name = node["use"].rpartition(":")
        if place.endswith(".py"):
            node["use"] = f"{_absolute(place, base)}{colon}{name}"
    for fault in data.get("faults", []):
        if fault.get("what") == "spawn" and "/" in fault["model"]:
            fault["model"] = _absolute(fault["model"], base)
    if "movement" in data:
        data["movement"] = str(find_file(data["movement"], base).resolve())
    if "mission" in data:
        _write_out_mission(data, base)
    for name, option in spec.scenario.options.items():
        for choice in option.choices:  # also one that changes nothing is a choice
            data["options"][name]["choices"].setdefault(choice, {})
    operator = data.get("operator")
    if isinstance(operator, dict):
        data["operator"] = {robot: _script(script, base) for robot, script in operator.items()}
    elif operator is not None:
        data["operator"] = _script(operator, base)
    return data


def _write_out_mission(who: dict[str, Any], base: Path) -> None:
    said = who["mission"]
    file = str(mission_file(said if isinstance(said, str) else said["file"], base))
    who["mission"] = file if isinstance(said, str) else {**said, "file": file}


def _write_out_calibration(robot: dict[str, Any], base: Path) -> None:
    """The numbers of a stored calibration, which may be another one day; what the scenario says goes before."""
    package = (
        find_robot(robot["model"], base, robot.get("arguments"), calibrated=False)
        if may_exist(robot["model"], base)
        else None
    )
    found, _ = stored(package) if package is not None else (None, ())
    if package is None or found is None:
        return
    given = robot.get("parameters", {})
    numbers = parameters_of(package, found)
    robot["parameters"] = {**given, **{node: {**values, **given.get(node, {})} for node, values in numbers.items()}}


def _absolute(name: str, base: Path) -> str:
    """A path as it holds from anywhere; a name as it is."""
    file, mark, number = name.rpartition("#") if is_numbered(name) else (name, "", "")
    if "/" in file or (base / file).is_file():
        return f"{find_file(file, base).resolve()}{mark}{number}"
    return name


def _script(source: Any, base: Path) -> Any:
    return read_yaml(find_file(source, base)).to_data() if isinstance(source, str) else source


def _without_nothing(data: Any) -> Any:
    """Without keys that say nothing (null, empty mapping, empty text): they are their defaults."""
    if isinstance(data, dict):
        cleaned = {key: _without_nothing(value) for key, value in data.items()}
        return {key: value for key, value in cleaned.items() if value is not None and value not in ({}, "")}
    return [_without_nothing(value) for value in data] if isinstance(data, list) else data
