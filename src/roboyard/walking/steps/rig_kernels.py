"""Kernels about one leg at a time: the joints that its planner uses, and tables of what it reaches."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.walking.leg_kernels import MOST, LegRows, leg_solutions, sample_rows

Array = NDArray[np.float64]

LAYERS: Final = 48
"""Of a table's heights: bits of a word."""
_SLACK: Final = 1e-9


class RigRows(NamedTuple):
    """A body on l legs as the planners' kernels take it; feet and tables are in the body's frame.

    Attributes:
        legs: Of the walker.
        home: (l, 3) feet of the stance [m].
        knee: (l,) which way knees bend: the sign of the turn from thigh to shank.
        rates: (l, 3) greatest speeds of the joints [rad/s].
        side: (l,) 1 on the left, -1 on the right.
        ahead: (l,) the leg before it on its side, or -1.
        table: (l, n, n) words whose bit k tells that the foot gets into layer k, margins kept.
        low: (l, 3) middle of the table's first cell [m].
        cell: Edge of a table's cell along x and y [m].
        layer: Height of one [m].
        gap: Feet of a side keep in order, and so far apart along x [m].
        limb: Half of the thickness of a limb [m].
    """

    legs: LegRows
    home: Array
    knee: Array
    rates: Array
    side: NDArray[np.int64]
    ahead: NDArray[np.int64]
    table: NDArray[np.uint64]
    low: Array
    cell: float
    layer: float
    gap: float
    limb: float


class Limbs(NamedTuple):
    """What the exact look at a plan needs of a rig; fields as there."""

    legs: LegRows
    knee: Array
    rates: Array
    ahead: NDArray[np.int64]


def sample_limbs() -> Limbs:
    """Limbs that kernels are compiled with."""
    return Limbs(sample_rows(), np.ones(1), np.ones((1, 3)), np.zeros(1, np.int64))


@kernel(examples=lambda: [(sample_rows(), 0, 0.0)])
def knee_turn(legs: LegRows, i: int, third: float) -> float:
    """Sine of the turn from thigh to shank, times both lengths, with the third joint somewhere."""
    c, s = math.cos(third * legs.bend[i]), math.sin(third * legs.bend[i])
    sx, sy = c * legs.shank[i, 0] - s * legs.shank[i, 1], s * legs.shank[i, 0] + c * legs.shank[i, 1]
    return float(legs.thigh[i, 0] * sy - legs.thigh[i, 1] * sx)


@kernel(examples=lambda: [(sample_rows(), np.ones(1), 0, np.zeros(3), np.zeros((MOST, 3)), np.zeros(3))])
def leg_joints(legs: LegRows, knee: Array, i: int, foot: Array, work: Array, out: Array) -> bool:
    """The joints (3,) of a leg whose knee bends its own way, for its foot (3,) in the body; whether limits are kept."""
    count = leg_solutions(legs, i, foot, 0.0, work)
    for k in range(count):
        inside = True
        for j in range(3):
            q = work[k, j]
            inside = inside and legs.lower[i, j] - _SLACK <= q <= legs.upper[i, j] + _SLACK
        if inside and knee_turn(legs, i, work[k, 2]) * knee[i] > 0.0:
            out[:] = work[k]
            return True
    return False


@kernel(
    examples=lambda: [(sample_rows(), np.ones(1), np.zeros((1, 3)), 0.01, 0.01, np.zeros((1, 2, 2, LAYERS), np.bool_))]
)
def fill_table(legs: LegRows, knee: Array, low: Array, cell: float, layer: float, out: NDArray[np.bool_]) -> None:
    """Where the feet get, (l, n, n, LAYERS): rows along x, columns along y."""
    foot, q, work = np.empty(3), np.empty(3), np.empty((MOST, 3))
    for i in range(out.shape[0]):
        for a in range(out.shape[1]):
            for b in range(out.shape[2]):
                for c in range(out.shape[3]):
                    foot[0], foot[1] = low[i, 0] + a * cell, low[i, 1] + b * cell
                    foot[2] = low[i, 2] + c * layer
                    out[i, a, b, c] = leg_joints(legs, knee, i, foot, work, q)
