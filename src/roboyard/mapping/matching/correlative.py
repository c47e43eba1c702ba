"""Correlative scan matching: the best pose in a whole window, found exactly, by branch and bound.

A table holds for every cell how well a point that falls there fits.  Coarser tables hold the best over blocks of cells,
so a block of translations is bounded from above by one look for each point, and left out when that is worse than what
was found already (Olson 2009; Hess et al. 2016, section V).  The answer equals that of trying all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2

LEVELS = 6
"""Tables of blocks of 1, 2, … 32 cells."""
FULL = 255
"""Value of a table in the middle of a surface."""


@dataclass(frozen=True, slots=True)
class Tables:
    """How well points fit, at several sizes of cells.

    Attributes:
        values: All levels one behind the other; level k holds for each block of 2^k cells the best of it and of its
            successors along rows and columns.
        shapes: (levels, 3) where each begins in ``values``, rows, columns.
        origin: (2,) x, y of the corner of cell (0, 0) [m].
        resolution: Side of a finest cell [m].
    """

    values: NDArray[np.uint8]
    shapes: NDArray[np.int64]
    origin: NDArray[np.float64]
    resolution: float

    @classmethod
    def of(cls, points: NDArray[np.float64], resolution: float = 0.1, sigma: float = 0.1) -> Tables:
        """Tables for surfaces through points (n, 2), with a fit that falls off like a Gauss curve of that width [m]."""
        margin = 3.0 * sigma
        if len(points):
            low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
        else:
            low, high = np.zeros(2), np.zeros(2)
        origin = np.floor(low / resolution) * resolution
        columns, rows = (int(value) for value in np.ceil((high - origin) / resolution) + 1)
        shapes = []
        start = 0
        for level in range(LEVELS):
            block = 1 << level
            height, width = -(-rows // block) + 1, -(-columns // block) + 1  # one more: what reaches in from before
            shapes.append((start, height, width))
            start += height * width
        values, sizes = np.zeros(start, dtype=np.uint8), np.array(shapes, dtype=np.int64)
        fill_tables(values, sizes, origin, resolution, sigma, np.ascontiguousarray(points))
        return cls(values, sizes, origin, resolution)


@dataclass(frozen=True, slots=True)
class Window:
    """What a search looks through.

    Attributes:
        across: Half the side of the square of positions [m].
        turn: Half the range of directions [rad]; pi for all.
        step: From direction to direction [rad].
    """

    across: float
    turn: float
    step: float


@dataclass(frozen=True, slots=True)
class Found:
    """The best of a window: ``T_map_base`` and its mean fit, 0 to 1."""

    pose: SE2
    score: float


def search(
    tables: Tables, points: NDArray[np.float64], middle: SE2, window: Window, least: float = 0.0
) -> Found | None:
    """The pose in a window at which a scan fits best.

    Args:
        tables: How well points fit.
        points: (n, 2) of the scan, in the base's frame [m].
        middle: The window's middle.
        window: Its size.
        least: A fit not above this is none.

    Returns:
        The best pose, or None.
    """
    if not len(points):
        return None
    half = math.ceil(min(window.turn, math.pi) / window.step - 1e-9)
    turns = np.asarray(middle.theta + window.step * np.arange(-half, half + 1), dtype=np.float64)
    cells = math.ceil(window.across / tables.resolution - 1e-9)
    score, turn, row, column = branch_and_bound(
        tables.values, tables.shapes, tables.origin, tables.resolution, np.ascontiguousarray(points),
        np.array([middle.x, middle.y]), turns, cells, least * FULL * len(points),
    )  # fmt: skip
    if turn < 0:
        return None
    x, y = middle.x + column * tables.resolution, middle.y + row * tables.resolution
    return Found(SE2(x, y, float(turns[turn])), score / (FULL * len(points)))


def _example_fill() -> Iterable[tuple[Any, ...]]:
    yield np.zeros(64, dtype=np.uint8), np.zeros((LEVELS, 3), dtype=np.int64), np.zeros(2), 0.1, 0.1, np.zeros((3, 2))


@kernel(examples=_example_fill)
def fill_tables(
    values: NDArray[np.uint8],
    shapes: NDArray[np.int64],
    origin: NDArray[np.float64],
    resolution: float,
    sigma: float,
    points: NDArray[np.float64],
) -> None:
    """Draw the fit around each point into level 0, and take the best of blocks upwards.

    Entry (r, c) of level k covers the cells [(r-1) b, (r+1) b - 1) along rows and likewise along columns, with b = 2^k:
    wherever in its block a window of b cells begins that lies below entry r, all of it is covered.
    """
    reach = math.ceil(2.5 * sigma / resolution)
    rows, columns = shapes[0, 1], shapes[0, 2]
    for i in range(len(points)):
        px, py = (points[i, 0] - origin[0]) / resolution, (points[i, 1] - origin[1]) / resolution
        column, row = math.floor(px), math.floor(py)
        for r in range(max(row - reach, 0), min(row + reach + 1, rows - 1)):
            for c in range(max(column - reach, 0), min(column + reach + 1, columns - 1)):
                dx, dy = (c + 0.5 - px) * resolution, (r + 0.5 - py) * resolution
                value = np.uint8(FULL * math.exp(-0.5 * (dx * dx + dy * dy) / (sigma * sigma)))
                at = (r + 1) * columns + c + 1
                values[at] = max(values[at], value)
    for level in range(1, len(shapes)):
        start, height, width = shapes[level, 0], shapes[level, 1], shapes[level, 2]
        below, rows, columns = shapes[level - 1, 0], shapes[level - 1, 1], shapes[level - 1, 2]
        for r in range(height):
            for c in range(width):
                best = np.uint8(0)
                # entry r covers [(r-1)2b', (r+1)2b'-1) with b' the block below: entries 2r-1 .. 2r+1 of it cover
                # [(2r-2)b', (2r+2)b'-1), the same
                for rr in range(max(2 * r - 1, 0), min(2 * r + 2, rows)):
                    for cc in range(max(2 * c - 1, 0), min(2 * c + 2, columns)):
                        best = max(best, values[below + rr * columns + cc])
                values[start + r * width + c] = best


def _example_search() -> Iterable[tuple[Any, ...]]:
    yield (
        np.zeros(64, dtype=np.uint8), np.zeros((LEVELS, 3), dtype=np.int64), np.zeros(2), 0.1, np.zeros((3, 2)),
        np.zeros(2), np.zeros(3), 4, 0.0,
    )  # fmt: skip


@kernel
def block_score(
    values: NDArray[np.uint8],
    shapes: NDArray[np.int64],
    level: int,
    cells: NDArray[np.int64],
    row: int,
    column: int,
) -> int:
    """Upper bound of the score of the block of 2^level translations that begins at (row, column); exact at level 0."""
    start, height, width = shapes[level, 0], shapes[level, 1], shapes[level, 2]
    total = 0
    for i in range(len(cells)):
        r, c = ((cells[i, 0] + row) >> level) + 1, ((cells[i, 1] + column) >> level) + 1
        if 0 <= r < height and 0 <= c < width:
            total += values[start + r * width + c]
    return total


@kernel(examples=_example_search)
def branch_and_bound(
    values: NDArray[np.uint8],
    shapes: NDArray[np.int64],
    origin: NDArray[np.float64],
    resolution: float,
    points: NDArray[np.float64],
    middle: NDArray[np.float64],
    turns: NDArray[np.float64],
    half: int,
    least: float,
) -> tuple[int, int, int, int]:
    """The best translation by whole cells, from -half to half, and turn: score, index of the turn (-1: none above
    ``least``), row and column of the translation."""
    top = 0
    while top < len(shapes) - 1 and (2 << top) <= half + 1:
        top += 1
    block = 1 << top
    blocks = (2 * half + 1 + block - 1) // block
    n, m = len(points), len(turns)
    cells = np.empty((m, n, 2), dtype=np.int64)
    candidates = m * blocks * blocks
    bounds = np.empty(candidates, dtype=np.int64)
    for t in range(m):
        c, s = math.cos(turns[t]), math.sin(turns[t])
        for i in range(n):
            x = middle[0] + c * points[i, 0] - s * points[i, 1]
            y = middle[1] + s * points[i, 0] + c * points[i, 1]
            cells[t, i, 0] = math.floor((y - origin[1]) / resolution)
            cells[t, i, 1] = math.floor((x - origin[0]) / resolution)
        for a in range(blocks):
            for b in range(blocks):
                k = (t * blocks + a) * blocks + b
                bounds[k] = block_score(values, shapes, top, cells[t], a * block - half, b * block - half)
    best, best_turn, best_row, best_column = math.floor(least), -1, 0, 0
    order = np.argsort(-bounds, kind="mergesort")
    stack = np.empty((4 * len(shapes) + 4, 4), dtype=np.int64)  # level, row, column, bound
    children = np.empty((4, 3), dtype=np.int64)
    for k in order:
        if bounds[k] <= best:
            break
        t = k // (blocks * blocks)
        stack[0, 0], stack[0, 3] = top, bounds[k]
        stack[0, 1] = (k // blocks) % blocks * block - half
        stack[0, 2] = k % blocks * block - half
        depth = 1
        while depth:
            depth -= 1
            level, row, column, bound = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
            if bound <= best:
                continue
            if level == 0:
                best, best_turn, best_row, best_column = bound, t, row, column
                continue
            step = 1 << (level - 1)
            found = 0
            for a in range(2):
                for b in range(2):
                    r, q = row + a * step, column + b * step
                    if r > half or q > half:
                        continue
                    score = block_score(values, shapes, level - 1, cells[t], r, q)
                    if score > best:
                        at = found
                        while at > 0 and children[at - 1, 0] > score:  # the best goes last: the stack gives it first
                            children[at] = children[at - 1]
                            at -= 1
                        children[at, 0], children[at, 1], children[at, 2] = score, r, q
                        found += 1
            for i in range(found):
                stack[depth, 0], stack[depth, 3] = level - 1, children[i, 0]
                stack[depth, 1], stack[depth, 2] = children[i, 1], children[i, 2]
                depth += 1
    return best, best_turn, best_row, best_column
