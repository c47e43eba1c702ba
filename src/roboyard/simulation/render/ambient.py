"""How much open sky each spot of the standing world sees, computed once: the soft darkening in corners and at feet.

Each triangle carries a grid of spots spanned by the two edges at its first corner (the shorter ones).  From every
spot a fixed fan of rays asks how near the surroundings are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32, Array
from roboyard.simulation.render.ray_scene import RayScene
from roboyard.simulation.render.single import Cases

RAYS = 48
REACH = 1.4  # surroundings beyond this do not darken [m]
SPACING = 0.07  # wanted distance of spots [m]
MOST_SPOTS = 90_000
MOST_TRIANGLES = 400_000
"""Of shapes that are looked round from; the richest shapes beyond that stay open (a terrain of 1024 x 1024 heights)."""
BURIED = 0.02  # faces with no more room than this in front of them are not seen [m]
_CHUNK = 8192


@dataclass(frozen=True, slots=True)
class Openness:
    """Openness 0 … 1 of the standing world's surfaces.

    Attributes:
        start: (t,) first entry of each triangle in ``spots``; −1: the triangle has none and is open.
        cells: (t, 2) grid cells along the triangle's first and second edge.
        spots: Rows of (cells[0] + 1) × (cells[1] + 1) numbers into ``values``, one triangle after the other.
        values: Openness.
    """

    start: NDArray[np.int32]
    cells: NDArray[np.int32]
    spots: NDArray[np.int32]
    values: F32

    @staticmethod
    def all_open(triangles: int) -> Openness:
        """Nothing darkens anything."""
        none = np.full(triangles, -1, np.int32)
        return Openness(none, np.ones((triangles, 2), np.int32), np.zeros(1, np.int32), np.ones(1, np.float32))


def bake_openness(scene: RayScene, *, spacing: float = SPACING) -> Openness:
    """Openness of what stands still in ``scene``; wider spacing where the world would need too many spots."""
    if 0 not in scene.bodies:
        return Openness.all_open(len(scene.corners))
    still = scene.piece_of == scene.bodies.index(0)
    corners, halves = scene.corners[still], scene.halves[still]
    e1, e2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    cross = np.cross(e1, e2)
    normals = cross / np.maximum(np.linalg.norm(cross, axis=1, keepdims=True), 1e-20)
    lengths = np.stack([np.linalg.norm(e1, axis=1), np.linalg.norm(e2, axis=1)], axis=1)
    tries = ((1 / 3, 1 / 3), (0.05, 0.9), (0.9, 0.05), (0.05, 0.05))
    few = _modest(scene.geoms[still])
    rooms = [_room(scene, (corners[:, 0] + u * e1 + v * e2)[few], normals[few], rays=6).max(1) for u, v in tries]
    # The far part of endless ground stays open.
    room = np.zeros(len(corners))
    room[few] = np.max(rooms, axis=0)
    seen = (lengths.max(1) < 100.0) & (room > BURIED)
    while True:
        cells = np.maximum(1, np.ceil(lengths / spacing)).astype(np.int32)
        counts = np.where(seen, (cells[:, 0] + 1) * (cells[:, 1] + 1), 0)
        small: NDArray[np.bool_] = np.asarray((cells <= 1).all(1))
        needed = int(counts[~small].sum() + counts[small].sum() // 6)  # small ones share theirs
        if needed <= MOST_SPOTS or small[seen].all():  # of cells that are one already none can be saved
            break
        spacing *= max(1.05, math.sqrt(needed / MOST_SPOTS))
    points, directions, keys = _spots(corners[:, 0], e1, e2, normals, cells, counts, halves, spacing)
    _, chosen, spots = np.unique(keys, return_index=True, return_inverse=True)
    # Equal spots got one number; look round from the first of each.
    parts = [chosen[i : i + _CHUNK] for i in range(0, len(chosen), _CHUNK)]
    looks = [_openness_at(scene, points[p], directions[p]) for p in parts] or [np.ones(1, np.float32)]
    start, all_cells = np.full(len(scene.corners), -1, np.int32), np.ones((len(scene.corners), 2), np.int32)
    start[: len(corners)] = np.where(seen, np.cumsum(counts) - counts, -1)
    all_cells[: len(corners)] = cells
    numbers, values = spots.ravel().astype(np.int32), np.concatenate(looks)
    values = _filled(values, numbers, start, all_cells)
    return Openness(start, all_cells, numbers, values)


def _modest(geoms: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which triangles belong to shapes of few enough: (t,) of each its shape."""
    names, which, counts = np.unique(geoms, return_inverse=True, return_counts=True)
    chosen = np.ones(len(names), bool)
    for shape in np.argsort(-counts, kind="stable"):
        if counts[chosen].sum() <= MOST_TRIANGLES:
            break
        chosen[shape] = False
    return chosen[which]


def _spots(
    first: Array,
    e1: Array,
    e2: Array,
    normals: Array,
    cells: NDArray[np.int32],
    counts: NDArray[np.int64],
    halves: NDArray[np.bool_],
    spacing: float,
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Places of all spots, their normals, and keys that are equal where spots may share one value."""
    which = np.repeat(np.arange(len(first)), counts)
    number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = cells[which, 1] + 1
    u, v = (number // width) / cells[which, 0], (number % width) / cells[which, 1]
    # Spots beyond the third edge move onto it, unless the rectangle goes on there; and none lies on an edge itself, for
    # it might touch a neighbour.
    shrink = np.where(halves[which], 1.0, np.maximum(1.0, u + v))
    middle = np.where(halves[which], 0.5, 1 / 3)
    u, v = middle + (u / shrink - middle) * 0.995, middle + (v / shrink - middle) * 0.995
    points = first[which] + u[:, None] * e1[which] + v[:, None] * e2[which]
    # Round things are made of many small faces: neighbours share.  Large faces keep every spot.
    keys = -1 - np.arange(len(which))
    small = (cells[which] <= 1).all(1)
    grain = np.round(points[small] / (0.5 * spacing)).astype(np.int64) & 0xFFFFF
    facing = (np.round(normals[which[small]] * 2.0) + 2).astype(np.int64)
    keys[small] = ((grain[:, 0] << 43) ^ (grain[:, 1] << 23) ^ (grain[:, 2] << 8)) | (facing @ [1, 5, 25])
    return points, normals[which], keys


def _openness_at(scene: RayScene, points: Array, normals: Array) -> F32:
    """Openness (n,) of spots; nan for those inside something solid."""
    origins, directions = fan_out(points, normals, _hemisphere(RAYS))
    piece = scene.bodies.index(0)
    hits, free, _ = scene.meshes.nearest(origins, directions, np.full(len(origins), REACH, np.float32), piece)
    facing = scene.normals[np.maximum(hits, 0), 0]
    from_inside = ((directions * facing).sum(1) > 0) & (hits >= 0)
    openness = free.reshape(-1, RAYS).mean(1) / REACH
    openness[from_inside.reshape(-1, RAYS).mean(1) > 0.5] = np.nan
    return np.asarray(openness, dtype=np.float32)


def _fill_examples() -> Cases:
    yield np.zeros(1, np.float32), np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones((1, 2), np.int32)


@kernel(examples=_fill_examples, error_model="numpy")
def _filled(values: F32, numbers: NDArray[np.int32], start: NDArray[np.int32], cells: NDArray[np.int32]) -> F32:
    """Give spots without a value the mean of their neighbours', three times over; then what is usual in corners."""
    for triangle in range(len(start)):
        first = start[triangle]
        if first < 0:
            continue
        rows, cols = cells[triangle, 0] + 1, cells[triangle, 1] + 1
        for _ in range(3):
            missing = 0
            known = np.empty(rows * cols, np.float32)
            for i in range(rows * cols):
                known[i] = values[numbers[first + i]]
                missing += 1 if np.isnan(known[i]) else 0
            if missing == 0 or missing == rows * cols:
                break
            for row in range(rows):
                for col in range(cols):
                    if not np.isnan(known[row * cols + col]):
                        continue
                    total, count = np.float32(0.0), 0
                    for i in range(max(row - 1, 0), min(row + 2, rows)):
                        for j in range(max(col - 1, 0), min(col + 2, cols)):
                            if not np.isnan(known[i * cols + j]):
                                total += known[i * cols + j]
                                count += 1
                    if count:
                        values[numbers[first + row * cols + col]] = total / np.float32(count)
    for i in range(len(values)):
        if np.isnan(values[i]):
            values[i] = np.float32(0.5)
    return values


def _room(scene: RayScene, points: Array, normals: Array, rays: int = RAYS) -> F32:
    """(n, rays) free distance from each point into the half space of its normal, up to ``REACH`` [m]."""
    origins, directions = fan_out(points, normals, _hemisphere(rays))
    reach = np.full(len(origins), REACH, np.float32)
    _, free, _ = scene.meshes.nearest(origins, directions, reach, piece=scene.bodies.index(0))
    return free.reshape(-1, rays)


def _fan_examples() -> Cases:
    yield np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 3))


@kernel(examples=_fan_examples, error_model="numpy")
def fan_out(points: Array, normals: Array, fan: Array) -> tuple[F32, F32]:
    """Rays from each point: the directions ``fan`` (k, 3) about +z, turned to its normal; origins and directions."""
    count, rays = len(points), len(fan)
    origins, directions = np.empty((count * rays, 3), np.float32), np.empty((count * rays, 3), np.float32)
    for i in range(count):
        nx, ny, nz = normals[i]
        # A frame that changes smoothly with the normal (Duff et al., Building an Orthonormal Basis, Revisited, 2017).
        sign = 1.0 if nz >= 0.0 else -1.0
        a = -1.0 / (sign + nz)
        b = nx * ny * a
        for k in range(rays):
            x, y, z = fan[k]
            row = i * rays + k
            directions[row, 0] = x * (1.0 + sign * nx * nx * a) + y * b + z * nx
            directions[row, 1] = x * sign * b + y * (sign + ny * ny * a) + z * ny
            directions[row, 2] = -x * sign * nx - y * ny + z * nz
            for c in range(3):
                origins[row, c] = points[i, c] + 0.004 * normals[i, c]
    return origins, directions


def _hemisphere(count: int) -> Array:
    """Directions about +z with density proportional to the cosine: a spiral."""
    k = (np.arange(count) + 0.5) / count
    radius, angle = np.sqrt(k), np.arange(count) * math.pi * (3 - math.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.sqrt(1 - k)], axis=1)
