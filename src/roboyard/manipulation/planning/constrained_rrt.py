"""RRT-Connect with an axis constraint: kernels that project sampled states onto the constraint, and their use.

D. Berenson, S. Srinivasa, D. Ferguson, J. Kuffner, "Manipulation planning on constraint manifolds", ICRA 2009 (CBiRRT).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.collision_model import (
    CollisionArrays,
    CollisionWorkspace,
    example_collision_arrays,
    make_workspace,
)
from roboyard.manipulation.errors import ConstraintViolatedError, MotionBudgetExceededError, PlanningCancelledError
from roboyard.manipulation.planning.axis_constraint import (
    CHECK_SPACING,
    AxisConstraint,
    AxisConstraintArrays,
    example_constraint,
    is_line_feasible,
    project_onto_constraint,
)
from roboyard.manipulation.planning.path_shortening import blend_corners
from roboyard.manipulation.planning.planner import STATES_PER_POLL, MotionPlanningProblem, PlannedPath, StopCallback
from roboyard.manipulation.planning.rrt_connect import (
    CONNECTED,
    SEARCHING,
    TREE_FULL,
    RrtParameters,
    RrtTrees,
    extract_path,
    make_trees,
    nearest_node,
)
from roboyard.manipulation.time_parameterization import JointPath

PROJECTION_STEP = 0.15
"""Length between states that are projected onto the constraint, in joint space [rad or m]."""
_BLEND_SIZES = (0.2, 0.05, 0.01, 0.0)
"""Maximum distances of a blend's start from its corner, of which the first one that fulfills the constraint is used."""


def _examples() -> Iterable[tuple[Any, ...]]:
    collision, one = example_collision_arrays(), np.ones(1)
    trees = make_trees(one, one[None], 2)
    parameters = RrtParameters(one, one, one, 0.1, 0.1)
    yield collision, make_workspace(collision), example_constraint(), trees, np.random.default_rng(0), parameters, 1


@kernel
def _extend_tree(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    constraint: AxisConstraintArrays,
    trees: RrtTrees,
    tree: int,
    target: Array,
    parameters: RrtParameters,
) -> int:
    """Extend a tree along the constraint towards a state; return the last node, which may reach that state."""
    dof, step = target.shape[0], parameters.step
    node = nearest_node(trees.states[tree], trees.n_nodes[tree], target, parameters.weights)
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
        if fraction < 1.0 and not project_onto_constraint(collision, constraint, new, workspace):
            break
        if not is_line_feasible(collision, workspace, constraint, trees.states[tree, node], new, parameters.spacing):
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
    parameters: RrtParameters,
    n_samples: int,
) -> int:
    """Grow the trees as `grow_trees` does, with the constraint: sampled states are projected onto it.

    Args:
        collision: Collision model.
        workspace: Workspace.
        constraint: The constraint.
        trees: The trees; another call continues.
        rng: Generator of the sampled states.
        parameters: Parameters of the search; ``step`` is the length between states that are projected onto the
            constraint, ``spacing`` the length between states at which the constraint is checked.
        n_samples: Number of states to sample.

    Returns:
        ``CONNECTED``; ``SEARCHING`` when all states are sampled; ``TREE_FULL`` when a tree is full.
    """
    lower, upper = parameters.lower, parameters.upper
    dof = lower.shape[0]
    target = np.empty(dof)
    for _ in range(n_samples):
        tree = trees.next_tree[0]
        other_tree = 1 - tree
        if trees.n_nodes[tree] >= trees.states.shape[1] or trees.n_nodes[other_tree] >= trees.states.shape[1]:
            return TREE_FULL
        for k in range(dof):
            target[k] = lower[k] + rng.random() * (upper[k] - lower[k])
        if project_onto_constraint(collision, constraint, target, workspace):
            node = _extend_tree(collision, workspace, constraint, trees, tree, target, parameters)
            other_node = _extend_tree(
                collision, workspace, constraint, trees, other_tree, trees.states[tree, node], parameters
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


def add_constraint(problem: MotionPlanningProblem, constraint: AxisConstraint) -> MotionPlanningProblem:
    """Return the problem with an axis constraint and the goals that fulfill it.

    Raises:
        ConstraintViolatedError: The start, or every goal, violates the constraint.
    """
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
    return replace(problem, goals=problem.goals[is_feasible], constraint=constraint)


def plan_constrained_path(
    problem: MotionPlanningProblem,
    constraint: AxisConstraint,
    rng: np.random.Generator,
    max_states: int,
    should_stop: StopCallback,
) -> PlannedPath:
    """Find a collision-free path of short lines that fulfills an axis constraint.

    Args:
        problem: Start and goals, which fulfill the constraint.
        constraint: The constraint.
        rng: Generator of the sampled states.
        max_states: Largest number of sampled states.
        should_stop: Polled every `STATES_PER_POLL` states; True ends the search.

    Raises:
        MotionBudgetExceededError: No path was found with this number of states.
        PlanningCancelledError: ``should_stop`` returned True.
    """
    collision, workspace, constraint_arrays = problem.scene.collision_arrays, problem.workspace, constraint.to_arrays()
    for goal in problem.goals:
        if is_line_feasible(collision, workspace, constraint_arrays, problem.start, goal, CHECK_SPACING):
            return PlannedPath(np.stack([problem.start, goal]), 2)
    parameters = RrtParameters(*problem.sampling_bounds, problem.weights, PROJECTION_STEP, CHECK_SPACING)
    trees = make_trees(problem.start, problem.goals, 20 * max_states + 16)
    status, n_remaining = SEARCHING, max_states
    while status == SEARCHING and n_remaining > 0:
        if should_stop():
            raise PlanningCancelledError("the search was cancelled", valid="another start")
        n_samples = min(n_remaining, STATES_PER_POLL)
        status = grow_trees_constrained(collision, workspace, constraint_arrays, trees, rng, parameters, n_samples)
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
    """Return a path (k, n), shortened by shortcuts that fulfill the constraint."""
    path = points.copy()
    collision, workspace = problem.scene.collision_arrays, problem.workspace
    count = shortcut_path_constrained(
        collision, workspace, constraint.to_arrays(), path, len(path), rng, 5 * max_attempts, CHECK_SPACING
    )
    return path[:count].copy()


def blend_constrained_path(problem: MotionPlanningProblem, constraint: AxisConstraint, points: Array) -> JointPath:
    """Return the path with its corners blended as far as the constraint permits."""
    chain = problem.scene.chain
    for max_blend in _BLEND_SIZES:
        segments, lengths = blend_corners(
            problem.scene.collision_arrays, problem.workspace, np.ascontiguousarray(points), max_blend
        )
        path = JointPath.from_segments(chain.joints, segments, lengths)
        if float(constraint.tilt_angle(chain, path.sample(CHECK_SPACING / 2.0)).max()) <= constraint.tolerance:
            break
    return path
