"""Kernels of MPPI: rollouts of control sequences and the costs of the critics.

Positions are in the frame of the costmap window: metres from the corner of its cell (0, 0).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.planar_kernels import wrap_angle
from roboyard.navigation.controllers.costmap_window import CostmapWindowArrays, example_window_arrays, is_in_collision
from roboyard.navigation.costmap import INSCRIBED, LETHAL

Float32Array = NDArray[np.float32]
_SEARCH_POINTS = 10  # how many points of the path ahead of the nearest one are compared with it in each search


class VelocitySequences(NamedTuple):
    """Velocities of each rollout in the base frame, (batch, steps) each.

    Attributes:
        vx: Velocity forward [m/s].
        vy: Velocity to the left [m/s]; only holonomic bases use it.
        wz: Angular velocity to the left [rad/s].
    """

    vx: Float32Array
    vy: Float32Array
    wz: Float32Array


class RolloutPoses(NamedTuple):
    """Poses of the base after each step of each rollout, (batch, steps) each, in the frame of the costmap window.

    Attributes:
        xs: Positions along x [m].
        ys: Positions along y [m].
        yaws: Headings, not wrapped [rad].
    """

    xs: Float32Array
    ys: Float32Array
    yaws: Float32Array


class BaseState(NamedTuple):
    """Pose and velocity of the base at the start of all rollouts.

    Attributes:
        pose: (3,) x, y [m] and heading [rad] in the frame of the costmap window.
        twist: (3,) vx, vy [m/s] and wz [rad/s].
    """

    pose: NDArray[np.float64]
    twist: NDArray[np.float64]


class MotionModel(NamedTuple):
    """Limits that hold for every step of a rollout, and its duration.

    Attributes:
        max_forward_speed: Largest speed forward [m/s].
        max_backward_speed: Largest speed backward, as a positive number [m/s].
        max_lateral_speed: Largest speed to either side [m/s]; 0: the base is not holonomic.
        max_angular_speed: Largest angular speed [rad/s].
        max_acceleration: Largest change of vx and of vy [m/s²].
        max_angular_acceleration: Largest change of wz [rad/s²].
        dt: Duration of a step [s].
    """

    max_forward_speed: float
    max_backward_speed: float
    max_lateral_speed: float
    max_angular_speed: float
    max_acceleration: float
    max_angular_acceleration: float
    dt: float


class ControlNoise(NamedTuple):
    """How rollouts vary the last control sequence.

    Attributes:
        control_sequence: (3, steps) velocities vx, vy, wz that are varied.
        standard_deviations: (3,) standard deviations of the variation of vx, vy and wz.
        correlation: Correlation of a step's variation with that of the step before.
        first_random: Index of the first rollout that is varied; the ones before it hold velocities already.
    """

    control_sequence: Float32Array
    standard_deviations: Float32Array
    correlation: float
    first_random: int


class ReferencePath(NamedTuple):
    """The part of the path that rollouts can reach.

    Attributes:
        poses: (n, 3) x, y [m] and heading [rad] in the frame of the costmap window; the first is next to the base.
        arc_lengths: (n,) length of the path up to each pose [m].
        is_blocked: (n,) 1 where the center of the base cannot be.
    """

    poses: NDArray[np.float64]
    arc_lengths: NDArray[np.float64]
    is_blocked: NDArray[np.uint8]


class ObstacleWeights(NamedTuple):
    """Weights of the critics of obstacles.

    Attributes:
        collision: Cost of a collision.
        cost: Cost of a distance on the most costly free cell [1/m].
        speed: Cost of speed there [1/m²].
    """

    collision: float
    cost: float
    speed: float


class PathWeights(NamedTuple):
    """Weights of the critics of the path.

    Attributes:
        align: Cost of the mean distance from the path [1/m].
        follow: Cost of the length of the path that remains at the end [1/m].
        angle: Cost of a heading at the end that does not point along the path [1/rad].
        goal: Cost of the mean distance from the end of the path [1/m].
        goal_angle: Cost of the heading error with respect to the end of the path [1/rad].
    """

    align: float
    follow: float
    angle: float
    goal: float
    goal_angle: float


class MotionWeights(NamedTuple):
    """Weights of the critics of the velocities.

    Attributes:
        direction: Cost of a distance driven backward; of one driven forward if the weight is negative [1/m].
        twirling: Cost of rotation [1/rad].
        deadband: Cost of velocities within the dead bands, per shortfall and time [1/m, 1/rad].
    """

    direction: float
    twirling: float
    deadband: float


def _example_batch() -> Float32Array:
    return np.zeros((2, 4), dtype=np.float32)


def _example_velocities() -> VelocitySequences:
    return VelocitySequences(_example_batch(), _example_batch(), _example_batch())


def _example_poses() -> RolloutPoses:
    return RolloutPoses(_example_batch(), _example_batch(), _example_batch())


def _example_state() -> BaseState:
    return BaseState(np.zeros(3), np.zeros(3))


def _example_model() -> MotionModel:
    return MotionModel(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.05)


def _example_noise() -> ControlNoise:
    return ControlNoise(np.zeros((3, 4), dtype=np.float32), np.ones(3, dtype=np.float32), 0.5, 0)


@kernel
def _clamped(value: np.float32, low: np.float32, high: np.float32) -> np.float32:
    return min(max(value, low), high)


@kernel(
    examples=lambda: [(_example_velocities(), _example_noise(), _example_state(), _example_model(), _example_poses())]
)
def integrate_rollouts(
    velocities: VelocitySequences, noise: ControlNoise, state: BaseState, model: MotionModel, poses: RolloutPoses
) -> None:
    """Integrate the velocities of all rollouts within the limits of the base.

    Args:
        velocities: Standard normal numbers of the varied rollouts, and velocities of the others; the function replaces
            them by the velocities that the base reaches.
        noise: The variation.
        state: Pose and velocity at the start.
        model: Limits and duration of a step.
        poses: Result: the poses after each step.
    """
    vx, vy, wz = velocities
    xs, ys, yaws = poses
    pose, twist = state
    control_sequence, standard_deviations = noise.control_sequence, noise.standard_deviations
    first_random, noise_correlation, dt = noise.first_random, noise.correlation, model.dt
    batch, steps = vx.shape
    max_change, max_angular_change = (
        np.float32(model.max_acceleration * dt),
        np.float32(model.max_angular_acceleration * dt),
    )
    max_forward, min_forward = np.float32(model.max_forward_speed), np.float32(-model.max_backward_speed)
    max_lateral, max_angular = np.float32(model.max_lateral_speed), np.float32(model.max_angular_speed)
    step, half = np.float32(dt), np.float32(0.5)
    is_holonomic = model.max_lateral_speed > 0.0
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
                # the speed limit holds in every direction: a base is no faster when it drives diagonally
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
        (_example_velocities(), np.zeros((2, 2)), False, 1, np.zeros((3, 3)), _example_state(), _example_model())
    ]
)
def write_pure_pursuit_controls(
    velocities: VelocitySequences,
    samples: NDArray[np.float64],
    backward: bool,
    first_row: int,
    path: NDArray[np.float64],
    state: BaseState,
    model: MotionModel,
) -> None:
    """Write the velocities of pure pursuit into some rollouts, so that they follow the path from any state.

    Args:
        velocities: The rollouts; the function writes one for each sample.
        samples: (n, 2) lookahead distance [m] and speed [m/s].
        backward: Whether the base drives backward.
        first_row: Index of the rollout of the first sample.
        path: (m, 3) poses of the path in the frame of the costmap window.
        state: Pose and velocity at the start.
        model: Limits and duration of a step.
    """
    vx, vy, wz = velocities
    pose, twist = state
    dt = model.dt
    max_change, max_angular_change = model.max_acceleration * dt, model.max_angular_acceleration * dt
    steps = vx.shape[1]
    direction = -1.0 if backward else 1.0
    last = len(path) - 1
    for k in range(len(samples)):
        lookahead, speed = samples[k]
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
            if model.max_lateral_speed > 0.0:  # a holonomic base drives to the point without rotating
                target_speed = min(speed, math.sqrt(model.max_acceleration * math.sqrt(square))) if i == last else speed
                target_v, target_u, target_w = (
                    target_speed * px / math.sqrt(square),
                    target_speed * py / math.sqrt(square),
                    0.0,
                )
            elif abs(bearing) > 0.9:
                target_v, target_w = 0.0, 3.0 * bearing
            else:
                curvature = 2.0 * py / square
                # the base must be able to follow the circle, and to stop at the end of the path
                target_v = direction * min(speed, model.max_angular_speed / max(abs(curvature), 1e-6))
                if i == last:
                    target_v = direction * min(abs(target_v), math.sqrt(model.max_acceleration * math.sqrt(square)))
                target_w = target_v * curvature
            v = min(
                max(min(max(target_v, -model.max_backward_speed), model.max_forward_speed), v - max_change),
                v + max_change,
            )
            w = min(
                max(min(max(target_w, -model.max_angular_speed), model.max_angular_speed), w - max_angular_change),
                w + max_angular_change,
            )
            u = min(
                max(min(max(target_u, -model.max_lateral_speed), model.max_lateral_speed), u - max_change),
                u + max_change,
            )
            vx[first_row + k, t], vy[first_row + k, t], wz[first_row + k, t] = v, u, w
            mean_heading = yaw + 0.5 * w * dt
            x += (v * math.cos(mean_heading) - u * math.sin(mean_heading)) * dt
            y += (v * math.sin(mean_heading) + u * math.cos(mean_heading)) * dt
            yaw += w * dt


@kernel(examples=lambda: [(_example_poses(), example_window_arrays(), 2, ObstacleWeights(1.0, 1.0, 1.0), np.zeros(2))])
def add_obstacle_costs(
    poses: RolloutPoses,
    window: CostmapWindowArrays,
    stride: int,
    weights: ObstacleWeights,
    costs: NDArray[np.float64],
) -> int:
    """Add the costs of obstacles to those of each rollout.

    Costs of cells count per distance, as for planners, so that a base that stands still among obstacles neither pays
    nor gains.

    Args:
        poses: Poses of the rollouts.
        window: Costmap around the robot.
        stride: Number of steps between two checks.
        weights: Weights of the critics.
        costs: (batch,) costs of the rollouts; the function adds to them.

    Returns:
        Number of rollouts without a collision.
    """
    xs, ys, yaws = poses
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
                # earlier collisions cost more, so that the best of all colliding rollouts is the one that brakes
                is_colliding = True
                costs[k] += weights.collision * (1.0 + (steps - t) / steps)
                break
            length = math.hypot(xs[k, t] - px, ys[k, t] - py)
            px, py = xs[k, t], ys[k, t]
            x, y = px * scale, py * scale
            if 0.0 <= x < columns and 0.0 <= y < rows:
                cost = cells[int(y), int(x)]
                if 0 < cost <= LETHAL:
                    fraction = min(cost / INSCRIBED, 1.0)
                    total += fraction * length * (weights.cost + weights.speed * fraction * length)
        if not is_colliding:
            n_free += 1
            costs[k] += total
    return n_free


@kernel(
    examples=lambda: [
        (
            _example_poses(),
            ReferencePath(np.zeros((3, 3)), np.zeros(3), np.zeros(3, dtype=np.uint8)),
            4,
            PathWeights(1.0, 1.0, 1.0, 1.0, 1.0),
            np.zeros(2),
        )
    ]
)
def add_path_costs(
    poses: RolloutPoses, reference: ReferencePath, stride: int, weights: PathWeights, costs: NDArray[np.float64]
) -> None:
    """Add the costs of the distance from the path, and of the rest of the path, to those of each rollout.

    The index of the nearest point of the path only grows, and by a few points at once, so that a rollout cannot skip a
    part of a path that comes close to itself.

    Args:
        poses: Poses of the rollouts.
        reference: The path.
        stride: Number of steps between two comparisons with the path.
        weights: Weights of the critics.
        costs: (batch,) costs of the rollouts; the function adds to them.
    """
    xs, ys, yaws = poses
    path, arc_lengths, is_blocked = reference
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
            costs[k] += weights.align * total / n_free
        costs[k] += weights.follow * (arc_lengths[last] - arc_lengths[i])
        target_index = min(i + _SEARCH_POINTS, last)
        if weights.angle > 0.0 and target_index > i:
            target_heading = math.atan2(path[target_index, 1] - y, path[target_index, 0] - x)
            costs[k] += weights.angle * abs(wrap_angle(target_heading - yaw))
        if weights.goal > 0.0 and n_checked:
            costs[k] += weights.goal * to_goal / n_checked
        if weights.goal_angle > 0.0:
            costs[k] += weights.goal_angle * abs(wrap_angle(heading - yaw))


@kernel(examples=lambda: [(_example_velocities(), False, MotionWeights(1.0, 1.0, 1.0), np.zeros(3), 0.05, np.zeros(2))])
def add_motion_costs(
    velocities: VelocitySequences,
    is_holonomic: bool,
    weights: MotionWeights,
    deadband_velocities: NDArray[np.float64],
    dt: float,
    costs: NDArray[np.float64],
) -> None:
    """Add the costs of the velocities to those of each rollout.

    Args:
        velocities: Velocities of the rollouts.
        is_holonomic: Whether ``vy`` is used.
        weights: Weights of the critics.
        deadband_velocities: (3,) smallest vx, vy and wz that the base follows.
        dt: Duration of a step [s].
        costs: (batch,) costs of the rollouts; the function adds to them.
    """
    vx, vy, wz = velocities
    batch, steps = vx.shape
    zero = np.float32(0.0)
    sign = np.float32(-1.0 if weights.direction > 0.0 else 1.0)
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
        costs[k] += (abs(weights.direction) * wrong_direction + weights.twirling * rotation) * dt
        if has_deadband:
            shortfall = zero
            for t in range(steps):
                shortfall += max(deadband_v - abs(vx[k, t]), zero) + max(deadband_w - abs(wz[k, t]), zero)
                if is_holonomic:
                    shortfall += max(deadband_u - abs(vy[k, t]), zero)
            costs[k] += weights.deadband * shortfall * dt
