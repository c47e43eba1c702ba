"""Mass and inertia of a link from its collision shapes, where ``<inertial auto="true">`` asks for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Box, Capsule, Collision, Cone, Cylinder, Ellipsoid, Geometry, Sphere

Array = NDArray[np.float64]


def shape_inertia(shape: Geometry, density: float) -> tuple[float, float, tuple[float, float, float]] | None:
    """Mass [kg], height of the centre of mass above the shape's frame [m], and principal moments [kg m²].

    Textbook formulas of homogeneous bodies; None for meshes, planes, terrain and prisms.  Results that are too large
    for floating-point numbers are infinite or NaN.
    """
    match shape:
        case Box((x, y, z)):
            m = density * x * y * z
            return m, 0.0, (m * (y * y + z * z) / 12, m * (x * x + z * z) / 12, m * (x * x + y * y) / 12)
        case Sphere(r):
            m = density * 4 / 3 * math.pi * _cube(r)
            return m, 0.0, (0.4 * m * r * r,) * 3
        case Ellipsoid((a, b, c)):
            m = density * 4 / 3 * math.pi * a * b * c
            return m, 0.0, (m * (b * b + c * c) / 5, m * (a * a + c * c) / 5, m * (a * a + b * b) / 5)
        case Cylinder(r, h):
            m = density * math.pi * r * r * h
            side = m * (3 * r * r + h * h) / 12
            return m, 0.0, (side, side, m * r * r / 2)
        case Capsule(r, h):
            tube, ball = density * math.pi * r * r * h, density * 4 / 3 * math.pi * _cube(r)
            side = tube * (r * r / 4 + h * h / 12) + ball * (0.4 * r * r + h * h / 4 + 3 * h * r / 8)
            return tube + ball, 0.0, (side, side, tube * r * r / 2 + 0.4 * ball * r * r)
        case Cone(r, h):
            m = density * math.pi * r * r * h / 3
            side = 3 * m / 80 * (4 * r * r + h * h)
            return m, -h / 4, (side, side, 0.3 * m * r * r)
    return None


def _cube(length: float) -> float:
    """``length**3``, infinite where Python raises OverflowError."""
    try:
        return length**3
    except OverflowError:
        return math.inf


@np.errstate(over="ignore", invalid="ignore")
def collisions_inertia(
    parts: Sequence[tuple[Collision, float]],
) -> tuple[float, Array, Array] | None:
    """Mass [kg], center of mass (3,) [m] and inertia (3, 3) about it [kg m²], in link axes.

    Values that are too large for floating-point numbers are infinite or NaN (``is_finite``); None if a shape has no
    formula, or the shapes have no volume.

    Args:
        parts: Collisions with their densities [kg/m³].
    """
    bodies = []
    for collision, density in parts:
        properties = shape_inertia(collision.geometry, density)
        if properties is None:
            return None
        mass, height, moments = properties
        R = collision.T_link_geom.rotation_matrix()
        center = collision.T_link_geom @ np.array([0.0, 0.0, height])
        bodies.append((mass, center, R @ np.diag(moments) @ R.T))
    total = sum(mass for mass, _, _ in bodies)
    if total == 0.0:
        return None
    com = sum((mass * center for mass, center, _ in bodies), np.zeros(3)) / total
    inertia = np.zeros((3, 3))
    for mass, center, body_inertia in bodies:
        arm = center - com
        inertia += body_inertia + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return total, com, inertia


def is_finite(properties: tuple[float, Array, Array]) -> bool:
    """Whether mass, center of mass and inertia are numbers that can be computed with."""
    mass, com, inertia = properties
    return math.isfinite(mass) and bool(np.isfinite(com).all() and np.isfinite(inertia).all())
