"""A surface as few convex pieces: its hull, or an approximate convex decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roboyard.description.mesh_tools.nearness import Nearness, scattered
from roboyard.description.mesh_tools.surface import Surface
from roboyard.errors import DescriptionError, InputError, import_extra

MAX_TRIANGLES = 5_000
"""Larger surfaces are reduced before they are taken apart."""
MAX_PIECES = 256
SAMPLES = 4000


@dataclass(frozen=True)
class Decomposed:
    """Convex pieces of a body.

    Attributes:
        pieces: Closed and convex.
        excess: Their volumes' sum over that of the body (or its hull where that is open), less one.
        gap: How far the pieces' surfaces reach from the mesh at most [m].
        outside: How far the mesh is from the nearest piece at most [m].
    """

    pieces: tuple[Surface, ...]
    excess: float
    gap: float
    outside: float


def hull_of(surface: Surface) -> Surface:
    """The convex hull, closed, normals outwards. Raises DescriptionError for what is flat."""
    from scipy.spatial import ConvexHull, QhullError

    points = surface.vertices[np.unique(surface.faces)]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        raise DescriptionError("the surface is flat: it has no hull", valid="a body") from None
    faces = hull.simplices.astype(np.int64)
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0.0
    faces[inwards] = faces[inwards][:, ::-1]
    return Surface(points, faces).part(np.arange(len(faces)))


def as_hull(surface: Surface) -> Decomposed:
    """The convex hull as the only piece. Raises DescriptionError."""
    return _judged(surface, (hull_of(surface),))


def decomposed(surface: Surface, most: int = 16, concavity: float = 0.05) -> Decomposed:
    """Convex pieces by CoACD (X. Wei et al., SIGGRAPH 2022).

    Args:
        surface: Of a body.
        most: Number of pieces allowed.
        concavity: At which a piece counts as convex, as a share of the size.

    Raises:
        InputError: a number is out of range.
        DescriptionError: the surface is flat.
    """
    if not 1 <= most <= MAX_PIECES or not 0.01 <= concavity <= 1.0:
        raise InputError(
            f"{most} pieces, concavity {concavity:g}", valid=f"1 to {MAX_PIECES} pieces, concavity 0.01 to 1"
        )
    hull = hull_of(surface)
    if most == 1 or (surface.closed and hull.volume <= 1.0001 * surface.volume):
        return _judged(surface, (hull,))
    coacd = import_extra("coacd", "mesh", "splitting a mesh into convex pieces")

    from roboyard.description.mesh_tools.mending import without_gaps
    from roboyard.description.mesh_tools.reducing import to_triangles

    light = to_triangles(without_gaps(surface), MAX_TRIANGLES).surface
    coacd.set_log_level("off")
    parts = coacd.run_coacd(
        coacd.Mesh(light.vertices, light.faces.astype(np.int32)),
        threshold=concavity,
        max_convex_hull=most,
        mcts_iterations=60,
        resolution=1000,
        seed=0,
    )
    pieces = [hull_of(Surface(np.asarray(points, float), np.asarray(faces, np.int64))) for points, faces in parts]
    return _judged(surface, tuple(sorted(pieces, key=lambda piece: -piece.volume)))


def _judged(surface: Surface, pieces: Sequence[Surface]) -> Decomposed:
    body = surface.volume if surface.closed and surface.volume > 0.0 else hull_of(surface).volume
    near = Nearness(surface)
    gap = max(float(near.distances(scattered(piece, SAMPLES)).max()) for piece in pieces)
    points = scattered(surface, SAMPLES)
    away = np.full(len(points), np.inf)
    for piece in pieces:
        lengths = np.linalg.norm(piece.normals, axis=1)
        planes = piece.normals[lengths > 0.0] / lengths[lengths > 0.0, None]
        over = (points @ planes.T - np.einsum("ij,ij->i", planes, piece.triangles[lengths > 0.0, 0])).max(axis=1)
        beyond = np.flatnonzero(over > 0.0)
        own = np.zeros(len(points))
        if len(beyond):
            own[beyond] = Nearness(piece).distances(points[beyond])
        away = np.minimum(away, own)
    total = sum(piece.volume for piece in pieces)
    return Decomposed(tuple(pieces), total / body - 1.0, gap, float(away.max()))
