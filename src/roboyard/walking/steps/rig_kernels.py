"""Kernels about one leg at a time: the joints that its planner uses, and tables of what it reaches."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.leg_kernels import LegRows, sample_rows, wrap_toward_range

LAYERS: Final = 48
"""Of a table's heights: bits of a word."""
_SLACK: Final = 1e-9
_ON_AXIS: Final = 1e-9
"""A foot nearer to the first axis leaves its joint free [m]."""


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
        air: (l, n, n) the same for a foot in the air.
        low: (l, 3) middle of the tables' first cell [m].
        cell: Edge of a table's cell along x and y [m].
        layer: Height of one [m].
        gap: Feet of a side keep in order, and so far apart along x [m].
        limb: Half of the thickness of a limb [m].
        share: (l, 2) thigh and shank of each leg, as shares of the robot's mass.
    """

    legs: LegRows
    home: Array
    knee: Array
    rates: Array
    side: NDArray[np.int64]
    ahead: NDArray[np.int64]
    table: NDArray[np.uint64]
    air: NDArray[np.uint64]
    low: Array
    cell: float
    layer: float
    gap: float
    limb: float
    share: Array


class Limbs(NamedTuple):
    """What the exact look at a plan needs of a rig; fields as there."""

    legs: LegRows
    knee: Array
    rates: Array
    ahead: NDArray[np.int64]
    share: Array


def sample_limbs() -> Limbs:
    """Limbs that kernels are compiled with."""
    return Limbs(sample_rows(), np.ones(1), np.ones((1, 3)), np.zeros(1, np.int64), np.zeros((1, 2)))


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_rows(), 0, 0.0)])
def knee_turn(legs: LegRows, i: int, third: float) -> float:
    """Sine of the turn from thigh to shank, times both lengths, with the third joint somewhere."""
    c, s = math.cos(third * legs.bend[i]), math.sin(third * legs.bend[i])
    sx, sy = c * legs.shank[i, 0] - s * legs.shank[i, 1], s * legs.shank[i, 0] + c * legs.shank[i, 1]
    return float(legs.thigh[i, 0] * sy - legs.thigh[i, 1] * sx)


@kernel(
    no_refcount=True, forceinline=True, examples=lambda: [(sample_rows(), np.ones(1), 0, 0.15, 0.0, 0.0, np.zeros(7))]
)
def leg_joints(legs: LegRows, knee: Array, i: int, x: float, y: float, z: float, out: Array) -> bool:
    """The joints of a leg whose knee bends its own way, for its foot in the body; whether limits are kept.

    As `leg_solutions`, for one way of the knee only and without arrays of its own: planners ask millions of times.
    ``out`` (7,) is filled: the joints, and cosine and sine of the first and of the second one.
    """
    H, K = legs.T_body_hip, legs.T_hip_knee
    x, y, z = x - H[i, 0, 3], y - H[i, 1, 3], z - H[i, 2, 3]
    px = H[i, 0, 0] * x + H[i, 1, 0] * y + H[i, 2, 0] * z
    py = H[i, 0, 1] * x + H[i, 1, 1] * y + H[i, 2, 1] * z
    pz = H[i, 0, 2] * x + H[i, 1, 2] * y + H[i, 2, 2] * z
    nx, ny = K[i, 0, 2], K[i, 1, 2]
    off = legs.offset[i] + nx * K[i, 0, 3] + ny * K[i, 1, 3] + K[i, 2, 2] * K[i, 2, 3] - K[i, 2, 2] * pz
    a, b = nx * px + ny * py, nx * py - ny * px
    far = math.sqrt(a * a + b * b)
    if far < abs(off) or far < _ON_AXIS:
        return False
    ux, uy, lx, ly = legs.thigh[i, 0], legs.thigh[i, 1], legs.shank[i, 0], legs.shank[i, 1]
    both = math.sqrt((ux * ux + uy * uy) * (lx * lx + ly * ly))
    # turns as their cosines and sines: an angle is worked out for what is given only
    a, b, c0 = a / far, b / far, off / far
    s0 = math.sqrt(1.0 - c0 * c0)
    for k in range(2):
        beside = s0 if k == 0 else -s0
        c, s = a * c0 - b * beside, b * c0 + a * beside
        wx, wy, wz = c * px + s * py - K[i, 0, 3], c * py - s * px - K[i, 1, 3], pz - K[i, 2, 3]
        vx = K[i, 0, 0] * wx + K[i, 1, 0] * wy + K[i, 2, 0] * wz
        vy = K[i, 0, 1] * wx + K[i, 1, 1] * wy + K[i, 2, 1] * wz
        rest = 0.5 * (vx * vx + vy * vy - ux * ux - uy * uy - lx * lx - ly * ly)
        if abs(rest) > both:
            continue
        first = wrap_toward_range(math.atan2(s, c), legs.lower[i, 0], legs.upper[i, 0])
        if not legs.lower[i, 0] - _SLACK <= first <= legs.upper[i, 0] + _SLACK:
            continue
        ct = rest / both
        st = math.copysign(math.sqrt(1.0 - ct * ct), knee[i])
        straight_c, straight_s = (ux * lx + uy * ly) / both, (ux * ly - uy * lx) / both
        cb, sb = ct * straight_c + st * straight_s, st * straight_c - ct * straight_s
        third = wrap_toward_range(legs.bend[i] * math.atan2(sb, cb), legs.lower[i, 2], legs.upper[i, 2])
        if not legs.lower[i, 2] - _SLACK <= third <= legs.upper[i, 2] + _SLACK:
            continue
        rx, ry = ux + cb * lx - sb * ly, uy + sb * lx + cb * ly
        ahead, aside, size = vx * rx + vy * ry, vy * rx - vx * ry, vx * vx + vy * vy  # as long as (rx, ry)
        second = wrap_toward_range(math.atan2(aside, ahead), legs.lower[i, 1], legs.upper[i, 1])
        if legs.lower[i, 1] - _SLACK <= second <= legs.upper[i, 1] + _SLACK:
            out[0], out[1], out[2], out[3], out[4] = first, second, third, c, s
            out[5], out[6] = ahead / size, aside / size
            return True
    return False


@kernel(
    no_refcount=True,
    examples=lambda: [
        (sample_rows(), np.ones(1), np.zeros((1, 3)), 0.01, 0.01, np.zeros(7), np.zeros((1, 2, 2, LAYERS), np.bool_))
    ],
)
def fill_table(
    legs: LegRows, knee: Array, low: Array, cell: float, layer: float, q: Array, out: NDArray[np.bool_]
) -> None:
    """Where the feet get, (l, n, n, LAYERS): rows along x, columns along y; ``q`` (7,) is room for joints."""
    for i in range(out.shape[0]):
        for a in range(out.shape[1]):
            for b in range(out.shape[2]):
                for c in range(out.shape[3]):
                    x, y, z = low[i, 0] + a * cell, low[i, 1] + b * cell, low[i, 2] + c * layer
                    out[i, a, b, c] = leg_joints(legs, knee, i, x, y, z, q)
