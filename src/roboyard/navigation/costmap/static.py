"""The map that was made beforehand."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
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
    # The looks of all cells form a lattice.  It is so fine that each cell of the other grid holds one of them, however
    # that grid is turned, and even where looks lie on its lines and rounding sends them to either side.
    turn = onto.T_map_grid.theta - frame.T_map_grid.theta
    width = math.sqrt(2.0) if abs(math.sin(2.0 * turn)) > 1e-6 else 1.0
    looks = math.floor(onto.resolution / frame.resolution * width * 1.00001) + 1
    scale = onto.resolution / frame.resolution
    corner = (frame.T_map_grid.inverse() @ onto.T_map_grid.xy) / frame.resolution
    steps = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]) * scale
    take_dearest(np.ascontiguousarray(values), corner, steps, looks, cells)


@kernel(
    examples=lambda: [
        (np.zeros((3, 3), dtype=np.uint8), np.zeros(2), np.eye(2), 2, np.zeros((5, 5), dtype=np.uint8)),
    ]
)
def take_dearest(
    values: NDArray[np.uint8],
    corner: NDArray[np.float64],
    steps: NDArray[np.float64],
    looks: int,
    cells: NDArray[np.uint8],
) -> None:
    """Look up cells of one grid in another.

    Args:
        values: (rows, columns) of the other.
        corner: (2,) x and y of the one's corner in the other [the other's cells].
        steps: (2, 2) by which x and y of the other grow along the one's columns (first column) and rows.
        looks: Along each side of a cell.
        cells: (rows, columns) of the one, written.
    """
    rows, columns = values.shape
    for r in range(cells.shape[0]):
        for c in range(cells.shape[1]):
            best = -1
            for i in range(looks):
                down = r + (i + 0.5) / looks
                for j in range(looks):
                    right = c + (j + 0.5) / looks
                    x = corner[0] + steps[0, 0] * right + steps[0, 1] * down
                    y = corner[1] + steps[1, 0] * right + steps[1, 1] * down
                    if x < 0.0 or y < 0.0 or x >= columns or y >= rows:
                        continue
                    value = values[int(y), int(x)]
                    if value != UNKNOWN and value > best:
                        best = int(value)
            if best >= 0:
                cells[r, c] = best
