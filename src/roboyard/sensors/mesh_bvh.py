"""Bounding volume hierarchies over the triangles of meshes, and rays against them; compiled.

MuJoCo's ``mj_rayMesh`` takes four times as long, and misses rays that hit an edge exactly.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array

Int64Array = NDArray[np.int64]

LEAF_SIZE = 4
"""Largest number of triangles of a leaf."""
_BINS = 16
_STACK_SIZE = 128
"""Nodes that wait while a ray descends a tree. A balanced tree over half a million triangles has 20 levels."""
_EDGE_TOLERANCE = 1e-9
"""Fraction of an edge by which a ray may miss a triangle and still hits it, so that meshes have no gaps."""


class MeshBvh(NamedTuple):
    """The trees of a world's meshes, stored one after the other.

    Attributes:
        roots: (geoms,) first node of a geom's tree, -1 for a geom that is no mesh.
        bounds: (nodes, 6) lowest and highest corner [m] in the mesh's frame.
        children: (nodes, 2) indices of the two child nodes; for a leaf ``-1 - first`` triangle and their number.
        triangles: (triangles, 9) first corner and two edges [m].
        stack: (`_STACK_SIZE`,) memory that `cast_ray` writes to.
    """

    roots: Int64Array
    bounds: Array
    children: Int64Array
    triangles: Array
    stack: Int64Array


class Ray(NamedTuple):
    """A half line; its direction need not have unit length, and distances are in units of that length.

    Attributes:
        px: Coordinates of the origin [m].
        py: …
        pz: …
        vx: Components of the direction.
        vy: …
        vz: …
    """

    px: float
    py: float
    pz: float
    vx: float
    vy: float
    vz: float


def make_mesh_bvh(model: mujoco.MjModel, geoms: Int64Array) -> MeshBvh:
    """Build the trees of the meshes among ``geoms``; geoms that share a mesh share its tree."""
    roots = np.full(model.ngeom, -1, np.int64)
    parts: list[tuple[Array, Int64Array, Array]] = []
    root_of_mesh: dict[int, int] = {}
    n_nodes = n_triangles = 0
    for geom in geoms[model.geom_type[geoms] == int(mujoco.mjtGeom.mjGEOM_MESH)]:
        mesh = int(model.geom_dataid[geom])
        if mesh not in root_of_mesh:
            first, start = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
            points = model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])]
            faces = model.mesh_face[start : start + int(model.mesh_facenum[mesh])]
            bounds, children, corners = _cached_bvh(_HashableMesh(points, faces))
            parts.append((bounds, children + np.where(children[:, :1] >= 0, n_nodes, [[-n_triangles, 0]]), corners))
            root_of_mesh[mesh] = n_nodes
            n_nodes, n_triangles = n_nodes + len(bounds), n_triangles + len(corners)
        roots[geom] = root_of_mesh[mesh]
    if not parts:
        parts = [(np.zeros((1, 6)), np.zeros((1, 2), np.int64), np.zeros((1, 9)))]
    bounds, children, corners = (np.concatenate(each) for each in zip(*parts, strict=True))
    return MeshBvh(roots, bounds, children, corners, make_traversal_stack())


def make_traversal_stack() -> Int64Array:
    """Allocate ``MeshBvh.stack``."""
    return np.zeros(_STACK_SIZE, np.int64)


class _HashableMesh:
    """A mesh as a key of a cache: worlds are compiled anew whenever a model is added or removed.

    Two meshes are equal if all their numbers are equal.
    """

    def __init__(self, points: NDArray[np.float32], faces: NDArray[np.int32]) -> None:
        self.points, self.faces = points, faces
        self._key = hashlib.sha256(points.tobytes() + faces.tobytes()).digest()

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _HashableMesh) and self._key == other._key


@lru_cache(maxsize=64)
def _cached_bvh(mesh: _HashableMesh) -> tuple[Array, Int64Array, Array]:
    return build_bvh(np.asarray(mesh.points, float)[mesh.faces])


def _example_build_bvh() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((1, 3, 3)),)


@kernel(examples=_example_build_bvh)
def build_bvh(corners: Array) -> tuple[Array, Int64Array, Array]:
    """Compute bounds, children and triangles of a tree (see `MeshBvh`) over (n, 3, 3) corners [m].

    A node is split where a ray is least likely to hit both halves, by the surface area of their boxes
    (J. Goldsmith, J. Salmon, IEEE CG&A 7, 1987). `_BINS` positions along the longest side are tried.
    """
    count = corners.shape[0]
    order = np.arange(count)
    centroids = np.empty((count, 3))
    for k in range(count):
        for i in range(3):
            centroids[k, i] = (corners[k, 0, i] + corners[k, 1, i] + corners[k, 2, i]) / 3.0
    bounds, children = np.empty((2 * count, 6)), np.empty((2 * count, 2), np.int64)
    spans = np.empty((2 * count, 2), np.int64)
    spans[0] = 0, count
    n_nodes, node = 1, 0
    bin_min, bin_max = np.empty((_BINS, 3)), np.empty((_BINS, 3))
    bin_counts, cost_after = np.empty(_BINS, np.int64), np.empty(_BINS)
    while node < n_nodes:
        start, end = spans[node]
        node_bounds, centroid_min, centroid_max = bounds[node], np.full(3, np.inf), np.full(3, -np.inf)
        node_bounds[:3], node_bounds[3:] = np.inf, -np.inf
        for k in order[start:end]:
            for i in range(3):
                centroid_min[i], centroid_max[i] = (
                    min(centroid_min[i], centroids[k, i]),
                    max(centroid_max[i], centroids[k, i]),
                )
                for c in range(3):
                    node_bounds[i], node_bounds[3 + i] = (
                        min(node_bounds[i], corners[k, c, i]),
                        max(node_bounds[3 + i], corners[k, c, i]),
                    )
        axis = np.argmax(centroid_max - centroid_min)
        width = centroid_max[axis] - centroid_min[axis]
        if end - start <= LEAF_SIZE or width <= 0.0:
            children[node] = -1 - start, end - start
            node += 1
            continue
        # Surface area times number of triangles on both sides of each cut between bins.
        bin_min[:], bin_max[:], bin_counts[:] = np.inf, -np.inf, 0
        for k in order[start:end]:
            b = min(int(_BINS * (centroids[k, axis] - centroid_min[axis]) / width), _BINS - 1)
            bin_counts[b] += 1
            for i in range(3):
                for c in range(3):
                    bin_min[b, i], bin_max[b, i] = (
                        min(bin_min[b, i], corners[k, c, i]),
                        max(bin_max[b, i], corners[k, c, i]),
                    )
        box_min, box_max, total = np.full(3, np.inf), np.full(3, -np.inf), 0
        for b in range(_BINS - 1, 0, -1):
            total += bin_counts[b]
            box_min, box_max = np.minimum(box_min, bin_min[b]), np.maximum(box_max, bin_max[b])
            cost_after[b] = total * _half_surface_area(box_min, box_max)
        box_min, box_max, total, cut, min_cost = np.full(3, np.inf), np.full(3, -np.inf), 0, 1, np.inf
        for b in range(1, _BINS):
            total += bin_counts[b - 1]
            box_min, box_max = np.minimum(box_min, bin_min[b - 1]), np.maximum(box_max, bin_max[b - 1])
            cost = total * _half_surface_area(box_min, box_max) + cost_after[b]
            if 0 < total < end - start and cost < min_cost:
                cut, min_cost = b, cost
        left, right = start, end - 1
        while left <= right:
            k = order[left]
            if min(int(_BINS * (centroids[k, axis] - centroid_min[axis]) / width), _BINS - 1) < cut:
                left += 1
            else:
                order[left], order[right] = order[right], k
                right -= 1
        spans[n_nodes], spans[n_nodes + 1] = (start, left), (left, end)
        children[node] = n_nodes, n_nodes + 1
        n_nodes, node = n_nodes + 2, node + 1
    triangles = np.empty((count, 9))
    for k in range(count):
        a, b, c = corners[order[k], 0], corners[order[k], 1], corners[order[k], 2]
        for i in range(3):
            triangles[k, i], triangles[k, 3 + i], triangles[k, 6 + i] = a[i], b[i] - a[i], c[i] - a[i]
    for k in range(n_nodes):  # a margin for rounding: no ray may pass between two boxes
        margin = 1e-9 * (1.0 + np.abs(bounds[k]).max())
        bounds[k, :3] -= margin
        bounds[k, 3:] += margin
    return bounds[:n_nodes].copy(), children[:n_nodes].copy(), triangles


@kernel(inline="always")
def _half_surface_area(low: Array, high: Array) -> float:
    x, y, z = max(high[0] - low[0], 0.0), max(high[1] - low[1], 0.0), max(high[2] - low[2], 0.0)
    return float(x * y + y * z + z * x)


@kernel(inline="always")
def _enter_box(
    box: Array, px: float, py: float, pz: float, ix: float, iy: float, iz: float, max_distance: float
) -> float:
    """Distance at which a ray of inverse direction (ix, iy, iz) enters a box; infinite beyond ``max_distance``."""
    near = 0.0
    one, two = (box[0] - px) * ix, (box[3] - px) * ix
    near, max_distance = max(near, min(one, two)), min(max_distance, max(one, two))
    one, two = (box[1] - py) * iy, (box[4] - py) * iy
    near, max_distance = max(near, min(one, two)), min(max_distance, max(one, two))
    one, two = (box[2] - pz) * iz, (box[5] - pz) * iz
    near, max_distance = max(near, min(one, two)), min(max_distance, max(one, two))
    return near if near <= max_distance else math.inf


@kernel(inline="always")
def _safe_inverse(v: float) -> float:
    return 1.0 / v if abs(v) > 1e-30 else math.copysign(1e30, v)


@kernel
def cast_ray(root: int, bvh: MeshBvh, ray: Ray, max_distance: float) -> float:
    """Distance along a ray to a mesh's nearest triangle, from either side; infinite beyond ``max_distance``.

    Args:
        root: First node of the mesh's tree.
        bvh: Trees of all meshes.
        ray: In the mesh's frame.
        max_distance: In units of the direction's length.
    """
    bounds, children, triangles, stack = bvh.bounds, bvh.children, bvh.triangles, bvh.stack
    px, py, pz, vx, vy, vz = ray
    ix, iy, iz = _safe_inverse(vx), _safe_inverse(vy), _safe_inverse(vz)
    best = max_distance
    found = math.inf
    if _enter_box(bounds[root], px, py, pz, ix, iy, iz, best) == math.inf:
        return math.inf
    stack[0] = root
    depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        one, two = children[node, 0], children[node, 1]
        if one < 0:
            for k in range(-1 - one, -1 - one + two):
                x = _hit_triangle(triangles[k], px, py, pz, vx, vy, vz)
                if 0.0 <= x <= best:
                    best = found = x
            continue
        first = _enter_box(bounds[one], px, py, pz, ix, iy, iz, best)
        second = _enter_box(bounds[two], px, py, pz, ix, iy, iz, best)
        if second < first:
            one, two, first, second = two, one, second, first
        if second < math.inf and depth < _STACK_SIZE - 1:
            stack[depth] = two
            depth += 1
        if first < math.inf:
            stack[depth] = one
            depth += 1
    return found


@kernel(inline="always")
def _hit_triangle(t: Array, px: float, py: float, pz: float, vx: float, vy: float, vz: float) -> float:
    """Distance along a ray to a triangle, or -1 (T. Möller, B. Trumbore, J. Graphics Tools 2, 1997)."""
    nx, ny, nz = vy * t[8] - vz * t[7], vz * t[6] - vx * t[8], vx * t[7] - vy * t[6]
    det = t[3] * nx + t[4] * ny + t[5] * nz
    if det == 0.0:
        return -1.0
    inverse = 1.0 / det
    sx, sy, sz = px - t[0], py - t[1], pz - t[2]
    u = (sx * nx + sy * ny + sz * nz) * inverse
    if u < -_EDGE_TOLERANCE or u > 1.0 + _EDGE_TOLERANCE:
        return -1.0
    qx, qy, qz = sy * t[5] - sz * t[4], sz * t[3] - sx * t[5], sx * t[4] - sy * t[3]
    v = (vx * qx + vy * qy + vz * qz) * inverse
    if v < -_EDGE_TOLERANCE or u + v > 1.0 + _EDGE_TOLERANCE:
        return -1.0
    return float((t[6] * qx + t[7] * qy + t[8] * qz) * inverse)
