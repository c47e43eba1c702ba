"""Kernels: joints for a goal by searching, where no closed form is known or none fits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.rows import Rows, smallest
from roboyard.compute import kernel
from roboyard.manipulation.kinematics.branches import error_at
from roboyard.manipulation.kinematics.refine import Wish, cost_of, example_wish, refine

Array = NDArray[np.float64]


@kernel(examples=lambda: [(smallest(), example_wish(), np.ones(2), np.zeros((2, 1)), 1, 50, np.zeros((2, 1)))])
def search(
    rows: Rows, wish: Wish, tolerance: Array, seeds: Array, wanted: int, steps: int, out: Array
) -> tuple[int, int]:
    """Positions that meet a goal, found from seeds one after the other.

    Args:
        rows: The chain.
        wish: The goal.
        tolerance: (2,) how far a tool may be from it [m, rad].
        seeds: (s, n) within limits.
        wanted: How many different ones are enough.
        steps: At most that many from each seed.
        out: (wanted, n) is filled.

    Returns:
        How many were found, and how many seeds that took.
    """
    n = rows.lower.shape[0]
    frames, T, error, q = np.empty((rows.turn.shape[0] + 1, 4, 4)), np.empty((4, 4)), np.empty(6), np.empty(n)
    count, enough = 0, 1e-6 * (tolerance[0] * wish.weights[0]) ** 2
    for s in range(seeds.shape[0]):
        for i in range(n):
            q[i] = seeds[s, i]
        refine(rows, wish, q, steps, enough)
        error_at(rows, wish, q, frames, T, error)
        place = np.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
        angle = np.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
        if place > tolerance[0] or angle > tolerance[1]:
            continue
        twice = False
        for j in range(count):
            apart = 0.0
            for i in range(n):
                apart = max(apart, abs(out[j, i] - q[i]))
            twice = twice or apart < 1e-4
        if twice:
            continue
        for i in range(n):
            out[count, i] = q[i]
        count += 1
        if count == wanted:
            return count, s + 1
    return count, seeds.shape[0]


@kernel(examples=lambda: [(smallest(), example_wish(), np.zeros((9, 1)), 2, 50, np.zeros(1))])
def nearest(rows: Rows, wish: Wish, samples: Array, starts: int, steps: int, out: Array) -> float:
    """The position whose tool comes nearest to a goal, by the weights of the wish.

    Of all samples those that are nearest already are refined; a sample close to one that was taken is left out, so that
    the starts lie in different valleys.

    Args:
        rows: The chain.
        wish: The goal.
        samples: (s, n) within limits.
        starts: How many of them are refined.
        steps: At most that many for each.
        out: (n,) is filled.

    Returns:
        Half the weighted square of the error.
    """
    n, count = rows.lower.shape[0], samples.shape[0]
    frames, T, error, q = np.empty((rows.turn.shape[0] + 1, 4, 4)), np.empty((4, 4)), np.empty(6), np.empty(n)
    costs = np.empty(count)
    for s in range(count):
        error_at(rows, wish, samples[s], frames, T, error)
        costs[s] = cost_of(wish, error)
    best, taken = np.inf, np.empty((starts, n))
    used, order = 0, np.argsort(costs)
    for s in order:
        if used == starts:
            break
        close = False
        for k in range(used):
            apart = 0.0
            for i in range(n):
                apart = max(apart, abs(taken[k, i] - samples[s, i]))
            close = close or apart < 0.4
        if close:
            continue
        for i in range(n):
            taken[used, i] = q[i] = samples[s, i]
        used += 1
        cost = refine(rows, wish, q, steps, 1e-24)
        if cost < best:
            best = cost
            for i in range(n):
                out[i] = q[i]
    return best
