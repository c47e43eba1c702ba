"""Kernels: a way of straight lines becomes shorter, and its corners round."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.bodies import Bodies, Work, make_work, sample_bodies
from roboyard.manipulation.collision.clearance import free_line, free_piece

_HALVINGS = 8
"""A corner's arc becomes smaller so often before the way stops there instead."""


def _examples() -> Iterable[tuple[Any, ...]]:
    bodies = sample_bodies()
    yield bodies, make_work(bodies), np.zeros((9, 1)), 3, np.ones(1), np.random.default_rng(0), 4, 2


@kernel
def _length(a: Array, b: Array, weights: Array) -> float:
    square = 0.0
    for k in range(a.shape[0]):
        square += (weights[k] * (a[k] - b[k])) ** 2
    return math.sqrt(square)


@kernel
def _skip_corners(bodies: Bodies, work: Work, path: Array, count: int) -> int:
    """From each state straight to the last one that can be seen from it."""
    at, kept = 0, 1
    while at < count - 1:
        onward = at + 1
        for candidate in range(count - 1, at + 1, -1):
            if free_line(bodies, work, path[at], path[candidate]):
                onward = candidate
                break
        path[kept] = path[onward]  # kept <= onward: nothing that is still to be read goes
        at = onward
        kept += 1
    return kept


@kernel(examples=_examples)
def shorten(
    bodies: Bodies,
    work: Work,
    path: Array,
    count: int,
    weights: Array,
    rng: np.random.Generator,
    tries: int,
    patience: int,
) -> int:
    """Cut corners where nothing is in the way: between random points of the way, a straight line.

    R. Geraerts, M. Overmars, "Creating high-quality paths for motion planning", IJRR 26(8), 2007.

    Args:
        bodies: Who may touch whom.
        work: Memory.
        path: (room, dof) states of which the first ``count`` are the way; two more for each try must fit.
        count: How many states it has.
        weights: (dof,) of the joints in distances.
        rng: Draws points.
        tries: How many cuts are tried.
        patience: So many that do not help end it.

    Returns:
        How many states are left, in the front of ``path``.
    """
    dof = path.shape[1]
    count = _skip_corners(bodies, work, path, count)
    lengths = np.empty(path.shape[0])
    a, b = np.empty(dof), np.empty(dof)
    in_vain = 0
    for _ in range(tries):
        if count < 3 or in_vain >= patience:
            break
        whole = 0.0
        for i in range(count - 1):
            lengths[i] = _length(path[i], path[i + 1], weights)
            whole += lengths[i]
        first, second = rng.random() * whole, rng.random() * whole
        low, high = min(first, second), max(first, second)
        i, j, at = 0, 0, 0.0
        while i < count - 2 and at + lengths[i] < low:
            at += lengths[i]
            i += 1
        u = min((low - at) / lengths[i], 1.0) if lengths[i] > 0.0 else 0.0
        j = i
        while j < count - 2 and at + lengths[j] < high:
            at += lengths[j]
            j += 1
        v = min((high - at) / lengths[j], 1.0) if lengths[j] > 0.0 else 0.0
        in_vain += 1
        if i == j:
            continue
        for k in range(dof):
            a[k] = path[i, k] + u * (path[i + 1, k] - path[i, k])
            b[k] = path[j, k] + v * (path[j + 1, k] - path[j, k])
        gain = (high - low) - _length(a, b, weights)
        if gain <= 1e-3 * whole or not free_line(bodies, work, a, b):
            continue
        in_vain = 0
        # i + 1 … j go, a and b come
        rest = count - (j + 1)
        to = i + 3
        if to > j + 1:
            for m in range(rest - 1, -1, -1):
                path[to + m] = path[j + 1 + m]
        else:
            for m in range(rest):
                path[to + m] = path[j + 1 + m]
        path[i + 1], path[i + 2] = a, b
        count = to + rest
        if count + 2 > path.shape[0]:
            break
    return count


@kernel(examples=lambda: [(*example[:2], np.zeros((3, 1)), 1.0) for example in _examples()])
def round_corners(bodies: Bodies, work: Work, path: Array, largest: float) -> tuple[Array, Array]:
    """Arcs in the corners of a way of straight lines: parabolas, that leave each line in its direction.

    Args:
        bodies: Who may touch whom.
        work: Memory.
        path: (k, dof) states, no two of them the same in a row.
        largest: An arc begins at most so far before its corner.

    Returns:
        (p, 3, dof) coefficients of the powers of the length along each piece, and (p,) lengths of the pieces.  Where no
        arc is free the way keeps its corner.
    """
    count, dof = path.shape
    pieces, lengths = np.zeros((2 * count, 3, dof)), np.zeros(2 * count)
    ones = np.ones(dof)
    curve = np.zeros((3, dof))
    made, begun = 0, 0.0  # how far into the present line the last arc reaches
    for i in range(count - 1):
        length = _length(path[i], path[i + 1], ones)
        ahead, radius = 0.0, 0.0
        if i < count - 2:
            ahead = _length(path[i + 1], path[i + 2], ones)
            radius = min(
                length - begun if i == 0 else min(0.5 * length, length - begun),
                ahead if i == count - 3 else 0.5 * ahead,
                largest,
            )
        found = False
        for _ in range(_HALVINGS):
            if radius <= 1e-6:
                break
            for k in range(dof):
                before = (path[i + 1, k] - path[i, k]) / length
                after = (path[i + 2, k] - path[i + 1, k]) / ahead
                curve[0, k] = path[i + 1, k] - radius * before
                curve[1, k] = before
                curve[2, k] = (after - before) / (4.0 * radius)
            if free_piece(bodies, work, curve, 2.0 * radius):
                found = True
                break
            radius *= 0.5
        if not found:
            radius = 0.0
        if length - begun - radius > 1e-9:
            for k in range(dof):
                slope = (path[i + 1, k] - path[i, k]) / length
                pieces[made, 0, k] = path[i, k] + begun * slope
                pieces[made, 1, k] = slope
            lengths[made] = length - begun - radius
            made += 1
        if found:
            pieces[made] = curve
            lengths[made] = 2.0 * radius
            made += 1
        begun = radius
    return pieces[:made].copy(), lengths[:made].copy()
