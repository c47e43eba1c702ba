"""Inverse kinematics returns every solution of a pose from forward kinematics within the joint limits."""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares
from tests.kinematics.urdf_chains import JointText, make_random_joint, make_urdf

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import load_model
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.kinematics import Chain, build_chain
from roboyard.kinematics.ik import IkConfig, IkFailure, PointingTarget, find_closed_form, solve_ik, solve_ik_batch
from roboyard.manipulation import guess_groups

FULL_ROTATION = 2.0 * math.pi


@cache
def load_arm_chain(name: str) -> Chain:
    return load_joint_groups(name).chain("arm")


def compute_max_difference(q: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(np.remainder(q - other + math.pi, FULL_ROTATION) - math.pi).max())


def make_wrist_chain(rng: np.random.Generator, *, reverse: bool) -> Chain:
    """Return a chain of three random joints and a spherical wrist; with ``reverse`` the wrist is at the base."""
    joints = [make_random_joint(rng, ("revolute",)) for _ in range(4)]
    last = [make_random_joint(rng, ("revolute",)) for _ in range(2)]
    joints += [JointText(joint.type, (0.0, 0.0, 0.0), joint.rpy, joint.axis) for joint in last]
    if reverse:  # the axes of the first three joints intersect
        joints = [joints[3], joints[4], joints[5], joints[0], joints[1], joints[2]]
    return build_chain(load_model(make_urdf(joints)), "link_0", "link_6").with_tool(
        SE3.from_xyz_rpy((0.1, 0.2, 0.3), (1, 2, 3))
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_spherical_wrist_arms_are_solved_in_closed_form(seed: int, is_reversed: bool) -> None:
    rng = np.random.default_rng(seed)
    chain = make_wrist_chain(rng, reverse=is_reversed)
    closed_form = find_closed_form(chain)
    assert closed_form is not None
    assert closed_form.is_reversed == is_reversed
    q = chain.sample_positions(rng, 20)
    q = q[chain.manipulability(q) > 1e-4]
    batch = solve_ik_batch(chain, chain.forward(q), q)
    assert batch.is_solved.all()
    np.testing.assert_allclose(batch.best, q, atol=1e-4)
    reached = chain.forward(batch.best)
    np.testing.assert_allclose(reached, chain.forward(q), atol=1e-8)


@pytest.mark.parametrize("name", ["scitos_arm"])
def test_ik_finds_the_joints_of_forward_kinematics(name: str) -> None:
    chain = load_arm_chain(name)
    q = chain.sample_positions(np.random.default_rng(2), 500)
    T = chain.forward(q)
    batch = solve_ik_batch(chain, T, q)
    np.testing.assert_allclose(batch.best, q, atol=1e-5)
    for k in range(len(q)):
        branches = batch.solutions[k, : batch.n_solutions[k]]
        assert chain.is_within_limits(branches).all()
        np.testing.assert_allclose(chain.forward(branches), np.broadcast_to(T[k], (len(branches), 4, 4)), atol=1e-6)
        differences = [compute_max_difference(a, b) for a, b in itertools.combinations(branches, 2)]
        assert min(differences, default=1.0) > 1e-6
        distance = np.square(branches - q[k]).sum(axis=1)
        assert (np.diff(distance) >= 0.0).all()


@pytest.mark.parametrize("name", ["scitos_arm"])
def test_ik_batches_equal_single_goals_to_the_bit(name: str) -> None:
    chain = load_arm_chain(name)
    q = chain.sample_positions(np.random.default_rng(3), 20)
    T = chain.forward(q)
    batch, second_batch = solve_ik_batch(chain, T, q), solve_ik_batch(chain, T, q)
    assert batch.solutions.tobytes() == second_batch.solutions.tobytes()
    for k in range(len(q)):
        single = solve_ik(chain, T[k], q[k])
        assert single.best.tobytes() == batch.best[k].tobytes()
        assert len(single) >= batch.n_solutions[k]
        assert (
            np.asarray(single).tobytes()
            == np.asarray(solve_ik(chain, SE3.from_matrix(T[k]).matrix() * 0 + T[k], q[k])).tobytes()
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scitos_arm"])
def test_closed_form_returns_every_branch_that_a_search_finds(name: str) -> None:
    chain, rng = load_arm_chain(name), np.random.default_rng(4)
    for q in chain.sample_positions(rng, 6):
        T = chain.forward(q)
        branches = solve_ik(chain, T)
        solutions = _search_solutions(chain, T, rng)
        for solution in solutions:
            assert min(compute_max_difference(solution, branch) for branch in branches) < 1e-4


def _search_solutions(chain: Chain, T: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the solutions that least squares of scipy find from random starts."""

    def residual(q: np.ndarray) -> np.ndarray:
        return (chain.forward(q) - T)[:3].ravel()

    solutions = []
    for start in chain.sample_positions(rng, 60):
        result = least_squares(residual, start, bounds=(chain.lower, chain.upper), xtol=1e-14, ftol=1e-14, gtol=1e-14)
        if np.abs(residual(result.x)).max() < 1e-9:
            solutions.append(result.x)
    assert solutions
    return solutions


def test_ik_lists_full_rotations_within_the_limits() -> None:
    rng = np.random.default_rng(5)
    joints = [make_random_joint(rng, ("revolute",)) for _ in range(4)]
    joints += [JointText(joint.type, (0.0, 0.0, 0.0), joint.rpy, joint.axis, (-7.0, 7.0)) for joint in joints[:2]]
    chain = build_chain(load_model(make_urdf(joints)), "link_0", "link_6")
    q = chain.sample_positions(rng, 1)[0]
    solution = solve_ik(chain, chain.forward(q), q)
    equivalent = [branch for branch in solution if compute_max_difference(branch, q) < 1e-6]
    expected = np.prod([sum(-7.0 <= q[i] + k * FULL_ROTATION <= 7.0 for k in (-2, -1, 0, 1, 2)) for i in (4, 5)])
    assert len(equivalent) == expected > 1
    np.testing.assert_allclose(solution.best, q, atol=1e-6)


def test_ik_solves_a_stretched_arm_at_its_singularity() -> None:
    chain = load_arm_chain("scitos_arm")
    solution = solve_ik(chain, chain.forward(np.zeros(5)), np.zeros(5))
    assert solution.is_solved
    assert solution.errors.max() < 1e-6


def test_five_joints_reach_a_pointing_target() -> None:
    chain = load_arm_chain("scitos_arm")
    for q in chain.sample_positions(np.random.default_rng(6), 50):
        T = chain.forward(q)
        solution = solve_ik(chain, PointingTarget(T[:3, 3], 5.0 * T[:3, 2]), q)
        assert solution.is_solved
        np.testing.assert_allclose(solution.best, q, atol=1e-5)
        assert solution.errors.max() < 1e-6


@pytest.mark.slow
def test_unreachable_pointing_target_returns_the_nearest_solution() -> None:
    chain, rng = load_arm_chain("scitos_arm"), np.random.default_rng(7)
    for _ in range(5):
        q = chain.sample_positions(rng, 1)[0]
        goal = PointingTarget(chain.forward(q)[:3, 3] + rng.normal(0, 0.1, 3), rng.normal(size=3))
        solution = solve_ik(chain, goal)
        assert (len(solution), solution.nearest is None) == (0, False)
        assert solution.nearest is not None
        min_cost = _search_min_cost(chain, goal, rng)
        assert solution.nearest.cost <= 1.01 * min_cost + 1e-9
        with pytest.raises(InputError, match="the goal has no solution"):
            solution.best  # noqa: B018


def _search_min_cost(chain: Chain, goal: PointingTarget, rng: np.random.Generator) -> float:
    """Return the minimum cost that least squares of scipy find from random starts."""
    axis = np.array(goal.axis) / np.linalg.norm(goal.axis)

    def residual(q: np.ndarray) -> np.ndarray:
        T = chain.forward(q)
        cross = np.cross(T[:3, 2], axis)
        angle = math.atan2(float(np.linalg.norm(cross)), float(T[:3, 2] @ axis))
        scale = angle / max(float(np.linalg.norm(cross)), 1e-12)
        return np.concatenate([T[:3, 3] - goal.position, 0.1 * scale * cross])

    costs = [
        float(np.linalg.norm(least_squares(residual, start, bounds=(chain.lower, chain.upper)).fun))
        for start in chain.sample_positions(rng, 40)
    ]
    return min(costs)


def test_ik_states_why_a_goal_is_unreachable() -> None:
    chain = load_arm_chain("scitos_arm")
    T_out_of_reach = np.eye(4)
    T_out_of_reach[:3, 3] = (3.0, 0.0, 0.5)
    assert solve_ik(chain, T_out_of_reach).failure is IkFailure.OUT_OF_REACH
    q = chain.sample_positions(np.random.default_rng(8), 1)[0]
    T = chain.forward(q)
    assert solve_ik(chain, T @ SE3.from_xyz_rpy(rpy=(0.3, 0.2, 0.0)).matrix()).failure is IkFailure.ORIENTATION
    narrow_chain = build_chain(load_joint_groups("scitos_arm").model, "arm_base", "gripper_link")
    arrays = narrow_chain.arrays._replace(lower=q - 0.5, upper=q - 0.2)
    object.__setattr__(narrow_chain, "arrays", arrays)
    solution = solve_ik(narrow_chain, T)
    assert solution.failure is IkFailure.JOINT_LIMITS
    assert solution.nearest is not None
    assert narrow_chain.is_within_limits(solution.nearest.joints)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_chains_without_closed_form_are_searched(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = ["revolute"] * 5 + ["prismatic"] + ["revolute"]
    chain = build_chain(load_model(make_urdf([make_random_joint(rng, (kind,)) for kind in kinds])), "link_0", "link_7")
    assert find_closed_form(chain) is None
    q = chain.sample_positions(rng, 10)
    batch = solve_ik_batch(chain, chain.forward(q))
    assert batch.method == "search"
    assert batch.is_solved.mean() >= 0.9
    np.testing.assert_allclose(chain.forward(batch.best[batch.is_solved]), chain.forward(q)[batch.is_solved], atol=2e-6)
    assert chain.is_within_limits(batch.best[batch.is_solved]).all()


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (np.full((4, 4), np.nan), "not finite"),
        (np.eye(3), r"the goal has the shape \(3, 3\)"),
        (np.zeros((4, 4)), "is not a valid pose"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), "is not a valid pose"),
        ("up", "must be an array of numbers"),
        (PointingTarget((0, 0), (0, 0, 1)), "position"),
        (PointingTarget((0, 0, np.inf), (0, 0, 1)), "position"),
        (PointingTarget((0, 0, 1), (0, 0, 0)), "must be a direction"),
        (PointingTarget((0, 0, 1), (0, 0, 1), (0, 0, 0)), "tool_axis"),
    ],
)
def test_ik_refuses_invalid_goals(goal: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        solve_ik(load_arm_chain("scitos_arm"), goal)  # type: ignore[arg-type]


def test_ik_refuses_invalid_seeds_and_settings() -> None:
    chain = load_arm_chain("scitos_arm")
    for q_seed in (np.zeros(4), np.full(5, np.nan), np.zeros((2, 5))):
        with pytest.raises(InputError, match="joint positions|seed|position of"):
            solve_ik(chain, np.eye(4), q_seed)
    with pytest.raises(InputError, match=r"the seed has the shape \(3, 5\).*\(2, 5\)"):
        solve_ik_batch(chain, np.stack([np.eye(4)] * 2), np.zeros((3, 5)))
    with pytest.raises(ConfigError, match="tolerance"):
        solve_ik(chain, np.eye(4), None, IkConfig(tolerance=-1.0))


@pytest.mark.parametrize(
    ("path", "arguments", "method"),
    [
        ("descriptions/franka/franka_description/robots/panda/panda.expanded.urdf", {}, "search"),
        (
            "descriptions/ur5e/ur_description/urdf/ur.urdf.xacro",
            {"name": "u", "ur_type": "ur5e"},
            "three parallel axes",
        ),
        ("robots/iisy/kuka_lbr_iisy_support/urdf/lbr_iisy3_r760.urdf.xacro", {}, "spherical wrist"),
    ],
)
def test_external_arms_are_solved(external_data: Path, path: str, arguments: dict[str, str], method: str) -> None:
    chain = guess_groups(load_model(external_data / path, arguments=arguments, repair=True)).chain()
    q = chain.sample_positions(np.random.default_rng(9), 200)
    batch = solve_ik_batch(chain, chain.forward(q), q)
    assert method in batch.method
    assert batch.is_solved.mean() >= 0.995
    np.testing.assert_allclose(chain.forward(batch.best[batch.is_solved]), chain.forward(q)[batch.is_solved], atol=2e-6)
