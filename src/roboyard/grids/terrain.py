"""Ground of any height: a height map, and how high the ground is anywhere on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.scalars import points_of

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Terrain:
    """A rectangle of uneven ground in a plane of height 0.

    Attributes:
        heights: (rows, columns) [m]; rows go along y, columns along x.  Of level squares, or, where it is ``smooth``,
            of the corners between them, with two triangles a square, parted from the corner at the least x and y.
        cell: Edge of a square [m].
        corner: (2,) the rectangle's corner of the least x and y [m].
        smooth: Which of both.

    Raises:
        InputError: heights that are no grid or not finite, or an edge that is not positive.
    """

    heights: Array
    cell: float
    corner: tuple[float, float]
    smooth: bool = False

    def __post_init__(self) -> None:
        heights, least = self.heights, 2 if self.smooth else 1
        if heights.ndim != 2 or min(heights.shape) < least or not np.isfinite(heights).all():
            raise InputError(f"heights of shape {heights.shape}", valid=f"finite, {least} rows and columns or more")
        if not self.cell > 0.0:
            raise InputError(f"squares of {self.cell:g} m", valid="more than 0")

    @property
    def size(self) -> tuple[float, float]:
        """Of the rectangle along x and y [m]."""
        rows, columns = (count - self.smooth for count in self.heights.shape)
        return columns * self.cell, rows * self.cell

    def height(self, points: ArrayLike) -> Array:
        """Height (…) of the ground at points (…, 2) [m]; 0 outside of the rectangle."""
        places = points_of(points, 2)
        away = (places - np.array(self.corner)) / self.cell
        rows, columns = (count - self.smooth for count in self.heights.shape)
        inside = ((away >= 0.0) & (away <= np.array([columns, rows]))).all(axis=-1)
        column = np.clip(np.floor(away[..., 0]).astype(np.int64), 0, columns - 1)
        row = np.clip(np.floor(away[..., 1]).astype(np.int64), 0, rows - 1)
        h = self.heights
        if not self.smooth:
            return np.where(inside, h[row, column], 0.0)
        x, y = away[..., 0] - column, away[..., 1] - row
        low, high = h[row, column], h[row + 1, column + 1]
        by_x = low + x * (h[row, column + 1] - low) + y * (high - h[row, column + 1])
        by_y = low + y * (h[row + 1, column] - low) + x * (high - h[row + 1, column])
        return np.where(inside, np.where(x >= y, by_x, by_y), 0.0)

    def boxes(self) -> Array:
        """(n, 5) rectangles of one height: least x and y, greatest x and y, height [m]; those of height 0 left out.

        Squares of the same height side by side are joined, first along x, then along y.

        Raises:
            InputError: the ground is smooth.
        """
        if self.smooth:
            raise InputError("smooth ground as boxes", valid="ground of level squares")
        found: list[tuple[int, int, int, int, float]] = []
        taken = self.heights == 0.0
        rows, columns = self.heights.shape
        for row in range(rows):
            for column in range(columns):
                if taken[row, column]:
                    continue
                same = (self.heights == self.heights[row, column]) & ~taken
                right = column + int(np.argmin(np.append(same[row, column:], False)))
                up = row + int(np.argmin(np.append(same[row:, column:right].all(axis=1), False)))
                taken[row:up, column:right] = True
                found.append((column, row, right, up, float(self.heights[row, column])))
        out = np.array(found, dtype=np.float64).reshape(-1, 5)
        out[:, :4] = out[:, :4] * self.cell + np.tile(self.corner, 2)
        return out
