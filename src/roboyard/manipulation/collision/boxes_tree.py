"""A tree of axis-aligned boxes in depth-first order, so that walking it needs no stack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array


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
    _fill(np.ascontiguousarray(low), np.ascontiguousarray(high), *tree)
    return tree


@kernel(examples=lambda: [(*(np.zeros((1, 3)) for _ in range(4)), np.zeros(1, np.int64), np.zeros(1, np.int64))])
def _fill(
    low: Array, high: Array, node_low: Array, node_high: Array, skip: NDArray[np.int64], leaf: NDArray[np.int64]
) -> None:
    """Fill the nodes of `box_tree`: each holds a row of ``order`` that is sorted anew for its halves."""
    n = low.shape[0]
    order = np.arange(n)
    left = np.zeros((64, 3), np.int64)  # node, first, number: halves are that many deep at most
    depth = 1 if n else 0
    left[0, 2] = n
    while depth:
        depth -= 1
        node, first, number = left[depth]
        some = order[first : first + number]
        longest, axis = -1.0, 0
        for k in range(3):
            least, most = low[some[0], k], high[some[0], k]
            near = far = (low[some[0], k] + high[some[0], k]) / 2.0
            for one in some:
                least, most = min(least, low[one, k]), max(most, high[one, k])
                middle = (low[one, k] + high[one, k]) / 2.0
                near, far = min(near, middle), max(far, middle)
            node_low[node, k], node_high[node, k] = least, most
            if far - near > longest:
                longest, axis = far - near, k
        skip[node] = node + 2 * number - 1
        if number == 1:
            leaf[node] = some[0]
            continue
        middles = (low[some, axis] + high[some, axis]) / 2.0
        order[first : first + number] = some[np.argsort(middles, kind="mergesort")]
        half = number // 2
        left[depth] = node + 2 * half, first + half, number - half
        left[depth + 1] = node + 1, first, half
        depth += 2
