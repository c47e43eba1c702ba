"""Fewer triangles, and how far the surface has moved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.description.mesh_tools.nearness import hausdorff_distance
from roboyard.description.mesh_tools.surface import TriangleMesh, merge_vertices
from roboyard.errors import InputError

AGGRESSIVENESS = (1, 3, 5, 7, 9)
"""Of the rounds in which edges are collapsed."""
MAX_ATTEMPTS = 14
"""Numbers of triangles that are tried to come near an error."""


@dataclass(frozen=True)
class SimplifiedMesh:
    """A lighter surface and its distance from the original [m]."""

    mesh: TriangleMesh
    error: float


def simplify_to_count(mesh: TriangleMesh, max_triangles: int) -> SimplifiedMesh:
    """At most about ``max_triangles`` triangles, by quadric edge collapse (M. Garland, P. Heckbert, SIGGRAPH 1997).

    Raises:
        InputError: fewer than four.
    """
    if max_triangles < 4:
        raise InputError(f"{max_triangles} triangles", valid="at least 4: a tetrahedron")
    if max_triangles >= len(mesh.faces):
        return SimplifiedMesh(mesh, 0.0)
    simplified = _collapse_edges(mesh, max_triangles)
    return SimplifiedMesh(simplified, hausdorff_distance(mesh, simplified))


def simplify_to_error(mesh: TriangleMesh, max_error: float) -> SimplifiedMesh:
    """The lightest surface found that stays within ``max_error`` [m] of the original. Raises InputError."""
    if not 0.0 < max_error < np.inf:
        raise InputError(f"error {max_error:g} m", valid="above zero")
    best, low, high = SimplifiedMesh(mesh, 0.0), 4, len(mesh.faces)
    for _ in range(MAX_ATTEMPTS):
        if high - low < max(2, low // 50):
            break
        count = round((low * high) ** 0.5)
        candidate = simplify_to_count(mesh, count)
        if candidate.error <= max_error:
            best, high = candidate, count
        else:
            low = count + 1
    return best


def _collapse_edges(mesh: TriangleMesh, max_triangles: int) -> TriangleMesh:
    import fast_simplification

    simplified, faces = mesh, np.ascontiguousarray(mesh.faces, np.int32)
    # Edges are taken in rounds of rising thresholds.  The finer the rounds the nearer the surface stays, but the fewest
    # triangles are out of their reach.
    for aggressiveness in AGGRESSIVENESS:
        corners, triangles = fast_simplification.simplify(
            mesh.vertices, faces, target_count=max_triangles, agg=aggressiveness
        )
        if not len(triangles):  # triangles that lie on each other leave nothing
            break
        merged = merge_vertices(TriangleMesh(np.asarray(corners, float), np.asarray(triangles, np.int64)))
        if len(merged.faces) >= 4:
            simplified = merged
        if len(merged.faces) <= 1.02 * max_triangles:
            break
    return simplified
