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
from roboyard.navigation.planning.buckets import INSIDE, NONE, empty_buckets, give_back, open_block, take_all
from roboyard.navigation.planning.ground import Ground, smallest
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
_DIAGONAL = np.float32(1.4143)
"""A cell's bucket says what a way along rows and columns costs, which is at most √2 times its time."""


@kernel(examples=lambda: [(smallest(), np.zeros(25, dtype=np.float32), 0, -1)])
def march(ground: Ground, times: NDArray[np.float32], source: int, target: int) -> int:
    """Times from ``source``, until the target's is known.

    Cells are looked at in the order in which a wave along rows and columns would come by, so that where weights do not
    change both neighbours a time depends on are known by then, and each cell is looked at once.  (In the order of the
    times themselves, one of the two often comes too late, and the processor cannot guess which: half as fast.)  What
    has to be mended follows one bucket behind, and so overtakes the wave.

    Args:
        ground: What cells cost.
        times: (rows * columns,) in cells, filled with infinity.
        source: Flat index.
        target: Flat index, or -1 for all cells.

    Returns:
        Number of cells looked at.
    """
    flat, weights = ground.cells.ravel(), ground.weights
    stride = np.uint64(ground.cells.shape[1])
    queue = empty_buckets(flat.size, _FINE * weights.max() + 2.0)  # each cell waits in one bucket only
    blocks, ends, _ = queue
    ring = len(ends)
    mask = np.int64(ring - 1)
    ahead = np.empty(len(weights), dtype=np.int64)
    for k in range(len(weights)):
        ahead[k] = np.int64(_FINE * weights[k] + _HALF)
    waiting = np.zeros(flat.size, dtype=np.uint8)
    start = np.uint64(source)
    times[start] = 0.0
    end = open_block(queue, 0) - 1
    for v in (start - _ONE, start + _ONE, start - stride, start + stride):
        if weights[flat[v]] > 0.0:
            end += 1
            blocks[end] = v
            waiting[v] = 1
    ends[0] = end
    seen = 0
    level = np.int64(0)
    empty = 0
    while empty < ring:
        if ends[level & mask] == NONE:
            empty += 1
            level += 1
            if target >= 0 and level > _DIAGONAL * _FINE * times[target] + ring:
                break
            continue
        empty = 0
        end = take_all(queue, level & mask)
        while end != NONE:
            block = end - (end & INSIDE)
            seen += end - block
            for i in range(block + 1, end + 1):
                u = np.uint64(blocks[np.uint64(i)])
                waiting[u] = 0
                w = weights[flat[u]]
                north, south, east, west = u + stride, u - stride, u + _ONE, u - _ONE
                tn, ts, te, tw = times[north], times[south], times[east], times[west]
                a, b = min(tn, ts), min(te, tw)
                gap = abs(a - b)
                time = _HALF * (a + b + math.sqrt(_TWO * w * w - gap * gap)) if gap < w else min(a, b) + w
                if time > times[u] - _SETTLED:
                    continue
                times[u] = time
                for v, t in ((north, tn), (south, ts), (east, te), (west, tw)):
                    if t <= time or waiting[v] != 0:
                        continue
                    ww = weights[flat[v]]
                    if (ww > 0.0) & (t > time + _WORTH * ww):
                        later = 1 if t < np.inf else ahead[flat[v]]
                        q = np.uint64((level + later) & mask)
                        place = ends[q] + 1
                        if place & INSIDE == 0:
                            place = open_block(queue, q)
                        blocks[np.uint64(place)] = v
                        ends[q] = place
                        waiting[v] = 1
            end = int(blocks[block])
            give_back(queue, block)
        level += 1
    return seen


@kernel(examples=lambda: [(smallest(), np.zeros((5, 5), np.float32), 2.5, 2.5, 10, 0.5)])
def descend(
    ground: Ground, times: NDArray[np.float32], row: float, column: float, most: int, step: float
) -> NDArray[np.float64]:
    """The way down the gradient of the times, to where they end.

    Args:
        ground: As for ``march``.
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
        free = size > 0.0 and not fell and line_cost(ground, row, column, nr, nc) < np.inf
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


def way_down(ground: Ground, times: NDArray[np.float32], row: float, column: float) -> NDArray[np.float64]:
    """The whole way (n, 2) that ``descend`` finds, points half a cell from each other."""
    most = 256
    while True:
        way = descend(ground, times, row, column, most, 0.5)
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
