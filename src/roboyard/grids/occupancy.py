"""Which places are free, which are occupied, and which nobody has seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.grids.frame import GridGeometry

UNKNOWN, FREE, OCCUPIED = -1, 0, 100
"""Values of cells, as in nav_msgs/OccupancyGrid."""


@dataclass(frozen=True, slots=True)
class OccupancyGrid:
    """An occupancy map.

    Attributes:
        cells: (rows, columns) int8: -1 unknown, else the probability of an obstacle from 0 to 100.
        geometry: Where the cells lie.

    Raises:
        InputError: cells of another shape than the frame's, or values out of range.
    """

    cells: NDArray[np.int8]
    geometry: GridGeometry

    def __post_init__(self) -> None:
        cells = np.asarray(self.cells)
        if cells.shape != self.geometry.shape:
            raise InputError(f"cells of shape {cells.shape} in a grid of shape {self.geometry.shape}", valid="the same")
        if cells.size and (cells.dtype.kind not in "iu" or cells.min() < UNKNOWN or cells.max() > OCCUPIED):
            raise InputError(f"cells of {cells.dtype} from {cells.min()} to {cells.max()}", valid="whole, -1 to 100")
        cells = np.array(cells, dtype=np.int8)
        cells.flags.writeable = False
        object.__setattr__(self, "cells", cells)
