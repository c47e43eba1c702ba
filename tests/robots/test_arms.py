"""The iisy arms and the youBot: dimensions and limits, holding a pose, and driving."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from tests.harness.bus import BusHarness, twist

import roboyard as ry
from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import load_model
from roboyard.kinematics import build_chain
from roboyard.kinematics.ik import find_closed_form
from roboyard.manipulation.collision.planning_scene import PlanningScene

FOLDER = Path(str(resources.files("roboyard") / "robots"))
ARMS = ("iisy", "iisy11", "iisy15", "youbot_arm", "youbot", "scitos_arm", "scitos")
MAKERS = {"iisy": "lbr_iisy3_r760", "iisy11": "lbr_iisy11_r1300", "iisy15": "lbr_iisy15_r930"}


@pytest.fixture
def run() -> Iterator[ry.Run]:
    with ry.Run("empty", record=False) as run:
        yield run


@pytest.mark.parametrize("name", ARMS)
def test_arms_have_closed_form_ik_and_collision_free_poses(name: str) -> None:
    groups = load_joint_groups(name)
    assert groups.model.warnings == ()
    chain = groups.chain("arm")
    assert find_closed_form(chain) is not None
    assert np.isfinite(chain.max_acceleration).all()
    scene = PlanningScene.create(groups, "arm")
    for pose in groups.group("arm").poses:
        assert scene.find_contact(groups.group("arm").pose(pose)) is None, pose


@pytest.mark.parametrize("name", [*MAKERS, "youbot_arm"])
def test_arm_masses_and_inertias_are_plausible(name: str) -> None:
    model = load_joint_groups(name).model
    total = {"iisy": 17.8, "iisy11": 46.42, "iisy15": 43.62, "youbot_arm": 6.474}[name]
    extra = {"youbot_arm": 0.1 + 2 * 0.03 + 0.3}.get(name, 0.78 + 2 * 0.06)
    assert model.mass == pytest.approx(total + extra, abs=0.02)
    for link in model.links:
        if link.inertial is not None:
            xx, yy, zz = link.inertial.inertia[:3]
            assert max(xx, yy, zz) < (xx + yy + zz) / 2.0 + 1e-12
            assert max(xx, yy, zz) < link.inertial.mass * 0.2


@pytest.mark.parametrize("name", MAKERS)
def test_iisy_kinematics_are_those_of_the_maker(name: str, external_data: Path) -> None:
    folder = external_data / "robots" / "iisy" / "kuka_lbr_iisy_support" / "urdf"
    theirs = build_chain(load_model(folder / f"{MAKERS[name]}.urdf.xacro"), "base_link", "tool0")
    ours = load_joint_groups(name).chain("arm", "flange")
    q = ours.sample_positions(np.random.default_rng(0), 100)
    np.testing.assert_allclose(ours.forward(q), theirs.forward(q), atol=1e-12)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-6)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-6)
    np.testing.assert_allclose(ours.max_velocity, theirs.max_velocity, rtol=1e-3)
    np.testing.assert_allclose(ours.max_effort, theirs.max_effort, rtol=1e-3)


def test_youbot_arm_has_the_dimensions_of_the_thesis() -> None:
    groups = load_joint_groups("youbot_arm")
    chain, arm = groups.chain("arm"), groups.group("arm")
    upright = chain.forward(arm.pose("upright"))
    height = 0.147 - 0.032 + 0.155 + 0.135 + 0.2175  # above the arm's own foot
    np.testing.assert_allclose(upright[:3, 3], [0.024 + 0.033 - 0.002, 0.0, height], atol=1e-4)
    camera = groups.chain("arm", "camera").forward(arm.pose("upright"))
    assert camera[0, 3] - 0.024 == pytest.approx(0.095, abs=1e-4)
    np.testing.assert_allclose(camera[:3, 0], [0.0, 0.0, -1.0], atol=1e-4)  # it looks down
    spans = np.degrees(chain.upper - chain.lower)
    np.testing.assert_allclose(spans, [338, 155, 297, 205, 335], atol=1e-9)
    pick = chain.forward(arm.pose("pick"))
    assert pick[2, 2] < -0.999


@pytest.mark.parametrize("name", ["iisy", "youbot_arm"])
def test_arms_hold_their_pose(run: ry.Run, name: str) -> None:
    run.add_robot(name)
    states = BusHarness(bus=run.bus).record("/joint_states", ry.msg.JointState)
    run.run_for(2.0)
    observed = states.messages
    chain = load_joint_groups(name).chain("arm")
    index = [list(observed[0].name).index(joint) for joint in chain.joints]
    start = np.array(observed[0].position)[index]
    assert np.abs(np.array(observed[-1].position)[index] - start).max() < 0.03
    assert np.abs(np.array(observed[-1].velocity)[index]).max() < 0.02


def test_youbot_drives_in_every_direction(run: ry.Run) -> None:
    robot = run.add_robot("youbot")
    run.run_for(0.3)
    harness = BusHarness(bus=run.bus)
    for vx, vy, wz in ((0.3, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.8)):
        before = robot.truth.pose
        for _ in range(40):
            harness.publish("/cmd_vel", twist(vx, wz, vy), source="/operator")
            run.run_for(0.05)
        motion = before.inverse() @ robot.truth.pose
        assert math.copysign(1.0, motion.x + motion.y + motion.yaw) == 1.0
        np.testing.assert_allclose([motion.x, motion.y, motion.yaw], [1.85 * vx, 1.85 * vy, 1.85 * wz], atol=0.06)
        run.run_for(0.7)
