"""Where it is worth going: from each cell of a coarse grid the way to the goal on which legs find most ground.

A body that goes straight for the goal comes to where no feet can follow, or where it has no room; planners that lay its
way first lay it along this one.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, maximum_filter

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.rig import Rig

COARSE: Final = 2
"""Cells of the ground to the edge of one of the guide's."""
FAR: Final = 0.2
"""No foot of the Akrobat gets farther from its place in the stance [m]."""
_NEAR: Final = 0.1
"""A leg whose place has no ground so near is short of it [m]."""
_SHORT: Final = 0.6
"""Each leg that is short of ground makes a way so much longer."""


def legs_with_ground(rig: Rig, ground: Ground, far: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows, columns) how many legs of the left, and of the right, have ground so near to their place in the stance [m]
    with the body over a cell."""
    rows = ground.rows
    near = rows.stand
    if near.any():
        near = distance_transform_edt(~near) * rows.cell <= far
    left, right = np.zeros(rows.stand.shape, np.int64), np.zeros(rows.stand.shape, np.int64)
    c, s = math.cos(ground.heading), math.sin(ground.heading)
    for (x, y, _), side in zip(rig.rows.home.tolist(), rig.rows.side.tolist(), strict=True):
        column, row = round((c * x - s * y) / rows.cell), round((s * x + c * y) / rows.cell)
        shifted = _shifted(near, row, column)
        if side > 0:
            left += shifted
        else:
            right += shifted
    return left, right


def passable(rig: Rig, ground: Ground) -> NDArray[np.bool_]:
    """(rows, columns) where the body has room, and three legs, not all on one side, may have ground: generous."""
    left, right = legs_with_ground(rig, ground, FAR * rig.scale)
    found: NDArray[np.bool_] = (left + right >= 3) & (left > 0) & (right > 0) & ~np.isnan(ground.rows.body)
    return found


def way_lengths(rig: Rig, ground: Ground, goal: Array) -> Array:
    """(r, c) length of the best way from each coarse cell to the goal (2,), longer where legs are short of ground [m].

    Infinite where none leads there.
    """
    left, right = legs_with_ground(rig, ground, _NEAR * rig.scale)
    price = 1.0 + _SHORT * (rig.rows.home.shape[0] - left - right)
    free = passable(rig, ground)
    free &= ~maximum_filter(np.isnan(ground.rows.body), size=3)  # heights are interpolated
    price = np.where(free, price, np.inf)
    rows, columns = (n // COARSE for n in price.shape)
    coarse = price[: rows * COARSE, : columns * COARSE].reshape(rows, COARSE, columns, COARSE).max(axis=(1, 3))
    out = np.full(coarse.shape, np.inf)
    edge = COARSE * ground.rows.cell
    row, column = int((goal[1] - ground.rows.y) / edge), int((goal[0] - ground.rows.x) / edge)
    if 0 <= row < rows and 0 <= column < columns:
        lay_lengths(coarse * edge, row, column, out, np.zeros(8 * out.size + 1), np.zeros(8 * out.size + 1, np.int64))
    return out


@kernel(
    no_refcount=True, examples=lambda: [(np.ones((2, 2)), 0, 0, np.ones((2, 2)), np.zeros(33), np.zeros(33, np.int64))]
)
def lay_lengths(price: Array, row: int, column: int, out: Array, keys: Array, cells: NDArray[np.int64]) -> None:
    """Lengths of the cheapest ways to a cell over all eight neighbours, Dijkstra 1959; infinite prices are walls.

    Args:
        price: (r, c) of going one cell's edge there.
        row: Of the cell where ways end.
        column: Its column.
        out: (r, c) infinite, is filled.
        keys: (8 r c + 1,) room for a heap.
        cells: (8 r c + 1,) too.
    """
    columns = price.shape[1]
    out[row, column], keys[0], cells[0], size = 0.0, 0.0, row * columns + column, 1
    while size > 0:
        length, cell = keys[0], cells[0]
        size -= 1
        last, moved, k = keys[size], cells[size], 0
        while 2 * k + 1 < size:
            child = 2 * k + 1
            if child + 1 < size and keys[child + 1] < keys[child]:
                child += 1
            if keys[child] >= last:
                break
            keys[k], cells[k] = keys[child], cells[child]
            k = child
        keys[k], cells[k] = last, moved
        r, c = cell // columns, cell % columns
        if length > out[r, c]:
            continue
        for dr in range(-1, 2):
            for dc in range(-1, 2):
                a, b = r + dr, c + dc
                if not (0 <= a < price.shape[0] and 0 <= b < columns) or math.isinf(price[a, b]):
                    continue
                if math.isinf(price[r, b]) or math.isinf(price[a, c]):
                    continue  # not past the corner of a wall
                # half of it is gone on either cell
                to = length + 0.5 * (price[r, c] + price[a, b]) * math.sqrt(float(dr * dr + dc * dc))
                if to < out[a, b]:
                    out[a, b], k = to, size
                    size += 1
                    while k > 0 and keys[(k - 1) // 2] > to:
                        keys[k], cells[k] = keys[(k - 1) // 2], cells[(k - 1) // 2]
                        k = (k - 1) // 2
                    keys[k], cells[k] = to, a * columns + b


def _shifted(values: NDArray[np.bool_], rows: int, columns: int) -> NDArray[np.bool_]:
    """Of each cell the value of the one so far away; False beyond the map."""
    out = np.zeros_like(values)
    r, c = values.shape
    if abs(rows) < r and abs(columns) < c:
        out[max(-rows, 0) : r - max(rows, 0), max(-columns, 0) : c - max(columns, 0)] = values[
            max(rows, 0) : r - max(-rows, 0), max(columns, 0) : c - max(-columns, 0)
        ]
    return out
