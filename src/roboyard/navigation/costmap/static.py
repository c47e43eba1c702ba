"""The map that was made beforehand."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.grids import GridFrame, OccupancyGrid
from roboyard.navigation.costmap.bounds import NOTHING, Bounds
from roboyard.navigation.costmap.grid import FREE, INSCRIBED, LETHAL, UNKNOWN


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

    def __init__(self, *, lethal: int = 65, trinary: bool = True, name: str = "static") -> None:
        if not 1 <= lethal <= 100:
            raise ConfigError(f"lethal = {lethal}", where=name, valid="1 to 100")
        self.name = name
        self._lethal, self._trinary = lethal, trinary
        self._map: OccupancyGrid | None = None
        self._frame = GridFrame(1.0, (0, 0))
        self._cells = np.zeros((0, 0), dtype=np.uint8)
        self._changed = NOTHING

    def take(self, grid: OccupancyGrid) -> None:
        """Go by another map from now on."""
        self._map = grid
        self.fit(self._frame, None)

    def fit(self, frame: GridFrame, moved: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        self._frame = frame
        self._cells = np.full(frame.shape, UNKNOWN, dtype=np.uint8)
        self._changed = Bounds.whole(frame.shape)
        if self._map is not None:
            resample(self._costs(self._map), self._map.frame, self._cells, frame)

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
        own, master = self._cells[bounds.slices], cells[bounds.slices]
        np.copyto(master, own, where=(own != UNKNOWN) & ((own > master) | (master == UNKNOWN)))


def resample(values: NDArray[np.uint8], frame: GridFrame, cells: NDArray[np.uint8], onto: GridFrame) -> None:
    """Write into each cell of one grid the dearest known value of another grid that lies under it.

    Args:
        values: (rows, columns) of the other grid; 255 where it knows nothing.
        frame: Where they lie.
        cells: (rows, columns), written; what nothing known lies under stays.
        onto: Where those lie.
    """
    # so many looks a cell that a cell of the other grid fits between no four of them, however it is turned
    turned = abs(math.sin(2.0 * (frame.T_map_grid.theta - onto.T_map_grid.theta))) > 1e-6
    looks = max(math.ceil(onto.resolution / frame.resolution * (math.sqrt(2.0) if turned else 1.0) - 1e-6), 1)
    aside = (np.arange(looks) + 0.5) / looks - 0.5
    rows, columns = np.arange(onto.shape[0], dtype=np.float64), np.arange(onto.shape[1], dtype=np.float64)
    best = np.full(onto.shape, -1, dtype=np.int16)
    for dr in aside:
        for dc in aside:
            places = np.stack(np.meshgrid(rows + dr, columns + dc, indexing="ij"), axis=-1)
            under = frame.cells(onto.points(places))
            inside = frame.contains(under)
            found = values[under[inside, 0], under[inside, 1]].astype(np.int16)
            found[found == UNKNOWN] = -1
            best[inside] = np.maximum(best[inside], found)
    cells[best >= 0] = best[best >= 0].astype(np.uint8)
