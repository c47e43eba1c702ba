"""Connected regions of a grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def label_regions(cells: ArrayLike, *, corners: bool = False) -> NDArray[np.int32]:
    """Number the regions of true cells that share sides.

    The numbers are those of `scipy.ndimage.label`, whose import takes longer than to number the cells of a floor.  The
    cells of a row that lie side by side make a run; runs of neighboring rows that share columns are joined by
    union-find (Rosenfeld and Pfaltz, "Sequential operations in digital picture processing", 1966).

    Args:
        cells: (rows, columns), true where a cell counts.
        corners: Whether cells that share only a corner belong together, too.

    Returns:
        (rows, columns): 0 where a cell does not count, else the number of its region; regions are numbered from 1 in
        the order of their first cells, row by row.
    """
    mask = np.asarray(cells, dtype=bool)
    rows, columns = mask.shape
    padded = np.zeros((rows, columns + 1), np.int8)
    padded[:, :columns] = mask
    edges = np.flatnonzero(np.diff(padded.ravel(), prepend=np.int8(0)))  # begins and ends of runs in turn
    begins, ends = edges[::2], edges[1::2]
    parents = list(range(len(begins)))

    def find_root(run: int) -> int:
        while parents[run] != run:
            parents[run] = parents[parents[run]]
            run = parents[run]
        return run

    # Runs of the row above that a run touches lie side by side: those that end behind its begin and begin before its
    # end, all shifted by one row; with corners also those that end at its begin or begin at its end.
    above_first = np.searchsorted(ends, begins - (columns + 1), side="left" if corners else "right").tolist()
    above_last = np.searchsorted(begins, ends - (columns + 1), side="right" if corners else "left").tolist()
    for run, (first, last) in enumerate(zip(above_first, above_last, strict=True)):
        for other in range(first, last):
            one, two = find_root(run), find_root(other)
            parents[max(one, two)] = min(one, two)  # the root of a region is its first run
    roots = np.array([find_root(run) for run in range(len(parents))], dtype=np.int64)
    numbers = np.unique(roots, return_inverse=True)[1] + 1 if len(roots) else roots
    steps = np.zeros(rows * (columns + 1) + 1, np.int32)
    steps[begins] += numbers.astype(np.int32)
    steps[ends] -= numbers.astype(np.int32)
    labels: NDArray[np.int32] = np.cumsum(steps, dtype=np.int32)[:-1].reshape(rows, columns + 1)[:, :columns].copy()
    return labels
