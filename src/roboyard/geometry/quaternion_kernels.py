"""Kernels: single unit quaternions (w, x, y, z) and vectors as tuples of numbers, which need no memory.

They are the compiled counterparts of `quaternions`, in a module of their own because numba takes long to import.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from roboyard.compute import kernel
from roboyard.geometry.arrays import Vec3

Quaternion: TypeAlias = tuple[float, float, float, float]


@kernel(inline="always")
def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """Compute the rotation ``b`` followed by the rotation ``a``."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@kernel(inline="always")
def conjugate(q: Quaternion) -> Quaternion:
    """Compute the inverse rotation."""
    return (q[0], -q[1], -q[2], -q[3])


@kernel(inline="always")
def rotate_vector(q: Quaternion, v: Vec3) -> Vec3:
    """Rotate a vector by the unit quaternion."""
    w, x, y, z = q
    tx, ty, tz = 2.0 * (y * v[2] - z * v[1]), 2.0 * (z * v[0] - x * v[2]), 2.0 * (x * v[1] - y * v[0])
    return (
        v[0] + w * tx + y * tz - z * ty,
        v[1] + w * ty + z * tx - x * tz,
        v[2] + w * tz + x * ty - y * tx,
    )


@kernel(inline="always")
def rotated_x_axis(q: Quaternion) -> Vec3:
    """Rotate the x axis by the unit quaternion: the first column of its rotation matrix."""
    w, x, y, z = q
    return (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y))


@kernel(inline="always")
def dot(a: Vec3, b: Vec3) -> float:
    """Compute the inner product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel(inline="always")
def add_scaled(a: Vec3, scale: float, b: Vec3) -> Vec3:
    """Compute ``a + scale * b``."""
    return (a[0] + scale * b[0], a[1] + scale * b[1], a[2] + scale * b[2])


@kernel(inline="always")
def subtract(a: Vec3, b: Vec3) -> Vec3:
    """Compute ``a - b``."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel(inline="always")
def shortest_rotation(a: Vec3, b: Vec3) -> Quaternion:
    """Compute the rotation by the smallest angle that maps unit vector ``a`` to unit vector ``b``."""
    w = 1.0 + dot(a, b)
    if w < 1e-9:  # the vectors are opposite: any perpendicular axis is valid
        if abs(a[0]) < 0.9:
            x, y, z = 0.0, a[2], -a[1]
        else:
            x, y, z = -a[2], 0.0, a[0]
        w = 0.0
    else:
        x, y, z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
    length = math.sqrt(w * w + x * x + y * y + z * z)
    return (w / length, x / length, y / length, z / length)
