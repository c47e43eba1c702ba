"""What plans may cost beside duration, tipping and footing: their joints' work, and how they stand on a foot less.

Work is the sum of what each joint does, forwards or held back, against the weight: of the body over the feet that
stand, and of the leg's own parts.  Nothing that one joint gives back helps another.  It is counted in metres: divided
by the robot's weight, as the height that it would raise the whole robot to.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array, Flags
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.stretch import inside_by, polygon_edges


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_limbs(), 0, 0.0, 0.0, 0.0)])
def limb_heights(limbs: Limbs, i: int, first: float, second: float, third: float) -> tuple[float, float]:
    """How high knee and foot of a leg are in the body [m], of its joints [rad]."""
    rows = limbs.legs
    H, K = rows.T_body_hip[i], rows.T_hip_knee[i]
    turn, c, s = rows.bend[i] * third, math.cos(second), math.sin(second)
    kx, ky = c * rows.thigh[i, 0] - s * rows.thigh[i, 1], s * rows.thigh[i, 0] + c * rows.thigh[i, 1]
    c, s = math.cos(second + turn), math.sin(second + turn)
    fx = kx + c * rows.shank[i, 0] - s * rows.shank[i, 1]
    fy = ky + s * rows.shank[i, 0] + c * rows.shank[i, 1]
    c, s = math.cos(first), math.sin(first)
    up_x, up_y = c * H[2, 0] + s * H[2, 1], c * H[2, 1] - s * H[2, 0]  # the body's z axis, as frame 1 sees it turned
    ax, ay = up_x * K[0, 0] + up_y * K[1, 0] + H[2, 2] * K[2, 0], up_x * K[0, 1] + up_y * K[1, 1] + H[2, 2] * K[2, 1]
    az = up_x * K[0, 2] + up_y * K[1, 2] + H[2, 2] * K[2, 2]
    base = up_x * K[0, 3] + up_y * K[1, 3] + H[2, 2] * K[2, 3] + H[2, 3]
    return float(base + ax * kx + ay * ky), float(base + ax * fx + ay * fy + az * rows.offset[i])


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_limbs(), 0, np.zeros(3), np.zeros(3), 0.3)])
def leg_work(limbs: Limbs, i: int, before: Array, after: Array, load: float) -> float:
    """What a leg's joints do between two positions (3,) near each other [m]: each alone, with its load.

    Args:
        limbs: The legs.
        i: Which.
        before: Its joints [rad].
        after: A little later.
        load: What its foot carries, as a share of the robot's weight.
    """
    thigh, shank = 0.5 * limbs.share[i, 0], 0.5 * limbs.share[i, 1]  # their middles go half as far as their ends
    knee, foot = limb_heights(limbs, i, before[0], before[1], before[2])
    done = 0.0
    for j in range(3):
        first = after[0] if j == 0 else before[0]
        second = after[1] if j == 1 else before[1]
        third = after[2] if j == 2 else before[2]
        knee_to, foot_to = limb_heights(limbs, i, first, second, third)
        raised = (thigh + shank) * (knee_to - knee) + (shank - load) * (foot_to - foot)
        done += abs(raised)
    return done


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 1, 3)), np.ones((1, 1), np.bool_), 0.0, 0.0, np.zeros(1))],
)
def share_loads(feet: Array, down: Flags, x: float, y: float, out: Array) -> None:
    """What feet (1, l, 3) that are down carry (l,) of a weight above a place, evenly as far as balance allows.

    As `share_weight`, without arrays of its own.
    """
    n = sx = sy = sxx = sxy = syy = 0.0
    for i in range(feet.shape[1]):
        out[i] = 0.0
        if down[0, i]:
            dx, dy = feet[0, i, 0] - x, feet[0, i, 1] - y
            n, sx, sy = n + 1.0, sx + dx, sy + dy
            sxx, sxy, syy = sxx + dx * dx, sxy + dx * dy, syy + dy * dy
    one, two, three = sxx * syy - sxy * sxy, sxy * sy - sx * syy, sx * sxy - sxx * sy
    volume = n * one + sx * two + sy * three
    if volume < 1e-12:
        return
    for i in range(feet.shape[1]):
        if down[0, i]:
            pull = one + (feet[0, i, 0] - x) * two + (feet[0, i, 1] - y) * three
            out[i] = max(pull / volume, 0.0)


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 1, 3)), np.ones((1, 1), np.bool_), np.zeros((1, 12, 3)), np.zeros(1, np.int64))],
)
def edges_without_one(feet: Array, down: Flags, edges: Array, counts: NDArray[np.int64]) -> None:
    """Edges (l, 12, 3) of the polygons of the feet (1, l, 3) that are down, each without one of them, and how many."""
    for leg in range(feet.shape[1]):
        counts[leg] = polygon_edges(feet, down, 0, leg, edges[leg]) if down[0, leg] else -1


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((1, 12, 3)), np.zeros(1, np.int64), 0.0, 0.0)])
def margin_without_one(edges: Array, counts: NDArray[np.int64], x: float, y: float) -> float:
    """How far a place is inside the polygon at least if one foot, whichever, gives way [m]; -inf without a polygon."""
    least = math.inf
    for leg in range(edges.shape[0]):
        if counts[leg] >= 0:
            least = min(least, inside_by(edges[leg], counts[leg], x, y) if counts[leg] >= 3 else -math.inf)
    return least
