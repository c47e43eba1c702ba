"""`roboyard arm`: joints for poses, reach, and what is found out about a robot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.cli.app import app
from roboyard.errors import InputError, UnknownNameError
from roboyard.manipulation import load_groups
from roboyard.manipulation.collision.allowed_collisions import sample_allowed_pairs
from roboyard.manipulation.semantics.groups_file import format_groups


def run_arm(*words: str) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, ["arm", *words, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, json.loads(result.stdout.strip().splitlines()[-1])


def test_ik_solutions_put_the_tool_at_the_pose() -> None:
    groups = load_joint_groups("iisy")
    chain = groups.chain("arm")
    T = chain.forward(groups.group("arm").pose("home"))
    code, found = run_arm(
        "ik", "iisy", "--goal", f"{T[0, 3]} {T[1, 3]} {T[2, 3]} 3.141592653589793 0 0", "--seed-state", "home"
    )
    assert code == 0
    assert found["method"] == "spherical wrist"
    for q in found["solutions"]:
        reached = chain.forward(q)
        np.testing.assert_allclose(reached[:3, 3], T[:3, 3], atol=1e-6)


def test_ik_goal_out_of_reach_has_exit_code_1_and_nearest_pose() -> None:
    code, found = run_arm("ik", "youbot_arm", "--position", "0.25 0.1 0.2", "--axis", "1 -1 0")
    assert (code, found["solutions"], found["cause"]) == (1, [], "orientation")
    assert found["nearest"]["angle"] > 0.1
    assert CliRunner().invoke(app, ["arm", "ik", "youbot_arm", "--position", "2 0 0", "--axis", "1 0 0"]).exit_code == 1
    displayed = CliRunner().invoke(app, ["arm", "ik", "youbot_arm", "--position", "0.25 0 0.05", "--axis", "0 0 -1"])
    assert displayed.exit_code == 0
    assert "µm" in displayed.stdout


def test_reach_equals_length_of_links(tmp_path: Path) -> None:
    image = tmp_path / "reach.png"
    code, found = run_arm("workspace", "scitos_arm", "--samples", "20000", "--picture", str(image))
    assert code == 0
    assert 1.19 < found["max_reach"] <= 1.219 + 1e-9
    assert Image.open(image).getcolors(50) is None
    repeated = run_arm("workspace", "scitos_arm", "--samples", "20000")[1]
    assert repeated["volume"] == found["volume"]


def test_setup_file_reads_back_with_safe_pose(tmp_path: Path) -> None:
    out, image = tmp_path / "arm.yaml", tmp_path / "arm.png"
    code, found = run_arm("setup", "youbot_arm", "--samples", "2000", "--out", str(out), "--picture", str(image))
    assert code == 0
    assert found["groups"]["arm"]["tip"] == "gripper_tip"
    assert found["groups"]["arm"]["clearance"] > 0.01
    assert all(gains["pos_kp"] > 0.0 for gains in found["gains"].values())
    model = load_joint_groups("youbot_arm").model
    groups = load_groups(out, model)
    assert set(groups.group("arm").poses) >= {"safe"}
    assert groups.allowed_collisions == sample_allowed_pairs(groups, np.random.default_rng(0), 2000)
    assert Image.open(image).getcolors(50) is None


@pytest.mark.parametrize("name", ["scitos_arm", "iisy", "youbot"])
def test_groups_written_and_read_are_equal(tmp_path: Path, name: str) -> None:
    groups = load_joint_groups(name)
    path = tmp_path / "groups.yaml"
    path.write_text(format_groups(groups, "again"))
    repeated = load_groups(path, groups.model)
    assert repeated.allowed_collisions == groups.allowed_collisions
    assert repeated.grippers == groups.grippers
    assert repeated.max_acceleration == groups.max_acceleration
    for one, other in zip(groups.groups.values(), repeated.groups.values(), strict=True):
        assert (one.joints, one.base, one.tip, one.tool_axis, one.gripper) == (
            other.joints, other.base, other.tip, other.tool_axis, other.gripper
        )  # fmt: skip
        assert dict(one.poses) == dict(other.poses)
        assert one.tools.keys() == other.tools.keys()


@pytest.mark.parametrize("subcommand", ["ik", "workspace", "setup"])
def test_arm_commands_take_any_description(external_data: Path, subcommand: str) -> None:
    path = external_data / "descriptions/franka/franka_description/robots/panda/panda.expanded.urdf"
    more = {"ik": ["--position", "0.4 0.1 0.4", "--axis", "0 0 -1"], "workspace": ["--samples", "2000"],
            "setup": ["--samples", "100"]}[subcommand]  # fmt: skip
    code, found = run_arm(subcommand, str(path), *more)
    assert code == 0
    assert found["robot"] == "panda"


@pytest.mark.parametrize(
    ("words", "kind", "expected"),
    [
        (["ik", "nobody", "--goal", "0 0 0 0 0 0"], UnknownNameError, "nobody"),
        (["ik", "iisy"], InputError, "exactly one goal"),
        (["ik", "iisy", "--goal", "0 0 0"], InputError, "--goal"),
        (["ik", "iisy", "--goal", "0 0 nan 0 0 0"], InputError, "--goal"),
        (["ik", "iisy", "--position", "0 0 0"], InputError, "exactly one goal"),
        (["ik", "iisy", "--position", "0 0 0", "--axis", "0 0 0"], InputError, "must be a direction"),
        (["ik", "iisy", "--goal", "0 0 1 0 0 0", "--group", "leg"], UnknownNameError, "no group 'leg'"),
        (["ik", "iisy", "--goal", "0 0 1 0 0 0", "--tool", "pen"], UnknownNameError, "no tool 'pen'"),
        (["ik", "iisy", "--goal", "0 0 1 0 0 0", "--seed-state", "hme"], UnknownNameError, "did you mean 'home'"),
        (["ik", "iisy", "--goal", "0 0 1 0 0 0", "--seed-state", "1 2"], InputError, "--seed-state"),
        (["workspace", "iisy", "--picture", "x.txt"], InputError, "--picture"),
        (["setup", "rover"], InputError, "no chain"),
        (["setup", "iisy", "--out", "x.txt"], InputError, "--out"),
    ],
)
def test_arm_commands_refuse_bad_input(words: list[str], kind: type[Exception], expected: str) -> None:
    with pytest.raises(kind, match=expected):
        run_arm(*words)
