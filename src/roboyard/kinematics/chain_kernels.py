"""Kernels: forward kinematics and geometric Jacobian of a serial chain.

A chain is a list of rows, one for each moving joint from the base to the tip. The frame of each row has the joint's
axis along z, so a revolute joint rotates two columns of a matrix and a prismatic joint translates along the third.
Frame 0 is the base; frame k + 1 moves with joint k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array


class ChainArrays(NamedTuple):
    """A chain of m moving joints, n of them free, in the form that kernels use.

    Attributes:
        origins: (m, 4, 4) pose of each row's frame in the previous frame, with its joint at zero.
        rotation_per_unit: (m,) 1 if the joint rotates about z, else 0.
        translation_per_unit: (m,) translation along z per unit of joint position: 1 for a prismatic joint, pitch / 2 pi
            for a screw joint.
        driving_joint: (m,) index of the free joint that moves the row: its position is
            ``multiplier q[driving_joint] + offset``.
        multiplier: (m,) see `driving_joint`; 1 except for mimic joints.
        offset: (m,) see `driving_joint`.
        T_tip: (4, 4) pose of the tip in the last frame.
        lower: (n,) lower limits of the free joints; minus infinity without a limit.
        upper: (n,) upper limits of the free joints; infinity without a limit.
    """

    origins: Array
    rotation_per_unit: Array
    translation_per_unit: Array
    driving_joint: NDArray[np.int64]
    multiplier: Array
    offset: Array
    T_tip: Array
    lower: Array
    upper: Array


def example_chain_arrays() -> ChainArrays:
    """Return a chain of one joint as example argument of kernels; its arrays are read-only like those of a `Chain`."""
    one, limit, eye = np.ones(1), np.ones(1), np.eye(4)
    origins = eye[None].copy()
    limit.flags.writeable = eye.flags.writeable = False
    return ChainArrays(origins, one, one, np.zeros(1, dtype=np.int64), one, one, eye, limit, limit)


@kernel(inline="always", examples=lambda: [(np.eye(4), np.eye(4), np.eye(4))])
def multiply_transforms(a: Array, b: Array, out: Array) -> None:
    """Compute ``out = a b`` of homogeneous matrices (4, 4); `out` must not be `a` or `b`."""
    for i in range(3):
        a0, a1, a2 = a[i, 0], a[i, 1], a[i, 2]
        for j in range(3):
            out[i, j] = a0 * b[0, j] + a1 * b[1, j] + a2 * b[2, j]
        out[i, 3] = a0 * b[0, 3] + a1 * b[1, 3] + a2 * b[2, 3] + a[i, 3]
    out[3, 0] = out[3, 1] = out[3, 2] = 0.0
    out[3, 3] = 1.0


@kernel(
    no_refcount=True, forceinline=True, examples=lambda: [(example_chain_arrays(), np.zeros(1), np.zeros((2, 4, 4)))]
)
def compute_frames(chain: ChainArrays, q: Array, out: Array) -> None:
    """Compute the poses of all frames in the base.

    Args:
        chain: The chain.
        q: (n,) positions of the free joints.
        out: (m + 1, 4, 4) result; the first is the identity.
    """
    for i in range(4):
        for j in range(4):
            out[0, i, j] = 1.0 if i == j else 0.0
    for k in range(chain.rotation_per_unit.shape[0]):
        multiply_transforms(out[k], chain.origins[k], out[k + 1])
        T = out[k + 1]
        value = chain.multiplier[k] * q[chain.driving_joint[k]] + chain.offset[k]
        if chain.rotation_per_unit[k] != 0.0:
            c, s = math.cos(value), math.sin(value)
            for i in range(3):
                x, y = T[i, 0], T[i, 1]
                T[i, 0] = c * x + s * y
                T[i, 1] = c * y - s * x
        if chain.translation_per_unit[k] != 0.0:
            for i in range(3):
                T[i, 3] += T[i, 2] * chain.translation_per_unit[k] * value


@kernel(examples=lambda: [(example_chain_arrays(), np.zeros((3, 1)), np.zeros((3, 4, 4)))])
def compute_tip_poses(chain: ChainArrays, q: Array, out: Array) -> None:
    """Compute the poses of the tip in the base.

    Args:
        chain: The chain.
        q: (k, n) positions of the free joints.
        out: (k, 4, 4) result.
    """
    frames = np.empty((chain.rotation_per_unit.shape[0] + 1, 4, 4))
    for i in range(q.shape[0]):
        compute_frames(chain, q[i], frames)
        multiply_transforms(frames[-1], chain.T_tip, out[i])


@kernel(examples=lambda: [(example_chain_arrays(), np.zeros((3, 1)), np.zeros((3, 2, 4, 4)))])
def compute_all_frames(chain: ChainArrays, q: Array, out: Array) -> None:
    """Compute the poses of all frames for many joint positions.

    Args:
        chain: The chain.
        q: (k, n) positions of the free joints.
        out: (k, m + 1, 4, 4) result.
    """
    for i in range(q.shape[0]):
        compute_frames(chain, q[i], out[i])


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_chain_arrays(), np.zeros((2, 4, 4)), np.zeros(3), np.zeros((6, 1)))],
)
def compute_jacobian(chain: ChainArrays, frames: Array, point: Array, out: Array) -> None:
    """Compute the Jacobian of a point of the last link, in base axes.

    Args:
        chain: The chain.
        frames: (m + 1, 4, 4) poses as `compute_frames` computes them.
        point: (3,) position in the base [m].
        out: (6, n) result: linear, then angular velocity per unit of joint velocity.
    """
    out[:] = 0.0
    for k in range(chain.rotation_per_unit.shape[0]):
        T, j = frames[k + 1], chain.driving_joint[k]
        x, y, z = T[0, 2], T[1, 2], T[2, 2]
        rotation, translation = (
            chain.multiplier[k] * chain.rotation_per_unit[k],
            chain.multiplier[k] * chain.translation_per_unit[k],
        )
        px, py, pz = point[0] - T[0, 3], point[1] - T[1, 3], point[2] - T[2, 3]
        out[0, j] += rotation * (y * pz - z * py) + translation * x
        out[1, j] += rotation * (z * px - x * pz) + translation * y
        out[2, j] += rotation * (x * py - y * px) + translation * z
        out[3, j] += rotation * x
        out[4, j] += rotation * y
        out[5, j] += rotation * z


@kernel(examples=lambda: [(example_chain_arrays(), np.zeros((3, 1)), np.zeros((3, 6, 1)))])
def compute_jacobians(chain: ChainArrays, q: Array, out: Array) -> None:
    """Compute the Jacobians of the tip for many joint positions.

    Args:
        chain: The chain.
        q: (k, n) positions of the free joints.
        out: (k, 6, n) result, see `compute_jacobian`.
    """
    frames = np.empty((chain.rotation_per_unit.shape[0] + 1, 4, 4))
    T = np.empty((4, 4))
    for i in range(q.shape[0]):
        compute_frames(chain, q[i], frames)
        multiply_transforms(frames[-1], chain.T_tip, T)
        compute_jacobian(chain, frames, T[:3, 3], out[i])


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_chain_arrays(), np.zeros((2, 4, 4)), np.zeros(1), np.zeros((2, 6)))],
)
def compute_frame_twists(chain: ChainArrays, frames: Array, rates: Array, out: Array) -> None:
    """How the frames of a chain move, in the axes of its base.

    Args:
        chain: The chain.
        frames: (m + 1, 4, 4) as `place_frames` leaves them.
        rates: (n,) speeds of its free joints.
        out: (m + 1, 6) is filled: linear velocity of the frame's origin, then angular.
    """
    out[0] = 0.0
    for k in range(chain.rotation_per_unit.shape[0]):
        T, parent = frames[k + 1], frames[k]
        rate = chain.multiplier[k] * rates[chain.driving_joint[k]]
        x, y, z = T[0, 3] - parent[0, 3], T[1, 3] - parent[1, 3], T[2, 3] - parent[2, 3]
        wx, wy, wz = out[k, 3], out[k, 4], out[k, 5]
        sliding_speed = chain.translation_per_unit[k] * rate
        out[k + 1, 0] = out[k, 0] + wy * z - wz * y + sliding_speed * T[0, 2]
        out[k + 1, 1] = out[k, 1] + wz * x - wx * z + sliding_speed * T[1, 2]
        out[k + 1, 2] = out[k, 2] + wx * y - wy * x + sliding_speed * T[2, 2]
        for i in range(3):
            out[k + 1, 3 + i] = out[k, 3 + i] + chain.rotation_per_unit[k] * rate * T[i, 2]
