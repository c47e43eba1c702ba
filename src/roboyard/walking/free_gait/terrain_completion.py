"""Terrain completion: assumed heights of ground that was not observed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import distance_transform_edt, maximum_filter

from roboyard.geometry.arrays import Array, Flags
from roboyard.grids.height_map import HeightMap
from roboyard.walking.free_gait.foothold_map import MAX_HEIGHT_STD

_RAY_TOLERANCE: Final = 0.01
"""Depth below an assumed height at which a passed ray disproves the height [m]."""
_SURFACE_TOLERANCE: Final = 0.02
"""Largest height difference of two cells that may belong to one surface [m]."""
_PIT_RADIUS: Final = 0.6
_MAX_PIT_DEPTH: Final = 0.15
"""Depth below nearby ground from which on ground counts as a pit, which does not continue [m]."""


@dataclass(frozen=True)
class TerrainCompletion:
    """Assumptions about unobserved ground.

    Ground nearer to the body than ``known_radius`` should have been observed: it is a hole.  Ground farther away
    continues the nearest observed ground.  Around the start position it has the height of the start.  None of this
    applies where rays passed below that height.

    Attributes:
        known_radius: Radius about the body's center within which unobserved ground is a hole [m].
        start: x, y and ground height of the start position [m].
        start_radius: Radius around the start within which unobserved ground has its height [m].
    """

    known_radius: float
    start: tuple[float, float, float]
    start_radius: float

    def complete(
        self,
        observed: HeightMap,
        body_position: ArrayLike,
        positions: ArrayLike,
        feet: Array,
        footholds: Array,
        margin: float,
    ) -> HeightMap:
        """Return the map on which steps are planned.

        Args:
            observed: Observed map with variances.
            body_position: (2,) center of the body [m].
            positions: (n, 2) positions that the map must contain, with a margin [m].
            feet: (l, 3) stance feet: there is ground under them, and it is not higher [m].
            footholds: (n, 3) footholds of the running plan [m]: ground slightly above one is set to its height, so that
                height errors do not invalidate committed footholds.
            margin: Margin around positions [m].
        """
        body_center = np.asarray(body_position, dtype=np.float64)
        out = _extend(observed, np.vstack([np.reshape(positions, (-1, 2)), body_center, [self.start[:2]]]), margin)
        heights, variance, ceiling = out.heights, out.variance, out.ceiling
        if variance is None:  # a map without variances is known completely
            return out
        if ceiling is None:
            ceiling = np.full(heights.shape, math.inf)
        _fill_gaps(heights, variance)
        rows, columns = heights.shape
        x = out.corner[0] + (np.arange(columns) + 0.5) * out.resolution
        y = (out.corner[1] + (np.arange(rows) + 0.5) * out.resolution)[:, None]
        _assume_height(
            heights,
            variance,
            ceiling,
            np.hypot(x - self.start[0], y - self.start[1]) <= self.start_radius,
            self.start[2],
        )
        for px, py, pz in feet.tolist():
            distance = np.fmax(np.abs(x - px), np.abs(y - py))
            is_under_foot = (distance <= out.resolution) & np.isnan(heights) | (distance <= 0.5 * out.resolution) & (
                heights > pz
            )
            heights[is_under_foot], variance[is_under_foot] = pz, 0.0
        for px, py, pz in footholds.tolist():
            is_near_foothold = (
                (np.abs(x - px) <= out.resolution)
                & (np.abs(y - py) <= out.resolution)
                & (heights > pz)
                & (heights < pz + _SURFACE_TOLERANCE)
            )
            heights[is_near_foothold] = pz
        is_known = np.isfinite(heights) & (variance <= MAX_HEIGHT_STD**2)
        known_heights = np.where(is_known, heights, -np.inf)
        is_continued = is_known & (
            heights >= maximum_filter(known_heights, size=2 * round(_PIT_RADIUS / out.resolution) + 1) - _MAX_PIT_DEPTH
        )
        if is_continued.any():
            nearest_indices = distance_transform_edt(~is_continued, return_distances=False, return_indices=True)
            _assume_height(
                heights,
                variance,
                ceiling,
                np.hypot(x - body_center[0], y - body_center[1]) > self.known_radius,
                heights[*nearest_indices],
            )
        return out


def _extend(observed: HeightMap, positions: Array, margin: float) -> HeightMap:
    """Return the same map, enlarged so that it contains positions with a margin."""
    cell, corner, shape = observed.resolution, np.array(observed.corner), np.array(observed.heights.shape)[::-1]
    cells_before = np.maximum(np.ceil((corner - positions.min(axis=0) + margin) / cell), 0).astype(int)
    cells_after = np.maximum(np.ceil((positions.max(axis=0) + margin - corner) / cell) - shape, 0).astype(int)
    pads = [(int(cells_before[1]), int(cells_after[1])), (int(cells_before[0]), int(cells_after[0]))]
    x, y = (corner - cells_before * cell).tolist()

    def padded(layer: Array | None, empty: float) -> Array | None:
        return None if layer is None else np.pad(layer, pads, constant_values=empty)

    heights = np.pad(observed.heights, pads, constant_values=math.nan)
    return HeightMap(heights, (x, y), cell, padded(observed.variance, math.nan), padded(observed.ceiling, math.inf))


def _fill_gaps(heights: Array, variance: Array) -> None:
    """Fill single unknown cells between two cells of one surface; far away the rays are sparser than the cells."""
    for axis in (0, 1):
        h, v = np.moveaxis(heights, axis, 0), np.moveaxis(variance, axis, 0)
        is_gap = (
            np.isnan(h[1:-1])
            & (np.abs(h[2:] - h[:-2]) <= _SURFACE_TOLERANCE)
            & (np.fmax(v[2:], v[:-2]) <= MAX_HEIGHT_STD**2)
        )
        v[1:-1][is_gap] = np.maximum(v[2:], v[:-2])[is_gap]
        h[1:-1][is_gap] = 0.5 * (h[2:] + h[:-2])[is_gap]


def _assume_height(heights: Array, variance: Array, ceiling: Array, region: Flags, assumed_height: ArrayLike) -> None:
    """Set unknown cells to an assumed height where no ray contradicts it."""
    is_assumed = np.isnan(heights) & region & ~(ceiling < np.asarray(assumed_height) - _RAY_TOLERANCE)
    heights[is_assumed], variance[is_assumed] = np.broadcast_to(assumed_height, heights.shape)[is_assumed], 0.0
