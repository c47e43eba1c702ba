"""Kernel: the widest way between two cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel


@kernel(examples=lambda: [(np.zeros((5, 5)), 1, 1, 2, 2)])
def widest(squares: NDArray[np.float64], row: int, column: int, to_row: int, to_column: int) -> tuple[int, int]:
    """How wide the way is that is wide where it is narrowest, over the eight neighbours without cutting corners.

    Cells are flooded from the start, the widest first; whatever is reached first is reached by its widest way, so each
    cell waits once, in a chain for each width (the maximum-capacity path; Pollack 1960).

    Args:
        squares: (rows, columns) squared distance of each cell to the nearest obstacle [cells], 0 within obstacles.
        row: Where the way begins.
        column: The same along x.
        to_row: Where it ends.
        to_column: The same along x.

    Returns:
        The square at its narrowest place, and that place's flat index; 0 if there is only a way through obstacles.
    """
    rows, columns = squares.shape
    flat = squares.ravel()
    top = rows * rows + columns * columns
    start, end = row * columns + column, to_row * columns + to_column
    level = np.int64(min(flat[start], top))
    chains = np.full(level + 1, -1, dtype=np.int64)
    after = np.full(rows * columns, -2, dtype=np.int64)
    narrowest = np.zeros(rows * columns, dtype=np.int64)
    after[start], chains[level], narrowest[start] = -1, start, start
    while level > 0:
        u = chains[level]
        if u == -1:
            level -= 1
            continue
        chains[level] = after[u]
        if u == end:
            return int(level), int(narrowest[u])
        r, c = u // columns, u % columns
        for dr in range(-1, 2):
            for dc in range(-1, 2):
                rr, cc = r + dr, c + dc
                if rr < 0 or cc < 0 or rr >= rows or cc >= columns:
                    continue
                v = rr * columns + cc
                if after[v] != -2 or flat[v] == 0.0 or squares[r, cc] == 0.0 or squares[rr, c] == 0.0:
                    continue
                narrowest[v] = v if flat[v] < level else narrowest[u]
                own = np.int64(min(flat[v], level))
                after[v] = chains[own]
                chains[own] = v
    return 0, -1
