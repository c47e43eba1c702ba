"""Unit quaternions as arrays (..., 4) in the order w, x, y, z; every function works over leading dimensions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """Hamilton product: the rotation ``b`` followed by ``a``."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a, dtype=float), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, dtype=float), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def conjugate(q: ArrayLike) -> Array:
    """The inverse rotation."""
    return np.asarray(q, dtype=float) * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(q: ArrayLike, v: ArrayLike) -> Array:
    """Vectors ``v`` (..., 3) turned by ``q``."""
    q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    u, w = q[..., 1:], q[..., :1]
    t = 2.0 * np.cross(u, v)
    return v + w * t + np.cross(u, t)


def from_rpy(rpy: ArrayLike) -> Array:
    """From fixed-axis roll, pitch, yaw [rad] (..., 3): R = Rz(yaw) Ry(pitch) Rx(roll), as URDF and SDF mean it."""
    half = np.asarray(rpy, dtype=float) / 2.0
    (cr, cp, cy), (sr, sp, sy) = np.moveaxis(np.cos(half), -1, 0), np.moveaxis(np.sin(half), -1, 0)
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=-1,
    )


def to_rpy(q: ArrayLike) -> Array:
    """Fixed-axis roll, pitch, yaw [rad]; in gimbal lock roll is 0."""
    w, x, y, z = np.moveaxis(np.asarray(q, dtype=float), -1, 0)
    sin_pitch = np.clip(2.0 * (w * y - z * x), -1.0, 1.0)
    locked = np.abs(sin_pitch) > 1.0 - 1e-12
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    yaw_locked = np.arctan2(-2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z))
    return np.stack([np.where(locked, 0.0, roll), np.arcsin(sin_pitch), np.where(locked, yaw_locked, yaw)], axis=-1)


def to_matrix(q: ArrayLike) -> Array:
    """Rotation matrices (..., 3, 3)."""
    w, x, y, z = np.moveaxis(np.asarray(q, dtype=float), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(matrix: ArrayLike) -> Array:
    """Unit quaternion (w ≥ 0) of rotation matrices (..., 3, 3), by the largest of the four components."""
    m = np.asarray(matrix, dtype=float)
    m00, m11, m22 = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    squares = np.stack([1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22, 1 - m00 - m11 + m22], axis=-1)
    wx, wy, wz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    rows = np.stack(
        [
            np.stack([squares[..., 0], wx, wy, wz], axis=-1),
            np.stack([wx, squares[..., 1], xy, xz], axis=-1),
            np.stack([wy, xy, squares[..., 2], yz], axis=-1),
            np.stack([wz, xz, yz, squares[..., 3]], axis=-1),
        ],
        axis=-2,
    )
    best = np.argmax(squares, axis=-1)
    q = np.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :]
    return canonical(q / np.linalg.norm(q, axis=-1, keepdims=True))


def canonical(q: ArrayLike) -> Array:
    """The one of ``q`` and ``-q`` with w ≥ 0."""
    q = np.asarray(q, dtype=float)
    return np.where(q[..., :1] < 0.0, -q, q)


def slerp(a: ArrayLike, b: ArrayLike, s: ArrayLike) -> Array:
    """Shortest-way interpolation from ``a`` (s = 0) to ``b`` (s = 1) at constant angular velocity."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    s = np.asarray(s, dtype=float)[..., None]
    dot = np.sum(a * b, axis=-1, keepdims=True)
    b, dot = np.where(dot < 0.0, -b, b), np.abs(dot)
    angle = np.arctan2(np.linalg.norm(b - a * dot, axis=-1, keepdims=True), dot)
    sine = np.sin(angle)
    near = sine < 1e-9
    safe = np.where(near, 1.0, sine)
    wa = np.where(near, 1.0 - s, np.sin((1.0 - s) * angle) / safe)
    wb = np.where(near, s, np.sin(s * angle) / safe)
    q = wa * a + wb * b
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def from_two_vectors(a: ArrayLike, b: ArrayLike) -> Array:
    """The smallest rotation that turns direction ``a`` into direction ``b``; any axis when they are opposite."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    a = a / np.linalg.norm(a, axis=-1, keepdims=True)
    b = b / np.linalg.norm(b, axis=-1, keepdims=True)
    dot = np.sum(a * b, axis=-1, keepdims=True)
    helper = np.where(np.abs(a[..., :1]) < 0.9, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    across = np.cross(a, helper)
    opposite = dot < -1.0 + 1e-12
    q = np.concatenate([np.where(opposite, 0.0, 1.0 + dot), np.where(opposite, across, np.cross(a, b))], axis=-1)
    return q / np.linalg.norm(q, axis=-1, keepdims=True)
