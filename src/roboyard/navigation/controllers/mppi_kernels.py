"""Kernels of MPPI: rollouts of control sequences and the costs of the critics.

Positions are in the frame of the costmap window: metres from the corner of its cell (0, 0).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.planar_kernels import wrap_angle
from roboyard.navigation.controllers.costmap_window import CostmapWindowArrays, example_window_arrays, is_in_collision
from roboyard.navigation.costmap import INSCRIBED, LETHAL

Float32Array = NDArray[np.float32]
_SEARCH_POINTS = 10  # how many points of the path ahead of the nearest one may be nearer at the next look


def _example_batch() -> Float32Array:
    return np.zeros((2, 4), dtype=np.float32)


@kernel
def _clamped(value: np.float32, low: np.float32, high: np.float32) -> np.float32:
    return min(max(value, low), high)


@kernel(
    examples=lambda: [
        (
            _example_batch(),
            _example_batch(),
            _example_batch(),
            np.zeros((3, 4), dtype=np.float32),
            0,
            np.ones(3, dtype=np.float32),
            0.5,
            np.zeros(3),
            np.zeros(3),
            np.ones(6),
            0.05,
            _example_batch(),
            _example_batch(),
            _example_batch(),
        )
    ]
)
def integrate_rollouts(
    vx: Float32Array,
    vy: Float32Array,
    wz: Float32Array,
    control_sequence: Float32Array,
    first_random: int,
    standard_deviations: Float32Array,
    noise_correlation: float,
    pose: NDArray[np.float64],
    twist: NDArray[np.float64],
    limits: NDArray[np.float64],
    dt: float,
    xs: Float32Array,
    ys: Float32Array,
    yaws: Float32Array,
) -> None:
    """Drive variants of a plan.

    Args:
        vx: (batch, steps) normal numbers; afterwards what the base, within its limits, would really drive.  ``vy`` is
            used by bases that can go sideways only.
        vy: The same to the left.
        wz: The same turning.
        control_sequence: (3, steps) commands to vary.
        first_random: Rows before this one are commands already, and are driven as they are.
        standard_deviations: (3,) standard deviations of the variation.
        noise_correlation: Correlation of a step's variation with that of the step before.
        pose: x, y, theta now.
        twist: vx, vy, wz now.
        limits: Forward, backward, sideways, turn, acceleration, turn acceleration.
        dt: Of a step [s].
        xs: (batch, steps) result: where the base is after each step.
        ys: The same.
        yaws: The same, not wrapped.
    """
    batch, steps = vx.shape
    max_change, max_angular_change = np.float32(limits[4] * dt), np.float32(limits[5] * dt)
    max_forward, min_forward = np.float32(limits[0]), np.float32(-limits[1])
    max_lateral, max_angular = np.float32(limits[2]), np.float32(limits[3])
    step, half = np.float32(dt), np.float32(0.5)
    is_holonomic = limits[2] > 0.0
    correlation, innovation = (
        np.float32(noise_correlation),
        np.float32(math.sqrt(1.0 - noise_correlation * noise_correlation)),
    )
    for k in range(batch):
        x, y, yaw = np.float32(pose[0]), np.float32(pose[1]), np.float32(pose[2])
        v, u, w = np.float32(twist[0]), np.float32(twist[1]), np.float32(twist[2])
        is_random = k >= first_random
        nv, nu, nw = np.float32(0.0), np.float32(0.0), np.float32(0.0)
        if is_random:
            nv, nu, nw = vx[k, 0], vy[k, 0] if is_holonomic else nu, wz[k, 0]
        for t in range(steps):
            if is_random:
                nv = correlation * nv + innovation * vx[k, t]
                nw = correlation * nw + innovation * wz[k, t]
                target_v, target_w = (
                    control_sequence[0, t] + standard_deviations[0] * nv,
                    control_sequence[2, t] + standard_deviations[2] * nw,
                )
            else:
                target_v, target_w = vx[k, t], wz[k, t]
            if is_holonomic:
                if is_random:
                    nu = correlation * nu + innovation * vy[k, t]
                    target_u = control_sequence[1, t] + standard_deviations[1] * nu
                else:
                    target_u = vy[k, t]
                target_u = _clamped(target_u, -max_lateral, max_lateral)
                # limits hold in any direction: no base is faster when it drives askew
                excess = math.hypot(_clamped(target_v, min_forward, max_forward), target_u) / max(
                    max_forward, max_lateral
                )
                if excess > 1.0:
                    target_v, target_u = target_v / np.float32(excess), target_u / np.float32(excess)
                u = _clamped(target_u, u - max_change, u + max_change)
                vy[k, t] = u
            v = _clamped(_clamped(target_v, min_forward, max_forward), v - max_change, v + max_change)
            w = _clamped(_clamped(target_w, -max_angular, max_angular), w - max_angular_change, w + max_angular_change)
            vx[k, t], wz[k, t] = v, w
            mean_heading = yaw + half * w * step
            c, s = np.float32(math.cos(mean_heading)), np.float32(math.sin(mean_heading))
            yaw += w * step
            x += v * c * step
            y += v * s * step
            if is_holonomic:
                x -= u * s * step
                y += u * c * step
            xs[k, t], ys[k, t], yaws[k, t] = x, y, yaw


@kernel(
    examples=lambda: [
        (
            _example_batch(),
            _example_batch(),
            _example_batch(),
            np.zeros((2, 2)),
            False,
            1,
            np.zeros((3, 3)),
            np.zeros(3),
            np.zeros(3),
            np.ones(6),
            0.05,
        )
    ]
)
def write_pure_pursuit_controls(
    vx: Float32Array,
    vy: Float32Array,
    wz: Float32Array,
    pure_pursuit_samples: NDArray[np.float64],
    backward: bool,
    first_row: int,
    path: NDArray[np.float64],
    pose: NDArray[np.float64],
    twist: NDArray[np.float64],
    limits: NDArray[np.float64],
    dt: float,
) -> None:
    """Write commands of pure pursuit into some rows: good guesses, wherever the last plan has gone.

    Args:
        vx: (batch, steps) written, as are the next two.
        vy: See above.
        wz: See above.
        pure_pursuit_samples: (n, 2) how far the point to follow lies ahead [m], and the speed [m/s].
        backward: Whether to drive backward.
        first_row: Row of the first of them.
        path: (m, 3).
        pose: x, y, theta now.
        twist: vx, vy, wz now.
        limits: As in ``roll_out``.
        dt: Of a step [s].
    """
    steps = vx.shape[1]
    direction = -1.0 if backward else 1.0
    last = len(path) - 1
    for k in range(len(pure_pursuit_samples)):
        lookahead, speed = pure_pursuit_samples[k]
        x, y, yaw = pose
        v, u, w = twist[0], twist[1], twist[2]
        i = 0
        for t in range(steps):
            while i < last and math.hypot(path[i, 0] - x, path[i, 1] - y) < lookahead:
                i += 1
            dx, dy = path[i, 0] - x, path[i, 1] - y
            c, s = math.cos(yaw), math.sin(yaw)
            px, py = c * dx + s * dy, c * dy - s * dx
            square = max(px * px + py * py, 1e-6)
            bearing = math.atan2(py * direction, px * direction)
            target_u = 0.0
            if limits[2] > 0.0:  # it goes where the point lies, and need not look there
                target_speed = min(speed, math.sqrt(limits[4] * math.sqrt(square))) if i == last else speed
                target_v, target_u, target_w = (
                    target_speed * px / math.sqrt(square),
                    target_speed * py / math.sqrt(square),
                    0.0,
                )
            elif abs(bearing) > 0.9:
                target_v, target_w = 0.0, 3.0 * bearing
            else:
                curvature = 2.0 * py / square
                # so that it can turn as the circle wants, and stop at the path's end
                target_v = direction * min(speed, limits[3] / max(abs(curvature), 1e-6))
                if i == last:
                    target_v = direction * min(abs(target_v), math.sqrt(limits[4] * math.sqrt(square)))
                target_w = target_v * curvature
            v = min(max(min(max(target_v, -limits[1]), limits[0]), v - limits[4] * dt), v + limits[4] * dt)
            w = min(max(min(max(target_w, -limits[3]), limits[3]), w - limits[5] * dt), w + limits[5] * dt)
            u = min(max(min(max(target_u, -limits[2]), limits[2]), u - limits[4] * dt), u + limits[4] * dt)
            vx[first_row + k, t], vy[first_row + k, t], wz[first_row + k, t] = v, u, w
            mean_heading = yaw + 0.5 * w * dt
            x += (v * math.cos(mean_heading) - u * math.sin(mean_heading)) * dt
            y += (v * math.sin(mean_heading) + u * math.cos(mean_heading)) * dt
            yaw += w * dt


@kernel(
    examples=lambda: [
        (_example_batch(), _example_batch(), _example_batch(), example_window_arrays(), 2, np.ones(3), np.zeros(2))
    ]
)  # fmt: skip
def add_obstacle_costs(
    xs: Float32Array,
    ys: Float32Array,
    yaws: Float32Array,
    window: CostmapWindowArrays,
    stride: int,
    weights: NDArray[np.float64],
    costs: NDArray[np.float64],
) -> int:
    """Add what each rollout pays for obstacles.

    Costs of places are paid by the metre, as planners pay them: who stands still pays nothing, and gains nothing.

    Args:
        xs: (batch, steps), as are ``ys`` and ``yaws``.
        ys: See above.
        yaws: See above.
        window: What lies about the robot.
        stride: Every how many steps to look.
        weights: Of collision, of a metre at the highest cost [1/m], and of speed there [1/m].
        costs: (batch,) that are added to.

    Returns:
        Number of rollouts that touch nothing.
    """
    batch, steps = xs.shape
    cells, scale = window.cells, 1.0 / window.resolution
    rows, columns = cells.shape
    n_free = 0
    for k in range(batch):
        total = 0.0
        is_colliding = False
        px, py = window.start_pose[0], window.start_pose[1]
        for t in range(stride - 1, steps, stride):
            if is_in_collision(window, xs[k, t], ys[k, t], yaws[k, t], True):
                # the sooner it touches, the worse: then the best of bad rollouts is the one that brakes
                is_colliding = True
                costs[k] += weights[0] * (1.0 + (steps - t) / steps)
                break
            length = math.hypot(xs[k, t] - px, ys[k, t] - py)
            px, py = xs[k, t], ys[k, t]
            x, y = px * scale, py * scale
            if 0.0 <= x < columns and 0.0 <= y < rows:
                cost = cells[int(y), int(x)]
                if 0 < cost <= LETHAL:
                    fraction = min(cost / INSCRIBED, 1.0)
                    total += fraction * length * (weights[1] + weights[2] * fraction * length)
        if not is_colliding:
            n_free += 1
            costs[k] += total
    return n_free


@kernel(
    examples=lambda: [
        (
            _example_batch(),
            _example_batch(),
            _example_batch(),
            np.zeros((3, 3)),
            np.zeros(3),
            np.zeros(3, dtype=np.uint8),
            4,
            np.zeros(5),
            np.zeros(2),
        )
    ]
)
def add_path_costs(
    xs: Float32Array,
    ys: Float32Array,
    yaws: Float32Array,
    path: NDArray[np.float64],
    arc_lengths: NDArray[np.float64],
    is_blocked: NDArray[np.uint8],
    stride: int,
    weights: NDArray[np.float64],
    costs: NDArray[np.float64],
) -> None:
    """Add what each rollout pays for being off the path, and for what of it is left at its end.

    The place along the path only grows, and by steps of a few points, so that a path that comes near itself is not cut
    short.

    Args:
        xs: (batch, steps), as are ``ys`` and ``yaws``.
        ys: See above.
        yaws: See above.
        path: (n, 3) from where the base is on.
        arc_lengths: (n,) length of the path up to each point [m].
        is_blocked: (n,) whether an obstacle lies on the point; such need not be kept to.
        stride: Every how many steps to look.
        weights: Of the mean distance to the path [1/m], of the length that is left [1/m], of looking away from the path
            at the end [1/rad], of the mean distance to the path's end [1/m], of the difference to its heading there
            [1/rad]; the latter two in proportion to how near it is.
        costs: (batch,) that are added to.
    """
    batch, steps = xs.shape
    last = len(path) - 1
    gx, gy, heading = path[last, 0], path[last, 1], path[last, 2]
    for k in range(batch):
        total, to_goal, n_free, n_checked = 0.0, 0.0, 0, 0
        i = 0
        for t in range(stride - 1, steps, stride):
            x, y = xs[k, t], ys[k, t]
            best = (path[i, 0] - x) ** 2 + (path[i, 1] - y) ** 2
            j = i + 1
            search_end = min(i + _SEARCH_POINTS, last)
            while j <= search_end:
                square = (path[j, 0] - x) ** 2 + (path[j, 1] - y) ** 2
                if square <= best:
                    best, i = square, j
                    search_end = min(i + _SEARCH_POINTS, last)
                j += 1
            if is_blocked[i] == 0:
                total += math.sqrt(best)
                n_free += 1
            to_goal += math.hypot(gx - x, gy - y)
            n_checked += 1
        x, y, yaw = xs[k, steps - 1], ys[k, steps - 1], yaws[k, steps - 1]
        if n_free:
            costs[k] += weights[0] * total / n_free
        costs[k] += weights[1] * (arc_lengths[last] - arc_lengths[i])
        target_index = min(i + _SEARCH_POINTS, last)
        if weights[2] > 0.0 and target_index > i:
            target_heading = math.atan2(path[target_index, 1] - y, path[target_index, 0] - x)
            costs[k] += weights[2] * abs(wrap_angle(target_heading - yaw))
        if weights[3] > 0.0 and n_checked:
            costs[k] += weights[3] * to_goal / n_checked
        if weights[4] > 0.0:
            costs[k] += weights[4] * abs(wrap_angle(heading - yaw))


@kernel(
    examples=lambda: [
        (_example_batch(), _example_batch(), _example_batch(), False, np.zeros(3), np.zeros(3), 0.05, np.zeros(2))
    ]
)
def add_motion_costs(
    vx: Float32Array,
    vy: Float32Array,
    wz: Float32Array,
    is_holonomic: bool,
    weights: NDArray[np.float64],
    deadband_velocities: NDArray[np.float64],
    dt: float,
    costs: NDArray[np.float64],
) -> None:
    """Add what each rollout pays for how it drives.

    Args:
        vx: (batch, steps), as are the next two.
        vy: See above.
        wz: See above.
        is_holonomic: Whether ``vy`` is used.
        weights: Of driving backward [1/m] (negative: of driving forward), of turning [1/rad], and of velocities within
            the dead bands, by how much they fall short of them [1/m, 1/rad].
        deadband_velocities: (3,) of vx, vy, wz: the base does not answer to less.
        dt: Of a step [s].
        costs: (batch,) that are added to.
    """
    batch, steps = vx.shape
    zero = np.float32(0.0)
    sign = np.float32(-1.0 if weights[0] > 0.0 else 1.0)
    has_deadband = deadband_velocities.max() > 0.0
    deadband_v, deadband_u, deadband_w = (
        np.float32(deadband_velocities[0]),
        np.float32(deadband_velocities[1]),
        np.float32(deadband_velocities[2]),
    )
    for k in range(batch):
        wrong_direction, rotation = zero, zero
        for t in range(steps):
            wrong_direction += max(sign * vx[k, t], zero)
            rotation += abs(wz[k, t])
        costs[k] += (abs(weights[0]) * wrong_direction + weights[1] * rotation) * dt
        if has_deadband:
            shortfall = zero
            for t in range(steps):
                shortfall += max(deadband_v - abs(vx[k, t]), zero) + max(deadband_w - abs(wz[k, t]), zero)
                if is_holonomic:
                    shortfall += max(deadband_u - abs(vy[k, t]), zero)
            costs[k] += weights[2] * shortfall * dt
