"""Size of a model: bounding box, bounding radius, footprint polygon, lowest point of its collision shapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from roboyard.config import ValueConstraint
from roboyard.description import Collision, Geometry, Mesh, Model, Polyline
from roboyard.description.meshes.files import load_mesh
from roboyard.description.shapes import bounding_half_extents
from roboyard.errors import DescriptionError, InputError
from roboyard.geometry import SE2, SE3

PoseLike = Sequence[float] | SE2 | SE3
"""(x, y, yaw) or ``SE2``: standing on the ground; (x, y, z, roll, pitch, yaw) or ``SE3``: as it is [m, rad]."""
Pose = (
    Annotated[tuple[float, float, float], ValueConstraint(units=("m", "m", "rad"))]
    | Annotated[
        tuple[float, float, float, float, float, float], ValueConstraint(units=("m", "m", "m", "rad", "rad", "rad"))
    ]
)
"""The same in a file, with units."""
POSE_FORMAT = "[x, y, yaw] or [x, y, z, roll, pitch, yaw]"

FootprintPolygon = tuple[tuple[float, float], ...]
"""Corners (x, y) of a robot's footprint in its base frame [m]; empty where nobody knows them."""

_DEFAULT_HALF_EXTENT = 0.1
"""Half extent used for a shape whose size is unknown [m]."""


def bounding_radius(model: Model) -> float:
    """Compute the radius [m] of the circle about the model's origin that contains all collision shapes, seen from
    above.
    """
    return max(
        (float(np.hypot(corner[0], corner[1])) for corner in _collision_corners(model)), default=_DEFAULT_HALF_EXTENT
    )


def half_length(model: Model) -> float:
    """Compute half the extent of all collision shapes along x [m], assumed to be centered at the model's origin."""
    return max((float(corner[0]) for corner in _collision_corners(model)), default=_DEFAULT_HALF_EXTENT)


def footprint_polygon(configured_footprint: FootprintPolygon, model: Model) -> FootprintPolygon:
    """Return the footprint polygon [m]: the configured one, else the convex hull of all collision shapes."""
    if configured_footprint:
        return configured_footprint
    points = np.array([corner[:2] for corner in _collision_corners(model)]).reshape(-1, 2)
    if len(points) < 3 or np.linalg.matrix_rank(points - points[0], tol=1e-6) < 2:
        return ()
    from scipy.spatial import ConvexHull

    corners = points[ConvexHull(points).vertices]
    return tuple((float(x), float(y)) for x, y in corners)


def bounding_box(model: Model) -> tuple[float, float, float]:
    """Compute the edge lengths [m] of the box about the model's origin that contains all collision shapes."""
    corners = np.abs(np.array(list(_collision_corners(model))).reshape(-1, 3)).max(axis=0, initial=0.0)
    x, y, z = (2.0 * corners).tolist()
    return x, y, z


def min_height(model: Model) -> float:
    """Compute the lowest height [m] of the collision shapes in the model frame, with all joints at zero; 0 without
    shapes.
    """
    return min((float(corner[2]) for corner in _collision_corners(model)), default=0.0)


def _collision_corners(model: Model) -> Iterator[NDArray[np.float64]]:
    for link in model.links:
        for collision in link.collisions:
            yield from link.T_model_link @ (collision.T_link_geom @ _shape_corners(collision))


def _shape_corners(collision: Collision) -> NDArray[np.float64]:
    """Return the eight corners of a shape's bounding box in its own frame (8, 3)."""
    low, high = _shape_extent(collision.geometry)
    return np.array(list(itertools.product(*zip(low, high, strict=True))), dtype=float)


def _shape_extent(geometry: Geometry) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    if isinstance(geometry, Mesh) and (geometry.file or geometry.inline):
        return _mesh_extent(geometry)
    if isinstance(geometry, Polyline):
        half_extents = (max(math.hypot(*p) for contour in geometry.points for p in contour),) * 3
    else:
        half_extents = bounding_half_extents(geometry) or (_DEFAULT_HALF_EXTENT,) * 3
    return (-half_extents[0], -half_extents[1], -half_extents[2]), (half_extents[0], half_extents[1], half_extents[2])


def _mesh_extent(mesh: Mesh) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    try:
        corners, _ = load_mesh(mesh)
    except DescriptionError:  # the physics reports it and uses a marked box
        return (-_DEFAULT_HALF_EXTENT,) * 3, (_DEFAULT_HALF_EXTENT,) * 3
    low, high = corners.min(axis=0), corners.max(axis=0)
    return (float(low[0]), float(low[1]), float(low[2])), (float(high[0]), float(high[1]), float(high[2]))


def to_world_pose(pose: PoseLike, model: Model) -> SE3:
    """T_world_model; a pose in the plane stands the model on the ground at height 0.

    Raises:
        InputError: neither three nor six numbers.
    """
    if isinstance(pose, SE3):
        return pose
    if isinstance(pose, SE2):
        return pose.to_se3(-min_height(model))
    if len(pose) == 3:
        x, y, yaw = pose
        return SE3.from_xyz_rpy((x, y, -min_height(model)), (0.0, 0.0, yaw))
    if len(pose) == 6:
        x, y, z, *angles = pose
        return SE3.from_xyz_rpy((x, y, z), (angles[0], angles[1], angles[2]))
    raise InputError(f"a pose of {len(pose)} numbers", valid="(x, y, yaw) or (x, y, z, roll, pitch, yaw)")
