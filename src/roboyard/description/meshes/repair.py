"""Mesh repair: merges vertices, orients faces, closes holes, and lists the repairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.mesh import Faces, TriangleMesh, merge_vertices
from roboyard.errors import DescriptionError

MERGE_TOLERANCE = 1e-5
"""Maximum width of gaps that are rounding errors of the exporter, as a fraction of the size."""
MAX_HOLES = 2000
"""Maximum number of holes; with more, the triangles are not connected at all."""
MAX_CAP_FRACTION = 0.2
"""Maximum area of caps as a fraction of the total area: what is behind larger holes would be a guess."""


def repair_mesh(mesh: TriangleMesh, repair: bool, location: str) -> tuple[TriangleMesh, tuple[str, ...]]:
    """Return a closed surface with outward normals, and the repairs made.

    Vertices closer than rounding errors are merged, degenerate and duplicate triangles are removed, and, with `repair`,
    triangles are flipped to agree with their neighbors and holes are capped by triangle fans.

    Raises:
        DescriptionError: The surface is open and not to be repaired, or cannot be repaired.
    """
    repairs: list[str] = []
    if not mesh.is_closed:
        mesh = _merge_close_vertices(mesh, repairs)
    if not mesh.is_closed:
        holes, open_count = _describe_holes(len(_boundary_loops(mesh.boundary_edges))), len(mesh.boundary_edges)
        if not repair:
            problem = (
                f"open: {open_count} edges have no neighbor ({holes})"
                if open_count
                else "not a manifold: more than two triangles share an edge"
            )
            raise DescriptionError(
                f"the surface is {problem}, therefore its volume is undefined",
                location=location,
                valid="a closed surface, or --repair to close it",
            )
        mesh = _orient_faces(mesh, repairs)
        mesh = _cap_holes(mesh, repairs, location)
    if mesh.volume < 0.0:
        mesh = TriangleMesh(mesh.vertices, mesh.faces[:, ::-1])
        repairs.append("turned inside out: its normals pointed inwards")
    if not mesh.volume > 1e-9 * mesh.area * mesh.diagonal:
        raise DescriptionError("the surface encloses no volume", location=location, valid="a body with some thickness")
    return mesh, tuple(repairs)


def merge_narrow_gaps(mesh: TriangleMesh) -> TriangleMesh:
    """Close gaps as narrow as an exporter's rounding errors, if this makes the surface more closed."""
    return mesh if mesh.is_closed else _merge_close_vertices(mesh, [])


def _merge_close_vertices(mesh: TriangleMesh, repairs: list[str]) -> TriangleMesh:
    merged = merge_vertices(mesh, MERGE_TOLERANCE * mesh.diagonal)
    _, first, counts = np.unique(np.sort(merged.faces, axis=1), axis=0, return_index=True, return_counts=True)
    single = TriangleMesh(merged.vertices, merged.faces[np.sort(first[counts == 1])])
    # Two equal triangles: one is enough.  Two with opposite sides: a fin without thickness, which cancels.
    if (counts > 1).any() and len(single.faces) and len(single.boundary_edges) <= len(merged.boundary_edges):
        repairs.append(f"removed {int(counts[counts > 1].sum())} coincident triangles")
        merged = single
    if merged.is_closed or len(merged.boundary_edges) < len(mesh.boundary_edges):
        repairs.append(f"merged vertices closer than {MERGE_TOLERANCE * mesh.diagonal:.2g} m")
        return merged
    return mesh


def _orient_faces(mesh: TriangleMesh, repairs: list[str]) -> TriangleMesh:
    """Flip triangles until neighbors agree, each component by the majority of its area."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    faces = mesh.faces
    edges = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    low, high = edges.min(axis=1), edges.max(axis=1)
    owners = np.repeat(np.arange(len(faces)), 3)
    order = np.lexsort((owners, high, low))
    same_edge = (low[order][1:] == low[order][:-1]) & (high[order][1:] == high[order][:-1])
    # Only edges with exactly two triangles define neighbors.
    is_pair = same_edge & ~np.append(same_edge[1:], False) & ~np.insert(same_edge[:-1], 0, False)
    first, second = order[:-1][is_pair], order[1:][is_pair]
    disagrees = (edges[first, 0] == edges[second, 0]).astype(np.int64)  # the same direction: one of the two is flipped
    a, b = owners[first], owners[second]
    count = len(faces)
    number, labels = connected_components(coo_array((np.ones(len(a), np.int8), (a, b)), shape=(count, count)), False)
    # An additional node is a neighbor of every component's first triangle: one traversal from it reaches all.
    roots = np.unique(labels, return_index=True)[1]
    graph_edges = np.concatenate([a, np.full(len(roots), count)]), np.concatenate([b, roots])
    links = coo_array((np.ones(len(graph_edges[0]), np.int8), graph_edges), shape=(count + 1, count + 1)).tocsr()
    reached, predecessors = breadth_first_order(links, count, directed=False)
    keys = np.minimum(a, b) * (count + 1) + np.maximum(a, b)
    order = np.argsort(keys, kind="stable")
    tree_keys = np.minimum(predecessors[:count], np.arange(count)) * (count + 1) + np.maximum(
        predecessors[:count], np.arange(count)
    )
    pair = order[np.minimum(np.searchsorted(keys, tree_keys, sorter=order), len(keys) - 1)] if len(keys) else None
    differs = np.where(keys[pair] == tree_keys, disagrees[pair], 0).tolist() if pair is not None else [0] * count
    parents, flipped = predecessors.tolist(), [0] * (count + 1)
    for face in reached[1:].tolist():
        flipped[face] = flipped[parents[face]] ^ differs[face]
    flips: NDArray[np.int64] = np.array(flipped[:count], np.int64)
    areas = np.linalg.norm(mesh.normals, axis=1)
    inverted = np.bincount(labels, areas * flips, minlength=number) > np.bincount(labels, areas, minlength=number) / 2.0
    flips ^= inverted[labels]
    if flips.any():
        repairs.append(f"flipped {int(flips.sum())} triangles with wrong orientation")
    return TriangleMesh(mesh.vertices, np.where(flips[:, None] == 1, faces[:, ::-1], faces))


def _boundary_loops(edges: Faces) -> list[list[int]]:
    """Return the open edges as closed loops of vertices; edges that do not form loops are omitted."""
    next_vertices: dict[int, list[int]] = {}
    for start, end in edges.tolist():
        next_vertices.setdefault(start, []).append(end)
    loops = []
    for start in list(next_vertices):
        while next_vertices.get(start):
            loop, vertex = [start], next_vertices[start].pop()
            while vertex != start and next_vertices.get(vertex):
                loop.append(vertex)
                vertex = next_vertices[vertex].pop()
            if vertex == start and len(loop) > 2:
                loops.append(loop)
    return loops


def _cap_holes(mesh: TriangleMesh, repairs: list[str], location: str) -> TriangleMesh:
    if mesh.is_closed:
        return mesh
    caps, vertices = [], [mesh.vertices]
    vertex_count = len(mesh.vertices)
    loops = _boundary_loops(mesh.boundary_edges)
    if len(loops) > MAX_HOLES:
        raise DescriptionError(
            f"the surface has {len(loops)} holes: its triangles are not connected", location=location,
            valid=f"at most {MAX_HOLES} holes",
        )  # fmt: skip
    for loop in loops:
        corners = mesh.vertices[loop]
        vertices.append(corners.mean(axis=0, keepdims=True))
        next_vertices = loop[1:] + loop[:1]
        caps.append(np.array([(b, a, vertex_count) for a, b in zip(loop, next_vertices, strict=True)], np.int64))
        vertex_count += 1
    faces = np.concatenate([mesh.faces, *caps]) if caps else mesh.faces
    closed = TriangleMesh(np.concatenate(vertices), faces)
    if not closed.is_closed:
        raise DescriptionError(
            f"the surface cannot be closed: {len(closed.boundary_edges)} open edges form no loop",
            location=location,
            valid="a surface whose triangles meet edge to edge",
        )
    cap_area = closed.submesh(np.arange(len(mesh.faces), len(faces))).area
    if cap_area > MAX_CAP_FRACTION * closed.area:
        raise DescriptionError(
            f"cannot close {_describe_holes(len(loops))} with {cap_area / closed.area:.0%} of the surface",
            location=location,
            valid=f"at most {MAX_CAP_FRACTION:.0%}: the shape behind larger holes would be a guess",
        )
    repairs.append(f"capped {_describe_holes(len(loops))}, {cap_area / closed.area:.2%} of the surface")
    return closed


def _describe_holes(number: int) -> str:
    return "1 hole" if number == 1 else f"{number} holes"
