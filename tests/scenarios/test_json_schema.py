"""What the JSON Schema of scenarios refuses, `roboyard check scenario` refuses too, and names the same key."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.harness.live_bus import run_cli

from roboyard.config import parse_yaml
from roboyard.errors import ConfigError, RoboyardError
from roboyard.scenarios import check_scenario, load_scenario
from roboyard.scenarios.json_schema import scenario_json_schema

GOOD = """\
summary: A rover, a person and a box
world: empty
robots:
  rover: {model: rover, pose: [0, 0, 90 deg], nodes: [drive, arbiter], parameters: {drive: {timeout: 1.0}}}
devices:
  belt: {model: conveyor, pose: [5, 0, 0], initial_command: 0.1}
people:
  anna: {pose: [3, 3, 0], height: 1.7 m, schedule: [{walk: [3, 4]}]}
objects:
  box: {model: shelf, sector: {radius: [2 m, 300 cm]}}
appearance: {light_scale: [0.5, 1]}
operator: [{drive: {linear: 0.5 m/s, duration: 2 s}}]
nodes:
  odom: {type: static_transform, parameters: {child_frame_id: it, pose: [0, 0, 0, 0, 0, 0]}}
faults:
  - {time: 1.5 s, type: spawn, model: box, pose: [6, 0.2, 0]}
  - {time: 1 s, type: sensor_dropout, sensor: lidar, duration: 0.5 s}
duration: 2 min
criteria: {success: path_length > 1}
randomize: {faults.0.time: [1, 2]}
record: {camera_rate: 1 Hz, exclude_topics: [/scan]}
video: {view: top, width: 320}
options:
  load: {choices: {light: {}, heavy: {objects: {box: {count: 2}}}}}
  speed: {key: video.speed, allowed: [1.0, 2.0]}
variants:
  smoke: {duration: 2 s, robots: {rover: {pose: [1, 0, 0]}}, criteria: {success: path_length >= 0}}
  substituted: {robots: {rover: {nodes: default}}}
"""
WRONG = [
    ("world: empty", "wrold: empty", "wrold"),
    ("world: empty\n", "", "world"),
    ("duration: 2 min\n", "", "duration"),
    ("duration: 2 min", "duration: 2 m", "duration"),
    ("duration: 2 min", "duration: soon", "duration"),
    ("duration: 2 min", "duration: [2]", "duration"),
    ("duration: 2 min", "duration: -2", "duration"),
    ("model: rover, ", "", "model"),
    ("model: rover, ", "model: 3, ", "model"),
    ("model: rover, ", "mdoel: rover, ", "mdoel"),
    ("90 deg]", "90 kg]", "pose"),
    ("[0, 0, 90 deg]", "[0, 0]", "pose"),
    ("[0, 0, 90 deg]", "fre", "pose"),
    ("nodes: [drive, arbiter]", "nodes: {drive: 1}", "nodes"),
    ("parameters: {drive: {timeout: 1.0}}", "parameters: [drive]", "parameters"),
    ("  rover: {model", "  2nd: {model", "2nd"),
    ("initial_command: 0.1", "initial_command: 1000", "initial_command"),
    ("height: 1.7 m", "height: 1.7 kg", "height"),
    ("schedule: [{walk: [3, 4]}]", "schedule: {walk: [3, 4]}", "schedule"),
    ("radius: [2 m, 300 cm]", "radius: [2 m]", "radius"),
    ("light_scale: [0.5, 1]", "light_scale: bright", "light_scale"),
    ("drive: {linear: 0.5 m/s", "drvie: {linear: 0.5 m/s", "drvie"),
    ("linear: 0.5 m/s", "linear: 0.5 kg", "linear"),
    ("type: static_transform, ", "", "type"),
    ("type: spawn", "type: explode", "type"),
    ("time: 1.5 s, ", "", "time"),
    ("sensor: lidar, ", "", "sensor"),
    ("{faults.0.time: [1, 2]}", "{faults.0.time: 3}", "faults.0.time"),
    ("camera_rate: 1 Hz", "camera_rate: true", "camera_rate"),
    ("exclude_topics: [/scan]", "exclude_topics: /scan", "exclude_topics"),
    ("view: top", "view: side", "view"),
    ("width: 320", "width: 320.5", "width"),
    ("count: 2", "cuont: 2", "cuont"),
    ("allowed: [1.0, 2.0]", "allowed: 1.0", "allowed"),
    ("smoke: {duration: 2 s", "smoke: {duration: 2 kg", "duration"),
    ("rover: {pose: [1, 0, 0]}", "rover: {pose: [1]}", "pose"),
    ("criteria: {success: path_length >=", "criterai: {success: path_length >=", "criterai"),
    ("rover: {nodes: default}", "rover: {nods: default}", "nods"),
    ("substituted: {", "substitute: {", "substitute"),
    ("record: {camera_rate", "record: {every: 1, camera_rate", "every"),
    ("criteria: {success: path_length > 1}", "criteria: [path_length > 1]", "criteria"),
    ("summary: A rover", "extends: 3\nsummary: A rover", "extends"),
]


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(scenario_json_schema())


def schema_keys(data: Any) -> set[str]:
    """Keys on the paths of the schema's errors, and keys that are unknown or missing, in all alternatives."""
    keys: set[str] = set()
    pending = list(validator().iter_errors(data))
    while pending:
        error = pending.pop()
        keys |= {str(one) for one in error.absolute_path}
        keys |= set(re.findall(r"'([^']+)'", error.message))
        pending += error.context or []
    return keys


def test_scenario_without_mistakes_is_accepted_by_both(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD)
    assert not schema_keys(parse_yaml(GOOD).to_data())
    assert check_scenario(tmp_path / "mine.yaml").scenario == "mine"


def test_schema_is_valid() -> None:
    Draft202012Validator.check_schema(scenario_json_schema())


@pytest.mark.parametrize(("old", "new", "key"), WRONG)
def test_wrong_scenario_is_refused_by_schema_and_program(old: str, new: str, key: str, tmp_path: Path) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    assert key in schema_keys(parse_yaml(text).to_data())
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(RoboyardError) as caught:
        check_scenario(path)
    message = str(caught.value)
    line = 1 + text[: next(i for i, (a, b) in enumerate(zip(GOOD, text, strict=False)) if a != b)].count("\n")
    location = re.search(rf"{re.escape(str(path))}:(\d+)", message)
    assert location is not None
    assert key in message
    if new:
        assert int(location[1]) == line


def test_program_says_what_check_says(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace("duration: 2 min", "duration: 2 m"))
    with pytest.raises(ConfigError) as caught:
        load_scenario(path)
    result = run_cli("check", "scenario", str(path))
    assert (result.code, result.err.strip()) == (2, f"error: {caught.value}")


@pytest.mark.parametrize(
    ("old", "new", "variant"),
    [
        ("smoke: {duration: 2 s", "smoke: {duration: 2 kg", "variants.smoke"),
        ("path_length >= 0", "path_lenght >= 0", "variants.smoke"),
        ("smoke: {duration: 2 s", "smoke: {operator: nothing.yaml, duration: 2 s", "variants.smoke"),
        ("rover: {nodes: default}", "rover: {nods: default}", "variants.substituted"),
        ("count: 2", "count: many", '--set load="heavy"'),
        ("allowed: [1.0, 2.0]", "allowed: [1.0, -2.0]", "--set speed=-2.0"),
        ("variants:\n", "variants:\n  unused: {}\n", ""),
        (
            "  smoke: {duration: 2 s,", "  smoke: {duration: 2 s, options: {load: {choices: {heavy: {seed: x}}}},",
            'variants.smoke, --set load="heavy"',
        ),
    ],
)  # fmt: skip
def test_check_reads_every_variant_and_names_it(old: str, new: str, variant: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    path.write_text(text)
    with pytest.raises(RoboyardError) as caught:
        check_scenario(path)
    prefix = f"{variant}: " if variant else str(path)
    assert str(caught.value).startswith(prefix)
    if "operator" not in new and "speed" not in variant:  # the value of an option is given as by --set
        assert str(path) in str(caught.value)


def test_parts_of_scenarios_need_no_required_keys_but_know_all_keys() -> None:
    part = {"extends": "base.yaml", "robots": {"rover": {"pose": [1, 0, 0]}}}
    assert not schema_keys(part)
    assert "wrold" in schema_keys({**part, "wrold": "empty"})
    assert "nods" in schema_keys({**part, "robots": {"rover": {"nods": []}}})
    assert "time" in schema_keys({**part, "faults": [{"type": "spawn"}]})
