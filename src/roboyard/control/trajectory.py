"""Joint trajectories: points in time, joined by splines as ROS's joint trajectory controller joins them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array


class JointSample(NamedTuple):
    """Set-points of n joints at one time, (n,) each, or at k times, (k, n) each.

    Attributes:
        position: Positions [rad or m].
        velocity: Velocities [rad/s or m/s].
        acceleration: Accelerations [rad/s² or m/s²].
    """

    position: Array
    velocity: Array
    acceleration: Array


@dataclass(frozen=True, slots=True)
class TrajectoryPoint:
    """A point of a trajectory.

    Attributes:
        time: Time since the trajectory's start [s].
        position: (n,) positions [rad or m].
        velocity: (n,) velocities [rad/s or m/s]; None: not stated.
        acceleration: (n,) accelerations [rad/s² or m/s²]; None: not stated.
    """

    time: float
    position: Array
    velocity: Array | None = None
    acceleration: Array | None = None


class SampledMotion(Protocol):
    """Motion of joints with times, which can be sampled: the contract of trajectories.

    A class that derives from it defines `duration` and `sample_at`, and inherits the rest.
    """

    @property
    def duration(self) -> float:
        """Time from the start of the motion to its end [s]."""
        ...

    def sample_at(self, times: ArrayLike) -> JointSample:
        """Return the joint states (m, n) at times (m,) in any order [s].

        The joints are at rest before time 0, at the start, and from `duration` on, at the goal.

        Raises:
            InputError: A time is not finite, or the times are no vector.
        """
        ...

    def sample(self, time: float) -> JointSample:
        """Return the joint state (n,) at a time [s]. Raises InputError."""
        found = self.sample_at([time])
        return JointSample(found.position[0], found.velocity[0], found.acceleration[0])

    def to_points(self, step: float = 0.02) -> list[TrajectoryPoint]:
        """Return points at most ``step`` apart [s], for a controller that joins them by splines. Raises InputError."""
        if not step > 0.0:
            raise InputError(f"points {step} s apart", valid="more than 0 s")
        times = np.linspace(0.0, self.duration, max(1, math.ceil(self.duration / step)) + 1)
        found = self.sample_at(times)
        return [TrajectoryPoint(float(t), p, v, a) for t, p, v, a in zip(times, *found, strict=True)]


def check_times(times: ArrayLike) -> Array:
    """Return times as an array (m,) [s]. Raises InputError: one is not finite, or they are no vector."""
    values = np.asarray(times, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InputError(f"times of shape {values.shape}", valid="(m,), finite [s]")
    return values


class Trajectory(SampledMotion):
    """A spline through trajectory points.

    Two points that both state velocities and accelerations are joined by a quintic spline; points that state velocities
    only, by a cubic spline; points that state positions only, by a straight line (M. Spong et al., Robot Modeling and
    Control, 5.5; ROS's joint_trajectory_controller interpolates in the same way). So position, velocity and
    acceleration are continuous as far as the points state them. The joints are at rest before the first point and after
    the last one.

    Args:
        points: Points with increasing times, at least one.

    Raises:
        InputError: times do not increase, sizes differ, or a number is not finite.
    """

    def __init__(self, points: list[TrajectoryPoint]) -> None:
        if not points:
            raise InputError("a trajectory without points", valid="at least one point")
        size = points[0].position.size
        for index, point in enumerate(points):
            _check_point(point, size, f"point {index}")
        self._times = np.array([point.time for point in points], dtype=np.float64)
        if not np.isfinite(self._times).all() or self._times[0] < 0.0 or (np.diff(self._times) <= 0.0).any():
            raise InputError(
                f"times {_format_numbers(self._times)} of the points", valid="each later than the one before"
            )
        self._coefficients = (
            _cubic_coefficients(points, self._times) if _is_cubic(points) else _segment_coefficients(points)
        )
        self._end_positions = points[0].position, points[-1].position
        self._zeros = np.zeros(size)

    @property
    def times(self) -> Array:
        """Times of the points (k,) [s]."""
        return self._times

    @property
    def start(self) -> float:
        """Time of the first point [s]."""
        return float(self._times[0])

    @property
    def end(self) -> float:
        """Time of the last point [s]."""
        return float(self._times[-1])

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return self.end

    @property
    def goal(self) -> Array:
        """Positions of the last point (n,) [rad or m]."""
        return self._end_positions[1]

    def sample(self, time: float) -> JointSample:
        """Return the set-points ``time`` seconds after the start."""
        if time >= self.end:
            return JointSample(self._end_positions[1], self._zeros, self._zeros)
        if time < self.start:
            return JointSample(self._end_positions[0], self._zeros, self._zeros)
        index = int(self._times.searchsorted(time, side="right")) - 1
        sample = np.empty((3, self._zeros.size))
        sample_segment(self._coefficients[index], time - float(self._times[index]), sample)
        return JointSample(*sample)

    def sample_at(self, times: ArrayLike) -> JointSample:
        """Return the set-points (m, n) at times (m,) in any order, each as `sample` does. Raises InputError."""
        rows = [self.sample(time) for time in check_times(times).tolist()]
        columns = zip(*rows, strict=True) if rows else [()] * 3
        return JointSample(*(np.array(column).reshape(len(rows), self._zeros.size) for column in columns))

    def samples(self, times: Array) -> JointSample:
        """Return samples (k, n) at times (k,) from the first point to the last; at rest if there is only one."""
        if not len(self._coefficients):
            zeros = np.tile(self._zeros, (len(times), 1))
            return JointSample(zeros + self.goal, zeros, zeros)
        return self.sample_on_segments(
            times, np.searchsorted(self._times, times, side="right").clip(1, len(self._coefficients)) - 1
        )

    def lookahead(self, times: Array) -> tuple[Array, Array]:
        """Return positions and velocities (k, n) at times (k,) from the first point on; at rest after the last one."""
        out = np.empty((2, len(times), self._zeros.size))
        sample_lookahead(self._coefficients, self._times, self.goal, times, out)
        return out[0], out[1]

    def sample_on_segments(self, times: Array, segments: NDArray[np.int64]) -> JointSample:
        """Return samples (k, n) at times (k,), each on the spline of a segment (k,), also beyond the segment's ends."""
        out = np.empty((3, len(times), self._coefficients.shape[2]))
        sample_segments(self._coefficients, segments, times - self._times[segments], out)
        return JointSample(out[0], out[1], out[2])


@kernel(examples=lambda: [(np.zeros((6, 1)), 0.0, np.zeros((3, 1)))])
def sample_segment(c: Array, s: float, out: Array) -> None:
    """Compute position, velocity and acceleration on one segment.

    Args:
        c: (6, n) coefficients of the powers of the time since the segment's start.
        s: That time [s].
        out: (3, n) is filled.
    """
    for j in range(c.shape[1]):
        c0, c1, c2, c3, c4, c5 = c[0, j], c[1, j], c[2, j], c[3, j], c[4, j], c[5, j]
        out[0, j] = c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5))))
        out[1, j] = c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))
        out[2, j] = 2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))


@kernel(
    examples=lambda: [(np.zeros((1, 6, 1)), np.zeros(1, np.int64), np.zeros(1), np.zeros((3, 1, 1)))],
)
def sample_segments(c: Array, segments: NDArray[np.int64], s: Array, out: Array) -> None:
    """Compute `sample_segment` for coefficients (m, 6, n), segments (k,) and times (k,) [s]; ``out`` is (3, k, n)."""
    for k in range(s.shape[0]):
        sample_segment(c[segments[k]], s[k], out[:, k])


@kernel(
    examples=lambda: [(np.zeros((1, 6, 1)), np.zeros(2), np.zeros(1), np.zeros(1), np.zeros((2, 1, 1)))],
)
def sample_lookahead(c: Array, knots: Array, goal: Array, times: Array, out: Array) -> None:
    """Compute positions and velocities along a spline, at rest after its end.

    Args:
        c: (m, 6, n) coefficients of the segments.
        knots: (m + 1,) start times of the segments, and the end of the last one [s].
        goal: (n,) positions at the end.
        times: (k,) times, none before the first knot [s].
        out: (2, k, n) is filled.
    """
    for k in range(times.shape[0]):
        if c.shape[0] == 0 or times[k] >= knots[-1]:
            out[0, k] = goal
            out[1, k] = 0.0
            continue
        segment = min(max(np.searchsorted(knots, times[k], side="right"), 1), c.shape[0]) - 1
        s = times[k] - knots[segment]
        for j in range(c.shape[2]):
            c0, c1, c2, c3, c4, c5 = (
                c[segment, 0, j],
                c[segment, 1, j],
                c[segment, 2, j],
                c[segment, 3, j],
                c[segment, 4, j],
                c[segment, 5, j],
            )
            out[0, k, j] = c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5))))
            out[1, k, j] = c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))


def _check_point(point: TrajectoryPoint, size: int, name: str) -> None:
    for quantity, values in (
        ("positions", point.position),
        ("velocities", point.velocity),
        ("accelerations", point.acceleration),
    ):
        if values is None:
            continue
        if values.shape != (size,):
            raise InputError(f"{values.size} {quantity} at {name}", valid=f"{size}, one for each joint")
        if not np.isfinite(values).all():
            raise InputError(f"{quantity} {_format_numbers(values)} at {name}", valid="finite numbers")


def _format_numbers(values: Array) -> str:
    return ", ".join(f"{value:g}" for value in values[:8].tolist()) + (", …" if values.size > 8 else "")


def _is_cubic(points: list[TrajectoryPoint]) -> bool:
    """Return whether all points state velocities and none an acceleration."""
    return all(point.velocity is not None and point.acceleration is None for point in points)


def _cubic_coefficients(points: list[TrajectoryPoint], times: Array) -> Array:
    """Return the coefficients of all segments (k - 1, 6, n), bit-equal to those of `_fit_segment`."""
    position = np.array([point.position for point in points])
    velocity = np.array([point.velocity for point in points])
    T = np.diff(times)[:, None]
    c = np.zeros((len(points) - 1, 6, position.shape[1]))
    displacement, a, b = np.diff(position, axis=0), velocity[:-1], velocity[1:]
    c[:, 0], c[:, 1] = position[:-1], a
    c[:, 2] = (3.0 * displacement / T - 2.0 * a - b) / T
    c[:, 3] = (-2.0 * displacement / T + a + b) / (T * T)
    return c


def _segment_coefficients(points: list[TrajectoryPoint]) -> Array:
    """Return the coefficients of all segments (k - 1, 6, n)."""
    return np.array([_fit_segment(a, b) for a, b in pairwise(points)]).reshape(
        len(points) - 1, 6, points[0].position.size
    )


def _fit_segment(a: TrajectoryPoint, b: TrajectoryPoint) -> Array:
    """Return the coefficients (6, n) of the powers of the time since ``a``."""
    T = b.time - a.time
    c = np.zeros((6, a.position.size))
    c[0], displacement = a.position, b.position - a.position
    if a.velocity is None or b.velocity is None:
        c[1] = displacement / T
        return c
    c[1] = a.velocity
    if a.acceleration is None or b.acceleration is None:
        c[2] = (3.0 * displacement / T - 2.0 * a.velocity - b.velocity) / T
        c[3] = (-2.0 * displacement / T + a.velocity + b.velocity) / (T * T)
        return c
    va, vb, aa, ab = a.velocity * T, b.velocity * T, a.acceleration * T**2, b.acceleration * T**2
    c[2] = 0.5 * a.acceleration
    c[3] = (10.0 * displacement - 6.0 * va - 4.0 * vb - 1.5 * aa + 0.5 * ab) / T**3
    c[4] = (-15.0 * displacement + 8.0 * va + 7.0 * vb + 1.5 * aa - ab) / T**4
    c[5] = (6.0 * displacement - 3.0 * (va + vb) - 0.5 * (aa - ab)) / T**5
    return c
