"""The cheapest way over a grid on which each cell has a price: A*, then pulled taut.

P. E. Hart, N. J. Nilsson, B. Raphael, "A formal basis for the heuristic determination of minimum cost paths", IEEE
Transactions on Systems Science and Cybernetics 4(2), 1968.  People's grids are small and their ways rare, so this does
without what planners of robots have.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array

Cells = NDArray[np.int64]


def find_way(prices: Array, start: tuple[int, int], end: tuple[int, int]) -> Array:
    """Corners (n, 2) of the way as rows and columns, the first cell and the last one included; none: there is no way.

    Args:
        prices: (rows, columns) of a cell's length of each cell, at least 1; infinite where nobody gets through.
        start: Row and column.
        end: The same.
    """
    found = search(prices, start[0], start[1], end[0], end[1])
    return taut(prices, found).astype(np.float64) if len(found) else np.zeros((0, 2))


def _one() -> Iterable[tuple[Any, ...]]:
    yield np.ones((2, 2)), 0, 0, 1, 1


@kernel(examples=_one)
def search(prices: Array, row: int, column: int, to_row: int, to_column: int) -> Cells:
    """Cells (n, 2) from one to the other, each beside or across from the one before; none where there is no way.

    From cell to cell costs the way times the mean of both prices, and nobody squeezes between two corners.
    """
    rows, columns = prices.shape
    best = np.full((rows, columns), np.inf)
    came = np.full((rows, columns), -1, np.int64)
    best[row, column] = 0.0
    heap = [(0.0, row * columns + column)]
    while len(heap) > 0:
        estimate, cell = heapq.heappop(heap)
        r, c = cell // columns, cell % columns
        if r == to_row and c == to_column:
            break
        dr, dc = abs(r - to_row), abs(c - to_column)
        if estimate > best[r, c] + max(dr, dc) + 0.41421356237 * min(dr, dc) + 1e-9:
            continue  # a better way came here since
        for i in range(-1, 2):
            for j in range(-1, 2):
                nr, nc = r + i, c + j
                if (i == 0 and j == 0) or not (0 <= nr < rows and 0 <= nc < columns):
                    continue
                if math.isinf(prices[nr, nc]) or math.isinf(prices[r, nc]) or math.isinf(prices[nr, c]):
                    continue
                length = 1.0 if i == 0 or j == 0 else 1.41421356237
                cost = best[r, c] + 0.5 * length * (prices[r, c] + prices[nr, nc])
                if cost < best[nr, nc] - 1e-12:
                    best[nr, nc] = cost
                    came[nr, nc] = cell
                    dr, dc = abs(nr - to_row), abs(nc - to_column)
                    heapq.heappush(
                        heap, (cost + max(dr, dc) + 0.41421356237 * min(dr, dc), np.int64(nr * columns + nc))
                    )
    if math.isinf(best[to_row, to_column]):
        return np.zeros((0, 2), np.int64)
    count, cell = 1, to_row * columns + to_column
    while came[cell // columns, cell % columns] >= 0:
        cell = came[cell // columns, cell % columns]
        count += 1
    way = np.empty((count, 2), np.int64)
    cell = to_row * columns + to_column
    for k in range(count):
        way[count - 1 - k, 0], way[count - 1 - k, 1] = cell // columns, cell % columns
        cell = came[cell // columns, cell % columns]
    return way


@kernel(examples=lambda: [(np.ones((2, 2)), 0.0, 0.0, 1.0, 1.0)])
def line_price(prices: Array, row: float, column: float, to_row: float, to_column: float) -> float:
    """What a straight line costs between two places given in cells, whose middles are whole numbers."""
    length = math.hypot(to_row - row, to_column - column)
    steps = max(math.ceil(4.0 * length), 1)
    total = 0.0
    for k in range(steps):
        share = (k + 0.5) / steps
        r = math.floor(row + share * (to_row - row) + 0.5)
        c = math.floor(column + share * (to_column - column) + 0.5)
        if not (0 <= r < prices.shape[0] and 0 <= c < prices.shape[1]):
            return np.inf
        total += prices[r, c]
    return total * length / steps


@kernel(examples=lambda: [(np.ones((2, 2)), np.array([[0, 0], [1, 1]]))])
def taut(prices: Array, way: Cells) -> Cells:
    """Those cells of a way that are left where each straight line costs no more than what it leaves out."""
    n = len(way)
    kept = np.empty((n, 2), np.int64)
    kept[0] = way[0]
    count, at = 1, 0
    while at < n - 1:
        after, cost, best = at + 1, 0.0, at + 1
        while after < n:
            r0, c0, r1, c1 = way[after - 1, 0], way[after - 1, 1], way[after, 0], way[after, 1]
            cost += 0.5 * math.hypot(float(r1 - r0), float(c1 - c0)) * (prices[r0, c0] + prices[r1, c1])
            straight = line_price(prices, float(way[at, 0]), float(way[at, 1]), float(r1), float(c1))
            if straight <= 1.001 * cost:
                best = after
            after += 1
        at = best
        kept[count] = way[at]
        count += 1
    return kept[:count]
