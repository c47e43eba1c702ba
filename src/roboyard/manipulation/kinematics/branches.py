"""Kernels: every branch of a closed form for many poses, turned into the limits, confirmed by forward kinematics."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.rows import ChainArrays, compute_frames, example_chain_arrays, multiply_transforms
from roboyard.compute import kernel, read_only
from roboyard.manipulation.kinematics.parallel import ParallelAxesArm, solve_parallel_axes
from roboyard.manipulation.kinematics.refine import (
    IkTarget,
    compute_pose_error,
    damped_least_squares,
    example_ik_target,
    weighted_cost,
)
from roboyard.manipulation.kinematics.spherical import SphericalWristArm, solve_spherical_wrist

Array = NDArray[np.float64]
MAX_BRANCHES = 8
"""Branches that a closed form has at most."""
REACHED, OUT_OF_LIMITS, NOT_REACHED = 0, 1, 2
_LIMIT_TOLERANCE = 1e-6
"""How far beyond a limit a joint may be computed, before it is put onto it [rad]."""
_DUPLICATE_TOLERANCE = 1e-6
_MAX_UNREFINED_ERROR = 5e-3
"""By how much a branch may miss before it is refined [m, rad]: closed forms take axes that nearly meet for meeting."""


@kernel(examples=lambda: [(example_chain_arrays(), np.zeros(1), np.zeros(1))])
def wrap_into_limits(chain: ChainArrays, q: Array, seed: Array) -> bool:
    """Turn joints by whole turns to within their limits and as near to others as they go; false if one cannot.

    Args:
        chain: A chain of which all joints turn.
        q: (n,) is overwritten.
        seed: (n,) to which they shall be near.
    """
    two_pi = 2.0 * math.pi
    for i in range(q.shape[0]):
        min_wraps = math.ceil((chain.lower[i] - _LIMIT_TOLERANCE - q[i]) / two_pi) if chain.lower[i] > -1e9 else -1e9
        max_wraps = math.floor((chain.upper[i] + _LIMIT_TOLERANCE - q[i]) / two_pi) if chain.upper[i] < 1e9 else 1e9
        if min_wraps > max_wraps:
            return False
        n_wraps = min(max(round((seed[i] - q[i]) / two_pi), min_wraps), max_wraps)
        q[i] = min(max(q[i] + n_wraps * two_pi, chain.lower[i]), chain.upper[i])
    return True


@kernel(
    examples=lambda: [
        (example_chain_arrays(), example_ik_target(), np.zeros(1), np.zeros((2, 4, 4)), np.eye(4), np.zeros(6))
    ]
)
def compute_pose_error_at(
    chain: ChainArrays, target: IkTarget, q: Array, frames: Array, T: Array, error: Array
) -> None:
    """Fill ``error`` (6,) with what is missing at a position; ``frames`` and ``T`` are worked in."""
    compute_frames(chain, q, frames)
    multiply_transforms(frames[chain.rotation_per_unit.shape[0]], chain.T_tip, T)
    compute_pose_error(target, T, error)


@kernel(inline="always", examples=lambda: [(np.zeros(6), np.ones(2))])
def _is_within_tolerance(error: Array, tolerance: Array) -> bool:
    distance = math.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
    angle = math.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
    is_within: bool = distance <= tolerance[0] and angle <= tolerance[1]
    return is_within


@kernel(
    examples=lambda: [
        (example_chain_arrays(), example_ik_target(), np.ones(2), np.zeros((8, 1)), 8, np.zeros(1), np.zeros((8, 1)))
    ]
)
def filter_branches(
    chain: ChainArrays, target: IkTarget, tolerance: Array, branches: Array, count: int, seed: Array, out: Array
) -> tuple[int, bool]:
    """Of a closed form's branches those that the joints can take and that forward kinematics confirms, nearest first.

    Args:
        chain: The chain.
        target: The goal.
        tolerance: (2,) how far a tool may be from it [m, rad].
        branches: (8, n) branches; overwritten.
        count: How many of them count.
        seed: (n,) the nearer to these, the earlier.
        out: (8, n) is filled.

    Returns:
        How many are left, and whether any were confirmed but for the limits.
    """
    n = chain.lower.shape[0]
    frames, T, error = np.empty((chain.rotation_per_unit.shape[0] + 1, 4, 4)), np.empty((4, 4)), np.empty(6)
    distances, n_valid, any_confirmed = np.empty(MAX_BRANCHES), 0, False
    coarse_tolerance = np.full(2, _MAX_UNREFINED_ERROR)
    for k in range(count):
        q = branches[k]
        in_limits = wrap_into_limits(chain, q, seed)
        if not in_limits and any_confirmed:
            continue
        compute_pose_error_at(chain, target, q, frames, T, error)
        if not in_limits:
            any_confirmed = _is_within_tolerance(error, coarse_tolerance)
            continue
        cost = weighted_cost(target, error)
        if not _is_within_tolerance(error, coarse_tolerance):  # five joints that meet the place, but not the direction
            continue
        if cost > 1e-20:
            damped_least_squares(chain, target, q, 20, 1e-24)
            compute_pose_error_at(chain, target, q, frames, T, error)
        if not _is_within_tolerance(error, tolerance):
            continue
        any_confirmed, is_duplicate, distance = True, False, 0.0
        for j in range(n_valid):
            difference = 0.0
            for i in range(n):
                difference = max(difference, abs(out[j, i] - q[i]))
            is_duplicate = is_duplicate or difference < _DUPLICATE_TOLERANCE
        if is_duplicate:
            continue
        for i in range(n):
            distance += (q[i] - seed[i]) ** 2
        index = n_valid
        while index > 0 and distances[index - 1] > distance:
            distances[index] = distances[index - 1]
            for i in range(n):
                out[index, i] = out[index - 1, i]
            index -= 1
        distances[index] = distance
        for i in range(n):
            out[index, i] = q[i]
        n_valid += 1
    return n_valid, any_confirmed


@kernel(inline="always", examples=lambda: [(False, np.eye(4), np.zeros(6), np.eye(4), np.zeros(6))])
def _to_closed_form(is_reversed: bool, T: Array, seed: Array, out: Array, seed_out: Array) -> None:
    """A pose and joints as a closed form takes them: backwards the inverse pose, and the joints in reverse, negated."""
    n = seed.shape[0]
    if not is_reversed:
        out[:] = T
        for i in range(n):
            seed_out[i] = seed[i]
        return
    for i in range(3):
        out[i, 3] = 0.0
        for j in range(3):
            out[i, j] = T[j, i]
            out[i, 3] -= T[j, i] * T[j, 3]
    out[3, 0] = out[3, 1] = out[3, 2] = 0.0
    out[3, 3] = 1.0
    for i in range(n):
        seed_out[i] = -seed[n - 1 - i]


@kernel(inline="always", examples=lambda: [
    (False, example_chain_arrays(), example_ik_target(), np.ones(2), np.zeros((8, 1)), 8, np.zeros(1), np.zeros((8, 1)))
])  # fmt: skip
def _from_closed_form(
    is_reversed: bool,
    chain: ChainArrays,
    target: IkTarget,
    tolerance: Array,
    branches: Array,
    count: int,
    seed: Array,
    out: Array,
) -> tuple[int, int]:
    """How many of a closed form's branches reach a goal, and what became of it."""
    n = branches.shape[1]
    for k in range(count if is_reversed else 0):
        for i in range((n + 1) // 2):
            other = n - 1 - i
            branches[k, i], branches[k, other] = -branches[k, other], -branches[k, i]
    n_valid, any_confirmed = filter_branches(chain, target, tolerance, branches, count, seed, out)
    return n_valid, REACHED if n_valid > 0 else OUT_OF_LIMITS if any_confirmed else NOT_REACHED


def _batch_example() -> tuple[
    ChainArrays, Array, Array, Array, Array, Array, Array, NDArray[np.int64], NDArray[np.int64]
]:
    counts = np.zeros(1, dtype=np.int64)
    two, seeds = np.ones(2), read_only(np.zeros((1, 1)))
    return (
        example_chain_arrays(), np.zeros((1, 4, 4)), seeds, np.zeros(3), two, two, np.zeros((1, 8, 1)), counts, counts
    )  # fmt: skip


def _spherical_example() -> tuple[object, ...]:
    return (SphericalWristArm(np.zeros((6, 4, 4)), np.eye(4)), False, *_batch_example())


def _parallel_example() -> tuple[object, ...]:
    eye, two, six = np.eye(4), np.zeros(2), np.zeros(6)
    return (ParallelAxesArm(eye, eye, two, two, eye, eye, True, eye, six, six), False, *_batch_example())


@kernel(examples=lambda: [_spherical_example()])
def solve_spherical_wrist_batch(
    arm: SphericalWristArm,
    is_reversed: bool,
    chain: ChainArrays,
    goals: Array,
    seeds: Array,
    free_axis: Array,
    weights: Array,
    tolerance: Array,
    out: Array,
    counts: NDArray[np.int64],
    statuses: NDArray[np.int64],
) -> None:
    """Branches of many poses, for an arm with a wrist.

    Args:
        arm: Its closed form.
        is_reversed: Whether that is of the chain from the tip to the base.
        chain: The chain.
        goals: (k, 4, 4) poses of the tip in the base.
        seeds: (k, n) the nearer to these, the earlier.
        free_axis: (3,) see `IkTarget`.
        weights: (2,) see `IkTarget`.
        tolerance: (2,) how far a tool may be from a goal [m, rad].
        out: (k, 8, n) is filled.
        counts: (k,) is filled: how many branches.
        statuses: (k,) is filled: REACHED, OUT_OF_LIMITS or NOT_REACHED.
    """
    branches, oriented_seed, T = np.empty((MAX_BRANCHES, 6)), np.empty(6), np.empty((4, 4))
    for k in range(goals.shape[0]):
        _to_closed_form(is_reversed, goals[k], seeds[k], T, oriented_seed)
        count = solve_spherical_wrist(arm, T, oriented_seed, branches)
        target = IkTarget(goals[k], free_axis, weights)
        counts[k], statuses[k] = _from_closed_form(
            is_reversed, chain, target, tolerance, branches, count, seeds[k], out[k]
        )


@kernel(examples=lambda: [_parallel_example()])
def solve_parallel_axes_batch(
    arm: ParallelAxesArm,
    is_reversed: bool,
    chain: ChainArrays,
    goals: Array,
    seeds: Array,
    free_axis: Array,
    weights: Array,
    tolerance: Array,
    out: Array,
    counts: NDArray[np.int64],
    statuses: NDArray[np.int64],
) -> None:
    """As `solve_spherical_wrist_batch`, for an arm with parallel axes."""
    n = seeds.shape[1]
    branches, oriented_seed, T = np.empty((MAX_BRANCHES, n)), np.empty(n), np.empty((4, 4))
    for k in range(goals.shape[0]):
        _to_closed_form(is_reversed, goals[k], seeds[k], T, oriented_seed)
        count = solve_parallel_axes(arm, T, oriented_seed, branches)
        target = IkTarget(goals[k], free_axis, weights)
        counts[k], statuses[k] = _from_closed_form(
            is_reversed, chain, target, tolerance, branches, count, seeds[k], out[k]
        )
