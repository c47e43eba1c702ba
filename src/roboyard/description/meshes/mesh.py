"""`TriangleMesh`: vertices and faces as arrays, with areas, edges and boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3

Points = NDArray[np.float64]
Faces = NDArray[np.int64]


@dataclass(frozen=True)
class TriangleMesh:
    """Triangle mesh that may or may not enclose a body.

    Attributes:
        vertices: (n, 3) vertices [m].
        faces: (m, 3) vertex indices, counter-clockwise seen from outside.
    """

    vertices: Points
    faces: Faces

    @cached_property
    def triangles(self) -> Points:
        """(m, 3, 3) corners of each triangle [m]."""
        corners: Points = self.vertices[self.faces]
        return corners

    @cached_property
    def normals(self) -> Points:
        """(m, 3) outward normals whose length is twice each triangle's area [m²]."""
        a, b, c = self.triangles.transpose(1, 0, 2)
        return np.cross(b - a, c - a)

    @property
    def area(self) -> float:
        """Area of the surface [m²]."""
        return float(np.linalg.norm(self.normals, axis=1).sum()) / 2.0

    @property
    def volume(self) -> float:
        """Signed volume of the enclosed body [m³]; meaningless if the surface is open."""
        reference = self.vertices.mean(axis=0) if len(self.vertices) else np.zeros(3)
        a, b, c = (self.triangles - reference).transpose(1, 0, 2)
        return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0

    @property
    def bounds(self) -> tuple[Points, Points]:
        """Minimum and maximum coordinates of the vertices used by triangles [m]."""
        used = self.vertices[np.unique(self.faces)]
        return used.min(axis=0), used.max(axis=0)

    @property
    def diagonal(self) -> float:
        """Length of the bounding box's diagonal [m]."""
        low, high = self.bounds
        return float(np.linalg.norm(high - low))

    @cached_property
    def boundary_edges(self) -> Faces:
        """(k, 2) directed edges without a partner in the other direction; empty if the surface is closed.

        At an edge shared by two bodies four triangles meet: directions still cancel, and so do volumes.
        """
        edges = self.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
        low, high = edges.min(axis=1), edges.max(axis=1)
        keys, edge_index = np.unique(low * (self.faces.max(initial=0) + 1) + high, return_inverse=True)
        balance = np.bincount(edge_index, np.where(edges[:, 0] < edges[:, 1], 1, -1), minlength=len(keys)).astype(int)
        is_unpaired = (balance[edge_index] != 0) & (
            np.where(edges[:, 0] < edges[:, 1], 1, -1) * balance[edge_index] > 0
        )
        boundary: Faces = edges[is_unpaired]
        return boundary

    @property
    def is_closed(self) -> bool:
        """Whether the surface is closed."""
        return len(self.faces) > 0 and not len(self.boundary_edges)

    def transformed(self, T_new_old: SE3, scale: float = 1.0) -> TriangleMesh:
        """Return the surface in another frame; the scale is applied first."""
        return TriangleMesh(T_new_old @ (self.vertices * scale), self.faces)

    def submesh(self, faces: NDArray[np.int64] | NDArray[np.bool_]) -> TriangleMesh:
        """Return some of the triangles, with the vertices that they use."""
        selected = self.faces[faces]
        used, numbers = np.unique(selected, return_inverse=True)
        return TriangleMesh(self.vertices[used], numbers.reshape(-1, 3).astype(np.int64))

    def components(self) -> list[NDArray[np.int64]]:
        """Return the triangle indices of each connected component (by shared vertices), ordered by their first
        triangle.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        links = self.faces[:, [0, 1, 1, 2]].reshape(-1, 2)
        count = len(self.vertices)
        graph = coo_array((np.ones(len(links), np.int8), (links[:, 0], links[:, 1])), shape=(count, count))
        labels = connected_components(graph, directed=False)[1][self.faces[:, 0]]
        order = np.argsort(labels, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
        return sorted((group.astype(np.int64) for group in groups if len(group)), key=lambda group: int(group[0]))


def concatenate_meshes(parts: Sequence[TriangleMesh]) -> TriangleMesh:
    """Concatenate several surfaces; triangles keep their order, vertices are not merged."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    faces = [part.faces + start for part, start in zip(parts, starts, strict=False)]
    if not parts:
        return TriangleMesh(np.zeros((0, 3)), np.zeros((0, 3), np.int64))
    return TriangleMesh(np.concatenate([part.vertices for part in parts]), np.concatenate(faces))


def merge_vertices(mesh: TriangleMesh, tolerance: float = 0.0) -> TriangleMesh:
    """Merge vertices with equal positions (within `tolerance` [m] per axis); remove triangles that lose a corner.

    STL lists the corners of every triangle separately, so that triangles are unconnected before.
    """
    keys = mesh.vertices if tolerance <= 0.0 else np.round(mesh.vertices / tolerance)
    _, first, vertex_index = np.unique(keys + 0.0, axis=0, return_index=True, return_inverse=True)  # + 0.0: avoids -0.0
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    faces = rank[vertex_index.ravel()][mesh.faces]
    is_proper = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    return TriangleMesh(mesh.vertices[first[order]], faces[is_proper])
