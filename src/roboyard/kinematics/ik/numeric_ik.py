"""Kernels: numerical inverse kinematics by damped least squares within joint limits, from many start positions.

Levenberg-Marquardt steps. A joint at a limit whose step would leave it is fixed for that step (projected Newton method,
Bertsekas 1982), so the result is a minimum within the limits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.compute.array_kernels import solve_spd_in_place
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain_kernels import (
    ChainArrays,
    compute_frames,
    compute_jacobian,
    example_chain_arrays,
    multiply_transforms,
)


class IkTarget(NamedTuple):
    """Goal of inverse kinematics.

    Attributes:
        T: (4, 4) goal pose in the base. For a pointing goal only the position and the third column count.
        free_axis: (3,) direction in the tool frame that must point along that column; zero if the complete rotation
            counts.
        weights: (2,) weights of position error [1/m] and orientation error [1/rad].
    """

    T: Array
    free_axis: Array
    weights: Array


def example_ik_target() -> IkTarget:
    """Return an example argument for kernels."""
    return IkTarget(np.eye(4), np.zeros(3), np.ones(2))


@kernel(examples=lambda: [(example_ik_target(), np.eye(4), np.zeros(6))])
def compute_pose_error(target: IkTarget, T: Array, out: Array) -> None:
    """Compute the unweighted pose error in base axes: position [m], then rotation vector [rad].

    Args:
        target: The goal.
        T: (4, 4) pose of the tool.
        out: (6,) result.
    """
    G, d = target.T, target.free_axis
    for i in range(3):
        out[i] = G[i, 3] - T[i, 3]
    if d[0] != 0.0 or d[1] != 0.0 or d[2] != 0.0:
        x = T[0, 0] * d[0] + T[0, 1] * d[1] + T[0, 2] * d[2]
        y = T[1, 0] * d[0] + T[1, 1] * d[1] + T[1, 2] * d[2]
        z = T[2, 0] * d[0] + T[2, 1] * d[1] + T[2, 2] * d[2]
        rx, ry, rz = y * G[2, 2] - z * G[1, 2], z * G[0, 2] - x * G[2, 2], x * G[1, 2] - y * G[0, 2]
        sine, cosine = math.sqrt(rx * rx + ry * ry + rz * rz), x * G[0, 2] + y * G[1, 2] + z * G[2, 2]
        if sine < 1e-12 and cosine < 0.0:  # opposite direction: any perpendicular axis is valid
            rx, ry, rz = (0.0, z, -y) if abs(x) < 0.9 else (-z, 0.0, x)
            sine = math.sqrt(rx * rx + ry * ry + rz * rz)
            scale = math.pi / sine
        else:
            scale = math.atan2(sine, cosine) / sine if sine > 1e-12 else 1.0
        out[3], out[4], out[5] = rx * scale, ry * scale, rz * scale
        return
    # rotation vector of G T^T from its skew part; beyond 2.8 rad from the symmetric part, which is exact there
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


@kernel(inline="always", examples=lambda: [(example_ik_target(), np.zeros(6))])
def weighted_cost(target: IkTarget, error: Array) -> float:
    """Return half the weighted squared error."""
    squared_distance = error[0] ** 2 + error[1] ** 2 + error[2] ** 2
    squared_angle = error[3] ** 2 + error[4] ** 2 + error[5] ** 2
    cost: float = 0.5 * (target.weights[0] ** 2 * squared_distance + target.weights[1] ** 2 * squared_angle)
    return cost


@kernel(examples=lambda: [(example_chain_arrays(), example_ik_target(), np.zeros(1), 10, 1e-12)])
def damped_least_squares(
    chain: ChainArrays, target: IkTarget, q: Array, max_iterations: int, cost_tolerance: float
) -> float:
    """Minimize the weighted error from a start position within joint limits (Levenberg-Marquardt).

    Args:
        chain: The chain.
        target: The goal.
        q: (n,) start position within limits; overwritten with the result.
        max_iterations: Maximum number of iterations.
        cost_tolerance: Cost at which the search may stop.

    Returns:
        The cost: half the weighted squared error.
    """
    n, m = chain.lower.shape[0], chain.rotation_per_unit.shape[0]
    frames, T = np.empty((m + 1, 4, 4)), np.empty((4, 4))
    J, error, candidate = np.empty((6, n)), np.empty(6), np.empty(n)
    H, G, g, step = np.empty((n, n)), np.empty((n, n)), np.empty(n), np.empty(n)
    free = np.ones(n, dtype=np.bool_)
    compute_frames(chain, q, frames)
    multiply_transforms(frames[m], chain.T_tip, T)
    compute_pose_error(target, T, error)
    cost = weighted_cost(target, error)
    damping = 1e-3
    is_accepted = True
    for _ in range(max_iterations):
        if cost <= cost_tolerance:
            break
        if is_accepted:
            compute_jacobian(chain, frames, T[:3, 3], J)
            for i in range(n):
                g[i] = 0.0
                for r in range(6):
                    weight = target.weights[0] if r < 3 else target.weights[1]
                    J[r, i] *= weight
                    g[i] += J[r, i] * weight * error[r]
            if target.free_axis[0] != 0.0 or target.free_axis[1] != 0.0 or target.free_axis[2] != 0.0:
                _project_out_roll(target, T, J)
            for i in range(n):
                for j in range(i + 1):
                    H[i, j] = 0.0
                    for r in range(6):
                        H[i, j] += J[r, i] * J[r, j]
                    H[j, i] = H[i, j]
        squared_gradient = 0.0
        for i in range(n):
            free[i] = not (q[i] <= chain.lower[i] and g[i] < 0.0) and not (q[i] >= chain.upper[i] and g[i] > 0.0)
            if free[i]:
                squared_gradient += g[i] * g[i]
        if squared_gradient < 1e-30:
            break
        for i in range(n):
            for j in range(n):
                G[i, j] = H[i, j] if free[i] and free[j] else 0.0
            G[i, i] += damping * (H[i, i] + 1e-9) if free[i] else 1.0
            step[i] = g[i] if free[i] else 0.0
        if not solve_spd_in_place(G, step, 0.0):
            damping *= 10.0
            is_accepted = False
            continue
        max_change = 0.0
        for i in range(n):
            candidate[i] = min(max(q[i] + step[i], chain.lower[i]), chain.upper[i])
            max_change = max(max_change, abs(candidate[i] - q[i]))
        compute_frames(chain, candidate, frames)
        multiply_transforms(frames[m], chain.T_tip, T)
        compute_pose_error(target, T, error)
        new_cost = weighted_cost(target, error)
        if new_cost < cost:
            decrease = cost - new_cost
            for i in range(n):
                q[i] = candidate[i]
            cost, damping, is_accepted = new_cost, max(damping * 0.1, 1e-12), True
            if decrease < 1e-10 * cost and max_change < 1e-7:
                break
        else:
            damping *= 8.0
            is_accepted = False
            if max_change < 1e-13 or damping > 1e10:
                break
    return cost


@kernel(examples=lambda: [(example_ik_target(), np.eye(4), np.zeros((6, 1)))])
def _project_out_roll(target: IkTarget, T: Array, J: Array) -> None:
    """Remove the rotation about the tool's own direction from the angular rows; it causes no error."""
    d = target.free_axis
    x = T[0, 0] * d[0] + T[0, 1] * d[1] + T[0, 2] * d[2]
    y = T[1, 0] * d[0] + T[1, 1] * d[1] + T[1, 2] * d[2]
    z = T[2, 0] * d[0] + T[2, 1] * d[1] + T[2, 2] * d[2]
    for i in range(J.shape[1]):
        along = x * J[3, i] + y * J[4, i] + z * J[5, i]
        J[3, i] -= along * x
        J[4, i] -= along * y
        J[5, i] -= along * z


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
    """Search for solutions from seeds, one after the other.

    Args:
        chain: The chain.
        target: The goal.
        tolerance: (2,) maximum position and orientation error [m, rad].
        seeds: (s, n) start positions within limits.
        max_solutions: Number of different solutions at which the search stops.
        max_iterations: Maximum number of iterations per seed.
        out: (max_solutions, n) result.

    Returns:
        Number of solutions, and number of seeds used.
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
def find_approximate_solution(
    chain: ChainArrays, target: IkTarget, samples: Array, n_starts: int, max_iterations: int, out: Array
) -> float:
    """Find the feasible joint positions whose tool pose is nearest to a goal, by the weights of the goal.

    The samples with the smallest errors are refined; a sample close to a selected one is skipped, so that the starts
    lie in different local minima.

    Args:
        chain: The chain.
        target: The goal.
        samples: (s, n) joint positions within limits.
        n_starts: Number of samples that are refined.
        max_iterations: Maximum number of iterations per start.
        out: (n,) result.

    Returns:
        Half the weighted squared error.
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


@kernel(
    examples=lambda: [
        (example_chain_arrays(), example_ik_target(), np.zeros(1), np.zeros((2, 4, 4)), np.eye(4), np.zeros(6))
    ]
)
def compute_pose_error_at(
    chain: ChainArrays, target: IkTarget, q: Array, frames: Array, T: Array, error: Array
) -> None:
    """Compute the pose error (6,) at joint positions; `frames` and `T` are working memory."""
    compute_frames(chain, q, frames)
    multiply_transforms(frames[chain.rotation_per_unit.shape[0]], chain.T_tip, T)
    compute_pose_error(target, T, error)
