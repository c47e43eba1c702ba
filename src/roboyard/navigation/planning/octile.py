"""Kernels: cheapest ways over the eight neighbours of a cell, without cutting corners.

A step from cell u to v costs its length, 1 or √2 cells, times the mean of both weights: the trapezoid rule for the line
integral of the weight, so a way costs the same in both directions.  A diagonal step needs both cells beside it free.

The queue is a ring of buckets half a cell's cost wide.  Dial 1969; Denardo and Fox 1979: with real lengths and buckets
no wider than the shortest step, whatever lies in the lowest bucket is final, in any order.  With a heuristic, steps may
add nothing to the estimate; then a cell is looked at again whenever its cost falls, which keeps the result exact.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.navigation.planning.buckets import (
    INSIDE,
    NONE,
    Buckets,
    close_block,
    empty_buckets,
    has_room,
    open_block,
    with_more_room,
)
from roboyard.navigation.planning.ground import Ground, smallest

_ROOT = math.sqrt(2.0)
_ONE = np.uint64(1)
_FINE = 2.0
"""Buckets per cell's cost: with one, a directed search looks at twice as many cells; with four, it waits for memory."""
_WAITING = 10_000
"""Cells for which the queue has room at first."""


@kernel(examples=lambda: [(smallest(), np.zeros(25), np.zeros(1, dtype=np.int64), -1, 0.0, False)])
def search(
    ground: Ground,
    costs: NDArray[np.float64],
    sources: NDArray[np.int64],
    target: int,
    beyond: float,
    directed: bool,
) -> int:
    """Cheapest ways from the nearest of ``sources``, until the target's is known.

    Args:
        ground: What cells cost.
        costs: (rows * columns,) in cells, filled with infinity; those up to the target's, and ``beyond`` it, are final
            afterwards, and where the search is directed, those along its way.
        sources: (n,) flat indices.
        target: Flat index, or -1 for all cells.
        beyond: By how much ways may be dearer than the target's, and still be found [cells].
        directed: Whether to prefer cells nearer to the target (A*, for one source; else Dijkstra's algorithm).

    Returns:
        Number of cells taken from the queue.
    """
    columns = np.int64(ground.cells.shape[1])
    waiting = np.zeros(ground.cells.size, dtype=np.uint8)
    level = 0
    if directed:
        row, column = np.int64(target) // columns, np.int64(target) % columns
        dr, dc = abs(sources[0] // columns - row), abs(sources[0] % columns - column)
        level = int(_FINE * (max(dr, dc) + (_ROOT - 1.0) * min(dr, dc)))
    # as many buckets as hold what a step can add to a cost or an estimate
    queue = empty_buckets(len(sources) + _WAITING, _FINE * 2.0 * _ROOT * ground.weights.max() + 2.0)
    first = level & np.int64(len(queue.ends) - 1)
    for source in sources:
        if waiting[source] == 0:
            costs[source] = 0.0
            end = queue.ends[first] + 1
            if end & INSIDE == 0:
                end = open_block(queue, first)
            queue.blocks[end] = source
            queue.ends[first] = end
            waiting[source] = 1
    seen = 0
    while True:
        level, more = _spread(ground, costs, waiting, target, beyond, directed, queue, level)
        seen += more
        if level < 0:
            return seen
        queue = with_more_room(queue)


@kernel
def _spread(
    ground: Ground,
    costs: NDArray[np.float64],
    waiting: NDArray[np.uint8],
    target: int,
    beyond: float,
    directed: bool,
    queue: Buckets,
    level: int,
) -> tuple[int, int]:
    """Look at what waits, until it is done or the queue is full.

    Returns:
        The level it has come to, or -1 when it is done; and how many cells it took from the queue.
    """
    flat = ground.cells.ravel()
    weights = ground.weights.astype(np.float64)
    columns = np.int64(ground.cells.shape[1])
    stride = np.uint64(columns)
    row, column = np.int64(target) // columns, np.int64(target) % columns
    blocks, ends, _ = queue
    ring = len(ends)
    mask = np.int64(ring - 1)
    seen = 0
    empty = 0
    while empty < ring:
        k = np.uint64(level & mask)
        end = ends[k]
        if end == NONE:
            empty += 1
            level += 1
            if target >= 0 and (costs[target] + beyond) * _FINE < level:
                break  # whatever is left costs more
            continue
        if not has_room(queue, 8):
            return level, seen
        empty = 0
        u = np.uint64(blocks[np.uint64(end)])
        ends[k] = end - 1
        if end & INSIDE == 1:
            close_block(queue, k)
        if waiting[u] == 0:
            continue  # it came cheaper, and was looked at then
        waiting[u] = 0
        seen += 1
        cost = costs[u]
        here = weights[flat[u]]
        north, south, east, west = u + stride, u - stride, u + _ONE, u - _ONE
        wn, ws, we, ww = weights[flat[north]], weights[flat[south]], weights[flat[east]], weights[flat[west]]
        for step in range(8):
            v = (north, south, east, west, north + _ONE, north - _ONE, south + _ONE, south - _ONE)[step]
            if step < 4:
                w = (wn, ws, we, ww)[step]
                x = cost + 0.5 * (here + w)
            else:
                if (wn, wn, ws, ws)[step - 4] == 0.0 or (we, ww, we, ww)[step - 4] == 0.0:
                    continue
                w = weights[flat[v]]
                x = cost + 0.5 * _ROOT * (here + w)
            if w > 0.0 and x < costs[v]:
                costs[v] = x
                waiting[v] = 1
                if directed:
                    dr, dc = abs(np.int64(v) // columns - row), abs(np.int64(v) % columns - column)
                    x += max(dr, dc) + (_ROOT - 1.0) * min(dr, dc)
                q = np.uint64(np.int64(x * _FINE) & mask)
                end = ends[q] + 1
                if end & INSIDE == 0:
                    end = open_block(queue, q)
                blocks[np.uint64(end)] = v
                ends[q] = end
    return -1, seen
