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

_ROOT = math.sqrt(2.0)
_ONE = np.uint64(1)
_FINE = 2.0
"""Buckets per cell's cost: with one, a directed search looks at twice as many cells; with four, it waits for memory."""


def _examples() -> list[tuple[object, ...]]:
    weights, costs = np.zeros((5, 5), dtype=np.float32), np.zeros(25)
    return [(weights, costs, np.zeros(1, dtype=np.int64), -1, False)]


@kernel(examples=_examples)
def search(
    weights: NDArray[np.float32],
    costs: NDArray[np.float64],
    sources: NDArray[np.int64],
    target: int,
    directed: bool,
) -> int:
    """Cheapest ways from the nearest of ``sources``, until the target's is known.

    Args:
        weights: (rows, columns) cost of a cell's width, at least 1, or 0 where nobody can be; its rim must be 0.
        costs: (rows * columns,) in cells, filled with infinity; those up to the target's are final afterwards, and
            where the search is directed, those along its way.
        sources: (n,) flat indices.
        target: Flat index, or -1 for all cells.
        directed: Whether to prefer cells nearer to the target (A*, for one source; else Dijkstra's algorithm).

    Returns:
        Number of cells taken from the queue.
    """
    flat = weights.ravel()
    columns = np.int64(weights.shape[1])
    stride = np.uint64(columns)
    row, column = np.int64(target) // columns, np.int64(target) % columns
    # as many buckets as hold what a step can add to a cost or an estimate
    ring = 1
    while ring < _FINE * 2.0 * _ROOT * flat.max() + 3.0:
        ring *= 2
    mask = np.int64(ring - 1)
    queue = np.empty((ring, flat.size), dtype=np.int32)  # of which the system gives what is touched
    counts = np.zeros(ring, dtype=np.int64)
    waiting = np.zeros(flat.size, dtype=np.uint8)
    level = np.int64(0)
    if directed:
        dr, dc = abs(sources[0] // columns - row), abs(sources[0] % columns - column)
        level = np.int64(_FINE * (max(dr, dc) + (_ROOT - 1.0) * min(dr, dc)))
    for source in sources:
        if waiting[source] == 0:
            costs[source] = 0.0
            queue[level & mask, counts[level & mask]] = source
            counts[level & mask] += 1
            waiting[source] = 1
    seen = 0
    empty = 0
    while empty < ring:
        k = np.uint64(level & mask)
        if counts[k] == 0:
            empty += 1
            level += 1
            if target >= 0 and costs[target] * _FINE < level:
                break  # whatever is left costs more
            continue
        empty = 0
        counts[k] -= 1
        u = np.uint64(queue[k, counts[k]])
        if waiting[u] == 0:
            continue  # it came cheaper, and was looked at then
        waiting[u] = 0
        seen += 1
        cost = costs[u]
        here = np.float64(flat[u])
        north, south, east, west = u + stride, u - stride, u + _ONE, u - _ONE
        wn, ws, we, ww = flat[north], flat[south], flat[east], flat[west]
        for step in range(8):
            v = (north, south, east, west, north + _ONE, north - _ONE, south + _ONE, south - _ONE)[step]
            if step < 4:
                w = (wn, ws, we, ww)[step]
                x = cost + 0.5 * (here + w)
            else:
                if (wn, wn, ws, ws)[step - 4] == 0.0 or (we, ww, we, ww)[step - 4] == 0.0:
                    continue
                w = flat[v]
                x = cost + 0.5 * _ROOT * (here + w)
            if w > 0.0 and x < costs[v]:
                costs[v] = x
                waiting[v] = 1
                if directed:
                    dr, dc = abs(np.int64(v) // columns - row), abs(np.int64(v) % columns - column)
                    x += max(dr, dc) + (_ROOT - 1.0) * min(dr, dc)
                q = np.uint64(np.int64(x * _FINE) & mask)
                queue[q, counts[q]] = v
                counts[q] += 1
    return seen
