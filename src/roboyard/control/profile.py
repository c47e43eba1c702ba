"""Kernels: how fast a path can be followed within limits of velocity, acceleration and effort.

H. Pham, Q.-C. Pham, "A new approach to time-optimal path parameterization based on reachability analysis", IEEE
Trans. Robotics 34(3), 2018, for paths of lines and parabolas: with the acceleration along the path constant between
two places, each joint's acceleration is linear between them, so that its limits are kept everywhere if they are kept
at both ends. The profile is in ``x``, the square of the speed along the path. Efforts are linear in it and in the
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

_HALVINGS = 45
"""Of the interval of speeds."""


class Efforts(NamedTuple):
    """What r joints need along a path whose acceleration is u: ``inertia u + swing x + drag sqrt(x) + hold``.

    Attributes:
        inertia: (n, 2, r) at both ends of each interval.
        swing: (n, 2, r).
        drag: (n, 2, r).
        hold: (n, 2, r), of which the amount is no more than the limit.
        limit: (n, 2, r) greatest amounts [N m or N]; may be infinite.
    """

    inertia: Array
    swing: Array
    drag: Array
    hold: Array
    limit: Array


def no_efforts(n: int) -> Efforts:
    """Where nobody knows what a path of n intervals takes."""
    none = np.zeros((n, 2, 0))
    return Efforts(none, none, none, none, none)


def _examples() -> Iterable[tuple[Any, ...]]:
    one = np.ones((2, 1))
    yield one, one, one, np.ones(2), np.ones(1), np.ones(1), np.zeros(3, np.bool_), no_efforts(2)


@kernel(inline="always")
def _accelerations(
    first: Array, last: Array, bend: Array, i: int, step: float, x: float, acceleration: Array, efforts: Efforts
) -> tuple[float, float]:
    """The accelerations along the path that keep all joints' limits at both ends of an interval, entered at ``x``.

    None if the first is more than the second.
    """
    low, high = -math.inf, math.inf
    for k in range(acceleration.shape[0]):
        rest = bend[i, k] * x
        a = acceleration[k]
        for end in range(2):
            slope = first[i, k] if end == 0 else last[i, k] + 2.0 * step * bend[i, k]
            if slope > 1e-12:
                low, high = max(low, (-a - rest) / slope), min(high, (a - rest) / slope)
            elif slope < -1e-12:
                low, high = max(low, (a - rest) / slope), min(high, (-a - rest) / slope)
            elif abs(rest) > a:
                return 1.0, -1.0
    joints = efforts.limit.shape[2]
    slowest = fastest = math.sqrt(x)
    for end in range(2 if joints else 0):
        if end == 1 and low <= high < math.inf:  # the speeds there may be there
            slowest = math.sqrt(max(x + 2.0 * step * max(low, -0.5 * x / step), 0.0))
            fastest = math.sqrt(max(x + 2.0 * step * high, 0.0))
        for k in range(joints):
            a, swing, drag = efforts.limit[i, end, k], efforts.swing[i, end, k], efforts.drag[i, end, k]
            rest = swing * x + efforts.hold[i, end, k]
            least, most = rest + min(drag * slowest, drag * fastest), rest + max(drag * slowest, drag * fastest)
            slope = efforts.inertia[i, end, k] + 2.0 * step * end * swing
            if slope > 1e-12:
                low, high = max(low, (-a - least) / slope), min(high, (a - most) / slope)
            elif slope < -1e-12:
                low, high = max(low, (a - most) / slope), min(high, (-a - least) / slope)
            elif least < -a or most > a:
                return 1.0, -1.0
    return low, high


@kernel
def _fastest(first: Array, last: Array, velocity: Array, i: int) -> float:
    """The greatest square of speed that keeps the joints' velocities in an interval."""
    x = math.inf
    for k in range(velocity.shape[0]):
        slope = max(abs(first[i, k]), abs(last[i, k]))
        if slope > 0.0:
            x = min(x, (velocity[k] / slope) ** 2)
    return x


@kernel(examples=_examples)
def greatest_profile(
    first: Array,
    last: Array,
    bend: Array,
    steps: Array,
    velocity: Array,
    acceleration: Array,
    rests: NDArray[np.bool_],
    efforts: Efforts,
) -> Array:
    """Squares of the speed from which the rest of a path can still be followed, and stopped on, within limits.

    Args:
        first: (n, dof) slopes of the joints at the beginning of each interval.
        last: (n, dof) at its end.
        bend: (n, dof) change of the slopes for each unit of path, constant in an interval.
        steps: (n,) lengths of the intervals.
        velocity: (dof,) limits; may be infinite.
        acceleration: (dof,) limits; may be infinite.
        rests: (n + 1,) where the path must be at rest.
        efforts: That the path takes, and their limits.

    Returns:
        (n + 1,).
    """
    n = steps.shape[0]
    most = np.zeros(n + 1)
    if not rests[n]:
        most[n] = _fastest(first, last, velocity, n - 1)
    for i in range(n - 1, -1, -1):
        if rests[i]:
            continue
        cap = _fastest(first, last, velocity, i)
        if i > 0:
            cap = min(cap, _fastest(first, last, velocity, i - 1))
        ahead = min(most[i + 1], _fastest(first, last, velocity, i))
        step = steps[i]
        low, high = 0.0, cap
        for halving in range(_HALVINGS):
            x = high if halving == 0 else 0.5 * (low + high)
            least, greatest = _accelerations(first, last, bend, i, step, x, acceleration, efforts)
            least, greatest = max(least, -0.5 * x / step), min(greatest, 0.5 * (ahead - x) / step)
            if least <= greatest:
                low = x
                if halving == 0:
                    break
            else:
                high = x
        most[i] = low
    return most


@kernel(examples=_examples)
def fastest_profile(
    first: Array,
    last: Array,
    bend: Array,
    steps: Array,
    velocity: Array,
    acceleration: Array,
    rests: NDArray[np.bool_],
    efforts: Efforts,
) -> Array:
    """Squares of the speed along a path that is followed as fast as limits allow, from rest to rest.

    Args:
        first: See `greatest_profile`.
        last: See there.
        bend: See there.
        steps: See there.
        velocity: See there.
        acceleration: See there.
        rests: See there; both ends are.
        efforts: See there.

    Returns:
        (n + 1,).
    """
    most = greatest_profile(first, last, bend, steps, velocity, acceleration, rests, efforts)
    n = steps.shape[0]
    squares = np.zeros(n + 1)
    for i in range(n):
        step, begin = steps[i], squares[i]
        ahead = min(most[i + 1], _fastest(first, last, velocity, i))
        least, greatest = _accelerations(first, last, bend, i, step, begin, acceleration, efforts)
        greatest = min(greatest, 0.5 * (ahead - begin) / step)
        least = max(least, -0.5 * begin / step)
        squares[i + 1] = max(begin + 2.0 * step * max(greatest, least), 0.0)
    return squares


@kernel(examples=lambda: [(*example[:4], example[5], 1.0, example[7]) for example in _examples()])
def stopping_profile(
    first: Array, last: Array, bend: Array, steps: Array, acceleration: Array, begin: float, efforts: Efforts
) -> tuple[Array, Array]:
    """Squares of the speed when one stops on a path as soon as accelerations allow; arguments as `fastest_profile`.

    Args:
        first: See there.
        last: See there.
        bend: See there.
        steps: See there.
        acceleration: See there.
        begin: Square of the speed at the beginning, no more than that at which the path can be followed.
        efforts: See `fastest_profile`.

    Returns:
        (k + 1,) with k at most n, the last 0 unless the path ends before, and (k,) lengths of the intervals, of which
        the last may be shorter than it was.
    """
    x = np.zeros(steps.shape[0] + 1)
    lengths = steps.copy()
    x[0] = begin
    for i in range(steps.shape[0]):
        least, greatest = _accelerations(first, last, bend, i, steps[i], x[i], acceleration, efforts)
        u = min(least, greatest)
        square = x[i] + 2.0 * steps[i] * u
        if square <= 0.0:
            lengths[i] = x[i] / (-2.0 * u) if u < 0.0 else 0.0
            return x[: i + 2].copy(), lengths[: i + 1].copy()
        x[i + 1] = square
    return x, lengths


def _advance_examples() -> Iterable[tuple[Any, ...]]:
    one = np.ones((2, 1))
    yield one, one, one, np.arange(3.0), np.ones(3), np.ones(1), 0.0, 1.0, 1.0, 0.1


@kernel(examples=_advance_examples)
def advance_on_profile(
    first: Array,
    last: Array,
    bend: Array,
    places: Array,
    most: Array,
    acceleration: Array,
    place: float,
    speed: float,
    wanted: float,
    dt: float,
) -> tuple[float, float, float]:
    """Where one is on a path after a while of going on as near to a wanted speed as limits allow.

    Args:
        first: See `greatest_profile`.
        last: See there.
        bend: See there.
        places: (n + 1,) of the intervals' ends along the path.
        most: (n + 1,) by `greatest_profile`.
        acceleration: (dof,) limits; may be infinite.
        place: Where one is.
        speed: Along the path; its square no more than ``most`` there.
        wanted: Speed along the path, 0 or more.
        dt: How long.

    Returns:
        Place, speed and acceleration along the path.
    """
    n, left, u = bend.shape[0], dt, 0.0
    nothing = np.zeros((1, 2, 0))
    none = Efforts(nothing, nothing, nothing, nothing, nothing)
    here = np.empty((1, bend.shape[1]))
    i = min(max(int(np.searchsorted(places, place, side="right")) - 1, 0), n - 1)
    while left > 0.0:
        step = places[i + 1] - place
        if step <= 1e-12 * (1.0 + abs(place)):
            if i == n - 1:
                return float(places[n]), speed, 0.0
            i, place = i + 1, places[i + 1]
            continue
        here[0] = first[i] + (place - places[i]) * bend[i]
        x = speed * speed
        least, greatest = _accelerations(here, last[i : i + 1], bend[i : i + 1], 0, step, x, acceleration, none)
        u = 0.5 * (wanted * wanted - x) / step
        if wanted < speed:  # at once, not by the interval's end: that may be far away for one who is slow
            u = min(u, (wanted - speed) / left)
        u = max(min(u, greatest), least)
        u = min(u, 0.5 * (most[i + 1] - x) / step)
        after = max(x + 2.0 * step * u, 0.0)
        if x + after == 0.0:
            return place, 0.0, 0.0
        rests = x + 2.0 * step * u < -1e-15  # before the interval's end
        span = speed / -u if rests else 2.0 * step / (speed + math.sqrt(after))
        if span > left:
            place += speed * left + 0.5 * u * left * left
            return min(place, places[i + 1]), max(speed + u * left, 0.0), u
        left -= span
        if rests:
            return place + 0.5 * x / -u, 0.0, 0.0
        place, speed = places[i + 1], math.sqrt(after)
    return place, speed, u
