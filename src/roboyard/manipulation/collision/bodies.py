"""Everything that may touch, as the arrays that the collision kernels take: links, pairs of links, and the world."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain_kernels import ChainArrays, example_chain_arrays
from roboyard.manipulation.collision.boxes_tree import BoxTree, box_tree
from roboyard.manipulation.collision.gjk import sample_solids
from roboyard.manipulation.collision.solids import Numbers, Solids


class Bodies(NamedTuple):
    """A robot of n solids on a chain of m moving joints, p pairs of its solids, and a world of w solids.

    Attributes:
        rows: The chain.
        links: The robot's solids.
        frame: (n,) the chain's frame that each rides on, in rising order.
        local: (n, 4, 4) its pose there.
        reach: (n, m) how far a solid's points move at most for each unit of a moving joint [m/rad or 1].
        pairs: (p, 2) solids of the robot that must not touch, the one nearer to the base first.
        world: The world's solids.
        placed: (w, 4, 4) their poses in the chain's base.
        tree: Their boxes.
        allowed: (n, w) where touching does not count.
        margin: What is nearer than this touches [m].
    """

    rows: ChainArrays
    links: Solids
    frame: Numbers
    local: Array
    reach: Array
    pairs: Numbers
    world: Solids
    placed: Array
    tree: BoxTree
    allowed: NDArray[np.bool_]
    margin: float


class Work(NamedTuple):
    """Memory that the kernels write to, so that none is asked for in between.

    Attributes:
        frames: (m + 1, 4, 4) of the chain.
        poses: (n, 4, 4) of the solids.
        pace: (n,) how fast each solid may move along the way that is looked at.
        pair_pace: (p,) how fast the solids of each pair may near each other.
        simplex: (5, 3).
        intervals: (i, 2) of a way that are still to be looked at.
        who: (2,) what touched last: a solid of the robot, and one of the world, or -1 - the number of another one.
        looks: (1,) how many states were looked at.
        q: (dof,) a state.
    """

    frames: Array
    poses: Array
    pace: Array
    pair_pace: Array
    simplex: Array
    intervals: Array
    who: Numbers
    looks: Numbers
    q: Array


def make_work(bodies: Bodies) -> Work:
    """Memory for these bodies."""
    moving, links = len(bodies.rows.rotation_per_unit), len(bodies.frame)
    return Work(
        np.zeros((moving + 1, 4, 4)),
        np.zeros((links, 4, 4)),
        np.zeros(links),
        np.zeros(len(bodies.pairs)),
        np.zeros((5, 3)),
        np.zeros((2048, 2)),
        np.zeros(2, np.int64),
        np.zeros(1, np.int64),
        np.zeros(len(bodies.rows.lower)),
    )


def sample_bodies() -> Bodies:
    """One of each, for kernels' examples."""
    one, eye = sample_solids(), np.eye(4)[None].copy()
    none = np.zeros(1, np.int64)
    low, high = np.zeros((1, 3)), np.ones((1, 3))
    return Bodies(
        example_chain_arrays(), one, none, eye, np.zeros((1, 1)), np.zeros((1, 2), np.int64), one, eye.copy(),
        box_tree(low, high), np.zeros((1, 1), np.bool_), 0.001,
    )  # fmt: skip
