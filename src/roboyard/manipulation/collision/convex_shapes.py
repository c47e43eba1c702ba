"""Convex shapes that enclose collision geometry, as arrays for kernels.

A convex shape is a core (box, cylinder, ellipsoid, or the convex hull of points, centered on its frame) swept by a
sphere: a sphere is a box of size zero with a radius, a capsule a box that is a line. Boxes, cylinders, capsules,
spheres and ellipsoids are exact, cones are enclosed by hulls, and a mesh that is not convex becomes the hull of each of
its components or, if that wastes volume, its triangles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.description import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Mesh,
    Plane,
    Polyline,
    Sphere,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array

IntArray = NDArray[np.int64]
BOX: Final = 0
CYLINDER: Final = 1
ELLIPSOID: Final = 2
POINTS: Final = 3
GROUND_HALF_SIZE: Final = 50.0
"""Half the side length of the block below a plane [m]."""
GROUND_HALF_DEPTH: Final = 1.0
"""Half the depth of the block below a plane [m]."""
_MAX_HULL_VOLUME_RATIO = 1.05
"""Maximum ratio of a hull's volume to that of its component for the component to count as convex."""
_SPHERE_SPACING_RATIO = 0.75
"""Spacing of bounding spheres relative to the cross section, so that each is at most 1.25 times as large as
necessary.
"""
_CONE_SIDES = 24


@dataclass(frozen=True, eq=False)
class ConvexShape:
    """A convex core swept by a sphere.

    Attributes:
        kind: ``BOX``, ``CYLINDER`` (along z), ``ELLIPSOID`` or ``POINTS``.
        half_size: (3,) half edges of the core's bounding box [m].
        radius: Radius of the sphere [m].
        T_frame_shape: Pose of the core's center in the frame of the geometry's owner.
        points: (n, 3) vertices of a hull relative to its center [m]; empty for other kinds.
    """

    kind: int
    half_size: Array
    radius: float
    T_frame_shape: SE3
    points: Array

    @property
    def bounding_radius(self) -> float:
        """Radius of the bounding sphere about the center [m]."""
        x, y, z = (float(half) for half in self.half_size)
        if self.kind == CYLINDER:
            return math.hypot(x, z) + self.radius
        if self.kind == ELLIPSOID:
            return float(max(x, y, z)) + self.radius
        if self.kind == POINTS:
            return float(np.linalg.norm(self.points, axis=1).max()) + self.radius
        return math.hypot(x, y, z) + self.radius

    def bounding_spheres(self) -> Array:
        """Return (k, 4) centers and radii of a row of spheres that encloses the shape [m]."""
        order = np.argsort(-self.half_size, kind="stable")
        length, cross_section_radius = float(self.half_size[order[0]]), math.hypot(*self.half_size[order[1:]].tolist())
        if self.kind == CYLINDER:
            cross_section_radius = self.half_size[0] if order[0] == 2 else cross_section_radius
        sphere_radius = cross_section_radius + self.radius
        count = max(1, math.ceil(length / (_SPHERE_SPACING_RATIO * sphere_radius))) if sphere_radius > 0.0 else 1
        if count == 1:
            return np.array([[0.0, 0.0, 0.0, self.bounding_radius]])
        half = length / count
        found = np.zeros((count, 4))
        found[:, order[0]] = -length + half * (2.0 * np.arange(count) + 1.0)
        found[:, 3] = math.hypot(half, cross_section_radius) + self.radius
        return found


class ConvexShapeArrays(NamedTuple):
    """Convex shapes as arrays for kernels.

    Attributes:
        kind: (n,) see `ConvexShape`.
        half_size: (n, 3).
        radius: (n,).
        bounding_radius: (n,).
        first_point: (n,) index of the first point of each shape.
        n_points: (n,) number of points.
        points: (p, 3) points of all hulls.
        first_sphere: (n,) index of the first bounding sphere of each shape.
        n_spheres: (n,) number of bounding spheres.
        spheres: (b, 4) bounding spheres of all shapes.
    """

    kind: IntArray
    half_size: Array
    radius: Array
    bounding_radius: Array
    first_point: IntArray
    n_points: IntArray
    points: Array
    first_sphere: IntArray
    n_spheres: IntArray
    spheres: Array


def stack_shapes(shapes: Sequence[ConvexShape]) -> ConvexShapeArrays:
    """Return the arrays of several shapes."""
    spheres_of_shapes = [shape.bounding_spheres() for shape in shapes]
    n_points, n_spheres = [len(shape.points) for shape in shapes], [len(chain) for chain in spheres_of_shapes]
    return ConvexShapeArrays(
        np.array([shape.kind for shape in shapes], dtype=np.int64),
        np.array([shape.half_size for shape in shapes]).reshape(-1, 3),
        np.array([shape.radius for shape in shapes], dtype=np.float64),
        np.array([shape.bounding_radius for shape in shapes], dtype=np.float64),
        np.cumsum([0, *n_points], dtype=np.int64)[:-1],
        np.array(n_points, dtype=np.int64),
        np.concatenate([np.zeros((0, 3)), *(shape.points for shape in shapes)]),
        np.cumsum([0, *n_spheres], dtype=np.int64)[:-1],
        np.array(n_spheres, dtype=np.int64),
        np.concatenate([np.zeros((0, 4)), *spheres_of_shapes]),
    )


def concatenate_shapes(one: ConvexShapeArrays, other: ConvexShapeArrays) -> ConvexShapeArrays:
    """Concatenate the arrays of two sets of shapes."""
    shifted = other._replace(
        first_point=other.first_point + len(one.points), first_sphere=other.first_sphere + len(one.spheres)
    )
    return ConvexShapeArrays(*(np.concatenate(pair) for pair in zip(one, shifted, strict=True)))


def shapes_of_geometry(geometry: Geometry, T: SE3, location: str = "", *, hull: bool = False) -> list[ConvexShape]:
    """Return convex shapes that enclose a geometry.

    Args:
        geometry: The geometry.
        T: Pose of its frame in its owner's frame.
        location: Its owner, for errors.
        hull: Whether a mesh is replaced by its convex hull even if it is not convex.

    Raises:
        DescriptionError: a mesh cannot be read, or the shape is a terrain.
    """
    match geometry:
        case Box(size):
            return [_core_shape(BOX, np.array(size) / 2.0, 0.0, T)]
        case Sphere(radius):
            return [_core_shape(BOX, np.zeros(3), radius, T)]
        case Capsule(radius, length):
            return [_core_shape(BOX, np.array([0.0, 0.0, length / 2.0]), radius, T)]
        case Cylinder(radius, length):
            return [_core_shape(CYLINDER, np.array([radius, radius, length / 2.0]), 0.0, T)]
        case Ellipsoid(radii):
            return [_core_shape(ELLIPSOID, np.array(radii), 0.0, T)]
        case Cone(radius, length):
            angles = 2.0 * math.pi * np.arange(_CONE_SIDES) / _CONE_SIDES
            rim = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=1)
            rim *= radius / math.cos(math.pi / _CONE_SIDES)
            return [hull_shape(np.concatenate([rim - [0.0, 0.0, length / 2.0], [[0.0, 0.0, length / 2.0]]]), T)]
        case Plane(normal):
            down = _frame_along(normal) @ SE3(translation=(0.0, 0.0, -GROUND_HALF_DEPTH))
            return [_core_shape(BOX, np.array([GROUND_HALF_SIZE, GROUND_HALF_SIZE, GROUND_HALF_DEPTH]), 0.0, T @ down)]
        case Polyline(outlines, height):
            flat = np.array([point for outline in outlines for point in outline])
            outlines_3d = [np.column_stack([flat, np.full(len(flat), z)]) for z in (0.0, height)]
            return [hull_shape(np.concatenate(outlines_3d), T)]
        case Mesh():
            return _shapes_of_mesh(geometry, T, hull)
    raise DescriptionError(
        f"a {type(geometry).__name__.lower()} is not supported as an obstacle of arms",
        location=location or None,
        valid="boxes, cylinders, spheres, capsules, cones, ellipsoids, planes, prisms and meshes",
    )


def hull_shape(points: Array, T: SE3) -> ConvexShape:
    """Return the convex hull of points (n, 3) in a frame ``T``."""
    points = _hull_vertices(points)
    center = (points.min(axis=0) + points.max(axis=0)) / 2.0
    local = points - center
    return ConvexShape(POINTS, np.abs(local).max(axis=0), 0.0, T @ SE3(translation=center), local)


def _shapes_of_mesh(mesh: Mesh, T: SE3, hull: bool) -> list[ConvexShape]:
    from roboyard.description.meshes import TriangleMesh
    from roboyard.description.meshes.files import load_mesh

    vertices, faces = load_mesh(mesh)
    if hull or mesh.convex:
        return [hull_shape(vertices[np.unique(faces)], T)]
    surface, found = TriangleMesh(vertices, faces), []
    for group in surface.components():
        part = surface.submesh(group)
        if _is_convex(part):
            found.append(hull_shape(part.vertices, T))
        else:
            found += [hull_shape(corners, T) for corners in part.triangles]
    return found


def _is_convex(part: object) -> bool:
    from scipy.spatial import ConvexHull, QhullError

    from roboyard.description.meshes import TriangleMesh

    if not isinstance(part, TriangleMesh) or not part.is_closed:
        return False
    try:
        return bool(ConvexHull(part.vertices).volume <= _MAX_HULL_VOLUME_RATIO * part.volume)
    except (QhullError, ValueError):
        return False


def _hull_vertices(points: Array) -> Array:
    """Return the vertices of the points' convex hull; all points if they lie in a plane."""
    from scipy.spatial import ConvexHull, QhullError

    if len(points) <= 4:
        return points
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except (QhullError, ValueError):
        return points


def _core_shape(kind: int, size: Array, radius: float, T: SE3) -> ConvexShape:
    return ConvexShape(kind, size, float(radius), T, np.zeros((0, 3)))


def _frame_along(normal: tuple[float, float, float]) -> SE3:
    """Return a frame whose z axis is a normal."""
    z = np.array(normal) / np.linalg.norm(normal)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return SE3.from_rotation_matrix(np.stack([x, np.cross(z, x), z], axis=1))
