"""Poses of discs in the camera frame, from their ellipses and from planes in depth images; and pairs of discs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, Array
from roboyard.vision.discs.disc_detector import Disc, DiscConfig
from roboyard.vision.discs.ellipse import CirclePose, compute_circle_poses, fit_ellipse, viewing_cone

_INNER_FRACTION = 0.9
"""Fraction of the ellipse's axes that is used: depth is blurred at edges."""
_MIN_PIXELS, _MIN_PLANE_PIXELS = 6, 40
_ITERATIONS, _OUTLIER_STD_RATIO = 4, 3.0


@dataclass(frozen=True, eq=False)
class DepthPlane:
    """A plane fitted to a part of a depth image.

    Attributes:
        coefficients: (3,) 1 / z = coefficients · (x / z, y / z, 1) [1/m].
        normal: Unit vector (3,) towards the camera; None if too few pixels are valid.
        residual_std: Standard deviation of the depth from the plane [m].
        valid_fraction: Fraction of the pixels with valid depth.
    """

    coefficients: Array
    normal: Array | None
    residual_std: float
    valid_fraction: float

    def distance_along(self, ray: Array) -> float:
        """Return the distance from the camera to the plane along a unit vector (3,) [m]."""
        return float(1.0 / (self.coefficients @ ray))


def fit_depth_plane(depth: F32, camera_model: CameraModel, ellipse: Array) -> DepthPlane | None:
    """Fit a plane to the depth inside an ellipse (5,) [px]; None if too few pixels are valid.

    Inverse depth is linear in the image of a plane, and its noise is nearly the same everywhere.  Pixels with residuals
    above three standard deviations are left out.  With few valid pixels the plane is frontal, at their mean.
    """
    x, y, a, b, angle = (float(value) for value in ellipse)
    left, right = max(int(x - a), 0), min(int(x + a) + 2, camera_model.width)
    top, bottom = max(int(y - a), 0), min(int(y + a) + 2, camera_model.height)
    columns, rows = np.meshgrid(np.arange(left, right), np.arange(top, bottom))
    c, s = math.cos(angle), math.sin(angle)
    u, v = c * (columns - x) + s * (rows - y), c * (rows - y) - s * (columns - x)
    inside = (u / a) ** 2 + (v / b) ** 2 <= _INNER_FRACTION**2
    z = depth[top:bottom, left:right][inside].astype(np.float64)
    is_valid = np.isfinite(z) & (z > 0.0)
    if is_valid.sum() < _MIN_PIXELS:
        return None
    z = z[is_valid]
    is_on_surface = np.abs(z - np.median(z)) <= 0.1 * np.median(z)  # excludes the floor behind the edge of a table
    if is_on_surface.sum() < _MIN_PIXELS:  # one half is far behind the other half
        return None
    pixels = np.stack([columns[inside], rows[inside]], axis=1)[is_valid][is_on_surface].astype(np.float64)
    z, valid_fraction = z[is_on_surface], float(is_valid.mean())
    rays = camera_model.rays(pixels)
    homogeneous_points = np.concatenate([rays[:, :2] / rays[:, 2:], np.ones((len(rays), 1))], axis=1)
    inverse_depth = 1.0 / z
    if len(z) < _MIN_PLANE_PIXELS:
        return DepthPlane(np.array([0.0, 0.0, float(np.mean(inverse_depth))]), None, float(np.std(z)), valid_fraction)
    is_inlier = np.ones(len(z), dtype=bool)
    coefficients, residuals = np.zeros(3), np.zeros(len(z))
    for _ in range(_ITERATIONS):
        inlier_points = homogeneous_points[is_inlier]
        mean = inlier_points[:, :2].mean(axis=0)
        centered = inlier_points[:, :2] - mean
        slopes = np.linalg.solve(centered.T @ centered + 1e-15 * np.eye(2), centered.T @ inverse_depth[is_inlier])
        coefficients = np.array([*slopes, float(inverse_depth[is_inlier].mean() - slopes @ mean)])
        residuals = inverse_depth - homogeneous_points @ coefficients
        residual_std = 1.4826 * float(np.median(np.abs(residuals[is_inlier])))
        is_inlier = np.abs(residuals) <= _OUTLIER_STD_RATIO * max(residual_std, 1e-9)
    normal = -coefficients / np.linalg.norm(coefficients)
    return DepthPlane(coefficients, normal, float(np.std(residuals[is_inlier]) * np.mean(z) ** 2), valid_fraction)


_MARK_STD = 0.15
"""Standard deviation of the measured position of a mark [px]."""
_AMBIGUITY_ANGLE = math.radians(12.0)
"""A depth plane decides between the two poses of a disc if its angles to them differ by more than this."""


@dataclass(frozen=True, eq=False)
class LocatedDisc:
    """A disc with its pose in the camera's optical frame.

    Attributes:
        disc: The detected disc.
        pixel: Projection of its center (2,) [px]; tilt and distance move it from the center of the ellipse.
        position: Position of its center (3,) [m].
        normal: Unit vector (3,) towards the camera, from the ellipse.
        alternative_normal: Normal of the other pose with the same ellipse.
        diameter: Diameter of the real disc [m].
        has_depth: Whether distance and diameter are from depth; otherwise the diameter was assumed.
        depth_plane: The plane of the depth image there; None if there is none.
    """

    disc: Disc
    pixel: Array
    position: Array
    normal: Array
    alternative_normal: Array
    diameter: float
    has_depth: bool
    depth_plane: DepthPlane | None


def project_center(disc: Disc, camera_model: CameraModel) -> Array:
    """Estimate the projection (2,) of a disc's own center from its outline and from the position of its mark [px].

    A circle's center is not projected to the center of its ellipse (J. Heikkilä, "Geometric camera calibration using
    circular control points", PAMI 2000).  The circle has two possible poses; the position of the mark weighs them.
    """
    return _estimate_center(disc, camera_model, _estimate_circle_poses(disc, camera_model))


def locate_disc(
    disc: Disc, camera_model: CameraModel, depth: F32 | None = None, *, diameter: float | None = None
) -> LocatedDisc | None:
    """Estimate the pose of a disc; None if neither depth nor a diameter gives its distance.

    Args:
        disc: As `detect_discs` gives it.
        camera_model: Camera model of the image.
        depth: (h, w) depth of the same camera, or registered to it [m]; not finite or not above 0: unknown.
        diameter: Diameter that is assumed without depth [m].

    Raises:
        InputError: The depth image has another size than the color image.
    """
    if depth is not None and depth.shape != (camera_model.height, camera_model.width):
        raise InputError(
            f"depth of {depth.shape[1]} x {depth.shape[0]} pixels for an image of {camera_model.width} x "
            f"{camera_model.height}",
            valid="depth registered to the color camera",
        )
    poses = _estimate_circle_poses(disc, camera_model)
    depth_plane = None if depth is None else fit_depth_plane(depth, camera_model, disc.ellipse)
    if depth_plane is None and diameter is None:
        return None
    first, second = _rank_poses(disc, camera_model, poses, depth_plane)
    pixel = (
        camera_model.project(first.center)
        if _is_unambiguous(poses, depth_plane)
        else _estimate_center(disc, camera_model, poses)
    )
    # The pose is of a circle of radius 1: its scale is the radius.
    if depth_plane is None:
        radius = 0.5 * float(diameter or 0.0)
        position = radius * first.center
    else:
        ray = camera_model.rays(pixel)
        position = ray * depth_plane.distance_along(ray)
        radius = float(position[2] / first.center[2])
    return LocatedDisc(
        disc, pixel, position, first.normal, second.normal, 2.0 * radius, depth_plane is not None, depth_plane
    )


def locate_discs(
    discs: list[Disc], camera_model: CameraModel, depth: F32 | None, config: DiscConfig
) -> list[LocatedDisc]:
    """Locate the discs with the right diameter, if depth shows it; the nearest to the optical axis first.

    Raises:
        InputError: The depth image has another size than the color image.
    """
    located = (locate_disc(disc, camera_model, depth, diameter=config.diameter) for disc in discs)
    matching = [
        one
        for one in located
        if one is not None and (not one.has_depth or abs(one.diameter - config.diameter) <= config.diameter_tolerance)
    ]
    return sorted(matching, key=lambda one: math.hypot(one.position[0], one.position[1]))


def _estimate_circle_poses(disc: Disc, camera_model: CameraModel) -> tuple[CirclePose, CirclePose]:
    rays = camera_model.rays(disc.outline_points)
    points = rays[:, :2] / rays[:, 2:]
    points = np.ascontiguousarray(points[np.isfinite(points).all(axis=1)])
    ellipse = np.zeros(5)
    if not fit_ellipse(points, np.ones(len(points)), ellipse):
        raise InputError("the outline of a disc is outside the camera model", valid="the camera model of the image")
    return compute_circle_poses(viewing_cone(ellipse))


def _estimate_center(disc: Disc, camera_model: CameraModel, poses: tuple[CirclePose, CirclePose]) -> Array:
    offsets = np.array([camera_model.project(pose.center) - disc.center for pose in poses])
    # The mark is a smaller concentric circle: its ellipse is offset by the square of its relative size, which is small.
    squared_deviations = np.sum((disc.mark_offset - offsets) ** 2, axis=1) / (2.0 * _MARK_STD**2)
    weights = np.exp(squared_deviations.min() - squared_deviations) if disc.mark_contrast > 0.0 else np.ones(2)
    return np.asarray(disc.center + weights @ offsets / weights.sum())


def _angle_between(a: Array, b: Array) -> float:
    return math.acos(min(1.0, max(-1.0, float(a @ b))))


def _is_unambiguous(poses: tuple[CirclePose, CirclePose], depth_plane: DepthPlane | None) -> bool:
    if depth_plane is None or depth_plane.normal is None:
        return False
    return (
        abs(_angle_between(poses[0].normal, depth_plane.normal) - _angle_between(poses[1].normal, depth_plane.normal))
        > _AMBIGUITY_ANGLE
    )


def _rank_poses(
    disc: Disc, camera_model: CameraModel, poses: tuple[CirclePose, CirclePose], depth_plane: DepthPlane | None
) -> tuple[CirclePose, CirclePose]:
    """Sort the two poses, the more probable one first."""
    if depth_plane is not None and depth_plane.normal is not None and _is_unambiguous(poses, depth_plane):
        errors = [_angle_between(pose.normal, depth_plane.normal) for pose in poses]
    else:
        center = _estimate_center(disc, camera_model, poses)
        errors = [float(np.linalg.norm(camera_model.project(pose.center) - center)) for pose in poses]
    return poses if errors[0] <= errors[1] else (poses[1], poses[0])


@dataclass(frozen=True, eq=False)
class DiscPair:
    """Two discs at a given distance.

    Attributes:
        first: One disc.
        second: The other disc.
        position: Midpoint of their centers (3,), in the camera's optical frame [m].
        distance: Distance of their centers [m].
        diameter: Mean of their diameters [m].
    """

    first: LocatedDisc
    second: LocatedDisc
    position: Array
    distance: float
    diameter: float


def find_disc_pairs(discs: Sequence[LocatedDisc], config: DiscConfig) -> list[DiscPair]:
    """Find pairs whose distance is within the tolerance, the smallest error first."""
    pairs = []
    for one, two in combinations(discs, 2):
        distance = float(np.linalg.norm(one.position - two.position))
        if abs(distance - config.pair_distance) <= config.pair_distance_tolerance:
            center = 0.5 * (one.position + two.position)
            pairs.append(DiscPair(one, two, center, distance, 0.5 * (one.diameter + two.diameter)))
    return sorted(pairs, key=lambda pair: abs(pair.distance - config.pair_distance))
