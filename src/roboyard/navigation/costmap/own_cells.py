"""What layers of sensors have in common: cells of their own, which they keep in mind."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.errors import InputError
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.bounds import NOTHING, Bounds
from roboyard.navigation.costmap.grid import FREE, UNKNOWN
from roboyard.navigation.costmap.layered import carried, shifted


class OwnCells:
    """A layer with costs of its own, unknown at first and where the map rolls to.

    Args:
        overwrite: Whether what it knows replaces what the layers below say; else the higher cost wins.
        name: Of the layer.
    """

    kept: ClassVar[dict[str, np.generic]] = {"_cells": np.uint8(UNKNOWN), "_seen_by": np.uint8(0)}
    """Arrays (rows, columns) that it keeps in mind, and what they hold where it knows nothing."""

    def __init__(self, *, overwrite: bool, name: str) -> None:
        expect_kernels(cells_under)
        self.name = name
        self._overwrite = overwrite
        self._cells = self._seen_by = np.zeros((0, 0), dtype=np.uint8)
        self._names = [""]
        self._frame = GridGeometry(1.0, (0, 0))
        self._changed = NOTHING

    def fit(self, frame: GridGeometry, moved: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        for name, nothing in self.kept.items():
            kept = np.full(frame.shape, nothing) if moved is None else shifted(getattr(self, name), moved, nothing)
            setattr(self, name, kept)
        self._frame = frame
        self._changed = Bounds.whole(frame.shape)

    def forget(self, bounds: Bounds | None = None) -> None:
        """What was seen, everywhere or within bounds."""
        part = Bounds.whole(self._frame.shape) if bounds is None else bounds
        for name, nothing in self.kept.items():
            getattr(self, name)[part.slices] = nothing
        self._changed = self._changed.union(part)

    def save_state(self) -> dict[str, Any]:
        """All it keeps in mind, as plain data."""
        return {name: getattr(self, name).copy() for name in self.kept} | {"names": list(self._names)}

    def load_state(self, saved: dict[str, Any], frame: GridGeometry) -> None:
        """Go on from what ``save`` gave.

        Args:
            saved: Of this layer, or one that was made the same way.
            frame: Where the cells lay then; where they do not lie cell on cell with those of now, nothing is known.
        """
        for name, nothing in self.kept.items():
            setattr(self, name, carried(saved[name], frame, self._frame, nothing))
        self._names = list(saved["names"])
        self._changed = Bounds.whole(self._frame.shape)

    def free(self, corners: ArrayLike) -> None:
        """Take for free the cells that lie wholly under a polygon, e.g. under the robot itself.

        What stands beside it keeps its cells: no obstacle is lost because the robot has come near to it.

        Args:
            corners: (n, 2) in the map [m].

        Raises:
            InputError: no such corners.
        """
        covered = self._covered(corners)
        news = covered[self._cells[covered[:, 0], covered[:, 1]] != FREE]
        self._free(covered)
        self._changed = self._changed.union(Bounds.around(news))

    def sources(self, cells: NDArray[np.int64]) -> list[str]:
        """See ``SensorLayer``: who marked a cell last."""
        return [self._names[index] for index in self._seen_by[cells[:, 0], cells[:, 1]]]

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

    def _index(self, sensor: str) -> int:
        """Of a sensor's name, as ``_seen_by`` keeps it; 0 for those that come after the 255th."""
        if sensor not in self._names and len(self._names) <= np.iinfo(np.uint8).max:
            self._names.append(sensor)
        return self._names.index(sensor) if sensor in self._names else 0

    def _free(self, covered: NDArray[np.int64]) -> None:
        self._cells[covered[:, 0], covered[:, 1]] = FREE

    def _covered(self, corners: ArrayLike) -> NDArray[np.int64]:
        """Rows and columns (n, 2) of cells that lie wholly under a polygon."""
        outline = np.asarray(corners, dtype=np.float64)
        if outline.ndim != 2 or outline.shape[1:] != (2,) or len(outline) < 3 or not np.isfinite(outline).all():
            raise InputError(f"a polygon of shape {outline.shape}", valid="(n, 2), n at least 3, finite metres")
        corners_in_cells = (self._frame.T_map_grid.inverse() @ outline) / self._frame.resolution
        return np.asarray(cells_under(corners_in_cells, *self._frame.shape))


@kernel(examples=lambda: [(np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]]), 5, 5)])
def cells_under(corners: NDArray[np.float64], rows: int, columns: int) -> NDArray[np.int64]:
    """Rows and columns (n, 2) of a grid's cells all four corners of which lie in a polygon, by counting crossings.

    Args:
        corners: (n, 2) of the polygon, along columns and along rows [cells].
        rows: Of the grid.
        columns: See above.
    """
    top = max(math.floor(corners[:, 1].min()), 0)
    bottom = min(math.ceil(corners[:, 1].max()), rows)
    left = max(math.floor(corners[:, 0].min()), 0)
    right = min(math.ceil(corners[:, 0].max()), columns)
    high, wide = max(bottom - top, 0), max(right - left, 0)
    inside = np.zeros((high + 1, wide + 1), dtype=np.bool_)  # corners of cells
    ax, ay = corners[-1]
    for k in range(len(corners)):
        bx, by = corners[k]
        for r in range(high + 1):
            y = top + r
            if (ay > y) != (by > y):
                crossing = ax + (y - ay) * ((bx - ax) / (by - ay))
                for c in range(wide + 1):
                    if left + c < crossing:
                        inside[r, c] = not inside[r, c]
        ax, ay = bx, by
    found = np.empty((high * wide, 2), dtype=np.int64)
    n = 0
    for r in range(high):
        for c in range(wide):
            if inside[r, c] and inside[r, c + 1] and inside[r + 1, c] and inside[r + 1, c + 1]:
                found[n, 0], found[n, 1] = top + r, left + c
                n += 1
    return found[:n]
