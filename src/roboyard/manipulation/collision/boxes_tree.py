"""A tree of axis-aligned boxes in depth-first order, so that walking it needs no stack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class BoxTree(NamedTuple):
    """Nodes in depth-first order.

    Attributes:
        low: (n, 3) least corner of what is below a node [m].
        high: (n, 3) greatest corner.
        skip: (n,) the node to go on with where a node is left out.
        leaf: (n,) the number of the body that it holds; -1 where it is no leaf.
    """

    low: Array
    high: Array
    skip: NDArray[np.int64]
    leaf: NDArray[np.int64]


def box_tree(low: Array, high: Array) -> BoxTree:
    """A tree over bodies' boxes (n, 3), halved at the median along the longest side."""
    nodes = max(2 * len(low) - 1, 0)
    tree = BoxTree(np.zeros((nodes, 3)), np.zeros((nodes, 3)), np.zeros(nodes, np.int64), np.full(nodes, -1, np.int64))
    middles = (low + high) / 2.0
    left = [(0, np.arange(len(low)))] if len(low) else []
    while left:
        node, some = left.pop()
        tree.low[node], tree.high[node] = low[some].min(axis=0), high[some].max(axis=0)
        tree.skip[node] = node + 2 * len(some) - 1
        if len(some) == 1:
            tree.leaf[node] = some[0]
            continue
        axis = int(np.argmax(np.ptp(middles[some], axis=0)))
        some = some[np.argsort(middles[some, axis], kind="stable")]
        half = len(some) // 2
        left.append((node + 2 * half, some[half:]))
        left.append((node + 1, some[:half]))
    return tree
