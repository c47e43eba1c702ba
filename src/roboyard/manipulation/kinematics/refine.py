"""Kernel: joints that bring a tool as near to a goal as can be, by damped least squares within limits.

Levenberg's and Marquardt's method. Joints at a limit that would leave it are held for the step (a projected Newton
method, Bertsekas 1982), so that what is found is a minimum among what the joints can do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.rows import Rows, fill_jacobian, place_frames, product, smallest
from roboyard.compute import kernel
from roboyard.compute.arrays import solve_positive

Array = NDArray[np.float64]


class Wish(NamedTuple):
    """Where a tool shall be.

    Attributes:
        T: (4, 4) in the base. Of a direction's goal only the place and the third column count.
        direction: (3,) in the tool's frame, what shall point along that column; zero if the whole rotation counts.
        weights: (2,) of metres and of radians.
    """

    T: Array
    direction: Array
    weights: Array


def example_wish() -> Wish:
    """For kernels' examples."""
    return Wish(np.eye(4), np.zeros(3), np.ones(2))


@kernel(examples=lambda: [(example_wish(), np.eye(4), np.zeros(6))])
def fill_error(wish: Wish, T: Array, out: Array) -> None:
    """What is missing, in the axes of the base: metres, then a rotation vector. Weights do not count yet.

    Args:
        wish: The goal.
        T: (4, 4) where the tool is.
        out: (6,) is filled.
    """
    G, d = wish.T, wish.direction
    for i in range(3):
        out[i] = G[i, 3] - T[i, 3]
    if d[0] != 0.0 or d[1] != 0.0 or d[2] != 0.0:
        x = T[0, 0] * d[0] + T[0, 1] * d[1] + T[0, 2] * d[2]
        y = T[1, 0] * d[0] + T[1, 1] * d[1] + T[1, 2] * d[2]
        z = T[2, 0] * d[0] + T[2, 1] * d[1] + T[2, 2] * d[2]
        rx, ry, rz = y * G[2, 2] - z * G[1, 2], z * G[0, 2] - x * G[2, 2], x * G[1, 2] - y * G[0, 2]
        sine, cosine = math.sqrt(rx * rx + ry * ry + rz * rz), x * G[0, 2] + y * G[1, 2] + z * G[2, 2]
        if sine < 1e-12 and cosine < 0.0:  # the other way: any axis across will do
            rx, ry, rz = (0.0, z, -y) if abs(x) < 0.9 else (-z, 0.0, x)
            sine = math.sqrt(rx * rx + ry * ry + rz * rz)
            scale = math.pi / sine
        else:
            scale = math.atan2(sine, cosine) / sine if sine > 1e-12 else 1.0
        out[3], out[4], out[5] = rx * scale, ry * scale, rz * scale
        return
    # rotation vector of G T^T, by its skew part; beyond 2.8 rad by the symmetric one, which is exact there
    trace = -1.0
    for i in range(3):
        for j in range(3):
            trace += G[i, j] * T[i, j]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        skew = 0.0
        for n in range(3):
            skew += G[k, n] * T[j, n] - G[j, n] * T[k, n]
        out[3 + i] = 0.5 * skew
    sine = math.sqrt(out[3] * out[3] + out[4] * out[4] + out[5] * out[5])
    angle = math.atan2(sine, 0.5 * trace)
    if angle < 2.8:
        scale = angle / sine if sine > 1e-12 else 1.0
        for i in range(3):
            out[3 + i] *= scale
        return
    best, axis = -1.0, np.zeros(3)
    for i in range(3):
        column = np.zeros(3)
        for j in range(3):
            for n in range(3):
                column[j] += 0.5 * (G[j, n] * T[i, n] + G[i, n] * T[j, n])
        column[i] -= math.cos(angle)
        length = math.sqrt(column[0] ** 2 + column[1] ** 2 + column[2] ** 2)
        if length > best:
            best = length
            axis = column / length
    sign = 1.0 if axis[0] * out[3] + axis[1] * out[4] + axis[2] * out[5] >= 0.0 else -1.0
    for i in range(3):
        out[3 + i] = sign * angle * axis[i]


@kernel(inline="always", examples=lambda: [(example_wish(), np.zeros(6))])
def cost_of(wish: Wish, error: Array) -> float:
    """Half the weighted square."""
    place = error[0] ** 2 + error[1] ** 2 + error[2] ** 2
    turn = error[3] ** 2 + error[4] ** 2 + error[5] ** 2
    cost: float = 0.5 * (wish.weights[0] ** 2 * place + wish.weights[1] ** 2 * turn)
    return cost


@kernel(examples=lambda: [(smallest(), example_wish(), np.zeros(1), 10, 1e-12)])
def refine(rows: Rows, wish: Wish, q: Array, steps: int, enough: float) -> float:
    """Move joints to where the weighted error is least nearby.

    Args:
        rows: The chain.
        wish: The goal.
        q: (n,) from where, within limits; overwritten.
        steps: At most that many.
        enough: Cost at which it may stop.

    Returns:
        The cost: half the weighted square of the error.
    """
    n, m = rows.lower.shape[0], rows.turn.shape[0]
    frames, T = np.empty((m + 1, 4, 4)), np.empty((4, 4))
    J, error, tried = np.empty((6, n)), np.empty(6), np.empty(n)
    H, G, g, step = np.empty((n, n)), np.empty((n, n)), np.empty(n), np.empty(n)
    free = np.ones(n, dtype=np.bool_)
    place_frames(rows, q, frames)
    product(frames[m], rows.T_tip, T)
    fill_error(wish, T, error)
    cost = cost_of(wish, error)
    damping = 1e-3
    fresh = True
    for _ in range(steps):
        if cost <= enough:
            break
        if fresh:
            fill_jacobian(rows, frames, T[:3, 3], J)
            for i in range(n):
                g[i] = 0.0
                for r in range(6):
                    weight = wish.weights[0] if r < 3 else wish.weights[1]
                    J[r, i] *= weight
                    g[i] += J[r, i] * weight * error[r]
            if wish.direction[0] != 0.0 or wish.direction[1] != 0.0 or wish.direction[2] != 0.0:
                _without_roll(wish, T, J)
            for i in range(n):
                for j in range(i + 1):
                    H[i, j] = 0.0
                    for r in range(6):
                        H[i, j] += J[r, i] * J[r, j]
                    H[j, i] = H[i, j]
        slope = 0.0
        for i in range(n):
            free[i] = not (q[i] <= rows.lower[i] and g[i] < 0.0) and not (q[i] >= rows.upper[i] and g[i] > 0.0)
            if free[i]:
                slope += g[i] * g[i]
        if slope < 1e-30:
            break
        for i in range(n):
            for j in range(n):
                G[i, j] = H[i, j] if free[i] and free[j] else 0.0
            G[i, i] += damping * (H[i, i] + 1e-9) if free[i] else 1.0
            step[i] = g[i] if free[i] else 0.0
        if not solve_positive(G, step, 0.0):
            damping *= 10.0
            fresh = False
            continue
        moved = 0.0
        for i in range(n):
            tried[i] = min(max(q[i] + step[i], rows.lower[i]), rows.upper[i])
            moved = max(moved, abs(tried[i] - q[i]))
        place_frames(rows, tried, frames)
        product(frames[m], rows.T_tip, T)
        fill_error(wish, T, error)
        found = cost_of(wish, error)
        if found < cost:
            gained = cost - found
            for i in range(n):
                q[i] = tried[i]
            cost, damping, fresh = found, max(damping * 0.1, 1e-12), True
            if gained < 1e-10 * cost and moved < 1e-7:
                break
        else:
            damping *= 8.0
            fresh = False
            if moved < 1e-13 or damping > 1e10:
                break
    return cost


@kernel(examples=lambda: [(example_wish(), np.eye(4), np.zeros((6, 1)))])
def _without_roll(wish: Wish, T: Array, J: Array) -> None:
    """Take from the angular rows what turns the tool about its own direction: no error comes from there."""
    d = wish.direction
    x = T[0, 0] * d[0] + T[0, 1] * d[1] + T[0, 2] * d[2]
    y = T[1, 0] * d[0] + T[1, 1] * d[1] + T[1, 2] * d[2]
    z = T[2, 0] * d[0] + T[2, 1] * d[1] + T[2, 2] * d[2]
    for i in range(J.shape[1]):
        along = x * J[3, i] + y * J[4, i] + z * J[5, i]
        J[3, i] -= along * x
        J[4, i] -= along * y
        J[5, i] -= along * z
