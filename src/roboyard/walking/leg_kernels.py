"""Kernels: the joints of legs that put their feet somewhere.

A leg turns about a first axis, and bends in a plane beside it: its second and third axes are parallel to each other and
at right angles to the first.  Two positions of the first joint bring the foot's place into that plane, for each of them
the knee can point to two sides: at most four solutions, all of which are found.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.compute.array_kernels import assign
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik.trigonometric_equations import solve_linear_trig

MOST: Final = 4
REACHED: Final = 0
OUT_OF_LIMITS: Final = 1
OUT_OF_REACH: Final = 2
_ON_AXIS: Final = 1e-9
"""A foot nearer to the first axis leaves its joint free [m]."""


class LegRows(NamedTuple):
    """Legs as kernels take them; frame 1 is the first joint's with it at zero, frame 2 the second joint's.

    Attributes:
        T_body_hip: (l, 4, 4) frame 1 in the body's.
        T_hip_knee: (l, 4, 4) frame 2 in frame 1.
        offset: (l,) how far the foot is from frame 2's plane of x and y [m].
        thigh: (l, 2) from the second axis to the third one, in frame 2.
        shank: (l, 2) from there to the foot with the third joint at zero, in frame 2.
        bend: (l,) 1, or -1 where the third axis points against the second.
        lower: (l, 3) least positions [rad].
        upper: (l, 3) greatest ones.
    """

    T_body_hip: Array
    T_hip_knee: Array
    offset: Array
    thigh: Array
    shank: Array
    bend: Array
    lower: Array
    upper: Array


def sample_rows() -> LegRows:
    """One leg that kernels are compiled with."""
    turned = np.eye(4)[None].copy()
    turned[0, :3, :3] = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    side = np.array([[0.1, 0.0]])
    low = np.full((1, 3), -2.0)
    return LegRows(np.eye(4)[None].copy(), turned, np.zeros(1), side, side.copy(), np.ones(1), low, -low)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0.0, -1.0, 1.0)])
def wrap_toward_range(angle: float, low: float, high: float) -> float:
    """The same direction, as near to the middle of a range as whole turns allow; unchanged within the range."""
    if low <= angle <= high:
        return angle
    middle = 0.5 * (low + high)
    return float(angle - 2.0 * math.pi * math.floor((angle - middle) / (2.0 * math.pi) + 0.5))


@kernel(examples=lambda: [(sample_rows(), 0, np.array([0.15, 0.0, 0.0]), 0.0, np.zeros((MOST, 3)))])
def leg_solutions(legs: LegRows, i: int, foot: Array, free: float, out: Array) -> int:
    """All positions of leg ``i`` that put its foot somewhere, limits aside.

    Args:
        legs: All legs.
        i: Which.
        foot: (3,) the foot's place in the body [m].
        free: What the first joint takes where it may be anything, the foot being on its axis.
        out: (4, 3) is filled.

    Returns:
        How many.
    """
    H, K = legs.T_body_hip[i], legs.T_hip_knee[i]
    x, y, z = foot[0] - H[0, 3], foot[1] - H[1, 3], foot[2] - H[2, 3]
    px = H[0, 0] * x + H[1, 0] * y + H[2, 0] * z
    py = H[0, 1] * x + H[1, 1] * y + H[2, 1] * z
    pz = H[0, 2] * x + H[1, 2] * y + H[2, 2] * z
    # the plane that the leg bends in: K[:, 2] . p' = off, where p' is p turned back by the first joint
    off = legs.offset[i] + K[0, 2] * K[0, 3] + K[1, 2] * K[1, 3] + K[2, 2] * K[2, 3]
    firsts, bends, found = np.empty(4), np.empty(4), 0
    nx, ny = K[0, 2], K[1, 2]
    # n . Rz(-q) p = (nx px + ny py) cos q + (nx py - ny px) sin q
    if math.hypot(px, py) < _ON_AXIS:
        firsts[0], options = free, 1 if abs(off) < _ON_AXIS else 0
    else:
        options = solve_linear_trig(nx * px + ny * py, nx * py - ny * px, off, firsts)
    ux, uy, lx, ly = legs.thigh[i, 0], legs.thigh[i, 1], legs.shank[i, 0], legs.shank[i, 1]
    for k in range(options):
        c, s = math.cos(firsts[k]), math.sin(firsts[k])
        wx, wy, wz = c * px + s * py - K[0, 3], c * py - s * px - K[1, 3], pz - K[2, 3]
        vx = K[0, 0] * wx + K[1, 0] * wy + K[2, 0] * wz
        vy = K[0, 1] * wx + K[1, 1] * wy + K[2, 1] * wz
        rest = 0.5 * (vx * vx + vy * vy - ux * ux - uy * uy - lx * lx - ly * ly)
        both = solve_linear_trig(ux * lx + uy * ly, uy * lx - ux * ly, rest, bends)
        for m in range(both):
            cb, sb = math.cos(bends[m]), math.sin(bends[m])
            rx, ry = ux + cb * lx - sb * ly, uy + sb * lx + cb * ly
            out[found, 0] = wrap_toward_range(firsts[k], legs.lower[i, 0], legs.upper[i, 0])
            second = math.atan2(vy, vx) - math.atan2(ry, rx)
            out[found, 1] = wrap_toward_range(second, legs.lower[i, 1], legs.upper[i, 1])
            out[found, 2] = wrap_toward_range(legs.bend[i] * bends[m], legs.lower[i, 2], legs.upper[i, 2])
            found += 1
    return found


@kernel(
    examples=lambda: [
        (
            sample_rows(), np.zeros(1, np.int64), read_only(np.array([[0.15, 0.0, 0.0]])), read_only(np.zeros((1, 3))),
            np.zeros((1, 3)), np.zeros(1, np.int64),
        )
    ]
)  # fmt: skip
def nearest_solutions(
    legs: LegRows, which: NDArray[np.int64], feet: Array, near: Array, out: Array, states: NDArray[np.int64]
) -> int:
    """The solutions within the limits that are nearest to given positions, of many feet.

    Args:
        legs: All legs.
        which: (k,) whose foot each is.
        feet: (k, 3) places in the body [m].
        near: (k, 3) positions of the joints to be near to [rad].
        out: (k, 3) is filled; where none keeps its limits, with the one that misses them least; nan out of reach.
        states: (k,) is filled: REACHED, OUT_OF_LIMITS or OUT_OF_REACH.

    Returns:
        The first foot that is not reached; k without.
    """
    found = np.empty((MOST, 3))
    first: int = which.shape[0]
    for n in range(which.shape[0]):
        i = which[n]
        count = leg_solutions(legs, i, feet[n], near[n, 0], found)
        states[n] = OUT_OF_REACH
        out[n, :] = math.nan
        best = math.inf
        for k in range(count):
            beyond, far = 0.0, 0.0
            for j in range(3):
                q = found[k, j]
                beyond = max(beyond, legs.lower[i, j] - q, q - legs.upper[i, j])
                far = max(far, abs(q - near[n, j]))
            state = REACHED if beyond <= 1e-9 else OUT_OF_LIMITS
            value = far if state == REACHED else beyond
            if state < states[n] or (state == states[n] and value < best):
                states[n], best = state, value
                assign(out[n], found[k])
        if states[n] != REACHED and first == which.shape[0]:
            first = n
    return first


@kernel(examples=lambda: [(np.zeros(3),)])
def all_finite(values: Array) -> bool:
    """Whether all of some numbers (n) are finite."""
    for value in values:  # noqa: SIM110 - kernels know no generators
        if not math.isfinite(value):
            return False
    return True


@kernel(examples=lambda: [(sample_rows(), np.zeros(1, np.int64), np.zeros((1, 3)), np.zeros((1, 3)))])
def place_feet(legs: LegRows, which: NDArray[np.int64], q: Array, out: Array) -> None:
    """Feet (k, 3) in the body, of joints (k, 3) of legs (k,), into ``out``."""
    for n in range(which.shape[0]):
        i = which[n]
        H, K = legs.T_body_hip[i], legs.T_hip_knee[i]
        cb, sb = math.cos(legs.bend[i] * q[n, 2]), math.sin(legs.bend[i] * q[n, 2])
        lx, ly = legs.shank[i, 0], legs.shank[i, 1]
        rx, ry = legs.thigh[i, 0] + cb * lx - sb * ly, legs.thigh[i, 1] + sb * lx + cb * ly
        c, s = math.cos(q[n, 1]), math.sin(q[n, 1])
        x, y, z = c * rx - s * ry, s * rx + c * ry, legs.offset[i]
        ax = K[0, 0] * x + K[0, 1] * y + K[0, 2] * z + K[0, 3]
        ay = K[1, 0] * x + K[1, 1] * y + K[1, 2] * z + K[1, 3]
        az = K[2, 0] * x + K[2, 1] * y + K[2, 2] * z + K[2, 3]
        c, s = math.cos(q[n, 0]), math.sin(q[n, 0])
        bx, by = c * ax - s * ay, s * ax + c * ay
        for k in range(3):
            out[n, k] = H[k, 0] * bx + H[k, 1] * by + H[k, 2] * az + H[k, 3]
