"""Where on the plane a body can be while it stands on given feet: bits on a grid, and of them what hangs together.

Planners that lay the body's way first need none of this; one that looks for stances does, and lays the way afterwards.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.ground_kernels import body_height
from roboyard.walking.steps.herd import Herd, PlanningContext, Whole, make_herd, sample_world
from roboyard.walking.steps.stretch import in_table, inside_by, polygon_edges

Bits = NDArray[np.uint64]

SIDE: Final = 32
"""Cells of a region along an edge."""
_ONE: Final = np.uint64(1)
_ALL: Final = np.uint64((1 << SIDE) - 1)


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(sample_world(), make_herd(1, 1), 0, np.zeros(3), np.zeros(2, np.int64))],
)
def middle_of(world: PlanningContext, herd: Herd, i: int, grid: Array, out: Whole) -> None:
    """First row and column of the region of a plan's feet: its middle is where they would be as in the stance.

    Args:
        world: See there.
        herd: See there.
        i: Which plan.
        grid: (3,) x and y of the cell (0, 0) of the grid, and the edge of its cells [m].
        out: (2,) is filled.
    """
    x, y, count, n0 = 0.0, 0.0, 0, world.number
    for leg in range(herd.down.shape[1]):
        if herd.down[i, leg]:
            x += herd.feet[i, leg, 0] - n0.cos * world.home[leg, 0] + n0.sin * world.home[leg, 1]
            y += herd.feet[i, leg, 1] - n0.sin * world.home[leg, 0] - n0.cos * world.home[leg, 1]
            count += 1
    out[0] = round((y / max(count, 1) - grid[1]) / grid[2]) - SIDE // 2
    out[1] = round((x / max(count, 1) - grid[0]) / grid[2]) - SIDE // 2


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(sample_world(), make_herd(1, 1), 0, 0.0, 0.0, np.zeros((12, 3)), 3)],
)
def holds(world: PlanningContext, herd: Herd, i: int, x: float, y: float, edges: Array, count: int) -> bool:
    """Whether the body can be over a place [m] with the feet of a plan, inside of edges of their polygon."""
    n0 = world.number
    if inside_by(edges, count, x, y) < n0.margin:
        return False
    z = body_height(world.body, n0.x, n0.y, n0.cell, x, y)
    if math.isnan(z):
        return False
    for leg in range(herd.down.shape[1]):
        if herd.down[i, leg]:
            dx, dy = herd.feet[i, leg, 0] - x, herd.feet[i, leg, 1] - y
            if not in_table(
                world.table, world.low, leg, n0.cos * dx + n0.sin * dy, n0.cos * dy - n0.sin * dx,
                herd.feet[i, leg, 2] - z, n0.cells, n0.layers,
            ):  # fmt: skip
                return False
    return True


@kernel(
    no_refcount=True,
    examples=lambda: [
        (sample_world(), make_herd(1, 1), 0, np.ones(3), np.zeros(2, np.int64), np.zeros(SIDE, np.uint64))
    ],
)
def fill_region(world: PlanningContext, herd: Herd, i: int, grid: Array, first: Whole, out: Bits) -> None:
    """Where the body can be with the feet of a plan, as bits: k of row r is row ``first[0] + r``, ``first[1] + k``."""
    count = polygon_edges(herd.feet, herd.down, i, -1, herd.edges)
    for r in range(SIDE):
        bits, y = np.uint64(0), grid[1] + grid[2] * (first[0] + r)
        if count >= 3:
            for c in range(SIDE):
                if holds(world, herd, i, grid[0] + grid[2] * (first[1] + c), y, herd.edges, count):
                    bits |= _ONE << np.uint64(c)
        out[r] = bits


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros(SIDE, np.uint64), 0, 0)])
def is_in(region: Bits, row: int, column: int) -> bool:
    """Whether a cell, from the region's first one on, belongs to it."""
    return bool(0 <= row < SIDE and 0 <= column < SIDE and (region[row] >> np.uint64(column)) & _ONE != np.uint64(0))


@kernel(
    no_refcount=True, forceinline=True, examples=lambda: [(np.zeros(SIDE, np.uint64), np.zeros(2, np.int64), 0.0, 0.0)]
)
def nearest(region: Bits, first: Whole, row: float, column: float) -> tuple[int, int]:
    """Row and column of the grid of the cell of a region that is nearest to a place on it; -1 of an empty region."""
    best, at_row, at_column = math.inf, -1, -1
    for r in range(SIDE):
        bits, c, dr = region[r], 0, first[0] + r - row
        if dr * dr >= best:
            continue
        while bits != np.uint64(0):
            if bits & _ONE:
                dc = first[1] + c - column
                if dr * dr + dc * dc < best:
                    best, at_row, at_column = dr * dr + dc * dc, first[0] + r, first[1] + c
            bits >>= _ONE
            c += 1
    return at_row, at_column


@kernel(
    no_refcount=True, forceinline=True,
    examples=lambda: [
        (np.zeros(SIDE, np.uint64), np.zeros(2, np.int64), np.zeros(SIDE, np.uint64), np.zeros(2, np.int64),
         np.zeros(SIDE, np.uint64))
    ],
)  # fmt: skip
def overlap(region: Bits, first: Whole, other: Bits, other_first: Whole, out: Bits) -> None:
    """The cells of a region that another region has as well, at the first one's rows and columns."""
    shift = other_first[1] - first[1]
    for r in range(SIDE):
        row, bits = first[0] + r - other_first[0], np.uint64(0)
        if 0 <= row < SIDE and abs(shift) < SIDE:
            bits = other[row] << np.uint64(shift) if shift >= 0 else other[row] >> np.uint64(-shift)
        out[r] = region[r] & bits & _ALL


@kernel(no_refcount=True, examples=lambda: [(np.zeros(SIDE, np.uint64), 0, 0, np.zeros(SIDE, np.uint64))])
def flood(region: Bits, row: int, column: int, out: Bits) -> None:
    """The part of a region that hangs together with a cell of it, edge to edge."""
    for r in range(SIDE):
        out[r] = 0
    out[row] = _ONE << np.uint64(column)
    changed = True
    while changed:
        changed = False
        for step in range(2 * SIDE):
            r = step if step < SIDE else 2 * SIDE - 1 - step
            wider = out[r]
            if r > 0:
                wider |= out[r - 1]
            if r + 1 < SIDE:
                wider |= out[r + 1]
            wider &= region[r]
            known = np.uint64(0)
            while wider != known:
                known = wider
                wider |= ((wider << _ONE) | (wider >> _ONE)) & region[r] & _ALL
            changed = changed or wider != out[r]
            out[r] = wider


@kernel(
    no_refcount=True,
    examples=lambda: [
        (
            np.zeros(SIDE, np.uint64), 0, 0, 0, 0, np.zeros(SIDE * SIDE, np.int64), np.zeros(SIDE * SIDE, np.int64),
        )
    ],
)  # fmt: skip
def path_in(
    region: Bits, row: int, column: int, to_row: int, to_column: int, came: Whole,
    queue: Whole,
) -> int:  # fmt: skip
    """A shortest path, by edges and past corners of cells, from one cell of a region to another: how many cells follow.

    ``queue`` holds them, row times SIDE and column; -1, where there is none.  Both have room for SIDE * SIDE.
    """
    start, end = row * SIDE + column, to_row * SIDE + to_column
    for k in range(SIDE * SIDE):
        came[k] = -1
    came[end], queue[0] = end, end
    head, tail = 0, 1
    while head < tail and came[start] < 0:
        r, c = queue[head] // SIDE, queue[head] % SIDE
        for turn in range(8):
            # straight steps first, so that paths go straight where they can
            dr = (1, -1, 0, 0, 1, 1, -1, -1)[turn]
            dc = (0, 0, 1, -1, 1, -1, 1, -1)[turn]
            cell = (r + dr) * SIDE + c + dc
            if not (is_in(region, r + dr, c) and is_in(region, r, c + dc)):
                continue
            if is_in(region, r + dr, c + dc) and came[cell] < 0:
                came[cell], queue[tail] = queue[head], cell
                tail += 1
        head += 1
    if came[start] < 0:
        return -1
    count, at = 0, start
    while at != end:
        at = came[at]
        queue[count] = at
        count += 1
    return count
