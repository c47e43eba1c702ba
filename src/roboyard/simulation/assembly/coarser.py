"""Meshes too fine to be taken apart facet by facet: made of fewer triangles first, or of lumps.

A scanned building has half a million triangles.  As its convex hull it would be one solid block with the robot inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mesh_tools.nearness import hausdorff_distance
from roboyard.description.mesh_tools.surface import TriangleMesh, merge_vertices
from roboyard.simulation.assembly.convex import MAX_PIECES, SLIVER, Points, convex_pieces, hull_of, is_flat, thicken

PASSES, GENTLE = 10, 3.0
"""Passes of edge collapses, each of this aggressiveness: three gentle passes come as far as one rough one and stay
three times nearer (18 mm, not 55, where a scanned building of 155,000 triangles is left with 5,000)."""
GROWTH = 1.25
"""Factor from one size of cells to the next."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Convex pieces that stand for a surface.

    Attributes:
        surfaces: Corners (k, 3) [m] and triangles of each piece.
        triangles: Of the reduced surface they were made of; 0 if it was taken as it is.
        error: Largest distance between it and the original [m].
        filled: Hollows narrower than this may be filled [m].
    """

    surfaces: tuple[tuple[Points, NDArray[np.int64]], ...]
    triangles: int = 0
    error: float = 0.0
    filled: float = 0.0


def taken_apart(vertices: Points, faces: NDArray[np.int64]) -> Pieces:
    """Convex pieces of any surface, at most `MAX_PIECES`.

    As it is if that makes few enough; else reduced to as many triangles, and its distance measured (Hausdorff's); or in
    lumps, the hulls of the triangles in each cell of a grid, where that is nearer or the surface cannot be reduced.

    Args:
        vertices: (n, 3) [m].
        faces: (m, 3) indices, counter-clockwise seen from outside.
    """
    pieces = convex_pieces(vertices, faces)
    if pieces is not None:
        return Pieces(_hulls(pieces))
    size = _least(vertices[faces])
    light = _reduced(vertices, faces)
    if len(light.faces) <= MAX_PIECES:
        error = hausdorff_distance(TriangleMesh(vertices, faces), light)
        pieces = convex_pieces(light.vertices, light.faces) if error <= size else None
        if pieces is not None:
            return Pieces(_hulls(pieces), len(light.faces), error)
    groups, size = _lumps(vertices[faces], size)
    lumps = (_lump(vertices, faces[group]) for group in groups)
    return Pieces(_hulls([lump for lump in lumps if not is_flat(lump, SLIVER)]), filled=size)


def _hulls(pieces: list[Points]) -> tuple[tuple[Points, NDArray[np.int64]], ...]:
    return tuple(hull_of(points) for points in pieces)


def _reduced(vertices: Points, faces: NDArray[np.int64]) -> TriangleMesh:
    """`MAX_PIECES` triangles, if edge collapses reach that (M. Garland, P. Heckbert, SIGGRAPH 1997)."""
    import fast_simplification

    corners, left = np.asarray(vertices, float), np.ascontiguousarray(faces, np.int32)
    for _ in range(PASSES):
        before = len(left)
        corners, left = fast_simplification.simplify(corners, left, target_count=MAX_PIECES, agg=GENTLE)
        if len(left) <= MAX_PIECES or len(left) > 0.98 * before:
            break
    return merge_vertices(TriangleMesh(np.asarray(corners, float), np.asarray(left, np.int64)))


def _least(triangles: NDArray[np.float64]) -> float:
    """Size of cells [m] of which there would be too few, were each filled with a square of the surface."""
    edges = triangles[:, 1:] - triangles[:, :1]
    area = 0.5 * float(np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1).sum())
    return max(math.sqrt(area / MAX_PIECES), 1e-6)


def _lumps(triangles: NDArray[np.float64], size: float) -> tuple[list[NDArray[np.int64]], float]:
    """Numbers of triangles by lump, and how far a lump can reach [m]: as far as its cell and its triangles do."""
    while len(groups := _cells(triangles, size)) > MAX_PIECES:
        size *= GROWTH
    return groups, size + float(np.ptp(triangles, axis=1).max())


def _cells(triangles: NDArray[np.float64], size: float) -> list[NDArray[np.int64]]:
    """Numbers of triangles by the cell of the grid that their middles lie in."""
    middles = triangles.mean(axis=1)
    x, y, z = np.floor((middles - middles.min(axis=0)) / size).astype(np.int64).T
    labels = (x * (y.max() + 1) + y) * (z.max() + 1) + z
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def _lump(vertices: Points, faces: NDArray[np.int64]) -> Points:
    """The corners of a cell's triangles; with some depth, inwards, where they lie in one plane."""
    corners = vertices[np.unique(faces)]
    spread = np.linalg.svd(corners - corners.mean(axis=0), compute_uv=False)
    if len(corners) > 3 and spread[2] > 1e-3 * spread[0]:
        return corners
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    # Across the plane, whatever the triangles' own sum is: that of a sheet's both sides is mere rounding.
    normal = np.linalg.svd(corners - corners.mean(axis=0), full_matrices=True)[2][2]
    outwards = float(np.cross(b - a, c - a).sum(axis=0) @ normal)
    return thicken(corners, normal if outwards >= 0.0 else -normal)
