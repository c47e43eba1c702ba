"""A scenario builds on another file, and an error blames the file or option that really holds the value."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from roboyard.errors import ConfigError, InputError, RoboyardError, UnknownNameError
from roboyard.scenarios import check_scenario, load_scenario

BASE = """\
world: empty
duration: 4 s
robots:
  rover: {model: rover, parameters: {drive: {timeout: 1.0}}}
people:
  anna:
    pose: [3, 3, 0]
    height: 1.7
criteria: {covers_distance: path_length > 1}
variants:
  smoke: {duration: 1 s}
"""
CHILD = """\
extends: base.yaml
summary: What it is
duration: 3 s
robots:
  rover: {pose: [1, 0, 0]}
options:
  how:
    choices:
      plain: {}
      other:
        people: {anna: {height: 1.6}}
  width:
    key: video.width
    default: 640
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "child.yaml").write_text(CHILD)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_extending_scenario_is_merged_over_its_base(folder: Path) -> None:
    loaded = load_scenario(folder / "child.yaml")
    config = loaded.config
    assert (loaded.name, config.world, config.duration, config.summary) == ("child", "empty", 3.0, "What it is")
    assert config.robots["rover"].pose == (1.0, 0.0, 0.0)
    assert config.robots["rover"].parameters == {"drive": {"timeout": 1.0}}
    assert config.criteria == {"covers_distance": "path_length > 1"}
    assert config.extends is None
    assert load_scenario(folder / "child.yaml", smoke=True).config.duration == 1.0
    assert loaded.source_location("duration") == f"{folder / 'child.yaml'}:3"
    assert loaded.source_location("robots.rover.model") == f"{folder / 'base.yaml'}:4"


def test_criteria_of_the_extending_scenario_replace_those_of_its_base(folder: Path) -> None:
    change(folder / "child.yaml", "options:", "criteria: {no_contacts: contacts == 0}\noptions:")
    assert load_scenario(folder / "child.yaml").config.criteria == {"no_contacts": "contacts == 0"}


def test_extending_the_written_out_scenario_gives_the_same(folder: Path) -> None:
    plain = load_scenario(folder / "child.yaml")
    (folder / "flat.yaml").write_text(plain.to_yaml())
    (folder / "thin.yaml").write_text("extends: flat.yaml\n")
    assert load_scenario(folder / "thin.yaml").config == plain.config


def test_paths_of_a_base_in_another_folder_are_relative_to_it(folder: Path) -> None:
    below = folder / "bases"
    below.mkdir()
    (below / "script.yaml").write_text("[{wait: 1 s}]\n")
    (below / "base.yaml").write_text(BASE + "operator: {rover: script.yaml}\n")
    (below / "node.py").write_text("")
    change(below / "base.yaml", "smoke: {", "smoke: {nodes: {mine: {type: 'node.py:Mine'}}, ")
    change(folder / "child.yaml", "base.yaml", "bases/base.yaml")
    assert load_scenario(folder / "child.yaml").config.operator == {"rover": str(below / "script.yaml")}
    smoke = load_scenario(folder / "child.yaml", smoke=True).config
    assert smoke.nodes["mine"].type == f"{below / 'node.py'}:Mine"
    assert check_scenario(folder / "child.yaml").scenario == "child"


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("child.yaml", ConfigError, "extends itself: child.yaml → child.yaml"),
        ("rover-dirve", UnknownNameError, "did you mean 'rover-drive'"),
        ("nothing.yaml", InputError, "there is no file nothing.yaml"),
        ("[1]", ConfigError, "is no name or path"),
        ("empty.yaml", ConfigError, "is no scenario"),
    ],
)
def test_wrong_bases_are_refused_where_they_are_named(
    folder: Path, name: str, error: type[RoboyardError], message: str
) -> None:
    (folder / "empty.yaml").write_text("[]\n")
    change(folder / "child.yaml", "base.yaml", name)
    with pytest.raises(error) as caught:
        load_scenario(folder / "child.yaml")
    assert message in str(caught.value)
    assert ("child.yaml:1, extends" if name != "empty.yaml" else "empty.yaml") in str(caught.value)


def test_circle_of_files_is_refused(folder: Path) -> None:
    (folder / "base.yaml").write_text("extends: child.yaml\n")
    with pytest.raises(ConfigError, match=r"base.yaml:1, extends: .*child.yaml → base.yaml → child.yaml"):
        load_scenario(folder / "child.yaml")


def blamed(path: Path, **options: object) -> str:
    with pytest.raises(RoboyardError) as caught:
        check_scenario(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "options", "location"),
    [
        # of a base
        ("base.yaml", "duration: 4 s", "seed: -1", {}, "base.yaml:2, seed: "),
        ("base.yaml", "timeout: 1.0", "timeout: -1", {}, "base.yaml:4, robots.rover.parameters.drive.timeout: "),
        ("base.yaml", "timeout: 1.0", "timeoutt: 1", {}, "base.yaml:4, robots.rover.parameters.drive.timeoutt: "),
        ("base.yaml", "height: 1.7", "height: 1.7\n    sex: male", {}, "base.yaml:9, people.anna.sex: "),
        ("base.yaml", "path_length", "path_lenght", {}, "base.yaml:9, criteria.covers_distance: "),
        # of the extending file
        ("child.yaml", "duration: 3 s", "duration: 3 m", {}, "child.yaml:3, duration: "),
        ("child.yaml", "{pose: [1, 0, 0]}", "{pose: [1]}", {}, "child.yaml:5, robots.rover.pose: "),
        ("child.yaml", "{pose: [1, 0, 0]}", "{nodes: [nix]}", {}, "child.yaml:5, robots.rover.nodes: "),
        ("child.yaml", "summary:", "world: nix\nsummary:", {}, "child.yaml:2, world: "),
        ("child.yaml", "summary:", "operator: nix.yaml\nsummary:", {}, "child.yaml:2, operator: "),
        ("child.yaml", "summary:", "mission: {file: nix.xml}\nsummary:", {}, "child.yaml:2, mission"),
        ("child.yaml", "summary:", "devices: {door: {model: nix}}\nsummary:", {}, "child.yaml:2, devices.door"),
        ("child.yaml", "summary:", "objects: {it: {model: nix, pose: [1, 1, 0]}}\nsummary:", {}, "child.yaml:2, obj"),
        ("child.yaml", "summary:", "nodes: {it: {type: nix}}\nsummary:", {}, "child.yaml:2, nodes.it"),
        (
            "child.yaml", "summary:", "nodes:\n  it:\n    type: amcl\n    robot: rover\n    parameters:\n"
            "      max_particles: -1\nsummary:", {}, "child.yaml:7, nodes.it.parameters.max_particles: ",
        ),
        (
            "child.yaml", "summary:", "randomize: {video.width: [641, 641]}\nvideo: {width: 640}\nsummary:", {},
            "child.yaml:2, randomize.video.width",
        ),
        # of an option's choice, of an option's value
        (
            "child.yaml", "choices:\n      plain: {}\n      other:", "default: other\n    choices:\n      other:\n"
            "        seed: x", {}, "child.yaml:11, seed: ",
        ),
        ("child.yaml", "default: 640", "default: 641", {}, "child.yaml:14, options.width.default"),
        ("child.yaml", "default: 640", "default: 640\n    allowed: [320]", {}, "child.yaml:14, options.width.default"),
        ("child.yaml", "choices:", "key: seed\n    choices:", {}, "child.yaml:8, options.how.key: "),
        ("child.yaml", "height: 1.6", "percentile: 5, sex: male", {"overrides": ("how=other",)}, "child.yaml:11, p"),
        ("child.yaml", "", "", {"overrides": ("how=otherr",)}, "--set how: "),
        ("child.yaml", "", "", {"overrides": ("width=641",)}, "--set width, video.width: "),
        # of the command line
        ("child.yaml", "", "", {"overrides": ("video.width=641",)}, "--set video.width: "),
        ("child.yaml", "", "", {"overrides": ("people.anna.sex=male",)}, "--set people.anna.sex: "),
        (
            "child.yaml", "", "", {"overrides": ("robots.rover.parameters.drive.timeout=-1",)},
            "--set robots.rover.parameters.drive.timeout: ",
        ),
        ("child.yaml", "", "", {"overrides": ("robots.rover.model=nix",)}, "--set robots.rover.model: "),
        ("child.yaml", "", "", {"overrides": ("world=nix",)}, "--set world: "),
    ],
)  # fmt: skip
def test_error_blames_the_value_where_it_was_written(
    folder: Path, file: str, old: str, new: str, options: dict[str, object], location: str
) -> None:
    if old:
        change(folder / file, old, new)
    expected = location if location.startswith("--") else f"{folder}/{location}"
    assert blamed(folder / "child.yaml", **options).startswith(expected)


def test_error_of_a_variant_blames_the_variant(folder: Path) -> None:
    change(folder / "child.yaml", "options:", "variants:\n  substituted:\n    video: {height: 361}\noptions:")
    location = f"{folder}/child.yaml:8, video.height: "
    with pytest.raises(ConfigError) as caught:
        load_scenario(folder / "child.yaml", world="arena")
    assert str(caught.value).startswith(location)


def test_error_of_an_operator_script_blames_the_script(folder: Path) -> None:
    (folder / "script.yaml").write_text("- {wait: 1 s}\n- {drive: {linear: 1 kg}}\n")
    change(folder / "child.yaml", "options:", "operator: script.yaml\noptions:")
    assert blamed(folder / "child.yaml").startswith(f"{folder}/script.yaml:2, steps[1].drive.linear: ")


def test_error_of_a_robot_blames_the_file_that_states_the_value(folder: Path) -> None:
    model = "<robot name='it'><link name='base_link'/></robot>"
    (folder / "it.urdf").write_text(model)
    base = {"description": "it.urdf", "nodes": {"odom": {"type": "static_transform", "parameters": {"pose": [0] * 6}}}}
    robot = {"description": "it.urdf", "extends": "base_robot.yaml", "nodes": {}, "autostart": ["odom"]}

    def check(**changes: object) -> str:
        (folder / "base_robot.yaml").write_text(yaml.safe_dump({**base, **changes}))
        (folder / "robot.yaml").write_text(yaml.safe_dump(robot))
        (folder / "it.yaml").write_text("world: empty\nduration: 1\nrobots: {it: {model: robot.yaml}}\n")
        return blamed(folder / "it.yaml")

    assert "base_robot.yaml:3, footprint: has 2 corners" in check(footprint=[[0, 0], [1, 1]])
    assert "/base_robot.yaml:2, command_chain: no node 'nix'" in check(command_chain=["nix"])
    robot["autostart"] = ["nix"]
    assert "/robot.yaml:2, autostart: no node 'nix'" in check()
    robot["autostart"] = ["odom"]
    wrong = {"odom": {"type": "static_transform", "parameters": {"pose": [0] * 6, "rate": -1}}}
    assert "/base_robot.yaml:12, nodes.odom.parameters.rate: " in check(nodes=wrong)
