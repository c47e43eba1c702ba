"""Whether beams pass through walls: what speaks against a match, however well its points fit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2
from roboyard.mapping.matching.cells import CELL, COUNT, FIELDS, NX, NY, CellMap
from roboyard.mapping.preparation import Prepared

_NEAR_END = 0.5
"""Surfaces nearer than this before a beam's end do not count as passed [m]: they may be the same, seen from aside."""


def seen_through(cells: CellMap, scan: Prepared, pose: SE2) -> float:
    """Share of a scan's beams (0 to 1) that pass through a surface which faces them."""
    if not len(scan.points):
        return 0.0
    origin = pose @ scan.origin
    ends = pose @ scan.points
    return passed(cells.index, cells.cells, cells.half, origin, np.ascontiguousarray(ends)) / len(ends)


def _example() -> Iterable[tuple[Any, ...]]:
    yield np.full((2, 4, 4), -1, dtype=np.int32), np.zeros((8, FIELDS)), 0.2, np.zeros(2), np.zeros((3, 2))


@kernel(examples=_example)
def passed(
    index: NDArray[np.int32],
    cells: NDArray[np.float64],
    half: float,
    origin: NDArray[np.float64],
    ends: NDArray[np.float64],
) -> int:
    """Number of beams that pass through a surface before they end."""
    side = index.shape[1]
    count = 0
    for i in range(len(ends)):
        dx, dy = ends[i, 0] - origin[0], ends[i, 1] - origin[1]
        length = math.sqrt(dx * dx + dy * dy)
        if length < 1e-6:
            continue
        ux, uy = dx / length, dy / length
        at = 0.3
        while at < length - _NEAR_END:
            column = math.floor((origin[0] + ux * at + half) / CELL)
            row = math.floor((origin[1] + uy * at + half) / CELL)
            if not (0 <= column < side and 0 <= row < side):
                break
            k = index[0, row, column]
            if k >= 0 and cells[k, COUNT] >= 3.0:
                facing = -(ux * cells[k, NX] + uy * cells[k, NY]) / cells[k, COUNT]
                if facing > 0.5:
                    count += 1
                    break
            at += CELL
    return count
