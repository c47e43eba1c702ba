"""Simple shapes that hold a surface: the tightest box, cylinder, capsule or sphere, and how well each fits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mesh_tools.balls import capsule_ends, smallest_ball
from roboyard.description.mesh_tools.nearness import Nearness
from roboyard.description.mesh_tools.surface import Points, Surface
from roboyard.description.shapes import Box, Capsule, Cylinder, Sphere
from roboyard.errors import DescriptionError, UnknownNameError
from roboyard.geometry import SE3

Simple = Box | Cylinder | Capsule | Sphere
KINDS = ("box", "cylinder", "capsule", "sphere")
SAMPLES = 2000
"""Points of a shape whose distance from the surface is measured."""


FEW = 1000
"""Corners of a hull that are enough to judge a frame by; a million-triangle ball has half a million."""


@dataclass(frozen=True)
class Fitted:
    """A shape round a surface.

    Attributes:
        shape: In its own frame.
        T_mesh_shape: Where that is.
        volume: Of the shape [m³].
        excess: Its volume over that of the surface's body (or its hull where that is open), less one.
        gap: How far the shape's surface is from the mesh at most [m].
        outside: How far the mesh sticks out of the shape at most [m]; rounding.
    """

    shape: Simple
    T_mesh_shape: SE3
    volume: float
    excess: float
    gap: float
    outside: float


def fit(surface: Surface, kinds: Sequence[str] = KINDS) -> Fitted:
    """The shape with the least volume of these kinds that holds the surface.

    Raises:
        UnknownNameError: a kind is unknown.
        DescriptionError: the surface is flat.
    """
    found = fits(surface, kinds)
    least = min(one.volume for one in found)
    # A ball is also a capsule without length: of shapes alike to rounding the simplest counts.
    alike = [one for one in found if one.volume <= least * (1.0 + 1e-9)]
    return min(alike, key=lambda one: len(fields(one.shape)))


def fits(surface: Surface, kinds: Sequence[str] = KINDS) -> list[Fitted]:
    """The tightest shape of each kind. Raises as `fit`."""
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownNameError(f"no shape {kind!r}", valid=", ".join(KINDS))
    points, hull_normals, hull_volume = _hull(surface)
    few = _outermost(points)
    axes = list(_axes(few, hull_normals))
    near = Nearness(surface)
    body = surface.volume if surface.closed and surface.volume > 0.0 else hull_volume
    found = []
    for kind in kinds:
        if kind == "sphere":
            centre, radius = smallest_ball(points)
            made: tuple[Simple, SE3] = Sphere(radius), SE3(translation=centre)
        else:
            maker = {"box": _box, "cylinder": _cylinder, "capsule": _capsule}[kind]
            sizes = [volume_of(maker(few, axis)[0]) for axis in axes]
            made = maker(points, axes[int(np.argmin(sizes))])
        shape, T = made
        size = volume_of(shape)
        gap = float(near.distances(T @ sampled(shape, SAMPLES)).max())
        outside = float(np.maximum(depth(shape, T.inverse() @ points), 0.0).max())
        found.append(Fitted(shape, T, size, size / body - 1.0, gap, outside))
    return found


def volume_of(shape: Simple) -> float:
    """[m³]."""
    match shape:
        case Box(size):
            return math.prod(size)
        case Cylinder(radius, length):
            return math.pi * radius**2 * length
        case Capsule(radius, length):
            return math.pi * radius**2 * (length + 4.0 / 3.0 * radius)
        case Sphere(radius):
            return 4.0 / 3.0 * math.pi * radius**3


def depth(shape: Simple, points: Points) -> NDArray[np.float64]:
    """(n,) signed distances of points from a shape in its own frame, positive outside [m]; a lower bound at corners."""
    x, y, z = points.T
    match shape:
        case Box(size):
            found = (np.abs(points) - np.array(size) / 2.0).max(axis=1)
        case Cylinder(radius, length):
            found = np.maximum(np.hypot(x, y) - radius, np.abs(z) - length / 2.0)
        case Capsule(radius, length):
            found = np.sqrt(x**2 + y**2 + np.maximum(np.abs(z) - length / 2.0, 0.0) ** 2) - radius
        case Sphere(radius):
            found = np.sqrt(x**2 + y**2 + z**2) - radius
    return np.asarray(found, float)


def sampled(shape: Simple, count: int) -> Points:
    """About ``count`` points on a shape, corners and rims among them, in its frame [m]."""
    number = np.arange(count) + 0.5
    heights, turns = 1.0 - 2.0 * number / count, number * math.pi * (1.0 + math.sqrt(5.0))
    flat = np.sqrt(np.maximum(1.0 - heights**2, 0.0))
    ball = np.stack([flat * np.cos(turns), flat * np.sin(turns), heights], axis=1)
    match shape:
        case Sphere(radius):
            found = radius * ball
        case Capsule(radius, length):
            found = radius * ball + np.sign(ball[:, 2:]) * np.array([0.0, 0.0, length / 2.0])
        case Box(size):
            cube = ball / np.abs(ball).max(axis=1, keepdims=True)
            corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
            found = np.concatenate([cube, corners]) * np.array(size) / 2.0
        case Cylinder(radius, length):
            around = np.linspace(0.0, 2.0 * math.pi, max(count // 8, 8), endpoint=False)
            ring = np.stack([np.cos(around), np.sin(around), np.ones_like(around)], axis=1)
            side = [ring * [radius, radius, h * length / 2.0] for h in (-1.0, -0.5, 0.0, 0.5, 1.0)]
            ends = [ring * [s * radius, s * radius, h * length / 2.0] for s in (0.0, 0.5) for h in (-1.0, 1.0)]
            found = np.concatenate([*side, *ends])
    return np.asarray(found, float)


def _hull(surface: Surface) -> tuple[Points, Points, float]:
    """Corners of the convex hull, the normals of its faces, its volume."""
    from scipy.spatial import ConvexHull, QhullError

    points = surface.vertices[np.unique(surface.faces)]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        raise DescriptionError("the surface is flat: no shape with a volume fits it", valid="a body") from None
    return points[hull.vertices], np.unique(np.round(hull.equations[:, :3], 6), axis=0), float(hull.volume)


def _outermost(points: Points) -> Points:
    """Those of the hull's corners by which frames are judged: all, or the farthest in many directions all around."""
    if len(points) <= FEW:
        return points
    k = np.arange(FEW) + 0.5
    z, turn = 1.0 - 2.0 * k / FEW, math.pi * (1.0 + math.sqrt(5.0)) * k  # evenly about the sphere, along a spiral
    flat = np.sqrt(1.0 - z * z)
    directions = np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=1)
    farthest = [int(np.argmax(points @ direction)) for direction in directions]
    return np.asarray(points[np.unique(farthest)])


def _axes(points: Points, normals: Points) -> Iterator[SE3]:
    """Frames whose z axes are worth trying: the coordinate axes, the principal axes, faces of the hull.

    A smallest box has a face flush with one of the hull's or two edges of it (J. O'Rourke, 1985); trying the faces, and
    principal axes, comes within few per cent of it.
    """
    directions = [*np.eye(3), *np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]]
    step = max(1, len(normals) // 150)
    directions += list(normals[::step])
    seen: list[NDArray[np.float64]] = []
    for direction in directions:
        z = direction / np.linalg.norm(direction)
        if any(abs(abs(float(z @ other)) - 1.0) < 1e-9 for other in seen):
            continue
        seen.append(z)
        x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
        x /= np.linalg.norm(x)
        yield SE3.from_rotation_matrix(np.stack([x, np.cross(z, x), z], axis=1))


def _box(points: Points, axis: SE3) -> tuple[Simple, SE3]:
    """The smallest box along z of a frame: one of its sides lies along an edge of the outline."""
    from scipy.spatial import ConvexHull

    local = axis.inverse() @ points
    outline = local[ConvexHull(local[:, :2]).vertices, :2]
    edges = np.roll(outline, -1, axis=0) - outline
    angles = np.unique(np.round(np.mod(np.arctan2(edges[:, 1], edges[:, 0]), math.pi / 2.0), 9))
    turns = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    across, up = outline @ turns.T, outline @ np.stack([-turns[:, 1], turns[:, 0]])
    best = int(np.argmin(np.ptp(across, axis=0) * np.ptp(up, axis=0)))
    T = axis @ SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, float(angles[best])))
    local = T.inverse() @ points
    low, high = local.min(axis=0), local.max(axis=0)
    x, y, z = (float(value) for value in high - low)
    return Box((x, y, z)), SE3(T.rotation, T @ ((low + high) / 2.0))


def _cylinder(points: Points, axis: SE3) -> tuple[Simple, SE3]:
    local = axis.inverse() @ points
    centre, radius = smallest_ball(local[:, :2])
    low, high = float(local[:, 2].min()), float(local[:, 2].max())
    middle = axis @ np.array([centre[0], centre[1], (low + high) / 2.0])
    return Cylinder(radius, high - low), SE3(axis.rotation, middle)


def _capsule(points: Points, axis: SE3) -> tuple[Simple, SE3]:
    local = axis.inverse() @ points
    centre, radius = smallest_ball(local[:, :2])
    low, high = capsule_ends(local[:, 2], np.linalg.norm(local[:, :2] - centre, axis=1), radius)
    if low == high:  # the ends' bulges overlap: a little more radius may be needed
        ball, radius = smallest_ball(local)
        return Capsule(radius, 0.0), SE3(axis.rotation, axis @ ball)
    middle = axis @ np.array([centre[0], centre[1], (low + high) / 2.0])
    return Capsule(radius, high - low), SE3(axis.rotation, middle)
