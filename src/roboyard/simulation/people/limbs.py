"""Limbs of two bones whose ends are to be somewhere: knees and elbows bend so that they are; compiled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array, Vec3
from roboyard.geometry.quaternion_kernels import (
    add_scaled,
    dot,
    multiply,
    rotate_vector,
    shortest_rotation,
    subtract,
)

STRETCHED = 0.9995
"""Share of its length that a limb is stretched to at most: one quite straight knows no side to bend to."""
LEFT_ARM, RIGHT_ARM, LEFT_LEG, RIGHT_LEG = 5, 8, 11, 14
"""Number of each limb's upper part; its lower part and its end follow."""


@kernel(inline="always")
def _row(table: Array, k: int) -> Vec3:
    return (table[k, 0], table[k, 1], table[k, 2])


def _example() -> Iterable[tuple[Any, ...]]:
    fixed = np.zeros((17, 3))
    fixed.flags.writeable = False
    yield (fixed, np.zeros((17, 3)), np.zeros((17, 4)), 0, (0.0, 0.0, 0.0))


@kernel(examples=_example, error_model="numpy")
def stretch(offsets: Array, places: Array, turns: Array, upper: int, target: Vec3) -> float:
    """Bring the end of a limb to a place, or as near as it goes; its hand or foot keeps its orientation.

    The joint between bends the way it does already; one that is straight bends as knees and elbows do.

    Args:
        offsets: (17, 3) of the skeleton [m].
        places: (17, 3) of the parts in the world [m]; written.
        turns: (17, 4) of the parts in the world; written.
        upper: Number of the limb's upper part.
        target: Where the end's joint is to be [m].

    Returns:
        How far it stays away [m].
    """
    lower, end = upper + 1, upper + 2
    first, second = (
        math.sqrt(dot(_row(offsets, lower), _row(offsets, lower))),
        math.sqrt(dot(_row(offsets, end), _row(offsets, end))),
    )
    root, knee, tip = _row(places, upper), _row(places, lower), _row(places, end)
    way = subtract(target, root)
    far = math.sqrt(dot(way, way))
    if far < 1e-9:
        return 0.0
    along = (way[0] / far, way[1] / far, way[2] / far)
    length = min(max(far, abs(first - second) + 1e-3 * first), STRETCHED * (first + second))
    q1 = (turns[upper, 0], turns[upper, 1], turns[upper, 2], turns[upper, 3])
    q2 = (turns[lower, 0], turns[lower, 1], turns[lower, 2], turns[lower, 3])
    ahead = rotate_vector(q1, (1.0 if upper >= LEFT_LEG else -1.0, 0.0, 0.0))
    bent, chord = subtract(knee, root), subtract(tip, root)
    span = math.sqrt(dot(chord, chord))
    if span < 1e-9:
        return abs(far - length)
    chord = (chord[0] / span, chord[1] / span, chord[2] / span)
    side = add_scaled(bent, 0.02 * first, ahead)  # a joint that is nearly straight bends as it is made to
    # as if the whole limb swung there
    side = rotate_vector(shortest_rotation(chord, along), add_scaled(side, -dot(side, chord), chord))
    size = math.sqrt(dot(side, side))
    if size < 1e-9:
        return abs(far - length)
    cosine = (first * first + length * length - second * second) / (2.0 * first * length)
    sine = math.sqrt(max(1.0 - cosine * cosine, 0.0)) / size
    one = add_scaled((cosine * along[0], cosine * along[1], cosine * along[2]), sine, side)
    joint = add_scaled(root, first, one)
    there = add_scaled(root, length, along)
    two = subtract(there, joint)
    scale = 1.0 / math.sqrt(dot(two, two))
    before1, before2 = subtract(knee, root), subtract(tip, knee)
    q1 = multiply(shortest_rotation((before1[0] / first, before1[1] / first, before1[2] / first), one), q1)
    q2 = multiply(
        shortest_rotation(
            (before2[0] / second, before2[1] / second, before2[2] / second),
            (two[0] * scale, two[1] * scale, two[2] * scale),
        ),
        q2,
    )
    for i in range(4):
        turns[upper, i], turns[lower, i] = q1[i], q2[i]
    for i in range(3):
        places[lower, i], places[end, i] = joint[i], there[i]
    return abs(far - length)
