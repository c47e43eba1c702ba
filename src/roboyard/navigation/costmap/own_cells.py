"""What layers of sensors have in common: cells of their own, which they keep in mind."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry import polygons
from roboyard.grids import GridFrame
from roboyard.navigation.costmap.bounds import NOTHING, Bounds
from roboyard.navigation.costmap.grid import FREE, UNKNOWN
from roboyard.navigation.costmap.layered import shifted


class OwnCells:
    """A layer with costs of its own, unknown at first and where the map rolls to.

    Args:
        overwrite: Whether what it knows replaces what the layers below say; else the higher cost wins.
        name: Of the layer.
    """

    def __init__(self, *, overwrite: bool, name: str) -> None:
        self.name = name
        self._overwrite = overwrite
        self._cells = np.zeros((0, 0), dtype=np.uint8)
        self._frame = GridFrame(1.0, (0, 0))
        self._changed = NOTHING

    def fit(self, frame: GridFrame, moved: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        if moved is None:
            self._cells = np.full(frame.shape, UNKNOWN, dtype=np.uint8)
        else:
            self._cells = shifted(self._cells, moved, UNKNOWN)
        self._frame = frame
        self._changed = Bounds.whole(frame.shape)

    def forget(self, bounds: Bounds | None = None) -> None:
        """What was seen, everywhere or within bounds."""
        part = Bounds.whole(self._frame.shape) if bounds is None else bounds
        self._cells[part.slices] = UNKNOWN
        self._changed = self._changed.union(part)

    def save(self) -> NDArray[np.uint8]:
        """A copy of its cells (rows, columns)."""
        return self._cells.copy()

    def load(self, cells: NDArray[np.uint8]) -> None:
        """Go on from what ``save`` gave, of a map of the same shape."""
        self._cells[:] = cells
        self._changed = Bounds.whole(self._frame.shape)

    def free(self, corners: ArrayLike) -> None:
        """Take for free what a polygon covers, e.g. the ground that the robot itself stands on.

        Args:
            corners: (n, 2) in the map [m].

        Raises:
            InputError: no such corners.
        """
        self._free(self._covered(corners))

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
        known = own != UNKNOWN
        if not self._overwrite:
            known &= (own > master) | (master == UNKNOWN)
        np.copyto(master, own, where=known)

    def _free(self, covered: NDArray[np.int64]) -> None:
        self._cells[covered[:, 0], covered[:, 1]] = FREE
        self._changed = self._changed.union(Bounds.around(covered))

    def _covered(self, corners: ArrayLike) -> NDArray[np.int64]:
        """Rows and columns (n, 2) of cells whose middle a polygon covers."""
        outline = np.asarray(corners, dtype=np.float64)
        if outline.ndim != 2 or outline.shape[1:] != (2,) or len(outline) < 3 or not np.isfinite(outline).all():
            raise InputError(f"a polygon of shape {outline.shape}", valid="(n, 2), n at least 3, finite metres")
        box = Bounds.around(self._frame.cells(outline))
        rows = np.arange(max(box.top, 0), min(box.bottom, self._frame.shape[0]))
        columns = np.arange(max(box.left, 0), min(box.right, self._frame.shape[1]))
        cells = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
        return np.asarray(cells[polygons.contains(outline, self._frame.points(cells))])
