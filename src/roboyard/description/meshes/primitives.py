"""Primitive fitting: boxes, cylinders, capsules and spheres around a mesh, and collision approximation.

Collision geometry consists of primitives, the convex hull, or a convex decomposition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.convex import (
    ConvexDecomposition,
    convex_hull,
    decompose_convex,
    hull_decomposition,
)
from roboyard.description.meshes.distance import MeshDistance, sample_surface
from roboyard.description.meshes.mesh import Points, TriangleMesh
from roboyard.description.meshes.splitting import split_components
from roboyard.description.shapes import Box, Capsule, Cylinder, Sphere
from roboyard.errors import DescriptionError, InputError, UnknownNameError
from roboyard.geometry import SE3

MAX_ITERATIONS = 1000
"""Maximum number of iterations; the radius grows in every iteration, so few are needed, but rounding may add some."""


def smallest_enclosing_ball(points: Points) -> tuple[NDArray[np.float64], float]:
    """Compute center and radius of the smallest ball around points (n, d): a circle in the plane, a sphere in space.

    The farthest point is added to the support points of the ball, and the ball of these few points is found by testing
    their subsets (after B. Gärtner, "Fast and robust smallest enclosing balls", 1999).
    """
    support = points[:1]
    center, radius = points[0], 0.0
    for _ in range(MAX_ITERATIONS):
        squares = ((points - center) ** 2).sum(axis=1)
        outermost = int(np.argmax(squares))
        if squares[outermost] <= radius**2 * (1.0 + 1e-12):
            break
        candidates = np.concatenate([support, points[outermost : outermost + 1]])
        best: tuple[NDArray[np.float64], float, Points] | None = None
        for count in range(2, min(len(candidates), points.shape[1] + 1) + 1):
            for indices in combinations(range(len(candidates)), count):
                subset = candidates[list(indices)]
                subset_center = _circumcenter(subset)
                subset_radius = float(np.linalg.norm(subset[0] - subset_center))
                encloses_all = np.linalg.norm(candidates - subset_center, axis=1).max() <= subset_radius * (1.0 + 1e-10)
                if encloses_all and (best is None or subset_radius < best[1]):
                    best = subset_center, subset_radius, subset
        if best is None or best[1] <= radius:
            break
        center, radius, support = best
    return center, float(np.linalg.norm(points - center, axis=1).max())


def _circumcenter(points: Points) -> NDArray[np.float64]:
    """Compute the center of the ball through a few points, in the affine subspace that they span."""
    edges = points[1:] - points[0]
    weights = np.linalg.lstsq(2.0 * edges @ edges.T, (edges**2).sum(axis=1), rcond=None)[0]
    center: NDArray[np.float64] = points[0] + weights @ edges
    return center


def fit_capsule_axis(axial: NDArray[np.float64], radial: NDArray[np.float64], radius: float) -> tuple[float, float]:
    """Compute the ends of the axis of the shortest capsule that contains points.

    Args:
        axial: (n,) positions along the axis.
        radial: (n,) distances from the axis, at most `radius`.
        radius: Radius of the capsule.
    """
    cap_height = np.sqrt(np.maximum(radius**2 - radial**2, 0.0))
    low, high = float((axial + cap_height).min()), float((axial - cap_height).max())
    center = (low + high) / 2.0
    # One ball may be sufficient: the axis then is a point.
    return (low, high) if low < high else (center, center)


Primitive = Box | Cylinder | Capsule | Sphere
PRIMITIVE_TYPES = ("box", "cylinder", "capsule", "sphere")
SAMPLES = 2000
"""Number of points of a shape whose distance from the surface is measured."""


MAX_FRAME_POINTS = 1000
"""Maximum number of hull corners used to evaluate a frame; a ball of a million triangles has half a million."""


@dataclass(frozen=True)
class FittedPrimitive:
    """Primitive around a surface.

    Attributes:
        shape: The primitive in its own frame.
        T_mesh_shape: Pose of the primitive in the mesh frame.
        volume: Volume of the primitive [m³].
        volume_excess: Its volume over that of the surface's body (or its hull if it is open), minus one.
        max_gap: Maximum distance of the primitive's surface from the mesh [m].
        max_protrusion: Maximum distance by which the mesh extends outside the primitive [m]; due to rounding.
    """

    shape: Primitive
    T_mesh_shape: SE3
    volume: float
    volume_excess: float
    max_gap: float
    max_protrusion: float


def fit_primitive(mesh: TriangleMesh, shape_types: Sequence[str] = PRIMITIVE_TYPES) -> FittedPrimitive:
    """Fit the primitive with the smallest volume of these types that contains the surface.

    Raises:
        UnknownNameError: A type is unknown.
        DescriptionError: The surface is flat.
    """
    primitives = fit_primitives(mesh, shape_types)
    min_volume = min(one.volume for one in primitives)
    # A ball is also a capsule of length zero: of shapes equal up to rounding the simplest is used.
    candidates = [one for one in primitives if one.volume <= min_volume * (1.0 + 1e-9)]
    return min(candidates, key=lambda one: len(fields(one.shape)))


def fit_primitives(mesh: TriangleMesh, shape_types: Sequence[str] = PRIMITIVE_TYPES) -> list[FittedPrimitive]:
    """Fit the tightest primitive of each type. Raises as `fit_primitive`."""
    for shape_type in shape_types:
        if shape_type not in PRIMITIVE_TYPES:
            raise UnknownNameError(f"unknown shape {shape_type!r}", valid=", ".join(PRIMITIVE_TYPES))
    points, hull_normals, hull_volume = _compute_hull(mesh)
    frame_points = _extreme_points(points)
    frames = list(_candidate_frames(frame_points, hull_normals))
    distance = MeshDistance(mesh)
    body_volume = mesh.volume if mesh.is_closed and mesh.volume > 0.0 else hull_volume
    primitives = []
    for shape_type in shape_types:
        if shape_type == "sphere":
            center, radius = smallest_enclosing_ball(points)
            shape_and_pose: tuple[Primitive, SE3] = Sphere(radius), SE3(translation=center)
        else:
            fit_shape = {"box": _fit_box, "cylinder": _fit_cylinder, "capsule": _fit_capsule}[shape_type]
            volumes = [primitive_volume(fit_shape(frame_points, frame)[0]) for frame in frames]
            shape_and_pose = fit_shape(points, frames[int(np.argmin(volumes))])
        shape, T = shape_and_pose
        volume = primitive_volume(shape)
        max_gap = float(distance.distances(T @ sample_primitive(shape, SAMPLES)).max())
        max_protrusion = float(np.maximum(signed_distance(shape, T.inverse() @ points), 0.0).max())
        primitives.append(FittedPrimitive(shape, T, volume, volume / body_volume - 1.0, max_gap, max_protrusion))
    return primitives


def primitive_volume(shape: Primitive) -> float:
    """Compute the volume of a primitive [m³]."""
    match shape:
        case Box(size):
            return math.prod(size)
        case Cylinder(radius, length):
            return math.pi * radius**2 * length
        case Capsule(radius, length):
            return math.pi * radius**2 * (length + 4.0 / 3.0 * radius)
        case Sphere(radius):
            return 4.0 / 3.0 * math.pi * radius**3


def signed_distance(shape: Primitive, points: Points) -> NDArray[np.float64]:
    """Compute the signed distances (n,) of points from a primitive in its own frame, positive outside [m]; a lower
    bound at corners.
    """
    x, y, z = points.T
    match shape:
        case Box(size):
            distances = (np.abs(points) - np.array(size) / 2.0).max(axis=1)
        case Cylinder(radius, length):
            distances = np.maximum(np.hypot(x, y) - radius, np.abs(z) - length / 2.0)
        case Capsule(radius, length):
            distances = np.sqrt(x**2 + y**2 + np.maximum(np.abs(z) - length / 2.0, 0.0) ** 2) - radius
        case Sphere(radius):
            distances = np.sqrt(x**2 + y**2 + z**2) - radius
    return np.asarray(distances, float)


def sample_primitive(shape: Primitive, count: int) -> Points:
    """Sample about `count` points on a primitive, including corners and rims, in its frame [m]."""
    number = np.arange(count) + 0.5
    heights, azimuths = 1.0 - 2.0 * number / count, number * math.pi * (1.0 + math.sqrt(5.0))
    ring_radii = np.sqrt(np.maximum(1.0 - heights**2, 0.0))
    ball = np.stack([ring_radii * np.cos(azimuths), ring_radii * np.sin(azimuths), heights], axis=1)
    match shape:
        case Sphere(radius):
            points = radius * ball
        case Capsule(radius, length):
            points = radius * ball + np.sign(ball[:, 2:]) * np.array([0.0, 0.0, length / 2.0])
        case Box(size):
            cube = ball / np.abs(ball).max(axis=1, keepdims=True)
            corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
            points = np.concatenate([cube, corners]) * np.array(size) / 2.0
        case Cylinder(radius, length):
            ring_angles = np.linspace(0.0, 2.0 * math.pi, max(count // 8, 8), endpoint=False)
            ring = np.stack([np.cos(ring_angles), np.sin(ring_angles), np.ones_like(ring_angles)], axis=1)
            side = [ring * [radius, radius, h * length / 2.0] for h in (-1.0, -0.5, 0.0, 0.5, 1.0)]
            ends = [ring * [s * radius, s * radius, h * length / 2.0] for s in (0.0, 0.5) for h in (-1.0, 1.0)]
            points = np.concatenate([*side, *ends])
    return np.asarray(points, float)


def _compute_hull(mesh: TriangleMesh) -> tuple[Points, Points, float]:
    """Compute the corners of the convex hull, the normals of its faces, and its volume."""
    from scipy.spatial import ConvexHull, QhullError

    points = mesh.vertices[np.unique(mesh.faces)]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        raise DescriptionError("the surface is flat: no shape with a volume fits it", valid="a body") from None
    return points[hull.vertices], np.unique(np.round(hull.equations[:, :3], 6), axis=0), float(hull.volume)


def _extreme_points(points: Points) -> Points:
    """Select the hull corners used to evaluate frames: all, or the farthest in many directions."""
    if len(points) <= MAX_FRAME_POINTS:
        return points
    k = np.arange(MAX_FRAME_POINTS) + 0.5
    z, azimuth = (
        1.0 - 2.0 * k / MAX_FRAME_POINTS,
        math.pi * (1.0 + math.sqrt(5.0)) * k,
    )  # evenly distributed on the sphere, along a spiral
    ring_radius = np.sqrt(1.0 - z * z)
    directions = np.stack([ring_radius * np.cos(azimuth), ring_radius * np.sin(azimuth), z], axis=1)
    extreme = [int(np.argmax(points @ direction)) for direction in directions]
    return np.asarray(points[np.unique(extreme)])


def _candidate_frames(points: Points, normals: Points) -> Iterator[SE3]:
    """Iterate over candidate frames for z: the coordinate axes, the principal axes, the faces of the hull.

    A smallest box has a face flush with one of the hull's or with two edges of it (J. O'Rourke, 1985); testing the
    faces and the principal axes comes within a few percent of it.
    """
    directions = [*np.eye(3), *np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]]
    step = max(1, len(normals) // 150)
    directions += list(normals[::step])
    used_axes: list[NDArray[np.float64]] = []
    for direction in directions:
        z = direction / np.linalg.norm(direction)
        if any(abs(abs(float(z @ other)) - 1.0) < 1e-9 for other in used_axes):
            continue
        used_axes.append(z)
        x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
        x /= np.linalg.norm(x)
        yield SE3.from_rotation_matrix(np.stack([x, np.cross(z, x), z], axis=1))


def _fit_box(points: Points, frame: SE3) -> tuple[Primitive, SE3]:
    """Fit the smallest box along z of a frame: one of its sides lies along an edge of the outline."""
    from scipy.spatial import ConvexHull

    local = frame.inverse() @ points
    outline = local[ConvexHull(local[:, :2]).vertices, :2]
    edges = np.roll(outline, -1, axis=0) - outline
    angles = np.unique(np.round(np.mod(np.arctan2(edges[:, 1], edges[:, 0]), math.pi / 2.0), 9))
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    across, up = outline @ directions.T, outline @ np.stack([-directions[:, 1], directions[:, 0]])
    best = int(np.argmin(np.ptp(across, axis=0) * np.ptp(up, axis=0)))
    T = frame @ SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, float(angles[best])))
    local = T.inverse() @ points
    low, high = local.min(axis=0), local.max(axis=0)
    x, y, z = (float(value) for value in high - low)
    return Box((x, y, z)), SE3(T.rotation, T @ ((low + high) / 2.0))


def _fit_cylinder(points: Points, frame: SE3) -> tuple[Primitive, SE3]:
    local = frame.inverse() @ points
    axis_point, radius = smallest_enclosing_ball(local[:, :2])
    low, high = float(local[:, 2].min()), float(local[:, 2].max())
    center = frame @ np.array([axis_point[0], axis_point[1], (low + high) / 2.0])
    return Cylinder(radius, high - low), SE3(frame.rotation, center)


def _fit_capsule(points: Points, frame: SE3) -> tuple[Primitive, SE3]:
    local = frame.inverse() @ points
    axis_point, radius = smallest_enclosing_ball(local[:, :2])
    low, high = fit_capsule_axis(local[:, 2], np.linalg.norm(local[:, :2] - axis_point, axis=1), radius)
    if low == high:  # the end caps overlap: a slightly larger radius may be needed
        ball_center, radius = smallest_enclosing_ball(local)
        return Capsule(radius, 0.0), SE3(frame.rotation, frame @ ball_center)
    center = frame @ np.array([axis_point[0], axis_point[1], (low + high) / 2.0])
    return Capsule(radius, high - low), SE3(frame.rotation, center)


SHAPE_TYPES = (*PRIMITIVE_TYPES, "hull", "decompose")


@dataclass(frozen=True)
class CollisionApproximation:
    """Collision geometry that approximates a surface.

    Attributes:
        shapes: Primitives with their poses in the mesh's frame; empty if pieces are used.
        pieces: Convex surfaces; empty if primitives are used.
        volume_excess: Total volume over that of the body, minus one.
        max_gap: Maximum distance of the approximation's surface from the mesh [m].
        max_protrusion: Maximum distance by which the mesh extends outside [m].
    """

    shapes: tuple[tuple[Primitive, SE3], ...]
    pieces: tuple[TriangleMesh, ...]
    volume_excess: float
    max_gap: float
    max_protrusion: float


def approximate_collision(
    mesh: TriangleMesh, shape_types: Sequence[str] = ("box", "cylinder", "sphere"), max_shapes: int = 1
) -> CollisionApproximation:
    """Approximate a surface by collision geometry.

    Args:
        mesh: Surface of a body.
        shape_types: Primitive types to choose from (the tightest is used); or "hull", or "decompose" alone.
        max_shapes: Maximum number of shapes or pieces.  Primitives are fitted to the connected components, or to the
            pieces of a convex decomposition if there is only one component, or too many.

    Raises:
        InputError: `max_shapes` is not positive, or "hull" and "decompose" are combined with others.
        UnknownNameError: A type is unknown.
        DescriptionError: The surface is flat, or has too many components.
    """
    for shape_type in shape_types:
        if shape_type not in SHAPE_TYPES:
            raise UnknownNameError(f"unknown shape {shape_type!r}", valid=", ".join(SHAPE_TYPES))
    if max_shapes < 1:
        raise InputError(f"max_shapes must be positive, got {max_shapes}", valid="1 or more")
    if "hull" in shape_types or "decompose" in shape_types:
        if len(shape_types) != 1:
            raise InputError(f"{shape_types[0]} cannot be combined with other shapes", valid="hull or decompose alone")
        return _from_decomposition(
            hull_decomposition(mesh) if shape_types[0] == "hull" else decompose_convex(mesh, max_shapes)
        )
    if not shape_types:
        raise InputError("shape_types is empty", valid=", ".join(SHAPE_TYPES))
    if max_shapes == 1:
        primitive = fit_primitive(mesh, shape_types)
        return CollisionApproximation(
            ((primitive.shape, primitive.T_mesh_shape),),
            (),
            primitive.volume_excess,
            primitive.max_gap,
            primitive.max_protrusion,
        )
    parts = split_components(mesh)
    if not 1 < len(parts) <= max_shapes:
        parts = list(decompose_convex(mesh, max_shapes).pieces)
    primitives = [fit_primitive(part, shape_types) for part in parts]
    return _from_primitives(mesh, primitives)


def _from_decomposition(decomposition: ConvexDecomposition) -> CollisionApproximation:
    return CollisionApproximation(
        (), decomposition.pieces, decomposition.volume_excess, decomposition.max_gap, decomposition.max_protrusion
    )


def _from_primitives(mesh: TriangleMesh, primitives: Sequence[FittedPrimitive]) -> CollisionApproximation:
    distance = MeshDistance(mesh)
    max_gap = max(
        float(distance.distances(one.T_mesh_shape @ sample_primitive(one.shape, SAMPLES)).max()) for one in primitives
    )
    points = sample_surface(mesh, SAMPLES)
    max_protrusion = protrusions = None
    for one in primitives:
        distances = signed_distance(one.shape, one.T_mesh_shape.inverse() @ points)
        protrusions = distances if protrusions is None else distances.clip(max=protrusions)
    max_protrusion = max(0.0, float(protrusions.max())) if protrusions is not None else 0.0
    body_volume = mesh.volume if mesh.is_closed and mesh.volume > 0.0 else convex_hull(mesh).volume
    volume_excess = sum(one.volume for one in primitives) / body_volume - 1.0
    return CollisionApproximation(
        tuple((one.shape, one.T_mesh_shape) for one in primitives), (), volume_excess, max_gap, max_protrusion
    )
