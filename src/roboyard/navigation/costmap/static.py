"""The map that was made beforehand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.grids import OCCUPIED_THRESHOLD, GridGeometry, OccupancyGrid
from roboyard.navigation.costmap.bounds import NOTHING, Bounds
from roboyard.navigation.costmap.grid import FREE, INSCRIBED, LETHAL, UNKNOWN
from roboyard.navigation.costmap.underlay import Underlay


class StaticLayer:
    """Costs of an occupancy map.

    Its cells may be smaller, larger or turned against the costmap's: a cell of the costmap takes the dearest of what
    lies under it, so that no wall gets lost.

    Args:
        lethal: From which occupancy on a cell is an obstacle, 1 to 100.
        trinary: Whether what lies between is free; else it costs in proportion.
        name: Of the layer.

    Raises:
        ConfigError: ``lethal`` out of range.
    """

    def __init__(self, *, lethal: int = OCCUPIED_THRESHOLD, trinary: bool = True, name: str = "static") -> None:
        if not 1 <= lethal <= 100:
            raise ConfigError(f"lethal = {lethal}", location=name, valid="1 to 100")
        self.name = name
        self._lethal, self._trinary = lethal, trinary
        self._underlay = Underlay(UNKNOWN)
        self._changed = NOTHING

    def take(self, grid: OccupancyGrid) -> None:
        """Go by another map from now on."""
        self._underlay.take(self._costs(grid), grid.geometry)
        self._changed = Bounds.whole(self._underlay.cells.shape)

    def fit(self, frame: GridGeometry, moved: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        self._underlay.fit(frame, moved)
        self._changed = Bounds.whole(frame.shape)

    def _costs(self, grid: OccupancyGrid) -> NDArray[np.uint8]:
        table = np.zeros(256, dtype=np.uint8)
        share = np.arange(self._lethal) / self._lethal
        table[: self._lethal] = FREE if self._trinary else np.round(share * (INSCRIBED - 1))
        table[self._lethal : 101] = LETHAL
        table[255] = UNKNOWN
        return np.asarray(table[grid.cells.view(np.uint8)])

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
        np.copyto(master, own, where=(own != UNKNOWN) & ((own > master) | (master == UNKNOWN)))
