"""Efforts in timing: kept at each millisecond, no time lost beside toppra; what cannot be held is said clearly."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manipulation.test_trajectory_timing import bent_path

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import Sphere
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.kinematics import Chain, ChainDynamics
from roboyard.manipulation import Groups
from roboyard.manipulation.collision.obstacles import Attached
from roboyard.manipulation.planning import JointGoal, NamedGoal, PlanSettings, plan
from roboyard.manipulation.scene import PlanningScene
from roboyard.manipulation.timing import EffortError, EffortLimits, JointLimits, Path, Trajectory

SHARE = 0.95
LEVEL = np.array([2.9496, 1.1345 + 1.57, -2.5482, 1.7890, 2.9234])
"""The youBot's arm stretched out level."""
LIFT = np.array([0.4, 1.2, 0.8, -0.5, 0.3])


@cache
def groups(name: str) -> Groups:
    return load_joint_groups(name)


def quick(chain: Chain) -> JointLimits:
    """Accelerations that efforts do not allow everywhere."""
    return JointLimits(chain.joints, chain.max_velocity, np.full(chain.dof, 12.0), np.full(chain.dof, math.inf))


def path_of(rng: np.random.Generator, chain: Chain) -> Path:
    """Lines with parabolas in the corners, well within the limits of the joints."""
    bent = bent_path(rng, chain.joints, 2)  # in -2 … 2
    middle, scale = 0.5 * (chain.lower + chain.upper), 0.15 * (chain.upper - chain.lower)
    pieces = bent.pieces * scale
    pieces[:, 0] += middle
    return Path.of_pieces(chain.joints, pieces, bent.lengths)


def used(dynamics: ChainDynamics, motion: Trajectory, step: float = 1e-3) -> float:
    """The greatest share of an effort that a motion takes, beside where it takes nearly as much to hold still."""
    at = motion.at(np.arange(0.0, motion.duration, step))
    rubs = dynamics.friction * np.sign(at.velocity)
    needed = np.abs(dynamics.inverse_dynamics(*at) + rubs) / dynamics.chain.max_effort
    still = np.abs(dynamics.inverse_dynamics(at.position) + rubs) / dynamics.chain.max_effort
    return float(np.where(needed < still + 0.02, np.minimum(needed, SHARE), needed).max())


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["youbot_arm", "iisy"]))
def test_timed_path_keeps_efforts_at_every_millisecond(seed: int, name: str) -> None:
    scene = PlanningScene.of(groups(name))
    path, limits = path_of(np.random.default_rng(seed), scene.chain), quick(scene.chain)
    try:
        motion = path.timed(limits, EffortLimits(scene.dynamics, SHARE))
    except EffortError:
        return  # where it cannot hold still; see below
    assert used(scene.dynamics, motion) <= SHARE + 0.005
    at = motion.at(np.arange(0.0, motion.duration, 1e-3))
    assert limits.exceeded(at.velocity, at.acceleration) <= 1.0 + 1e-9
    assert motion.duration >= path.timed(limits).duration - 1e-9


def test_effort_limits_bind_weak_joints_only() -> None:
    scene = PlanningScene.of(groups("youbot_arm"))
    path, limits = Path.straight(scene.chain.joints, [LEVEL, LEVEL - LIFT]), quick(scene.chain)
    assert used(scene.dynamics, path.timed(limits)) > 1.2
    gentle = JointLimits(limits.joints, 0.3 * limits.velocity, 0.01 * limits.acceleration, limits.jerk)
    path = Path.straight(scene.chain.joints, [LEVEL - 0.8 * LIFT, LEVEL - 1.2 * LIFT])
    free, held = path.timed(gentle), path.timed(gentle, EffortLimits(scene.dynamics, SHARE))
    assert free.squares.tolist() == held.squares.tolist()


@pytest.mark.parametrize("seed", range(2))
def test_effort_limited_path_is_as_fast_as_toppra(seed: int) -> None:
    toppra = pytest.importorskip("toppra")
    toppra.setup_logging("ERROR")
    from toppra import algorithm, constraint

    scene = PlanningScene.of(groups("youbot_arm"))
    chain, dynamics = scene.chain, scene.dynamics
    undamped = ChainDynamics(chain, dynamics.masses, 0.0 * dynamics.damping, 0.0 * dynamics.friction)
    limits, efforts = quick(chain), EffortLimits(undamped, SHARE)
    lift = LIFT * np.random.default_rng(seed).uniform(0.6, 1.0, chain.dof)
    path = Path.straight(chain.joints, [LEVEL - 0.2 * LIFT, LEVEL - 0.2 * LIFT - lift])

    class Given(toppra.interpolator.AbstractGeometricPath):  # type: ignore[misc, name-defined]
        dof, path_interval, waypoints = chain.dof, np.array([0.0, path.length]), None

        def __call__(self, s: Any, order: int = 0) -> Any:
            x, c = np.atleast_1d(s)[:, None], path.pieces[0]
            found = (c[0] + x * c[1], c[1] + 0 * x, 0 * c[1] + 0 * x)[order]
            return found[0] if np.ndim(s) == 0 else found

    both = [np.stack([-one, one], axis=1) for one in (limits.velocity, limits.acceleration, SHARE * efforts.greatest)]
    asked = [
        constraint.JointVelocityConstraint(both[0]),
        constraint.JointAccelerationConstraint(both[1]),
        constraint.JointTorqueConstraint(undamped.inverse_dynamics, both[2], np.zeros(chain.dof)),
    ]
    grid = np.linspace(0.0, path.length, 400)
    found = algorithm.TOPPRA(asked, Given(), gridpoints=grid, parametrizer="ParametrizeConstAccel").compute_trajectory()
    motion = path.timed(limits, efforts)
    assert motion.duration == pytest.approx(float(found.duration), rel=0.03)
    assert motion.duration > 1.02 * path.timed(limits).duration


def test_stop_keeps_effort_limits() -> None:
    scene = PlanningScene.of(groups("youbot_arm"))
    path, efforts = path_of(np.random.default_rng(1), scene.chain), EffortLimits(scene.dynamics, SHARE)
    motion = path.timed(quick(scene.chain), efforts)
    for share in np.linspace(0.05, 0.95, 10):
        stop = motion.stop(share * motion.duration)
        assert stop.squares[-1] <= 1e-12
        assert used(scene.dynamics, stop) <= SHARE + 0.01


def carrying(mass: float) -> PlanningScene:
    thing = Attached("thing", "gripper_palm", Sphere(0.02), SE3.from_xyz_rpy((0, 0, 0.08)), ("gripper_finger_left",
                     "gripper_finger_right"), mass)  # fmt: skip
    return PlanningScene.of(groups("youbot_arm"), "arm").attach(thing)


def test_carried_load_takes_time() -> None:
    start = groups("youbot_arm").group("arm").pose("upright")
    goal = JointGoal(start + np.array([0.0, 0.6, 0.9, 0.4, 0.0]))
    quickly = quick(carrying(0.0).chain)
    times = [plan(carrying(mass), start, goal, limits=quickly).trajectory.duration for mass in (0.0, 0.15, 0.3)]
    assert times == sorted(times)
    assert times[2] > 1.02 * times[0]


def test_unholdable_load_names_joint_and_place() -> None:
    upright = groups("youbot_arm").group("arm").pose("upright")
    light, heavy = carrying(0.05), carrying(0.3)
    assert plan(light, upright, JointGoal(LEVEL)).goal == pytest.approx(LEVEL)
    cases: list[tuple[Callable[[], object], str | None]] = [
        (lambda: plan(heavy, upright, JointGoal(LEVEL)), "arm_joint_2 needs .* N m to hold still at the goal"),
        (lambda: plan(heavy, LEVEL, NamedGoal("upright")), "arm_joint_2 needs .* N m to hold still at the start"),
        (lambda: plan(heavy, upright, NamedGoal("pick")), None),
    ]
    for wrong, said in cases:
        if said is None:
            wrong()
            continue
        with pytest.raises(EffortError, match=said) as error:
            wrong()
        assert "at most its 9.5 N m" in str(error.value)
    folded = LEVEL + np.array([0.0, 0.0, 2.3, 0.0, 0.0])
    passing = Path.straight(heavy.chain.joints, [upright, LEVEL, folded])
    with pytest.raises(EffortError, match="arm_joint_2 needs .* to move slowly on the way, arm_joint_1 2.95"):
        passing.timed(quick(heavy.chain), EffortLimits(heavy.dynamics))


def test_bad_effort_shares_are_refused_and_unknown_limits_ignored() -> None:
    scene = PlanningScene.of(groups("youbot_arm"))
    for share in (0.0, 1.1, math.nan):
        with pytest.raises(InputError, match="share of effort"):
            EffortLimits(scene.dynamics, share)
        with pytest.raises(InputError, match="share of effort"):
            plan(scene, scene.group.pose("upright"), NamedGoal("pick"), PlanSettings(effort=share))
    other = JointLimits(("a",), np.ones(1), np.ones(1), np.ones(1))
    with pytest.raises(InputError, match="limits of a"):
        Path.straight(("a",), [[0.0], [1.0]]).timed(other, EffortLimits(scene.dynamics))
