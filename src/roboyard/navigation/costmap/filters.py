"""Zones that people draw: where not to go, and where to go slowly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.navigation.costmap.bounds import NOTHING, Bounds
from roboyard.navigation.costmap.grid import FREE, INSCRIBED, LETHAL, UNKNOWN
from roboyard.navigation.costmap.underlay import Underlay


class KeepoutLayer:
    """Forbids what a mask marks: its cells of 100 are obstacles, those between cost in proportion.

    Args:
        name: Of the layer.
    """

    def __init__(self, *, name: str = "keepout") -> None:
        self.name = name
        self._underlay = Underlay(FREE)
        self._changed = NOTHING

    def take(self, mask: OccupancyGrid) -> None:
        """Go by another mask from now on."""
        table = np.zeros(256, dtype=np.uint8)
        table[:100] = np.round(np.arange(100) / 100 * (INSCRIBED - 1))
        table[100] = LETHAL
        table[255] = UNKNOWN
        self._underlay.take(table[mask.cells.view(np.uint8)], mask.geometry)
        self._changed = Bounds.whole(self._underlay.cells.shape)

    def fit(self, frame: GridGeometry, moved: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        self._underlay.fit(frame, moved)
        self._changed = Bounds.whole(frame.shape)

    def changed(self) -> Bounds:
        """See ``Layer``."""
        changed, self._changed = self._changed, NOTHING
        return changed

    def reach(self) -> int:
        """See ``Layer``."""
        return 0

    def apply(self, cells: NDArray[np.uint8], bounds: Bounds) -> None:
        """See ``Layer``."""
        own, master = self._underlay.cells[bounds.slices], cells[bounds.slices]
        np.copyto(master, own, where=(own > master) | ((master == UNKNOWN) & (own != FREE)))


class SpeedZones:
    """How fast to go where, by a mask: base + multiplier · value, in per cent of the highest speed or in m/s.

    Args:
        mask: Values from 1 to 100; 0 and unknown do not limit.
        base: Of the conversion.
        multiplier: Of the conversion.
        percent: Whether the result is per cent; else m/s.

    Raises:
        ConfigError: a conversion that is not finite, or gives one of the mask's values no speed above 0.
    """

    def __init__(
        self, mask: OccupancyGrid, *, base: float = 0.0, multiplier: float = 1.0, percent: bool = True
    ) -> None:
        if not (math.isfinite(base) and math.isfinite(multiplier)):
            raise ConfigError(
                f"base {base} and multiplier {multiplier}", location="speed zones", valid="finite numbers"
            )
        values = np.unique(mask.cells[mask.cells > 0])
        still = values[base + multiplier * values <= 0.0]
        if len(still):
            raise ConfigError(
                f"the mask's value {still[0]} allows {base + multiplier * float(still[0]):g}",
                location="speed zones",
                valid="base + multiplier · value above 0; forbid places by a keepout mask",
            )
        self._mask, self._base, self._multiplier, self._percent = mask, base, multiplier, percent

    def limit(self, pose: SE2, highest: float) -> float:
        """The speed allowed at a pose [m/s], at most ``highest``."""
        cell = self._mask.geometry.cells_of_points(pose.xy)
        if not self._mask.geometry.contains(cell):
            return highest
        value = int(self._mask.cells[tuple(cell)])
        if value <= 0:
            return highest
        limit = self._base + self._multiplier * value
        return min(limit * (highest / 100.0 if self._percent else 1.0), highest)
