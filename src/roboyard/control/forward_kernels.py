"""Kernel: where joints bring their frames, all joints of a robot at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

Array = NDArray[np.float64]


class FrameRows(NamedTuple):
    """Moving joints as kernels take them; see `JointMotion`.

    Attributes:
        before: (n, 7) poses as quaternion w, x, y, z and position [m].
        after: (n, 7) the same.
        axes: (n, 2, 3) of length 1; 0 where there is no second one.
        slides: (n,).
        leads: (n,) [m/rad].
    """

    before: Array
    after: Array
    axes: Array
    slides: NDArray[np.bool_]
    leads: Array


@kernel(inline="always")
def _append(pose: Array, w: float, x: float, y: float, z: float, px: float, py: float, pz: float) -> None:
    """``pose @ other`` in place."""
    aw, ax, ay, az = pose[0], pose[1], pose[2], pose[3]
    tx, ty, tz = 2.0 * (ay * pz - az * py), 2.0 * (az * px - ax * pz), 2.0 * (ax * py - ay * px)
    pose[4] += px + aw * tx + ay * tz - az * ty
    pose[5] += py + aw * ty + az * tx - ax * tz
    pose[6] += pz + aw * tz + ax * ty - ay * tx
    pose[0] = aw * w - ax * x - ay * y - az * z
    pose[1] = aw * x + ax * w + ay * z - az * y
    pose[2] = aw * y - ax * z + ay * w + az * x
    pose[3] = aw * z + ax * y - ay * x + az * w


def _example() -> list[tuple[object, ...]]:
    one = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    return [(FrameRows(one, one.copy(), np.zeros((1, 2, 3)), np.zeros(1, np.bool_), np.zeros(1)), np.zeros((1, 2)))]


@kernel(examples=_example)
def moved_frames(rows: FrameRows, q: Array) -> Array:
    """Poses (n, 7) of the children in their parents at positions (n, 2) of the joints' axes [rad or m]."""
    out = rows.before.copy()
    for i in range(len(out)):
        for k in range(2):
            turn = 0.0 if rows.slides[i] else q[i, k]
            shift = q[i, k] if rows.slides[i] else q[i, k] * rows.leads[i]
            x, y, z = rows.axes[i, k]
            if x != 0.0 or y != 0.0 or z != 0.0:
                c, s = math.cos(0.5 * turn), math.sin(0.5 * turn)
                _append(out[i], c, s * x, s * y, s * z, shift * x, shift * y, shift * z)
        a = rows.after[i]
        _append(out[i], a[0], a[1], a[2], a[3], a[4], a[5], a[6])
    return out
