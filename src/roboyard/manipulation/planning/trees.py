"""Kernels: two trees of states that grow towards each other.

J. Kuffner, S. LaValle, "RRT-Connect: an efficient approach to single-query path planning", ICRA 2000.  One tree
begins at the start, the other has a root at each goal.

A node that has run into something draws no more targets from afar, where what it ran into would be in the way again:
A. Yershova, L. Jaillet, T. Siméon, S. LaValle, "Dynamic-domain RRTs", ICRA 2005.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.bodies import Bodies, Work, make_work, sample_bodies
from roboyard.manipulation.collision.clearance import free_line

SEARCHING: Final = 0
JOINED: Final = 1
FULL: Final = 2
_DOMAIN: Final = 2.0
"""How far targets may be from a node that has run into something, in the weighted space of the joints."""
_REDRAWN: Final = 30
"""How often a target is drawn anew for being too far; then it counts all the same, so that every search ends."""


class Trees(NamedTuple):
    """A tree from the start (0) and one from the goals (1).

    Attributes:
        q: (2, size, dof) states.
        parent: (2, size) what each grew from; -1 of roots.
        blocked: (2, size) whether something was in a node's way.
        grown: (2,) how many there are.
        turn: (1,) which tree grows next.
        joined: (2,) states of the trees that are the same.
    """

    q: Array
    parent: NDArray[np.int64]
    blocked: NDArray[np.bool_]
    grown: NDArray[np.int64]
    turn: NDArray[np.int64]
    joined: NDArray[np.int64]


def make_trees(start: Array, goals: Array, size: int) -> Trees:
    """Trees with roots alone: a start (dof,) and goals (k, dof)."""
    room = size + len(goals)
    trees = Trees(
        np.empty((2, room, len(start))),
        np.empty((2, room), np.int64),
        np.zeros((2, room), np.bool_),
        np.array([1, len(goals)]),
        np.zeros(1, np.int64),
        np.zeros(2, np.int64),
    )
    trees.q[0, 0], trees.q[1, : len(goals)] = start, goals
    trees.parent[0, 0] = trees.parent[1, : len(goals)] = -1
    return trees


def _examples() -> Iterable[tuple[Any, ...]]:
    bodies = sample_bodies()
    one = np.ones(1)
    trees = make_trees(one, one[None], 2)
    yield bodies, make_work(bodies), trees, np.random.default_rng(0), one, one, one, 1.0, 1


@kernel
def nearest(states: Array, count: int, q: Array, weights: Array) -> int:
    """Which of the first ``count`` states (size, dof) is nearest to one, the joints weighted."""
    best, at = math.inf, 0
    for i in range(count):
        square = 0.0
        for k in range(q.shape[0]):
            difference = weights[k] * (states[i, k] - q[k])
            square += difference * difference
        if square < best:
            best, at = square, i
    return at


@kernel
def _draw(
    trees: Trees, tree: int, rng: np.random.Generator, lower: Array, upper: Array, weights: Array, target: Array
) -> int:
    """Fill ``target`` with a random state, and give the node of a tree that grows towards it."""
    at = 0
    for _ in range(_REDRAWN):
        for k in range(target.shape[0]):
            target[k] = lower[k] + rng.random() * (upper[k] - lower[k])
        at = nearest(trees.q[tree], trees.grown[tree], target, weights)
        if not trees.blocked[tree, at]:
            return at
        square = 0.0
        for k in range(target.shape[0]):
            square += (weights[k] * (target[k] - trees.q[tree, at, k])) ** 2
        if square <= _DOMAIN * _DOMAIN:
            return at
    return at


@kernel
def _step(origin: Array, target: Array, weights: Array, step: float, out: Array) -> bool:
    """Go from one state towards another, ``step`` at most; whether that arrives."""
    square = 0.0
    for k in range(origin.shape[0]):
        square += (weights[k] * (target[k] - origin[k])) ** 2
    length = math.sqrt(square)
    if length <= step:
        out[:] = target
        return True
    share = step / length
    for k in range(origin.shape[0]):
        out[k] = origin[k] + share * (target[k] - origin[k])
    return False


@kernel
def _add(trees: Trees, tree: int, q: Array, parent: int) -> int:
    number = int(trees.grown[tree])
    trees.q[tree, number] = q
    trees.parent[tree, number] = parent
    trees.grown[tree] = number + 1
    return number


@kernel
def _connect(bodies: Bodies, work: Work, trees: Trees, tree: int, target: Array, weights: Array, step: float) -> int:
    """Grow a tree towards a state until it is there, which gives the node's number, or something is in the way: -1."""
    at = nearest(trees.q[tree], trees.grown[tree], target, weights)
    new = np.empty_like(target)
    while trees.grown[tree] < trees.q.shape[1]:
        arrived = _step(trees.q[tree, at], target, weights, step, new)
        if not free_line(bodies, work, trees.q[tree, at], new):
            return -1
        at = _add(trees, tree, new, at)
        if arrived:
            return at
    return -1


@kernel(examples=_examples)
def grow(
    bodies: Bodies,
    work: Work,
    trees: Trees,
    rng: np.random.Generator,
    lower: Array,
    upper: Array,
    weights: Array,
    step: float,
    samples: int,
) -> int:
    """Let the trees grow until they meet.

    Args:
        bodies: Who may touch whom.
        work: Memory.
        trees: That grow; another call goes on where this one ends.
        rng: Draws states.
        lower: (dof,) least positions that are drawn.
        upper: (dof,) greatest ones.
        weights: (dof,) of the joints in distances.
        step: A tree grows by so much at once.
        samples: How many states to draw.

    Returns:
        ``JOINED``; ``SEARCHING`` when all are drawn; ``FULL`` when a tree has no room left.
    """
    dof = lower.shape[0]
    target, new = np.empty(dof), np.empty(dof)
    for _ in range(samples):
        tree = trees.turn[0]
        other = 1 - tree
        if trees.grown[tree] >= trees.q.shape[1] or trees.grown[other] >= trees.q.shape[1]:
            return FULL
        at = _draw(trees, tree, rng, lower, upper, weights, target)
        _step(trees.q[tree, at], target, weights, step, new)
        if free_line(bodies, work, trees.q[tree, at], new):
            at = _add(trees, tree, new, at)
            met = _connect(bodies, work, trees, other, new, weights, step)
            if met >= 0:
                trees.joined[tree], trees.joined[other] = at, met
                return JOINED
        else:
            trees.blocked[tree, at] = True
        trees.turn[0] = other
    return SEARCHING


@kernel(examples=lambda: [(*example[:3], example[6]) for example in _examples()])
def try_straight(bodies: Bodies, work: Work, trees: Trees, weights: Array) -> int:
    """Join the start with a goal by a straight way, the nearest goal first where several can be; as `grow`."""
    dof = weights.shape[0]
    done = np.zeros(trees.grown[1], np.bool_)
    for _ in range(trees.grown[1]):
        best, at = math.inf, 0
        for i in range(done.shape[0]):
            square = 0.0
            for k in range(dof):
                square += (weights[k] * (trees.q[1, i, k] - trees.q[0, 0, k])) ** 2
            if not done[i] and square < best:
                best, at = square, i
        done[at] = True
        if free_line(bodies, work, trees.q[0, 0], trees.q[1, at]):
            trees.joined[0], trees.joined[1] = 0, at
            return JOINED
    return SEARCHING


def joined_path(trees: Trees) -> Array:
    """(k, dof) states from the start to a goal, once the trees have met."""
    ways = []
    for tree in (0, 1):
        at, way = int(trees.joined[tree]), []
        while at >= 0:
            way.append(trees.q[tree, at])
            at = int(trees.parent[tree, at])
        ways.append(way)
    path = [*ways[0][::-1], *ways[1]]
    kept = [path[0]]
    for state in path[1:]:
        if not np.array_equal(state, kept[-1]):
            kept.append(state)
    return np.array(kept)
