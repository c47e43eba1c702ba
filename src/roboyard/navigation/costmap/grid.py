"""A costmap as planners and controllers see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.grids import GridGeometry

FREE, INSCRIBED, LETHAL, UNKNOWN = 0, 253, 254, 255
"""Values of cells, as in Nav2: between 0 and 253 the robot's centre may be there at that cost; from 253 on the robot
touches an obstacle whichever way it looks; 254 is the obstacle itself; 255 nobody has seen."""


@dataclass(frozen=True, slots=True)
class Costmap:
    """What it costs the robot's centre to be at a place.

    Attributes:
        cells: (rows, columns) uint8, see ``FREE`` to ``UNKNOWN``.
        frame: Where the cells lie.

    Raises:
        InputError: cells of another shape than the frame's, or of another type.
    """

    cells: NDArray[np.uint8]
    frame: GridGeometry

    def __post_init__(self) -> None:
        if self.cells.shape != self.frame.shape or self.cells.dtype != np.uint8:
            raise InputError(
                f"costs of {self.cells.dtype} and shape {self.cells.shape}", valid=f"uint8 of shape {self.frame.shape}"
            )
