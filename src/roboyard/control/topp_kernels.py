"""Time-optimal path parameterization (TOPP-RA), compiled: how fast a path can be followed within limits of velocity,
acceleration and effort.

H. Pham, Q.-C. Pham, "A new approach to time-optimal path parameterization based on reachability analysis", IEEE Trans.
Robotics 34(3), 2018, for paths of lines and parabolas: with the acceleration along the path constant between two
positions, each joint's acceleration is linear between them, so that its limits are kept everywhere if they are kept at
both ends. The profile is in ``x``, the square of the speed along the path. Efforts are linear in it and in the
acceleration along the path, but for damping, and kept at both ends too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array

_BISECTION_STEPS = 45
"""Number of bisections of an interval of squared speeds."""


class PathEffortConstraint(NamedTuple):
    """Efforts of r joints along a path at acceleration u and squared speed x:
    ``inertia u + centrifugal x + damping sqrt(x) + gravity``.

    Attributes:
        inertia: (n, 2, r) at both ends of each interval.
        centrifugal: (n, 2, r).
        damping: (n, 2, r).
        gravity: (n, 2, r), of which the amount is no more than the limit.
        limit: (n, 2, r) greatest amounts [N m or N]; may be infinite.
    """

    inertia: Array
    centrifugal: Array
    damping: Array
    gravity: Array
    limit: Array


class PathSegments(NamedTuple):
    """A path of n intervals, in each of which the slopes of the joints change linearly.

    Attributes:
        start_tangent: (n, dof) slopes of the joints at the beginning of each interval.
        end_tangent: (n, dof) slopes at its end.
        curvature: (n, dof) change of the slopes for each unit of path, constant in an interval.
    """

    start_tangent: Array
    end_tangent: Array
    curvature: Array


def unconstrained_efforts(n: int) -> PathEffortConstraint:
    """Return constraints of a path of n intervals whose efforts are unknown."""
    empty = np.zeros((n, 2, 0))
    return PathEffortConstraint(empty, empty, empty, empty, empty)


def _examples() -> Iterable[tuple[Any, ...]]:
    one = np.ones((2, 1))
    segments = PathSegments(one, one, one)
    yield segments, np.ones(2), np.ones(1), np.ones(1), np.zeros(3, np.bool_), unconstrained_efforts(2)


@kernel(inline="always")
def _path_acceleration_range(
    segments: PathSegments,
    i: int,
    step: float,
    squared_speed: float,
    acceleration: Array,
    efforts: PathEffortConstraint,
) -> tuple[float, float]:
    """Return the smallest and the largest acceleration along the path that keep all joints' limits at both ends of
    interval ``i``, which is entered at ``squared_speed``.

    No acceleration keeps them if the first is more than the second.
    """
    start_tangent, end_tangent, curvature = segments
    low, high = -math.inf, math.inf
    for k in range(acceleration.shape[0]):
        offset = curvature[i, k] * squared_speed
        limit = acceleration[k]
        for end in range(2):
            slope = start_tangent[i, k] if end == 0 else end_tangent[i, k] + 2.0 * step * curvature[i, k]
            if slope > 1e-12:
                low, high = max(low, (-limit - offset) / slope), min(high, (limit - offset) / slope)
            elif slope < -1e-12:
                low, high = max(low, (limit - offset) / slope), min(high, (-limit - offset) / slope)
            elif abs(offset) > limit:
                return 1.0, -1.0
    joints = efforts.limit.shape[2]
    min_speed = max_speed = math.sqrt(squared_speed)
    for end in range(2 if joints else 0):
        if end == 1 and low <= high < math.inf:  # the speeds there may be there
            min_speed = math.sqrt(max(squared_speed + 2.0 * step * max(low, -0.5 * squared_speed / step), 0.0))
            max_speed = math.sqrt(max(squared_speed + 2.0 * step * high, 0.0))
        for k in range(joints):
            limit, centrifugal, damping = (
                efforts.limit[i, end, k],
                efforts.centrifugal[i, end, k],
                efforts.damping[i, end, k],
            )
            offset = centrifugal * squared_speed + efforts.gravity[i, end, k]
            min_effort, max_effort = (
                offset + min(damping * min_speed, damping * max_speed),
                offset + max(damping * min_speed, damping * max_speed),
            )
            slope = efforts.inertia[i, end, k] + 2.0 * step * end * centrifugal
            if slope > 1e-12:
                low, high = max(low, (-limit - min_effort) / slope), min(high, (limit - max_effort) / slope)
            elif slope < -1e-12:
                low, high = max(low, (limit - max_effort) / slope), min(high, (-limit - min_effort) / slope)
            elif min_effort < -limit or max_effort > limit:
                return 1.0, -1.0
    return low, high


@kernel
def _velocity_limited_squared_speed(segments: PathSegments, velocity: Array, i: int) -> float:
    """Return the largest square of the speed that keeps the joints' velocity limits in interval ``i``."""
    start_tangent, end_tangent, _ = segments
    squared_speed = math.inf
    for k in range(velocity.shape[0]):
        slope = max(abs(start_tangent[i, k]), abs(end_tangent[i, k]))
        if slope > 0.0:
            squared_speed = min(squared_speed, (velocity[k] / slope) ** 2)
    return squared_speed


@kernel(examples=_examples)
def max_controllable_profile(
    segments: PathSegments,
    step_lengths: Array,
    velocity: Array,
    acceleration: Array,
    is_stop: NDArray[np.bool_],
    efforts: PathEffortConstraint,
) -> Array:
    """Return the largest squared speeds from which the rest of a path can be followed, and stopped on, within limits.

    This is the upper end of TOPP-RA's controllable sets.

    Args:
        segments: The path.
        step_lengths: (n,) lengths of the intervals.
        velocity: (dof,) velocity limits of the joints; may be infinite.
        acceleration: (dof,) acceleration limits; may be infinite.
        is_stop: (n + 1,) where the path must be at rest.
        efforts: Efforts that the path takes, and their limits.

    Returns:
        (n + 1,).
    """
    n = step_lengths.shape[0]
    max_squared_speed = np.zeros(n + 1)
    if not is_stop[n]:
        max_squared_speed[n] = _velocity_limited_squared_speed(segments, velocity, n - 1)
    for i in range(n - 1, -1, -1):
        if is_stop[i]:
            continue
        upper_bound = _velocity_limited_squared_speed(segments, velocity, i)
        if i > 0:
            upper_bound = min(upper_bound, _velocity_limited_squared_speed(segments, velocity, i - 1))
        next_max = min(max_squared_speed[i + 1], _velocity_limited_squared_speed(segments, velocity, i))
        step = step_lengths[i]
        low, high = 0.0, upper_bound
        for iteration in range(_BISECTION_STEPS):
            squared_speed = high if iteration == 0 else 0.5 * (low + high)
            min_acceleration, max_acceleration = _path_acceleration_range(
                segments, i, step, squared_speed, acceleration, efforts
            )
            min_acceleration, max_acceleration = (
                max(min_acceleration, -0.5 * squared_speed / step),
                min(max_acceleration, 0.5 * (next_max - squared_speed) / step),
            )
            if min_acceleration <= max_acceleration:
                low = squared_speed
                if iteration == 0:
                    break
            else:
                high = squared_speed
        max_squared_speed[i] = low
    return max_squared_speed


@kernel(examples=_examples)
def time_optimal_profile(
    segments: PathSegments,
    step_lengths: Array,
    velocity: Array,
    acceleration: Array,
    is_stop: NDArray[np.bool_],
    efforts: PathEffortConstraint,
) -> Array:
    """Return the squared speeds along a path that is followed as fast as the limits allow, from rest to rest.

    Args:
        segments: The path.
        step_lengths: (n,) lengths of the intervals.
        velocity: (dof,) velocity limits of the joints; may be infinite.
        acceleration: (dof,) acceleration limits; may be infinite.
        is_stop: (n + 1,) where the path must be at rest; both ends are.
        efforts: Efforts that the path takes, and their limits.

    Returns:
        (n + 1,).
    """
    max_squared_speed = max_controllable_profile(segments, step_lengths, velocity, acceleration, is_stop, efforts)
    n = step_lengths.shape[0]
    squares = np.zeros(n + 1)
    for i in range(n):
        step, squared_speed = step_lengths[i], squares[i]
        next_max = min(max_squared_speed[i + 1], _velocity_limited_squared_speed(segments, velocity, i))
        min_acceleration, max_acceleration = _path_acceleration_range(
            segments, i, step, squared_speed, acceleration, efforts
        )
        max_acceleration = min(max_acceleration, 0.5 * (next_max - squared_speed) / step)
        min_acceleration = max(min_acceleration, -0.5 * squared_speed / step)
        squares[i + 1] = max(squared_speed + 2.0 * step * max(max_acceleration, min_acceleration), 0.0)
    return squares


@kernel(examples=lambda: [(*example[:2], example[3], 1.0, example[5]) for example in _examples()])
def stopping_profile(
    segments: PathSegments,
    step_lengths: Array,
    acceleration: Array,
    initial_squared_speed: float,
    efforts: PathEffortConstraint,
) -> tuple[Array, Array]:
    """Return the squared speeds of a stop on a path as soon as the accelerations allow.

    Args:
        segments: The path.
        step_lengths: (n,) lengths of the intervals.
        acceleration: (dof,) acceleration limits of the joints; may be infinite.
        initial_squared_speed: Square of the speed at the beginning, no more than that at which the path can be
            followed.
        efforts: Efforts that the path takes, and their limits.

    Returns:
        (k + 1,) with k at most n, the last 0 unless the path ends before, and (k,) lengths of the intervals, of which
        the last may be shorter than it was.
    """
    squared_speeds = np.zeros(step_lengths.shape[0] + 1)
    lengths = step_lengths.copy()
    squared_speeds[0] = initial_squared_speed
    for i in range(step_lengths.shape[0]):
        min_acceleration, max_acceleration = _path_acceleration_range(
            segments, i, step_lengths[i], squared_speeds[i], acceleration, efforts
        )
        u = min(min_acceleration, max_acceleration)
        next_squared_speed = squared_speeds[i] + 2.0 * step_lengths[i] * u
        if next_squared_speed <= 0.0:
            lengths[i] = squared_speeds[i] / (-2.0 * u) if u < 0.0 else 0.0
            return squared_speeds[: i + 2].copy(), lengths[: i + 1].copy()
        squared_speeds[i + 1] = next_squared_speed
    return squared_speeds, lengths


def _advance_examples() -> Iterable[tuple[Any, ...]]:
    one = np.ones((2, 1))
    yield PathSegments(one, one, one), np.arange(3.0), np.ones(3), np.ones(1), 0.0, 1.0, 1.0, 0.1


@kernel(examples=_advance_examples)
def advance_on_profile(
    segments: PathSegments,
    positions: Array,
    max_squared_speed: Array,
    acceleration: Array,
    position: float,
    speed: float,
    desired_speed: float,
    dt: float,
) -> tuple[float, float, float]:
    """Return position, speed and acceleration on a path after a time step at the speed that is as close to a desired
    one as limits allow.

    Args:
        segments: The path.
        positions: (n + 1,) positions of the intervals' ends along the path.
        max_squared_speed: (n + 1,) largest squared speeds there, see `max_controllable_profile`.
        acceleration: (dof,) acceleration limits of the joints; may be infinite.
        position: Present position on the path.
        speed: Along the path; its square no more than ``max_squared_speed`` there.
        desired_speed: Speed along the path, 0 or more.
        dt: Time step.

    Returns:
        Position, speed and acceleration along the path.
    """
    start_tangent, end_tangent, curvature = segments
    n, remaining_time, u = curvature.shape[0], dt, 0.0
    empty = np.zeros((1, 2, 0))
    efforts = PathEffortConstraint(empty, empty, empty, empty, empty)
    tangent = np.empty((1, curvature.shape[1]))
    i = min(max(int(np.searchsorted(positions, position, side="right")) - 1, 0), n - 1)
    while remaining_time > 0.0:
        step = positions[i + 1] - position
        if step <= 1e-12 * (1.0 + abs(position)):
            if i == n - 1:
                return float(positions[n]), speed, 0.0
            i, position = i + 1, positions[i + 1]
            continue
        tangent[0] = start_tangent[i] + (position - positions[i]) * curvature[i]
        squared_speed = speed * speed
        min_acceleration, max_acceleration = _path_acceleration_range(
            PathSegments(tangent, end_tangent[i : i + 1], curvature[i : i + 1]),
            0,
            step,
            squared_speed,
            acceleration,
            efforts,
        )
        u = 0.5 * (desired_speed * desired_speed - squared_speed) / step
        if desired_speed < speed:  # at once, not by the interval's end: that may be far away for one who is slow
            u = min(u, (desired_speed - speed) / remaining_time)
        u = max(min(u, max_acceleration), min_acceleration)
        u = min(u, 0.5 * (max_squared_speed[i + 1] - squared_speed) / step)
        next_squared_speed = max(squared_speed + 2.0 * step * u, 0.0)
        if squared_speed + next_squared_speed == 0.0:
            return position, 0.0, 0.0
        does_stop = squared_speed + 2.0 * step * u < -1e-15  # before the interval's end
        duration = speed / -u if does_stop else 2.0 * step / (speed + math.sqrt(next_squared_speed))
        if duration > remaining_time:
            position += speed * remaining_time + 0.5 * u * remaining_time * remaining_time
            return min(position, positions[i + 1]), max(speed + u * remaining_time, 0.0), u
        remaining_time -= duration
        if does_stop:
            return position + 0.5 * squared_speed / -u, 0.0, 0.0
        position, speed = positions[i + 1], math.sqrt(next_squared_speed)
    return position, speed, u
