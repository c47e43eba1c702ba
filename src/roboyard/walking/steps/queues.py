"""Which node of a graph of stances is gone on with: the cheapest by a heap, or the best of a square that lags behind.

The heap alone goes through all stances about a dead end before it turns back; every other time a node is taken from
the square of the plane that is nearest to the goal and was not gone on with too often.  After Xie, Müller, Holte and
Imai 2014, Type-based exploration with multiple search queues.
"""

from __future__ import annotations

import math
from typing import Final

from roboyard.compute import kernel
from roboyard.walking.steps.stances import (
    FRESH,
    HEAP,
    SQUARES,
    StanceGraph,
    sample_graph,
)

_CELLS: Final = 3
"""Of regions to the edge of a square."""
_TIRED: Final = 1.0
"""Having gone on with a square once counts as so many cells farther from the goal."""


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_graph()[3], 0.0, 0)])
def push(graph: StanceGraph, value: float, node: int) -> None:
    """Put a node into the heap; where that is full, it is left out."""
    keys, nodes, k = graph.keys, graph.heap, graph.number[HEAP]
    if k >= keys.shape[0]:
        return
    graph.number[HEAP] += 1
    while k > 0 and keys[(k - 1) // 2] > value:
        keys[k], nodes[k] = keys[(k - 1) // 2], nodes[(k - 1) // 2]
        k = (k - 1) // 2
    keys[k], nodes[k] = value, node


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_graph()[3],)])
def pop(graph: StanceGraph) -> int:
    """Take the first node out of a heap that is not empty."""
    keys, nodes = graph.keys, graph.heap
    graph.number[HEAP] -= 1
    size = graph.number[HEAP]
    first, value, node, k = nodes[0], keys[size], nodes[size], 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= value:
            break
        keys[k], nodes[k] = keys[child], nodes[child]
        k = child
    keys[k], nodes[k] = value, node
    return int(first)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_graph()[3], 0, 0, 0, 1.0)])
def sort_in(graph: StanceGraph, node: int, row: int, column: int, away: float) -> None:
    """Put a new node among those whose bodies come to the same square, with a cell so far from the goal [m]."""
    own, k = math.floor(row / _CELLS) * (1 << 20) + math.floor(column / _CELLS), 0
    while k < graph.number[SQUARES] and graph.square[k] != own:
        k += 1
    if k == graph.square.shape[0]:
        return
    if k == graph.number[SQUARES]:
        graph.number[SQUARES] += 1
        graph.square[k], graph.way_off[k], graph.newest[k] = own, away, -1
    graph.older[node], graph.newest[k] = graph.newest[k], node


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_graph()[3], 1.0)])
def elsewhere(graph: StanceGraph, weight: float) -> int:
    """The best node of the square that is nearest to the goal and was not gone on with too often; -1 for none."""
    best, least = -1, math.inf
    for k in range(graph.number[SQUARES]):
        while graph.newest[k] >= 0 and graph.turn[graph.newest[k]] != FRESH:
            graph.newest[k] = graph.older[graph.newest[k]]
        if graph.newest[k] >= 0 and graph.way_off[k] < least:
            best, least = k, graph.way_off[k]
    if best < 0:
        return -1
    graph.way_off[best] += _TIRED * graph.grid[2]
    node, least, at = -1, math.inf, graph.newest[best]
    while at >= 0:
        value = graph.cost[at] + weight * graph.left[at]
        if graph.turn[at] == FRESH and value < least:
            node, least = at, value
        at = graph.older[at]
    return int(node)
