"""Ground that a robot has seen in part: what it takes the rest for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import distance_transform_edt, maximum_filter

from roboyard.geometry.arrays import Array, Flags
from roboyard.grids.height_map import HeightMap
from roboyard.walking.steps.ground import SURE

_LOWER: Final = 0.01
"""Ground is not where rays have passed lower than it by this [m]."""
_ALIKE: Final = 0.02
"""Heights that are no farther apart may be of one surface [m]."""
_ABOUT: Final = 0.6
_PIT: Final = 0.15
"""What lies deeper than this below other ground so near is a pit, and not how ground goes on [m]."""


@dataclass(frozen=True)
class Foresight:
    """What unseen ground is taken for.

    What is nearer to the body than ``horizon`` should have been seen by now: it is a hole.  What is farther is taken to
    go on as the nearest ground that is seen, until it is.  Round the place where the robot began it is as high as that.
    Nothing of this holds where rays passed lower.

    Attributes:
        horizon: From the body's middle [m].
        begun: x, y and the ground's height where the robot began [m].
        about: Radius round that place in which unseen ground is as high [m].
    """

    horizon: float
    begun: tuple[float, float, float]
    about: float

    def complete(
        self, seen: HeightMap, here: ArrayLike, places: ArrayLike, feet: Array, footholds: Array, room: float
    ) -> HeightMap:
        """The map that steps are planned on.

        Args:
            seen: With variances.
            here: (2,) middle of the body [m].
            places: (n, 2) that the map shall hold, with room about them [m].
            feet: (l, 3) where feet stand: there is ground under them, and it is not higher [m].
            footholds: (n, 3) of the plan that is walked [m]: ground that is higher than one by no more than errors are
                is as high as that, so that they do not spoil what is settled of the plan.
            room: About places [m].
        """
        middle = np.asarray(here, dtype=np.float64)
        out = _wide(seen, np.vstack([np.reshape(places, (-1, 2)), middle, [self.begun[:2]]]), room)
        heights, variance, ceiling = out.heights, out.variance, out.ceiling
        if variance is None:  # the truth is all known
            return out
        if ceiling is None:
            ceiling = np.full(heights.shape, math.inf)
        _bridge(heights, variance)
        rows, columns = heights.shape
        x = out.corner[0] + (np.arange(columns) + 0.5) * out.resolution
        y = (out.corner[1] + (np.arange(rows) + 0.5) * out.resolution)[:, None]
        _take(heights, variance, ceiling, np.hypot(x - self.begun[0], y - self.begun[1]) <= self.about, self.begun[2])
        for px, py, pz in feet.tolist():
            away = np.fmax(np.abs(x - px), np.abs(y - py))
            under = (away <= out.resolution) & np.isnan(heights) | (away <= 0.5 * out.resolution) & (heights > pz)
            heights[under], variance[under] = pz, 0.0
        for px, py, pz in footholds.tolist():
            about = (
                (np.abs(x - px) <= out.resolution)
                & (np.abs(y - py) <= out.resolution)
                & (heights > pz)
                & (heights < pz + _ALIKE)
            )
            heights[about] = pz
        known = np.isfinite(heights) & (variance <= SURE**2)
        solid = np.where(known, heights, -np.inf)
        goes_on = known & (heights >= maximum_filter(solid, size=2 * round(_ABOUT / out.resolution) + 1) - _PIT)
        if goes_on.any():
            nearest = distance_transform_edt(~goes_on, return_distances=False, return_indices=True)
            _take(heights, variance, ceiling, np.hypot(x - middle[0], y - middle[1]) > self.horizon, heights[*nearest])
        return out


def _wide(seen: HeightMap, places: Array, room: float) -> HeightMap:
    """The same map, on so many more cells that it holds places, with room about them."""
    cell, corner, shape = seen.resolution, np.array(seen.corner), np.array(seen.heights.shape)[::-1]
    before = np.maximum(np.ceil((corner - places.min(axis=0) + room) / cell), 0).astype(int)
    after = np.maximum(np.ceil((places.max(axis=0) + room - corner) / cell) - shape, 0).astype(int)
    pads = [(int(before[1]), int(after[1])), (int(before[0]), int(after[0]))]
    x, y = (corner - before * cell).tolist()

    def padded(layer: Array | None, empty: float) -> Array | None:
        return None if layer is None else np.pad(layer, pads, constant_values=empty)

    heights = np.pad(seen.heights, pads, constant_values=math.nan)
    return HeightMap(heights, (x, y), cell, padded(seen.variance, math.nan), padded(seen.ceiling, math.inf))


def _bridge(heights: Array, variance: Array) -> None:
    """Fill single unknown cells between two that are of one surface: far away rays are farther apart than cells."""
    for axis in (0, 1):
        h, v = np.moveaxis(heights, axis, 0), np.moveaxis(variance, axis, 0)
        gap = np.isnan(h[1:-1]) & (np.abs(h[2:] - h[:-2]) <= _ALIKE) & (np.fmax(v[2:], v[:-2]) <= SURE**2)
        v[1:-1][gap] = np.maximum(v[2:], v[:-2])[gap]
        h[1:-1][gap] = 0.5 * (h[2:] + h[:-2])[gap]


def _take(heights: Array, variance: Array, ceiling: Array, where: Flags, level: ArrayLike) -> None:
    """Take unknown cells for ground of some height, where rays do not tell otherwise."""
    free = np.isnan(heights) & where & ~(ceiling < np.asarray(level) - _LOWER)
    heights[free], variance[free] = np.broadcast_to(level, heights.shape)[free], 0.0
