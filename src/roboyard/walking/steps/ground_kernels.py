"""Kernels about the ground that steps are planned on."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array


class GroundRows(NamedTuple):
    """Ground as kernels take it: arrays (rows, columns) of cells, rows along y, columns along x.

    Attributes:
        x: Least x, at the edge of the first column [m].
        y: Least y [m].
        cell: Edge of a cell [m].
        heights: [m]; nan where there is a hole.
        tops: The greatest height within a foot's radius; -inf over holes.
        stand: Where feet may stand.
        quality: 0 to 1 how well they stand there.
        body: Height of the body's frame [m]; nan where it cannot be.
        rings: (k, 2) rows and columns away from a cell, the nearest first.
        slack: Feet in the air may be so far below its height, which may be wrong by as much [m].
    """

    x: float
    y: float
    cell: float
    heights: Array
    tops: Array
    stand: NDArray[np.bool_]
    quality: Array
    body: Array
    rings: NDArray[np.int64]
    slack: float


def sample_ground() -> GroundRows:
    """Ground that kernels are compiled with."""
    flat = np.zeros((2, 2))
    return GroundRows(
        0.0, 0.0, 0.02, flat, flat, flat > 0.0, flat, flat, np.zeros((1, 2), np.int64),
        1e-3,
    )  # fmt: skip


@kernel(no_refcount=True, examples=lambda: [(np.zeros((2, 2)), 0.1)])
def lay_cones(heights: Array, rise: float) -> None:
    """Raise a surface to the lowest one above it that climbs by at most ``rise`` from cell to cell, in place.

    From all eight neighbours, once forwards and once backwards; slant by the square root of two.
    """
    rows, columns, slant = heights.shape[0], heights.shape[1], rise * math.sqrt(2.0)
    for turn in range(2):
        for a in range(rows):
            for b in range(columns):
                r, c = (a, b) if turn == 0 else (rows - 1 - a, columns - 1 - b)
                step = -1 if turn == 0 else 1
                best = heights[r, c]
                if 0 <= c + step < columns:
                    best = max(best, heights[r, c + step] - rise)
                if 0 <= r + step < rows:
                    best = max(best, heights[r + step, c] - rise)
                    if c > 0:
                        best = max(best, heights[r + step, c - 1] - slant)
                    if c + 1 < columns:
                        best = max(best, heights[r + step, c + 1] - slant)
                heights[r, c] = best


@kernel(
    examples=lambda: [
        (np.zeros((2, 2)), np.ones((2, 2), np.bool_), np.int64(0), np.int64(0), 2, 0.2, np.zeros((2, 2), np.bool_))
    ]
)
def spread_ground(
    heights: Array, stand: NDArray[np.bool_], row: np.int64, column: np.int64, far: int, high: float,
    out: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Mark cells that are got to from one over others where feet stand, each so far from the one before at most, and no
    more than so much higher or lower.

    Only from where ground ends is looked farther than beside a cell, and there at every other one.
    """
    rows, columns = stand.shape
    queue, used = np.empty(rows * columns, np.int64), 1
    queue[0], out[row, column] = row * columns + column, True
    at = 0
    while at < used:
        r0, c0, ends = queue[at] // columns, queue[at] % columns, False
        at += 1
        for ring in range(2):
            if ring == 1 and not ends:
                break
            reach, step = (1, 1) if ring == 0 else (far, 2)
            for r in range(max(r0 - reach, 0), min(r0 + reach + 1, rows), step):
                for c in range(max(c0 - reach, 0), min(c0 + reach + 1, columns), step):
                    if out[r, c]:
                        continue
                    if stand[r, c] and abs(heights[r, c] - heights[r0, c0]) <= high:
                        out[r, c] = True
                        queue[used] = r * columns + c
                        used += 1
                    else:
                        ends = True


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0.0, 0.0, 0.02, 0.0, 0.0)])
def body_height(body: Array, left: float, near: float, cell: float, x: float, y: float) -> float:
    """Height of the body's frame over a place [m], between the cells' middles; nan where it cannot be."""
    fx, fy = (x - left) / cell - 0.5, (y - near) / cell - 0.5
    rows, columns = body.shape
    if not (0.0 <= fx <= columns - 1.0 and 0.0 <= fy <= rows - 1.0):
        return math.nan
    c, r = min(int(fx), columns - 2), min(int(fy), rows - 2)
    u, v = fx - c, fy - r
    low = body[r, c] * (1.0 - u) + body[r, c + 1] * u
    high = body[r + 1, c] * (1.0 - u) + body[r + 1, c + 1] * u
    return float(low * (1.0 - v) + high * v)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0.0, 0.0)])
def cell_value(values: Array, column: float, row: float) -> float:
    """A map's value at a place in cells; -inf over holes and outside."""
    c, r = math.floor(column), math.floor(row)
    if c < 0 or r < 0 or r >= values.shape[0] or c >= values.shape[1] or math.isnan(values[r, c]):
        return -math.inf
    return float(values[r, c])


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0.0, 0.0, 0.02, 0.0, 0.0)])
def value_at(values: Array, left: float, near: float, cell: float, x: float, y: float) -> float:
    """A map's value at a place; -inf over holes and outside."""
    return cell_value(values, (x - left) / cell, (y - near) / cell)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0.0, 0.0, 0.02, 0.0, 0.0, 0.1, 0.1)])
def top_between(
    tops: Array, left: float, near: float, cell: float, x: float, y: float, x_end: float, y_end: float
) -> float:
    """The greatest value of a map along a straight line."""
    dx, dy = x_end - x, y_end - y
    parts, top = int(math.sqrt(dx * dx + dy * dy) / cell) + 1, -math.inf
    for k in range(parts + 1):
        c, r = int((x + dx * k / parts - left) / cell), int((y + dy * k / parts - near) / cell)
        if 0 <= c < tops.shape[1] and 0 <= r < tops.shape[0]:
            top = max(top, tops[r, c])
    return top
