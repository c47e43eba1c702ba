"""Camera models: projection of points to pixels, and rays of pixels.

The optical frame has x right, y down, z forward (REP 103).  Pixels are counted as in OpenCV and ROS: the center of the
first one is (0, 0), so the center of the complete image is ((width − 1) / 2, (height − 1) / 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from roboyard.geometry.arrays import F32, Array

ProjectionModel = Literal["plumb_bob", "equidistant", "stereographic", "equisolid", "orthographic"]

_MAX_ITERATIONS = 30
_TOLERANCE = 1e-9  # in normalized coordinates, at which the search for an undistorted point stops
_RESIDUAL_LIMIT = 1e-6  # in normalized coordinates: above it the search has failed

# Distance from the image center over the focal length, for a ray at an angle to the axis, and its inverse.
_FISHEYE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = {
    "equidistant": (lambda angle: angle, lambda r: r, math.pi),
    "stereographic": (lambda angle: 2.0 * np.tan(0.5 * angle), lambda r: 2.0 * np.arctan(0.5 * r), 0.999 * math.pi),
    "equisolid": (lambda angle: 2.0 * np.sin(0.5 * angle), lambda r: 2.0 * np.arcsin(0.5 * r), math.pi),
    "orthographic": (np.sin, np.arcsin, 0.5 * math.pi),
}
PROJECTION_MODELS: tuple[ProjectionModel, ...] = (
    "plumb_bob",
    "equidistant",
    "stereographic",
    "equisolid",
    "orthographic",
)


@dataclass(frozen=True, slots=True)
class CameraModel:
    """Camera model: projection, distortion and image size.

    ``plumb_bob`` is the pinhole with the distortion of D. Brown, "Decentering distortion of lenses", Photogrammetric
    Engineering 32 (1966), as OpenCV and ROS write it; the others are fisheye projections without distortion.

    Attributes:
        width: Width of the image [px].
        height: Height of the image [px].
        fx: Focal length along the rows [px].
        fy: Focal length along the columns [px].
        cx: Column of the principal point [px].
        cy: Row of the principal point [px].
        model: Projection model.
        distortion: k1, k2, p1, p2, k3 of ``plumb_bob``.
    """

    width: int = 640
    height: int = 480
    fx: float = 554.4
    fy: float = 554.4
    cx: float = 319.5
    cy: float = 239.5
    model: ProjectionModel = "plumb_bob"
    distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)

    @classmethod
    def from_field_of_view(
        cls,
        width: int,
        height: int,
        horizontal_fov: float,
        model: ProjectionModel = "plumb_bob",
        distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0),
    ) -> CameraModel:
        """Make a camera model with square pixels and a centered principal point.

        Args:
            width: Width of the image [px].
            height: Height of the image [px].
            horizontal_fov: Angle between the outer edges of the image, without distortion [rad].
            model: Projection model.
            distortion: Distortion of ``plumb_bob``.
        """
        half_fov = 0.5 * horizontal_fov
        edge_radius = math.tan(half_fov) if model == "plumb_bob" else float(_FISHEYE[model][0](half_fov))
        focal = 0.5 * width / edge_radius
        return cls(width, height, focal, focal, 0.5 * (width - 1), 0.5 * (height - 1), model, distortion)

    @property
    def matrix(self) -> Array:
        """Camera matrix (3, 3) [px]."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    @property
    def is_undistorted(self) -> bool:
        """True for a pinhole camera without distortion."""
        return self.model == "plumb_bob" and not any(self.distortion)

    @property
    def horizontal_fov(self) -> float:
        """Angle between the outer edges of the image in the row of the principal point, without distortion [rad]."""
        left, right = (self.cx + 0.5) / self.fx, (self.width - 0.5 - self.cx) / self.fx
        if self.model == "plumb_bob":
            return math.atan(left) + math.atan(right)
        radius_to_angle = _FISHEYE[self.model][1]
        return float(radius_to_angle(left) + radius_to_angle(right))

    def project(self, points: ArrayLike) -> Array:
        """Project points (…, 3) in the optical frame [m] to pixels (…, 2); NaN for points outside the view."""
        p = np.asarray(points, dtype=np.float64)
        x, y, z = p[..., 0], p[..., 1], p[..., 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.model == "plumb_bob":
                u, v = _distort(np.where(z > 0.0, x / z, np.nan), np.where(z > 0.0, y / z, np.nan), self.distortion)
            else:
                angle_to_radius, _, max_angle = _FISHEYE[self.model]
                radius = np.hypot(x, y)
                angle = np.arctan2(radius, z)
                scale = np.where(radius > 0.0, angle_to_radius(angle) / radius, 1.0)
                scale = np.where(angle <= max_angle, scale, np.nan)
                u, v = scale * x, scale * y
        return np.stack([self.fx * u + self.cx, self.fy * v + self.cy], axis=-1)

    def rays(self, pixels: ArrayLike) -> Array:
        """Compute the unit vectors (…, 3) in the optical frame of pixels (…, 2); NaN for pixels without a ray."""
        q = np.asarray(pixels, dtype=np.float64)
        u, v = (q[..., 0] - self.cx) / self.fx, (q[..., 1] - self.cy) / self.fy
        if self.model == "plumb_bob":
            x, y = _undistort(u, v, self.distortion)
            z = np.ones_like(x)
        else:
            angle_to_radius, radius_to_angle, max_angle = _FISHEYE[self.model]
            radius = np.hypot(u, v)
            with np.errstate(invalid="ignore", divide="ignore"):
                angle = np.where(radius <= float(angle_to_radius(max_angle)) + 1e-12, radius_to_angle(radius), np.nan)
                scale = np.where(radius > 0.0, np.sin(angle) / radius, 1.0)
            x, y, z = scale * u, scale * v, np.cos(angle)
        length = np.sqrt(x * x + y * y + z * z)
        return np.stack([x / length, y / length, z / length], axis=-1)

    def pixel_rays(self) -> Array:
        """Return the rays of every pixel, (height, width, 3)."""
        columns, rows = np.meshgrid(np.arange(self.width, dtype=float), np.arange(self.height, dtype=float))
        return self.rays(np.stack([columns, rows], axis=-1))

    def ray_slopes(self) -> F32:
        """Return x / z and y / z of the ray of each pixel, (height, width, 2) float32, read-only.

        They are NaN for pixels without a ray and for rays that point backward. The slopes of the eight camera models
        used last are cached, because they take longer to compute than the usual operations on an image.
        """
        return _ray_slopes(self)

    def pinhole_slopes(self) -> tuple[Array, Array]:
        """Return x / z (width,) of the columns and y / z (height,) of the rows, without the distortion."""
        columns, rows = np.arange(self.width, dtype=np.float64), np.arange(self.height, dtype=np.float64)
        return (columns - self.cx) / self.fx, (rows - self.cy) / self.fy

    def find_distortion_fold(self) -> tuple[float, float] | None:
        """Return an edge pixel that no ray reaches because the distortion is not invertible there, or None."""
        if self.model != "plumb_bob" or self.is_undistorted:
            return None
        x, y = np.linspace(0.0, self.width - 1.0, 33), np.linspace(0.0, self.height - 1.0, 33)
        edge = np.concatenate(
            [np.stack([x, np.full(33, row)], axis=1) for row in (0.0, self.height - 1.0)]
            + [np.stack([np.full(33, column), y], axis=1) for column in (0.0, self.width - 1.0)]
        )
        without_ray = np.flatnonzero(~np.isfinite(self.rays(edge)).all(axis=1))
        return (float(edge[without_ray[0], 0]), float(edge[without_ray[0], 1])) if len(without_ray) else None


@lru_cache(maxsize=8)
def _ray_slopes(camera_model: CameraModel) -> F32:
    rays = camera_model.pixel_rays()
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.where(rays[..., 2:] > 1e-6, rays[..., :2] / rays[..., 2:], np.nan).astype(np.float32)
    slopes.flags.writeable = False
    return slopes


def _distort(x: Array, y: Array, distortion: tuple[float, ...]) -> tuple[Array, Array]:
    """Apply Brown's distortion to normalized coordinates."""
    k1, k2, p1, p2, k3 = distortion
    r2 = x * x + y * y
    radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
    return (
        x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x),
        y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y,
    )


def _undistort(u: Array, v: Array, distortion: tuple[float, ...]) -> tuple[Array, Array]:
    """Invert `_distort` by Newton's method; NaN where the distortion is not invertible."""
    if not any(distortion):
        return u.copy(), v.copy()
    k1, k2, p1, p2, k3 = distortion
    x, y = u.copy(), v.copy()
    with np.errstate(all="ignore"):
        for _ in range(_MAX_ITERATIONS):
            bu, bv = _distort(x, y, distortion)
            du, dv = u - bu, v - bv
            r2 = x * x + y * y
            radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
            slope = 2.0 * (k1 + r2 * (2.0 * k2 + 3.0 * k3 * r2))
            a = radial + slope * x * x + 2.0 * p1 * y + 6.0 * p2 * x
            b = slope * x * y + 2.0 * p1 * x + 2.0 * p2 * y
            d = radial + slope * y * y + 6.0 * p1 * y + 2.0 * p2 * x
            determinant = a * d - b * b
            x, y = x + (d * du - b * dv) / determinant, y + (a * dv - b * du) / determinant
            if not np.nanmax(np.abs(du) + np.abs(dv), initial=0.0) > _TOLERANCE:
                break
        bu, bv = _distort(x, y, distortion)
        # Solutions beyond the fold are invalid: there the distorted radius decreases.
        r2 = x * x + y * y
        forward = 1.0 + r2 * (3.0 * k1 + r2 * (5.0 * k2 + r2 * 7.0 * k3)) > 0.0
        is_valid = (np.abs(bu - u) + np.abs(bv - v) < _RESIDUAL_LIMIT) & forward
    return np.where(is_valid, x, np.nan), np.where(is_valid, y, np.nan)
