"""Rotations in plain numbers: for single poses ten times faster than small arrays."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError


def normalize_quaternion(w: float, x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """Length 1 and ``w >= 0``; what is exact to rounding (12 half units) stays as it is, so doing it twice is once."""
    square = w * w + x * x + y * y + z * z
    if not -1.5e-15 < square - 1.0 < 1.5e-15:
        length = math.sqrt(square)
        w, x, y, z = w / length, x / length, y / length, z / length
    if w < 0.0 or (w == 0.0 and (x < 0.0 or (x == 0.0 and (y < 0.0 or (y == 0.0 and z < 0.0))))):
        return -w + 0.0, -x + 0.0, -y + 0.0, -z + 0.0
    return w + 0.0, x + 0.0, y + 0.0, z + 0.0


def quaternion_from_rpy(roll: float, pitch: float, yaw: float) -> tuple[float, float, float, float]:
    """Quaternion w, x, y, z of turns about fixed axes [rad]."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def rotate_vector(
    w: float, x: float, y: float, z: float, vx: float, vy: float, vz: float
) -> tuple[float, float, float]:
    """The vector v turned by the quaternion."""
    tx, ty, tz = 2.0 * (y * vz - z * vy), 2.0 * (z * vx - x * vz), 2.0 * (x * vy - y * vx)
    return (
        vx + w * tx + y * tz - z * ty,
        vy + w * ty + z * tx - x * tz,
        vz + w * tz + x * ty - y * tx,
    )


def as_points(values: object, size: int) -> NDArray[np.float64]:
    """What stands right of ``T @`` as an array (..., size) [m].

    Raises:
        InputError: it holds no points of that size.
    """
    try:
        points = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"T @ {type(values).__name__}", valid=f"a pose of the same kind or points (..., {size})"
        ) from error
    if points.shape[-1:] != (size,):
        raise InputError(f"points of shape {points.shape}", valid=f"(..., {size})")
    return points


def as_floats(values: ArrayLike, count: int, name: str) -> tuple[float, ...]:
    """``values`` as ``count`` plain numbers.

    Raises:
        InputError: no numbers, or another count.
    """
    try:
        items = values if isinstance(values, tuple) else np.asarray(values, dtype=np.float64).tolist()
        numbers = tuple(map(float, items))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} of {np.shape(values)}", valid=f"{count} numbers") from error
    if len(numbers) != count:
        raise InputError(f"{name} of {len(numbers)} numbers", valid=f"{count} numbers")
    return numbers
