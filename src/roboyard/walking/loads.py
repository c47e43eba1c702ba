"""What feet carry, and how far servos without an integral have to be told beyond it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.leg_kernels import LegRows, place_feet, sample_rows
from roboyard.walking.walker import Walker

LOADING: Final = 0.06
"""Time in which a foot takes up its load [s]."""
_STEP: Final = 1e-5


@kernel(examples=lambda: [(np.zeros((6, 3)), 40.0, np.ones(6))])
def share_weight(feet: Array, weight: float, shares: Array) -> Array:
    """See `foot_loads`."""
    count = len(feet)
    held = np.zeros((3, 3))
    row = np.ones(3)
    for i in range(count):
        row[1], row[2] = feet[i, 0], feet[i, 1]
        for a in range(3):
            for b in range(3):
                held[a, b] += shares[i] * row[a] * row[b]
    # the first column of the inverse, by cofactors: what holds the weight above the body's middle
    one = held[1, 1] * held[2, 2] - held[1, 2] * held[2, 1]
    two = held[1, 2] * held[2, 0] - held[1, 0] * held[2, 2]
    three = held[1, 0] * held[2, 1] - held[1, 1] * held[2, 0]
    volume = held[0, 0] * one + held[0, 1] * two + held[0, 2] * three
    loads = np.zeros(count)
    if volume >= 1e-12:
        for i in range(count):
            pull = (one + feet[i, 0] * two + feet[i, 1] * three) * weight / volume
            loads[i] = max(shares[i] * pull, 0.0)
    return loads


@kernel(examples=lambda: [(sample_rows(), np.zeros((1, 3)), np.zeros(1))])
def upright_torques(legs: LegRows, q: Array, loads: Array) -> Array:
    """See `load_torques`."""
    which = np.arange(len(q))
    here, there = np.empty_like(q), np.empty_like(q)
    place_feet(legs, which, q, here)
    out = np.empty_like(q)
    for k in range(3):
        moved = q.copy()
        for i in range(len(q)):
            moved[i, k] += _STEP
        place_feet(legs, which, moved, there)
        for i in range(len(q)):
            out[i, k] = -(there[i, 2] - here[i, 2]) / _STEP * loads[i]
    return out


@kernel(
    examples=lambda: [
        (
            sample_rows(),
            np.zeros((1, 3)),
            np.zeros((1, 3)),
            40.0,
            np.ones(1, np.bool_),
            0.1,
            np.ones(1),
            np.ones((1, 3)),
        )
    ]
)
def told_joints(
    legs: LegRows,
    q: Array,
    feet: Array,
    weight: float,
    down: NDArray[np.bool_],
    most: float,
    loaded: Array,
    softness: Array,
) -> Array:
    """What servos (l, 3) that give way under loads have to be told so that joints come to where they shall be [rad].

    Args:
        legs: All.
        q: (l, 3) where joints shall be [rad].
        feet: (l, 3) where feet shall be in the body [m].
        weight: Of the robot [N].
        down: (l) which feet carry, or are about to.
        most: How much of its load a foot takes up or gives up at once.
        loaded: (l) shares of their loads that feet have taken up; changed.
        softness: (l, 3) how far servos give way [rad/(N m)].
    """
    for i in range(len(q)):
        loaded[i] = min(max(1.0 if down[i] else 0.0, loaded[i] - most), loaded[i] + most)
    told = q + upright_torques(legs, q, share_weight(feet, weight, loaded)) * softness
    return np.minimum(np.maximum(told, legs.lower), legs.upper)


def foot_loads(feet: ArrayLike, weight: float, shares: ArrayLike) -> Array:
    """Forces (l) on feet [N] that hold a weight above the body's middle: the least, weighted squares.

    Args:
        feet: (l, 3) in the body [m].
        weight: Of the robot [N].
        shares: (l) 0 for feet in the air, 1 for those that stand; in between they count less.

    Returns:
        All zero where no feet stand; forces that would pull are left out.
    """
    places = np.ascontiguousarray(feet, dtype=np.float64)
    return share_weight(places, weight, np.asarray(shares, dtype=np.float64))


def load_torques(walker: Walker, q: ArrayLike, loads: ArrayLike) -> Array:
    """Torques (l, 3) [N m] with which joints hold upright forces (l) [N] on their feet, at rest: -Jᵀ f."""
    joints = np.ascontiguousarray(q, dtype=np.float64)
    return upright_torques(walker.rows, joints, np.asarray(loads, dtype=np.float64))
