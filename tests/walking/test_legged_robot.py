"""Inverse kinematics of all legs keeps feet in place; unreachable poses and invalid files are refused with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.walking.hexapods import HEXAPODS, legged_robot_named, model_named

from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.walking.errors import FootOutOfReachError, LegJointLimitError
from roboyard.walking.legged_robot import load_legs

SMALL = st.floats(-0.02, 0.02)
LEAN = st.floats(-0.1, 0.1)


@pytest.mark.parametrize("name", HEXAPODS)
def test_solve_ik_is_the_inverse_of_foot_positions(name: str) -> None:
    legged_robot, rng = legged_robot_named(name), np.random.default_rng(5)
    q = rng.uniform(legged_robot.lower, legged_robot.upper, (20_000, len(legged_robot.legs), 3))
    feet = legged_robot.foot_positions(q)
    np.testing.assert_allclose(legged_robot.foot_positions(legged_robot.solve_ik(feet, q)), feet, atol=1e-12)
    assert legged_robot.is_reachable(feet).all()


@pytest.mark.parametrize("name", HEXAPODS)
@given(x=SMALL, y=SMALL, z=SMALL, roll=LEAN, pitch=LEAN, yaw=LEAN)
@settings(max_examples=40, deadline=None)
def test_moved_body_leaves_its_feet_in_place(
    name: str, x: float, y: float, z: float, roll: float, pitch: float, yaw: float
) -> None:
    legged_robot = legged_robot_named(name)
    T = SE3.from_xyz_rpy((x, y, z), (roll, pitch, yaw))
    feet = legged_robot.foot_positions(legged_robot.joints_at_body_pose(T))
    matrix = T.matrix()
    np.testing.assert_allclose(feet @ matrix[:3, :3].T + matrix[:3, 3], legged_robot.stance_feet, atol=1e-12)


def test_akrobat_stance_is_that_of_its_file() -> None:
    legged_robot = legged_robot_named("akrobat")
    for leg, foot in zip(legged_robot.legs, legged_robot.stance_feet, strict=True):
        assert np.hypot(*(foot - leg.hip_position)[:2]) == pytest.approx(0.199, abs=1e-3)
        assert foot[2] == pytest.approx(-0.137, abs=1e-3)
    np.testing.assert_allclose(legged_robot.solve_ik(legged_robot.stance_feet), legged_robot.stance_pose, atol=1e-12)
    assert sum(link.inertial.mass for link in model_named("akrobat").links if link.inertial) == pytest.approx(3.8)


def test_legged_robot_refuses_unreachable_poses_and_bad_shapes() -> None:
    legged_robot = legged_robot_named("akrobat")
    with pytest.raises(FootOutOfReachError, match=r"leg lf of akrobat: foot at .* out of reach"):
        legged_robot.joints_at_body_pose(SE3.from_xyz_rpy((0.0, 0.0, 0.4)))
    with pytest.raises(LegJointLimitError, match=r"leg lf .* needs m11 at -.* rad \(-0.4398 to 1.1414 rad\)") as caught:
        legged_robot.joints_at_body_pose(SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, 0.35)))
    assert caught.value.joint == "m11"
    assert caught.value.value < -0.4398
    with pytest.raises(InputError, match="shape"):
        legged_robot.solve_ik(np.zeros((5, 3)))
    with pytest.raises(InputError, match="finite"):
        legged_robot.foot_positions(np.full((6, 3), np.nan))
    with pytest.raises(UnknownNameError, match="legs: lf"):
        legged_robot.leg("left")


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        (
            "body: base_link\nfeet: {lf: nowhere, rf: rf_foot, lm: lm_foot}\nstance_pose: [0,0,0]\nrest_pose: [0,0,0]",
            "nowhere",
        ),
        ("body: base_link\nfeet: {lf: lf_foot}\nstance_pose: [0,0,0]\nrest_pose: [0,0,0]", "three or more"),
        (
            "body: base_link\nfeet: {a: lf_foot, b: lf_foot, c: rf_foot}\nstance_pose: [0,0,0]\nrest_pose: [0,0,0]",
            "in two legs",
        ),
        (
            "body: base_link\nfeet: {a: lf_foot, b: lm_foot, c: rf_foot}\nstance_pose: [0,9,0]\nrest_pose: [0,0,0]",
            "m12 at 9",
        ),
        (
            "body: base_link\nfeet: {a: lf_foot}\nstance_poses: {b: [0, 0, 0]}\nstance_pose: [0,0,0]\n"
            "rest_pose: [0,0,0]",
            "no leg 'b'",
        ),
        ("body: base_link\nstance: [0,0,0]\nrest: [0,0,0]", "feet"),
    ],
)
def test_bad_legs_file_is_refused(tmp_path: Path, text: str, expected_text: str) -> None:
    path = tmp_path / "legs.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=expected_text) as caught:
        load_legs(path, model_named("akrobat"))
    assert "legs.yaml" in str(caught.value)
