"""Noise: obstacles of so few cells that no real thing is that small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.bounds import NOTHING, Bounds
from roboyard.navigation.costmap.grid import FREE, LETHAL


class DenoiseLayer:
    """Frees obstacles of the layers below that consist of few cells.

    Args:
        smallest: Number of cells of the smallest obstacle that stays.
        diagonal: Whether cells that touch at a corner belong together.
        name: Of the layer.

    Raises:
        ConfigError: ``smallest`` out of range.
    """

    def __init__(self, smallest: int = 2, *, diagonal: bool = True, name: str = "denoise") -> None:
        if not 1 <= smallest <= 1000:
            raise ConfigError(f"smallest = {smallest}", location=name, valid="1 to 1000")
        self.name = name
        from scipy.ndimage import label  # now, and not in the first update of a costmap that is in use

        self._label = label
        self._smallest = smallest
        self._neighbours = np.ones((3, 3)) if diagonal else None
        self._below = np.zeros((0, 0), dtype=np.bool_)

    def fit(self, frame: GridGeometry, moved: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        self._below = np.zeros(frame.shape, dtype=np.bool_)

    def changed(self) -> Bounds:
        """See ``Layer``: only what lies below changes it."""
        return NOTHING

    def reach(self) -> int:
        """See ``Layer``: an obstacle too small cannot reach farther."""
        return self._smallest

    def apply(self, cells: NDArray[np.uint8], bounds: Bounds) -> None:
        """See ``Layer``."""
        self._below[bounds.slices] = cells[bounds.slices] == LETHAL
        around = bounds.grown(self._smallest, cells.shape)
        groups, count = self._label(self._below[around.slices], structure=self._neighbours)
        sizes = np.bincount(groups.ravel(), minlength=count + 1)
        small = (sizes < self._smallest)[groups] & (groups > 0)
        part = small[
            bounds.top - around.top : bounds.bottom - around.top, bounds.left - around.left : bounds.right - around.left
        ]
        cells[bounds.slices][part] = FREE
