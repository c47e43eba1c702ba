"""Kernel: regions of a grid, that is, the connected components of its marked cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel


@kernel(examples=lambda: [(np.ones((4, 4), dtype=np.bool_), False)])
def label_components(marked: NDArray[np.bool_], diagonal: bool) -> tuple[NDArray[np.int32], int]:
    """Number the regions of marked cells.

    Two passes over the grid with a disjoint-set forest of provisional numbers (A. Rosenfeld, J. Pfaltz, Sequential
    Operations in Digital Picture Processing, Journal of the ACM 13, 1966). Regions are numbered in the order in which
    a walk along the rows meets them, as by `scipy.ndimage.label`.

    Args:
        marked: (rows, columns).
        diagonal: Whether cells that touch at a corner only belong to the same region.

    Returns:
        The number of each cell's region (rows, columns), from 1, 0 for cells that are not marked; and the number of
        regions.
    """
    rows, columns = marked.shape
    labels = np.zeros((rows, columns), dtype=np.int32)
    # No two provisional numbers are given to cells that are neighbors along a row or a column.
    parent = np.zeros(rows * columns // 2 + 2, dtype=np.int32)
    n_provisional = 0
    for row in range(rows):
        for column in range(columns):
            if not marked[row, column]:
                continue
            root = 0
            if column > 0 and labels[row, column - 1]:
                root = _find_root(parent, labels[row, column - 1])
            if row > 0:
                first, last = (max(column - 1, 0), min(column + 2, columns)) if diagonal else (column, column + 1)
                for neighbor in range(first, last):
                    if labels[row - 1, neighbor]:
                        other = _find_root(parent, labels[row - 1, neighbor])
                        if root == 0:
                            root = other
                        elif other < root:
                            parent[root] = other
                            root = other
                        else:
                            parent[other] = root
            if root == 0:
                n_provisional += 1
                root = n_provisional
                parent[root] = root
            labels[row, column] = root
    count = 0
    for provisional in range(1, n_provisional + 1):  # a parent's number is smaller than its child's
        if parent[provisional] == provisional:
            count += 1
            parent[provisional] = count
        else:
            parent[provisional] = parent[parent[provisional]]
    for row in range(rows):
        for column in range(columns):
            labels[row, column] = parent[labels[row, column]]
    return labels, count


@kernel
def _find_root(parent: NDArray[np.int32], label: int) -> int:
    """The provisional number that stands for all those that were found to be the same; halves the path to it."""
    while parent[label] != label:
        parent[label] = parent[parent[label]]
        label = parent[label]
    return label
