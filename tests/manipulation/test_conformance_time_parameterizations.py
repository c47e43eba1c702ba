"""Every registered time parameterization keeps the contract; functions that break one promise are found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.control import JointSample, SampledMotion, Trajectory
from roboyard.errors import InputError, UnknownNameError
from roboyard.manipulation import TIME_PARAMETERIZATIONS, time_parameterize
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.conformance import check_time_parameterization, check_trajectory
from roboyard.manipulation.errors import EffortLimitError
from roboyard.manipulation.time_parameterization import (
    EffortLimits,
    JointLimits,
    JointPath,
    TimedWaypointTrajectory,
)


def make_limits(n: int = 2) -> JointLimits:
    return JointLimits(tuple(f"joint_{k}" for k in range(n)), np.full(n, 1.0), np.full(n, 2.0), np.full(n, 20.0))


def make_path(n: int = 2) -> JointPath:
    points = np.random.default_rng(3).uniform(-1.0, 1.0, (4, n))
    return JointPath.from_points(make_limits(n).joints, points)


@pytest.mark.parametrize("name", TIME_PARAMETERIZATIONS.names())
def test_every_registered_time_parameterization_keeps_the_contract(name: str) -> None:
    check_time_parameterization(TIME_PARAMETERIZATIONS[name])


def test_time_parameterizations_are_found_by_name() -> None:
    assert {"time_optimal", "jerk_limited"} <= set(TIME_PARAMETERIZATIONS.names())
    with pytest.raises(UnknownNameError, match="did you mean 'time_optimal'"):
        time_parameterize(make_path(), make_limits(), method="time_optimum")


def test_motions_with_waypoint_times_and_splines_keep_the_contract_of_motions() -> None:
    limits, path = make_limits(), make_path()
    motion = time_parameterize(path, limits)
    points = motion.to_points(0.005)
    times, positions, velocities = (
        np.array([getattr(point, key) for point in points]) for key in ("time", "position", "velocity")
    )
    loose = replace(limits, velocity=1.1 * limits.velocity, acceleration=8.0 * limits.acceleration)
    assert len(times) > 100
    timed = TimedWaypointTrajectory(limits.joints, times, positions, velocities)
    for other in (timed, Trajectory(timed.to_cubic_points())):
        sampled = other.sample_at([0.3, 0.1])
        np.testing.assert_array_equal(sampled.position[1], other.sample(0.1).position)
        assert other.duration == motion.duration
    straight = JointPath.from_points(limits.joints, [[0.0, 0.0], [1.0, 0.5]])
    knots = time_parameterize(straight, limits).to_cubic_points()  # type: ignore[attr-defined]
    check_trajectory(Trajectory(knots), straight, loose)


def test_jerk_limited_motion_is_slower_than_the_time_optimal_one() -> None:
    limits, path = make_limits(), make_path()
    fast, smooth = (time_parameterize(path, limits, method=name) for name in ("time_optimal", "jerk_limited"))
    assert 1.0 < smooth.duration / fast.duration < 2.0


def test_jerk_limited_parameterization_refuses_blended_corners_and_too_high_efforts() -> None:
    limits = make_limits(1)
    blended = JointPath.from_segments(limits.joints, np.array([[[0.0], [1.0], [0.1]]]), np.ones(1))
    with pytest.raises(InputError, match="blended corners"):
        time_parameterize(blended, limits, method="jerk_limited")
    scene = PlanningScene.create(load_joint_groups("youbot_arm"))
    chain = scene.chain
    fast = JointLimits(chain.joints, chain.max_velocity, np.full(chain.dof, 1e3), np.full(chain.dof, 1e6))
    path = JointPath.from_points(chain.joints, [scene.group.pose("upright"), scene.group.pose("rest")])
    with pytest.raises(EffortLimitError, match="needs an effort"):
        time_parameterize(path, fast, EffortLimits(scene.dynamics), method="jerk_limited")


@dataclass
class ChangedMotion(SampledMotion):
    """A motion that breaks one promise."""

    motion: Any
    violation: str

    @property
    def duration(self) -> float:
        return float("nan") if self.violation == "takes nan s" else float(self.motion.duration)

    def sample_at(self, times: ArrayLike) -> JointSample:
        t = np.asarray(times, dtype=np.float64)
        if self.violation == "does not lead":
            t = np.minimum(t, 0.8 * self.duration)
        if self.violation == "moves backwards":
            span = 0.4 * self.duration
            t = np.where((t > span) & (t < span + 0.02), 2.0 * span - t, t)
        position, velocity, acceleration = (part.copy() for part in self.motion.sample_at(t))
        if self.violation == "is not at rest":
            velocity[-1] = 0.01
        if self.violation == "not the derivatives":
            velocity *= 0.5
        if self.violation == "exceeds a limit":
            velocity *= 1.01
        if self.violation == "leaves the path":
            position[1:-1, 0] += 1e-4 * (len(t) > 10)
        return JointSample(position, velocity, acceleration)


@pytest.mark.parametrize(
    "violation",
    [
        "takes nan s",
        "is not at rest",
        "does not lead",
        "moves backwards",
        "not the derivatives",
        "exceeds a limit",
        "leaves the path",
    ],
)
def test_check_finds_each_violation_of_a_motion(violation: str) -> None:
    def parameterize(path: JointPath, limits: JointLimits, efforts: EffortLimits | None = None) -> SampledMotion:
        return ChangedMotion(time_parameterize(path, limits, efforts), violation)

    with pytest.raises(InputError) as caught:
        check_time_parameterization(parameterize)
    assert violation in str(caught.value)
    assert str(caught.value).startswith("parameterize: ")


def test_check_finds_violations_of_the_function() -> None:
    n_calls = 0

    def change_arguments(path: JointPath, limits: JointLimits, efforts: Any = None) -> SampledMotion:
        motion = time_parameterize(path, limits)
        limits.velocity[:] *= 2.0
        return motion

    def depend_on_calls(path: JointPath, limits: JointLimits, efforts: Any = None) -> SampledMotion:
        nonlocal n_calls
        n_calls += 1
        return time_parameterize(path, replace(limits, velocity=limits.velocity * (1.0 - 0.01 * n_calls)))

    def accept_other_joints(path: JointPath, limits: JointLimits, efforts: Any = None) -> SampledMotion:
        return time_parameterize(path, replace(limits, joints=path.joints))

    def jump(path: JointPath, limits: JointLimits, efforts: Any = None) -> SampledMotion:
        return time_parameterize(path, limits)

    jump.limits_jerk = True  # type: ignore[attr-defined]
    for parameterize, words in (
        (change_arguments, "changes its arguments"),
        (depend_on_calls, "another motion for the same arguments"),
        (accept_other_joints, "accepts the limits of other joints"),
        (jump, "exceeds a limit of jerk"),
    ):
        with pytest.raises(InputError, match=words):
            check_time_parameterization(parameterize)


def test_check_finds_a_wrong_stop() -> None:
    @dataclass
    class LateStop(ChangedMotion):
        def stop_from(self, time: float) -> SampledMotion:
            stop: SampledMotion = self.motion.stop_from(0.5 * time)
            return stop

    motion = time_parameterize(make_path(), make_limits())
    check_trajectory(motion, make_path(), make_limits())
    with pytest.raises(InputError, match="begins a stop at another state"):
        check_trajectory(LateStop(motion, ""), make_path(), make_limits())
