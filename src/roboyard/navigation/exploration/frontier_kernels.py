"""Kernels: where to stand to see beyond a frontier, and what a view would show."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel


@kernel(examples=lambda: [(np.zeros((4, 4), dtype=np.bool_), 0, 0, 3, 2)])
def sees(blocked: NDArray[np.bool_], row: int, column: int, to_row: int, to_column: int) -> bool:
    """Whether the line between the middles of two cells meets no blocked cell; looked at every half cell."""
    dr, dc = to_row - row, to_column - column
    steps = 2 * max(abs(dr), abs(dc))
    for k in range(1, steps):
        if blocked[math.floor(row + dr * k / steps + 0.5), math.floor(column + dc * k / steps + 0.5)]:
            return False
    return True


@kernel(
    examples=lambda: [
        (np.zeros((2, 2), dtype=np.int64, order="F"), np.zeros((4, 4)), np.ones((4, 4), dtype=np.bool_),
         np.zeros((4, 4), dtype=np.bool_), np.zeros((1, 2), dtype=np.int64), 1)
    ]
)  # fmt: skip
def standing_places(
    border: NDArray[np.int64],
    costs: NDArray[np.float64],
    roomy: NDArray[np.bool_],
    blocked: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    near: int,
) -> NDArray[np.int64]:
    """For each cell of a border, the nearest cell to look from.

    Args:
        border: (n, 2) rows and columns.
        costs: (rows, columns) of the way to each cell, infinite where none leads.
        roomy: (rows, columns) where the robot can also turn.
        blocked: (rows, columns) what nobody sees through.
        offsets: (m, 2) rows and columns, the nearest first, how far from the border to look for a roomy cell.
        near: So many of them for cells that are not roomy.

    Returns:
        (n, 2) rows and columns; -1 where there is none.
    """
    rows, columns = costs.shape
    places = np.full((len(border), 2), -1, dtype=np.int64)
    for i in range(len(border)):
        row, column = border[i, 0], border[i, 1]
        for k in range(len(offsets)):
            r, c = row + offsets[k, 0], column + offsets[k, 1]
            if not (0 <= r < rows and 0 <= c < columns) or math.isinf(costs[r, c]):
                continue
            if roomy[r, c] and sees(blocked, row, column, r, c):
                places[i, 0], places[i, 1] = r, c
                break
            if places[i, 0] < 0 and k < near:
                places[i, 0], places[i, 1] = r, c
    return places


# the example's cells are read only, as those of grids are
@kernel(examples=lambda: [(np.frombuffer(bytes(16), dtype=np.int8).reshape(4, 4), 65, 1, 1, 3.0, 8)])
def unseen_by_direction(
    cells: NDArray[np.int8], occupied: int, row: int, column: int, reach: float, directions: int
) -> NDArray[np.float64]:
    """Unknown area in sight from the middle of a cell, if nothing stands in it, by direction.

    Args:
        cells: (rows, columns) of an occupancy grid; what lies beyond it is unknown.
        occupied: From which value on a cell cannot be seen through.
        row: Of the cell to look from.
        column: The same.
        reach: How far to look [cells].
        directions: How many, the first along the columns, counter-clockwise in the grid's frame.

    Returns:
        (directions,) [cells²].
    """
    rows, columns = cells.shape
    areas = np.zeros(directions)
    width = 2.0 * math.pi / directions
    for k in range(directions):
        dc, dr = math.cos(k * width), math.sin(k * width)
        for step in range(1, int(reach) + 1):
            r, c = math.floor(row + step * dr + 0.5), math.floor(column + step * dc + 0.5)
            if not (0 <= r < rows and 0 <= c < columns) or cells[r, c] < 0:
                areas[k] += step * width
            elif cells[r, c] >= occupied:
                break
    return areas
