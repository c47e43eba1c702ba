"""Time-optimal trajectories along joint paths, within velocity, acceleration and effort limits, and the fastest
stop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.control.joint_limits import DEFAULT_SPEED, default_acceleration
from roboyard.control.topp_kernels import (
    PathEffortConstraint,
    PathSegments,
    stopping_profile,
    time_optimal_profile,
    unconstrained_efforts,
)
from roboyard.control.trajectory import JointSample, SampledMotion, TrajectoryPoint, check_times
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.dynamics import ChainDynamics
from roboyard.kinematics.dynamics_kernels import compute_path_effort_coefficients
from roboyard.manipulation.errors import EffortLimitError


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Velocity, acceleration and jerk limits of joints (n,).

    Attributes:
        joints: Names.
        velocity: [rad/s or m/s].
        acceleration: [rad/s² or m/s²].
        jerk: [rad/s³ or m/s³]; infinite without a limit.
    """

    joints: tuple[str, ...]
    velocity: Array
    acceleration: Array
    jerk: Array

    def __post_init__(self) -> None:
        for quantity, values in (("velocity", self.velocity), ("acceleration", self.acceleration), ("jerk", self.jerk)):
            if values.shape != (len(self.joints),):
                raise InputError(f"{values.size} limits of {quantity}", valid=f"{len(self.joints)}, one for each joint")
            for name, value in zip(self.joints, values.tolist(), strict=True):
                if not value > 0.0 or (quantity != "jerk" and not math.isfinite(value)):
                    raise InputError(f"{quantity} of {name} is limited to {value:g}", valid="more than 0")

    @classmethod
    def from_chain(
        cls,
        chain: Chain,
        *,
        velocity_scaling: float = 1.0,
        acceleration_scaling: float = 1.0,
    ) -> JointLimits:
        """Return the limits of a chain, scaled.

        A joint that states no acceleration reaches its full speed in half a second.

        Args:
            chain: The joints.
            velocity_scaling: Fraction of the velocity limits, 0 to 1.
            acceleration_scaling: Fraction of the acceleration limits, 0 to 1.

        Raises:
            InputError: a scaling is not in 0 … 1, or a joint's limit is 0.
        """
        for name, value in (("velocity scaling", velocity_scaling), ("acceleration scaling", acceleration_scaling)):
            if not 0.0 < value <= 1.0:
                raise InputError(f"a {name} of {value}", valid="more than 0, at most 1")
        velocity = np.where(np.isfinite(chain.max_velocity), chain.max_velocity, DEFAULT_SPEED)
        max_acceleration = np.where(
            np.isfinite(chain.max_acceleration), chain.max_acceleration, default_acceleration(velocity)
        )
        return cls(chain.joints, velocity_scaling * velocity, acceleration_scaling * max_acceleration, chain.max_jerk)

    def utilization(self, velocity: Array, acceleration: Array) -> float:
        """Return the maximum ratio of velocities and accelerations (k, n) to their limits; above 1 a limit is
        exceeded.
        """
        return float(max(np.abs(velocity / self.velocity).max(), np.abs(acceleration / self.acceleration).max()))


def check_joint_names(joints: Sequence[str], limits: JointLimits) -> None:
    """Raise InputError if limits are those of other joints."""
    if tuple(joints) != limits.joints:
        raise InputError(f"limits of {', '.join(limits.joints)}", valid=", ".join(joints))


_MIN_EFFORT_RESERVE = 0.01
"""Minimum effort reserve for accelerating, as a fraction of a joint's maximum effort."""
_ZERO_SLOPE = 1e-9
"""A joint that moves less for each unit of path is at rest and has no friction."""


@dataclass(frozen=True, eq=False)
class EffortLimits:
    """Effort limits of an arm's joints.

    Attributes:
        dynamics: Dynamics of the arm.
        fraction: Fraction of each joint's maximum effort that motions may use; the rest is for controllers and unknown
            masses. Where slow motion alone needs more, that is used, and ``_MIN_EFFORT_RESERVE`` for accelerating.
    """

    dynamics: ChainDynamics
    fraction: float = 0.95

    def __post_init__(self) -> None:
        if not 0.0 < self.fraction <= 1.0:
            raise InputError(f"an effort fraction of {self.fraction}", valid="more than 0, at most 1")

    @property
    def max_effort(self) -> Array:
        """(n,) maximum efforts [N m or N]; infinite if the description states none or zero."""
        effort = self.dynamics.chain.max_effort
        return np.asarray(np.where(effort > 0.0, effort, np.inf))

    @property
    def is_limited(self) -> bool:
        """Whether any joint has a limit."""
        return bool(np.isfinite(self.max_effort).any())

    def can_hold(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Return (k,) whether the joints can hold each state (k, n) at rest. Raises InputError."""
        return np.asarray((np.abs(self.dynamics.inverse_dynamics(states)) <= self.max_effort).all(axis=-1))

    def check_can_hold(self, state: ArrayLike, position_text: str) -> None:
        """Raise EffortLimitError if a joint cannot hold a state (n,) at rest; ``position_text`` says which state that
        is.
        """
        required_effort = self.dynamics.inverse_dynamics(state)
        self._check_effort(np.abs(required_effort), "to hold still", position_text)

    def path_constraint(self, q: Array, first_derivative: Array, second_derivative: Array) -> PathEffortConstraint:
        """Return the effort constraint of a path.

        Args:
            q: (k, 2, n) joint positions at both ends of each interval of the path.
            first_derivative: (k, 2, n) their derivatives by the length along the path.
            second_derivative: (k, n) their second derivatives, which are constant in an interval.

        Raises:
            EffortLimitError: a joint cannot even be moved slowly somewhere on the path.
        """
        out = np.empty((3, *q.shape))
        compute_path_effort_coefficients(
            self.dynamics.chain.arrays, self.dynamics.masses, q, first_derivative, second_derivative, out
        )
        direction = np.sign(np.where(np.abs(first_derivative) > _ZERO_SLOPE, first_derivative, 0.0))
        is_reversing = (direction.prod(axis=1) < 0.0)[
            :, None
        ]  # a reversal within an interval: friction acts in both directions
        holding_effort = out[2] + self.dynamics.friction * np.where(is_reversing, 0.0, direction)
        reversal_friction = np.where(is_reversing, self.dynamics.friction, 0.0)
        required_effort, max_effort = np.abs(holding_effort) + reversal_friction, self.max_effort
        worst_index = int(np.argmax((required_effort / max_effort).max(axis=2)))
        position_text = (
            "at the start" if worst_index == 0 else "at the end" if worst_index == 2 * len(q) - 1 else "on the path"
        )
        i, end = divmod(worst_index, 2)
        self._check_effort(
            required_effort[i, end], "to move slowly", f"{position_text}, {self._describe_positions(q[i, end])}"
        )
        limit = (
            np.minimum(
                np.maximum(self.fraction * max_effort, required_effort + _MIN_EFFORT_RESERVE * max_effort), max_effort
            )
            - reversal_friction
        )
        return PathEffortConstraint(out[0], out[1], self.dynamics.damping * first_derivative, holding_effort, limit)

    def _check_effort(self, required_effort: Array, purpose: str, position_text: str) -> None:
        utilization = required_effort / self.max_effort
        j = int(np.argmax(utilization))
        if utilization[j] > 1.0:
            chain = self.dynamics.chain
            unit = "N m" if chain.is_revolute[j] else "N"
            raise EffortLimitError(
                f"{chain.joints[j]} needs {required_effort[j]:.3g} {unit} {purpose} {position_text}",
                location=chain.robot,
                valid=f"at most its {self.max_effort[j]:.3g} {unit}",
            )

    def _describe_positions(self, q: Array) -> str:
        return ", ".join(f"{name} {value:.2f}" for name, value in zip(self.dynamics.chain.joints, q, strict=True))


_INTERVALS = 400
"""Number of intervals of a path, in addition to at least `_MIN_SEGMENT_INTERVALS` for each segment."""
_MIN_SEGMENT_INTERVALS = 10
_MIN_POINT_SPACING = 1e-5
"""Minimum time between points of a trajectory [s]."""
_MIN_INTERVAL_LENGTH = 1e-10
"""Length below which the rest of an interval is dropped: its acceleration, a difference of squares divided by it, would
be rounding error.
"""
_ACCELERATION_TOLERANCE = 1e-3
"""Difference of accelerations, as a fraction of their limits, below which they are equal."""
_MAX_HALVINGS = 6
"""Maximum number of halvings of the interval between two points."""


@dataclass(frozen=True, eq=False)
class JointPath:
    """A path in joint space of straight and parabolic segments.

    Attributes:
        joints: (n) names.
        segments: (p, 3, n) coefficients of the powers of the length along each segment.
        lengths: (p,) lengths of the segments.
        is_stop: (p + 1,) whether the joints must stop between two segments: at a corner, and at both ends.
    """

    joints: tuple[str, ...]
    segments: Array
    lengths: Array
    is_stop: NDArray[np.bool_]

    @classmethod
    def from_segments(cls, joints: tuple[str, ...], segments: Array, lengths: Array) -> JointPath:
        """Create a path; corners are found."""
        ends = segments[:, 1] + 2.0 * lengths[:, None] * segments[:, 2]
        corners = np.abs(ends[:-1] - segments[1:, 1]).max(axis=1) > 1e-9
        return cls(joints, segments, lengths, np.array([True, *corners.tolist(), True]))

    @classmethod
    def from_points(cls, joints: tuple[str, ...], points: ArrayLike) -> JointPath:
        """Create a path of straight lines through points (k, n); repeated points are dropped.

        Raises:
            InputError: fewer than two, of another size, or not finite.
        """
        states = np.asarray(points, dtype=np.float64)
        if states.ndim != 2 or states.shape[1] != len(joints) or len(states) < 2 or not np.isfinite(states).all():
            raise InputError(
                f"way points of shape {states.shape}", valid=f"(2 or more, {len(joints)}), finite: {', '.join(joints)}"
            )
        steps = np.diff(states, axis=0)
        lengths = np.linalg.norm(steps, axis=1)
        is_distinct = lengths > 1e-12
        if not is_distinct.any():
            raise InputError("a path that goes nowhere", valid="way points that differ")
        segments = np.zeros((int(is_distinct.sum()), 3, len(joints)))
        segments[:, 0], segments[:, 1] = states[:-1][is_distinct], steps[is_distinct] / lengths[is_distinct, None]
        return cls.from_segments(joints, segments, lengths[is_distinct])

    @property
    def length(self) -> float:
        """Length in joint space."""
        return float(self.lengths.sum())

    def sample(self, spacing: float) -> Array:
        """Return (k, n) states along the path, at most ``spacing`` apart."""
        found = [self.segments[0, 0][None]]
        for segment, length in zip(self.segments, self.lengths.tolist(), strict=True):
            s = np.linspace(0.0, length, max(2, math.ceil(length / spacing) + 1))[1:, None]
            found.append(segment[0] + s * (segment[1] + s * segment[2]))
        return np.concatenate(found)

    def parameterize(self, limits: JointLimits, efforts: EffortLimits | None = None) -> TimeOptimalTrajectory:
        """Return the time-optimal trajectory from rest to rest, within velocity, acceleration and, if given, effort
        limits.

        Raises:
            InputError: limits of other joints.
            EffortLimitError: a joint cannot even be moved slowly somewhere on the path.
        """
        check_joint_names(self.joints, limits)
        if efforts is not None:
            check_joint_names(efforts.dynamics.chain.joints, limits)
        if self.length == 0.0:
            return TimeOptimalTrajectory(
                self, limits, efforts, np.zeros(1, np.int64), np.zeros(1), np.zeros(1), np.zeros(2)
            )
        spacing = self.length / _INTERVALS
        counts = np.maximum(np.ceil(self.lengths / spacing).astype(np.int64), _MIN_SEGMENT_INTERVALS)
        segment_index = np.repeat(np.arange(len(counts)), counts)
        interval_lengths = (self.lengths / counts)[segment_index]
        interval_starts = interval_lengths * (
            np.arange(len(segment_index)) - np.repeat(np.cumsum(counts) - counts, counts)
        )
        is_stop = np.zeros(len(segment_index) + 1, np.bool_)
        is_stop[np.cumsum([0, *counts])] = self.is_stop
        segments, effort_constraint = self.compute_derivatives(
            segment_index, interval_starts, interval_lengths, efforts
        )
        squared_speeds = time_optimal_profile(
            segments, interval_lengths, limits.velocity, limits.acceleration, is_stop, effort_constraint
        )
        return TimeOptimalTrajectory(
            self, limits, efforts, segment_index, interval_starts, interval_lengths, squared_speeds
        )

    def compute_derivatives(
        self,
        segment_index: NDArray[np.int64],
        interval_starts: Array,
        interval_lengths: Array,
        efforts: EffortLimits | None,
    ) -> tuple[PathSegments, PathEffortConstraint]:
        """Return the first derivatives at the start and end of intervals, their second derivatives (k, n), and the
        effort constraint.

        Args:
            segment_index: (k,) segment of each interval.
            interval_starts: (k,) its start on the segment.
            interval_lengths: (k,) its length.
            efforts: Effort limits.

        Raises:
            EffortLimitError: a joint cannot even be moved slowly somewhere on the path.
        """
        c = self.segments[segment_index]
        second_derivatives = 2.0 * c[:, 2]
        ends = np.stack([interval_starts, interval_starts + interval_lengths], axis=1)[:, :, None]
        slopes = c[:, None, 1] + ends * second_derivatives[:, None]
        effort_constraint = unconstrained_efforts(len(segment_index))
        if efforts is not None and efforts.is_limited:
            effort_constraint = efforts.path_constraint(
                c[:, None, 0] + ends * (c[:, None, 1] + ends * c[:, None, 2]), slopes, second_derivatives
            )
        return PathSegments(
            np.ascontiguousarray(slopes[:, 0]), np.ascontiguousarray(slopes[:, 1]), second_derivatives
        ), effort_constraint


@dataclass(frozen=True, eq=False)
class TimeOptimalTrajectory(SampledMotion):
    """A joint path with times, from 0 to `duration`.

    Within an interval the acceleration along the path is constant, so that every state is exact.

    Attributes:
        path: The path.
        limits: Joint limits.
        efforts: Effort limits.
        segment_index: (k,) segment of the path of each interval.
        interval_starts: (k,) start of each interval on its segment.
        interval_lengths: (k,) length of each interval.
        squared_speeds: (k + 1,) squared speeds along the path at the ends of intervals.
    """

    path: JointPath = field(repr=False)
    limits: JointLimits = field(repr=False)
    efforts: EffortLimits | None = field(repr=False)
    segment_index: NDArray[np.int64] = field(repr=False)
    interval_starts: Array = field(repr=False)
    interval_lengths: Array = field(repr=False)
    squared_speeds: Array = field(repr=False)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names."""
        return self.path.joints

    @cached_property
    def times(self) -> Array:
        """(k + 1,) start time of each interval, and the end time [s]."""
        speeds = np.sqrt(self.squared_speeds)
        both = speeds[:-1] + speeds[1:]
        spans = np.divide(2.0 * self.interval_lengths, both, out=np.zeros_like(both), where=both > 0.0)
        return np.concatenate([[0.0], np.cumsum(spans)])

    @property
    def duration(self) -> float:
        """[s]."""
        return float(self.times[-1])

    @property
    def start(self) -> Array:
        """(n,) start state."""
        return np.array(self.sample_at([0.0]).position[0])

    @property
    def goal(self) -> Array:
        """(n,) goal state."""
        return np.array(self.sample_at([self.duration]).position[0])

    def sample_at(self, times: ArrayLike) -> JointSample:
        """Return the joint states (m, n) at times (m,) in any order; before the start and after the end the joints are
        at rest.

        Raises:
            InputError: a time is not finite.
        """
        t = check_times(times)
        inside = np.clip(t, 0.0, self.duration)
        i = np.clip(np.searchsorted(self.times, inside, side="right") - 1, 0, len(self.interval_lengths) - 1)
        tau = inside - self.times[i]
        start_speed = np.sqrt(self.squared_speeds[i])
        acceleration = (self.squared_speeds[i + 1] - self.squared_speeds[i]) / np.where(
            self.interval_lengths[i] > 0.0, 2.0 * self.interval_lengths[i], 1.0
        )
        s = self.interval_starts[i] + np.clip(
            tau * (start_speed + 0.5 * acceleration * tau), 0.0, self.interval_lengths[i]
        )
        c = self.path.segments[self.segment_index[i]]
        speed = np.maximum(start_speed + acceleration * tau, 0.0)[:, None]
        moving = ((t >= 0.0) & (t < self.duration))[:, None]
        slope = c[:, 1] + 2.0 * s[:, None] * c[:, 2]
        return JointSample(
            c[:, 0] + s[:, None] * (c[:, 1] + s[:, None] * c[:, 2]),
            np.where(moving, slope * speed, 0.0),
            np.where(moving, slope * acceleration[:, None] + 2.0 * c[:, 2] * speed**2, 0.0),
        )

    def to_cubic_points(self) -> list[TrajectoryPoint]:
        """Return points with positions and velocities, for a controller that joins them by cubics: it then keeps all
        limits.

        Points at even times do not: near a change of acceleration their splines take up to 1.75 times the limit.  These
        points are at the changes of acceleration, so that the cubics equal the motion on lines, and nearly in blends.
        """
        mid_accelerations = (
            self.sample_at((self.times[:-1] + self.times[1:]) / 2.0).acceleration / self.limits.acceleration
        )
        times, last_index = [0.0], 0
        for k in range(1, len(mid_accelerations)):
            time = float(self.times[k])
            is_changed = np.abs(mid_accelerations[k] - mid_accelerations[last_index]).max() > _ACCELERATION_TOLERANCE
            if is_changed and time - times[-1] > _MIN_POINT_SPACING and self.duration - time > _MIN_POINT_SPACING:
                times.append(time)
                last_index = k
        if self.duration > 0.0:
            times.append(self.duration)
        for _ in range(_MAX_HALVINGS):
            found = self.sample_at(times)
            exceeds = self._cubics_exceed_limits(np.array(times), found)
            if not exceeds.any():
                break
            midpoints = (np.array(times)[:-1] + np.array(times)[1:]) / 2.0
            times = sorted([*times, *midpoints[exceeds].tolist()])
        # Whole nanoseconds, as in messages: half of one more changes a cubic's acceleration over 0.1 ms by 0.3 rad/s².
        times[:-1] = [round(time, 9) for time in times[:-1]]
        found = self.sample_at(times)
        velocity = found.velocity.copy()
        velocity[-1] = 0.0
        return [TrajectoryPoint(t, p, v) for t, p, v in zip(times, found.position, velocity, strict=True)]

    def _cubics_exceed_limits(self, times: Array, found: JointSample) -> NDArray[np.bool_]:
        """Return (k - 1,) between which of the times a cubic exceeds the acceleration limits."""
        span = np.diff(times)[:, None]
        position_term = 6.0 * np.diff(found.position, axis=0) / span
        start_velocity, end_velocity = (
            found.velocity[:-1],
            np.concatenate([found.velocity[1:-1], 0.0 * found.velocity[-1:]]),
        )
        start_acceleration, end_acceleration = (
            (position_term - 4.0 * start_velocity - 2.0 * end_velocity) / span,
            (2.0 * start_velocity + 4.0 * end_velocity - position_term) / span,
        )
        max_acceleration = (1.0 + _ACCELERATION_TOLERANCE) * self.limits.acceleration
        exceeds = (np.abs(start_acceleration) > max_acceleration).any(axis=1) | (
            np.abs(end_acceleration) > max_acceleration
        ).any(axis=1)
        return np.asarray(exceeds & (span[:, 0] > 2.0 * _MIN_POINT_SPACING))

    def stop_from(self, time: float) -> TimeOptimalTrajectory:
        """Return the fastest stop on the path within the limits that starts at a time [s]; its own time starts at 0.

        Raises:
            InputError: the moment is not in the trajectory.
        """
        if not 0.0 <= time <= self.duration:
            raise InputError(f"a stop at {time} s", valid=f"0 to {self.duration:g} s")
        i = min(max(int(np.searchsorted(self.times, time, side="right")) - 1, 0), len(self.interval_lengths) - 1)
        tau = time - self.times[i]
        start_speed = math.sqrt(self.squared_speeds[i])
        acceleration = (
            (self.squared_speeds[i + 1] - self.squared_speeds[i]) / (2.0 * self.interval_lengths[i])
            if self.interval_lengths[i] > 0.0
            else 0.0
        )
        passed_length = min(max(tau * (start_speed + 0.5 * acceleration * tau), 0.0), self.interval_lengths[i])
        segment_index, interval_starts, interval_lengths = (
            self.segment_index[i:].copy(),
            self.interval_starts[i:].copy(),
            self.interval_lengths[i:].copy(),
        )
        interval_starts[0] += passed_length
        interval_lengths[0] -= passed_length
        if interval_lengths[0] <= _MIN_INTERVAL_LENGTH and len(interval_lengths) > 1:
            segment_index, interval_starts, interval_lengths = (
                segment_index[1:],
                interval_starts[1:],
                interval_lengths[1:],
            )
        segments, effort_constraint = self.path.compute_derivatives(
            segment_index, interval_starts, interval_lengths, self.efforts
        )
        speed = max(start_speed + acceleration * tau, 0.0)
        squared_speeds, stop_lengths = stopping_profile(
            segments, interval_lengths, self.limits.acceleration, speed**2, effort_constraint
        )
        count = len(stop_lengths)
        return TimeOptimalTrajectory(
            self.path,
            self.limits,
            self.efforts,
            segment_index[:count],
            interval_starts[:count],
            stop_lengths,
            squared_speeds,
        )
