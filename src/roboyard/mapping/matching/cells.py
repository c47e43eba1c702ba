"""Surfaces as scans have shown them: cells that hold the mean of the points in them and the surface's direction.

The mean of many points of a wall lies on the wall, closer than a cell's side by far, so matching against it is not
bound to the cells.  A cell has two layers, since a thin wall shows both of its sides in one cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2

CELL = 0.1
"""Side of a cell [m]."""
COUNT, X, Y, NX, NY = range(5)
FIELDS = 5
"""Of a cell: number of points, sums of their coordinates, sums of their normals."""


class CellMap:
    """Surface cells over a square.

    Args:
        half: Half the square's side [m]; points beyond are left out.
    """

    def __init__(self, half: float) -> None:
        self.half = half
        side = math.ceil(2.0 * half / CELL)
        self.index: NDArray[np.int32] = np.full((2, side, side), -1, dtype=np.int32)
        self._cells: NDArray[np.float64] = np.zeros((256, FIELDS))
        self.used = 0

    @property
    def cells(self) -> NDArray[np.float64]:
        """(n, 5) the cells in use; see ``FIELDS``."""
        return self._cells[: self.used]

    @property
    def means(self) -> NDArray[np.float64]:
        """(n, 2) means of the points of each cell [m]."""
        return np.asarray(self.cells[:, X : Y + 1] / self.cells[:, :1])

    def insert(self, points: NDArray[np.float64], normals: NDArray[np.float64], pose: SE2) -> None:
        """Add points (n, 2) and normals (n, 2), given in a frame of that pose in this map's frame."""
        while self.used + len(points) > len(self._cells):
            self._cells = np.concatenate([self._cells, np.zeros_like(self._cells)])
        at = np.array([pose.x, pose.y, pose.theta])
        self.used = insert_points(self.index, self._cells, self.used, self.half, points, normals, at)

    def load(self, cells: NDArray[np.float64]) -> None:
        """Replace the contents by cells (n, 5) that another map of that size gave; quick, for maps that take turns."""
        clear_cells(self.index, self._cells, self.used, self.half)
        while len(cells) > len(self._cells):
            self._cells = np.zeros((2 * len(self._cells), FIELDS))
        self._cells[: len(cells)] = cells
        self.used = len(cells)
        place_cells(self.index, self._cells, self.used, self.half)


def _example_insert() -> Iterable[tuple[Any, ...]]:
    index = np.full((2, 4, 4), -1, dtype=np.int32)
    yield index, np.zeros((8, FIELDS)), 0, 0.2, np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(3)


@kernel(examples=_example_insert)
def insert_points(
    index: NDArray[np.int32],
    cells: NDArray[np.float64],
    used: int,
    half: float,
    points: NDArray[np.float64],
    normals: NDArray[np.float64],
    pose: NDArray[np.float64],
) -> int:
    """Add points to cells in place; returns how many cells are in use."""
    side = index.shape[1]
    c, s = math.cos(pose[2]), math.sin(pose[2])
    for i in range(len(points)):
        x = pose[0] + c * points[i, 0] - s * points[i, 1]
        y = pose[1] + s * points[i, 0] + c * points[i, 1]
        nx, ny = c * normals[i, 0] - s * normals[i, 1], s * normals[i, 0] + c * normals[i, 1]
        column, row = math.floor((x + half) / CELL), math.floor((y + half) / CELL)
        if not (0 <= column < side and 0 <= row < side):
            continue
        layer = 0
        found = index[0, row, column]
        if found >= 0 and nx * cells[found, NX] + ny * cells[found, NY] < 0.0:
            layer = 1
            found = index[1, row, column]
        if found < 0:
            found = used
            used += 1
            index[layer, row, column] = found
            for field in range(FIELDS):
                cells[found, field] = 0.0
        cells[found, COUNT] += 1.0
        cells[found, X] += x
        cells[found, Y] += y
        cells[found, NX] += nx
        cells[found, NY] += ny
    return used


def _example_clear() -> Iterable[tuple[Any, ...]]:
    yield np.full((2, 4, 4), -1, dtype=np.int32), np.zeros((8, FIELDS)), 0, 0.2


@kernel(examples=_example_clear)
def clear_cells(index: NDArray[np.int32], cells: NDArray[np.float64], used: int, half: float) -> None:
    """Take the cells in use out of the index."""
    side = index.shape[1]
    for k in range(used):
        column = math.floor((cells[k, X] / cells[k, COUNT] + half) / CELL)
        row = math.floor((cells[k, Y] / cells[k, COUNT] + half) / CELL)
        for r in range(max(row - 1, 0), min(row + 2, side)):  # rounding may put a mean into the cell beside
            for q in range(max(column - 1, 0), min(column + 2, side)):
                for layer in range(2):
                    if index[layer, r, q] == k:
                        index[layer, r, q] = -1


@kernel(examples=_example_clear)
def place_cells(index: NDArray[np.int32], cells: NDArray[np.float64], used: int, half: float) -> None:
    """Enter cells into an empty index, where their means lie."""
    side = index.shape[1]
    for k in range(used):
        column = math.floor((cells[k, X] / cells[k, COUNT] + half) / CELL)
        row = math.floor((cells[k, Y] / cells[k, COUNT] + half) / CELL)
        if 0 <= column < side and 0 <= row < side:
            layer = 0 if index[0, row, column] < 0 else 1
            if index[layer, row, column] < 0:
                index[layer, row, column] = k
