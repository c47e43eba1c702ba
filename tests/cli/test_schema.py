"""`roboyard schema`: schemas of all kinds of files, to which the files of the package keep."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.harness.live_bus import run_cli

from roboyard.bringup import catalog
from roboyard.cli.commands.schema import FILE_TYPES, make_schema
from roboyard.config import read_yaml

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "roboyard"
FILES = {
    "scenario": "scenarios/library/*.yaml",
    "robot": "robots/*/*.yaml",
    "groups": "robots/*/groups.yaml",
    "legs": "robots/*/legs.yaml",
    "servos": "robots/*/servos.yaml",
    "operator": "scenarios/library/operators/*.yaml",
    "tasks": "scenarios/library/missions/*.yaml",
    "animation": "people/clips/*.yaml",
    "gamepad": "control/teleoperation/maps/*.yaml",
}


def files_of(kind: str) -> list[Path]:
    found = sorted(PACKAGE.glob(FILES[kind]))
    return [path for path in found if path.stem == path.parent.name] if kind == "robot" else found


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(make_schema(kind))


def without_required(schema: dict[str, Any]) -> Draft202012Validator:
    """For a part of a file's keys."""
    return Draft202012Validator({key: value for key, value in schema.items() if key != "required"})


def errors(found: Draft202012Validator, data: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in found.iter_errors(data)]


@pytest.mark.parametrize("kind", FILE_TYPES)
def test_schema_of_files_is_valid(kind: str) -> None:
    Draft202012Validator.check_schema(make_schema(kind))


@pytest.mark.parametrize("name", sorted(catalog.NODES.names()))
def test_schema_of_parameters_is_valid(name: str) -> None:
    schema = make_schema("node", name)
    Draft202012Validator.check_schema(schema)
    json.dumps(schema, allow_nan=False)
    defaults = {key: item["default"] for key, item in schema["properties"].items() if "default" in item}
    assert not errors(without_required(schema), defaults)


@pytest.mark.parametrize("kind", FILES)
def test_files_of_the_package_keep_to_their_schema(kind: str) -> None:
    paths = files_of(kind)
    assert paths
    for path in paths:
        data = read_yaml(path).to_data()
        assert not errors(validator(kind), data), path
        wrong = data | {"no_such_key": 1} if isinstance(data, dict) else [*data, {"no_such_key": 1}]
        assert errors(validator(kind), wrong), path


@pytest.mark.parametrize("path", files_of("robot"), ids=lambda path: path.stem)
def test_parameters_in_robot_files_keep_to_the_schemas_of_nodes(path: Path) -> None:
    for name, node in read_yaml(path).to_data().get("nodes", {}).items():
        schema = make_schema("node", node["type"])
        assert not errors(without_required(schema), node.get("parameters", {})), name


def test_command_lists_and_prints_schemas() -> None:
    listed = run_cli("schema")
    assert [line.split()[0] for line in listed.out.splitlines()] == [*FILE_TYPES, "node"]
    assert {one["name"] for one in run_cli("schema", "--json").json["kinds"]} == set(FILE_TYPES)
    for arguments in (("scenario",), ("node", "amcl")):
        assert json.loads(run_cli("schema", *arguments).out) == make_schema(*arguments)


def test_command_writes_all_schemas(tmp_path: Path) -> None:
    result = run_cli("schema", "--out", str(tmp_path / "schemas"), "--json")
    stems = [*FILE_TYPES, *(f"node-{name}" for name in catalog.NODES.names())]
    expected = {f"{stem}.schema.json" for stem in stems}
    assert {path.name for path in (tmp_path / "schemas").iterdir()} == expected
    assert len(result.json["files"]) == len(expected)
    assert json.loads((tmp_path / "schemas" / "node-amcl.schema.json").read_text("utf-8")) == make_schema(
        "node", "amcl"
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("scenari",), "did you mean 'scenario'"),
        (("scenario", "rover-drive"), "takes no name"),
        (("node",), "the name of the node is missing"),
        (("node", "amcll"), "did you mean 'amcl'"),
        (("node", "json:JSONDecoder"), "is no node"),
        (("scenario", "--out", "x"), "only one of"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: tuple[str, ...], expected: str) -> None:
    result = run_cli("schema", *arguments)
    assert result.code == 2
    assert expected in result.err
    assert len(result.err.splitlines()) == 1


def test_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run_cli("schema", "--out", str(tmp_path / "file"))
    assert (result.code, len(result.err.splitlines())) == (2, 1)


def test_list_shows_topics_and_parameters_of_a_node() -> None:
    output = run_cli("list", "nodes", "arbiter").out
    assert "cmd_vel_out, ~owner (std_msgs/String" in output
    assert "roboyard.safety.nodes.arbiter:ArbiterNode" in output
    node = run_cli("list", "nodes", "ground_truth_odometry", "--json").json["node"]
    rows = {row["key"]: row for row in node["parameters"]}
    assert rows.keys() == catalog.resolve_node_class("ground_truth_odometry").parameters_declared().keys()
    assert rows["noise_std"]["runtime"]
    assert not rows["rate"]["runtime"]
    assert rows["rate"]["expected"] == "a number in Hz, 0.1 to 1000"
    assert run_cli("list", "robots", "rover").code == 2
    assert run_cli("list", "nodes", "amcll").code == 2
