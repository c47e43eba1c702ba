"""Inverse kinematics of serial chains: goals, solutions, and the choice between closed form and numerical search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import expect_kernels, read_only
from roboyard.config import check, parameter
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.chain_kernels import ChainArrays, compute_frames, compute_tip_poses
from roboyard.kinematics.ik.closed_form import (
    MAX_BRANCHES,
    OUT_OF_LIMITS,
    ClosedForm,
    IkBranches,
    IkGoals,
    find_closed_form,
    solve_parallel_axes_batch,
    solve_spherical_wrist_batch,
)
from roboyard.kinematics.ik.numeric_ik import (
    IkTarget,
    compute_pose_error_at,
    find_approximate_solution,
    search_from_seeds,
)


@dataclass(frozen=True)
class PointingTarget:
    """Goal for the tool's position and pointing direction; the rotation about the direction is free.

    Attributes:
        position: (3,) position in the chain's base [m].
        axis: (3,) direction in the chain's base, of any length.
        tool_axis: (3,) direction in the tool frame that must point along `axis`.
    """

    position: ArrayLike
    axis: ArrayLike
    tool_axis: ArrayLike = (0.0, 0.0, 1.0)

    def matrix(self) -> Array:
        """Return a pose (4, 4) whose third column is the axis. Raises InputError."""
        position, z = _as_vector3(self.position, "position"), normalize(self.axis, "axis")
        x = np.cross((0.0, 1.0, 0.0) if abs(z[1]) < 0.9 else (1.0, 0.0, 0.0), z)
        x /= np.linalg.norm(x)
        T = np.eye(4)
        T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = x, np.cross(z, x), z, position
        return T


@dataclass(frozen=True)
class IkConfig:
    """Settings of inverse kinematics.

    Attributes:
        tolerance: Maximum position error [m].
        orientation_tolerance: Maximum orientation error [rad].
        meters_per_radian: Weight of orientation error relative to position error for unreachable goals [m].
        restarts: Number of start positions of the search for chains without a closed form.
        max_solutions: Number of different solutions at which the search stops.
        max_iterations: Maximum number of iterations of each search.
        roll_samples: Number of rotations about its direction tried for a `PointingTarget`, unless the last joint does
            that rotation.
        max_samples: Number of joint positions evaluated to find the nearest feasible one.
        n_starts: Number of these that are refined.
        random_seed: Seed of the sampled joint positions.
    """

    tolerance: float = parameter(1e-6, unit="m", low=1e-12, high=0.1)
    orientation_tolerance: float = parameter(1e-6, unit="rad", low=1e-12, high=1.0)
    meters_per_radian: float = parameter(0.1, unit="m", low=1e-4, high=100.0)
    restarts: int = parameter(100, low=1, high=100_000)
    max_solutions: int = parameter(1, low=1, high=1000)
    max_iterations: int = parameter(60, low=1, high=10_000)
    roll_samples: int = parameter(24, low=1, high=3600)
    max_samples: int = parameter(4096, low=1, high=1_000_000)
    n_starts: int = parameter(24, low=1, high=10_000)
    random_seed: int = parameter(0, low=0)


class IkFailure(Enum):
    """Reason why a goal has no solution."""

    OUT_OF_REACH = "out of reach"
    """The position itself is out of reach, with or without joint limits."""
    JOINT_LIMITS = "joint limits"
    """The goal could be reached without joint limits."""
    ORIENTATION = "orientation"
    """The position can be reached, but not with this orientation."""
    NOT_FOUND = "not found"
    """Position and orientation can each be reached; the search found no joint positions for both."""


@dataclass(frozen=True)
class NearestSolution:
    """Feasible joint positions nearest to an unreachable goal.

    Attributes:
        joints: (n,) joint positions.
        pose: (4, 4) resulting pose of the tool.
        distance: Position error [m].
        angle: Orientation error, or angle between the directions of a `PointingTarget` [rad].
        cost: Minimized cost ``sqrt(distance² + (meters_per_radian · angle)²)`` [m].
    """

    joints: Array
    pose: Array
    distance: float
    angle: float
    cost: float


@dataclass(frozen=True)
class IkSolution:
    """Solutions of a goal; a sequence of joint positions, nearest to the seed first.

    Attributes:
        solutions: (k, n) joint positions; empty if the goal cannot be reached.
        errors: (k, 2) position and orientation error of each solution [m, rad].
        method: Name of the closed form, or search.
        failure: Reason why there is no solution.
        nearest: Nearest feasible joint positions if there is no solution.
    """

    solutions: Array
    errors: Array
    method: str
    failure: IkFailure | None = None
    nearest: NearestSolution | None = field(default=None, repr=False)

    @property
    def is_solved(self) -> bool:
        """Whether there is a solution."""
        return len(self.solutions) > 0

    @property
    def best(self) -> Array:
        """First solution (n,). Raises InputError with the reason if there is none."""
        if not self.is_solved:
            nearest = self.nearest
            nearest_text = (
                f"the nearest pose is {nearest.distance:.3g} m and {nearest.angle:.3g} rad away" if nearest else None
            )
            raise InputError(
                f"the goal has no solution: {self.failure.value if self.failure else ''}", valid=nearest_text
            )
        return np.array(self.solutions[0])

    def __len__(self) -> int:
        return len(self.solutions)

    def __getitem__(self, index: int) -> Array:
        return np.array(self.solutions[index])

    def __iter__(self) -> Iterator[Array]:
        return iter(self.solutions)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        return np.array(self.solutions, dtype=np.float64)


@dataclass(frozen=True)
class IkBatch:
    """Solutions of many poses.

    Attributes:
        solutions: (k, b, n) joint positions, nearest to the seed first for each pose; NaN for missing ones.
        n_solutions: (k,) number of solutions.
        is_out_of_limits: (k,) whether a pose without a solution would have one without joint limits.
        method: Name of the closed form, or search.
    """

    solutions: Array
    n_solutions: NDArray[np.int64]
    is_out_of_limits: NDArray[np.bool_]
    method: str

    @property
    def best(self) -> Array:
        """(k, n) first solution of each pose; NaN without a solution."""
        return self.solutions[:, 0]

    @property
    def is_solved(self) -> NDArray[np.bool_]:
        """(k,) whether each pose has a solution."""
        return self.n_solutions > 0


def goal_to_matrix(goal: SE3 | PointingTarget | ArrayLike) -> Array:
    """Convert a goal to a pose (4, 4). Raises InputError."""
    if isinstance(goal, SE3 | PointingTarget):
        return goal.matrix()
    return as_pose_matrices(goal, 2)


def as_pose_matrices(matrices: ArrayLike, n_dims: int) -> Array:
    """Check homogeneous matrices (4, 4) or (k, 4, 4). Raises InputError."""
    valid = "homogeneous (4, 4)" if n_dims == 2 else "homogeneous (k, 4, 4)"
    try:
        T = np.ascontiguousarray(matrices, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the goal must be an array of numbers", valid=valid) from None
    if T.ndim != n_dims or T.shape[-2:] != (4, 4):
        raise InputError(f"the goal has the shape {T.shape}", valid=valid)
    if not np.isfinite(T).all():
        raise InputError("the goal has a number that is not finite", valid=valid)
    R = T[..., :3, :3]
    is_rotation = (
        np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(initial=0.0) < 1e-6 and (np.linalg.det(R) > 0.0).all()
    )
    if not is_rotation or not (np.abs(T[..., 3, :] - (0.0, 0.0, 0.0, 1.0)) < 1e-9).all():
        raise InputError(
            "the goal is not a valid pose", valid="a rotation matrix, a position, and the last row 0 0 0 1"
        )
    return T


def normalize(vector: ArrayLike, name: str) -> Array:
    """Normalize a direction (3,) to length one. Raises InputError."""
    values = _as_vector3(vector, name)
    length = float(np.linalg.norm(values))
    if length < 1e-9:
        raise InputError(f"the {name} must be a direction, got {values.tolist()}", valid="three numbers, not all zero")
    return values / length


def _as_vector3(vector: ArrayLike, name: str) -> Array:
    try:
        values = np.array(vector, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise InputError(f"the {name} must be a vector, got {vector!r:.80}", valid="three finite numbers")
    return values


_NO_FREE_AXIS = np.zeros(3)
"""Free axis of an `IkTarget` that requires the complete orientation."""
_MAX_WRAPPED_SOLUTIONS = 4096
"""Maximum number of listed solutions that differ by whole turns."""
_PRISMATIC_RANGE = 1.0
"""Half width of the search range of a prismatic joint without limits [m]."""
_DEFAULT = IkConfig()


def expect_ik_kernels(chain: Chain) -> None:
    """Request precompilation of the kernels that `solve_ik` will call for a chain."""
    expect_kernels(compute_frames, compute_tip_poses, compute_pose_error_at)
    form = find_closed_form(chain)
    if form is None:
        expect_kernels(search_from_seeds)
    else:
        expect_kernels(solve_parallel_axes_batch if form.kernel_id else solve_spherical_wrist_batch)


def solve_ik(
    chain: Chain, goal: SE3 | PointingTarget | ArrayLike, seed: ArrayLike | None = None, settings: IkConfig = _DEFAULT
) -> IkSolution:
    """Compute joint positions that move the tool to a goal; all solutions if the chain has a closed form.

    Closed forms exist for six revolute joints with a spherical wrist, or with three parallel axes and two intersecting
    ones, in either direction of the chain; and for five revolute joints with three parallel axes.  Other chains are
    solved by numerical search.

    Args:
        chain: Chain to the tool.
        goal: Pose of the tool in the chain's base, as `SE3` or (4, 4), or a `PointingTarget`.
        seed: (n,) preferred joint positions, for example the present ones; by default the middle of the joint ranges.
        settings: Tolerances and effort of the search.

    Returns:
        Solutions, nearest to the seed first, including those that differ by whole turns within the limits.  For a
        `PointingTarget` with infinitely many solutions, a sample of them.  Without a solution: the reason, and the
        feasible joint positions nearest to the goal.

    Raises:
        InputError: Goal or joint positions are not finite or have the wrong shape.
        ConfigError: A setting is out of range.
    """
    check(settings, "settings")
    T, seed_joints = goal_to_matrix(goal), _seed_joints(chain, seed)
    tool_axis = normalize(goal.tool_axis, "tool_axis") if isinstance(goal, PointingTarget) else _NO_FREE_AXIS
    target = IkTarget(T, tool_axis, np.array([1.0, settings.meters_per_radian]))
    tolerance = np.array([settings.tolerance, settings.orientation_tolerance])
    form = find_closed_form(chain)
    free_roll = isinstance(goal, PointingTarget) and _last_joint_rolls_tool(chain, tool_axis)
    if form is not None and (not isinstance(goal, PointingTarget) or free_roll or chain.dof == 6):
        goals = _sample_rolls(T, tool_axis, settings.roll_samples) if isinstance(goal, PointingTarget) else T[None]
        method = form.name
        branches, counts, statuses = _solve_closed_form(chain, form, goals, seed_joints, target, tolerance)
        found = np.concatenate([rows[:count] for rows, count in zip(branches, counts, strict=True)])
        out_of_limits = bool((statuses == OUT_OF_LIMITS).any())
        if free_roll:
            found[:, -1] = np.clip(seed_joints[-1], chain.lower[-1], chain.upper[-1])
    else:
        method, out_of_limits = "search", False
        out = np.empty((settings.max_solutions, chain.dof))
        seeds = _search_seeds(chain, seed_joints, settings.random_seed, settings.restarts)
        count, _ = search_from_seeds(
            chain.arrays, target, tolerance, seeds, settings.max_solutions, settings.max_iterations, out
        )
        found = out[:count]
    if len(found) > 0:
        found = _add_wrapped_solutions(chain, found, seed_joints)
        return IkSolution(found, np.array([_error_norms(chain.arrays, target, q) for q in found]), method)
    failure = _diagnose_failure(chain, target, tolerance, settings, out_of_limits=out_of_limits)
    return IkSolution(found, np.empty((0, 2)), method, failure, _find_nearest(chain, target, seed_joints, settings))


def solve_ik_batch(
    chain: Chain, goals: ArrayLike, seed: ArrayLike | None = None, settings: IkConfig = _DEFAULT
) -> IkBatch:
    """Solve the inverse kinematics of many poses.

    Returns all branches of the closed form for each pose, or up to `settings.max_solutions` solutions of the search.
    For joints with a range of more than one turn only the angle nearest to the seed is returned.

    Args:
        chain: Chain to the tool.
        goals: (k, 4, 4) poses of the tool in the chain's base.
        seed: (n,) preferred joint positions, or (k, n) for each pose its own.
        settings: As for `solve_ik`.

    Raises:
        InputError: As `solve_ik`.
        ConfigError: As `solve_ik`.
    """
    check(settings, "settings")
    T = as_pose_matrices(goals, 3)
    seed_joints = np.broadcast_to(_seed_joints(chain, seed, len(T)), (len(T), chain.dof))
    tolerance = np.array([settings.tolerance, settings.orientation_tolerance])
    weights = np.array([1.0, settings.meters_per_radian])
    form = find_closed_form(chain)
    if form is not None:
        branches, counts, statuses = _solve_closed_form(
            chain, form, T, seed_joints, IkTarget(T[:1], _NO_FREE_AXIS, weights), tolerance
        )
        branches[np.arange(branches.shape[1]) >= counts[:, None]] = np.nan
        return IkBatch(branches, counts, statuses == OUT_OF_LIMITS, form.name)
    branches = np.full((len(T), settings.max_solutions, chain.dof), np.nan)
    counts = np.zeros(len(T), dtype=np.int64)
    seeds = np.array(
        _search_seeds(
            chain, seed_joints[0] if len(T) else _seed_joints(chain, None), settings.random_seed, settings.restarts
        )
    )
    for k, goal in enumerate(T):
        seeds[0] = np.clip(seed_joints[k], chain.lower, chain.upper)
        target = IkTarget(goal, _NO_FREE_AXIS, weights)
        counts[k], _ = search_from_seeds(
            chain.arrays, target, tolerance, seeds, settings.max_solutions, settings.max_iterations, branches[k]
        )
        order = np.argsort(np.square(branches[k, : counts[k]] - seed_joints[k]).sum(axis=1), kind="stable")
        branches[k, : counts[k]] = branches[k, order]
    return IkBatch(branches, counts, np.zeros(len(T), dtype=np.bool_), "search")


def _solve_closed_form(
    chain: Chain, form: ClosedForm, goals: Array, seed: Array, target: IkTarget, tolerance: Array
) -> IkBranches:
    """Compute all branches of the goals."""
    solve: Callable[..., None] = solve_parallel_axes_batch if form.kernel_id else solve_spherical_wrist_batch
    counts, statuses = np.empty(len(goals), dtype=np.int64), np.empty(len(goals), dtype=np.int64)
    out = IkBranches(np.empty((len(goals), MAX_BRANCHES, chain.dof)), counts, statuses)
    seeds = read_only(np.ascontiguousarray(np.broadcast_to(seed, (len(goals), chain.dof))))
    ik_goals = IkGoals(goals, seeds, target.free_axis, target.weights, tolerance)
    solve(form.parameters, form.is_reversed, chain.arrays, ik_goals, out)
    return out


def _seed_joints(chain: Chain, seed: ArrayLike | None, count: int | None = None) -> Array:
    """Return joint positions (n,), or (count, n) if `count` goals are given. Raises InputError."""
    if seed is None:
        low, high = _search_range(chain)
        return 0.5 * (low + high)
    values = chain.as_positions(seed)
    if values.ndim == 2 and len(values) != count:
        raise InputError(
            f"the seed has the shape {values.shape}",
            location=chain.robot,
            valid=f"({chain.dof},)" if count is None else f"({chain.dof},) or ({count}, {chain.dof})",
        )
    return values


def _search_range(chain: Chain) -> tuple[Array, Array]:
    """Return finite bounds of the search."""
    half_range = np.where(chain.is_revolute, math.pi, _PRISMATIC_RANGE)
    low = np.where(np.isfinite(chain.lower), chain.lower, np.minimum(-half_range, chain.upper - 2.0 * half_range))
    high = np.where(np.isfinite(chain.upper), chain.upper, np.maximum(half_range, low + 2.0 * half_range))
    return low, high


@lru_cache(maxsize=32)
def _sample_joints(chain: Chain, random_seed: int, count: int) -> Array:
    low, high = _search_range(chain)
    samples = np.random.default_rng(random_seed).uniform(low, high, (count, chain.dof))
    samples.flags.writeable = False
    return samples


def _search_seeds(chain: Chain, seed: Array, random_seed: int, count: int) -> Array:
    seeds = _sample_joints(chain, random_seed, count).copy()
    seeds[0] = np.clip(seed, chain.lower, chain.upper)
    return seeds


def _last_joint_rolls_tool(chain: Chain, tool_axis: Array) -> bool:
    """Return whether the last joint rotates the tool about its direction and moves nothing else."""
    arrays = chain.arrays
    last_axis = arrays.T_tip[:3, :3].T @ (0.0, 0.0, 1.0)
    is_independent = (
        arrays.driving_joint[-1] == chain.dof - 1
        and (arrays.driving_joint[:-1] != chain.dof - 1).all()
        and arrays.rotation_per_unit[-1] == 1.0
    )
    is_on_axis = np.hypot(*arrays.T_tip[:2, 3]) < 1e-9
    return bool(
        is_independent
        and is_on_axis
        and arrays.translation_per_unit[-1] == 0.0
        and np.linalg.norm(np.cross(last_axis, tool_axis)) < 1e-9
    )


def _sample_rolls(T: Array, tool_axis: Array, count: int) -> Array:
    """Return poses (count, 4, 4) whose third column is that of T, with different rotations about it."""
    axis = np.cross(tool_axis, (0.0, 0.0, 1.0))
    if np.linalg.norm(axis) < 1e-12:
        minimal_rotation = np.eye(3) if tool_axis[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    else:
        angle = math.acos(min(1.0, max(-1.0, float(tool_axis[2]))))
        minimal_rotation = SE3.exp([0.0, 0.0, 0.0, *(axis / np.linalg.norm(axis) * angle)]).rotation_matrix()
    goals = np.repeat(T[None], count, axis=0)
    for k in range(count):
        goals[k, :3, :3] = (
            T[:3, :3]
            @ SE3.exp([0.0, 0.0, 0.0, 0.0, 0.0, 2.0 * math.pi * k / count]).rotation_matrix()
            @ minimal_rotation
        )
    return goals


def _add_wrapped_solutions(chain: Chain, found: Array, seed: Array) -> Array:
    """Add solutions that differ by whole turns within the limits; without duplicates, nearest to the seed first."""
    combinations: list[tuple[float, ...]] = []
    for q in found:
        choices = []
        for i, value in enumerate(q):
            low, high = chain.lower[i], chain.upper[i]
            if not chain.is_revolute[i] or not math.isfinite(low) or not math.isfinite(high):
                choices.append([float(value)])
                continue
            min_wraps, max_wraps = math.ceil((low - value) / (2 * math.pi)), math.floor((high - value) / (2 * math.pi))
            choices.append([float(value + 2 * math.pi * k) for k in range(min(min_wraps, 0), max(max_wraps, 0) + 1)])
        if len(combinations) < _MAX_WRAPPED_SOLUTIONS:
            combinations += product(*choices)
    solutions = np.array(combinations)
    solutions = solutions[np.argsort(np.square(solutions - seed).sum(axis=1), kind="stable")]
    unique = [
        k for k in range(len(solutions)) if k == 0 or np.abs(solutions[:k] - solutions[k]).max(axis=1).min() > 1e-6
    ]
    return solutions[unique]


def _error_norms(arrays: ChainArrays, target: IkTarget, q: Array) -> tuple[float, float]:
    """Return position and orientation error [m, rad]."""
    error = np.empty(6)
    compute_pose_error_at(
        arrays,
        target,
        np.ascontiguousarray(q),
        np.empty((len(arrays.rotation_per_unit) + 1, 4, 4)),
        np.empty((4, 4)),
        error,
    )
    return float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))


def _diagnose_failure(
    chain: Chain, target: IkTarget, tolerance: Array, settings: IkConfig, *, out_of_limits: bool
) -> IkFailure:
    """Determine the reason of a failure, by solving the goal with weaker requirements."""
    if out_of_limits:
        return IkFailure.JOINT_LIMITS
    infinite = np.full(chain.dof, math.inf)
    unlimited = chain.arrays._replace(
        lower=np.where(chain.is_revolute, -infinite, chain.lower),
        upper=np.where(chain.is_revolute, infinite, chain.upper),
    )
    position_target = target._replace(weights=np.array([1.0, 0.0]))
    position_tolerance = np.array([tolerance[0], math.inf])
    seeds, out = _sample_joints(chain, settings.random_seed, settings.restarts), np.empty((1, chain.dof))

    def is_reached(arrays: ChainArrays, requested: IkTarget, max_error: Array) -> bool:
        return search_from_seeds(arrays, requested, max_error, seeds, 1, settings.max_iterations, out)[0] > 0

    if not is_reached(chain.arrays, position_target, position_tolerance):
        return (
            IkFailure.JOINT_LIMITS
            if is_reached(unlimited, position_target, position_tolerance)
            else IkFailure.OUT_OF_REACH
        )
    if find_closed_form(chain) is None and is_reached(unlimited, target, tolerance):
        return IkFailure.JOINT_LIMITS
    return IkFailure.ORIENTATION if chain.dof < 6 or find_closed_form(chain) is not None else IkFailure.NOT_FOUND


def _find_nearest(chain: Chain, target: IkTarget, seed: Array, settings: IkConfig) -> NearestSolution:
    samples, q = _search_seeds(chain, seed, settings.random_seed, settings.max_samples), np.empty(chain.dof)
    find_approximate_solution(chain.arrays, target, samples, settings.n_starts, 4 * settings.max_iterations, q)
    distance, angle = _error_norms(chain.arrays, target, q)
    return NearestSolution(
        q, chain.forward(q), distance, angle, math.hypot(distance, settings.meters_per_radian * angle)
    )
