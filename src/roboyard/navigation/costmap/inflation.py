"""Inflation: costs about obstacles that fall off with the distance."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import ConfigError
from roboyard.grids import GridFrame
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
        if not (0.0 <= inscribed_radius < math.inf and 0.0 <= radius <= 50.0):
            raise ConfigError(f"radii {inscribed_radius} and {radius}", where=name, valid="0 to 50 m")
        if not (math.isfinite(scaling) and scaling > 0.0):
            raise ConfigError(f"scaling = {scaling}", where=name, valid="a positive number [1/m]")
        self.name = name
        self._inscribed, self._radius, self._scaling, self._unknown = inscribed_radius, radius, scaling, unknown
        self._stamp = np.zeros((0, 3), dtype=np.int64)
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

    def fit(self, frame: GridFrame, moved: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        reach = math.ceil(max(self._radius, self._inscribed) / frame.resolution)
        offsets = [
            (dr, dc, self.cost_at(math.hypot(dr, dc) * frame.resolution))
            for dr in range(-reach, reach + 1)
            for dc in range(-reach, reach + 1)
        ]
        self._stamp = np.array([entry for entry in offsets if 0 < entry[2] < LETHAL] or [(0, 0, 0)], dtype=np.int64)
        self._lethal = np.zeros(frame.shape, dtype=np.bool_)

    def changed(self) -> Bounds:
        """See ``Layer``: only what lies below changes it."""
        return NOTHING

    def reach(self) -> int:
        """See ``Layer``."""
        return int(np.abs(self._stamp[:, :2]).max())

    def apply(self, cells: NDArray[np.uint8], bounds: Bounds) -> None:
        """See ``Layer``."""
        inside = bounds.slices
        self._lethal[inside] = cells[inside] == LETHAL
        around = bounds.grown(self.reach(), cells.shape)
        inflate(cells, self._lethal, self._stamp, np.array(bounds), np.array(around), self._unknown)


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), dtype=np.uint8), np.zeros((5, 5), dtype=np.bool_), np.zeros((2, 3), dtype=np.int64),
         np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64), False)
    ]
)  # fmt: skip
def inflate(
    cells: NDArray[np.uint8],
    lethal: NDArray[np.bool_],
    stamp: NDArray[np.int64],
    bounds: NDArray[np.int64],
    around: NDArray[np.int64],
    unknown: bool,
) -> None:
    """Stamp costs about the rim of each obstacle.

    Args:
        cells: (rows, columns) of the map, written within the bounds.
        lethal: (rows, columns) where obstacles are.
        stamp: (n, 3) rows and columns from an obstacle, and the cost there.
        bounds: Top, left, bottom, right of what is written.
        around: The same of where obstacles are looked for.
        unknown: Whether to write all costs over unknown cells.
    """
    rows, columns = cells.shape
    top, left, bottom, right = bounds
    for r in range(around[0], around[2]):
        for c in range(around[1], around[3]):
            if not lethal[r, c]:
                continue
            rim = r == 0 or c == 0 or r == rows - 1 or c == columns - 1
            if not rim and lethal[r - 1, c] and lethal[r + 1, c] and lethal[r, c - 1] and lethal[r, c + 1]:
                continue  # whatever is about it is nearer to one of its neighbours
            for k in range(len(stamp)):
                rr, cc = r + stamp[k, 0], c + stamp[k, 1]
                if rr < top or rr >= bottom or cc < left or cc >= right:
                    continue
                cost, here = stamp[k, 2], cells[rr, cc]
                if here == UNKNOWN:
                    if unknown or cost >= INSCRIBED:
                        cells[rr, cc] = cost
                elif cost > here:
                    cells[rr, cc] = cost
