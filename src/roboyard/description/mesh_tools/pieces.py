"""A surface as few convex pieces: its hull, or an approximate convex decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roboyard.description.mesh_tools.nearness import MeshDistance, sample_surface
from roboyard.description.mesh_tools.surface import TriangleMesh
from roboyard.errors import DescriptionError, InputError, import_extra

MAX_TRIANGLES = 5_000
"""Larger surfaces are reduced before they are taken apart."""
MAX_PIECES = 256
SAMPLES = 4000


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
    if not 1 <= max_pieces <= MAX_PIECES or not 0.01 <= concavity <= 1.0:
        raise InputError(
            f"{max_pieces} pieces, concavity {concavity:g}", valid=f"1 to {MAX_PIECES} pieces, concavity 0.01 to 1"
        )
    hull = convex_hull(mesh)
    if max_pieces == 1 or (mesh.is_closed and hull.volume <= 1.0001 * mesh.volume):
        return _evaluate_pieces(mesh, (hull,))
    coacd = import_extra("coacd", "mesh", "splitting a mesh into convex pieces")

    from roboyard.description.mesh_tools.mending import merge_narrow_gaps
    from roboyard.description.mesh_tools.reducing import simplify_to_count

    simplified = simplify_to_count(merge_narrow_gaps(mesh), MAX_TRIANGLES).mesh
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
    max_gap = max(float(distance.distances(sample_surface(piece, SAMPLES)).max()) for piece in pieces)
    points = sample_surface(mesh, SAMPLES)
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
