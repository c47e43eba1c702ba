"""Convex bodies that hold collision shapes, as the arrays that kernels take.

A solid is a convex core (box, cylinder, ellipsoid or the hull of points, centred on its frame) swept by a ball: a
ball is a box without size and a radius, a capsule a box that is a line.  Boxes, cylinders, capsules, balls and
ellipsoids are exact, hulls of cones stand round them, and a mesh that is not convex is the hull of each of its parts
or, where that would be wasteful, its triangles.
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

Numbers = NDArray[np.int64]
BOX: Final = 0
CYLINDER: Final = 1
ELLIPSOID: Final = 2
POINTS: Final = 3
GROUND: Final = 50.0
"""Half the side of the block below a plane [m]."""
DEEP: Final = 1.0
"""Half its depth [m]."""
_WASTE = 1.05
"""A hull may have so many times a part's volume before the part counts as not convex."""
_ROUND = 0.75
"""A chain's balls are so close that each is at most 1.25 times as large as it must be."""
_CONE_SIDES = 24


@dataclass(frozen=True, eq=False)
class Solid:
    """A convex core and a ball that it is swept by.

    Attributes:
        kind: ``BOX``, ``CYLINDER`` (along z), ``ELLIPSOID`` or ``POINTS``.
        size: (3,) half edges of the box around the core [m].
        radius: Of the ball [m].
        T: The core's middle, in the frame of the shape's owner.
        points: (n, 3) of a hull, from its middle [m]; empty for others.
    """

    kind: int
    size: Array
    radius: float
    T: SE3
    points: Array

    @property
    def outer(self) -> float:
        """Radius of a ball about the middle that holds it [m]."""
        x, y, z = (float(half) for half in self.size)
        if self.kind == CYLINDER:
            return math.hypot(x, z) + self.radius
        if self.kind == ELLIPSOID:
            return float(max(x, y, z)) + self.radius
        if self.kind == POINTS:
            return float(np.linalg.norm(self.points, axis=1).max()) + self.radius
        return math.hypot(x, y, z) + self.radius

    def balls(self) -> Array:
        """(k, 4) middles and radii of balls in a row that hold it [m]."""
        order = np.argsort(-self.size, kind="stable")
        length, across = float(self.size[order[0]]), math.hypot(*self.size[order[1:]].tolist())
        if self.kind == CYLINDER:
            across = self.size[0] if order[0] == 2 else across
        girth = across + self.radius
        count = max(1, math.ceil(length / (_ROUND * girth))) if girth > 0.0 else 1
        if count == 1:
            return np.array([[0.0, 0.0, 0.0, self.outer]])
        half = length / count
        found = np.zeros((count, 4))
        found[:, order[0]] = -length + half * (2.0 * np.arange(count) + 1.0)
        found[:, 3] = math.hypot(half, across) + self.radius
        return found


class Solids(NamedTuple):
    """Solids as kernels take them.

    Attributes:
        kind: (n,) see `Solid`.
        size: (n, 3).
        radius: (n,).
        outer: (n,).
        first: (n,) first of its points.
        many: (n,) how many.
        points: (p, 3) of all hulls.
        ball_first: (n,) first of its balls.
        ball_count: (n,) how many.
        balls: (b, 4).
    """

    kind: Numbers
    size: Array
    radius: Array
    outer: Array
    first: Numbers
    many: Numbers
    points: Array
    ball_first: Numbers
    ball_count: Numbers
    balls: Array


def gathered(solids: Sequence[Solid]) -> Solids:
    """Several solids' arrays."""
    chains = [solid.balls() for solid in solids]
    points, balls = [len(solid.points) for solid in solids], [len(chain) for chain in chains]
    return Solids(
        np.array([solid.kind for solid in solids], dtype=np.int64),
        np.array([solid.size for solid in solids]).reshape(-1, 3),
        np.array([solid.radius for solid in solids], dtype=np.float64),
        np.array([solid.outer for solid in solids], dtype=np.float64),
        np.cumsum([0, *points], dtype=np.int64)[:-1],
        np.array(points, dtype=np.int64),
        np.concatenate([np.zeros((0, 3)), *(solid.points for solid in solids)]),
        np.cumsum([0, *balls], dtype=np.int64)[:-1],
        np.array(balls, dtype=np.int64),
        np.concatenate([np.zeros((0, 4)), *chains]),
    )


def joined(one: Solids, other: Solids) -> Solids:
    """The arrays of both, one after the other."""
    shifted = other._replace(first=other.first + len(one.points), ball_first=other.ball_first + len(one.balls))
    return Solids(*(np.concatenate(pair) for pair in zip(one, shifted, strict=True)))


def solids_of(geometry: Geometry, T: SE3, where: str = "", *, hull: bool = False) -> list[Solid]:
    """Solids that hold a shape.

    Args:
        geometry: The shape.
        T: Its frame in its owner's.
        where: Whose it is, for errors.
        hull: Take the hull of a mesh even where it is not convex.

    Raises:
        DescriptionError: a mesh cannot be read, or the shape is a terrain.
    """
    match geometry:
        case Box(size):
            return [_plain(BOX, np.array(size) / 2.0, 0.0, T)]
        case Sphere(radius):
            return [_plain(BOX, np.zeros(3), radius, T)]
        case Capsule(radius, length):
            return [_plain(BOX, np.array([0.0, 0.0, length / 2.0]), radius, T)]
        case Cylinder(radius, length):
            return [_plain(CYLINDER, np.array([radius, radius, length / 2.0]), 0.0, T)]
        case Ellipsoid(radii):
            return [_plain(ELLIPSOID, np.array(radii), 0.0, T)]
        case Cone(radius, length):
            angles = 2.0 * math.pi * np.arange(_CONE_SIDES) / _CONE_SIDES
            rim = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=1)
            rim *= radius / math.cos(math.pi / _CONE_SIDES)
            return [hull_solid(np.concatenate([rim - [0.0, 0.0, length / 2.0], [[0.0, 0.0, length / 2.0]]]), T)]
        case Plane(normal):
            down = _along(normal) @ SE3(translation=(0.0, 0.0, -DEEP))
            return [_plain(BOX, np.array([GROUND, GROUND, DEEP]), 0.0, T @ down)]
        case Polyline(outlines, height):
            flat = np.array([point for outline in outlines for point in outline])
            both = [np.column_stack([flat, np.full(len(flat), z)]) for z in (0.0, height)]
            return [hull_solid(np.concatenate(both), T)]
        case Mesh():
            return _of_mesh(geometry, T, hull)
    raise DescriptionError(
        f"a {type(geometry).__name__.lower()} is nothing that arms are planned around",
        location=where or None,
        valid="boxes, cylinders, spheres, capsules, cones, ellipsoids, planes, prisms and meshes",
    )


def hull_solid(points: Array, T: SE3) -> Solid:
    """The hull of points (n, 3) given in a frame ``T``."""
    points = _corners(points)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
    local = points - middle
    return Solid(POINTS, np.abs(local).max(axis=0), 0.0, T @ SE3(translation=middle), local)


def _of_mesh(mesh: Mesh, T: SE3, hull: bool) -> list[Solid]:
    from roboyard.description.meshes import TriangleMesh
    from roboyard.description.meshes.files import load_mesh

    vertices, faces = load_mesh(mesh)
    if hull or mesh.convex:
        return [hull_solid(vertices[np.unique(faces)], T)]
    surface, found = TriangleMesh(vertices, faces), []
    for group in surface.components():
        part = surface.submesh(group)
        if _is_convex(part):
            found.append(hull_solid(part.vertices, T))
        else:
            found += [hull_solid(corners, T) for corners in part.triangles]
    return found


def _is_convex(part: object) -> bool:
    from scipy.spatial import ConvexHull, QhullError

    from roboyard.description.meshes import TriangleMesh

    if not isinstance(part, TriangleMesh) or not part.is_closed:
        return False
    try:
        return bool(ConvexHull(part.vertices).volume <= _WASTE * part.volume)
    except (QhullError, ValueError):
        return False


def _corners(points: Array) -> Array:
    """The corners of the points' hull; all where they lie in a plane."""
    from scipy.spatial import ConvexHull, QhullError

    if len(points) <= 4:
        return points
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except (QhullError, ValueError):
        return points


def _plain(kind: int, size: Array, radius: float, T: SE3) -> Solid:
    return Solid(kind, size, float(radius), T, np.zeros((0, 3)))


def _along(normal: tuple[float, float, float]) -> SE3:
    """A frame whose z axis is a normal."""
    z = np.array(normal) / np.linalg.norm(normal)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return SE3.from_rotation_matrix(np.stack([x, np.cross(z, x), z], axis=1))
