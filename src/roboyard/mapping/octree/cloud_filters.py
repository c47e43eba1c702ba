"""Filters of a cloud before its insertion: transform to the map, height limits, and segmentation of the ground
plane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.config import check, parameter
from roboyard.geometry import SE3


def transform_and_crop(
    xyz: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]],
    T_map_sensor: SE3,
    min_z: float,
    max_z: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Transform points to the map, and keep those within height limits.

    Args:
        xyz: (n,) x, y and z in the sensor's frame [m]; points that are not finite are dropped.
        T_map_sensor: Pose of the sensor.
        min_z: Smallest height in the map [m].
        max_z: Largest height in the map [m].

    Returns:
        (m, 3) points [m], and the index (m,) of each among all.
    """
    x, y, z = (np.ascontiguousarray(column, dtype=np.float32) for column in xyz)
    return transform_and_crop_xyz(x, y, z, T_map_sensor.rotation_matrix(), T_map_sensor.translation, min_z, max_z)


@kernel(
    examples=lambda: [
        (*(np.zeros(1, np.float32),) * 3, np.eye(3), read_only(np.zeros(3)), 0.0, 1.0),
    ]
)
def transform_and_crop_xyz(
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    z: NDArray[np.float32],
    rotation: NDArray[np.float64],
    translation: NDArray[np.float64],
    min_z: float,
    max_z: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Transform and crop points by a pose ``rotation`` (3, 3), ``translation`` (3,); see `transform_and_crop`."""
    points, point_indices, count = np.empty((len(x), 3)), np.empty(len(x), np.int64), 0
    for i in range(len(x)):
        if not (np.isfinite(x[i]) and np.isfinite(y[i]) and np.isfinite(z[i])):
            continue
        for axis in range(3):
            rotated = rotation[axis, 0] * x[i] + rotation[axis, 1] * y[i] + rotation[axis, 2] * z[i]
            points[count, axis] = rotated + translation[axis]
        if min_z <= points[count, 2] <= max_z:
            point_indices[count] = i
            count += 1
    return points[:count].copy(), point_indices[:count].copy()


_RANSAC_ITERATIONS: Final = 100
_MIN_GROUND_POINTS: Final = 10


@dataclass(frozen=True)
class GroundFilter:
    """Parameters of the segmentation of the ground; names and defaults are those of octomap_server.

    Raises:
        ConfigError: a number out of range.
    """

    distance: float = parameter(
        0.04, unit="m", low=1e-4, high=10.0, doc="Largest distance of a point of the ground from its plane."
    )
    angle: float = parameter(
        0.15, unit="rad", low=0.0, high=1.5, doc="Largest angle between that plane and the robot's."
    )
    plane_distance: float = parameter(
        0.07, unit="m", low=0.0, high=10.0, doc="Largest distance of that plane from the robot's base."
    )

    def __post_init__(self) -> None:
        check(self, "ground_filter")


def segment_ground(
    points: NDArray[np.float64], settings: GroundFilter, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which points (n,) belong to the ground.

    RANSAC (Fischler and Bolles 1981) with a hundred samples finds the plane with most points, of those that the ground
    can be, and a least-squares fit refines it. Without such a plane, points at the height of the base, within
    ``plane_distance``, are ground.

    Args:
        points: (n, 3) in the robot's base frame, z up [m]; points that are not finite are no ground.
        settings: Parameters.
        random: Generator of the samples.
    """
    slope = math.tan(settings.angle)
    distances = np.hypot(points[:, 0], points[:, 1])
    with np.errstate(invalid="ignore"):
        candidate_indices = np.flatnonzero(
            np.abs(points[:, 2]) <= settings.plane_distance + settings.distance + slope * distances
        )
        is_at_base_height = np.abs(points[:, 2]) <= settings.plane_distance
    candidates = points[candidate_indices]
    best: NDArray[np.bool_] | None = None
    for _ in range(_RANSAC_ITERATIONS if len(candidates) >= _MIN_GROUND_POINTS else 0):
        a, b, c = candidates[random.integers(0, len(candidates), 3)]
        plane = _plane(np.cross(b - a, c - a), a, settings, slope)
        if plane is None:
            continue
        is_near_plane = np.abs(candidates @ plane[:3] + plane[3]) <= settings.distance
        if best is None or is_near_plane.sum() > best.sum():
            best = is_near_plane
    if best is None or best.sum() < _MIN_GROUND_POINTS:
        return np.asarray(is_at_base_height)
    centroid = candidates[best].mean(axis=0)
    normal = np.linalg.svd(candidates[best] - centroid, full_matrices=False)[2][2]
    plane = _plane(normal, centroid, settings, slope)
    is_ground = np.zeros(len(points), np.bool_)
    is_ground[candidate_indices] = (
        best if plane is None else np.abs(candidates @ plane[:3] + plane[3]) <= settings.distance
    )
    return is_ground


def _plane(
    normal: NDArray[np.float64], point: NDArray[np.float64], settings: GroundFilter, slope: float
) -> NDArray[np.float64] | None:
    """Return normal and offset (4,) of a plane through a point; None if it cannot be ground."""
    length = float(np.linalg.norm(normal))
    if length < 1e-9:
        return None
    unit_normal = normal / length
    if math.hypot(unit_normal[0], unit_normal[1]) > slope * abs(unit_normal[2]):
        return None
    offset = -float(unit_normal @ point)
    return np.array([*unit_normal, offset]) if abs(offset) <= settings.plane_distance else None
