"""Ellipses through points, in compiled code: the conic of least squares, and its axes."""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.compute.array_kernels import solve_spd_in_place
from roboyard.geometry.arrays import Array


def _fit_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((8, 2)), np.zeros(8), np.zeros(5))]


@kernel(examples=_fit_examples, error_model="numpy")
def fit_ellipse(points: Array, weights: Array, ellipse: Array) -> bool:
    """Ellipse of least squares through points.

    The conic A x² + B x y + C y² + D x + E y = 1 is fitted about the points' mean, in units of their spread; the mean
    lies inside, so that the right side may be one.

    Args:
        points: (n, 2).
        weights: (n,); 0: left out.
        ellipse: (5,) middle x and y, longer and shorter half axis, angle of the longer one [rad], written.

    Returns:
        False if fewer than six points count, or the conic is no ellipse.
    """
    total = mx = my = 0.0
    used = 0
    for k in range(len(points)):
        if weights[k] > 0.0:
            used += 1
            total += weights[k]
            mx += weights[k] * points[k, 0]
            my += weights[k] * points[k, 1]
    if used < 6:
        return False
    mx, my = mx / total, my / total
    spread = 0.0
    for k in range(len(points)):
        spread += weights[k] * ((points[k, 0] - mx) ** 2 + (points[k, 1] - my) ** 2)
    spread = math.sqrt(spread / total)
    if not spread > 0.0:
        return False
    normal, right, row = np.zeros((5, 5)), np.zeros(5), np.zeros(5)
    for k in range(len(points)):
        w = weights[k]
        if w > 0.0:
            x, y = (points[k, 0] - mx) / spread, (points[k, 1] - my) / spread
            row[0], row[1], row[2], row[3], row[4] = x * x, x * y, y * y, x, y
            for i in range(5):
                right[i] += w * row[i]
                for j in range(i + 1):
                    normal[i, j] += w * row[i] * row[j]
    if not solve_spd_in_place(normal, right, 1e-12):
        return False
    if not conic_axes(right[0], right[1], right[2], right[3], right[4], -1.0, ellipse):
        return False
    ellipse[0], ellipse[1] = mx + spread * ellipse[0], my + spread * ellipse[1]
    ellipse[2], ellipse[3] = spread * ellipse[2], spread * ellipse[3]
    return True


def _axes_examples() -> list[tuple[object, ...]]:
    return [(1.0, 0.0, 1.0, 0.0, 0.0, -1.0, np.zeros(5))]


@kernel(examples=_axes_examples, error_model="numpy")
def conic_axes(A: float, B: float, C: float, D: float, E: float, F: float, ellipse: Array) -> bool:
    """Middle, half axes and angle of the ellipse A x² + B x y + C y² + D x + E y + F = 0; False if it is none."""
    determinant = 4.0 * A * C - B * B
    if not determinant > 0.0:
        return False
    x, y = (B * E - 2.0 * C * D) / determinant, (B * D - 2.0 * A * E) / determinant
    level = -(F + 0.5 * (D * x + E * y))
    half, turn = 0.5 * (A + C), 0.5 * math.hypot(A - C, B)
    small, large = (half - turn) / level, (half + turn) / level
    if small > large:
        small, large = large, small
    if not small > 0.0:
        return False
    sign = 1.0 if level > 0.0 else -1.0
    ellipse[0], ellipse[1] = x, y
    ellipse[2], ellipse[3] = 1.0 / math.sqrt(small), 1.0 / math.sqrt(large)
    # the longer axis lies where the form grows least
    ellipse[4] = 0.5 * math.atan2(-sign * B, -sign * (A - C))
    return True


def ellipse_conic(ellipse: Array) -> Array:
    """Symmetric matrix (3, 3) of a conic, p' Q p = 0 for points p = (x, y, 1) of the ellipse (5,), negative inside."""
    x, y, a, b, angle = (float(value) for value in ellipse)
    c, s = math.cos(angle), math.sin(angle)
    T = np.array([[c / a, s / a, -(c * x + s * y) / a], [-s / b, c / b, (s * x - c * y) / b], [0.0, 0.0, 1.0]])
    return np.asarray(T.T @ np.diag([1.0, 1.0, -1.0]) @ T)
