"""Laws of joint trajectories."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import Trajectory, TrajectoryPoint
from roboyard.control.trajectory import _cubic_coefficients, _segment_coefficients
from roboyard.errors import InputError


def points(order: int, seed: int, count: int = 5, joints: int = 3) -> list[TrajectoryPoint]:
    random = np.random.default_rng(seed)
    times = np.cumsum(random.uniform(0.1, 2.0, count))
    rows = random.uniform(-2.0, 2.0, (count, 3, joints))
    return [
        TrajectoryPoint(time, row[0], row[1] if order > 0 else None, row[2] if order > 1 else None)
        for time, row in zip(times.tolist(), rows, strict=True)
    ]


@given(st.integers(0, 2), st.integers(0, 10_000))
def test_trajectory_passes_its_points_smoothly(order: int, seed: int) -> None:
    trajectory_points = points(order, seed)
    path = Trajectory(trajectory_points)
    for point in trajectory_points[:-1]:
        sides = [path.sample(point.time + side) for side in (-1e-9, 0.0, 1e-9)]
        expected = (point.position, point.velocity, point.acceleration)[: order + 1]
        inside = sides[1:] if point is trajectory_points[0] else sides
        for sample in inside:
            for have, expected_value in zip(sample, expected, strict=False):
                assert have == pytest.approx(expected_value, abs=1e-3)
    last = path.sample(path.end + 1.0)
    assert last.position == pytest.approx(trajectory_points[-1].position)
    assert not last.velocity.any()


@given(st.integers(0, 2), st.integers(0, 10_000), st.floats(0.02, 0.98))
def test_velocity_and_acceleration_are_derivatives(order: int, seed: int, fraction: float) -> None:
    trajectory_points = points(order, seed, count=2)
    path = Trajectory(trajectory_points)
    time, h = path.start + fraction * (path.end - path.start), 1e-5
    before, present, after = (path.sample(time + shift) for shift in (-h, 0.0, h))
    assert (after.position - before.position) / (2 * h) == pytest.approx(present.velocity, abs=1e-2, rel=1e-4)
    assert (after.velocity - before.velocity) / (2 * h) == pytest.approx(present.acceleration, abs=1e-1, rel=1e-3)


@given(st.integers(0, 2), st.integers(0, 10_000), st.floats(0.0, 0.999))
def test_single_sample_equals_batch_bit_for_bit(order: int, seed: int, fraction: float) -> None:
    path = Trajectory(points(order, seed))
    time = path.start + fraction * (path.end - path.start)
    for one, several in zip(path.sample(time), path.samples(np.array([time])), strict=True):
        assert np.array_equal(one, several[0])


def test_trajectory_agrees_with_scipy_hermite_spline() -> None:
    from scipy.interpolate import BPoly, CubicHermiteSpline

    trajectory_points = points(2, 7)
    times = np.array([p.time for p in trajectory_points])
    rows = np.array([[p.position, p.velocity, p.acceleration] for p in trajectory_points])
    sample_times = np.linspace(times[0], times[-1], 50)[:-1]
    quintic = BPoly.from_derivatives(times, rows)
    assert np.array([Trajectory(trajectory_points).sample(t).position for t in sample_times]) == pytest.approx(
        quintic(sample_times)
    )
    cubic = CubicHermiteSpline(times, rows[:, 0], rows[:, 1])
    plain = Trajectory([TrajectoryPoint(p.time, p.position, p.velocity) for p in trajectory_points])
    assert np.array([plain.sample(t).position for t in sample_times]) == pytest.approx(cubic(sample_times))


def test_trajectory_waits_before_its_start() -> None:
    path = Trajectory([TrajectoryPoint(1.0, np.array([2.0])), TrajectoryPoint(2.0, np.array([3.0]))])
    assert path.sample(0.0).position == [2.0]
    assert path.sample(1.5).position == [2.5]
    assert path.goal == [3.0]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "without points"),
        ([TrajectoryPoint(0.0, np.zeros(2)), TrajectoryPoint(0.0, np.ones(2))], "later"),
        ([TrajectoryPoint(-1.0, np.zeros(2))], "later"),
        ([TrajectoryPoint(np.nan, np.zeros(2))], "later"),
        ([TrajectoryPoint(0.0, np.zeros(2)), TrajectoryPoint(1.0, np.ones(3))], "one for each joint"),
        ([TrajectoryPoint(0.0, np.array([np.inf]))], "finite"),
        ([TrajectoryPoint(0.0, np.zeros(1), np.zeros(2))], "velocities"),
    ],
)
def test_invalid_trajectory_points_are_refused(bad: list[TrajectoryPoint], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Trajectory(bad)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_samples_one_by_one_equal_a_batch(count: int) -> None:
    rng = np.random.default_rng(count)
    spline = Trajectory([TrajectoryPoint(0.5 * k, rng.normal(size=3), rng.normal(size=3)) for k in range(count)])
    times = np.linspace(spline.start, spline.end, 7)[:-1]
    batch = spline.samples(times)
    for k, time in enumerate(times.tolist()):
        for found, alone in zip(batch, spline.sample(time), strict=True):
            assert found[k] == pytest.approx(alone)
    assert all(part.shape == (0, 3) for part in spline.samples(times[:0]))


@given(st.integers(2, 8), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_segments_at_once_equal_segments_in_sequence(count: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.01, 1.0, count))
    points = [TrajectoryPoint(float(t), rng.normal(size=size), rng.normal(size=size)) for t in times]
    slowly = _segment_coefficients(points)
    assert (_cubic_coefficients(points, times) == slowly).all()
