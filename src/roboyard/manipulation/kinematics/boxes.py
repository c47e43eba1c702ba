"""Kernels: least squares between bounds, and what is left to move without disturbing it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.arrays import solve_spd

Array = NDArray[np.float64]


@kernel(examples=lambda: [(np.eye(2), np.zeros(2), -np.ones(2), np.ones(2), np.zeros(2))])
def solve_box_qp(H: Array, g: Array, low: Array, high: Array, v: Array) -> int:
    """The least of ``v H v / 2 - g v`` between bounds, by a primal active-set method (Nocedal and Wright 2006, 16.5).

    Args:
        H: (n, n) positive definite.
        g: (n,).
        low: (n,) not above ``high``.
        high: (n,).
        v: (n,) is filled.

    Returns:
        How many steps it took.
    """
    n = int(g.shape[0])
    active = np.zeros(n, dtype=np.int64)
    G, residual = np.empty((n, n)), np.empty(n)
    for i in range(n):
        v[i] = min(max(0.0, low[i]), high[i])
    for count in range(10 * n + 10):
        for i in range(n):
            residual[i] = g[i]
            for j in range(n):
                residual[i] -= H[i, j] * v[j]
                G[i, j] = H[i, j] if active[i] == 0 and active[j] == 0 else 0.0
            if active[i] != 0:
                G[i, i] = 1.0
        step = np.where(active == 0, residual, 0.0)
        if not solve_spd(G, step, 0.0):
            return -1
        step_fraction, blocking = 1.0, -1
        for i in range(n):
            if active[i] == 0 and step[i] != 0.0:
                margin = (high[i] if step[i] > 0.0 else low[i]) - v[i]
                if margin / step[i] < step_fraction:
                    step_fraction, blocking = max(margin / step[i], 0.0), i
        for i in range(n):
            if active[i] == 0:
                v[i] = min(max(v[i] + step_fraction * step[i], low[i]), high[i])
        if blocking >= 0:
            active[blocking] = 1 if step[blocking] > 0.0 else -1
            continue
        worst, released = 1e-12, -1
        for i in range(n):
            residual[i] = g[i]
            for j in range(n):
                residual[i] -= H[i, j] * v[j]
            if active[i] != 0 and -residual[i] * active[i] > worst:
                worst, released = -residual[i] * active[i], i
        if released < 0:
            return count + 1
        active[released] = 0
    return 10 * n + 10


@kernel(examples=lambda: [(np.ones((6, 3)), np.ones(3))])
def project_out_rows(J: Array, d: Array) -> None:
    """Take from a direction (n,) what moves any row of J (m, n), by Gram and Schmidt; ``J`` is overwritten."""
    for i in range(J.shape[0]):
        original_length = np.sqrt((J[i] ** 2).sum())
        for _ in range(2):
            for k in range(i):
                J[i] -= (J[i] * J[k]).sum() * J[k]
        length = np.sqrt((J[i] ** 2).sum())
        if length <= 1e-9 * (original_length + 1e-9) or length < 1e-12:
            J[i] = 0.0
            continue
        J[i] /= length
    for _ in range(2):
        for i in range(J.shape[0]):
            d -= (d * J[i]).sum() * J[i]
