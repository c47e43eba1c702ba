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
from tests.manipulation.test_time_parameterization_time_optimal import random_blended_path

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import Sphere
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.kinematics import Chain, ChainDynamics
from roboyard.manipulation import PlanConfig, SemanticDescription, plan_motion
from roboyard.manipulation.collision.obstacles import AttachedBody
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import EffortLimitError
from roboyard.manipulation.planning import JointGoal, NamedGoal
from roboyard.manipulation.time_parameterization import EffortLimits, JointLimits, JointPath, TimeOptimalTrajectory

EFFORT_FRACTION = 0.95
LEVEL = np.array([2.9496, 1.1345 + 1.57, -2.5482, 1.7890, 2.9234])
"""The youBot's arm stretched out level."""
LIFT = np.array([0.4, 1.2, 0.8, -0.5, 0.3])


@cache
def groups(name: str) -> SemanticDescription:
    return load_joint_groups(name)


def fast_limits(chain: Chain) -> JointLimits:
    """Accelerations that efforts do not allow everywhere."""
    return JointLimits(chain.joints, chain.max_velocity, np.full(chain.dof, 12.0), np.full(chain.dof, math.inf))


def random_path(rng: np.random.Generator, chain: Chain) -> JointPath:
    """Lines with parabolas in the corners, well within the limits of the joints."""
    blended_path = random_blended_path(rng, chain.joints, 2)  # in -2 … 2
    center, scale = 0.5 * (chain.lower + chain.upper), 0.15 * (chain.upper - chain.lower)
    segments = blended_path.segments * scale
    segments[:, 0] += center
    return JointPath.from_segments(chain.joints, segments, blended_path.lengths)


def max_effort_ratio(dynamics: ChainDynamics, motion: TimeOptimalTrajectory, step: float = 1e-3) -> float:
    """The greatest share of an effort that a motion takes, beside where it takes nearly as much to hold still."""
    samples = motion.sample_at(np.arange(0.0, motion.duration, step))
    friction = dynamics.friction * np.sign(samples.velocity)
    motion_ratio = np.abs(dynamics.inverse_dynamics(*samples) + friction) / dynamics.chain.max_effort
    holding_ratio = np.abs(dynamics.inverse_dynamics(samples.position) + friction) / dynamics.chain.max_effort
    return float(
        np.where(motion_ratio < holding_ratio + 0.02, np.minimum(motion_ratio, EFFORT_FRACTION), motion_ratio).max()
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["youbot_arm", "iisy"]))
def test_timed_path_keeps_efforts_at_every_millisecond(seed: int, name: str) -> None:
    scene = PlanningScene.create(groups(name))
    path, limits = random_path(np.random.default_rng(seed), scene.chain), fast_limits(scene.chain)
    try:
        motion = path.parameterize(limits, EffortLimits(scene.dynamics, EFFORT_FRACTION))
    except EffortLimitError:
        return  # where it cannot hold still; see below
    assert max_effort_ratio(scene.dynamics, motion) <= EFFORT_FRACTION + 0.005
    samples = motion.sample_at(np.arange(0.0, motion.duration, 1e-3))
    assert limits.utilization(samples.velocity, samples.acceleration) <= 1.0 + 1e-9
    assert motion.duration >= path.parameterize(limits).duration - 1e-9


def test_effort_limits_slow_weak_joints_only() -> None:
    scene = PlanningScene.create(groups("youbot_arm"))
    path, limits = JointPath.from_points(scene.chain.joints, [LEVEL, LEVEL - LIFT]), fast_limits(scene.chain)
    assert max_effort_ratio(scene.dynamics, path.parameterize(limits)) > 1.2
    slow_limits = JointLimits(limits.joints, 0.3 * limits.velocity, 0.01 * limits.acceleration, limits.jerk)
    path = JointPath.from_points(scene.chain.joints, [LEVEL - 0.8 * LIFT, LEVEL - 1.2 * LIFT])
    free, effort_limited = (
        path.parameterize(slow_limits),
        path.parameterize(slow_limits, EffortLimits(scene.dynamics, EFFORT_FRACTION)),
    )
    assert free.squared_speeds.tolist() == effort_limited.squared_speeds.tolist()


@pytest.mark.parametrize("seed", range(2))
def test_effort_limited_path_is_as_fast_as_toppra(seed: int) -> None:
    toppra = pytest.importorskip("toppra")
    toppra.setup_logging("ERROR")
    from toppra import algorithm, constraint

    scene = PlanningScene.create(groups("youbot_arm"))
    chain, dynamics = scene.chain, scene.dynamics
    undamped = ChainDynamics(chain, dynamics.masses, 0.0 * dynamics.damping, 0.0 * dynamics.friction)
    limits, efforts = fast_limits(chain), EffortLimits(undamped, EFFORT_FRACTION)
    lift = LIFT * np.random.default_rng(seed).uniform(0.6, 1.0, chain.dof)
    path = JointPath.from_points(chain.joints, [LEVEL - 0.2 * LIFT, LEVEL - 0.2 * LIFT - lift])

    class GeometricPath(toppra.interpolator.AbstractGeometricPath):  # type: ignore[misc, name-defined]
        dof, path_interval, waypoints = chain.dof, np.array([0.0, path.length]), None

        def __call__(self, s: Any, order: int = 0) -> Any:
            x, c = np.atleast_1d(s)[:, None], path.segments[0]
            found = (c[0] + x * c[1], c[1] + 0 * x, 0 * c[1] + 0 * x)[order]
            return found[0] if np.ndim(s) == 0 else found

    both = [
        np.stack([-one, one], axis=1)
        for one in (limits.velocity, limits.acceleration, EFFORT_FRACTION * efforts.max_effort)
    ]
    constraints = [
        constraint.JointVelocityConstraint(both[0]),
        constraint.JointAccelerationConstraint(both[1]),
        constraint.JointTorqueConstraint(undamped.inverse_dynamics, both[2], np.zeros(chain.dof)),
    ]
    grid = np.linspace(0.0, path.length, 400)
    found = algorithm.TOPPRA(
        constraints, GeometricPath(), gridpoints=grid, parametrizer="ParametrizeConstAccel"
    ).compute_trajectory()
    motion = path.parameterize(limits, efforts)
    assert motion.duration == pytest.approx(float(found.duration), rel=0.03)
    assert motion.duration > 1.02 * path.parameterize(limits).duration


def test_stop_keeps_effort_limits() -> None:
    scene = PlanningScene.create(groups("youbot_arm"))
    path, efforts = random_path(np.random.default_rng(1), scene.chain), EffortLimits(scene.dynamics, EFFORT_FRACTION)
    motion = path.parameterize(fast_limits(scene.chain), efforts)
    for fraction in np.linspace(0.05, 0.95, 10):
        stop = motion.stop_from(fraction * motion.duration)
        assert stop.squared_speeds[-1] <= 1e-12
        assert max_effort_ratio(scene.dynamics, stop) <= EFFORT_FRACTION + 0.01


def scene_with_payload(mass: float) -> PlanningScene:
    payload = AttachedBody(
        "thing",
        "gripper_palm",
        Sphere(0.02),
        SE3.from_xyz_rpy((0, 0, 0.08)),
        ("gripper_finger_left", "gripper_finger_right"),
        mass,
    )
    return PlanningScene.create(groups("youbot_arm"), "arm").attach(payload)


def test_payload_takes_time() -> None:
    start = groups("youbot_arm").group("arm").pose("upright")
    goal = JointGoal(start + np.array([0.0, 0.6, 0.9, 0.4, 0.0]))
    limits = fast_limits(scene_with_payload(0.0).chain)
    times = [
        plan_motion(scene_with_payload(mass), start, goal, limits=limits).trajectory.duration
        for mass in (0.0, 0.15, 0.3)
    ]
    assert times == sorted(times)
    assert times[2] > 1.02 * times[0]


def test_too_heavy_payload_names_joint_and_position() -> None:
    upright = groups("youbot_arm").group("arm").pose("upright")
    light, heavy = scene_with_payload(0.05), scene_with_payload(0.3)
    assert plan_motion(light, upright, JointGoal(LEVEL)).goal == pytest.approx(LEVEL)
    cases: list[tuple[Callable[[], object], str | None]] = [
        (lambda: plan_motion(heavy, upright, JointGoal(LEVEL)), "arm_joint_2 needs .* N m to hold still at the goal"),
        (
            lambda: plan_motion(heavy, LEVEL, NamedGoal("upright")),
            "arm_joint_2 needs .* N m to hold still at the start",
        ),
        (lambda: plan_motion(heavy, upright, NamedGoal("pick")), None),
    ]
    for plan_case, message in cases:
        if message is None:
            plan_case()
            continue
        with pytest.raises(EffortLimitError, match=message) as error:
            plan_case()
        assert "at most its 9.5 N m" in str(error.value)
    folded = LEVEL + np.array([0.0, 0.0, 2.3, 0.0, 0.0])
    passing = JointPath.from_points(heavy.chain.joints, [upright, LEVEL, folded])
    with pytest.raises(EffortLimitError, match="arm_joint_2 needs .* to move slowly on the path, arm_joint_1 2.95"):
        passing.parameterize(fast_limits(heavy.chain), EffortLimits(heavy.dynamics))


def test_bad_effort_fractions_and_mismatched_limits_are_refused() -> None:
    scene = PlanningScene.create(groups("youbot_arm"))
    for fraction in (0.0, 1.1, math.nan):
        with pytest.raises(InputError, match="effort fraction"):
            EffortLimits(scene.dynamics, fraction)
        with pytest.raises(InputError, match="effort"):
            plan_motion(scene, scene.group.pose("upright"), NamedGoal("pick"), PlanConfig(effort_scaling=fraction))
    other = JointLimits(("a",), np.ones(1), np.ones(1), np.ones(1))
    with pytest.raises(InputError, match="limits of a"):
        JointPath.from_points(("a",), [[0.0], [1.0]]).parameterize(other, EffortLimits(scene.dynamics))
