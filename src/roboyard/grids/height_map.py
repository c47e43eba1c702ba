"""Height map for legged locomotion, from any source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.geometry.arrays import Array


@dataclass(frozen=True, eq=False)
class HeightMap:
    """Heights of the ground at the middles of cells along the axes of a map.

    Attributes:
        heights: (rows, columns) [m]; rows go along y, columns along x.  Not a number: a hole, or unknown.
        corner: Least x and y of its cells [m].
        resolution: Edge of a cell [m].
        variance: (rows, columns) of the heights [m²]; None: they are the truth.
        ceiling: (rows, columns) what is in a cell is lower, seen or not [m], infinite where nothing is known; None:
            nowhere.
    """

    heights: Array
    corner: tuple[float, float]
    resolution: float
    variance: Array | None = None
    ceiling: Array | None = None

    def heights_at(self, points: Array) -> Array:
        """(n,) heights of the cells at places (n, 2 or more) [m]; not a number outside of the map."""
        c, r = (np.floor((points[:, k] - self.corner[k]) / self.resolution).astype(np.int64) for k in (0, 1))
        inside = (r >= 0) & (c >= 0) & (r < self.heights.shape[0]) & (c < self.heights.shape[1])
        out = np.full(len(points), np.nan)
        out[inside] = self.heights[r[inside], c[inside]]
        return out

    def mean_height(self, points: Array) -> float:
        """Mean height at places (n, 2 or more) [m]; 0 where the map knows none of them."""
        heights = self.heights_at(points)
        finite_heights = heights[np.isfinite(heights)]
        return float(finite_heights.mean()) if len(finite_heights) else 0.0
