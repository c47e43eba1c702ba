"""How far every cell of a grid is from the nearest marked one: exact Euclidean distances."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError


def _examples() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((2, 2), np.bool_),)


@kernel(examples=_examples)
def squared_distance_transform(occupied: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Squared distances (rows, columns) in cells; infinite where nothing is marked.

    Two sweeps of lower envelopes of parabolas (P. Felzenszwalb, D. Huttenlocher, Distance Transforms of Sampled
    Functions, Theory of Computing 8, 2012); the first, along columns, needs no envelope since its heights are 0.
    """
    rows, columns = occupied.shape
    squares = np.full((rows, columns), np.inf)
    for column in range(columns):
        last = -1
        for row in range(rows):
            if occupied[row, column]:
                last = row
            if last >= 0:
                squares[row, column] = float(row - last) ** 2
        last = -1
        for row in range(rows - 1, -1, -1):
            if occupied[row, column]:
                last = row
            if last >= 0:
                squares[row, column] = min(squares[row, column], float(last - row) ** 2)
    apex = np.empty(columns, np.int64)
    start = np.empty(columns + 1)
    height = np.empty(columns)
    for row in range(rows):
        count = 0
        for column in range(columns):
            height[column] = squares[row, column]
            if not np.isfinite(height[column]):
                continue
            boundary = -np.inf
            while count:
                other = apex[count - 1]
                boundary = (height[column] - height[other] + column * column - other * other) / (2.0 * (column - other))
                if boundary > start[count - 1]:
                    break
                count -= 1
                boundary = -np.inf
            apex[count], start[count] = column, boundary
            count += 1
        if not count:
            continue
        start[count] = np.inf
        k = 0
        for column in range(columns):
            while start[k + 1] < column:
                k += 1
            squares[row, column] = height[apex[k]] + float(column - apex[k]) ** 2
    return squares


def distance_transform(occupied: ArrayLike, resolution: float = 1.0, limit: float = math.inf) -> NDArray[np.float32]:
    """Distances from the middle of every cell to the middle of the nearest marked one.

    Args:
        occupied: (rows, columns), true where distances are 0.
        resolution: Side of a cell [m].
        limit: Larger distances, and those in a grid without marks, are this [m].

    Returns:
        (rows, columns) [m].

    Raises:
        InputError: an array of another shape.
    """
    cells = np.ascontiguousarray(occupied, dtype=np.bool_)
    if cells.ndim != 2:
        raise InputError(f"a grid of shape {cells.shape}", valid="(rows, columns)")
    distances = np.minimum(np.sqrt(squared_distance_transform(cells)) * resolution, limit)
    return np.asarray(distances, dtype=np.float32)


def surface_cells(occupied: ArrayLike) -> NDArray[np.bool_]:
    """Solid cells with a side that is not solid: what a beam can hit.  What lies beyond the grid counts as solid."""
    cells = np.asarray(occupied, dtype=np.bool_)
    padded = np.pad(cells, 1, constant_values=True)
    inside = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return np.asarray(cells & ~inside)
