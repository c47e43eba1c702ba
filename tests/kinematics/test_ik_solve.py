"""Inverse kinematics: what forward kinematics gives is found again, with every branch, within limits."""

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
from tests.kinematics.urdf_chains import JointText, random_joint, urdf

from roboyard.description import load_model
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.kinematics import Chain, build_chain
from roboyard.kinematics.ik import IkConfig, IkFailure, PointingTarget, find_closed_form, solve_ik, solve_ik_batch
from roboyard.manipulation import guess_groups
from roboyard.scenarios.robot_groups import find_groups

TURN = 2.0 * math.pi


@cache
def arm(name: str) -> Chain:
    return find_groups(name).chain("arm")


def differs(q: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(np.remainder(q - other + math.pi, TURN) - math.pi).max())


def wrist(rng: np.random.Generator, *, turned: bool) -> Chain:
    """Any three joints and a wrist whose axes meet, or the same from the tip to the base."""
    joints = [random_joint(rng, ("revolute",)) for _ in range(4)]
    last = [random_joint(rng, ("revolute",)) for _ in range(2)]
    joints += [JointText(one.type, (0.0, 0.0, 0.0), one.rpy, one.axis) for one in last]
    if turned:  # the first three meet, the others do not
        joints = [joints[3], joints[4], joints[5], joints[0], joints[1], joints[2]]
    return build_chain(load_model(urdf(joints)), "link_0", "link_6").with_tool(
        SE3.from_xyz_rpy((0.1, 0.2, 0.3), (1, 2, 3))
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_spherical_wrist_arms_are_solved_in_closed_form(seed: int, turned: bool) -> None:
    rng = np.random.default_rng(seed)
    chain = wrist(rng, turned=turned)
    form = find_closed_form(chain)
    assert form is not None
    assert form.is_reversed == turned
    q = chain.sample_positions(rng, 20)
    q = q[chain.manipulability(q) > 1e-4]
    batch = solve_ik_batch(chain, chain.forward(q), q)
    assert batch.is_solved.all()
    np.testing.assert_allclose(batch.best, q, atol=1e-4)
    reached = chain.forward(batch.best)
    np.testing.assert_allclose(reached, chain.forward(q), atol=1e-8)


@pytest.mark.parametrize("name", ["scitos_arm"])
def test_ik_finds_the_joints_of_forward_kinematics(name: str) -> None:
    chain = arm(name)
    q = chain.sample_positions(np.random.default_rng(2), 500)
    T = chain.forward(q)
    batch = solve_ik_batch(chain, T, q)
    np.testing.assert_allclose(batch.best, q, atol=1e-5)
    for k in range(len(q)):
        branches = batch.solutions[k, : batch.n_solutions[k]]
        assert chain.is_within_limits(branches).all()
        np.testing.assert_allclose(chain.forward(branches), np.broadcast_to(T[k], (len(branches), 4, 4)), atol=1e-6)
        apart = [differs(a, b) for a, b in itertools.combinations(branches, 2)]
        assert min(apart, default=1.0) > 1e-6
        distance = np.square(branches - q[k]).sum(axis=1)
        assert (np.diff(distance) >= 0.0).all()


@pytest.mark.parametrize("name", ["scitos_arm"])
def test_ik_batches_equal_single_goals_to_the_bit(name: str) -> None:
    chain = arm(name)
    q = chain.sample_positions(np.random.default_rng(3), 20)
    T = chain.forward(q)
    batch, again = solve_ik_batch(chain, T, q), solve_ik_batch(chain, T, q)
    assert batch.solutions.tobytes() == again.solutions.tobytes()
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
def test_closed_form_misses_no_branch_of_a_search(name: str) -> None:
    chain, rng = arm(name), np.random.default_rng(4)
    for q in chain.sample_positions(rng, 6):
        T = chain.forward(q)
        closed = solve_ik(chain, T)
        found = _by_search(chain, T, rng)
        for other in found:
            assert min(differs(other, one) for one in closed) < 1e-4


def _by_search(chain: Chain, T: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """All there is to find by scipy's least squares from random starts."""

    def missing(q: np.ndarray) -> np.ndarray:
        return (chain.forward(q) - T)[:3].ravel()

    found = []
    for start in chain.sample_positions(rng, 60):
        result = least_squares(missing, start, bounds=(chain.lower, chain.upper), xtol=1e-14, ftol=1e-14, gtol=1e-14)
        if np.abs(missing(result.x)).max() < 1e-9:
            found.append(result.x)
    assert found
    return found


def test_ik_lists_whole_turns_within_the_limits() -> None:
    rng = np.random.default_rng(5)
    joints = [random_joint(rng, ("revolute",)) for _ in range(4)]
    joints += [JointText(one.type, (0.0, 0.0, 0.0), one.rpy, one.axis, (-7.0, 7.0)) for one in joints[:2]]
    chain = build_chain(load_model(urdf(joints)), "link_0", "link_6")
    q = chain.sample_positions(rng, 1)[0]
    found = solve_ik(chain, chain.forward(q), q)
    same = [one for one in found if differs(one, q) < 1e-6]
    expected = np.prod([sum(-7.0 <= q[i] + k * TURN <= 7.0 for k in (-2, -1, 0, 1, 2)) for i in (4, 5)])
    assert len(same) == expected > 1
    np.testing.assert_allclose(found.best, q, atol=1e-6)


def test_ik_solves_a_stretched_arm_at_its_singularity() -> None:
    chain = arm("scitos_arm")
    found = solve_ik(chain, chain.forward(np.zeros(5)), np.zeros(5))
    assert found.is_solved
    assert found.errors.max() < 1e-6


def test_five_joints_meet_a_place_and_direction_in_plane() -> None:
    chain = arm("scitos_arm")
    for q in chain.sample_positions(np.random.default_rng(6), 50):
        T = chain.forward(q)
        found = solve_ik(chain, PointingTarget(T[:3, 3], 5.0 * T[:3, 2]), q)
        assert found.is_solved
        np.testing.assert_allclose(found.best, q, atol=1e-5)
        assert found.errors.max() < 1e-6


@pytest.mark.slow
def test_unreachable_aim_of_five_joints_gives_the_nearest_state() -> None:
    chain, rng = arm("scitos_arm"), np.random.default_rng(7)
    for _ in range(5):
        q = chain.sample_positions(rng, 1)[0]
        goal = PointingTarget(chain.forward(q)[:3, 3] + rng.normal(0, 0.1, 3), rng.normal(size=3))
        found = solve_ik(chain, goal)
        assert (len(found), found.nearest is None) == (0, False)
        assert found.nearest is not None
        best = _brute_force(chain, goal, rng)
        assert found.nearest.cost <= 1.01 * best + 1e-9
        with pytest.raises(InputError, match="no joint positions for this goal"):
            found.best  # noqa: B018


def _brute_force(chain: Chain, goal: PointingTarget, rng: np.random.Generator) -> float:
    """Least cost of scipy's least squares from many starts."""
    axis = np.array(goal.axis) / np.linalg.norm(goal.axis)

    def missing(q: np.ndarray) -> np.ndarray:
        T = chain.forward(q)
        across = np.cross(T[:3, 2], axis)
        angle = math.atan2(float(np.linalg.norm(across)), float(T[:3, 2] @ axis))
        scale = angle / max(float(np.linalg.norm(across)), 1e-12)
        return np.concatenate([T[:3, 3] - goal.position, 0.1 * scale * across])

    costs = [
        float(np.linalg.norm(least_squares(missing, start, bounds=(chain.lower, chain.upper)).fun))
        for start in chain.sample_positions(rng, 40)
    ]
    return min(costs)


def test_ik_names_the_cause_of_unreachable_goals() -> None:
    chain = arm("scitos_arm")
    far = np.eye(4)
    far[:3, 3] = (3.0, 0.0, 0.5)
    assert solve_ik(chain, far).failure is IkFailure.OUT_OF_REACH
    q = chain.sample_positions(np.random.default_rng(8), 1)[0]
    T = chain.forward(q)
    assert solve_ik(chain, T @ SE3.from_xyz_rpy(rpy=(0.3, 0.2, 0.0)).matrix()).failure is IkFailure.ORIENTATION
    narrow = build_chain(find_groups("scitos_arm").model, "arm_base", "gripper_link")
    rows = narrow.arrays._replace(lower=q - 0.5, upper=q - 0.2)
    object.__setattr__(narrow, "arrays", rows)
    answer = solve_ik(narrow, T)
    assert answer.failure is IkFailure.JOINT_LIMITS
    assert answer.nearest is not None
    assert narrow.is_within_limits(answer.nearest.joints)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_chains_without_closed_form_are_searched(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = ["revolute"] * 5 + ["prismatic"] + ["revolute"]
    chain = build_chain(load_model(urdf([random_joint(rng, (kind,)) for kind in kinds])), "link_0", "link_7")
    assert find_closed_form(chain) is None
    q = chain.sample_positions(rng, 10)
    batch = solve_ik_batch(chain, chain.forward(q))
    assert batch.method == "search"
    assert batch.is_solved.mean() >= 0.9
    np.testing.assert_allclose(chain.forward(batch.best[batch.is_solved]), chain.forward(q)[batch.is_solved], atol=2e-6)
    assert chain.is_within_limits(batch.best[batch.is_solved]).all()


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (np.full((4, 4), np.nan), "not finite"),
        (np.eye(3), r"goal of shape \(3, 3\)"),
        (np.zeros((4, 4)), "is no pose"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), "is no pose"),
        ("up", "no array of numbers"),
        (PointingTarget((0, 0), (0, 0, 1)), "position"),
        (PointingTarget((0, 0, np.inf), (0, 0, 1)), "position"),
        (PointingTarget((0, 0, 1), (0, 0, 0)), "is no direction"),
        (PointingTarget((0, 0, 1), (0, 0, 1), (0, 0, 0)), "tool_axis"),
    ],
)
def test_ik_refuses_bad_goals(goal: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        solve_ik(arm("scitos_arm"), goal)  # type: ignore[arg-type]


def test_ik_refuses_bad_seeds_and_settings() -> None:
    chain = arm("scitos_arm")
    for near in (np.zeros(4), np.full(5, np.nan), np.zeros((2, 5))):
        with pytest.raises(InputError, match="joint positions|seed|position of"):
            solve_ik(chain, np.eye(4), near)
    with pytest.raises(InputError, match=r"seed of shape \(3, 5\).*\(2, 5\)"):
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
