"""Kernels over small arrays: copies, and systems of linear equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute.jit import kernel

Array = NDArray[np.float64]


@kernel(no_refcount=True, examples=lambda: [(np.zeros(1), np.zeros(1))])
def assign(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy (n) values into an array of the same or greater length.

    For ``target[:] = source`` in a kernel, numba compiles the text of an error message, which takes longer than to
    compile most kernels.
    """
    for i in range(source.shape[0]):
        target[i] = source[i]


@kernel(examples=lambda: [(np.eye(2), np.zeros(2), 0.0)], error_model="numpy")
def solve_spd_in_place(A: Array, b: Array, min_pivot: float) -> bool:
    """Solve A x = b for a symmetric positive definite A by Cholesky decomposition, in place.

    `A` is overwritten, and `b` becomes x.

    Args:
        A: (n, n) matrix; only the lower half is read.
        b: (n,) right-hand side.
        min_pivot: Lower bound of pivots, exclusive.

    Returns:
        False if a pivot is too small; then `b` is unchanged.
    """
    n = b.shape[0]
    for j in range(n):
        for k in range(j):
            A[j, j] -= A[j, k] * A[j, k]
        if not A[j, j] > min_pivot:
            return False
        A[j, j] = math.sqrt(A[j, j])
        for i in range(j + 1, n):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
    for i in range(n):
        for k in range(i):
            b[i] -= A[i, k] * b[k]
        b[i] /= A[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= A[k, i] * b[k]
        b[i] /= A[i, i]
    return True
