"""Kernels of RRT-Connect: two trees of states that grow towards each other.

J. Kuffner, S. LaValle, "RRT-Connect: an efficient approach to single-query path planning", ICRA 2000. One tree starts
at the start state, the other has a root at each goal.

A node whose extension was in collision accepts only samples near it: A. Yershova, L. Jaillet, T. Siméon, S. LaValle,
"Dynamic-domain RRTs", ICRA 2005.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.collision_model import (
    CollisionArrays,
    CollisionWorkspace,
    example_collision_arrays,
    make_workspace,
)
from roboyard.manipulation.collision.motion_check import is_line_free

SEARCHING: Final = 0
CONNECTED: Final = 1
TREE_FULL: Final = 2
_DYNAMIC_DOMAIN_RADIUS: Final = 2.0
"""Maximum distance of a sample from a node whose extension was in collision, in the weighted joint space."""
_MAX_RESAMPLES: Final = 30
"""Maximum number of samples until one is in the dynamic domain; the last one is taken anyway, so that each search
ends.
"""


class RrtTrees(NamedTuple):
    """The tree of the start (0) and that of the goals (1).

    Attributes:
        states: (2, size, dof) states of the nodes.
        parent: (2, size) parent of each node; -1 for roots.
        blocked: (2, size) whether an extension of the node was in collision.
        n_nodes: (2,) numbers of nodes.
        next_tree: (1,) the tree that grows next.
        connection: (2,) nodes of both trees with the same state.
    """

    states: Array
    parent: NDArray[np.int64]
    blocked: NDArray[np.bool_]
    n_nodes: NDArray[np.int64]
    next_tree: NDArray[np.int64]
    connection: NDArray[np.int64]


class RrtParameters(NamedTuple):
    """Parameters of the search.

    Attributes:
        lower: (dof,) minimum positions of sampled states [rad or m].
        upper: (dof,) maximum positions of sampled states.
        weights: (dof,) weights of the joints in distances.
        step: Maximum length of an extension, in the weighted joint space.
        spacing: Length between the states at which a constraint is checked; unused without a constraint.
    """

    lower: Array
    upper: Array
    weights: Array
    step: float
    spacing: float = 0.0


def make_trees(start: Array, goals: Array, max_nodes: int) -> RrtTrees:
    """Return trees of roots only: a start (dof,) and goals (k, dof)."""
    capacity = max_nodes + len(goals)
    trees = RrtTrees(
        np.empty((2, capacity, len(start))),
        np.empty((2, capacity), np.int64),
        np.zeros((2, capacity), np.bool_),
        np.array([1, len(goals)]),
        np.zeros(1, np.int64),
        np.zeros(2, np.int64),
    )
    trees.states[0, 0], trees.states[1, : len(goals)] = start, goals
    trees.parent[0, 0] = trees.parent[1, : len(goals)] = -1
    return trees


def _examples() -> Iterable[tuple[Any, ...]]:
    collision = example_collision_arrays()
    one = np.ones(1)
    trees = make_trees(one, one[None], 2)
    parameters = RrtParameters(one, one, one, 1.0, 0.0)
    yield collision, make_workspace(collision), trees, np.random.default_rng(0), parameters, 1


@kernel
def nearest_node(states: Array, count: int, q: Array, weights: Array) -> int:
    """Return which of the first ``count`` states (size, dof) is nearest to a state, with weighted joints."""
    min_square, node = math.inf, 0
    for i in range(count):
        square = 0.0
        for k in range(q.shape[0]):
            difference = weights[k] * (states[i, k] - q[k])
            square += difference * difference
        if square < min_square:
            min_square, node = square, i
    return node


@kernel
def _sample_target(
    trees: RrtTrees, tree: int, rng: np.random.Generator, parameters: RrtParameters, target: Array
) -> int:
    """Fill ``target`` with a random state, and return the nearest node of a tree."""
    lower, upper, weights = parameters.lower, parameters.upper, parameters.weights
    node = 0
    for _ in range(_MAX_RESAMPLES):
        for k in range(target.shape[0]):
            target[k] = lower[k] + rng.random() * (upper[k] - lower[k])
        node = nearest_node(trees.states[tree], trees.n_nodes[tree], target, weights)
        if not trees.blocked[tree, node]:
            return node
        square = 0.0
        for k in range(target.shape[0]):
            square += (weights[k] * (target[k] - trees.states[tree, node, k])) ** 2
        if square <= _DYNAMIC_DOMAIN_RADIUS * _DYNAMIC_DOMAIN_RADIUS:
            return node
    return node


@kernel
def _step_towards(origin: Array, target: Array, weights: Array, step: float, out: Array) -> bool:
    """Move from a state towards another one, at most ``step``; return whether it is reached."""
    square = 0.0
    for k in range(origin.shape[0]):
        square += (weights[k] * (target[k] - origin[k])) ** 2
    length = math.sqrt(square)
    if length <= step:
        out[:] = target
        return True
    fraction = step / length
    for k in range(origin.shape[0]):
        out[k] = origin[k] + fraction * (target[k] - origin[k])
    return False


@kernel
def _add_node(trees: RrtTrees, tree: int, q: Array, parent: int) -> int:
    node = int(trees.n_nodes[tree])
    trees.states[tree, node] = q
    trees.parent[tree, node] = parent
    trees.n_nodes[tree] = node + 1
    return node


@kernel
def _connect_tree(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    trees: RrtTrees,
    tree: int,
    target: Array,
    weights: Array,
    step: float,
) -> int:
    """Extend a tree towards a state until it is reached, which returns the node, or until a collision: -1."""
    node = nearest_node(trees.states[tree], trees.n_nodes[tree], target, weights)
    new = np.empty_like(target)
    while trees.n_nodes[tree] < trees.states.shape[1]:
        arrived = _step_towards(trees.states[tree, node], target, weights, step, new)
        if not is_line_free(collision, workspace, trees.states[tree, node], new):
            return -1
        node = _add_node(trees, tree, new, node)
        if arrived:
            return node
    return -1


@kernel(examples=_examples)
def grow_trees(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    trees: RrtTrees,
    rng: np.random.Generator,
    parameters: RrtParameters,
    n_samples: int,
) -> int:
    """Grow the trees until they are connected.

    Args:
        collision: Collision model.
        workspace: Workspace.
        trees: The trees; another call continues.
        rng: Generator of the sampled states.
        parameters: Parameters of the search.
        n_samples: Number of states to sample.

    Returns:
        ``CONNECTED``; ``SEARCHING`` when all states are sampled; ``TREE_FULL`` when a tree is full.
    """
    weights, step = parameters.weights, parameters.step
    dof = weights.shape[0]
    target, new = np.empty(dof), np.empty(dof)
    for _ in range(n_samples):
        tree = trees.next_tree[0]
        other_tree = 1 - tree
        if trees.n_nodes[tree] >= trees.states.shape[1] or trees.n_nodes[other_tree] >= trees.states.shape[1]:
            return TREE_FULL
        node = _sample_target(trees, tree, rng, parameters, target)
        _step_towards(trees.states[tree, node], target, weights, step, new)
        if is_line_free(collision, workspace, trees.states[tree, node], new):
            node = _add_node(trees, tree, new, node)
            other_node = _connect_tree(collision, workspace, trees, other_tree, new, weights, step)
            if other_node >= 0:
                trees.connection[tree], trees.connection[other_tree] = node, other_node
                return CONNECTED
        else:
            trees.blocked[tree, node] = True
        trees.next_tree[0] = other_tree
    return SEARCHING


@kernel(examples=lambda: [(*example[:3], np.ones(1)) for example in _examples()])
def connect_straight(collision: CollisionArrays, workspace: CollisionWorkspace, trees: RrtTrees, weights: Array) -> int:
    """Connect the start with a goal by a straight path, the nearest goal first; the result is that of `grow_trees`."""
    dof = weights.shape[0]
    is_checked = np.zeros(trees.n_nodes[1], np.bool_)
    for _ in range(trees.n_nodes[1]):
        min_square, goal = math.inf, 0
        for i in range(is_checked.shape[0]):
            square = 0.0
            for k in range(dof):
                square += (weights[k] * (trees.states[1, i, k] - trees.states[0, 0, k])) ** 2
            if not is_checked[i] and square < min_square:
                min_square, goal = square, i
        is_checked[goal] = True
        if is_line_free(collision, workspace, trees.states[0, 0], trees.states[1, goal]):
            trees.connection[0], trees.connection[1] = 0, goal
            return CONNECTED
    return SEARCHING


def extract_path(trees: RrtTrees) -> Array:
    """Return (k, dof) states from the start to a goal, once the trees are connected."""
    branches = []
    for tree in (0, 1):
        node, branch = int(trees.connection[tree]), []
        while node >= 0:
            branch.append(trees.states[tree, node])
            node = int(trees.parent[tree, node])
        branches.append(branch)
    path = [*branches[0][::-1], *branches[1]]
    distinct_states = [path[0]]
    for state in path[1:]:
        if not np.array_equal(state, distinct_states[-1]):
            distinct_states.append(state)
    return np.array(distinct_states)
