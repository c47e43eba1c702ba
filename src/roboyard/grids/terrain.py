"""Ground of any height: a height map, and how high the ground is anywhere on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.scalars import as_points

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Terrain:
    """A rectangle of uneven ground in a plane of height 0.

    Attributes:
        heights: (rows, columns) [m]; rows go along y, columns along x.  Of level squares, or, where it is ``smooth``,
            of the corners between them, with two triangles a square, parted from the corner at the least x and y.
        cell_size: Edge of a square [m].
        corner: (2,) the rectangle's corner of the least x and y [m].
        smooth: Which of both.

    Raises:
        InputError: heights that are no grid or not finite, or an edge that is not positive.
    """

    heights: Array
    cell_size: float
    corner: tuple[float, float]
    smooth: bool = False

    def __post_init__(self) -> None:
        heights, min_count = self.heights, 2 if self.smooth else 1
        if heights.ndim != 2 or min(heights.shape) < min_count or not np.isfinite(heights).all():
            raise InputError(f"heights of shape {heights.shape}", valid=f"finite, {min_count} rows and columns or more")
        if not self.cell_size > 0.0:
            raise InputError(f"squares of {self.cell_size:g} m", valid="more than 0")

    @property
    def size(self) -> tuple[float, float]:
        """Of the rectangle along x and y [m]."""
        rows, columns = (count - self.smooth for count in self.heights.shape)
        return columns * self.cell_size, rows * self.cell_size

    def height_at(self, points: ArrayLike) -> Array:
        """Height (…) of the ground at points (…, 2) [m]; 0 outside of the rectangle."""
        positions = as_points(points, 2)
        cell_coordinates = (positions - np.array(self.corner)) / self.cell_size
        rows, columns = (count - self.smooth for count in self.heights.shape)
        inside = ((cell_coordinates >= 0.0) & (cell_coordinates <= np.array([columns, rows]))).all(axis=-1)
        column = np.clip(np.floor(cell_coordinates[..., 0]).astype(np.int64), 0, columns - 1)
        row = np.clip(np.floor(cell_coordinates[..., 1]).astype(np.int64), 0, rows - 1)
        h = self.heights
        if not self.smooth:
            return np.where(inside, h[row, column], 0.0)
        x, y = cell_coordinates[..., 0] - column, cell_coordinates[..., 1] - row
        low, high = h[row, column], h[row + 1, column + 1]
        by_x = low + x * (h[row, column + 1] - low) + y * (high - h[row, column + 1])
        by_y = low + y * (h[row + 1, column] - low) + x * (high - h[row + 1, column])
        return np.where(inside, np.where(x >= y, by_x, by_y), 0.0)

    def level_rectangles(self) -> Array:
        """(n, 5) rectangles of one height: least x and y, greatest x and y, height [m]; those of height 0 left out.

        Squares of the same height side by side are joined, first along x, then along y.

        Raises:
            InputError: the ground is smooth.
        """
        if self.smooth:
            raise InputError("smooth ground as boxes", valid="ground of level squares")
        rectangles: list[tuple[int, int, int, int, float]] = []
        is_covered = self.heights == 0.0
        rows, columns = self.heights.shape
        for row in range(rows):
            for column in range(columns):
                if is_covered[row, column]:
                    continue
                same = (self.heights == self.heights[row, column]) & ~is_covered
                right = column + int(np.argmin(np.append(same[row, column:], False)))
                top = row + int(np.argmin(np.append(same[row:, column:right].all(axis=1), False)))
                is_covered[row:top, column:right] = True
                rectangles.append((column, row, right, top, float(self.heights[row, column])))
        out = np.array(rectangles, dtype=np.float64).reshape(-1, 5)
        out[:, :4] = out[:, :4] * self.cell_size + np.tile(self.corner, 2)
        return out
