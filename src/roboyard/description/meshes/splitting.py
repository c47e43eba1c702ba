"""Splits a mesh into connected components, or by planes or boxes with closed cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.mesh import Points, TriangleMesh, concatenate_meshes, merge_vertices
from roboyard.errors import DescriptionError, import_extra

MAX_PARTS = 500
"""Maximum number of components: with more, the export is a set of loose triangles, or contains screws."""
MIN_VOLUME_FRACTION = 1e-9
"""Minimum volume of a part as a fraction of the total; smaller ones are rounding errors of a cut."""
CutPlane = tuple[NDArray[np.float64], float]
"""Unit normal and offset of a plane: the points with ``normal · x = offset`` [m]."""
CutBox = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Minimum and maximum corner of a box [m]."""


def split_components(mesh: TriangleMesh) -> list[TriangleMesh]:
    """Split into connected components, the largest first; a cavity stays with the body around it.

    Raises:
        DescriptionError: There are more than `MAX_PARTS`.
    """
    groups = mesh.components()
    if len(groups) > MAX_PARTS:
        raise DescriptionError(f"the surface has {len(groups)} components", valid=f"at most {MAX_PARTS}")
    parts = [mesh.submesh(group) for group in groups]
    bodies = [part for part in parts if not (part.is_closed and part.volume < 0.0)]
    if not bodies:
        return sorted(parts, key=lambda part: -part.diagonal)
    solids: list[list[TriangleMesh]] = [[body] for body in bodies]
    for cavity in (part for part in parts if part.is_closed and part.volume < 0.0):
        hosts = [i for i, body in enumerate(bodies) if body.is_closed and _contains_point(body, cavity.vertices[0])]
        host = min(hosts, key=lambda i: bodies[i].volume, default=None)
        if host is None:
            solids.append([cavity])
        else:
            solids[host].append(cavity)
    meshes = [concatenate_meshes(group) for group in solids]
    return _largest_first(meshes)


def split_by_planes(mesh: TriangleMesh, planes: Sequence[CutPlane]) -> list[TriangleMesh]:
    """Split a closed surface at planes, with closed cuts; the largest piece first. Raises DescriptionError."""
    pieces = [_to_manifold(mesh)]
    for normal, offset in planes:
        halves = [half for piece in pieces for half in piece.split_by_plane(tuple(map(float, normal)), float(offset))]
        pieces = [half for half in halves if not half.is_empty()]
    return _to_meshes(pieces, mesh)


def split_by_boxes(mesh: TriangleMesh, boxes: Sequence[CutBox]) -> list[TriangleMesh]:
    """Split a closed surface into the part inside each box, in order, and the part outside all. Raises
    DescriptionError.
    """
    manifold3d = import_extra("manifold3d", "mesh", "cutting a mesh")

    remaining, pieces = _to_manifold(mesh), []
    for low, high in boxes:
        size = tuple(map(float, np.asarray(high) - np.asarray(low)))
        cube = manifold3d.Manifold.cube(size).translate(tuple(map(float, low)))
        pieces += _to_meshes([remaining ^ cube], mesh)
        remaining = remaining - cube
    return pieces + _to_meshes([remaining], mesh)


def _to_manifold(mesh: TriangleMesh) -> Any:
    """Convert to an oriented manifold; several bodies are united first, so that no volume counts twice."""
    manifold3d = import_extra("manifold3d", "mesh", "cutting a mesh")

    solids = []
    for part in split_components(mesh):
        manifold_mesh = manifold3d.Mesh64(
            np.ascontiguousarray(part.vertices), np.ascontiguousarray(part.faces, np.uint64)
        )
        solid = manifold3d.Manifold(manifold_mesh)
        if solid.status() != manifold3d.Error.NoError or solid.is_empty():
            raise DescriptionError(
                f"cannot cut a part with {len(part.faces)} triangles: its surface is not a closed manifold",
                valid="triangles that meet in pairs, edge to edge; --repair closes holes",
            )
        solids.append(solid)
    return manifold3d.Manifold.batch_boolean(solids, manifold3d.OpType.Add) if len(solids) > 1 else solids[0]


def _to_meshes(solids: Sequence[Any], original: TriangleMesh) -> list[TriangleMesh]:
    pieces = []
    for solid in solids:
        manifold_mesh = solid.to_mesh64()
        piece = TriangleMesh(
            np.asarray(manifold_mesh.vert_properties, float)[:, :3], np.asarray(manifold_mesh.tri_verts, np.int64)
        )
        if len(piece.faces) and abs(piece.volume) > MIN_VOLUME_FRACTION * abs(original.volume):
            pieces.append(merge_vertices(piece))
    return _largest_first(pieces)


def _largest_first(parts: list[TriangleMesh]) -> list[TriangleMesh]:
    """Sort by volume, open parts last; parts with equal volume up to rounding keep their order."""
    volumes = [abs(part.volume) if part.is_closed else 0.0 for part in parts]
    largest = max(volumes, default=0.0) or 1.0
    order = sorted(range(len(parts)), key=lambda number: -round(volumes[number] / largest, 6))
    return [parts[number] for number in order]


def _contains_point(mesh: TriangleMesh, point: Points) -> bool:
    """Return whether a point is inside a closed surface, by its solid angle (A. van Oosterom, J. Strackee, 1983)."""
    a, b, c = (mesh.triangles - point).transpose(1, 0, 2)
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    above = np.einsum("ij,ij->i", a, np.cross(b, c))
    dots = [np.einsum("ij,ij->i", x, y) for x, y in ((a, b), (b, c), (c, a))]
    below = la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb
    return bool(abs(2.0 * np.arctan2(above, below).sum()) > 2.0 * np.pi)
