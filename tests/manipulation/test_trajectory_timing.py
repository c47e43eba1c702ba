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
from roboyard.manipulation.timing import JointLimits, Path, Trajectory, jerk_limited

seeds = st.integers(0, 2**32 - 1)


def some_limits(rng: np.random.Generator, n: int) -> JointLimits:
    names = tuple(f"joint_{k}" for k in range(n))
    return JointLimits(names, rng.uniform(0.3, 4.0, n), rng.uniform(0.3, 20.0, n), rng.uniform(5.0, 200.0, n))


def bent_path(rng: np.random.Generator, names: tuple[str, ...], corners: int) -> Path:
    """Lines with parabolas in the corners."""
    points = rng.uniform(-2.0, 2.0, (corners + 2, len(names)))
    directions = np.diff(points, axis=0)
    lengths = np.linalg.norm(directions, axis=1)
    directions /= lengths[:, None]
    pieces, sizes, at = [], [], points[0]
    for k in range(corners + 1):
        r = rng.uniform(0.05, 0.45) * min(lengths[k], lengths[min(k + 1, corners)])
        end = points[k + 1] - (r * directions[k] if k < corners else 0.0)
        pieces.append(np.stack([at, directions[k], 0.0 * at]))
        sizes.append(np.linalg.norm(end - at))
        if k < corners:
            pieces.append(np.stack([end, directions[k], (directions[k + 1] - directions[k]) / (4.0 * r)]))
            sizes.append(2.0 * r)
            at = points[k + 1] + r * directions[k + 1]
    return Path.of_pieces(names, np.array(pieces), np.array(sizes))


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 7), st.integers(0, 5))
def test_timed_path_keeps_limits_at_every_millisecond(seed: int, n: int, corners: int) -> None:
    rng = np.random.default_rng(seed)
    limits = some_limits(rng, n)
    path = bent_path(rng, limits.joints, corners)
    motion = path.timed(limits)
    times = np.arange(0.0, motion.duration + 1e-3, 1e-3)
    at = motion.at(times)
    assert limits.exceeded(at.velocity, at.acceleration) <= 1.0 + 1e-9
    np.testing.assert_allclose(motion.start, path.pieces[0, 0], atol=1e-12)
    np.testing.assert_allclose(at.position[-1], path.points(0.1)[-1], atol=1e-9)
    np.testing.assert_array_equal(at.velocity[-1], 0.0)
    assert not path.rests[1:-1].any()


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 6), st.integers(0, 4))
def test_velocity_and_acceleration_are_derivatives_of_position(seed: int, n: int, corners: int) -> None:
    rng = np.random.default_rng(seed)
    limits = some_limits(rng, n)
    motion = bent_path(rng, limits.joints, corners).timed(limits)
    times, h = rng.uniform(1e-3, motion.duration - 1e-3, 200), 1e-6
    before, here, after = (motion.at(times + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose((after.position - before.position) / (2 * h), here.velocity, atol=1e-4)
    slopes = (after.velocity - before.velocity) / (2 * h)
    close = np.abs(slopes - here.acceleration).max(axis=1) < 1e-3 * limits.acceleration.max()
    assert close.mean() > 0.95  # but where the acceleration jumps


def test_single_joint_takes_the_shortest_possible_time() -> None:
    names, one = ("joint",), np.ones(1)
    for way, v, a in ((1.0, 0.5, 2.0), (0.1, 5.0, 1.0), (3.0, 1.0, 1.0)):
        limits = JointLimits(names, v * one, a * one, math.inf * one)
        motion = Path.straight(names, [[0.0], [way]]).timed(limits)
        best = way / v + v / a if way > v * v / a else 2.0 * math.sqrt(way / a)
        assert best - 1e-9 <= motion.duration <= 1.005 * best


def toppra_duration(path: Path, limits: JointLimits) -> float:
    toppra = pytest.importorskip("toppra")
    toppra.setup_logging("ERROR")
    from toppra import algorithm, constraint

    starts = np.concatenate([[0.0], np.cumsum(path.lengths)])

    class Given(toppra.interpolator.AbstractGeometricPath):  # type: ignore[misc, name-defined]
        dof = len(path.joints)
        path_interval = np.array([0.0, starts[-1]])
        waypoints = None

        def __call__(self, s: Any, order: int = 0) -> Any:
            x = np.atleast_1d(s)
            i = np.clip(np.searchsorted(starts, x, side="right") - 1, 0, len(path.lengths) - 1)
            d, c = (x - starts[i])[:, None], path.pieces[i]
            found = (c[:, 0] + d * (c[:, 1] + d * c[:, 2]), c[:, 1] + 2 * d * c[:, 2], 2 * c[:, 2])[order]
            return found[0] if np.ndim(s) == 0 else found

    both = [np.stack([-one, one], axis=1) for one in (limits.velocity, limits.acceleration)]
    grid = np.unique(np.concatenate([np.linspace(0.0, starts[-1], 400), starts]))
    asked = [constraint.JointVelocityConstraint(both[0]), constraint.JointAccelerationConstraint(both[1])]
    found = algorithm.TOPPRA(asked, Given(), gridpoints=grid, parametrizer="ParametrizeConstAccel").compute_trajectory()
    return float(found.duration)


@pytest.mark.parametrize("seed", range(4))
def test_timed_path_is_as_fast_as_toppra(seed: int) -> None:
    rng = np.random.default_rng(seed)
    limits = some_limits(rng, 6)
    path = bent_path(rng, limits.joints, 3)
    assert path.timed(limits).duration == pytest.approx(toppra_duration(path, limits), rel=0.02)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 6), st.integers(0, 4), st.just(0.0) | st.floats(1e-9, 1.0))
@example(0, 6, 0, 1.0 / 3.0)  # a hair before a point of the motion
def test_stop_stays_on_the_path_and_keeps_limits(seed: int, n: int, corners: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    limits = some_limits(rng, n)
    motion = bent_path(rng, limits.joints, corners).timed(limits)
    time = share * motion.duration
    stop = motion.stop(time)
    at = stop.at(np.linspace(0.0, stop.duration, 300))
    np.testing.assert_allclose(at.position[0], motion.sample(time).position, atol=1e-9)
    if stop.duration > 1e-6:
        np.testing.assert_allclose(at.velocity[0], motion.sample(time).velocity, atol=1e-6)
    assert limits.exceeded(at.velocity[:-1], at.acceleration[:-1]) <= 1.0 + 1e-6
    assert stop.squares[-1] <= 1e-12
    assert stop.duration <= motion.duration - time + 1e-6
    dense = motion.at(np.linspace(time, motion.duration, 3000)).position
    for q in at.position[::60]:
        assert np.linalg.norm(dense - q, axis=1).min() < 0.02


def test_corners_of_a_path_are_passed_at_rest() -> None:
    limits = some_limits(np.random.default_rng(0), 2)
    points = [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    path = Path.straight(limits.joints, points)
    assert path.rests.tolist() == [True, True, True]
    motion = path.timed(limits)
    at = motion.at(np.linspace(0.0, motion.duration, 5000))
    corner = np.argmin(np.linalg.norm(at.position - [1.0, 0.0], axis=1))
    assert np.abs(at.velocity[corner]).max() < 0.1
    straight = Path.straight(limits.joints, [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    assert straight.rests.tolist() == [True, False, True]


def test_way_points_reproduce_the_motion_by_splines() -> None:
    rng = np.random.default_rng(5)
    limits = some_limits(rng, 5)
    motion = bent_path(rng, limits.joints, 3).timed(limits)
    spline = Spline(motion.way_points(0.01))
    for time in rng.uniform(0.0, motion.duration, 300):
        np.testing.assert_allclose(spline.sample(time).position, motion.sample(time).position, atol=2e-4)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 7))
def test_jerk_limited_motion_keeps_limits_on_a_straight_line(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    limits = some_limits(rng, n)
    a, b = rng.uniform(-2.0, 2.0, (2, n))
    motion = jerk_limited(limits.joints, a, b, limits)
    at = motion.at(np.arange(0.0, motion.duration, 1e-3))
    assert limits.exceeded(at.velocity, at.acceleration) <= 1.0 + 1e-6
    assert (np.abs(np.diff(at.acceleration, axis=0)) <= limits.jerk * 1e-3 * (1.0 + 1e-6) + 1e-9).all()
    along = (at.position - a) @ (b - a) / ((b - a) @ (b - a))
    np.testing.assert_allclose(at.position, a + along[:, None] * (b - a), atol=1e-6)
    np.testing.assert_allclose(motion.sample(motion.duration).position, b, atol=1e-9)
    slower = JointLimits(limits.joints, limits.velocity, limits.acceleration, limits.jerk / 2.0)
    assert jerk_limited(limits.joints, a, b, slower).duration >= motion.duration - 1e-9


def test_timing_again_gives_the_same_bits() -> None:
    def run() -> bytes:
        rng = np.random.default_rng(3)
        limits = some_limits(rng, 6)
        motion = bent_path(rng, limits.joints, 4).timed(limits)
        return motion.at(np.linspace(0.0, motion.duration, 100)).position.tobytes() + motion.times.tobytes()

    assert run() == run()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda lim, m: Path.straight(lim.joints, []), "way points"),
        (lambda lim, m: Path.straight(lim.joints, [[0.0, 0.0]]), "way points"),
        (lambda lim, m: Path.straight(lim.joints, [[0.0, 0.0], [math.nan, 0.0]]), "way points"),
        (lambda lim, m: Path.straight(lim.joints, [[0.0, 0.0], [0.0, 0.0]]), "nowhere"),
        (lambda lim, m: Path.straight(("a", "b"), [[0.0, 0.0], [1.0, 0.0]]).timed(lim), "limits of"),
        (lambda lim, m: JointLimits(lim.joints, np.zeros(2), lim.acceleration, lim.jerk), "velocity"),
        (lambda lim, m: JointLimits(lim.joints, lim.velocity, lim.acceleration[:1], lim.jerk), "acceleration"),
        (lambda lim, m: JointLimits(lim.joints, lim.velocity, np.array([1.0, math.nan]), lim.jerk), "acceleration"),
        (lambda lim, m: m.stop(-1.0), "stop"),
        (lambda lim, m: m.stop(m.duration + 1.0), "stop"),
        (lambda lim, m: m.at([math.nan]), "times"),
        (lambda lim, m: m.way_points(0.0), "apart"),
        (lambda lim, m: jerk_limited(lim.joints, [0.0], [1.0], lim), "positions"),
        (
            lambda lim, m: jerk_limited(
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
    limits = some_limits(np.random.default_rng(0), 2)
    motion: Trajectory = Path.straight(limits.joints, [[0.0, 0.0], [1.0, 0.5]]).timed(limits)
    with pytest.raises(InputError, match=words):
        act(limits, motion)
