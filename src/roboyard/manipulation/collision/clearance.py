"""Kernels: how much of a way a robot can go before it might touch something.

A way is looked at where it is needed: a state whose distance to everything is known proves the way on both sides of
it free, as far as no point can have moved more than that (F. Schwarzer, M. Saha, J.-C. Latombe, "Adaptive dynamic
collision checking for single and multiple articulated robots in complex environments", IEEE Trans. Robotics 21(3),
2005).  So a way that is found free is free everywhere, not only at samples.

The states that are looked at keep the full margin, those between them half of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain_kernels import compute_frames, multiply_transforms
from roboyard.manipulation.collision.bodies import Bodies, Work, make_work, sample_bodies
from roboyard.manipulation.collision.gjk import separation

_ROUGH = 0.01
"""Balls' distances above this are good enough to go on by; nearer ones are taken from the solids themselves [m]."""


def _bodies_work() -> tuple[Bodies, Work]:
    bodies = sample_bodies()
    return bodies, make_work(bodies)


def _look_examples() -> Iterable[tuple[Any, ...]]:
    bodies, work = _bodies_work()
    yield bodies, np.zeros(1), 1.0, work


@kernel(inline="always")
def _box_square(low: Array, high: Array, node: int, x: float, y: float, z: float) -> float:
    """Squared distance of a point from an axis-aligned box."""
    dx = max(low[node, 0] - x, x - high[node, 0], 0.0)
    dy = max(low[node, 1] - y, y - high[node, 1], 0.0)
    dz = max(low[node, 2] - z, z - high[node, 2], 0.0)
    return float(dx * dx + dy * dy + dz * dz)


@kernel
def _balls_off(bodies: Bodies, i: int, T: Array, solids: Any, j: int, P: Array) -> float:
    """The least distance between the balls of link solid ``i`` and the box round solid ``j`` that stands at ``P``."""
    links = bodies.links
    best = math.inf
    start = links.ball_first[i]
    for k in range(start, start + links.ball_count[i]):
        a, b, c = links.balls[k, 0], links.balls[k, 1], links.balls[k, 2]
        x = T[0, 0] * a + T[0, 1] * b + T[0, 2] * c + T[0, 3] - P[0, 3]
        y = T[1, 0] * a + T[1, 1] * b + T[1, 2] * c + T[1, 3] - P[1, 3]
        z = T[2, 0] * a + T[2, 1] * b + T[2, 2] * c + T[2, 3] - P[2, 3]
        u = max(abs(P[0, 0] * x + P[1, 0] * y + P[2, 0] * z) - solids.size[j, 0], 0.0)
        v = max(abs(P[0, 1] * x + P[1, 1] * y + P[2, 1] * z) - solids.size[j, 1], 0.0)
        w = max(abs(P[0, 2] * x + P[1, 2] * y + P[2, 2] * z) - solids.size[j, 2], 0.0)
        best = min(best, math.sqrt(u * u + v * v + w * w) - links.balls[k, 3])
    return float(best - solids.radius[j])


@kernel(examples=_look_examples)
def look(bodies: Bodies, q: Array, limit: float, work: Work) -> float:
    """How far the way through a state is known to be free on both sides.

    Args:
        bodies: Who may touch whom.
        q: (dof,) the state.
        limit: More than this is not asked for, as a share of the way.
        work: ``pace`` and ``pair_pace`` say how fast solids may move, for each unit of the way [m].

    Returns:
        At most ``limit``; negative where something touches, which ``work.who`` then names.
    """
    work.looks[0] += 1
    rows, links, frame, margin = bodies.rows, bodies.links, bodies.frame, bodies.margin
    compute_frames(rows, q, work.frames)
    count = frame.shape[0]
    for i in range(count):
        multiply_transforms(work.frames[frame[i]], bodies.local[i], work.poses[i])
    half = 0.5 * margin
    free = limit
    tree, nodes = bodies.tree, bodies.tree.leaf.shape[0]
    for i in range(count):
        if frame[i] == 0:
            continue
        T, pace, outer = work.poses[i], work.pace[i], links.outer[i]
        x, y, z = T[0, 3], T[1, 3], T[2, 3]
        node = 0
        while node < nodes:
            enough = max(margin, half + free * pace)
            far = outer + enough
            if _box_square(tree.low, tree.high, node, x, y, z) >= far * far:
                node = tree.skip[node]
                continue
            j = tree.leaf[node]
            node += 1
            if j < 0 or bodies.allowed[i, j]:
                continue
            off = _balls_off(bodies, i, T, bodies.world, j, bodies.placed[j])
            if off < enough and off < _ROUGH:
                off = separation(links, i, T, bodies.world, j, bodies.placed[j], enough, margin, work.simplex)
            if off < enough:
                if off < margin:
                    work.who[0], work.who[1] = i, j
                    return -1.0
                free = min(free, (off - half) / pace) if pace > 0.0 else free
    for p in range(bodies.pairs.shape[0]):
        i, j = bodies.pairs[p, 0], bodies.pairs[p, 1]
        A, B = work.poses[i], work.poses[j]
        pace = work.pair_pace[p]
        enough = max(margin, half + free * pace)
        dx, dy, dz = A[0, 3] - B[0, 3], A[1, 3] - B[1, 3], A[2, 3] - B[2, 3]
        far = links.outer[i] + links.outer[j] + enough
        if dx * dx + dy * dy + dz * dz >= far * far:
            continue
        off = _balls_off(bodies, i, A, links, j, B)
        if off < enough and off < _ROUGH:
            off = separation(links, i, A, links, j, B, enough, margin, work.simplex)
        if off < enough:
            if off < margin:
                work.who[0], work.who[1] = i, -1 - j
                return -1.0
            free = min(free, (off - half) / pace) if pace > 0.0 else free
    return free


@kernel(examples=lambda: [(*_bodies_work(), np.zeros(1))])
def set_pace(bodies: Bodies, work: Work, rates: Array) -> None:
    """Say how fast joints move at most: (dof,) for each unit of the way, not negative."""
    rows, frame, reach = bodies.rows, bodies.frame, bodies.reach
    for i in range(frame.shape[0]):
        pace = 0.0
        for k in range(frame[i]):
            pace += abs(rows.multiplier[k]) * rates[rows.driving_joint[k]] * reach[i, k]
        work.pace[i] = pace
    for p in range(bodies.pairs.shape[0]):
        i, j = bodies.pairs[p, 0], bodies.pairs[p, 1]
        pace = 0.0
        for k in range(frame[i], frame[j]):
            pace += abs(rows.multiplier[k]) * rates[rows.driving_joint[k]] * reach[j, k]
        work.pair_pace[p] = pace


@kernel(examples=lambda: [(*_bodies_work(), np.zeros((3, 1)), 1.0)])
def free_piece(bodies: Bodies, work: Work, coefficients: Array, length: float) -> bool:
    """Whether a piece of a way touches nothing.

    Args:
        bodies: Who may touch whom.
        work: Memory; ``who`` names what touched.
        coefficients: (3, dof) of the powers of the length along it.
        length: Of the piece.
    """
    dof = coefficients.shape[1]
    rates = np.empty(dof)
    for k in range(dof):
        slope = coefficients[1, k]
        rates[k] = length * max(abs(slope), abs(slope + 2.0 * length * coefficients[2, k]))
    set_pace(bodies, work, rates)
    left = work.intervals
    left[0, 0], left[0, 1] = 0.0, 1.0
    count, done = 1, 0
    # first in, first out, in a ring: the middle of the largest interval comes first, where a touch is likeliest
    size = left.shape[0]
    while count:
        low, high = left[done, 0], left[done, 1]
        done = (done + 1) % size
        count -= 1
        half = 0.5 * (high - low)
        middle = low + half
        s = middle * length
        for k in range(dof):
            work.q[k] = coefficients[0, k] + s * (coefficients[1, k] + s * coefficients[2, k])
        known = look(bodies, work.q, half, work)
        if known < 0.0:
            return False
        if known >= half:
            continue
        if count + 2 > size:  # so near to something, over so long a way
            return False
        end = (done + count) % size
        left[end, 0], left[end, 1] = low, middle - known
        end = (end + 1) % size
        left[end, 0], left[end, 1] = middle + known, high
        count += 2
    return True


@kernel(examples=lambda: [(*_bodies_work(), np.zeros(1), np.zeros(1))])
def free_line(bodies: Bodies, work: Work, a: Array, b: Array) -> bool:
    """Whether the straight way between two states (dof,) touches nothing."""
    coefficients = np.zeros((3, a.shape[0]))
    for k in range(a.shape[0]):
        coefficients[0, k], coefficients[1, k] = a[k], b[k] - a[k]
    return free_piece(bodies, work, coefficients, 1.0)


@kernel(examples=lambda: [(*_bodies_work(), np.zeros((2, 1)))])
def touching(bodies: Bodies, work: Work, states: Array) -> NDArray[np.int64]:
    """What touches in each of many states (k, dof): (k, 2) as ``work.who``, -1 and 0 where nothing does."""
    found = np.empty((states.shape[0], 2), np.int64)
    work.pace[:] = 0.0
    work.pair_pace[:] = 0.0
    for s in range(states.shape[0]):
        if look(bodies, states[s], 0.0, work) < 0.0:
            found[s] = work.who
        else:
            found[s, 0], found[s, 1] = -1, 0
    return found


@kernel(examples=lambda: [(*_bodies_work(), np.zeros((2, 1)), 1.0)])
def distances(bodies: Bodies, work: Work, states: Array, limit: float) -> Array:
    """How far everything is apart in each of many states (k, dof): at most ``limit``, 0 where something touches [m].

    Margins do not count.
    """
    found = np.empty(states.shape[0])
    frame, links, tree = bodies.frame, bodies.links, bodies.tree
    for s in range(states.shape[0]):
        compute_frames(bodies.rows, states[s], work.frames)
        best = limit
        for i in range(frame.shape[0]):
            multiply_transforms(work.frames[frame[i]], bodies.local[i], work.poses[i])
        for i in range(frame.shape[0]):
            T = work.poses[i]
            node = 0
            while frame[i] > 0 and node < tree.leaf.shape[0]:
                far = links.outer[i] + best
                if _box_square(tree.low, tree.high, node, T[0, 3], T[1, 3], T[2, 3]) >= far * far:
                    node = tree.skip[node]
                    continue
                j = tree.leaf[node]
                node += 1
                if j >= 0 and not bodies.allowed[i, j]:
                    off = separation(links, i, T, bodies.world, j, bodies.placed[j], best, 0.0, work.simplex)
                    best = min(best, max(off, 0.0))
        for p in range(bodies.pairs.shape[0]):
            i, j = bodies.pairs[p, 0], bodies.pairs[p, 1]
            off = separation(links, i, work.poses[i], links, j, work.poses[j], best, 0.0, work.simplex)
            best = min(best, max(off, 0.0))
        found[s] = best
    return found
