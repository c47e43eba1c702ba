"""Computations of the thesis: its angles fit the youBot, its IK agrees with the chain, its controllers arrive."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError
from roboyard.kinematics import Chain
from roboyard.kinematics.ik import PointingTarget, solve_ik
from roboyard.manipulation.errors import GoalUnreachableError
from roboyard.manipulation.skills.thesis_control import (
    LOWER_LIMITS,
    PROGRAM_ANGLE_OFFSETS,
    REST_POSE,
    SEARCH_POSE,
    UPPER_LIMITS,
    AlignPController,
    JointPController,
    ThesisJointScale,
    solve_point_down_ik,
)

GROUND = -0.032
"""Height of the floor below the arm's base, from which the thesis measures heights [m]."""


@cache
def chain() -> Chain:
    return load_joint_groups("youbot_arm").chain("arm")


def test_thesis_poses_are_those_of_the_groups_file() -> None:
    scale, arm = ThesisJointScale.from_chain(chain()), load_joint_groups("youbot_arm").group("arm")
    np.testing.assert_allclose(scale.to_joints(np.zeros(5)), arm.pose("upright"), atol=0.01)
    np.testing.assert_allclose(scale.to_joints(REST_POSE), arm.pose("rest"), atol=0.13)  # its driver keeps off the ends
    np.testing.assert_allclose(scale.to_joints(SEARCH_POSE), arm.pose("view"), atol=0.01)


@given(st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5))
def test_scale_converts_degrees_to_joints_and_back(fractions: list[float]) -> None:
    scale, degrees = (
        ThesisJointScale.from_chain(chain()),
        LOWER_LIMITS + np.array(fractions) * (np.array(UPPER_LIMITS) - LOWER_LIMITS),
    )
    np.testing.assert_allclose(scale.to_degrees(scale.to_joints(degrees)), degrees, atol=1e-9)
    assert chain().is_within_limits(scale.to_joints(3.0 * degrees))
    left = scale.to_joints([math.nan, *degrees[1:]], np.full(5, 0.5))
    assert left[0] == 0.5


@settings(max_examples=80)
@given(st.floats(150.0, 300.0), st.floats(0.0, 80.0))
def test_point_down_agrees_with_the_chain_and_solve_ik(out: float, height: float) -> None:
    try:
        angles = solve_point_down_ik(out, height, as_programmed=False)
    except GoalUnreachableError:
        return
    if not all(
        low <= angle <= high for low, angle, high in zip(LOWER_LIMITS[1:4], angles, UPPER_LIMITS[1:4], strict=True)
    ):
        return
    q = ThesisJointScale.from_chain(chain()).to_joints([0.0, *angles, 0.0])
    T = chain().forward(q)
    expected = np.array([0.024 + 1e-3 * out, 0.0, GROUND + 1e-3 * (height + 10.0)])
    assert T[2, 2] == pytest.approx(-1.0, abs=1e-3)
    assert np.abs(T[:3, 3] - expected).max() < 4e-3, "its lengths leave out the hand's 2 mm"
    solution = solve_ik(chain(), PointingTarget(T[:3, 3], T[:3, 2]), seed=q)
    np.testing.assert_allclose(solution.best[:4], q[:4], atol=2e-3)


def test_point_down_as_programmed_adds_the_offsets() -> None:
    text, code = solve_point_down_ik(251.0, 30.0, as_programmed=False), solve_point_down_ik(250.0, 30.0)
    np.testing.assert_allclose(np.subtract(code, text), PROGRAM_ANGLE_OFFSETS, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_joint_control_reaches_its_goal_within_speed_limits(seed: int) -> None:
    rng, control, dt = np.random.default_rng(seed), JointPController(), 0.01
    q, goal = chain().sample_positions(rng, 2)
    velocity = np.zeros(5)
    for _ in range(6000):
        if control.is_at_goal(goal, q, velocity):
            break
        velocity = control.compute_velocities(goal, q)
        assert np.abs(velocity).max() <= 0.8
        q = q + dt * velocity
    assert control.is_at_goal(goal, q, velocity)
    assert np.abs(goal - q).max() <= 0.01


@given(st.floats(-1.0, 1.0))
def test_align_controller_turns_to_the_symbol(start_angle: float) -> None:
    control, angle = AlignPController(), start_angle
    for _ in range(20_000):
        speed = control.compute_velocity(math.sin(angle), math.cos(angle))
        if speed == 0.0:
            break
        angle -= 0.01 * speed
    assert abs(math.degrees(angle)) <= 0.05


def test_thesis_kinematics_refuses_bad_input() -> None:
    with pytest.raises(GoalUnreachableError, match="joint 4 would be"):
        solve_point_down_ik(500.0, 30.0)
    for wrong in (
        lambda: solve_point_down_ik(math.nan, 0.0),
        lambda: ThesisJointScale(np.zeros(4), np.ones(4)),
        lambda: ThesisJointScale.from_chain(chain()).to_joints([math.nan, 0, 0, 0, 0]),
        lambda: ThesisJointScale.from_chain(chain()).to_degrees([0.0]),
        lambda: JointPController().compute_velocities(np.zeros(4), np.zeros(5)),
        lambda: AlignPController().compute_velocity(0.1, -1.0),
    ):
        with pytest.raises(InputError):
            wrong()
