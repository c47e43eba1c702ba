"""How much room a robot takes, and how it stands on the ground."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Collision, Geometry, Mesh, Model, Polyline
from roboyard.description.shapes import bounding_half_extents
from roboyard.errors import DescriptionError

_UNKNOWN = 0.1
"""Half extent taken for a shape that cannot be measured [m]."""


def reach(model: Model) -> float:
    """Radius [m] of the circle about the model's origin that holds all that touches, seen from above."""
    return max((float(np.hypot(corner[0], corner[1])) for corner in _all_corners(model)), default=_UNKNOWN)


def half_width(model: Model) -> float:
    """Half of what all that touches measures along x [m], when it lies evenly about the model's origin."""
    return max((float(corner[0]) for corner in _all_corners(model)), default=_UNKNOWN)


def outline(given: tuple[tuple[float, float], ...], model: Model) -> tuple[tuple[float, float], ...]:
    """Corners [m] of the robot's outline on the ground: those given, else of the hull of all that touches."""
    if given:
        return given
    points = np.array([corner[:2] for corner in _all_corners(model)]).reshape(-1, 2)
    if len(points) < 3 or np.linalg.matrix_rank(points - points[0], tol=1e-6) < 2:
        return ()
    from scipy.spatial import ConvexHull

    corners = points[ConvexHull(points).vertices]
    return tuple((float(x), float(y)) for x, y in corners)


def box_about(model: Model) -> tuple[float, float, float]:
    """Edges [m] of the box about the model's origin, along its axes, that holds all that touches."""
    corners = np.abs(np.array(list(_all_corners(model))).reshape(-1, 3)).max(axis=0, initial=0.0)
    x, y, z = (2.0 * corners).tolist()
    return x, y, z


def lowest(model: Model) -> float:
    """Height [m] of the lowest point that touches, in the model's frame with every joint at zero; 0 if nothing does."""
    return min((float(corner[2]) for corner in _all_corners(model)), default=0.0)


def _all_corners(model: Model) -> Iterator[NDArray[np.float64]]:
    for link in model.links:
        for collision in link.collisions:
            yield from link.T_model_link @ (collision.T_link_geom @ _corners(collision))


def _corners(collision: Collision) -> NDArray[np.float64]:
    """The eight corners of a shape's box, in its own frame (8, 3)."""
    low, high = _extent(collision.geometry)
    return np.array(list(itertools.product(*zip(low, high, strict=True))), dtype=float)


def _extent(geometry: Geometry) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    if isinstance(geometry, Mesh) and (geometry.file or geometry.inline):
        return _mesh_extent(geometry)
    if isinstance(geometry, Polyline):
        half = (max(math.hypot(*p) for outline in geometry.points for p in outline),) * 3
    else:
        half = bounding_half_extents(geometry) or (_UNKNOWN,) * 3
    return (-half[0], -half[1], -half[2]), (half[0], half[1], half[2])


def _mesh_extent(mesh: Mesh) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    from roboyard.simulation.assembly.meshes import surface_of

    try:
        corners, _ = surface_of(mesh)
    except DescriptionError:  # the physics says so, and puts a marked box there
        return (-_UNKNOWN,) * 3, (_UNKNOWN,) * 3
    low, high = corners.min(axis=0), corners.max(axis=0)
    return (float(low[0]), float(low[1]), float(low[2])), (float(high[0]), float(high[1]), float(high[2]))
