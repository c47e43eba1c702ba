"""Convex hulls and convex decomposition of meshes: exact facets, simplified pieces, or CoACD.

A scanned building has half a million triangles; its convex hull would be one solid block with the robot inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.distance import MeshDistance, hausdorff_distance, sample_surface, simplify_to_count
from roboyard.description.meshes.mesh import TriangleMesh, merge_vertices
from roboyard.description.meshes.repair import merge_narrow_gaps
from roboyard.errors import DescriptionError, InputError, import_extra

Points = NDArray[np.float64]

PLATE_THICKNESS = 0.02
"""Thickness of the plate made from a facet of a concave surface, inwards [m]."""
PLATE_OVERLAP = 1e-4
"""Distance by which plates extend beyond their facets [m]."""
MAX_FACET_ANGLE = 1e-3
"""Maximum angle between adjacent triangles of one facet [rad]."""
MIN_TRIANGLE_AREA = 1e-8
"""Minimum area of a triangle; smaller ones are omitted [m²]."""
MIN_WIDTH_FRACTION = 1e-5
"""Minimum width of a plate as a fraction of its length; narrower ones are omitted."""
MAX_COLLISION_PIECES = 5000


def split_into_convex_pieces(vertices: Points, faces: NDArray[np.int64]) -> list[Points] | None:
    """Split a surface into point sets whose convex hulls together approximate it.

    A connected part that is convex becomes its own hull; each flat facet of a concave part becomes a thin plate.

    Args:
        vertices: (n, 3) vertices [m].
        faces: (m, 3) indices, counter-clockwise seen from outside.

    Returns:
        Pieces, each (k, 3); None if there would be more than `MAX_PIECES`.
    """
    import trimesh

    mesh = trimesh.Trimesh(vertices, faces, process=True)
    # The connected parts, in the order of their first face.
    groups = _connected_groups(len(mesh.faces), mesh.face_adjacency)
    if len(groups) > MAX_COLLISION_PIECES:
        return None
    pieces: list[Points] = []
    for group in groups:
        part = mesh.submesh([group], append=True, repair=False) if len(groups) > 1 else mesh
        if _is_convex(part):
            pieces.append(np.asarray(part.vertices))
        else:
            pieces.extend(_make_plates(part, MAX_COLLISION_PIECES + 1 - len(pieces)))
        if len(pieces) > MAX_COLLISION_PIECES:
            return None
    return pieces


def _connected_groups(count: int, links: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Group the numbers 0…count-1 by `links` (n, 2) between them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(links), np.int8), (links[:, 0], links[:, 1])), shape=(count, count))
    number, labels = connected_components(graph, directed=False)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.searchsorted(labels[order], np.arange(1, number)))


def _is_convex(part: Any) -> bool:
    from scipy.spatial import QhullError

    if np.linalg.matrix_rank(part.vertices - part.vertices[0], tol=1e-6) < 3:
        return False
    if not part.is_watertight:
        return False
    try:
        return bool(part.volume >= 0.98 * part.convex_hull.volume)
    except QhullError:  # almost no thickness
        return False


def _make_plates(part: Any, max_plates: int) -> list[Points]:
    """Make thin plates on the facets of a surface; stop soon after `max_plates`."""
    plates: list[Points] = []
    flat = part.face_adjacency[part.face_adjacency_angles < MAX_FACET_ANGLE]
    # Plain arrays: the mesh's own attributes are hashed at every access (18 s for 80,000 triangles).
    vertices, faces, normals, areas = (
        np.array(values) for values in (part.vertices, part.faces, part.face_normals, part.area_faces)
    )
    for facet in _connected_groups(len(faces), flat):
        facet = facet[areas[facet] > MIN_TRIANGLE_AREA]
        if not len(facet):
            continue
        if len(plates) >= max_plates:
            break
        normal = normals[facet[0]]
        points = vertices[np.unique(faces[facet])]
        if len(facet) == 1 or _projected_hull_area(points, normal) <= 1.02 * areas[facet].sum():
            plates.append(make_plate(points, normal))
        else:
            plates.extend(make_plate(vertices[faces[face]], normals[face]) for face in facet)
    # The engine uses single precision and cannot make a body from a sliver.
    return [plate for plate in plates if not is_flat(plate, MIN_WIDTH_FRACTION)]


def make_plate(points: Points, normal: Points) -> Points:
    """Return the corners of a plate that extends against `normal` (3,)."""
    # Slightly wider than the facet, so that no ray passes between two plates.
    outwards = points - points.mean(axis=0)
    wider = points + PLATE_OVERLAP * outwards / np.maximum(np.linalg.norm(outwards, axis=1, keepdims=True), 1e-12)
    return np.concatenate([wider, wider - PLATE_THICKNESS * np.asarray(normal)])


def _projected_hull_area(points: Points, normal: Points) -> float:
    from scipy.spatial import ConvexHull, QhullError

    axis = np.eye(3)[int(np.argmin(np.abs(normal)))]
    u = np.cross(normal, axis)
    u /= np.linalg.norm(u)
    flat = np.stack([points @ u, points @ np.cross(normal, u)], axis=1)
    try:
        return float(ConvexHull(flat).volume)
    except QhullError:
        return np.inf


def convex_hull_arrays(points: Points) -> tuple[Points, NDArray[np.int64]]:
    """Compute the convex hull of points: its vertices and triangles (k, 3), counter-clockwise seen from outside.

    Raises:
        DescriptionError: The points lie on a line, or in one point.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        try:
            hull = ConvexHull(points)
        except QhullError:
            hull = ConvexHull(points, qhull_options="QJ")  # nearly flat: may move corners by rounding errors
    except (QhullError, ValueError):
        raise DescriptionError(
            "the points have no convex hull with a volume", valid="corners that do not lie on a line"
        ) from None
    center = points[hull.vertices].mean(axis=0)
    triangles = hull.simplices.astype(np.int64)
    normals = np.cross(
        points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]]
    )
    inward = np.einsum("ij,ij->i", normals, points[triangles[:, 0]] - center) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    return points, triangles


def is_flat(vertices: Points, max_thickness_fraction: float = 1e-6) -> bool:
    """Return whether the points lie in a plane, within a fraction of their extent (then they have no hull)."""
    if len(vertices) < 4:
        return True
    spread = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
    return bool(spread[2] <= max_thickness_fraction * max(spread[0], 1e-9))


SIMPLIFICATION_PASSES, PASS_AGGRESSIVENESS = 10, 3.0
"""Number of passes of edge collapses, and their aggressiveness: three gentle passes are as effective as one rough pass,
with a third of the error (18 mm instead of 55 where a scanned building of 155,000 triangles is reduced to 5,000).
"""
CELL_GROWTH = 1.25
"""Growth factor of the cell size between attempts."""


@dataclass(frozen=True, slots=True)
class ConvexApproximation:
    """Convex pieces that approximate a surface.

    Attributes:
        pieces: Corners (k, 3) [m] and triangles of each piece.
        triangles: Number of triangles of the simplified surface that they were made from; 0 if it was not simplified.
        error: Maximum distance between the simplified surface and the original [m].
        filled_width: Maximum width of concavities that may be filled [m].
    """

    pieces: tuple[tuple[Points, NDArray[np.int64]], ...]
    triangles: int = 0
    error: float = 0.0
    filled_width: float = 0.0


def approximate_by_convex_pieces(vertices: Points, faces: NDArray[np.int64]) -> ConvexApproximation:
    """Approximate any surface by at most `MAX_PIECES` convex pieces.

    The surface is used unchanged if that gives few enough pieces.  Else it is simplified to this number of triangles,
    and its Hausdorff distance is measured; or the hulls of the triangles in each cell of a grid are used, if these are
    closer or the surface cannot be simplified.

    Args:
        vertices: (n, 3) vertices [m].
        faces: (m, 3) indices, counter-clockwise seen from outside.
    """
    pieces = split_into_convex_pieces(vertices, faces)
    if pieces is not None:
        return ConvexApproximation(_hulls(pieces))
    size = _min_cell_size(vertices[faces])
    simplified = _simplify(vertices, faces)
    if len(simplified.faces) <= MAX_COLLISION_PIECES:
        error = hausdorff_distance(TriangleMesh(vertices, faces), simplified)
        pieces = split_into_convex_pieces(simplified.vertices, simplified.faces) if error <= size else None
        if pieces is not None:
            return ConvexApproximation(_hulls(pieces), len(simplified.faces), error)
    groups, size = _group_by_cells(vertices[faces], size)
    cell_points = (_cell_points(vertices, faces[group]) for group in groups)
    return ConvexApproximation(
        _hulls([points for points in cell_points if not is_flat(points, MIN_WIDTH_FRACTION)]), filled_width=size
    )


def _hulls(pieces: list[Points]) -> tuple[tuple[Points, NDArray[np.int64]], ...]:
    return tuple(convex_hull_arrays(points) for points in pieces)


def _simplify(vertices: Points, faces: NDArray[np.int64]) -> TriangleMesh:
    """Simplify to `MAX_PIECES` triangles, if edge collapses reach this (M. Garland, P. Heckbert, SIGGRAPH 1997)."""
    import fast_simplification

    corners, triangles = np.asarray(vertices, float), np.ascontiguousarray(faces, np.int32)
    for _ in range(SIMPLIFICATION_PASSES):
        previous_count = len(triangles)
        corners, triangles = fast_simplification.simplify(
            corners, triangles, target_count=MAX_COLLISION_PIECES, agg=PASS_AGGRESSIVENESS
        )
        if len(triangles) <= MAX_COLLISION_PIECES or len(triangles) > 0.98 * previous_count:
            break
    return merge_vertices(TriangleMesh(np.asarray(corners, float), np.asarray(triangles, np.int64)))


def _min_cell_size(triangles: NDArray[np.float64]) -> float:
    """Return the cell size [m] at which a grid with one square of the surface per cell would have too few cells."""
    edges = triangles[:, 1:] - triangles[:, :1]
    area = 0.5 * float(np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1).sum())
    return max(math.sqrt(area / MAX_COLLISION_PIECES), 1e-6)


def _group_by_cells(triangles: NDArray[np.float64], size: float) -> tuple[list[NDArray[np.int64]], float]:
    """Return the triangle indices by cell, and the maximum extent of a cell's triangles [m]."""
    while len(groups := _triangles_by_cell(triangles, size)) > MAX_COLLISION_PIECES:
        size *= CELL_GROWTH
    return groups, size + float(np.ptp(triangles, axis=1).max())


def _triangles_by_cell(triangles: NDArray[np.float64], size: float) -> list[NDArray[np.int64]]:
    """Return the triangle indices by the grid cell that contains their centroid."""
    centers = triangles.mean(axis=1)
    x, y, z = np.floor((centers - centers.min(axis=0)) / size).astype(np.int64).T
    labels = (x * (y.max() + 1) + y) * (z.max() + 1) + z
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def _cell_points(vertices: Points, faces: NDArray[np.int64]) -> Points:
    """Return the corners of a cell's triangles; extended inwards if they are coplanar."""
    corners = vertices[np.unique(faces)]
    spread = np.linalg.svd(corners - corners.mean(axis=0), compute_uv=False)
    if len(corners) > 3 and spread[2] > 1e-3 * spread[0]:
        return corners
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    # Across the plane, whatever the sum of the normals: for both sides of a sheet it is only rounding.
    normal = np.linalg.svd(corners - corners.mean(axis=0), full_matrices=True)[2][2]
    facing = float(np.cross(b - a, c - a).sum(axis=0) @ normal)
    return make_plate(corners, normal if facing >= 0.0 else -normal)


MAX_DECOMPOSITION_TRIANGLES = 5_000
"""Maximum number of triangles of a surface before decomposition; larger surfaces are simplified."""
MAX_DECOMPOSITION_PIECES = 256
DECOMPOSITION_SAMPLES = 4000


@dataclass(frozen=True)
class ConvexDecomposition:
    """Convex decomposition of a body.

    Attributes:
        pieces: Closed, convex pieces.
        volume_excess: Sum of their volumes over that of the body (or its hull if it is open), minus one.
        max_gap: Maximum distance of the pieces' surfaces from the mesh [m].
        max_protrusion: Maximum distance of the mesh from the nearest piece [m].
    """

    pieces: tuple[TriangleMesh, ...]
    volume_excess: float
    max_gap: float
    max_protrusion: float


def convex_hull(mesh: TriangleMesh) -> TriangleMesh:
    """Compute the convex hull, closed, with outward normals. Raises DescriptionError for flat surfaces."""
    from scipy.spatial import ConvexHull, QhullError

    points = mesh.vertices[np.unique(mesh.faces)]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        raise DescriptionError("the surface is flat: it has no convex hull", valid="a body") from None
    faces = hull.simplices.astype(np.int64)
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0.0
    faces[inwards] = faces[inwards][:, ::-1]
    return TriangleMesh(points, faces).submesh(np.arange(len(faces)))


def hull_decomposition(mesh: TriangleMesh) -> ConvexDecomposition:
    """Return the convex hull as the only piece. Raises DescriptionError."""
    return _evaluate_pieces(mesh, (convex_hull(mesh),))


def decompose_convex(mesh: TriangleMesh, max_pieces: int = 16, concavity: float = 0.05) -> ConvexDecomposition:
    """Decompose a body into convex pieces by CoACD (X. Wei et al., SIGGRAPH 2022).

    Args:
        mesh: Surface of the body.
        max_pieces: Maximum number of pieces.
        concavity: Concavity below which a piece counts as convex, as a fraction of the size.

    Raises:
        InputError: A number is out of range.
        DescriptionError: The surface is flat.
    """
    if not 1 <= max_pieces <= MAX_DECOMPOSITION_PIECES or not 0.01 <= concavity <= 1.0:
        raise InputError(
            f"max_pieces {max_pieces} or concavity {concavity:g} is out of range",
            valid=f"1 to {MAX_DECOMPOSITION_PIECES} pieces, concavity 0.01 to 1",
        )
    hull = convex_hull(mesh)
    if max_pieces == 1 or (mesh.is_closed and hull.volume <= 1.0001 * mesh.volume):
        return _evaluate_pieces(mesh, (hull,))
    coacd = import_extra("coacd", "mesh", "splitting a mesh into convex pieces")

    simplified = simplify_to_count(merge_narrow_gaps(mesh), MAX_DECOMPOSITION_TRIANGLES).mesh
    coacd.set_log_level("off")
    parts = coacd.run_coacd(
        coacd.Mesh(simplified.vertices, simplified.faces.astype(np.int32)),
        threshold=concavity,
        max_convex_hull=max_pieces,
        mcts_iterations=60,
        resolution=1000,
        seed=0,
    )
    pieces = [
        convex_hull(TriangleMesh(np.asarray(points, float), np.asarray(faces, np.int64))) for points, faces in parts
    ]
    return _evaluate_pieces(mesh, tuple(sorted(pieces, key=lambda piece: -piece.volume)))


def _evaluate_pieces(mesh: TriangleMesh, pieces: Sequence[TriangleMesh]) -> ConvexDecomposition:
    body_volume = mesh.volume if mesh.is_closed and mesh.volume > 0.0 else convex_hull(mesh).volume
    distance = MeshDistance(mesh)
    max_gap = max(float(distance.distances(sample_surface(piece, DECOMPOSITION_SAMPLES)).max()) for piece in pieces)
    points = sample_surface(mesh, DECOMPOSITION_SAMPLES)
    protrusions = np.full(len(points), np.inf)
    for piece in pieces:
        lengths = np.linalg.norm(piece.normals, axis=1)
        planes = piece.normals[lengths > 0.0] / lengths[lengths > 0.0, None]
        plane_distances = (points @ planes.T - np.einsum("ij,ij->i", planes, piece.triangles[lengths > 0.0, 0])).max(
            axis=1
        )
        outside = np.flatnonzero(plane_distances > 0.0)
        piece_distances = np.zeros(len(points))
        if len(outside):
            piece_distances[outside] = MeshDistance(piece).distances(points[outside])
        protrusions = np.minimum(protrusions, piece_distances)
    total = sum(piece.volume for piece in pieces)
    return ConvexDecomposition(tuple(pieces), total / body_volume - 1.0, max_gap, float(protrusions.max()))
