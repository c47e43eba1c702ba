"""Kernel: where joints bring their frames, all joints of a robot at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

Array = NDArray[np.float64]


class JointArrays(NamedTuple):
    """Moving joints as kernels take them; see `JointMotion`.

    Attributes:
        parent_joint_poses: (n, 7) poses as quaternion w, x, y, z and position [m].
        joint_child_poses: (n, 7) the same.
        axes: (n, 2, 3) of length 1; 0 where there is no second one.
        is_prismatic: (n,).
        leads: (n,) [m/rad].
    """

    parent_joint_poses: Array
    joint_child_poses: Array
    axes: Array
    is_prismatic: NDArray[np.bool_]
    leads: Array


@kernel(inline="always")
def _compose_in_place(pose: Array, w: float, x: float, y: float, z: float, px: float, py: float, pz: float) -> None:
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
    return [(JointArrays(one, one.copy(), np.zeros((1, 2, 3)), np.zeros(1, np.bool_), np.zeros(1)), np.zeros((1, 2)))]


@kernel(examples=_example)
def compute_child_poses(joints: JointArrays, q: Array) -> Array:
    """Poses (n, 7) of the children in their parents at positions (n, 2) of the joints' axes [rad or m]."""
    out = joints.parent_joint_poses.copy()
    for i in range(len(out)):
        for k in range(2):
            angle = 0.0 if joints.is_prismatic[i] else q[i, k]
            shift = q[i, k] if joints.is_prismatic[i] else q[i, k] * joints.leads[i]
            x, y, z = joints.axes[i, k]
            if x != 0.0 or y != 0.0 or z != 0.0:
                c, s = math.cos(0.5 * angle), math.sin(0.5 * angle)
                _compose_in_place(out[i], c, s * x, s * y, s * z, shift * x, shift * y, shift * z)
        after = joints.joint_child_poses[i]
        _compose_in_place(out[i], after[0], after[1], after[2], after[3], after[4], after[5], after[6])
    return out
