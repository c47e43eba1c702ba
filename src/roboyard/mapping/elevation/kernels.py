"""Kernels of elevation maps: insertion of a cloud, visibility cleanup by rays, and fusion of heights."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32, Array

_MIN_UPRIGHT_POINTS: Final = 3.0
"""Fewer points of a cell that seem to be of something upright are errors."""


class ElevationLayers(NamedTuple):
    """State of each cell, (rows, columns).

    Attributes:
        height: Height of the ground [m]; NaN: unknown.
        variance: Variance of the height [m²].
        upright: Height of an upright object [m]; NaN: none.
        ceiling: Height of the lowest ray over the cell: an upper bound of heights [m]; infinite: none.
        contradictions: Number of successive clouds that contradict the height.
        coverage_bounds: (rows, columns, 4) minimum and maximum x and y of the points of the height, as fractions of the
            cell.
    """

    height: Array
    variance: Array
    upright: Array
    ceiling: Array
    contradictions: NDArray[np.int64]
    coverage_bounds: Array


class CloudCellStatistics(NamedTuple):
    """Statistics of one cloud in each cell, (rows, columns).

    Attributes:
        max_height: Height of the highest point on ground [m]; -inf: none.
        weight: Information of the points on ground that are as high within their errors [1/m²].
        height_moment: Sum of their heights, weighted by information [1/m].
        upright: Height of the highest point on an upright surface [m]; -inf: none.
        n_upright_points: Number of points on upright surfaces.
        ceiling: Height of the lowest ray [m].
        coverage_bounds: Bounds of the points, as in `ElevationLayers`.
    """

    max_height: Array
    weight: Array
    height_moment: Array
    upright: Array
    n_upright_points: Array
    ceiling: Array
    coverage_bounds: Array


class DepthNoiseModel(NamedTuple):
    """Noise of points, and limits of their distance, as in `StructuredLightNoise`."""

    a: float
    b: float
    c: float
    lateral: float
    min_distance: float
    max_distance: float


class CellWindow(NamedTuple):
    """Window of cells: smallest x and y, and side of a cell [m]."""

    min_x: float
    min_y: float
    cell_size: float


def _example_layers() -> ElevationLayers:
    one = np.zeros((1, 1))
    return ElevationLayers(one, one, one, one, np.zeros((1, 1), np.int64), np.zeros((1, 1, 4)))


def _example_statistics() -> CloudCellStatistics:
    one = np.zeros((1, 1))
    return CloudCellStatistics(one, one, one, one, one, one, np.zeros((1, 1, 4)))


@kernel(examples=lambda: [(np.zeros((1, 1, 3), np.float32), np.eye(3), np.zeros(3))])
def transform_points(points: F32, R: Array, p: Array) -> Array:
    """Transform points (h, w, 3) from the sensor's frame to the map [m].

    Args:
        points: Points in the sensor's frame [m].
        R: (3, 3) rotation of the sensor in the map.
        p: (3,) position of the sensor in the map [m].
    """
    out = np.empty(points.shape)
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            x, y, z = float(points[i, j, 0]), float(points[i, j, 1]), float(points[i, j, 2])
            for k in range(3):
                out[i, j, k] = R[k, 0] * x + R[k, 1] * y + R[k, 2] * z + p[k]
    return out


LEVEL, UPRIGHT, UNCLEAR = 0, 1, 2


@kernel(examples=lambda: [(np.zeros((1, 1, 3)), 0, 0, 1, 0.5)], inline="never")
def classify_side(points: Array, i: int, j: int, direction: int, min_normal_z: float) -> int:
    """Classify the surface from a point of a cloud (h, w, 3) to its neighbors on one side: level, upright or unclear.

    Args:
        points: Organised [m].
        i: Row of the point.
        j: Column of it.
        direction: 1 for the neighbours after it, -1 for those before.
        min_normal_z: Upward part of a normal that does not stand upright, at least.
    """
    ax, ay = points[i, j + direction, 0] - points[i, j, 0], points[i, j + direction, 1] - points[i, j, 1]
    bx, by = points[i + direction, j, 0] - points[i, j, 0], points[i + direction, j, 1] - points[i, j, 1]
    az, bz = points[i, j + direction, 2] - points[i, j, 2], points[i + direction, j, 2] - points[i, j, 2]
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    n = nx * nx + ny * ny + nz * nz
    if math.isnan(n):  # a neighbour is missing
        return UNCLEAR
    return UPRIGHT if nz * nz < min_normal_z * min_normal_z * n else LEVEL


@kernel(examples=lambda: [(np.zeros((1, 1, 3)), 0, 0, 0.5)], inline="never")
def classify_surface(points: Array, i: int, j: int, min_normal_z: float) -> int:
    """Classify the surface at a point of a cloud (h, w, 3): it is level only if it is level on all sides.

    So no point at the edge of an upright surface is level. A point at the border of an organized cloud is unclear; of a
    cloud in one row, which is not organized, all points are level.
    """
    h, w = points.shape[0], points.shape[1]
    if h == 1:
        return LEVEL
    if not (0 < i < h - 1 and 0 < j < w - 1):
        return UNCLEAR
    following, preceding = classify_side(points, i, j, 1, min_normal_z), classify_side(points, i, j, -1, min_normal_z)
    if following == UPRIGHT or preceding == UPRIGHT:
        return UPRIGHT
    return LEVEL if following == LEVEL and preceding == LEVEL else UNCLEAR


@kernel(examples=lambda: [(np.zeros(4), 0.0, 0.0)], inline="never")
def extend_bounds(bounds: Array, u: float, v: float) -> None:
    """Extend bounds (4,), minimum and maximum x, minimum and maximum y, to a point."""
    bounds[0], bounds[1] = min(bounds[0], u), max(bounds[1], u)
    bounds[2], bounds[3] = min(bounds[2], v), max(bounds[3], v)


@kernel(
    examples=lambda: [
        (
            np.zeros((1, 1, 3)),
            np.zeros(3),
            CellWindow(0.0, 0.0, 0.02),
            0.6,
            2.5,
            DepthNoiseModel(0.0, 0.0, 0.0, 0.0, 0.2, 3.0),
            _example_statistics(),
        )
    ]
)
def accumulate_cloud(
    points: Array,
    sensor_position: Array,
    window: CellWindow,
    min_normal_z: float,
    gate: float,
    noise_model: DepthNoiseModel,
    statistics: CloudCellStatistics,
) -> int:
    """Accumulate the points of a cloud in their cells; return the number of points.

    The highest ground that a cell shows counts, and what is as high within errors: below it are sides.

    Args:
        points: (h, w, 3) in the map [m]; neighbours in space are neighbours in it, or it is one row.
        sensor_position: (3,) where they were seen from [m].
        window: Cells of the map.
        min_normal_z: Upward part of the normal of ground, at least.
        gate: Heights are alike within so many standard deviations.
        noise_model: Errors of points.
        statistics: Written; initially empty.
    """
    min_x, min_y, cell_size = window.min_x, window.min_y, window.cell_size
    h, w = points.shape[0], points.shape[1]
    rows, columns = statistics.max_height.shape
    variances = np.full((h, w), -1.0)  # a point's variance, of ground; -1 of others
    count = 0
    for i in range(h):
        for j in range(w):
            px, py, pz = points[i, j, 0], points[i, j, 1], points[i, j, 2]
            dx, dy, dz = px - sensor_position[0], py - sensor_position[1], pz - sensor_position[2]
            d = math.sqrt(dx * dx + dy * dy + dz * dz)
            if not noise_model.min_distance <= d <= noise_model.max_distance:  # not a number is neither
                continue
            r, c = math.floor((py - min_y) / cell_size), math.floor((px - min_x) / cell_size)
            if not (0 <= r < rows and 0 <= c < columns):
                continue
            count += 1
            surface_class = classify_surface(points, i, j, min_normal_z)
            if surface_class == UPRIGHT:
                statistics.upright[r, c] = max(statistics.upright[r, c], pz)
                statistics.n_upright_points[r, c] += 1.0
            if surface_class != LEVEL:
                continue
            range_sigma, lateral_sigma = (
                noise_model.a + noise_model.b * (d - noise_model.c) ** 2,
                noise_model.lateral * d,
            )
            squared_normal_z = (dz / d) ** 2
            variances[i, j] = (
                squared_normal_z * range_sigma * range_sigma + (1.0 - squared_normal_z) * lateral_sigma * lateral_sigma
            )
            statistics.max_height[r, c] = max(statistics.max_height[r, c], pz)
    for i in range(h):
        for j in range(w):
            if variances[i, j] < 0.0:
                continue
            r, c = math.floor((points[i, j, 1] - min_y) / cell_size), math.floor((points[i, j, 0] - min_x) / cell_size)
            # a cell of a slope has points as much apart as it is steep
            if (
                statistics.max_height[r, c] - points[i, j, 2]
                <= gate * math.sqrt(2.0 * variances[i, j]) + 0.5 * cell_size
            ):
                information = 1.0 / max(variances[i, j], 1e-12)
                statistics.weight[r, c] += information
                statistics.height_moment[r, c] += information * points[i, j, 2]
                extend_bounds(
                    statistics.coverage_bounds[r, c],
                    (points[i, j, 0] - min_x) / cell_size - c,
                    (points[i, j, 1] - min_y) / cell_size - r,
                )
    return count


@kernel(examples=lambda: [(np.zeros((1, 1, 3)), np.zeros(3), CellWindow(0.0, 0.0, 0.02), 3.0, 1, np.zeros((1, 1)))])
def lower_ceiling(
    points: Array,
    sensor_position: Array,
    window: CellWindow,
    max_distance: float,
    stride: int,
    ceiling: Array,
) -> None:
    """Lower each cell's upper bound (rows, columns) [m] to the rays from the sensor (3,) to points (h, w, 3) [m].

    A ray counts, where it is highest in a cell, for those that it passes on the way, but for the two about its end:
    where a surface is seen flat the ray is just above it there.

    Args:
        points: In the map [m].
        sensor_position: In the map [m].
        window: Cells of the map.
        max_distance: Rays count up to this distance [m].
        stride: Every so many points of a row and of a column of an organised cloud.
        ceiling: To be lowered.
    """
    min_x, min_y, cell_size = window.min_x, window.min_y, window.cell_size
    rows, columns = ceiling.shape
    for i in range(0, points.shape[0], stride):
        for j in range(0, points.shape[1], stride):
            dx, dy, dz = (
                points[i, j, 0] - sensor_position[0],
                points[i, j, 1] - sensor_position[1],
                points[i, j, 2] - sensor_position[2],
            )
            horizontal_distance = math.hypot(dx, dy)
            if not horizontal_distance > 2.0 * cell_size or not math.isfinite(dz):
                continue
            end_fraction = (
                min(1.0, max_distance / math.sqrt(horizontal_distance * horizontal_distance + dz * dz))
                - 2.0 * cell_size / horizontal_distance
            )  # share of the ray
            # from cell to cell (Amanatides and Woo, 1987)
            c, r = (
                math.floor((sensor_position[0] - min_x) / cell_size),
                math.floor((sensor_position[1] - min_y) / cell_size),
            )
            sx, sy = (1 if dx > 0.0 else -1), (1 if dy > 0.0 else -1)
            tx = (min_x + (c + (sx > 0)) * cell_size - sensor_position[0]) / dx if dx != 0.0 else math.inf
            ty = (min_y + (r + (sy > 0)) * cell_size - sensor_position[1]) / dy if dy != 0.0 else math.inf
            wx = cell_size / abs(dx) if dx != 0.0 else math.inf
            wy = cell_size / abs(dy) if dy != 0.0 else math.inf
            t = 0.0
            while t < end_fraction:
                exit_fraction = min(tx, ty)
                if 0 <= r < rows and 0 <= c < columns:
                    z = sensor_position[2] + dz * (t if dz < 0.0 else exit_fraction)
                    ceiling[r, c] = min(ceiling[r, c], z)
                t = exit_fraction
                if tx < ty:
                    tx, c = tx + wx, c + sx
                else:
                    ty, r = ty + wy, r + sy


@kernel(examples=lambda: [(_example_layers(), _example_statistics(), 2.5, 9e-6, 3)])
def fuse_cloud(
    layers: ElevationLayers, statistics: CloudCellStatistics, gate: float, min_variance: float, max_contradictions: int
) -> None:
    """Fuse a cloud into the map: remove what its rays pass through, then fuse heights by their variances.

    What stood upright is gone, too, where the cloud shows ground and nothing upright.

    Args:
        layers: Of the map, changed.
        statistics: Statistics of the cloud.
        gate: Heights farther apart in standard deviations contradict.
        min_variance: What one cloud says has no smaller variance, and no height is believed to have one [m²].
        max_contradictions: Number of successive contradicting clouds after which a cell is reset.
    """
    rows, columns = layers.height.shape
    for r in range(rows):
        for c in range(columns):
            min_ray_height = statistics.ceiling[r, c]
            layers.ceiling[r, c] = min(layers.ceiling[r, c], min_ray_height)
            has_ground = statistics.weight[r, c] > 0.0
            z = statistics.height_moment[r, c] / statistics.weight[r, c] if has_ground else 0.0
            variance = max(1.0 / statistics.weight[r, c], min_variance) if has_ground else 0.0
            old_height, old_variance = layers.height[r, c], layers.variance[r, c]
            bounded_old_variance = max(old_variance, min_variance)
            is_consistent = has_ground and abs(z - old_height) <= gate * math.sqrt(
                bounded_old_variance + variance
            )  # a height that is none is not
            if not is_consistent and old_height - 3.0 * math.sqrt(bounded_old_variance) > min_ray_height:
                old_height = math.nan
                layers.height[r, c], layers.variance[r, c], layers.contradictions[r, c] = math.nan, math.nan, 0
            upright = (
                statistics.upright[r, c] if statistics.n_upright_points[r, c] >= _MIN_UPRIGHT_POINTS else -math.inf
            )
            if layers.upright[r, c] > max(min_ray_height, upright) or (has_ground and upright == -math.inf):
                layers.upright[r, c] = math.nan
            if upright > -math.inf and not layers.upright[r, c] >= upright:
                layers.upright[r, c] = upright
            if not has_ground:
                continue
            if is_consistent:
                layers.height[r, c] = (old_variance * z + variance * old_height) / (old_variance + variance)
                layers.variance[r, c] = old_variance * variance / (old_variance + variance)
                layers.contradictions[r, c] = 0
                extend_bounds(
                    layers.coverage_bounds[r, c],
                    statistics.coverage_bounds[r, c, 0],
                    statistics.coverage_bounds[r, c, 2],
                )
                extend_bounds(
                    layers.coverage_bounds[r, c],
                    statistics.coverage_bounds[r, c, 1],
                    statistics.coverage_bounds[r, c, 3],
                )
                continue
            layers.contradictions[r, c] += 1
            if math.isnan(old_height) or layers.contradictions[r, c] >= max_contradictions:
                layers.height[r, c], layers.variance[r, c], layers.contradictions[r, c] = z, variance, 0
                layers.coverage_bounds[r, c] = statistics.coverage_bounds[r, c]
