"""Kernels: every branch of a closed form for many poses, turned into the limits, confirmed by forward kinematics."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.rows import Rows, place_frames, product, smallest
from roboyard.compute import kernel, read_only
from roboyard.manipulation.kinematics.parallel import Parallel, solve_parallel
from roboyard.manipulation.kinematics.refine import Wish, cost_of, example_wish, fill_error, refine
from roboyard.manipulation.kinematics.spherical import Spherical, solve_spherical

Array = NDArray[np.float64]
MOST = 8
"""Branches that a closed form has at most."""
REACHED, OUT_OF_LIMITS, NOT_REACHED = 0, 1, 2
_EDGE = 1e-6
"""How far beyond a limit a joint may be computed, before it is put onto it [rad]."""
_SAME = 1e-6
_MISS = 5e-3
"""By how much a branch may miss before it is refined [m, rad]: closed forms take axes that nearly meet for meeting."""


@kernel(examples=lambda: [(smallest(), np.zeros(1), np.zeros(1))])
def wrap(rows: Rows, q: Array, near: Array) -> bool:
    """Turn joints by whole turns to within their limits and as near to others as they go; false if one cannot.

    Args:
        rows: A chain of which all joints turn.
        q: (n,) is overwritten.
        near: (n,) to which they shall be near.
    """
    turn = 2.0 * math.pi
    for i in range(q.shape[0]):
        least = math.ceil((rows.lower[i] - _EDGE - q[i]) / turn) if rows.lower[i] > -1e9 else -1e9
        most = math.floor((rows.upper[i] + _EDGE - q[i]) / turn) if rows.upper[i] < 1e9 else 1e9
        if least > most:
            return False
        times = min(max(round((near[i] - q[i]) / turn), least), most)
        q[i] = min(max(q[i] + times * turn, rows.lower[i]), rows.upper[i])
    return True


@kernel(examples=lambda: [(smallest(), example_wish(), np.zeros(1), np.zeros((2, 4, 4)), np.eye(4), np.zeros(6))])
def error_at(rows: Rows, wish: Wish, q: Array, frames: Array, T: Array, error: Array) -> None:
    """Fill ``error`` (6,) with what is missing at a position; ``frames`` and ``T`` are worked in."""
    place_frames(rows, q, frames)
    product(frames[rows.turn.shape[0]], rows.T_tip, T)
    fill_error(wish, T, error)


@kernel(inline="always", examples=lambda: [(np.zeros(6), np.ones(2))])
def _within(error: Array, tolerance: Array) -> bool:
    place = math.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
    angle = math.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
    within: bool = place <= tolerance[0] and angle <= tolerance[1]
    return within


@kernel(examples=lambda: [(smallest(), example_wish(), np.ones(2), np.zeros((8, 1)), 8, np.zeros(1), np.zeros((8, 1)))])
def keep_branches(
    rows: Rows, wish: Wish, tolerance: Array, found: Array, count: int, near: Array, out: Array
) -> tuple[int, bool]:
    """Of a closed form's branches those that the joints can take and that forward kinematics confirms, nearest first.

    Args:
        rows: The chain.
        wish: The goal.
        tolerance: (2,) how far a tool may be from it [m, rad].
        found: (8, n) branches; overwritten.
        count: How many of them count.
        near: (n,) the nearer to these, the earlier.
        out: (8, n) is filled.

    Returns:
        How many are left, and whether any were confirmed but for the limits.
    """
    n = rows.lower.shape[0]
    frames, T, error = np.empty((rows.turn.shape[0] + 1, 4, 4)), np.empty((4, 4)), np.empty(6)
    distances, kept, some = np.empty(MOST), 0, False
    near_misses = np.full(2, _MISS)
    for k in range(count):
        q = found[k]
        inside = wrap(rows, q, near)
        if not inside and some:
            continue
        error_at(rows, wish, q, frames, T, error)
        if not inside:
            some = _within(error, near_misses)
            continue
        rough = cost_of(wish, error)
        if not _within(error, near_misses):  # five joints that meet the place, but not the direction
            continue
        if rough > 1e-20:
            refine(rows, wish, q, 20, 1e-24)
            error_at(rows, wish, q, frames, T, error)
        if not _within(error, tolerance):
            continue
        some, twice, distance = True, False, 0.0
        for j in range(kept):
            apart = 0.0
            for i in range(n):
                apart = max(apart, abs(out[j, i] - q[i]))
            twice = twice or apart < _SAME
        if twice:
            continue
        for i in range(n):
            distance += (q[i] - near[i]) ** 2
        place = kept
        while place > 0 and distances[place - 1] > distance:
            distances[place] = distances[place - 1]
            for i in range(n):
                out[place, i] = out[place - 1, i]
            place -= 1
        distances[place] = distance
        for i in range(n):
            out[place, i] = q[i]
        kept += 1
    return kept, some


@kernel(inline="always", examples=lambda: [(False, np.eye(4), np.zeros(6), np.eye(4), np.zeros(6))])
def _asked(backwards: bool, T: Array, near: Array, out: Array, turned: Array) -> None:
    """A pose and joints as a closed form takes them: backwards the inverse pose, and the joints in reverse, negated."""
    n = near.shape[0]
    if not backwards:
        out[:] = T
        for i in range(n):
            turned[i] = near[i]
        return
    for i in range(3):
        out[i, 3] = 0.0
        for j in range(3):
            out[i, j] = T[j, i]
            out[i, 3] -= T[j, i] * T[j, 3]
    out[3, 0] = out[3, 1] = out[3, 2] = 0.0
    out[3, 3] = 1.0
    for i in range(n):
        turned[i] = -near[n - 1 - i]


@kernel(inline="always", examples=lambda: [
    (False, smallest(), example_wish(), np.ones(2), np.zeros((8, 1)), 8, np.zeros(1), np.zeros((8, 1)))
])  # fmt: skip
def _answered(
    backwards: bool, rows: Rows, wish: Wish, tolerance: Array, found: Array, count: int, near: Array, out: Array
) -> tuple[int, int]:
    """How many of a closed form's branches reach a goal, and what became of it."""
    n = found.shape[1]
    for k in range(count if backwards else 0):
        for i in range((n + 1) // 2):
            other = n - 1 - i
            found[k, i], found[k, other] = -found[k, other], -found[k, i]
    kept, some = keep_branches(rows, wish, tolerance, found, count, near, out)
    return kept, REACHED if kept > 0 else OUT_OF_LIMITS if some else NOT_REACHED


def _many() -> tuple[Rows, Array, Array, Array, Array, Array, Array, NDArray[np.int64], NDArray[np.int64]]:
    none = np.zeros(1, dtype=np.int64)
    two, near = np.ones(2), read_only(np.zeros((1, 1)))
    return (
        smallest(), np.zeros((1, 4, 4)), near, np.zeros(3), two, two, np.zeros((1, 8, 1)), none, none
    )  # fmt: skip


def _spherical_example() -> tuple[object, ...]:
    return (Spherical(np.zeros((6, 4, 4)), np.eye(4)), False, *_many())


def _parallel_example() -> tuple[object, ...]:
    eye, two, six = np.eye(4), np.zeros(2), np.zeros(6)
    return (Parallel(eye, eye, two, two, eye, eye, True, eye, six, six), False, *_many())


@kernel(examples=lambda: [_spherical_example()])
def all_spherical(
    arm: Spherical,
    backwards: bool,
    rows: Rows,
    goals: Array,
    near: Array,
    direction: Array,
    weights: Array,
    tolerance: Array,
    out: Array,
    counts: NDArray[np.int64],
    states: NDArray[np.int64],
) -> None:
    """Branches of many poses, for an arm with a wrist.

    Args:
        arm: Its closed form.
        backwards: Whether that is of the chain from the tip to the base.
        rows: The chain.
        goals: (k, 4, 4) poses of the tip in the base.
        near: (k, n) the nearer to these, the earlier.
        direction: (3,) see `Wish`.
        weights: (2,) see `Wish`.
        tolerance: (2,) how far a tool may be from a goal [m, rad].
        out: (k, 8, n) is filled.
        counts: (k,) is filled: how many branches.
        states: (k,) is filled: REACHED, OUT_OF_LIMITS or NOT_REACHED.
    """
    found, turned, T = np.empty((MOST, 6)), np.empty(6), np.empty((4, 4))
    for k in range(goals.shape[0]):
        _asked(backwards, goals[k], near[k], T, turned)
        count = solve_spherical(arm, T, turned, found)
        wish = Wish(goals[k], direction, weights)
        counts[k], states[k] = _answered(backwards, rows, wish, tolerance, found, count, near[k], out[k])


@kernel(examples=lambda: [_parallel_example()])
def all_parallel(
    arm: Parallel,
    backwards: bool,
    rows: Rows,
    goals: Array,
    near: Array,
    direction: Array,
    weights: Array,
    tolerance: Array,
    out: Array,
    counts: NDArray[np.int64],
    states: NDArray[np.int64],
) -> None:
    """As `all_spherical`, for an arm with parallel axes."""
    n = near.shape[1]
    found, turned, T = np.empty((MOST, n)), np.empty(n), np.empty((4, 4))
    for k in range(goals.shape[0]):
        _asked(backwards, goals[k], near[k], T, turned)
        count = solve_parallel(arm, T, turned, found)
        wish = Wish(goals[k], direction, weights)
        counts[k], states[k] = _answered(backwards, rows, wish, tolerance, found, count, near[k], out[k])
