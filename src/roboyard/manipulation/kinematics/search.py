"""Kernels: joints for a goal by searching, where no closed form is known or none fits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.rows import ChainArrays, example_chain_arrays
from roboyard.compute import kernel
from roboyard.manipulation.kinematics.branches import compute_pose_error_at
from roboyard.manipulation.kinematics.refine import IkTarget, damped_least_squares, example_ik_target, weighted_cost

Array = NDArray[np.float64]


@kernel(
    examples=lambda: [
        (example_chain_arrays(), example_ik_target(), np.ones(2), np.zeros((2, 1)), 1, 50, np.zeros((2, 1)))
    ]
)
def search_from_seeds(
    chain: ChainArrays,
    target: IkTarget,
    tolerance: Array,
    seeds: Array,
    max_solutions: int,
    max_iterations: int,
    out: Array,
) -> tuple[int, int]:
    """Positions that meet a goal, found from seeds one after the other.

    Args:
        chain: The chain.
        target: The goal.
        tolerance: (2,) how far a tool may be from it [m, rad].
        seeds: (s, n) within limits.
        max_solutions: How many different ones are enough.
        max_iterations: At most that many from each seed.
        out: (wanted, n) is filled.

    Returns:
        How many were found, and how many seeds that took.
    """
    n = chain.lower.shape[0]
    frames, T, error, q = (
        np.empty((chain.rotation_per_unit.shape[0] + 1, 4, 4)),
        np.empty((4, 4)),
        np.empty(6),
        np.empty(n),
    )
    count, cost_tolerance = 0, 1e-6 * (tolerance[0] * target.weights[0]) ** 2
    for s in range(seeds.shape[0]):
        for i in range(n):
            q[i] = seeds[s, i]
        damped_least_squares(chain, target, q, max_iterations, cost_tolerance)
        compute_pose_error_at(chain, target, q, frames, T, error)
        distance = np.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
        angle = np.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
        if distance > tolerance[0] or angle > tolerance[1]:
            continue
        is_duplicate = False
        for j in range(count):
            difference = 0.0
            for i in range(n):
                difference = max(difference, abs(out[j, i] - q[i]))
            is_duplicate = is_duplicate or difference < 1e-4
        if is_duplicate:
            continue
        for i in range(n):
            out[count, i] = q[i]
        count += 1
        if count == max_solutions:
            return count, s + 1
    return count, seeds.shape[0]


@kernel(examples=lambda: [(example_chain_arrays(), example_ik_target(), np.zeros((9, 1)), 2, 50, np.zeros(1))])
def find_nearest_feasible(
    chain: ChainArrays, target: IkTarget, samples: Array, n_starts: int, max_iterations: int, out: Array
) -> float:
    """The position whose tool comes nearest to a goal, by the weights of the wish.

    Of all samples those that are nearest already are refined; a sample close to one that was taken is left out, so that
    the starts lie in different valleys.

    Args:
        chain: The chain.
        target: The goal.
        samples: (s, n) within limits.
        n_starts: How many of them are refined.
        max_iterations: At most that many for each.
        out: (n,) is filled.

    Returns:
        Half the weighted square of the error.
    """
    n, count = chain.lower.shape[0], samples.shape[0]
    frames, T, error, q = (
        np.empty((chain.rotation_per_unit.shape[0] + 1, 4, 4)),
        np.empty((4, 4)),
        np.empty(6),
        np.empty(n),
    )
    costs = np.empty(count)
    for s in range(count):
        compute_pose_error_at(chain, target, samples[s], frames, T, error)
        costs[s] = weighted_cost(target, error)
    best, selected = np.inf, np.empty((n_starts, n))
    n_selected, order = 0, np.argsort(costs)
    for s in order:
        if n_selected == n_starts:
            break
        is_close = False
        for k in range(n_selected):
            difference = 0.0
            for i in range(n):
                difference = max(difference, abs(selected[k, i] - samples[s, i]))
            is_close = is_close or difference < 0.4
        if is_close:
            continue
        for i in range(n):
            selected[n_selected, i] = q[i] = samples[s, i]
        n_selected += 1
        cost = damped_least_squares(chain, target, q, max_iterations, 1e-24)
        if cost < best:
            best = cost
            for i in range(n):
                out[i] = q[i]
    return best
