"""Distances from points to a mesh and between meshes (compiled), and mesh simplification to a triangle count or an
error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description.meshes.mesh import Points, TriangleMesh, merge_vertices
from roboyard.errors import InputError

LEAF_SIZE = 8
"""Number of triangles in a leaf of the tree."""


def _example_boxes() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((1, 3, 3)), np.zeros(1, np.int64), np.zeros((1, 2), np.int64), np.zeros((1, 2, 3)))


@kernel(examples=_example_boxes)
def _compute_boxes(
    triangles: NDArray[np.float64], order: NDArray[np.int64], spans: NDArray[np.int64], boxes: NDArray[np.float64]
) -> None:
    """Compute the bounding boxes (k, 2, 3) of the tree's spans of triangles."""
    for node in range(len(spans)):
        for axis in range(3):
            boxes[node, 0, axis] = math.inf
            boxes[node, 1, axis] = -math.inf
        for row in range(spans[node, 0], spans[node, 1]):
            for corner in range(3):
                for axis in range(3):
                    value = triangles[order[row], corner, axis]
                    boxes[node, 0, axis] = min(boxes[node, 0, axis], value)
                    boxes[node, 1, axis] = max(boxes[node, 1, axis], value)


@kernel
def _squared_distance_to_triangle(p: NDArray[np.float64], t: NDArray[np.float64]) -> float:
    """Compute the squared distance from a point to a triangle (C. Ericson, Real-Time Collision Detection, 5.1.5)."""
    ab = t[1] - t[0]
    ac = t[2] - t[0]
    ap = p - t[0]
    d1, d2 = ab @ ap, ac @ ap
    nearest = t[0]
    bp = p - t[1]
    d3, d4 = ab @ bp, ac @ bp
    cp = p - t[2]
    d5, d6 = ab @ cp, ac @ cp
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    if d1 <= 0.0 and d2 <= 0.0:
        nearest = t[0]
    elif d3 >= 0.0 and d4 <= d3:
        nearest = t[1]
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        nearest = t[0] + ab * (d1 / (d1 - d3) if d1 > d3 else 0.0)
    elif d6 >= 0.0 and d5 <= d6:
        nearest = t[2]
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        nearest = t[0] + ac * (d2 / (d2 - d6) if d2 > d6 else 0.0)
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        total = (d4 - d3) + (d5 - d6)
        nearest = t[1] + (t[2] - t[1]) * ((d4 - d3) / total if total > 0.0 else 0.0)
    else:
        total = va + vb + vc
        nearest = t[0] + ab * (vb / total) + ac * (vc / total)
    offset = p - nearest
    squared_distance: float = offset @ offset
    return squared_distance


@kernel
def _squared_distance_to_box(p: NDArray[np.float64], box: NDArray[np.float64]) -> float:
    """Compute the squared distance from a point to a box."""
    total = 0.0
    for axis in range(3):
        offset = max(box[0, axis] - p[axis], 0.0, p[axis] - box[1, axis])
        total += offset * offset
    return total


def _example_search() -> Iterable[tuple[Any, ...]]:
    spans = np.zeros((1, 2), np.int64)
    yield (np.zeros((1, 3)), np.zeros((1, 3, 3)), np.zeros(1, np.int64), spans, spans, np.zeros((1, 2, 3)), np.zeros(1))


@kernel(examples=_example_search)
def _search_nearest(
    points: NDArray[np.float64],
    triangles: NDArray[np.float64],
    order: NDArray[np.int64],
    spans: NDArray[np.int64],
    children: NDArray[np.int64],
    boxes: NDArray[np.float64],
    squared_distances: NDArray[np.float64],
) -> None:
    """Compute the squared distance from every point to the nearest triangle; closer nodes are visited first."""
    stack = np.empty(128, np.int64)
    for i in range(len(points)):
        p, best = points[i], math.inf
        stack[0] = 0
        stack_size = 1
        while stack_size > 0:
            stack_size -= 1
            node = stack[stack_size]
            if _squared_distance_to_box(p, boxes[node]) >= best:
                continue
            if children[node, 0] < 0:
                for row in range(spans[node, 0], spans[node, 1]):
                    best = min(best, _squared_distance_to_triangle(p, triangles[order[row]]))
                continue
            left, right = children[node, 0], children[node, 1]
            if _squared_distance_to_box(p, boxes[left]) < _squared_distance_to_box(p, boxes[right]):
                left, right = right, left
            stack[stack_size] = left
            stack[stack_size + 1] = right
            stack_size += 2
        squared_distances[i] = best


class MeshDistance:
    """Bounding volume hierarchy of a surface's triangles for distance queries."""

    def __init__(self, mesh: TriangleMesh) -> None:
        self._triangles = np.ascontiguousarray(mesh.triangles)
        centers = self._triangles.mean(axis=1)
        self._order = np.arange(len(centers))
        spans, children = [(0, len(centers))], [[-1, -1]]
        pending = [0]
        while pending:
            node = pending.pop()
            start, end = spans[node]
            if end - start <= LEAF_SIZE:
                continue
            members = self._order[start:end]
            axis = int(np.argmax(np.ptp(centers[members], axis=0)))
            half = (end - start) // 2
            self._order[start:end] = members[np.argpartition(centers[members, axis], half)]
            children[node] = [len(spans), len(spans) + 1]
            spans += [(start, start + half), (start + half, end)]
            children += [[-1, -1], [-1, -1]]
            pending += children[node]
        self._spans, self._children = np.array(spans, np.int64), np.array(children, np.int64)
        self._boxes = np.empty((len(spans), 2, 3))
        _compute_boxes(self._triangles, self._order, self._spans, self._boxes)

    def distances(self, points: Points) -> NDArray[np.float64]:
        """Compute the distances (n,) of points (n, 3) [m]."""
        squared_distances = np.empty(len(points))
        points = np.ascontiguousarray(points, float)
        _search_nearest(
            points, self._triangles, self._order, self._spans, self._children, self._boxes, squared_distances
        )
        return np.sqrt(squared_distances)


def sample_surface(mesh: TriangleMesh, count: int) -> Points:
    """Sample points (n, 3) on a surface [m]: its vertices, and about `count` more, evenly distributed and
    deterministic.
    """
    areas = np.linalg.norm(mesh.normals, axis=1)
    if count <= 0 or areas.sum() <= 0.0:
        return mesh.vertices
    cumulative_fractions = np.cumsum(areas) / areas.sum()
    number = np.arange(count)
    triangle = np.minimum(np.searchsorted(cumulative_fractions, (number + 0.5) / count), len(areas) - 1)
    u, v = (number * 0.7548776662466927) % 1.0, (number * 0.5698402909980532) % 1.0  # M. Roberts' R2 sequence
    flip = u + v > 1.0
    u, v = np.where(flip, 1.0 - u, u), np.where(flip, 1.0 - v, v)
    a, b, c = mesh.triangles[triangle].transpose(1, 0, 2)
    used = mesh.vertices[np.unique(mesh.faces)]
    return np.concatenate([used, a + u[:, None] * (b - a) + v[:, None] * (c - a)])


def hausdorff_distance(one: TriangleMesh, other: TriangleMesh, samples: int = 20_000) -> float:
    """Compute the Hausdorff distance of two surfaces [m], at their vertices and `samples` points of each."""
    forward = MeshDistance(other).distances(sample_surface(one, samples)).max()
    return float(max(forward, MeshDistance(one).distances(sample_surface(other, samples)).max()))


AGGRESSIVENESS = (1, 3, 5, 7, 9)
"""Aggressiveness of the passes of edge collapses."""
MAX_ATTEMPTS = 14
"""Maximum number of triangle counts that are tried to approach an error."""


@dataclass(frozen=True)
class SimplifiedMesh:
    """Simplified surface and its distance from the original [m]."""

    mesh: TriangleMesh
    error: float


def simplify_to_count(mesh: TriangleMesh, max_triangles: int) -> SimplifiedMesh:
    """Simplify to at most about `max_triangles` triangles by quadric edge collapse (M. Garland, P. Heckbert, SIGGRAPH
    1997).

    Raises:
        InputError: `max_triangles` is below four.
    """
    if max_triangles < 4:
        raise InputError(f"max_triangles must be at least 4, got {max_triangles}", valid="at least 4: a tetrahedron")
    if max_triangles >= len(mesh.faces):
        return SimplifiedMesh(mesh, 0.0)
    simplified = _collapse_edges(mesh, max_triangles)
    return SimplifiedMesh(simplified, hausdorff_distance(mesh, simplified))


def simplify_to_error(mesh: TriangleMesh, max_error: float) -> SimplifiedMesh:
    """Return the mesh with the fewest triangles found within `max_error` [m] of the original. Raises InputError."""
    if not 0.0 < max_error < np.inf:
        raise InputError(f"max_error must be positive, got {max_error:g} m", valid="above zero")
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
    # Edges are collapsed in rounds with increasing thresholds.  Finer rounds keep the surface closer to the original,
    # but do not reach the smallest triangle counts.
    for aggressiveness in AGGRESSIVENESS:
        corners, triangles = fast_simplification.simplify(
            mesh.vertices, faces, target_count=max_triangles, agg=aggressiveness
        )
        if not len(triangles):  # coincident triangles may all be removed
            break
        merged = merge_vertices(TriangleMesh(np.asarray(corners, float), np.asarray(triangles, np.int64)))
        if len(merged.faces) >= 4:
            simplified = merged
        if len(merged.faces) <= 1.02 * max_triangles:
            break
    return simplified
