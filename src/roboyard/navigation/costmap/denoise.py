"""Noise: obstacles of so few cells that no real thing is that small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.errors import ConfigError
from roboyard.grids import GridGeometry
from roboyard.grids.regions import label_components
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
        expect_kernels(label_components)
        self._smallest = smallest
        self._diagonal = diagonal
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
        groups, count = label_components(np.ascontiguousarray(self._below[around.slices]), self._diagonal)
        sizes = np.bincount(groups.ravel(), minlength=count + 1)
        small = (sizes < self._smallest)[groups] & (groups > 0)
        part = small[
            bounds.top - around.top : bounds.bottom - around.top, bounds.left - around.left : bounds.right - around.left
        ]
        cells[bounds.slices][part] = FREE
