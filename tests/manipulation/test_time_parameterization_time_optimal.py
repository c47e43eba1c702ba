"""Time: limits are kept everywhere, no time is lost beside toppra, stops are on the path, jerk is limited."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roboyard.control.trajectory import Trajectory as Spline
from roboyard.errors import InputError
from roboyard.manipulation.time_parameterization import JointLimits, JointPath, TimeOptimalTrajectory, make_jerk_limited

seeds = st.integers(0, 2**32 - 1)


def random_limits(rng: np.random.Generator, n: int) -> JointLimits:
    names = tuple(f"joint_{k}" for k in range(n))
    return JointLimits(names, rng.uniform(0.3, 4.0, n), rng.uniform(0.3, 20.0, n), rng.uniform(5.0, 200.0, n))


def random_blended_path(rng: np.random.Generator, names: tuple[str, ...], corners: int) -> JointPath:
    """Lines with parabolas in the corners."""
    points = rng.uniform(-2.0, 2.0, (corners + 2, len(names)))
    directions = np.diff(points, axis=0)
    lengths = np.linalg.norm(directions, axis=1)
    directions /= lengths[:, None]
    segments, lengths_of_segments, segment_start = [], [], points[0]
    for k in range(corners + 1):
        r = rng.uniform(0.05, 0.45) * min(lengths[k], lengths[min(k + 1, corners)])
        end = points[k + 1] - (r * directions[k] if k < corners else 0.0)
        segments.append(np.stack([segment_start, directions[k], 0.0 * segment_start]))
        lengths_of_segments.append(np.linalg.norm(end - segment_start))
        if k < corners:
            segments.append(np.stack([end, directions[k], (directions[k + 1] - directions[k]) / (4.0 * r)]))
            lengths_of_segments.append(2.0 * r)
            segment_start = points[k + 1] + r * directions[k + 1]
    return JointPath.from_segments(names, np.array(segments), np.array(lengths_of_segments))


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 7), st.integers(0, 5))
def test_timed_path_keeps_limits_at_every_millisecond(seed: int, n: int, corners: int) -> None:
    rng = np.random.default_rng(seed)
    limits = random_limits(rng, n)
    path = random_blended_path(rng, limits.joints, corners)
    motion = path.parameterize(limits)
    times = np.arange(0.0, motion.duration + 1e-3, 1e-3)
    samples = motion.sample_at(times)
    assert limits.utilization(samples.velocity, samples.acceleration) <= 1.0 + 1e-9
    np.testing.assert_allclose(motion.start, path.segments[0, 0], atol=1e-12)
    np.testing.assert_allclose(samples.position[-1], path.sample(0.1)[-1], atol=1e-9)
    np.testing.assert_array_equal(samples.velocity[-1], 0.0)
    assert not path.is_stop[1:-1].any()


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 6), st.integers(0, 4))
def test_velocity_and_acceleration_are_derivatives_of_position(seed: int, n: int, corners: int) -> None:
    rng = np.random.default_rng(seed)
    limits = random_limits(rng, n)
    motion = random_blended_path(rng, limits.joints, corners).parameterize(limits)
    times, h = rng.uniform(1e-3, motion.duration - 1e-3, 200), 1e-6
    before, samples, after = (motion.sample_at(times + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose((after.position - before.position) / (2 * h), samples.velocity, atol=1e-4)
    slopes = (after.velocity - before.velocity) / (2 * h)
    close = np.abs(slopes - samples.acceleration).max(axis=1) < 1e-3 * limits.acceleration.max()
    assert close.mean() > 0.95  # but where the acceleration jumps


def test_single_joint_takes_the_shortest_possible_time() -> None:
    names, one = ("joint",), np.ones(1)
    for distance, v, a in ((1.0, 0.5, 2.0), (0.1, 5.0, 1.0), (3.0, 1.0, 1.0)):
        limits = JointLimits(names, v * one, a * one, math.inf * one)
        motion = JointPath.from_points(names, [[0.0], [distance]]).parameterize(limits)
        best = distance / v + v / a if distance > v * v / a else 2.0 * math.sqrt(distance / a)
        assert best - 1e-9 <= motion.duration <= 1.005 * best


def toppra_duration(path: JointPath, limits: JointLimits) -> float:
    toppra = pytest.importorskip("toppra")
    toppra.setup_logging("ERROR")
    from toppra import algorithm, constraint

    starts = np.concatenate([[0.0], np.cumsum(path.lengths)])

    class GeometricPath(toppra.interpolator.AbstractGeometricPath):  # type: ignore[misc, name-defined]
        dof = len(path.joints)
        path_interval = np.array([0.0, starts[-1]])
        waypoints = None

        def __call__(self, s: Any, order: int = 0) -> Any:
            x = np.atleast_1d(s)
            i = np.clip(np.searchsorted(starts, x, side="right") - 1, 0, len(path.lengths) - 1)
            d, c = (x - starts[i])[:, None], path.segments[i]
            found = (c[:, 0] + d * (c[:, 1] + d * c[:, 2]), c[:, 1] + 2 * d * c[:, 2], 2 * c[:, 2])[order]
            return found[0] if np.ndim(s) == 0 else found

    both = [np.stack([-one, one], axis=1) for one in (limits.velocity, limits.acceleration)]
    grid = np.unique(np.concatenate([np.linspace(0.0, starts[-1], 400), starts]))
    constraints = [constraint.JointVelocityConstraint(both[0]), constraint.JointAccelerationConstraint(both[1])]
    found = algorithm.TOPPRA(
        constraints, GeometricPath(), gridpoints=grid, parametrizer="ParametrizeConstAccel"
    ).compute_trajectory()
    return float(found.duration)


@pytest.mark.parametrize("seed", range(4))
def test_timed_path_is_as_fast_as_toppra(seed: int) -> None:
    rng = np.random.default_rng(seed)
    limits = random_limits(rng, 6)
    path = random_blended_path(rng, limits.joints, 3)
    assert path.parameterize(limits).duration == pytest.approx(toppra_duration(path, limits), rel=0.02)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 6), st.integers(0, 4), st.just(0.0) | st.floats(1e-9, 1.0))
@example(0, 6, 0, 1.0 / 3.0)  # a hair before a point of the motion
def test_stop_stays_on_the_path_and_keeps_limits(seed: int, n: int, corners: int, fraction: float) -> None:
    rng = np.random.default_rng(seed)
    limits = random_limits(rng, n)
    motion = random_blended_path(rng, limits.joints, corners).parameterize(limits)
    time = fraction * motion.duration
    stop = motion.stop_from(time)
    samples = stop.sample_at(np.linspace(0.0, stop.duration, 300))
    np.testing.assert_allclose(samples.position[0], motion.sample(time).position, atol=1e-9)
    if stop.duration > 1e-6:
        np.testing.assert_allclose(samples.velocity[0], motion.sample(time).velocity, atol=1e-6)
    assert limits.utilization(samples.velocity[:-1], samples.acceleration[:-1]) <= 1.0 + 1e-6
    assert stop.squared_speeds[-1] <= 1e-12
    assert stop.duration <= motion.duration - time + 1e-6
    dense = motion.sample_at(np.linspace(time, motion.duration, 3000)).position
    for q in samples.position[::60]:
        assert np.linalg.norm(dense - q, axis=1).min() < 0.02


def test_corners_of_a_path_are_passed_at_rest() -> None:
    limits = random_limits(np.random.default_rng(0), 2)
    points = [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    path = JointPath.from_points(limits.joints, points)
    assert path.is_stop.tolist() == [True, True, True]
    motion = path.parameterize(limits)
    samples = motion.sample_at(np.linspace(0.0, motion.duration, 5000))
    corner = np.argmin(np.linalg.norm(samples.position - [1.0, 0.0], axis=1))
    assert np.abs(samples.velocity[corner]).max() < 0.1
    straight = JointPath.from_points(limits.joints, [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    assert straight.is_stop.tolist() == [True, False, True]


def test_points_reproduce_the_motion_by_splines() -> None:
    rng = np.random.default_rng(5)
    limits = random_limits(rng, 5)
    motion = random_blended_path(rng, limits.joints, 3).parameterize(limits)
    spline = Spline(motion.to_points(0.01))
    for time in rng.uniform(0.0, motion.duration, 300):
        np.testing.assert_allclose(spline.sample(time).position, motion.sample(time).position, atol=2e-4)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 7))
def test_jerk_limited_motion_keeps_limits_on_a_straight_line(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    limits = random_limits(rng, n)
    a, b = rng.uniform(-2.0, 2.0, (2, n))
    motion = make_jerk_limited(limits.joints, a, b, limits)
    samples = motion.sample_at(np.arange(0.0, motion.duration, 1e-3))
    assert limits.utilization(samples.velocity, samples.acceleration) <= 1.0 + 1e-6
    assert (np.abs(np.diff(samples.acceleration, axis=0)) <= limits.jerk * 1e-3 * (1.0 + 1e-6) + 1e-9).all()
    fractions = (samples.position - a) @ (b - a) / ((b - a) @ (b - a))
    np.testing.assert_allclose(samples.position, a + fractions[:, None] * (b - a), atol=1e-6)
    np.testing.assert_allclose(motion.sample(motion.duration).position, b, atol=1e-9)
    slower = JointLimits(limits.joints, limits.velocity, limits.acceleration, limits.jerk / 2.0)
    assert make_jerk_limited(limits.joints, a, b, slower).duration >= motion.duration - 1e-9


def test_repeated_parameterization_gives_the_same_bits() -> None:
    def run() -> bytes:
        rng = np.random.default_rng(3)
        limits = random_limits(rng, 6)
        motion = random_blended_path(rng, limits.joints, 4).parameterize(limits)
        return motion.sample_at(np.linspace(0.0, motion.duration, 100)).position.tobytes() + motion.times.tobytes()

    assert run() == run()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda lim, m: JointPath.from_points(lim.joints, []), "way points"),
        (lambda lim, m: JointPath.from_points(lim.joints, [[0.0, 0.0]]), "way points"),
        (lambda lim, m: JointPath.from_points(lim.joints, [[0.0, 0.0], [math.nan, 0.0]]), "way points"),
        (lambda lim, m: JointPath.from_points(lim.joints, [[0.0, 0.0], [0.0, 0.0]]), "nowhere"),
        (lambda lim, m: JointPath.from_points(("a", "b"), [[0.0, 0.0], [1.0, 0.0]]).parameterize(lim), "limits of"),
        (lambda lim, m: JointLimits(lim.joints, np.zeros(2), lim.acceleration, lim.jerk), "velocity"),
        (lambda lim, m: JointLimits(lim.joints, lim.velocity, lim.acceleration[:1], lim.jerk), "acceleration"),
        (lambda lim, m: JointLimits(lim.joints, lim.velocity, np.array([1.0, math.nan]), lim.jerk), "acceleration"),
        (lambda lim, m: m.stop_from(-1.0), "stop"),
        (lambda lim, m: m.stop_from(m.duration + 1.0), "stop"),
        (lambda lim, m: m.sample_at([math.nan]), "times"),
        (lambda lim, m: m.to_points(0.0), "apart"),
        (lambda lim, m: make_jerk_limited(lim.joints, [0.0], [1.0], lim), "positions"),
        (
            lambda lim, m: make_jerk_limited(
                lim.joints,
                [0.0, 0.0],
                [1.0, 1.0],
                JointLimits(lim.joints, lim.velocity, lim.acceleration, np.full(2, math.inf)),
            ),
            "no limit of jerk",
        ),
    ],
)
def test_timing_refuses_bad_requests(act: Any, words: str) -> None:
    limits = random_limits(np.random.default_rng(0), 2)
    motion: TimeOptimalTrajectory = JointPath.from_points(limits.joints, [[0.0, 0.0], [1.0, 0.5]]).parameterize(limits)
    with pytest.raises(InputError, match=words):
        act(limits, motion)
