"""Rays against meshes, compiled: a tree of boxes over the triangles of each mesh.

The engine's own ``mj_rayMesh`` takes four times as long, and lets beams pass that meet an edge exactly.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array

Numbers = NDArray[np.int64]

LEAF = 4
"""Triangles that are not parted any further."""
_BINS = 16
_DEEP = 128
"""Nodes that wait while a ray goes down a tree; halves of halves of half a million need 20 levels."""
_EDGE = 1e-9
"""How far, as a share of an edge, a ray may pass beside a triangle and still meet it: meshes have no gaps."""


@dataclass(frozen=True, slots=True)
class MeshTrees:
    """Trees of a world's meshes, one behind the other.

    Attributes:
        roots: (geoms,) first node of a geom's tree, -1 for what is no mesh.
        bounds: (nodes, 6) lowest and highest corner [m] in the mesh's frame.
        links: (nodes, 2) numbers of two further nodes; of a leaf ``-1 - first`` triangle and how many.
        triangles: (triangles, 9) first corner and two edges [m].
        waiting: (_DEEP,) room for `ray`.
    """

    roots: Numbers
    bounds: Array
    links: Numbers
    triangles: Array
    waiting: Numbers


def mesh_trees(model: mujoco.MjModel, geoms: Numbers) -> MeshTrees:
    """Trees of the meshes among ``geoms``; a mesh that many share has one."""
    roots = np.full(model.ngeom, -1, np.int64)
    parts: list[tuple[Array, Numbers, Array]] = []
    known: dict[int, int] = {}
    nodes = triangles = 0
    for geom in geoms[model.geom_type[geoms] == int(mujoco.mjtGeom.mjGEOM_MESH)]:
        mesh = int(model.geom_dataid[geom])
        if mesh not in known:
            first, start = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
            points = model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])]
            faces = model.mesh_face[start : start + int(model.mesh_facenum[mesh])]
            bounds, links, corners = _tree_of(_Surface(points, faces))
            parts.append((bounds, links + np.where(links[:, :1] >= 0, nodes, [[-triangles, 0]]), corners))
            known[mesh] = nodes
            nodes, triangles = nodes + len(bounds), triangles + len(corners)
        roots[geom] = known[mesh]
    if not parts:
        parts = [(np.zeros((1, 6)), np.zeros((1, 2), np.int64), np.zeros((1, 9)))]
    bounds, links, corners = (np.concatenate(each) for each in zip(*parts, strict=True))
    return MeshTrees(roots, bounds, links, corners, np.zeros(_DEEP, np.int64))


class _Surface:
    """A mesh that is alike another if all its numbers are: worlds are compiled anew whenever a model comes or goes."""

    def __init__(self, points: NDArray[np.float32], faces: NDArray[np.int32]) -> None:
        self.points, self.faces = points, faces
        self._key = hashlib.sha256(points.tobytes() + faces.tobytes()).digest()

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Surface) and self._key == other._key


@lru_cache(maxsize=64)
def _tree_of(surface: _Surface) -> tuple[Array, Numbers, Array]:
    return build(np.asarray(surface.points, float)[surface.faces])


def _example_build() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((1, 3, 3)),)


@kernel(examples=_example_build)
def build(corners: Array) -> tuple[Array, Numbers, Array]:
    """Bounds, links and triangles of a tree (see `MeshTrees`) over (n, 3, 3) corners [m].

    Nodes are parted where boxes are least likely to be met (J. Goldsmith, J. Salmon, IEEE CG&A 7, 1987), tried at
    `_BINS` places along the longest side.
    """
    count = corners.shape[0]
    order = np.arange(count)
    middles = np.empty((count, 3))
    for k in range(count):
        for i in range(3):
            middles[k, i] = (corners[k, 0, i] + corners[k, 1, i] + corners[k, 2, i]) / 3.0
    bounds, links = np.empty((2 * count, 6)), np.empty((2 * count, 2), np.int64)
    spans = np.empty((2 * count, 2), np.int64)
    spans[0] = 0, count
    used, node = 1, 0
    low, high = np.empty((_BINS, 3)), np.empty((_BINS, 3))
    inside, after = np.empty(_BINS, np.int64), np.empty(_BINS)
    while node < used:
        start, end = spans[node]
        box, least, most = bounds[node], np.full(3, np.inf), np.full(3, -np.inf)
        box[:3], box[3:] = np.inf, -np.inf
        for k in order[start:end]:
            for i in range(3):
                least[i], most[i] = min(least[i], middles[k, i]), max(most[i], middles[k, i])
                for c in range(3):
                    box[i], box[3 + i] = min(box[i], corners[k, c, i]), max(box[3 + i], corners[k, c, i])
        axis = np.argmax(most - least)
        width = most[axis] - least[axis]
        if end - start <= LEAF or width <= 0.0:
            links[node] = -1 - start, end - start
            node += 1
            continue
        # How much surface, times triangles, lies on both sides of each cut between bins.
        low[:], high[:], inside[:] = np.inf, -np.inf, 0
        for k in order[start:end]:
            b = min(int(_BINS * (middles[k, axis] - least[axis]) / width), _BINS - 1)
            inside[b] += 1
            for i in range(3):
                for c in range(3):
                    low[b, i], high[b, i] = min(low[b, i], corners[k, c, i]), max(high[b, i], corners[k, c, i])
        down, up, total = np.full(3, np.inf), np.full(3, -np.inf), 0
        for b in range(_BINS - 1, 0, -1):
            total += inside[b]
            down, up = np.minimum(down, low[b]), np.maximum(up, high[b])
            after[b] = total * _surface(down, up)
        down, up, total, cut, cheapest = np.full(3, np.inf), np.full(3, -np.inf), 0, 1, np.inf
        for b in range(1, _BINS):
            total += inside[b - 1]
            down, up = np.minimum(down, low[b - 1]), np.maximum(up, high[b - 1])
            cost = total * _surface(down, up) + after[b]
            if 0 < total < end - start and cost < cheapest:
                cut, cheapest = b, cost
        left, right = start, end - 1
        while left <= right:
            k = order[left]
            if min(int(_BINS * (middles[k, axis] - least[axis]) / width), _BINS - 1) < cut:
                left += 1
            else:
                order[left], order[right] = order[right], k
                right -= 1
        spans[used], spans[used + 1] = (start, left), (left, end)
        links[node] = used, used + 1
        used, node = used + 2, node + 1
    triangles = np.empty((count, 9))
    for k in range(count):
        a, b, c = corners[order[k], 0], corners[order[k], 1], corners[order[k], 2]
        for i in range(3):
            triangles[k, i], triangles[k, 3 + i], triangles[k, 6 + i] = a[i], b[i] - a[i], c[i] - a[i]
    for k in range(used):  # rounding must not let a ray slip between two boxes
        slack = 1e-9 * (1.0 + np.abs(bounds[k]).max())
        bounds[k, :3] -= slack
        bounds[k, 3:] += slack
    return bounds[:used].copy(), links[:used].copy(), triangles


@kernel(inline="always")
def _surface(low: Array, high: Array) -> float:
    x, y, z = max(high[0] - low[0], 0.0), max(high[1] - low[1], 0.0), max(high[2] - low[2], 0.0)
    return float(x * y + y * z + z * x)


@kernel(inline="always")
def _enter(box: Array, px: float, py: float, pz: float, ix: float, iy: float, iz: float, far: float) -> float:
    """Where a ray of inverse direction (ix, iy, iz) enters a box; infinite if beyond ``far`` or never."""
    near = 0.0
    one, two = (box[0] - px) * ix, (box[3] - px) * ix
    near, far = max(near, min(one, two)), min(far, max(one, two))
    one, two = (box[1] - py) * iy, (box[4] - py) * iy
    near, far = max(near, min(one, two)), min(far, max(one, two))
    one, two = (box[2] - pz) * iz, (box[5] - pz) * iz
    near, far = max(near, min(one, two)), min(far, max(one, two))
    return near if near <= far else math.inf


@kernel(inline="always")
def _inverse(v: float) -> float:
    return 1.0 / v if abs(v) > 1e-30 else math.copysign(1e30, v)


@kernel
def ray(
    root: int, bounds: Array, links: Numbers, triangles: Array, waiting: Numbers,
    px: float, py: float, pz: float, vx: float, vy: float, vz: float, reach: float,
) -> float:  # fmt: skip
    """Distance along a ray to a mesh's nearest triangle, from either side; infinite beyond ``reach``."""
    ix, iy, iz = _inverse(vx), _inverse(vy), _inverse(vz)
    best = reach
    found = math.inf
    if _enter(bounds[root], px, py, pz, ix, iy, iz, best) == math.inf:
        return math.inf
    waiting[0] = root
    depth = 1
    while depth > 0:
        depth -= 1
        node = waiting[depth]
        one, two = links[node, 0], links[node, 1]
        if one < 0:
            for k in range(-1 - one, -1 - one + two):
                x = _triangle(triangles[k], px, py, pz, vx, vy, vz)
                if 0.0 <= x <= best:
                    best = found = x
            continue
        first = _enter(bounds[one], px, py, pz, ix, iy, iz, best)
        second = _enter(bounds[two], px, py, pz, ix, iy, iz, best)
        if second < first:
            one, two, first, second = two, one, second, first
        if second < math.inf and depth < _DEEP - 1:
            waiting[depth] = two
            depth += 1
        if first < math.inf:
            waiting[depth] = one
            depth += 1
    return found


@kernel(inline="always")
def _triangle(t: Array, px: float, py: float, pz: float, vx: float, vy: float, vz: float) -> float:
    """Distance along a ray to a triangle, or -1 (T. Möller, B. Trumbore, J. Graphics Tools 2, 1997)."""
    nx, ny, nz = vy * t[8] - vz * t[7], vz * t[6] - vx * t[8], vx * t[7] - vy * t[6]
    det = t[3] * nx + t[4] * ny + t[5] * nz
    if det == 0.0:
        return -1.0
    inverse = 1.0 / det
    sx, sy, sz = px - t[0], py - t[1], pz - t[2]
    u = (sx * nx + sy * ny + sz * nz) * inverse
    if u < -_EDGE or u > 1.0 + _EDGE:
        return -1.0
    qx, qy, qz = sy * t[5] - sz * t[4], sz * t[3] - sx * t[5], sx * t[4] - sy * t[3]
    v = (vx * qx + vy * qy + vz * qz) * inverse
    if v < -_EDGE or u + v > 1.0 + _EDGE:
        return -1.0
    return float((t[6] * qx + t[7] * qy + t[8] * qz) * inverse)
