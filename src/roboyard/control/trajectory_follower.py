"""Follows joint trajectories with a variable speed scaling; the path and the joint limits are always kept.

`splice_trajectory` joins a new trajectory to the present motion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from roboyard.control.joint_limits import JointGroupLimits
from roboyard.control.topp_kernels import (
    PathSegments,
    advance_on_profile,
    max_controllable_profile,
    unconstrained_efforts,
)
from roboyard.control.trajectory import JointSample, Trajectory, TrajectoryPoint
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array

TrackingStatus = Literal["moving", "done", "path violated", "goal violated"]
_SAMPLE_INTERVAL = 0.005
"""Interval of the path times at which limits are checked [s]."""
_MIN_SAMPLES_PER_SEGMENT, _MAX_SAMPLES = 8, 20_000
"""Smallest number of such path times between two points, and largest number in all."""
_TOLERANCE = 1e-6
_JUMP_TIME = 1e-4
"""A change of velocity that the acceleration limit reaches in this time is no jump [s]."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Tolerances of the joints' positions, (n,) each [rad or m]; infinite: no limit.

    Attributes:
        path: Largest error on the path.
        goal: Largest error at the goal.
        goal_time: Time after the end in which the goal may be reached [s].
    """

    path: Array
    goal: Array
    goal_time: float = 0.0


class ScalableTrajectory:
    """A trajectory with the maximum speed scaling at each point that keeps joint accelerations within limits.

    The scaling is 1 where the trajectory keeps the limits by itself. Where it would exceed them the scaling is less,
    down to a stop at corners between straight lines; the path is kept. Where no acceleration limit is stated, the
    trajectory's own accelerations are allowed, and only changes of the scaling are limited.

    Args:
        trajectory: Trajectory of at least two points, which starts at time 0.
        initial_velocity: (n,) velocities of the joints at its start.
        limits: Limits of its joints.
        joints: Names of the joints.

    Raises:
        InputError: the trajectory leaves the range of a joint or exceeds its speed limit, also between its points.
    """

    def __init__(
        self, trajectory: Trajectory, initial_velocity: Array, limits: JointGroupLimits, joints: Sequence[str]
    ) -> None:
        self.trajectory = trajectory
        spacing = max(_SAMPLE_INTERVAL, trajectory.end / _MAX_SAMPLES)
        counts = [
            max(_MIN_SAMPLES_PER_SEGMENT, math.ceil((b - a) / spacing)) for a, b in pairwise(trajectory.times.tolist())
        ]
        segment_times = [np.linspace(a, b, n + 1) for (a, b), n in zip(pairwise(trajectory.times), counts, strict=True)]
        self._path_times = np.concatenate([*[segment[:-1] for segment in segment_times], trajectory.times[-1:]])
        segment = np.repeat(np.arange(len(counts)), counts)
        left, right = (
            trajectory.sample_on_segments(times, segment) for times in (self._path_times[:-1], self._path_times[1:])
        )
        _check_samples(left, self._path_times[:-1], limits, joints)
        _check_samples(right, self._path_times[1:], limits, joints)
        step_lengths = np.diff(self._path_times)
        unit_scaling = np.ones((len(step_lengths), 1))  # one more joint, whose speed is the speed scaling
        # Each joint twice: with its acceleration at the beginning of an interval, and with that at its end.
        self._segments = PathSegments(
            np.hstack([left.velocity, left.velocity, unit_scaling]),
            np.hstack([right.velocity, right.velocity, unit_scaling]),
            np.hstack([left.acceleration, right.acceleration, np.zeros_like(unit_scaling)]),
        )
        trajectory_acceleration = np.abs(np.vstack([left.acceleration, right.acceleration])).max(axis=0) * (
            1.0 + _TOLERANCE
        )
        max_acceleration = np.where(
            limits.has_acceleration_limit, limits.acceleration, np.maximum(limits.acceleration, trajectory_acceleration)
        )
        self._acceleration = np.array([*max_acceleration, *max_acceleration, math.inf])
        velocity_before, velocity_after = (
            np.vstack([initial_velocity, right.velocity]),
            np.vstack([left.velocity, np.zeros_like(initial_velocity)]),
        )
        is_jump = np.abs(velocity_after - velocity_before) > limits.acceleration * _JUMP_TIME
        is_stop = np.asarray(is_jump[:, limits.has_acceleration_limit].any(axis=1))
        velocity = np.array([*np.full(2 * len(joints), math.inf), 1.0])
        self._max_squared_speeds = max_controllable_profile(
            self._segments,
            step_lengths,
            velocity,
            self._acceleration,
            is_stop,
            unconstrained_efforts(len(step_lengths)),
        )

    @property
    def duration(self) -> float:
        """Path time of its end [s]."""
        return self.trajectory.end

    @property
    def starts_at_full_speed(self) -> bool:
        """Whether it may start at full speed."""
        return bool(self._max_squared_speeds[0] >= 1.0 - 1e-9)

    @property
    def initial_speed_scaling(self) -> float:
        """Largest speed scaling at its start."""
        return math.sqrt(min(float(self._max_squared_speeds[0]), 1.0))

    def advance(
        self, path_time: float, speed_scaling: float, desired_scaling: float, dt: float
    ) -> tuple[float, float, float]:
        """Return path time [s], speed scaling and its rate [1/s] after a step of ``dt`` seconds.

        The scaling changes towards ``desired_scaling`` (0 to 1) as fast as the acceleration limits allow.
        """
        next_time, next_scaling, rate = advance_on_profile(
            self._segments,
            self._path_times,
            self._max_squared_speeds,
            self._acceleration,
            path_time,
            speed_scaling,
            desired_scaling,
            dt,
        )
        if next_time == path_time < self.duration and desired_scaling > 0.0:
            return self._advance_slightly(path_time, desired_scaling, dt), 0.0, 0.0
        if desired_scaling == 0.0 and next_scaling > 0.0:
            speeds = np.abs(self.trajectory.sample(float(next_time)).velocity) * next_scaling
            if (speeds <= self._acceleration[: speeds.size] * _JUMP_TIME).all():
                return float(next_time), 0.0, 0.0
        return float(next_time), float(next_scaling), float(rate)

    def _advance_slightly(self, path_time: float, desired_scaling: float, dt: float) -> float:
        """Return a path time slightly ahead, for a stop so near to a corner that both lie in one interval."""
        i = int(np.searchsorted(self._path_times, path_time, side="right")) - 1
        slope = np.maximum(np.abs(self._segments.start_tangent[i]), np.abs(self._segments.end_tangent[i]))
        max_scalings = np.divide(self._acceleration * dt, slope, out=np.full_like(slope, math.inf), where=slope > 0.0)
        return min(path_time + min(desired_scaling, float(max_scalings.min())) * dt, float(self._path_times[i + 1]))

    def sample(self, path_time: float, speed_scaling: float, rate: float = 0.0) -> JointSample:
        """Return the set-points at a path time [s], for a speed scaling that changes at a rate [1/s]."""
        unscaled = self.trajectory.sample(path_time)
        return JointSample(
            unscaled.position,
            unscaled.velocity * speed_scaling,
            unscaled.acceleration * speed_scaling**2 + unscaled.velocity * rate,
        )


def _check_samples(samples: JointSample, times: Array, limits: JointGroupLimits, joints: Sequence[str]) -> None:
    low, high = limits.lower - _TOLERANCE, limits.upper + _TOLERANCE
    is_outside = (samples.position < low) | (samples.position > high)
    if is_outside.any():
        i, k = np.argwhere(is_outside)[0]
        raise InputError(
            f"joint {joints[k]} would be at {samples.position[i, k]:.4g} after {times[i]:.3g} s",
            valid=f"from {limits.lower[k]:.4g} to {limits.upper[k]:.4g}",
        )
    is_too_fast = np.abs(samples.velocity) > limits.speed * (1.0 + _TOLERANCE)
    if is_too_fast.any():
        i, k = np.argwhere(is_too_fast)[0]
        raise InputError(
            f"joint {joints[k]} would move at {samples.velocity[i, k]:.4g} a second after {times[i]:.3g} s",
            valid=f"at most {limits.speed[k]:.4g}; give it more time",
        )


class TrajectoryFollower:
    """Follows a scalable trajectory.

    Commands are for the moment at which the drives reach them; `check_tracking` compares with the command for now.

    Args:
        trajectory: The trajectory.
        tolerances: Tolerances on the path and at the goal.
        start_delay: Time before the trajectory starts [s].
        start_ns: Time for which the first command is [ns].

    Attributes:
        desired: Set-points at the last call of `check_tracking`.
        error: (n,) desired minus measured positions at that call [rad or m].
        path_time: Path time at that call [s].
    """

    def __init__(
        self, trajectory: ScalableTrajectory, tolerances: Tolerances, start_delay: float, start_ns: int
    ) -> None:
        self.trajectory, self.tolerances = trajectory, tolerances
        self._start_delay = start_delay
        self._path_state = (0.0, trajectory.initial_speed_scaling, 0.0)
        self._commanded_states = [(start_ns, 0.0, 0.0)]
        self._ended_ns: int | None = None
        self.path_time = 0.0
        self.desired = trajectory.sample(0.0, 0.0)
        self.error = np.zeros_like(self.desired.position)

    @property
    def commanded(self) -> JointSample:
        """The last command."""
        return self.trajectory.sample(*((0.0, 0.0, 0.0) if self._start_delay > 0.0 else self._path_state))

    @property
    def commanded_path_time(self) -> float:
        """Path time of the last command [s]."""
        return 0.0 if self._start_delay > 0.0 else self._path_state[0]

    @property
    def is_stopped(self) -> bool:
        """Whether the joints are at rest with the last command."""
        path_time, speed_scaling, _ = self._path_state
        return self._start_delay > 0.0 or speed_scaling == 0.0 or path_time >= self.trajectory.duration

    def command(self, due_ns: int, dt: float, speed_scaling: float) -> JointSample:
        """Advance by ``dt`` seconds at ``speed_scaling`` (0 to 1), or as close to it as limits allow; return the
        set-points.
        """
        delay_step = min(self._start_delay, dt) if speed_scaling > 0.0 else dt if self._start_delay > 0.0 else 0.0
        if speed_scaling > 0.0:
            self._start_delay -= delay_step
        if dt - delay_step > 1e-12:
            self._path_state = self.trajectory.advance(*self._path_state[:2], speed_scaling, dt - delay_step)
        self._commanded_states.append((due_ns, *self._path_state[:2]))
        return self.commanded

    def check_tracking(self, now_ns: int, actual: Array) -> TrackingStatus:
        """Compare the joints' measured positions (n,) with the commands; updates ``desired``, ``error`` and
        ``path_time``.
        """
        while len(self._commanded_states) > 1 and self._commanded_states[1][0] <= now_ns:
            self._commanded_states.pop(0)
        due_ns, self.path_time, speed_scaling = self._commanded_states[0]
        if len(self._commanded_states) > 1 and now_ns > due_ns:
            next_ns, next_time, next_scaling = self._commanded_states[1]
            fraction = (now_ns - due_ns) / (next_ns - due_ns)
            self.path_time, speed_scaling = (
                self.path_time + fraction * (next_time - self.path_time),
                speed_scaling + fraction * (next_scaling - speed_scaling),
            )
        self.desired = self.trajectory.sample(self.path_time, speed_scaling)
        self.error = self.desired.position - actual
        errors = np.abs(self.error)
        if self.path_time < self.trajectory.duration:
            return "path violated" if (errors > self.tolerances.path).any() else "moving"
        if not (errors > self.tolerances.goal).any():
            return "done"
        if self._ended_ns is None:
            self._ended_ns = now_ns
        is_late = (now_ns - self._ended_ns) * 1e-9 > self.tolerances.goal_time
        return "goal violated" if is_late else "moving"

    def worst_joint(self, tolerance: Array) -> int:
        """Return the index of the joint whose error exceeds its tolerance (n,) most."""
        return int(np.argmax(np.abs(self.error) - tolerance))

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "wait": self._start_delay,
            "now": self._path_state,
            "trail": list(self._commanded_states),
            "ended_ns": self._ended_ns,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._start_delay, self._path_state, self._ended_ns = state["wait"], tuple(state["now"]), state["ended_ns"]
        self._commanded_states = [tuple(one) for one in state["trail"]]


_DELAYS = (0.0, *(0.02 * 1.5**k for k in range(16)))
"""Delays of a trajectory that are tried until it can be spliced [s]."""
_POSITION_TOLERANCE = 1e-6
"""Positions that differ by less are the same [rad or m]."""
_TIME_TOLERANCE = 1e-9


def splice_trajectory(
    current: JointSample,
    points: Sequence[TrajectoryPoint],
    time_until_start: float,
    limits: JointGroupLimits,
    joints: Sequence[str],
) -> tuple[list[TrajectoryPoint], float]:
    """Return trajectory points from the present set-points through the points to come, within the joints' limits.

    Points in the past are omitted. Joints at rest start when the trajectory starts. Moving joints move to its first
    point at once; if they cannot reach it in time, with the stated velocity, the trajectory is delayed.

    Args:
        current: Present set-points.
        points: Points of the trajectory, with times since its start.
        time_until_start: Time until the trajectory starts; negative: it has started [s].
        limits: Limits of the joints.
        joints: Names of the joints.

    Returns:
        Points (two or more) with times since the start of the motion, and the time until that start [s].

    Raises:
        InputError: the joints would leave their range or exceed their speed limits.
    """
    is_moving = bool((np.abs(current.velocity) > limits.acceleration * _TIME_TOLERANCE).any())
    start_delay = time_until_start if time_until_start > 0.0 and not is_moving else 0.0
    shifted_points = [replace(point, time=point.time + time_until_start - start_delay) for point in points]
    future_points = [point for point in shifted_points if point.time > _TIME_TOLERANCE]
    first = (
        next((point for point in shifted_points if abs(point.time) <= _TIME_TOLERANCE), None)
        if not is_moving or not future_points
        else None
    )
    starts_here = first is not None and np.abs(first.position - current.position).max() <= _POSITION_TOLERANCE
    if first is not None and starts_here and future_points:
        return [replace(first, time=0.0, position=current.position), *future_points], start_delay
    if first is None and not is_moving:
        return [_start_point(current, future_points[0], is_moving), *future_points], start_delay
    target = future_points[0] if first is None else first
    if is_moving and target.velocity is None:
        target = replace(target, velocity=np.zeros_like(current.velocity))
    following_points = future_points[1:] if first is None else future_points
    first_error: InputError | None = None
    for delay in _DELAYS:
        if target.time + delay <= _TIME_TOLERANCE:
            continue
        shifted = [replace(point, time=point.time + delay) for point in (target, *following_points)]
        spliced = [_start_point(current, shifted[0], is_moving), *shifted]
        try:
            trajectory = ScalableTrajectory(Trajectory(spliced), current.velocity, limits, joints)
        except InputError as error:
            first_error = first_error or error
            continue
        if trajectory.starts_at_full_speed or not is_moving:
            return spliced, start_delay
    raise first_error or InputError(
        "the trajectory cannot be spliced onto the present motion", valid="wait until the joints are at rest, or cancel"
    )


def _start_point(current: JointSample, target: TrajectoryPoint, is_moving: bool) -> TrajectoryPoint:
    """Return the present set-points as a point whose spline to ``target`` is of the kind that ``target`` states."""
    is_smooth = is_moving or target.velocity is not None
    return TrajectoryPoint(
        0.0,
        current.position,
        current.velocity if is_smooth else None,
        current.acceleration if target.velocity is not None and target.acceleration is not None else None,
    )
