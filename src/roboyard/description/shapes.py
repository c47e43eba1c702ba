"""The shapes of which collisions and visuals are made; lengths in m, each in its own frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roboyard.geometry.arrays import Vec3

Rgba = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """Box of full edge lengths ``size`` [m], centred on its frame."""

    size: Vec3


@dataclass(frozen=True, slots=True)
class Cylinder:
    """Cylinder along z, centred [m]."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Capsule:
    """Capsule along z; ``length`` is the cylindrical part [m]."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Cone:
    """Cone along z, centred at half height, tip up [m]."""

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
    """Plane through the frame's origin; ``size`` only bounds its looks [m]."""

    normal: Vec3 = (0.0, 0.0, 1.0)
    size: tuple[float, float] = (100.0, 100.0)


@dataclass(frozen=True, slots=True)
class InlineArray:
    """Values that stand in the description itself, as the bytes of arrays, so that records stay comparable.

    Of a mesh: ``values`` are float32 vertices (n, 3) [m], ``faces`` int32 (m, 3).  Of a terrain: ``values`` are float32
    heights (rows, columns) from 0 to 1, the first row at the least y, and ``faces`` is empty.
    """

    values: bytes
    faces: bytes = b""
    columns: int = 3


@dataclass(frozen=True, slots=True)
class Mesh:
    """Triangle mesh from a file, or with its points in the description (``inline``).

    ``file`` is None where ``uri`` could not be resolved: the reader has said so in a finding, and consumers draw or
    collide with a marked placeholder.  ``convex`` asks for the convex hull in collision.
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
    """Terrain from a grey picture, or heights in the description, stretched over ``size`` = (x, y, height) [m]."""

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
    """Half the edges of the box around a shape, in its own frame [m]; None where that is more than the shape says."""
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
