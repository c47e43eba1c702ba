"""Ambient occlusion of static surfaces, computed once for each model: it darkens corners.

Each triangle has a grid of samples along the two edges at its first corner (the shorter ones). Rays from each sample
measure the distance of the surroundings.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32, Array
from roboyard.rendering.float32 import ExampleArguments
from roboyard.rendering.ray_scene import RayScene

RAYS_PER_SAMPLE = 48
MAX_OCCLUSION_DISTANCE = 1.4  # surroundings beyond this do not darken [m]
SAMPLE_SPACING = 0.07  # desired distance between samples [m]
MAX_SAMPLES = 90_000
MAX_TRIANGLES = 400_000
"""Largest number of triangles with samples; shapes with the most triangles have none if there are more."""
MIN_CLEARANCE = 0.02  # faces with less clearance in front of them are not visible [m]
_CHUNK = 8192


class AmbientOcclusion(NamedTuple):
    """Ambient visibility 0 … 1 of static surfaces: the fraction of the hemisphere that nothing nearby hides.

    Attributes:
        start: (t,) first entry of each triangle in ``value_indices``; −1: the triangle has none and is open.
        cells: (t, 2) grid cells along the triangle's first and second edge.
        value_indices: Rows of (cells[0] + 1) × (cells[1] + 1) numbers into ``values``, one triangle after the other.
        values: Visibility.
    """

    start: NDArray[np.int32]
    cells: NDArray[np.int32]
    value_indices: NDArray[np.int32]
    values: F32

    @staticmethod
    def unoccluded(triangles: int) -> AmbientOcclusion:
        """Return the table of a scene without occlusion."""
        no_samples = np.full(triangles, -1, np.int32)
        return AmbientOcclusion(
            no_samples, np.ones((triangles, 2), np.int32), np.zeros(1, np.int32), np.ones(1, np.float32)
        )


def bake_ambient_occlusion(scene: RayScene, *, spacing: float = SAMPLE_SPACING) -> AmbientOcclusion:
    """Compute the ambient visibility of static bodies; the spacing grows where too many samples are needed."""
    if 0 not in scene.bodies:
        return AmbientOcclusion.unoccluded(len(scene.corners))
    is_static = scene.piece_of == scene.bodies.index(0)
    corners, is_half_rectangle = scene.corners[is_static], scene.is_half_rectangle[is_static]
    e1, e2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    cross = np.cross(e1, e2)
    normals = cross / np.maximum(np.linalg.norm(cross, axis=1, keepdims=True), 1e-20)
    lengths = np.stack([np.linalg.norm(e1, axis=1), np.linalg.norm(e2, axis=1)], axis=1)
    sample_positions = ((1 / 3, 1 / 3), (0.05, 0.9), (0.9, 0.05), (0.05, 0.05))
    is_baked = _select_small_shapes(scene.geoms[is_static])
    clearances = [
        _compute_clearance(scene, (corners[:, 0] + u * e1 + v * e2)[is_baked], normals[is_baked], rays=6).max(1)
        for u, v in sample_positions
    ]
    # The far part of endless ground stays open.
    clearance = np.zeros(len(corners))
    clearance[is_baked] = np.max(clearances, axis=0)
    is_sampled = (lengths.max(1) < 100.0) & (clearance > MIN_CLEARANCE)
    while True:
        cells = np.maximum(1, np.ceil(lengths / spacing)).astype(np.int32)
        counts = np.where(is_sampled, (cells[:, 0] + 1) * (cells[:, 1] + 1), 0)
        is_single_cell: NDArray[np.bool_] = np.asarray((cells <= 1).all(1))
        n_samples = int(counts[~is_single_cell].sum() + counts[is_single_cell].sum() // 6)  # small ones share theirs
        if (
            n_samples <= MAX_SAMPLES or is_single_cell[is_sampled].all()
        ):  # of cells that are one already none can be saved
            break
        spacing *= max(1.05, math.sqrt(n_samples / MAX_SAMPLES))
    points, directions, keys = _place_samples(corners[:, 0], e1, e2, normals, cells, counts, is_half_rectangle, spacing)
    _, first_samples, value_of_sample = np.unique(keys, return_index=True, return_inverse=True)
    # Samples with equal keys share one value: rays start at the first of each.
    chunks = [first_samples[i : i + _CHUNK] for i in range(0, len(first_samples), _CHUNK)]
    visibilities = [_compute_visibility(scene, points[p], directions[p]) for p in chunks] or [np.ones(1, np.float32)]
    start, all_cells = np.full(len(scene.corners), -1, np.int32), np.ones((len(scene.corners), 2), np.int32)
    start[: len(corners)] = np.where(is_sampled, np.cumsum(counts) - counts, -1)
    all_cells[: len(corners)] = cells
    value_indices, values = value_of_sample.ravel().astype(np.int32), np.concatenate(visibilities)
    values = _fill_missing_values(values, value_indices, start, all_cells)
    return AmbientOcclusion(start, all_cells, value_indices, values)


def _select_small_shapes(geoms: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which triangles belong to shapes of few enough: (t,) of each its shape."""
    shapes, shape_of_triangle, counts = np.unique(geoms, return_inverse=True, return_counts=True)
    is_selected = np.ones(len(shapes), bool)
    for shape in np.argsort(-counts, kind="stable"):
        if counts[is_selected].sum() <= MAX_TRIANGLES:
            break
        is_selected[shape] = False
    return is_selected[shape_of_triangle]


def _place_samples(
    first: Array,
    e1: Array,
    e2: Array,
    normals: Array,
    cells: NDArray[np.int32],
    counts: NDArray[np.int64],
    is_half_rectangle: NDArray[np.bool_],
    spacing: float,
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return positions and normals of all samples, and keys that are equal where samples may share one value."""
    triangle_of_sample = np.repeat(np.arange(len(first)), counts)
    index_in_triangle = np.arange(len(triangle_of_sample)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = cells[triangle_of_sample, 1] + 1
    u, v = (
        (index_in_triangle // width) / cells[triangle_of_sample, 0],
        (index_in_triangle % width) / cells[triangle_of_sample, 1],
    )
    # Samples beyond the third edge move onto it, unless the other half of a rectangle continues there. None lies on an
    # edge itself, where it might touch a neighboring surface.
    shrink = np.where(is_half_rectangle[triangle_of_sample], 1.0, np.maximum(1.0, u + v))
    center = np.where(is_half_rectangle[triangle_of_sample], 0.5, 1 / 3)
    u, v = center + (u / shrink - center) * 0.995, center + (v / shrink - center) * 0.995
    points = first[triangle_of_sample] + u[:, None] * e1[triangle_of_sample] + v[:, None] * e2[triangle_of_sample]
    # Curved shapes consist of many small faces, whose neighbors share samples. Large faces keep every sample.
    keys = -1 - np.arange(len(triangle_of_sample))
    is_single_cell = (cells[triangle_of_sample] <= 1).all(1)
    cell_index = np.round(points[is_single_cell] / (0.5 * spacing)).astype(np.int64) & 0xFFFFF
    normal_index = (np.round(normals[triangle_of_sample[is_single_cell]] * 2.0) + 2).astype(np.int64)
    keys[is_single_cell] = ((cell_index[:, 0] << 43) ^ (cell_index[:, 1] << 23) ^ (cell_index[:, 2] << 8)) | (
        normal_index @ [1, 5, 25]
    )
    return points, normals[triangle_of_sample], keys


def _compute_visibility(scene: RayScene, points: Array, normals: Array) -> F32:
    """Return the visibility (n,) of samples; NaN for those inside a solid."""
    origins, directions = spread_rays(points, normals, _hemisphere_directions(RAYS_PER_SAMPLE))
    piece = scene.bodies.index(0)
    hits, free_distances, _ = scene.embree_scene.cast_rays(
        origins, directions, np.full(len(origins), MAX_OCCLUSION_DISTANCE, np.float32), piece
    )
    hit_normals = scene.normals[np.maximum(hits, 0), 0]
    hits_back_face = ((directions * hit_normals).sum(1) > 0) & (hits >= 0)
    visibility = free_distances.reshape(-1, RAYS_PER_SAMPLE).mean(1) / MAX_OCCLUSION_DISTANCE
    visibility[hits_back_face.reshape(-1, RAYS_PER_SAMPLE).mean(1) > 0.5] = np.nan
    return np.asarray(visibility, dtype=np.float32)


def _example_fill_missing_values() -> ExampleArguments:
    yield np.zeros(1, np.float32), np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones((1, 2), np.int32)


@kernel(examples=_example_fill_missing_values, error_model="numpy")
def _fill_missing_values(
    values: F32, value_indices: NDArray[np.int32], start: NDArray[np.int32], cells: NDArray[np.int32]
) -> F32:
    """Give samples without a value the mean of their neighbors, three times over; then the usual value of corners."""
    for triangle in range(len(start)):
        first = start[triangle]
        if first < 0:
            continue
        rows, cols = cells[triangle, 0] + 1, cells[triangle, 1] + 1
        for _ in range(3):
            missing = 0
            cell_values = np.empty(rows * cols, np.float32)
            for i in range(rows * cols):
                cell_values[i] = values[value_indices[first + i]]
                missing += 1 if np.isnan(cell_values[i]) else 0
            if missing == 0 or missing == rows * cols:
                break
            for row in range(rows):
                for col in range(cols):
                    if not np.isnan(cell_values[row * cols + col]):
                        continue
                    total, count = np.float32(0.0), 0
                    for i in range(max(row - 1, 0), min(row + 2, rows)):
                        for j in range(max(col - 1, 0), min(col + 2, cols)):
                            if not np.isnan(cell_values[i * cols + j]):
                                total += cell_values[i * cols + j]
                                count += 1
                    if count:
                        values[value_indices[first + row * cols + col]] = total / np.float32(count)
    for i in range(len(values)):
        if np.isnan(values[i]):
            values[i] = np.float32(0.5)
    return values


def _compute_clearance(scene: RayScene, points: Array, normals: Array, rays: int = RAYS_PER_SAMPLE) -> F32:
    """(n, rays) free distance from each point into the half space of its normal, up to ``REACH`` [m]."""
    origins, directions = spread_rays(points, normals, _hemisphere_directions(rays))
    max_distances = np.full(len(origins), MAX_OCCLUSION_DISTANCE, np.float32)
    _, distances, _ = scene.embree_scene.cast_rays(origins, directions, max_distances, piece=scene.bodies.index(0))
    return distances.reshape(-1, rays)


def _example_spread_rays() -> ExampleArguments:
    yield np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 3))


@kernel(examples=_example_spread_rays, error_model="numpy")
def spread_rays(points: Array, normals: Array, local_directions: Array) -> tuple[F32, F32]:
    """Return origins and directions of the rays from each point.

    Args:
        points: (n, 3) [m].
        normals: (n, 3) unit normals.
        local_directions: (k, 3) directions around +z, which are rotated to each normal.
    """
    count, rays = len(points), len(local_directions)
    origins, directions = np.empty((count * rays, 3), np.float32), np.empty((count * rays, 3), np.float32)
    for i in range(count):
        nx, ny, nz = normals[i]
        # A frame that changes smoothly with the normal (Duff et al., Building an Orthonormal Basis, Revisited, 2017).
        sign = 1.0 if nz >= 0.0 else -1.0
        a = -1.0 / (sign + nz)
        b = nx * ny * a
        for k in range(rays):
            x, y, z = local_directions[k]
            row = i * rays + k
            directions[row, 0] = x * (1.0 + sign * nx * nx * a) + y * b + z * nx
            directions[row, 1] = x * sign * b + y * (sign + ny * ny * a) + z * ny
            directions[row, 2] = -x * sign * nx - y * ny + z * nz
            for c in range(3):
                origins[row, c] = points[i, c] + 0.004 * normals[i, c]
    return origins, directions


def _hemisphere_directions(count: int) -> Array:
    """Directions about +z with density proportional to the cosine: a spiral."""
    k = (np.arange(count) + 0.5) / count
    radius, angle = np.sqrt(k), np.arange(count) * math.pi * (3 - math.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.sqrt(1 - k)], axis=1)
