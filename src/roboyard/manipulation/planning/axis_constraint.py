"""Axis constraint: planning that keeps a tool axis within a tolerance of a direction, as a glass that stays upright."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.chain_kernels import compute_frames, compute_jacobian, multiply_transforms
from roboyard.manipulation.collision.collision_model import (
    CollisionArrays,
    CollisionWorkspace,
    example_collision_arrays,
    make_workspace,
)
from roboyard.manipulation.collision.motion_check import is_line_free
from roboyard.manipulation.errors import ConstraintViolatedError, MotionBudgetExceededError, PlanningCancelledError
from roboyard.manipulation.planning.path_shortening import blend_corners
from roboyard.manipulation.planning.planner import STATES_PER_POLL, MotionPlanningProblem, PlannedPath, StopCallback
from roboyard.manipulation.planning.rrt_connect import (
    CONNECTED,
    SEARCHING,
    TREE_FULL,
    RrtTrees,
    extract_path,
    make_trees,
    nearest_node,
)
from roboyard.manipulation.time_parameterization import JointPath

_MAX_PROJECTION_STEPS: Final = 25
"""Maximum number of steps of a projection."""
_PROJECTION_TOLERANCE_FRACTION: Final = 0.5
"""A projection ends at this fraction of the tolerance, which leaves a margin for the motion between states."""


@dataclass(frozen=True)
class AxisConstraint:
    """A tool axis keeps a direction within a tolerance.

    Attributes:
        axis: Axis in the tool's frame.
        direction: Direction in the chain's base.
        tolerance: Maximum tilt [rad].
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    direction: tuple[float, float, float] = (0.0, 0.0, 1.0)
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        for name, value in (("axis", self.axis), ("direction", self.direction)):
            length = math.hypot(*value) if len(value) == 3 else 0.0
            if not (length > 1e-9 and math.isfinite(length)):
                raise InputError(
                    f"{name} {value}", location="AxisConstraint", valid="three finite numbers, not all zero"
                )
        if not 0.001 <= self.tolerance <= math.pi:
            raise InputError(f"a tolerance of {self.tolerance} rad", location="AxisConstraint", valid="0.001 to pi")

    def tilt_angle(self, chain: Chain, q: Array) -> Array:
        """Return the tilt of the axis in states (k, n) [rad]. Raises InputError."""
        axes = chain.forward(np.atleast_2d(q))[:, :3, :3] @ np.array(self.axis) / math.hypot(*self.axis)
        target_direction = np.array(self.direction) / math.hypot(*self.direction)
        sines = np.linalg.norm(np.cross(axes, target_direction), axis=1)
        return np.asarray(np.arctan2(sines, axes @ target_direction))

    def to_arrays(self) -> AxisConstraintArrays:
        """Return the arrays for the kernels."""
        return AxisConstraintArrays(
            np.array(self.axis) / math.hypot(*self.axis),
            np.array(self.direction) / math.hypot(*self.direction),
            self.tolerance,
        )


class AxisConstraintArrays(NamedTuple):
    """An `AxisConstraint` for kernels, with unit vectors."""

    axis: Array
    direction: Array
    tolerance: float


def _examples() -> Iterable[tuple[Any, ...]]:
    collision = example_collision_arrays()
    one = np.ones(1)
    constraint = AxisConstraintArrays(np.ones(3), np.ones(3), 0.1)
    trees = make_trees(one, one[None], 2)
    yield collision, make_workspace(collision), constraint, trees, np.random.default_rng(0), one, one, one, 0.1, 0.1, 1


@kernel
def _compute_tilt(
    collision: CollisionArrays,
    constraint: AxisConstraintArrays,
    q: Array,
    workspace: CollisionWorkspace,
    T: Array,
    e: Array,
) -> float:
    """Return the tilt of the axis; ``e`` (3,) becomes the rotation vector of the tilt [rad], ``T`` (4, 4) the tool's
    pose.
    """
    compute_frames(collision.chain, q, workspace.frames)
    multiply_transforms(workspace.frames[-1], collision.chain.T_tip, T)
    a = np.zeros(3)
    for i in range(3):
        for j in range(3):
            a[i] += T[i, j] * constraint.axis[j]
    d = constraint.direction
    e[0] = a[1] * d[2] - a[2] * d[1]
    e[1] = a[2] * d[0] - a[0] * d[2]
    e[2] = a[0] * d[1] - a[1] * d[0]
    sine = math.sqrt(e[0] ** 2 + e[1] ** 2 + e[2] ** 2)
    angle = math.atan2(sine, a[0] * d[0] + a[1] * d[1] + a[2] * d[2])
    scale = angle / sine if sine > 1e-12 else 1.0
    for i in range(3):
        e[i] *= scale
    return angle


@kernel
def _project(
    collision: CollisionArrays, constraint: AxisConstraintArrays, q: Array, workspace: CollisionWorkspace
) -> bool:
    """Move a state (dof,) until the tilt is below half of the tolerance; return whether that is possible.

    Damped least squares, clipped to the limits (D. Berenson et al., "Manipulation planning on constraint manifolds",
    ICRA 2009).
    """
    dof = q.shape[0]
    T, e, J = np.empty((4, 4)), np.empty(3), np.empty((6, dof))
    A = np.empty((3, 3))
    for _ in range(_MAX_PROJECTION_STEPS):
        if (
            _compute_tilt(collision, constraint, q, workspace, T, e)
            <= _PROJECTION_TOLERANCE_FRACTION * constraint.tolerance
        ):
            return True
        compute_jacobian(collision.chain, workspace.frames, T[:3, 3], J)
        for i in range(3):
            for j in range(3):
                A[i, j] = 1e-4 if i == j else 0.0
                for k in range(dof):
                    A[i, j] += J[3 + i, k] * J[3 + j, k]
        c00, c01 = A[1, 1] * A[2, 2] - A[1, 2] * A[2, 1], A[1, 2] * A[2, 0] - A[1, 0] * A[2, 2]
        c02 = A[1, 0] * A[2, 1] - A[1, 1] * A[2, 0]
        determinant = A[0, 0] * c00 + A[0, 1] * c01 + A[0, 2] * c02
        x = (
            c00 * e[0] + (A[0, 2] * A[2, 1] - A[0, 1] * A[2, 2]) * e[1] + (A[0, 1] * A[1, 2] - A[0, 2] * A[1, 1]) * e[2]
        ) / determinant
        y = (
            c01 * e[0] + (A[0, 0] * A[2, 2] - A[0, 2] * A[2, 0]) * e[1] + (A[0, 2] * A[1, 0] - A[0, 0] * A[1, 2]) * e[2]
        ) / determinant
        z = (
            c02 * e[0] + (A[0, 1] * A[2, 0] - A[0, 0] * A[2, 1]) * e[1] + (A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]) * e[2]
        ) / determinant
        for k in range(dof):
            q[k] += J[3, k] * x + J[4, k] * y + J[5, k] * z
            q[k] = min(max(q[k], collision.chain.lower[k]), collision.chain.upper[k])
    return False


@kernel(examples=lambda: [(*example[:3], np.zeros(1), np.zeros(1), 0.1) for example in _examples()])
def is_line_feasible(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    constraint: AxisConstraintArrays,
    a: Array,
    b: Array,
    spacing: float,
) -> bool:
    """Return whether a straight motion between states (dof,), sampled every ``spacing``, keeps the axis and is
    collision-free.
    """
    square = 0.0
    for k in range(a.shape[0]):
        square += (b[k] - a[k]) ** 2
    count = math.ceil(math.sqrt(square) / spacing)
    q, T, e = np.empty_like(a), np.empty((4, 4)), np.empty(3)
    for i in range(count + 1):
        fraction = i / count if count > 0 else 0.0
        for k in range(a.shape[0]):
            q[k] = a[k] + fraction * (b[k] - a[k])
        if _compute_tilt(collision, constraint, q, workspace, T, e) > constraint.tolerance:
            return False
    return is_line_free(collision, workspace, a, b)


@kernel
def _extend_tree(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    constraint: AxisConstraintArrays,
    trees: RrtTrees,
    tree: int,
    target: Array,
    weights: Array,
    step: float,
    spacing: float,
) -> int:
    """Extend a tree along the constraint towards a state; return the last node, which may reach that state."""
    dof = target.shape[0]
    node = nearest_node(trees.states[tree], trees.n_nodes[tree], target, weights)
    new = np.empty(dof)
    last_length = math.inf
    while trees.n_nodes[tree] < trees.states.shape[1]:
        square = 0.0
        for k in range(dof):
            square += (target[k] - trees.states[tree, node, k]) ** 2
        length = math.sqrt(square)
        if length < 1e-9 or length >= last_length - 1e-3 * step:
            break
        last_length = length
        fraction = min(1.0, step / length)
        for k in range(dof):
            new[k] = trees.states[tree, node, k] + fraction * (target[k] - trees.states[tree, node, k])
        if fraction < 1.0 and not _project(collision, constraint, new, workspace):
            break
        if not is_line_feasible(collision, workspace, constraint, trees.states[tree, node], new, spacing):
            break
        new_node = int(trees.n_nodes[tree])
        trees.states[tree, new_node] = new
        trees.parent[tree, new_node] = node
        trees.n_nodes[tree] = new_node + 1
        node = new_node
    return node


@kernel(examples=_examples)
def grow_trees_constrained(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    constraint: AxisConstraintArrays,
    trees: RrtTrees,
    rng: np.random.Generator,
    lower: Array,
    upper: Array,
    weights: Array,
    step: float,
    spacing: float,
    n_samples: int,
) -> int:
    """Grow the trees as `grow_trees` does, with the constraint: sampled states are projected onto it.

    Args:
        collision: Collision model.
        workspace: Workspace.
        constraint: The constraint.
        trees: The trees.
        rng: Generator of the sampled states.
        lower: (dof,) minimum positions of samples.
        upper: (dof,) maximum positions of samples.
        weights: (dof,) weights of the joints in distances.
        step: Length between states that are projected onto the constraint.
        spacing: Length between states at which the constraint is checked.
        n_samples: Number of states to sample.

    Returns:
        As `grow_trees`.
    """
    dof = lower.shape[0]
    target = np.empty(dof)
    for _ in range(n_samples):
        tree = trees.next_tree[0]
        other_tree = 1 - tree
        if trees.n_nodes[tree] >= trees.states.shape[1] or trees.n_nodes[other_tree] >= trees.states.shape[1]:
            return TREE_FULL
        for k in range(dof):
            target[k] = lower[k] + rng.random() * (upper[k] - lower[k])
        if _project(collision, constraint, target, workspace):
            node = _extend_tree(collision, workspace, constraint, trees, tree, target, weights, step, spacing)
            other_node = _extend_tree(
                collision, workspace, constraint, trees, other_tree, trees.states[tree, node], weights, step, spacing
            )
            max_difference = 0.0
            for k in range(dof):
                max_difference = max(
                    max_difference, abs(trees.states[tree, node, k] - trees.states[other_tree, other_node, k])
                )
            if max_difference < 1e-9:
                trees.connection[tree], trees.connection[other_tree] = node, other_node
                return CONNECTED
        trees.next_tree[0] = other_tree
    return SEARCHING


@kernel(
    examples=lambda: [(*example[:3], np.zeros((4, 1)), 2, np.random.default_rng(0), 2, 0.1) for example in _examples()]
)
def shortcut_path_constrained(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    constraint: AxisConstraintArrays,
    path: Array,
    count: int,
    rng: np.random.Generator,
    max_attempts: int,
    spacing: float,
) -> int:
    """Shorten a path (capacity, dof) between random states where the constraint permits; return the number of
    states.
    """
    for _ in range(max_attempts):
        if count < 3:
            break
        i, j = int(rng.random() * count), int(rng.random() * count)
        low, high = min(i, j), max(i, j)
        if high - low < 2 or not is_line_feasible(collision, workspace, constraint, path[low], path[high], spacing):
            continue
        for k in range(high, count):
            path[low + 1 + k - high] = path[k]
        count -= high - low - 1
    return count


PROJECTION_STEP = 0.15
"""Length between states that are projected onto the constraint, in joint space."""
CHECK_SPACING = 0.02
"""Length between states at which the constraint is checked."""
_BLEND_SIZES = (0.2, 0.05, 0.01, 0.0)


def select_feasible_goals(problem: MotionPlanningProblem, constraint: AxisConstraint) -> MotionPlanningProblem:
    """Return the problem with the goals that satisfy the constraint. Raises ConstraintViolatedError."""
    chain = problem.scene.chain
    start_tilt = float(constraint.tilt_angle(chain, problem.start)[0])
    if start_tilt > constraint.tolerance:
        raise ConstraintViolatedError(
            f"at the start the tool is tilted by {start_tilt:.3g} rad", valid=f"at most {constraint.tolerance:g} rad"
        )
    goal_tilts = constraint.tilt_angle(chain, problem.goals)
    is_feasible = goal_tilts <= constraint.tolerance
    if not is_feasible.any():
        raise ConstraintViolatedError(
            f"at the goal the tool is tilted by {goal_tilts.min():.3g} rad",
            valid=f"at most {constraint.tolerance:g} rad",
        )
    return MotionPlanningProblem(
        problem.scene, problem.workspace, problem.start, problem.goals[is_feasible], problem.weights
    )


def plan_constrained_path(
    problem: MotionPlanningProblem,
    constraint: AxisConstraint,
    rng: np.random.Generator,
    max_states: int,
    should_stop: StopCallback,
) -> PlannedPath:
    """Find a collision-free path of short lines that satisfies the constraint.

    Raises:
        MotionBudgetExceededError: no path was found with so many states.
        PlanningCancelledError: the search was cancelled.
    """
    collision, workspace, constraint_arrays = problem.scene.collision_arrays, problem.workspace, constraint.to_arrays()
    low, high = problem.sampling_bounds
    for goal in problem.goals:
        if is_line_feasible(collision, workspace, constraint_arrays, problem.start, goal, CHECK_SPACING):
            return PlannedPath(np.stack([problem.start, goal]), 2)
    trees = make_trees(problem.start, problem.goals, 20 * max_states + 16)
    status, n_remaining = SEARCHING, max_states
    while status == SEARCHING and n_remaining > 0:
        if should_stop():
            raise PlanningCancelledError("the search was cancelled", valid="another start")
        n_samples = min(n_remaining, STATES_PER_POLL)
        status = grow_trees_constrained(
            collision,
            workspace,
            constraint_arrays,
            trees,
            rng,
            low,
            high,
            problem.weights,
            PROJECTION_STEP,
            CHECK_SPACING,
            n_samples,
        )
        n_remaining -= n_samples
    if status != CONNECTED:
        raise MotionBudgetExceededError(
            f"no path that satisfies the axis constraint was found with {max_states} sampled states",
            valid="more states, or a larger tolerance",
        )
    return PlannedPath(extract_path(trees), int(trees.n_nodes.sum()))


def shorten_constrained_path(
    problem: MotionPlanningProblem,
    constraint: AxisConstraint,
    points: Array,
    rng: np.random.Generator,
    max_attempts: int,
) -> Array:
    """Return a shorter path (k, n) that satisfies the constraint."""
    path = points.copy()
    collision, workspace = problem.scene.collision_arrays, problem.workspace
    count = shortcut_path_constrained(
        collision, workspace, constraint.to_arrays(), path, len(path), rng, 5 * max_attempts, CHECK_SPACING
    )
    return path[:count].copy()


def blend_constrained_path(problem: MotionPlanningProblem, constraint: AxisConstraint, points: Array) -> JointPath:
    """Return the path with blended corners, as large as the constraint permits."""
    chain = problem.scene.chain
    for max_blend in _BLEND_SIZES:
        segments, lengths = blend_corners(
            problem.scene.collision_arrays, problem.workspace, np.ascontiguousarray(points), max_blend
        )
        path = JointPath.from_segments(chain.joints, segments, lengths)
        if float(constraint.tilt_angle(chain, path.sample(CHECK_SPACING / 2.0)).max()) <= constraint.tolerance:
            break
    return path
