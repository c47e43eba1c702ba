"""Convex hulls and convex pieces of meshes: exact facets, simplified pieces, or CoACD's decomposition.

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
"""Thickness given to a facet of a concave surface, inwards [m]."""
PLATE_OVERLAP = 1e-4
"""How far plates reach beyond their facets [m]."""
MAX_FACET_ANGLE = 1e-3
"""Neighbouring triangles that meet at a smaller angle belong to one facet [rad]."""
MIN_TRIANGLE_AREA = 1e-8
"""Triangles smaller than this are left out [m²]."""
MIN_WIDTH_FRACTION = 1e-5
"""A plate narrower than this share of its length is left out."""
MAX_COLLISION_PIECES = 5000


def split_into_convex_pieces(vertices: Points, faces: NDArray[np.int64]) -> list[Points] | None:
    """Point sets whose convex hulls together stand for the surface.

    A connected part that is convex already gives its own hull; of a concave part every flat facet becomes a thin
    plate.

    Args:
        vertices: (n, 3) [m].
        faces: (m, 3) indices, counter-clockwise seen from outside.

    Returns:
        Pieces, each (k, 3); None when there would be more than `MAX_PIECES`.
    """
    import trimesh

    mesh = trimesh.Trimesh(vertices, faces, process=True)
    # The pieces that hang together, in the order of their first face.
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
    """Numbers 0…count-1 grouped by ``links`` (n, 2) between them."""
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
    except QhullError:  # next to no thickness
        return False


def _make_plates(part: Any, max_plates: int) -> list[Points]:
    """Thin plates on the facets of a surface; about ``most`` where there would be more."""
    plates: list[Points] = []
    flat = part.face_adjacency[part.face_adjacency_angles < MAX_FACET_ANGLE]
    # Plain arrays: the mesh's own attributes are hashed anew at every look (18 s for 80,000 triangles).
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
    # Of a sliver along a line the engine, which reckons in single precision, makes no body.
    return [plate for plate in plates if not is_flat(plate, MIN_WIDTH_FRACTION)]


def make_plate(points: Points, normal: Points) -> Points:
    """The corners of a plate that has depth against ``normal`` (3,)."""
    # A little wider than it is, so that no ray slips through the seam of two plates.
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
    """The points and the triangles (k, 3) of their convex hull, counter-clockwise seen from outside.

    Raises:
        DescriptionError: they lie on a line, or in one point.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        try:
            hull = ConvexHull(points)
        except QhullError:
            hull = ConvexHull(points, qhull_options="QJ")  # nearly flat: may move corners by rounding's width
    except (QhullError, ValueError):
        raise DescriptionError("its points span no body", valid="corners that do not lie on a line") from None
    center = points[hull.vertices].mean(axis=0)
    triangles = hull.simplices.astype(np.int64)
    normals = np.cross(
        points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]]
    )
    inward = np.einsum("ij,ij->i", normals, points[triangles[:, 0]] - center) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    return points, triangles


def is_flat(vertices: Points, max_thickness_fraction: float = 1e-6) -> bool:
    """Whether the points lie in one plane, to within a ``share`` of their spread (no hull can be built)."""
    if len(vertices) < 4:
        return True
    spread = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
    return bool(spread[2] <= max_thickness_fraction * max(spread[0], 1e-9))


SIMPLIFICATION_PASSES, PASS_AGGRESSIVENESS = 10, 3.0
"""Passes of edge collapses, each of this aggressiveness: three gentle passes come as far as one rough one and stay
three times nearer (18 mm, not 55, where a scanned building of 155,000 triangles is left with 5,000)."""
CELL_GROWTH = 1.25
"""Factor from one size of cells to the next."""


@dataclass(frozen=True, slots=True)
class ConvexApproximation:
    """Convex pieces that stand for a surface.

    Attributes:
        surfaces: Corners (k, 3) [m] and triangles of each piece.
        triangles: Of the reduced surface they were made of; 0 if it was taken as it is.
        error: Largest distance between it and the original [m].
        filled: Hollows narrower than this may be filled [m].
    """

    pieces: tuple[tuple[Points, NDArray[np.int64]], ...]
    triangles: int = 0
    error: float = 0.0
    filled_width: float = 0.0


def approximate_by_convex_pieces(vertices: Points, faces: NDArray[np.int64]) -> ConvexApproximation:
    """Convex pieces of any surface, at most `MAX_PIECES`.

    As it is if that makes few enough; else reduced to as many triangles, and its distance measured (Hausdorff's); or in
    lumps, the hulls of the triangles in each cell of a grid, where that is nearer or the surface cannot be reduced.

    Args:
        vertices: (n, 3) [m].
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
    """`MAX_PIECES` triangles, if edge collapses reach that (M. Garland, P. Heckbert, SIGGRAPH 1997)."""
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
    """Size of cells [m] of which there would be too few, were each filled with a square of the surface."""
    edges = triangles[:, 1:] - triangles[:, :1]
    area = 0.5 * float(np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1).sum())
    return max(math.sqrt(area / MAX_COLLISION_PIECES), 1e-6)


def _group_by_cells(triangles: NDArray[np.float64], size: float) -> tuple[list[NDArray[np.int64]], float]:
    """Numbers of triangles by lump, and how far a lump can reach [m]: as far as its cell and its triangles do."""
    while len(groups := _triangles_by_cell(triangles, size)) > MAX_COLLISION_PIECES:
        size *= CELL_GROWTH
    return groups, size + float(np.ptp(triangles, axis=1).max())


def _triangles_by_cell(triangles: NDArray[np.float64], size: float) -> list[NDArray[np.int64]]:
    """Numbers of triangles by the cell of the grid that their middles lie in."""
    centers = triangles.mean(axis=1)
    x, y, z = np.floor((centers - centers.min(axis=0)) / size).astype(np.int64).T
    labels = (x * (y.max() + 1) + y) * (z.max() + 1) + z
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def _cell_points(vertices: Points, faces: NDArray[np.int64]) -> Points:
    """The corners of a cell's triangles; with some depth, inwards, where they lie in one plane."""
    corners = vertices[np.unique(faces)]
    spread = np.linalg.svd(corners - corners.mean(axis=0), compute_uv=False)
    if len(corners) > 3 and spread[2] > 1e-3 * spread[0]:
        return corners
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    # Across the plane, whatever the triangles' own sum is: that of a sheet's both sides is mere rounding.
    normal = np.linalg.svd(corners - corners.mean(axis=0), full_matrices=True)[2][2]
    facing = float(np.cross(b - a, c - a).sum(axis=0) @ normal)
    return make_plate(corners, normal if facing >= 0.0 else -normal)


MAX_DECOMPOSITION_TRIANGLES = 5_000
"""Larger surfaces are reduced before they are taken apart."""
MAX_DECOMPOSITION_PIECES = 256
DECOMPOSITION_SAMPLES = 4000


@dataclass(frozen=True)
class ConvexDecomposition:
    """Convex pieces of a body.

    Attributes:
        pieces: Closed and convex.
        volume_excess: Their volumes' sum over that of the body (or its hull where that is open), less one.
        max_gap: How far the pieces' surfaces reach from the mesh at most [m].
        max_protrusion: How far the mesh is from the nearest piece at most [m].
    """

    pieces: tuple[TriangleMesh, ...]
    volume_excess: float
    max_gap: float
    max_protrusion: float


def convex_hull(mesh: TriangleMesh) -> TriangleMesh:
    """The convex hull, closed, normals outwards. Raises DescriptionError for what is flat."""
    from scipy.spatial import ConvexHull, QhullError

    points = mesh.vertices[np.unique(mesh.faces)]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        raise DescriptionError("the surface is flat: it has no hull", valid="a body") from None
    faces = hull.simplices.astype(np.int64)
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0.0
    faces[inwards] = faces[inwards][:, ::-1]
    return TriangleMesh(points, faces).submesh(np.arange(len(faces)))


def hull_decomposition(mesh: TriangleMesh) -> ConvexDecomposition:
    """The convex hull as the only piece. Raises DescriptionError."""
    return _evaluate_pieces(mesh, (convex_hull(mesh),))


def decompose_convex(mesh: TriangleMesh, max_pieces: int = 16, concavity: float = 0.05) -> ConvexDecomposition:
    """Convex pieces by CoACD (X. Wei et al., SIGGRAPH 2022).

    Args:
        mesh: Of a body.
        max_pieces: Number of pieces allowed.
        concavity: At which a piece counts as convex, as a share of the size.

    Raises:
        InputError: a number is out of range.
        DescriptionError: the surface is flat.
    """
    if not 1 <= max_pieces <= MAX_DECOMPOSITION_PIECES or not 0.01 <= concavity <= 1.0:
        raise InputError(
            f"{max_pieces} pieces, concavity {concavity:g}",
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
