"""Geometric shapes of collisions and visuals; lengths in m, each in its own frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roboyard.geometry.arrays import Vec3

Rgba = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """Box of full edge lengths ``size`` [m], centered on its frame."""

    size: Vec3


@dataclass(frozen=True, slots=True)
class Cylinder:
    """Cylinder along z, centered [m]."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Capsule:
    """Capsule along z; ``length`` is the cylindrical part [m]."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Cone:
    """Cone along z, centered at half height, tip up [m]."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Sphere:
    """Sphere [m]."""

    radius: float


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """Ellipsoid with semi-axes ``radii`` [m]."""

    radii: Vec3


@dataclass(frozen=True, slots=True)
class Plane:
    """Plane through the frame's origin; `size` only limits its visual [m]."""

    normal: Vec3 = (0.0, 0.0, 1.0)
    size: tuple[float, float] = (100.0, 100.0)


@dataclass(frozen=True, slots=True)
class InlineArray:
    """Array values in the description itself, stored as bytes, so that records remain comparable.

    For a mesh, `values` are float32 vertices (n, 3) [m] and `faces` int32 (m, 3).  For a terrain, `values` are float32
    heights (rows, columns) from 0 to 1, the first row at minimum y, and `faces` is empty.
    """

    values: bytes
    faces: bytes = b""
    columns: int = 3


@dataclass(frozen=True, slots=True)
class Mesh:
    """Triangle mesh from a file, or with its vertices in the description (`inline`).

    `file` is None if `uri` could not be resolved: the reader has added a warning, and consumers use a marked
    placeholder.  `convex` requests the convex hull for collision.
    """

    uri: str
    file: Path | None
    scale: Vec3 = (1.0, 1.0, 1.0)
    submesh: str | None = None
    center_submesh: bool = False
    convex: bool = False
    inline: InlineArray | None = None


@dataclass(frozen=True, slots=True)
class Heightmap:
    """Terrain from a grayscale image, or heights in the description, scaled to `size` = (x, y, height) [m]."""

    uri: str
    file: Path | None
    size: Vec3
    position: Vec3 = (0.0, 0.0, 0.0)
    inline: InlineArray | None = None


@dataclass(frozen=True, slots=True)
class Polyline:
    """Prism over closed outlines ``points`` [m], extruded by ``height``; holes by even-odd rule."""

    points: tuple[tuple[tuple[float, float], ...], ...]
    height: float


Geometry = Box | Cylinder | Capsule | Cone | Sphere | Ellipsoid | Plane | Mesh | Heightmap | Polyline


def bounding_half_extents(shape: Geometry) -> Vec3 | None:
    """Return half the edges of the box around a shape, in its own frame [m]; None if they are unknown."""
    match shape:
        case Box((x, y, z)):
            return 0.5 * x, 0.5 * y, 0.5 * z
        case Ellipsoid(radii):
            return radii
        case Sphere(r):
            return r, r, r
        case Cylinder(r, h) | Cone(r, h):
            return r, r, 0.5 * h
        case Capsule(r, h):
            return r, r, 0.5 * h + r
    return None
