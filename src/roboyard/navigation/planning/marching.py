"""Kernels: the time a wave takes from a source to every place, whatever direction it comes from.

The eikonal equation |∇T| = w on the grid, solved with Godunov's upwind scheme over the four neighbours (Sethian 1996);
its gradient leads along shortest ways of any direction, not only along the grid's.  navfn solves the same with a
fitted parabola.  Cells wait in a ring of buckets (as in Yatziv, Bartesaghi, Sapiro 2006); one is looked at again when
a neighbour's time falls, until nothing changes by more than ``_SETTLED``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.navigation.planning.lines import line_cost

_ONE = np.uint64(1)
_HALF, _TWO = np.float32(0.5), np.float32(2.0)
_SETTLED = np.float32(1e-3)
"""Smaller changes of a time are not passed on [cells]."""
_WORTH = np.float32(0.2)
"""A neighbour is looked at again when its time is later by more than this part of its weight: what it could win
otherwise is less than 2 % of a step.  navfn takes 0.71, and its times then err by 3 %."""
_FINE = np.float32(2.0)
"""Buckets per cell's cost."""
_NOT_WAITING, _LAST = np.int32(-2), np.int32(-1)
_DIAGONAL = np.float32(1.4143)
"""A cell's bucket says what a way along rows and columns costs, which is at most √2 times its time."""


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.float32), np.zeros(25, dtype=np.float32), 0, -1)])
def march(weights: NDArray[np.float32], times: NDArray[np.float32], source: int, target: int) -> int:
    """Times from ``source``, until the target's is known.

    Cells are looked at in the order in which a wave along rows and columns would come by, so that where weights do not
    change both neighbours a time depends on are known by then, and each cell is looked at once.  (In the order of the
    times themselves, one of the two often comes too late, and the processor cannot guess which: half as fast.)  What
    has to be mended follows one bucket behind, and so overtakes the wave.

    Args:
        weights: (rows, columns) cost of a cell's width, at least 1, or 0 where nobody can be; its rim must be 0.
        times: (rows * columns,) in cells, filled with infinity.
        source: Flat index.
        target: Flat index, or -1 for all cells.

    Returns:
        Number of cells looked at.
    """
    flat = weights.ravel()
    stride = np.uint64(weights.shape[1])
    ring = 1
    while ring < _FINE * flat.max() + 3:
        ring *= 2
    mask = np.int64(ring - 1)
    # buckets are chains through the cells, since each waits in one bucket only
    firsts = np.full(ring, _LAST)
    lasts = np.full(ring, _LAST)
    after = np.full(flat.size, _NOT_WAITING)
    start = np.uint64(source)
    times[start] = 0.0
    for v in (start + stride, start - stride, start + _ONE, start - _ONE):
        if flat[v] > 0.0:
            after[v] = firsts[0]
            if firsts[0] == _LAST:
                lasts[0] = v
            firsts[0] = v
    seen = 0
    level = np.int64(0)
    empty = 0
    while empty < ring:
        k = np.uint64(level & mask)
        if firsts[k] == _LAST:
            empty += 1
            level += 1
            if target >= 0 and level > _DIAGONAL * _FINE * times[target] + ring:
                break
            continue
        empty = 0
        u = np.uint64(firsts[k])
        firsts[k] = after[u]
        after[u] = _NOT_WAITING
        seen += 1
        w = flat[u]
        north, south, east, west = u + stride, u - stride, u + _ONE, u - _ONE
        a, b = min(times[north], times[south]), min(times[east], times[west])
        gap = abs(a - b)
        time = _HALF * (a + b + math.sqrt(_TWO * w * w - gap * gap)) if gap < w else min(a, b) + w
        if time > times[u] - _SETTLED:
            continue
        times[u] = time
        for v in (north, south, east, west):
            ww = flat[v]
            if (ww > 0.0) & (times[v] > time + _WORTH * ww) & (after[v] == _NOT_WAITING):
                later = 1 if times[v] < np.inf else np.int64(_FINE * ww + _HALF)
                q = np.uint64((level + later) & mask)
                after[v] = _LAST
                if firsts[q] == _LAST:
                    firsts[q] = v
                else:
                    after[lasts[q]] = v
                lasts[q] = v
    return seen


@kernel(examples=lambda: [(np.zeros((5, 5), np.float32), np.zeros((5, 5), np.float32), 2.5, 2.5, 10, 0.5)])
def descend(
    weights: NDArray[np.float32], times: NDArray[np.float32], row: float, column: float, most: int, step: float
) -> NDArray[np.float64]:
    """The way down the gradient of the times, to where they end.

    Args:
        weights: As for ``march``.
        times: (rows, columns) as ``march`` leaves them.
        row: Where to begin, in cells; the middle of cell (0, 0) is (0, 0).
        column: The same along x.
        most: Points at most.
        step: Between points [cells].

    Returns:
        (n, 2) rows and columns; its last point lies in the source's cell unless ``most`` were not enough.
    """
    way = np.empty((most, 2))
    way[0] = row, column
    count = 1
    fell = False
    while count < most:
        r, c = math.floor(row + 0.5), math.floor(column + 0.5)
        here = times[r, c]
        if here == 0.0:
            break
        slope_r, slope_c = _slope(times, r, c)
        size = math.hypot(slope_r, slope_c)
        nr, nc = row, column
        if size > 0.0:
            nr, nc = row - step * slope_r / size, column - step * slope_c / size
        free = size > 0.0 and not fell and line_cost(weights, row, column, nr, nc) < np.inf
        next_r, next_c = math.floor(nr + 0.5), math.floor(nc + 0.5)
        # only ever to earlier cells, or the way could go round and round
        if free and ((next_r == r and next_c == c) or times[next_r, next_c] < here):
            row, column = nr, nc
        elif not fell and (row != r or column != c):
            # beside an obstacle the gradient may point into it: to the middle of the cell instead,
            row, column = float(r), float(c)
            fell = True
        else:
            # and from there to that of the lowest neighbour
            fell = False
            low_r, low_c, low = r, c, here
            for dr in range(-1, 2):
                for dc in range(-1, 2):
                    time = times[r + dr, c + dc]
                    beside = times[r + dr, c] < np.inf and times[r, c + dc] < np.inf
                    if time < low and beside:
                        low_r, low_c, low = r + dr, c + dc, time
            row, column = float(low_r), float(low_c)
        way[count] = row, column
        count += 1
    return way[:count]


def way_down(
    weights: NDArray[np.float32], times: NDArray[np.float32], row: float, column: float
) -> NDArray[np.float64]:
    """The whole way (n, 2) that ``descend`` finds, points half a cell from each other."""
    most = 256
    while True:
        way = descend(weights, times, row, column, most, 0.5)
        if len(way) < most:
            return way
        most *= 4


@kernel
def _slope(times: NDArray[np.float32], r: int, c: int) -> tuple[float, float]:
    """Gradient of the times in a cell, upwind: from the earlier neighbour of each direction, if there is one."""
    here = times[r, c]
    north, south, east, west = times[r + 1, c], times[r - 1, c], times[r, c + 1], times[r, c - 1]
    along_r = along_c = 0.0
    if min(north, south) < here:
        along_r = here - south if south <= north else north - here
    if min(east, west) < here:
        along_c = here - west if west <= east else east - here
    return along_r, along_c
