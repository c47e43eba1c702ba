"""Height map for legged locomotion, from any source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.geometry.arrays import Array


@dataclass(frozen=True, eq=False)
class HeightMap:
    """Height map: heights of the ground at cell centers, aligned with the axes of a map.

    Attributes:
        heights: (rows, columns) [m]; rows along y, columns along x.  NaN: a hole, or unknown.
        corner: Minimum x and y of its cells [m].
        resolution: Edge length of a cell [m].
        variance: (rows, columns) variance of the heights [m²]; None: exact heights.
        ceiling: (rows, columns) upper bound of objects in a cell, visible or not [m], infinite if unknown; None: no
            bounds.
    """

    heights: Array
    corner: tuple[float, float]
    resolution: float
    variance: Array | None = None
    ceiling: Array | None = None

    def heights_at(self, points: Array) -> Array:
        """Return the heights (n,) of the cells at positions (n, 2 or more) [m]; NaN outside the map."""
        c, r = (np.floor((points[:, k] - self.corner[k]) / self.resolution).astype(np.int64) for k in (0, 1))
        inside = (r >= 0) & (c >= 0) & (r < self.heights.shape[0]) & (c < self.heights.shape[1])
        out = np.full(len(points), np.nan)
        out[inside] = self.heights[r[inside], c[inside]]
        return out

    def mean_height(self, points: Array) -> float:
        """Return the mean height at positions (n, 2 or more) [m]; 0 if all are unknown."""
        heights = self.heights_at(points)
        finite_heights = heights[np.isfinite(heights)]
        return float(finite_heights.mean()) if len(finite_heights) else 0.0
