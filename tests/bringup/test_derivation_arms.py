"""A custom arm: `arm setup` beside a bare URDF is enough to plan and to follow at full speed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bringup.derivation import find_groups_file
from roboyard.description import load_model
from roboyard.errors import ConfigError
from roboyard.manipulation import load_groups, plan_motion
from roboyard.manipulation.arm_analysis import analyze_arm
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.nodes.motion_messages import trajectory_to_msg
from roboyard.manipulation.planning import JointGoal
from roboyard.manipulation.semantics.groups_file import format_groups
from roboyard.messages import action

_LINKS = ((0.15, 5.0, "0 0 1"), (0.35, 6.0, "0 1 0"), (0.3, 3.0, "0 1 0"), (0.1, 1.5, "0 0 1"), (0.1, 1.0, "0 1 0"))


def urdf() -> str:
    """Five joints on a foot, each link a tube that stands on its joint."""
    foot = '<geometry><cylinder radius="0.1" length="0.1"/></geometry>'
    text = (
        '<robot name="own"><link name="world"/><link name="foot"><inertial><mass value="9"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial><collision>'
        f'<origin xyz="0 0 0.05"/>{foot}</collision></link><joint name="f" type="fixed"><parent link="world"/>'
        '<child link="foot"/></joint>'
    )
    parent, height = "foot", 0.1
    for k, (length, mass, axis) in enumerate(_LINKS):
        side, half = mass * (3 * 0.03**2 + length**2) / 12, length / 2
        text += f"""<link name="l{k}"><inertial><origin xyz="0 0 {half}"/><mass value="{mass}"/>
          <inertia ixx="{side}" iyy="{side}" izz="{mass * 0.03**2 / 2}" ixy="0" ixz="0" iyz="0"/></inertial>
          <collision><origin xyz="0 0 {half}"/><geometry><cylinder radius="0.03" length="{length - 0.08}"/></geometry>
          </collision></link>
          <joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/>
          <origin xyz="0 0 {height}"/><axis xyz="{axis}"/><dynamics damping="1" friction="0.5"/>
          <limit lower="-2.5" upper="2.5" effort="{(120, 120, 60, 20, 20)[k]}" velocity="2"/></joint>"""
        parent, height = f"l{k}", length
    return text + "</robot>"


@pytest.fixture
def arm_file(tmp_path: Path) -> Path:
    path = tmp_path / "own.urdf"
    path.write_text(urdf())
    model = load_model(path)
    found = analyze_arm(model, np.random.default_rng(0), 500)
    (tmp_path / "own.groups.yaml").write_text(format_groups(found.semantics, "own"))
    assert load_groups(tmp_path / "own.groups.yaml", model).gains == found.semantics.gains
    return path


def test_custom_arm_follows_at_full_speed_with_its_gains(arm_file: Path) -> None:
    with ry.Run("empty", seed=1, record=False) as run:
        arm = run.add_robot(str(arm_file))
        assert {"joint_states", "robot_state", "arm", "move_group"} <= set(arm.nodes)
        parameters = next(dict(one.parameters) for one in arm.model.interfaces if one.joint == "j1")
        assert float(parameters["pos_kp"]) == arm.groups.gains["j1"]["pos_kp"]
        harness = BusHarness(bus=run.bus)
        harness.run_for(0.2)
        start_pose = arm.groups.group().pose("safe")
        found = dict(zip(arm.hardware.joint_names, arm.hardware.read().position, strict=True))
        assert [found[f"j{k}"] for k in range(5)] == pytest.approx(start_pose, abs=0.01), (
            "it begins where its file says"
        )
        errors: list[float] = []
        for target in ([1.5, 0.9, 0.8, 1.0, 1.0], [-1.0, -0.8, 1.4, -1.0, -1.0]):
            found = plan_motion(PlanningScene.create(arm.groups), start_pose, JointGoal(target))
            goal = harness.send_goal(
                "/arm/follow_joint_trajectory",
                action.FollowJointTrajectory,
                timeout=30.0,
                trajectory=trajectory_to_msg(found.trajectory, "foot"),
            )
            assert goal.succeeded, goal.error_message
            errors += [float(np.abs(item.error.positions).max()) for item in goal.feedback]
            start_pose = found.goal
        assert len(errors) > 20
        assert max(errors) <= 0.01


def test_groups_are_found_next_to_dotted_description_names(arm_file: Path) -> None:
    dotted = arm_file.rename(arm_file.with_name("own.v2.urdf"))
    assert find_groups_file(dotted) == arm_file.with_name("own.groups.yaml")
    nearer = arm_file.with_name("own.v2.groups.yaml")
    nearer.write_text(arm_file.with_name("own.groups.yaml").read_text())
    assert find_groups_file(dotted) == nearer


def test_unknown_start_pose_is_refused(arm_file: Path) -> None:
    path = arm_file.with_name("own.groups.yaml")
    path.write_text(path.read_text().replace("default_pose: safe", "default_pose: save"))
    with pytest.raises(ConfigError, match="no pose 'save'"):
        load_groups(path, load_model(arm_file))


def test_fixed_robot_is_upright_without_a_world_link(arm_file: Path) -> None:
    text = arm_file.read_text().replace('<link name="world"/>', "").replace('<joint name="f"', '<joint name="gone"')
    start, remainder = text.split('<joint name="gone"', 1)
    free = arm_file.with_name("free.urdf")
    free.write_text(start + remainder.split("</joint>", 1)[1])
    for fixed in (False, True):
        with ry.Run("empty", seed=1, record=False) as run:
            arm = run.add_robot(str(free), pose=(0.0, 0.0, 0.5, 0.0, 0.0, 0.0), fixed_base=fixed)
            run.run_for(0.5)
            assert (abs(arm.truth.pose.xyz[2] - 0.5) < 1e-6) == fixed


def test_invalid_gains_are_refused_with_their_place(arm_file: Path) -> None:
    path = arm_file.with_name("own.groups.yaml")
    text = path.read_text()
    for wrong, message in (
        ("j0: {kp: 3}", "kp is 3"),
        ("j0: {pos_kp: -1}", "pos_kp is -1"),
        ("j9: {}", "no joint 'j9'"),
    ):
        path.write_text(text.split("gains:")[0] + f"gains:\n  {wrong}\n")
        with pytest.raises(ConfigError, match=message):
            load_groups(path, load_model(arm_file))
