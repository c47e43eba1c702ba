"""Closed-form inverse kinematics: detection of a chain's closed form, and all branches of many poses within joint
limits.

Every branch is verified by forward kinematics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel, read_only
from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.chain_kernels import (
    ChainArrays,
    compute_frames,
    compute_tip_poses,
    example_chain_arrays,
)
from roboyard.kinematics.ik.closed_form_arms import (
    ParallelAxesArm,
    SphericalWristArm,
    solve_parallel_axes,
    solve_spherical_wrist,
)
from roboyard.kinematics.ik.numeric_ik import (
    IkTarget,
    compute_pose_error_at,
    damped_least_squares,
    example_ik_target,
    weighted_cost,
)

_AXIS_TOLERANCE = 1e-5
"""Tolerance for intersecting [m] and parallel axes [rad]; descriptions have rounded numbers."""
_N_VERIFIED = 25
"""Number of random positions that a closed form must reproduce before it is used."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """Closed form of a chain.

    Attributes:
        name: Name for users.
        parameters: Parameters of its kernel.
        is_reversed: Whether it belongs to the reversed chain, from the tip to the base.
    """

    name: str
    parameters: SphericalWristArm | ParallelAxesArm
    is_reversed: bool

    @property
    def kernel_id(self) -> int:
        """Id of the kernel: 0 `solve_spherical_wrist`, 1 `solve_parallel_axes`."""
        return 0 if isinstance(self.parameters, SphericalWristArm) else 1


@lru_cache(maxsize=64)
def find_closed_form(chain: Chain) -> ClosedForm | None:
    """Return the closed form of a chain, or None if none applies."""
    arrays = chain.arrays
    has_no_mimics = (
        (arrays.multiplier == 1.0).all() and (arrays.offset == 0.0).all() and len(chain.moving_joints) == chain.dof
    )
    if (
        not has_no_mimics
        or not chain.is_revolute.all()
        or (arrays.translation_per_unit != 0.0).any()
        or chain.dof not in (5, 6)
    ):
        return None
    for is_reversed in (False, True):
        oriented = reverse_chain(arrays) if is_reversed else arrays
        for name, build in (("wrist", _find_spherical_wrist), ("parallel", _find_parallel_axes)):
            if is_reversed and chain.dof == 5:
                continue
            arm = build(oriented)
            if arm is not None and _is_verified(arm, oriented):
                description = {"wrist": "spherical wrist", "parallel": "three parallel axes"}[name]
                return ClosedForm(f"{description}, from the tip" if is_reversed else description, arm, is_reversed)
    return None


def reverse_chain(chain: ChainArrays) -> ChainArrays:
    """Return the chain from the tip to the base: poses are inverted, joints are in reverse order and negated."""
    inverses = [np.linalg.inv(T) for T in (*chain.origins, chain.T_tip)][::-1]
    return chain._replace(
        origins=np.stack(inverses[:-1]), T_tip=inverses[-1], lower=-chain.upper[::-1], upper=-chain.lower[::-1]
    )


def _joint_axes(chain: ChainArrays) -> tuple[Array, Array]:
    """Return points (m, 3) and directions (m, 3) of the axes in a generic, non-singular position."""
    frames = np.empty((len(chain.rotation_per_unit) + 1, 4, 4))
    compute_frames(chain, np.array([0.3, -0.8, 1.1, 0.7, -1.3, 0.5][: len(chain.lower)]), frames)
    return frames[1:, :3, 3], frames[1:, :3, 2]


def _intersection(points: Array, axes: Array) -> Array | None:
    """Return the distances along the lines (k, 3) to their common intersection, or None if they do not intersect."""
    # the point with the smallest squared distance from all of them
    projectors = np.eye(3) - axes[:, :, None] * axes[:, None, :]
    total = projectors.sum(axis=0)
    if np.linalg.cond(total) > 1e6:
        return None
    point = np.linalg.solve(total, (projectors @ points[:, :, None]).sum(axis=0)[:, 0])
    distances = np.linalg.norm((projectors @ (point - points)[:, :, None])[:, :, 0], axis=1)
    return None if distances.max() > _AXIS_TOLERANCE else ((point - points) * axes).sum(axis=1)


def _slide_frame(origins: list[Array], k: int, distance: float) -> None:
    """Move frame k along its own z; index m is the tip."""
    origins[k] = origins[k] @ _translation_z(distance)
    origins[k + 1] = _translation_z(-distance) @ origins[k + 1]


def _translation_z(distance: float) -> Array:
    T = np.eye(4)
    T[2, 3] = distance
    return T


def _find_spherical_wrist(chain: ChainArrays) -> SphericalWristArm | None:
    if len(chain.rotation_per_unit) != 6:
        return None
    points, axes = _joint_axes(chain)
    distances = _intersection(points[3:], axes[3:])
    if distances is None:
        return None
    origins = [T.copy() for T in (*chain.origins, chain.T_tip)]
    for k, distance in zip((3, 4, 5), distances, strict=True):
        _slide_frame(origins, k, float(distance))
    for k in (4, 5):
        origins[k][:3, 3] = 0.0
    return SphericalWristArm(np.stack(origins[:-1]), origins[-1])


def _find_parallel_axes(chain: ChainArrays) -> ParallelAxesArm | None:
    count = len(chain.rotation_per_unit)
    points, axes = _joint_axes(chain)
    if any(np.linalg.norm(np.cross(axes[1], axes[k])) > _AXIS_TOLERANCE for k in (2, 3)):
        return None
    if abs(axes[0] @ axes[1]) > 1.0 - 1e-6 or np.linalg.norm(np.cross(axes[3], axes[4])) < 1e-3:
        return None
    origins = [T.copy() for T in (*chain.origins, chain.T_tip)]
    sign, offset = np.ones(count), np.zeros(count)
    flip_yz = np.diag([1.0, -1.0, -1.0, 1.0])
    for k in (2, 3):
        if axes[1] @ axes[k] < 0.0:
            origins[k], origins[k + 1], sign[k] = origins[k] @ flip_yz, flip_yz @ origins[k + 1], -1.0
    for k in (2, 3):
        _slide_frame(origins, k, -float(origins[k][2, 3]))
        offset[k] = math.atan2(origins[k][1, 0], origins[k][0, 0])
    if count == 6:
        distances = _intersection(points[4:], axes[4:])
        if distances is None:
            return None
        _slide_frame(origins, 4, float(distances[0]))
        _slide_frame(origins, 5, float(distances[1]))
        origins[5][:3, 3] = 0.0
        sixth = origins[5]
    else:
        axis_xy, origin_xy = origins[4][:2, 2], origins[4][:2, 3]
        _slide_frame(origins, 4, -float(axis_xy @ origin_xy) / float(axis_xy @ axis_xy))
        sixth = np.eye(4)
    return ParallelAxesArm(
        origins[0], origins[1], origins[2][:2, 3].copy(), origins[3][:2, 3].copy(), origins[4], sixth, count == 6,
        origins[-1], sign, offset,
    )  # fmt: skip


def _is_verified(arm: SphericalWristArm | ParallelAxesArm, chain: ChainArrays) -> bool:
    """Return whether the closed form reproduces random positions."""
    expect_kernels(solve_spherical_wrist if isinstance(arm, SphericalWristArm) else solve_parallel_axes)
    count = len(chain.lower)
    q = np.random.default_rng(0).uniform(-math.pi, math.pi, (_N_VERIFIED, count))
    poses, out, seed = np.empty((_N_VERIFIED, 4, 4)), np.empty((8, count)), np.zeros(count)
    compute_tip_poses(chain, q, poses)
    n_missed = 0
    for expected, T in zip(q, poses, strict=True):
        n_found = (
            solve_spherical_wrist(arm, T, seed, out)
            if isinstance(arm, SphericalWristArm)
            else solve_parallel_axes(arm, T, seed, out)
        )
        differences = np.abs(wrap_angle(out[:n_found] - expected))
        n_missed += not (differences.max(axis=1, initial=0.0) < 1e-2).any()
    return n_missed == 0


MAX_BRANCHES = 8
"""Maximum number of branches of a closed form."""
REACHED, OUT_OF_LIMITS, NOT_REACHED = 0, 1, 2
_LIMIT_TOLERANCE = 1e-6
"""Maximum excess of a computed joint position over a limit, before it is clamped [rad]."""
_DUPLICATE_TOLERANCE = 1e-6
_MAX_UNREFINED_ERROR = 5e-3
"""Maximum error of a branch before it is refined [m, rad]: closed forms treat nearly intersecting axes as intersecting.
"""


@kernel(examples=lambda: [(example_chain_arrays(), np.zeros(1), np.zeros(1))])
def wrap_into_limits(chain: ChainArrays, q: Array, seed: Array) -> bool:
    """Add whole turns to joint positions so that they are within limits and closest to a seed; return False if
    impossible.

    Args:
        chain: A chain with revolute joints only.
        q: (n,) joint positions; overwritten.
        seed: (n,) preferred joint positions.
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
    """Select the branches within joint limits that forward kinematics confirms, nearest to the seed first.

    Args:
        chain: The chain.
        target: The goal.
        tolerance: (2,) maximum position and orientation error [m, rad].
        branches: (8, n) branches; overwritten.
        count: Number of valid branches.
        seed: (n,) preferred joint positions; closer branches come first.
        out: (8, n) result.

    Returns:
        Number of selected branches, and whether any branch was confirmed regardless of the limits.
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
        if not _is_within_tolerance(
            error, coarse_tolerance
        ):  # five joints that reach the position, but not the direction
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
    """Convert a pose and joint positions to the closed form's chain; for a reversed chain, invert the pose and reverse
    and negate the joints.
    """
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
    """Convert branches back from the closed form's chain; return how many reach the goal, and the status."""
    n = branches.shape[1]
    for k in range(count if is_reversed else 0):
        for i in range((n + 1) // 2):
            other = n - 1 - i
            branches[k, i], branches[k, other] = -branches[k, other], -branches[k, i]
    n_valid, any_confirmed = filter_branches(chain, target, tolerance, branches, count, seed, out)
    return n_valid, REACHED if n_valid > 0 else OUT_OF_LIMITS if any_confirmed else NOT_REACHED


class IkGoals(NamedTuple):
    """Goal poses of an arm, with tolerances.

    Attributes:
        T: (k, 4, 4) poses of the tip in the base.
        seeds: (k, n) preferred joint positions; closer branches come first.
        free_axis: (3,) see `IkTarget`.
        weights: (2,) see `IkTarget`.
        tolerance: (2,) maximum position and orientation error [m, rad].
    """

    T: Array
    seeds: Array
    free_axis: Array
    weights: Array
    tolerance: Array


class IkBranches(NamedTuple):
    """Branches of many poses, in arrays that a kernel fills.

    Attributes:
        joints: (k, 8, n) joint positions.
        counts: (k,) number of branches of each pose.
        statuses: (k,) REACHED, OUT_OF_LIMITS or NOT_REACHED.
    """

    joints: Array
    counts: NDArray[np.int64]
    statuses: NDArray[np.int64]


def _batch_example() -> tuple[ChainArrays, IkGoals, IkBranches]:
    counts = np.zeros(1, dtype=np.int64)
    two, seeds = np.ones(2), read_only(np.zeros((1, 1)))
    goals = IkGoals(np.zeros((1, 4, 4)), seeds, np.zeros(3), two, two)
    return example_chain_arrays(), goals, IkBranches(np.zeros((1, 8, 1)), counts, counts)


def _spherical_example() -> tuple[object, ...]:
    return (SphericalWristArm(np.zeros((6, 4, 4)), np.eye(4)), False, *_batch_example())


def _parallel_example() -> tuple[object, ...]:
    eye, two, six = np.eye(4), np.zeros(2), np.zeros(6)
    return (ParallelAxesArm(eye, eye, two, two, eye, eye, True, eye, six, six), False, *_batch_example())


@kernel(examples=lambda: [_spherical_example()])
def solve_spherical_wrist_batch(
    arm: SphericalWristArm, is_reversed: bool, chain: ChainArrays, goals: IkGoals, out: IkBranches
) -> None:
    """Compute the branches of many poses for an arm with a spherical wrist.

    Args:
        arm: Parameters of the closed form.
        is_reversed: Whether the closed form belongs to the reversed chain.
        chain: The chain.
        goals: Goal poses.
        out: Result.
    """
    branches, oriented_seed, T = np.empty((MAX_BRANCHES, 6)), np.empty(6), np.empty((4, 4))
    for k in range(goals.T.shape[0]):
        _to_closed_form(is_reversed, goals.T[k], goals.seeds[k], T, oriented_seed)
        count = solve_spherical_wrist(arm, T, oriented_seed, branches)
        target = IkTarget(goals.T[k], goals.free_axis, goals.weights)
        out.counts[k], out.statuses[k] = _from_closed_form(
            is_reversed, chain, target, goals.tolerance, branches, count, goals.seeds[k], out.joints[k]
        )


@kernel(examples=lambda: [_parallel_example()])
def solve_parallel_axes_batch(
    arm: ParallelAxesArm, is_reversed: bool, chain: ChainArrays, goals: IkGoals, out: IkBranches
) -> None:
    """Compute the branches of many poses for an arm with parallel axes; see `solve_spherical_wrist_batch`."""
    n = goals.seeds.shape[1]
    branches, oriented_seed, T = np.empty((MAX_BRANCHES, n)), np.empty(n), np.empty((4, 4))
    for k in range(goals.T.shape[0]):
        _to_closed_form(is_reversed, goals.T[k], goals.seeds[k], T, oriented_seed)
        count = solve_parallel_axes(arm, T, oriented_seed, branches)
        target = IkTarget(goals.T[k], goals.free_axis, goals.weights)
        out.counts[k], out.statuses[k] = _from_closed_form(
            is_reversed, chain, target, goals.tolerance, branches, count, goals.seeds[k], out.joints[k]
        )
