"""Unit quaternions as arrays ``(..., 4)`` in the order w, x, y, z; every function works over leading dimensions.

A quaternion here maps coordinates of the rotated frame to the outer one: ``rotate(q, v)`` is ``R(q) v``.
``q`` and ``-q`` are the same rotation; functions that return rotations return the one with ``w >= 0``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array

_MIN_NORM = 1e-12  # below it a direction is lost to rounding


def normalize(q: ArrayLike) -> Array:
    """Normalize to ``q / |q|`` with ``w >= 0``.

    Raises:
        InputError: A quaternion is zero or has numbers that are not finite.
    """
    q = _quaternions(q)
    length = np.linalg.norm(q, axis=-1, keepdims=True)
    if not np.all(np.isfinite(length)) or np.any(length < 1e-150):
        raise InputError("a quaternion is zero or not finite", valid="w, x, y, z of length 1")
    unit: Array = q / length
    return _canonical(unit)


def multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the Hamilton product ``a b``: first ``b``, then ``a``; the sign is kept."""
    a, b = _quaternions(a), _quaternions(b)
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
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
    """Return the inverse rotation of a unit quaternion."""
    inverse: Array = _quaternions(q) * np.array([1.0, -1.0, -1.0, -1.0])
    return inverse


def rotate(q: ArrayLike, v: ArrayLike) -> Array:
    """Compute ``R(q) v`` for vectors ``(..., 3)``; leading dimensions broadcast."""
    q, v = _quaternions(q), _vectors(v)
    w, u = q[..., :1], q[..., 1:]
    t = 2.0 * np.cross(u, v)
    rotated: Array = v + w * t + np.cross(u, t)
    return rotated


def z_axis(q: ArrayLike) -> Array:
    """Compute ``R(q) (0, 0, 1)``, ``(..., 3)``."""
    q = _quaternions(q)
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    axis: Array = np.stack([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)], axis=-1)
    return axis


def from_rpy(rpy: ArrayLike) -> Array:
    """Convert roll, pitch, yaw [rad] about the fixed axes x, y, z, as in URDF and SDF; ``(..., 3)``."""
    half = 0.5 * _vectors(rpy)
    cr, cp, cy = np.moveaxis(np.cos(half), -1, 0)
    sr, sp, sy = np.moveaxis(np.sin(half), -1, 0)
    return _canonical(
        np.stack(
            [
                cr * cp * cy + sr * sp * sy,
                sr * cp * cy - cr * sp * sy,
                cr * sp * cy + sr * cp * sy,
                cr * cp * sy - sr * sp * cy,
            ],
            axis=-1,
        )
    )


def to_rpy(q: ArrayLike) -> Array:
    """Convert to roll, pitch, yaw [rad] about fixed axes; pitch in [-pi/2, pi/2], the others in (-pi, pi].

    At a pitch of ±pi/2, roll and yaw rotate about the same axis: yaw is then 0.

    The half sum and difference of roll and yaw keep full precision there (Bernardes & Viollet, PLoS ONE 2022).
    """
    w, x, y, z = np.moveaxis(_quaternions(q), -1, 0)
    down, up = np.hypot(x + z, w - y), np.hypot(x - z, w + y)
    half_sum, half_difference = np.arctan2(x + z, w - y), np.arctan2(x - z, w + y)
    half_sum = np.where(down < _MIN_NORM, half_difference, half_sum)
    half_difference = np.where(up < _MIN_NORM, half_sum, half_difference)
    pitch = 2.0 * np.arctan2(up - down, up + down)
    rpy = np.stack([half_sum + half_difference, pitch, half_sum - half_difference], axis=-1)
    rpy = np.where(rpy > np.pi, rpy - 2.0 * np.pi, rpy)
    wrapped: Array = np.where(rpy <= -np.pi, rpy + 2.0 * np.pi, rpy)
    return wrapped


def to_matrix(q: ArrayLike) -> Array:
    """Convert unit quaternions to rotation matrices ``(..., 3, 3)``."""
    w, x, y, z = np.moveaxis(_quaternions(q), -1, 0)
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(R: ArrayLike) -> Array:
    """Convert rotation matrices ``(..., 3, 3)`` to quaternions.

    Raises:
        InputError: A matrix is not a rotation (not orthonormal within 1e-4, or a reflection).
    """
    R = np.asarray(R, dtype=np.float64)
    if R.shape[-2:] != (3, 3):
        raise InputError(f"rotation matrix has the shape {R.shape}", valid="(..., 3, 3)")
    error = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(initial=0.0)
    if not error < 1e-4 or np.any(np.linalg.det(R) < 0.0):
        raise InputError("the matrix is not a rotation", valid="orthonormal with determinant +1")
    trace = np.trace(R, axis1=-2, axis2=-1)
    diagonal = np.diagonal(R, axis1=-2, axis2=-1)
    # Four formulas; the one with the largest component loses no digits (Shepperd 1978).
    candidates = np.empty((*R.shape[:-2], 4, 4))
    a, b, c = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    d, e, f = R[..., 1, 0] + R[..., 0, 1], R[..., 0, 2] + R[..., 2, 0], R[..., 2, 1] + R[..., 1, 2]
    squares = np.concatenate([1.0 + trace[..., None], 1.0 + 2.0 * diagonal - trace[..., None]], axis=-1)
    for row, values in enumerate([(None, a, b, c), (a, None, d, e), (b, d, None, f), (c, e, f, None)]):
        for column, value in enumerate(values):
            candidates[..., row, column] = squares[..., row] if value is None else value
    best = np.argmax(squares, axis=-1)
    best_candidate = np.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :]
    return normalize(best_candidate)


def from_rotation_vector(vector: ArrayLike) -> Array:
    """Compute the exponential map: the rotation by ``|vector|`` [rad] about ``vector``, ``(..., 3)``."""
    vector = _vectors(vector)
    angle = np.linalg.norm(vector, axis=-1, keepdims=True)
    # np.sinc(x) = sin(pi x) / (pi x), exact at 0
    return _canonical(np.concatenate([np.cos(angle / 2.0), 0.5 * np.sinc(angle / (2.0 * np.pi)) * vector], axis=-1))


def to_rotation_vector(q: ArrayLike) -> Array:
    """Compute the logarithm: axis times angle [rad], angle in [0, pi]."""
    q = _canonical(_quaternions(q))
    w, u = q[..., :1], q[..., 1:]
    sine = np.linalg.norm(u, axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, w)
    scale = np.where(sine > _MIN_NORM, angle / np.maximum(sine, _MIN_NORM), 2.0)
    vector: Array = scale * u
    return vector


def slerp(a: ArrayLike, b: ArrayLike, s: ArrayLike) -> Array:
    """Interpolate from ``a`` (s = 0) to ``b`` (s = 1) at constant angular velocity, the shorter way."""
    a, b = _quaternions(a), _quaternions(b)
    s = np.asarray(s, dtype=np.float64)[..., None]
    dot = np.sum(a * b, axis=-1, keepdims=True)
    b = np.where(dot < 0.0, -b, b)
    # the angle from the chord, which keeps digits where acos of the dot product loses them
    half = np.arctan2(np.linalg.norm(b - a, axis=-1, keepdims=True), np.linalg.norm(a + b, axis=-1, keepdims=True))
    angle = 2.0 * half
    sine = np.sin(angle)
    is_small_angle = sine < 1e-9
    safe = np.where(is_small_angle, 1.0, sine)
    weight_a = np.where(is_small_angle, 1.0 - s, np.sin((1.0 - s) * angle) / safe)
    weight_b = np.where(is_small_angle, s, np.sin(s * angle) / safe)
    return normalize(weight_a * a + weight_b * b)


def from_two_vectors(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the smallest rotation from the direction of ``a`` to that of ``b``, both ``(..., 3)``.

    For opposite directions an arbitrary axis perpendicular to ``a`` is used.

    Raises:
        InputError: A vector is zero.
    """
    from_a, to_b = np.broadcast_arrays(_vectors(a), _vectors(b))
    length_a, length_b = (np.linalg.norm(v, axis=-1, keepdims=True) for v in (from_a, to_b))
    if np.any(length_a < 1e-150) or np.any(length_b < 1e-150):
        raise InputError("a vector is zero", valid="non-zero vectors")
    start = from_a / length_a
    bisector = start + to_b / length_b
    length = np.linalg.norm(bisector, axis=-1, keepdims=True)
    opposite = length < 1e-9
    bisector = bisector / np.where(opposite, 1.0, length)
    across = np.where(np.abs(start[..., :1]) < 0.6, np.cross(start, [1.0, 0.0, 0.0]), np.cross(start, [0.0, 1.0, 0.0]))
    rotation = np.concatenate([np.sum(start * bisector, axis=-1, keepdims=True), np.cross(start, bisector)], axis=-1)
    flipped = np.concatenate([np.zeros_like(length), across], axis=-1)
    return normalize(np.where(opposite, flipped, rotation))


def _canonical(q: Array) -> Array:
    """Choose the sign with ``w >= 0``; for half turns, the first non-zero axis component is positive."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    flip = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    signed: Array = np.where(flip[..., None], -q, q) + 0.0  # avoids -0.0
    return signed


def _quaternions(q: ArrayLike) -> Array:
    array = np.asarray(q, dtype=np.float64)
    if array.shape[-1:] != (4,):
        raise InputError(f"quaternions have the shape {array.shape}", valid="(..., 4): w, x, y, z")
    return array


def _vectors(v: ArrayLike) -> Array:
    array = np.asarray(v, dtype=np.float64)
    if array.shape[-1:] != (3,):
        raise InputError(f"vectors have the shape {array.shape}", valid="(..., 3)")
    return array
