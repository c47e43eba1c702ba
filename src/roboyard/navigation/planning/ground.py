"""What cells cost, as kernels read it."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from roboyard.navigation.costmap import LETHAL


class Ground(NamedTuple):
    """A byte for each cell, and a weight for each byte.

    A wave reads each cell's weight several times; a weight for each cell would take four times the memory, and half of
    the wave's time would go into waiting for it.

    Attributes:
        cells: (rows, columns) what a cell is; on the rim, where nobody can be.
        weights: (256,) what a cell's width costs, at least 1, or 0 where nobody can be.
    """

    cells: NDArray[np.uint8]
    weights: NDArray[np.float32]

    @classmethod
    def framed(cls, cells: NDArray[np.uint8], weights: NDArray[np.float32]) -> Self:
        """With a rim of lethal cells about them; ``weights[LETHAL]`` must be 0."""
        rows, columns = cells.shape
        framed = np.full((rows + 2, columns + 2), LETHAL, dtype=np.uint8)
        framed[1:-1, 1:-1] = cells
        return cls(framed, weights)

    def flat(self, cell: tuple[int, int]) -> int:
        """Index among ``cells.ravel()`` of a row and column that were there before the rim was."""
        return int((cell[0] + 1) * self.cells.shape[1] + cell[1] + 1)


def smallest() -> Ground:
    """Nothing but a rim, as an example for kernels."""
    return Ground(np.zeros((5, 5), dtype=np.uint8), np.zeros(256, dtype=np.float32))
