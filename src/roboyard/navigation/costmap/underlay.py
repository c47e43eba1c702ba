"""Another grid seen through a costmap's cells, whatever size and direction its own cells have."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.bounds import Bounds
from roboyard.navigation.costmap.grid import UNKNOWN
from roboyard.navigation.costmap.layered import shifted


class Underlay:
    """What of another grid lies under each cell of a map that may roll over it: the dearest known value.

    As the map rolls, only what comes into view is looked up.  It is as if all had been: places are counted from where
    the map was laid out, so that no rounding adds up.

    Args:
        background: Value where nothing known lies under a cell.
    """

    def __init__(self, background: int) -> None:
        expect_kernels(take_dearest)
        self._background = background
        self._values = np.zeros((0, 0), dtype=np.uint8)
        self._frame = self._onto = GridGeometry(1.0, (0, 0))
        self._moved = (0, 0)
        self.cells = np.zeros((0, 0), dtype=np.uint8)

    def take(self, values: NDArray[np.uint8], frame: GridGeometry) -> None:
        """Look at another grid from now on.

        Args:
            values: (rows, columns); 255 where it knows nothing.
            frame: Where they lie.
        """
        self._values, self._frame = np.ascontiguousarray(values), frame
        self._look(Bounds.whole(self.cells.shape))

    def fit(self, onto: GridGeometry, moved: tuple[int, int] | None) -> None:
        """The map's cells lie elsewhere now, see ``Layer.fit``."""
        rows, columns = onto.shape
        whole = Bounds.whole(onto.shape)
        if moved is None:
            self._onto, self._moved = onto, (0, 0)
            self.cells = np.empty(onto.shape, dtype=np.uint8)
            self._look(whole)
            return
        down, right = moved
        self._moved = (self._moved[0] + down, self._moved[1] + right)
        self.cells = shifted(self.cells, moved, self._background)
        if abs(down) >= rows or abs(right) >= columns:
            self._look(whole)
            return
        self._look(whole._replace(top=rows - down) if down > 0 else whole._replace(bottom=-down))
        self._look(whole._replace(left=columns - right) if right > 0 else whole._replace(right=-right))

    def _look(self, bounds: Bounds) -> None:
        self.cells[bounds.slices] = self._background
        if not bounds.is_empty and self._values.size:
            resample(self._values, self._frame, self.cells, self._onto, bounds, self._moved)


def resample(
    values: NDArray[np.uint8],
    frame: GridGeometry,
    cells: NDArray[np.uint8],
    onto: GridGeometry,
    bounds: Bounds,
    moved: tuple[int, int],
) -> None:
    """Write into each cell of one grid the dearest known value of another grid that lies under it.

    Args:
        values: (rows, columns) of the other grid; 255 where it knows nothing.
        frame: Where they lie.
        cells: (rows, columns), written within the bounds; what nothing known lies under stays.
        onto: Where those lay before they were moved.
        bounds: Which of them.
        moved: By how many rows and columns.
    """
    # The looks of all cells form a lattice.  It is so fine that each cell of the other grid holds one of them, however
    # that grid is turned, and even where looks lie on its lines and rounding sends them to either side.
    turn = onto.T_map_grid.theta - frame.T_map_grid.theta
    width = math.sqrt(2.0) if abs(math.sin(2.0 * turn)) > 1e-6 else 1.0
    looks = math.floor(onto.resolution / frame.resolution * width * 1.00001) + 1
    scale = onto.resolution / frame.resolution
    corner = (frame.T_map_grid.inverse() @ onto.T_map_grid.xy) / frame.resolution
    steps = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]) * scale
    take_dearest(values, corner, steps, looks, cells, np.array(bounds), np.array(moved))


@kernel(
    examples=lambda: [
        (np.zeros((3, 3), dtype=np.uint8), np.zeros(2), np.eye(2), 2, np.zeros((5, 5), dtype=np.uint8),
         np.zeros(4, dtype=np.int64), np.zeros(2, dtype=np.int64)),
    ]
)  # fmt: skip
def take_dearest(
    values: NDArray[np.uint8],
    corner: NDArray[np.float64],
    steps: NDArray[np.float64],
    looks: int,
    cells: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    moved: NDArray[np.int64],
) -> None:
    """Look up cells of one grid in another.

    Args:
        values: (rows, columns) of the other.
        corner: (2,) x and y of the one's corner in the other [the other's cells].
        steps: (2, 2) by which x and y of the other grow along the one's columns (first column) and rows.
        looks: Along each side of a cell.
        cells: (rows, columns) of the one, written.
        bounds: Top, left, bottom, right of what is written.
        moved: Rows and columns from the corner to cell (0, 0).
    """
    rows, columns = values.shape
    for r in range(bounds[0], bounds[2]):
        for c in range(bounds[1], bounds[3]):
            best = -1
            for i in range(looks):
                down = (r + moved[0]) + (i + 0.5) / looks
                for j in range(looks):
                    right = (c + moved[1]) + (j + 0.5) / looks
                    x = corner[0] + steps[0, 0] * right + steps[0, 1] * down
                    y = corner[1] + steps[1, 0] * right + steps[1, 1] * down
                    if x < 0.0 or y < 0.0 or x >= columns or y >= rows:
                        continue
                    value = values[int(y), int(x)]
                    if value != UNKNOWN and value > best:
                        best = int(value)
            if best >= 0:
                cells[r, c] = best
