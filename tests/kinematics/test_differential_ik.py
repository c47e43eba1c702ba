"""Differential inverse kinematics: the tool follows the twist within joint limits, the null space a posture."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from tests.kinematics.urdf_chains import make_random_joint, make_urdf

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import load_model
from roboyard.errors import ConfigError, InputError
from roboyard.kinematics import Chain, build_chain
from roboyard.kinematics.ik import DifferentialIkConfig, solve_differential_ik, solve_differential_ik_to_pose
from roboyard.kinematics.ik.differential_ik import solve_box_qp


def make_seven_joint_chain() -> Chain:
    rng = np.random.default_rng(3)
    return build_chain(
        load_model(make_urdf([make_random_joint(rng, ("revolute",)) for _ in range(7)])), "link_0", "link_7"
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_bounded_least_squares_agrees_with_scipy(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(count + 2, count)), rng.normal(size=count + 2) * 3.0
    low = rng.uniform(-1.0, 0.2, count)
    high = low + rng.uniform(0.0, 1.0, count) + 1e-6
    solution = np.empty(count)
    assert solve_box_qp(A.T @ A, A.T @ b, low, high, solution) > 0
    expected = lsq_linear(A, b, (low, high), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(solution, expected, atol=1e-7)


def test_differential_ik_moves_the_tool_with_the_twist() -> None:
    chain = load_joint_groups("iisy").chain("arm")
    q = load_joint_groups("iisy").group("arm").pose("home") + 0.1
    twist = np.array([0.05, -0.03, 0.02, 0.1, 0.0, -0.1])
    step = solve_differential_ik(chain, q, twist)
    assert step.limited_joints == ()
    np.testing.assert_allclose(step.twist, twist, atol=2e-4)
    velocity = (chain.forward(q + 1e-5 * step.speeds)[:3, 3] - chain.forward(q)[:3, 3]) / 1e-5
    np.testing.assert_allclose(velocity, twist[:3], atol=1e-3)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_differential_ik_keeps_joint_limits_for_any_twist(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = load_joint_groups("scitos_arm").chain("arm")
    q, twist = chain.sample_positions(rng, 1)[0], rng.normal(size=6)
    period = DifferentialIkConfig().period
    for _ in range(50):
        step = solve_differential_ik(chain, q, 5.0 * twist)
        assert (np.abs(step.speeds) <= chain.max_velocity + 1e-9).all()
        q = q + period * step.speeds
        assert chain.is_within_limits(q, 1e-9)


def test_differential_ik_to_a_pose_converges() -> None:
    chain = load_joint_groups("iisy").chain("arm")
    home = load_joint_groups("iisy").group("arm").pose("home")
    q, goal = home.copy(), chain.forward(home + np.array([0.3, 0.2, -0.3, 0.4, -0.3, 0.5]))
    for _ in range(600):
        q = q + 0.01 * solve_differential_ik_to_pose(chain, q, goal).speeds
    np.testing.assert_allclose(chain.forward(q), goal, atol=1e-4)


def test_differential_ik_of_five_joints_leaves_rotation_around_free_axis() -> None:
    groups = load_joint_groups("youbot_arm")
    chain, q = groups.chain("arm"), groups.group("arm").pose("pick")
    goal = chain.forward(q + np.array([0.4, 0.1, 0.05, -0.15, 1.0]))
    for _ in range(800):
        q = q + 0.01 * solve_differential_ik_to_pose(chain, q, goal, free_axis=(0, 0, 1)).speeds
    reached = chain.forward(q)
    np.testing.assert_allclose(reached[:3, 3], goal[:3, 3], atol=1e-4)
    np.testing.assert_allclose(reached[:3, 2], goal[:3, 2], atol=1e-3)


def test_posture_moves_joints_without_moving_the_tool() -> None:
    chain = make_seven_joint_chain()
    q = np.array([0.2, -0.4, 0.6, 0.3, -0.5, 0.7, 0.1])
    step = solve_differential_ik(chain, q, np.zeros(6), posture=np.zeros(7))
    assert np.abs(step.speeds).max() > 1e-2
    assert np.abs(step.twist).max() < 1e-9
    assert step.speeds @ q < 0.0, "the joints approach the posture"


def test_differential_ik_is_repeatable_to_the_bit() -> None:
    chain, q = make_seven_joint_chain(), np.full(7, 0.3)
    steps = [solve_differential_ik(chain, q, np.full(6, 0.2), posture=np.zeros(7)).speeds.tobytes() for _ in range(2)]
    assert steps[0] == steps[1]


def test_differential_ik_refuses_invalid_twists() -> None:
    chain = make_seven_joint_chain()
    for twist in (np.zeros(5), [np.nan] * 6, "up"):
        with pytest.raises(InputError, match="twist"):
            solve_differential_ik(chain, np.zeros(7), twist)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="joint positions"):
        solve_differential_ik(chain, np.zeros(6), np.zeros(6))
    with pytest.raises(InputError, match="must be a direction"):
        solve_differential_ik(chain, np.zeros(7), np.zeros(6), free_axis=(0, 0, 0))
    with pytest.raises(InputError, match="is not a valid pose"):
        solve_differential_ik_to_pose(chain, np.zeros(7), np.zeros((4, 4)))
    with pytest.raises(ConfigError, match="period"):
        solve_differential_ik(chain, np.zeros(7), np.zeros(6), settings=DifferentialIkConfig(period=0.0))
