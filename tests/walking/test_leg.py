"""Forward kinematics of a leg agrees with its chain, and every solution of its inverse kinematics reaches the foot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.walking.hexapods import HEXAPODS, legged_robot_named, random_leg

from roboyard.errors import InputError
from roboyard.kinematics import build_chain
from roboyard.walking.errors import FootOutOfReachError, LegJointLimitError
from roboyard.walking.leg import Leg, knee_side_of, solve_leg_ik

SEEDS = st.integers(0, 2**32 - 1)
ONE_FOLDER = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@given(seed=SEEDS)
@ONE_FOLDER
def test_leg_foot_agrees_with_its_chain(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    leg = random_leg(rng, tmp_path)
    q = leg.chain.sample_positions(rng, 50)
    np.testing.assert_allclose(leg.foot_position(q), leg.chain.forward(q)[:, :3, 3], atol=1e-14)


@given(seed=SEEDS)
@ONE_FOLDER
def test_leg_solutions_reach_the_foot_and_include_the_source(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    leg = random_leg(rng, tmp_path)
    for q in leg.chain.sample_positions(rng, 20):
        foot = leg.foot_position(q)
        solutions = leg.ik_solutions(foot, q)
        assert 1 <= len(solutions) <= 4
        for one in solutions:
            if not one.singularity:
                np.testing.assert_allclose(leg.foot_position(one.q), foot, atol=1e-12)
        smallest_difference = min(np.abs(np.angle(np.exp(1j * (one.q - q)))).max() for one in solutions)
        assert smallest_difference < 1e-6
        joints = leg.solve_ik(foot, q)
        np.testing.assert_allclose(leg.foot_position(joints), foot, atol=1e-12)
        assert leg.chain.is_within_limits(joints)


@pytest.mark.slow
@given(seed=SEEDS)
@ONE_FOLDER
def test_leg_solutions_include_all_that_newton_finds(seed: int, tmp_path: Path) -> None:
    """Newton's method from many starts is the independent method: whatever it converges to is among the solutions."""
    rng = np.random.default_rng(seed)
    leg = random_leg(rng, tmp_path)
    foot = leg.foot_position(leg.chain.sample_positions(rng, 1)[0])
    found = np.array([one.q for one in leg.ik_solutions(foot)])
    q = rng.uniform(-np.pi, np.pi, (200, 3))
    for _ in range(60):
        tips = leg.chain.forward(q)[:, :3, 3]
        J = leg.chain.jacobian(q)[:, :3]
        step = np.linalg.solve(J @ J.transpose(0, 2, 1) + 1e-9 * np.eye(3), (foot - tips)[..., None])
        q = q + np.clip((J.transpose(0, 2, 1) @ step)[..., 0], -0.5, 0.5)
    errors = np.linalg.norm(leg.chain.forward(q)[:, :3, 3] - foot, axis=1)
    for one in q[errors < 1e-10]:
        gaps = np.abs(np.angle(np.exp(1j * (found - one)))).max(axis=1)
        assert gaps.min() < 1e-4


def test_leg_refuses_unreachable_feet(tmp_path: Path) -> None:
    leg = random_leg(np.random.default_rng(3), tmp_path, wide=False)
    with pytest.raises(FootOutOfReachError, match=r"leg one of legged.*out of reach.*between"):
        leg.solve_ik([9.0, 0.0, 0.0])
    outside = leg.foot_position([0.0, 0.0, 0.9])
    wrong = 2 * leg.hip_position - outside
    wrong[2] = outside[2]
    with pytest.raises((LegJointLimitError, FootOutOfReachError)):
        leg.solve_ik(wrong)
    with pytest.raises(InputError, match="three finite"):
        leg.solve_ik([np.nan, 0.0, 0.0])
    with pytest.raises(InputError, match="three finite"):
        leg.solve_ik([0.0, 0.0])


def test_leg_of_a_chain_with_other_axes_is_refused(tmp_path: Path) -> None:
    leg = random_leg(np.random.default_rng(1), tmp_path)
    text = (tmp_path / "leg.urdf").read_text().replace('<axis xyz="0 1 0"/>', '<axis xyz="0 0 1"/>', 1)
    (tmp_path / "bad.urdf").write_text(text)
    from roboyard.description import load_model

    with pytest.raises(InputError, match="axes of j1, j2, j3.*parallel"):
        Leg.from_chain("one", build_chain(load_model(tmp_path / "bad.urdf"), "body", "foot"))
    with pytest.raises(InputError, match="2 joints"):
        Leg.from_chain("one", build_chain(load_model(tmp_path / "leg.urdf"), "body", "l2"))
    assert leg.joints == ("j1", "j2", "j3")


@pytest.mark.parametrize("robot", HEXAPODS)
def test_fast_inverse_kinematics_agrees_with_that_of_all_solutions(robot: str) -> None:
    legged_robot, rng, n_solved = legged_robot_named(robot), np.random.default_rng(3), 0
    arrays, out = legged_robot.arrays, np.empty(7)
    for i, leg in enumerate(legged_robot.legs):
        for q in rng.uniform(leg.chain.lower, leg.chain.upper, (300, 3)):
            x, y, z = leg.foot_position(q)
            knee_side = np.array([knee_side_of(arrays, k, q[2]) for k in range(len(legged_robot.legs))])
            if not solve_leg_ik(arrays, knee_side, i, x, y, z, out):
                continue
            n_solved += 1
            solutions = [one.q for one in leg.ik_solutions((x, y, z)) if one.is_within_limits]
            assert min(np.abs(solution - out[:3]).max() for solution in solutions) < 1e-6
            np.testing.assert_allclose(out[3:5], [np.cos(out[0]), np.sin(out[0])], atol=1e-9)
            np.testing.assert_allclose(out[5:7], [np.cos(out[1]), np.sin(out[1])], atol=1e-9)
    assert n_solved > 250 * len(legged_robot.legs)
