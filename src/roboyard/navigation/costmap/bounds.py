"""The part of a grid that changed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Bounds(NamedTuple):
    """Rows from ``top`` to below ``bottom``, columns from ``left`` to below ``right``."""

    top: int
    left: int
    bottom: int
    right: int

    @classmethod
    def whole(cls, shape: tuple[int, int]) -> Bounds:
        """All cells."""
        return cls(0, 0, shape[0], shape[1])

    @classmethod
    def around(cls, cells: ArrayLike) -> Bounds:
        """The smallest that holds cells (n, 2), each row and column; empty for none."""
        rows_columns = np.asarray(cells)
        if not len(rows_columns):
            return NOTHING
        (top, left), (bottom, right) = rows_columns.min(axis=0), rows_columns.max(axis=0)
        return cls(int(top), int(left), int(bottom) + 1, int(right) + 1)

    @property
    def is_empty(self) -> bool:
        """Whether no cell belongs to it."""
        return self.top >= self.bottom or self.left >= self.right

    def union(self, other: Bounds) -> Bounds:
        """The smallest that holds both."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        return Bounds(
            min(self.top, other.top), min(self.left, other.left),
            max(self.bottom, other.bottom), max(self.right, other.right),
        )  # fmt: skip

    def grown(self, cells: int, shape: tuple[int, int]) -> Bounds:
        """So many cells more on each side, within a grid of that shape."""
        if self.is_empty:
            return self
        return Bounds(
            max(self.top - cells, 0), max(self.left - cells, 0),
            min(self.bottom + cells, shape[0]), min(self.right + cells, shape[1]),
        )  # fmt: skip

    @property
    def slices(self) -> tuple[slice, slice]:
        """To index an array with."""
        return slice(self.top, self.bottom), slice(self.left, self.right)


NOTHING = Bounds(0, 0, 0, 0)
