"""The plane that a depth camera sees inside an ellipse."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, Array

_INNER = 0.9
"""Share of the ellipse that counts: depth blurs at edges."""
_LEAST, _FOR_PLANE = 6, 40
_ROUNDS, _FAR = 4, 3.0


@dataclass(frozen=True, eq=False)
class DepthPlane:
    """What depth tells about a place.

    Attributes:
        coefficients: (3,) 1 / z = coefficients · (x / z, y / z, 1) [1/m].
        normal: Unit vector (3,) towards the camera; None where too few pixels are known for one.
        spread: Standard deviation of the depth from the plane [m].
        known: Share of the pixels whose depth is known.
    """

    coefficients: Array
    normal: Array | None
    spread: float
    known: float

    def distance_along(self, ray: Array) -> float:
        """From the camera to the plane along a unit vector (3,) [m]."""
        return float(1.0 / (self.coefficients @ ray))


def surface_at(depth: F32, lens: CameraModel, ellipse: Array) -> DepthPlane | None:
    """Plane through the depth inside an ellipse (5,) [px]; None where too little is known.

    Inverse depth is linear in the picture of a plane, and its noise there is nearly the same everywhere.  Pixels that
    lie off by three standard deviations are left out.  Where few are known, their mean is taken, as if seen squarely.
    """
    x, y, a, b, angle = (float(value) for value in ellipse)
    left, right = max(int(x - a), 0), min(int(x + a) + 2, lens.width)
    top, bottom = max(int(y - a), 0), min(int(y + a) + 2, lens.height)
    columns, rows = np.meshgrid(np.arange(left, right), np.arange(top, bottom))
    c, s = math.cos(angle), math.sin(angle)
    u, v = c * (columns - x) + s * (rows - y), c * (rows - y) - s * (columns - x)
    inside = (u / a) ** 2 + (v / b) ** 2 <= _INNER**2
    z = depth[top:bottom, left:right][inside].astype(np.float64)
    good = np.isfinite(z) & (z > 0.0)
    if good.sum() < _LEAST:
        return None
    z = z[good]
    near = np.abs(z - np.median(z)) <= 0.1 * np.median(z)  # not the floor behind a table's edge
    if near.sum() < _LEAST:  # half of it is far behind the other half
        return None
    pixels = np.stack([columns[inside], rows[inside]], axis=1)[good][near].astype(np.float64)
    z, known = z[near], float(good.mean())
    rays = lens.rays(pixels)
    flat = np.concatenate([rays[:, :2] / rays[:, 2:], np.ones((len(rays), 1))], axis=1)
    inverse = 1.0 / z
    if len(z) < _FOR_PLANE:
        return DepthPlane(np.array([0.0, 0.0, float(np.mean(inverse))]), None, float(np.std(z)), known)
    kept = np.ones(len(z), dtype=bool)
    coefficients, off = np.zeros(3), np.zeros(len(z))
    for _ in range(_ROUNDS):
        part = flat[kept]
        middle = part[:, :2].mean(axis=0)
        centred = part[:, :2] - middle
        slopes = np.linalg.solve(centred.T @ centred + 1e-15 * np.eye(2), centred.T @ inverse[kept])
        coefficients = np.array([*slopes, float(inverse[kept].mean() - slopes @ middle)])
        off = inverse - flat @ coefficients
        spread = 1.4826 * float(np.median(np.abs(off[kept])))
        kept = np.abs(off) <= _FAR * max(spread, 1e-9)
    normal = -coefficients / np.linalg.norm(coefficients)
    return DepthPlane(coefficients, normal, float(np.std(off[kept]) * np.mean(z) ** 2), known)
