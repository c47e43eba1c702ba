"""Inflation: costs about obstacles that fall off with the distance."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.errors import ConfigError
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.bounds import NOTHING, Bounds
from roboyard.navigation.costmap.grid import INSCRIBED, LETHAL, UNKNOWN


class InflationLayer:
    """Spreads obstacles of the layers below: 253 within the inscribed radius, beyond it 252·exp(-k·(d - r)).

    Args:
        inscribed_radius: r, of the circle within the robot's outline [m].
        radius: How far costs reach [m].
        scaling: k [1/m].
        unknown: Whether costs are also written over unknown cells; else only what the robot would touch.
        name: Of the layer.

    Raises:
        ConfigError: a number out of range.
    """

    def __init__(
        self,
        inscribed_radius: float,
        radius: float = 0.55,
        scaling: float = 3.0,
        *,
        unknown: bool = False,
        name: str = "inflation",
    ) -> None:
        expect_kernels(inflate)
        if not (0.0 <= inscribed_radius < math.inf and 0.0 <= radius <= 50.0):
            raise ConfigError(f"radii {inscribed_radius} and {radius}", location=name, valid="0 to 50 m")
        if not (math.isfinite(scaling) and scaling > 0.0):
            raise ConfigError(f"scaling = {scaling}", location=name, valid="a positive number [1/m]")
        self.name = name
        self._inscribed, self._radius, self._scaling, self._unknown = inscribed_radius, radius, scaling, unknown
        self._costs = np.zeros(1, dtype=np.uint8)
        self._reach = 0
        self._lethal = np.zeros((0, 0), dtype=np.bool_)

    def cost_at(self, distance: float) -> int:
        """Cost at a distance from an obstacle's cell [m]; what lies a circumscribed radius away tells controllers when
        to look at the outline."""
        if distance <= 0.0:
            return LETHAL
        if distance <= self._inscribed:
            return INSCRIBED
        if distance > self._radius:
            return 0
        return int((INSCRIBED - 1) * math.exp(-self._scaling * (distance - self._inscribed)))

    def fit(self, frame: GridGeometry, moved: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        self._lethal = np.zeros(frame.shape, dtype=np.bool_)
        if moved is not None:
            return  # the costs are those of the same cells
        reach = math.ceil(max(self._radius, self._inscribed) / frame.resolution)
        costs = [self.cost_at(math.sqrt(squared) * frame.resolution) for squared in range(reach * reach + 1)]
        costs[0] = 0  # the obstacle itself stays as it is
        self._reach = math.isqrt(max((squared for squared, cost in enumerate(costs) if cost), default=0))
        self._costs = np.array(costs, dtype=np.uint8)

    def changed(self) -> Bounds:
        """See ``Layer``: only what lies below changes it."""
        return NOTHING

    def reach(self) -> int:
        """See ``Layer``."""
        return self._reach

    def apply(self, cells: NDArray[np.uint8], bounds: Bounds) -> None:
        """See ``Layer``."""
        inside = bounds.slices
        self._lethal[inside] = cells[inside] == LETHAL
        around = bounds.grown(self._reach, cells.shape)
        inflate(cells, self._lethal, self._costs, self._reach, np.array(bounds), np.array(around), self._unknown)


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), dtype=np.uint8), np.zeros((5, 5), dtype=np.bool_), np.zeros(5, dtype=np.uint8), 2,
         np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64), False)
    ]
)  # fmt: skip
def inflate(
    cells: NDArray[np.uint8],
    lethal: NDArray[np.bool_],
    costs: NDArray[np.uint8],
    reach: int,
    bounds: NDArray[np.int64],
    around: NDArray[np.int64],
    unknown: bool,
) -> None:
    """Write what each cell costs by its distance to the nearest obstacle, first along columns, then along rows.

    Args:
        cells: (rows, columns) of the map, written within the bounds.
        lethal: (rows, columns) where obstacles are.
        costs: (n,) by squared distances [cells²]; 0 beyond.
        reach: How far costs go [cells].
        bounds: Top, left, bottom, right of what is written.
        around: The same of where obstacles are looked for.
        unknown: Whether to write all costs over unknown cells.
    """
    top, left, bottom, right = bounds
    high, width, count = bottom - top, around[3] - around[1], right - left
    far = np.int32(reach + 1)
    # squared distance to the nearest obstacle of the same column; columns beyond the map hold none
    upright = np.full((max(high, 0), count + 2 * reach), far * far, dtype=np.int32)
    aside = around[1] - left + reach
    since = np.full(width, far, dtype=np.int32)
    for r in range(around[0], bottom):
        for c in range(width):
            since[c] = np.int32(0) if lethal[r, around[1] + c] else min(since[c] + np.int32(1), far)
        if r >= top:
            for c in range(width):
                upright[r - top, aside + c] = since[c] * since[c]
    since[:] = far
    for r in range(around[2] - 1, top - 1, -1):
        for c in range(width):
            since[c] = np.int32(0) if lethal[r, around[1] + c] else min(since[c] + np.int32(1), far)
        if r < bottom:
            for c in range(width):
                upright[r - top, aside + c] = min(upright[r - top, aside + c], since[c] * since[c])
    nearest = np.empty(max(count, 0), dtype=np.int32)
    for r in range(high):
        nearest[:] = far * far
        for k in range(2 * reach + 1):
            beside = upright[r, k : k + count]
            square = np.int32((k - reach) * (k - reach))
            for c in range(count):
                nearest[c] = min(nearest[c], beside[c] + square)
        for c in range(count):
            squared = nearest[c]
            cost = costs[squared] if squared < len(costs) else np.uint8(0)
            if cost == 0:
                continue
            here = cells[top + r, left + c]
            if here == UNKNOWN:
                if unknown or cost >= INSCRIBED:
                    cells[top + r, left + c] = cost
            elif cost > here:
                cells[top + r, left + c] = cost
