"""Dynamic Window Approach (Fox, Burgard, Thrun 1997) and Trajectory Rollout (Gerkey, Konolige 2008).

Both simulate a grid of velocities, discard those that collide, and take the one with the lowest cost of its end: near
the path, near the local goal, away from obstacles.  They differ in the velocities that they sample: those that the base
reaches within one control period (dynamic window), or by the end of the simulation (rollout).

Positions in the kernels are in the frame of the costmap window: metres from the corner of its cell (0, 0).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import Config, parameter
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.navigation.controllers.controller import DEFAULT_CONTROL_PERIOD, GoalTolerance, MotionLimits
from roboyard.navigation.controllers.costmap_window import (
    IN_COLLISION,
    CostmapWindow,
    CostmapWindowArrays,
    example_window_arrays,
    is_in_collision,
)
from roboyard.navigation.controllers.path_follower import PathFollower, PathSegment
from roboyard.navigation.costmap import INSCRIBED, LETHAL
from roboyard.navigation.errors import NoSafeCommandError
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path
from roboyard.navigation.planners import grid_search
from roboyard.navigation.planners.cost_grid import TraversalGrid


@kernel(examples=lambda: [(np.zeros(3), np.ones(3), np.ones(3, dtype=np.int64))])
def velocity_grid(
    first: NDArray[np.float64], last: NDArray[np.float64], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return a grid (n, 3) of velocities between ``first`` (3,) and ``last`` (3,), zero included where it lies between.

    Args:
        first: Smallest vx, vy and wz.
        last: Largest vx, vy and wz.
        counts: (3,) number of samples of each.
    """
    axes = np.empty((3, counts.max() + 1))
    sizes = np.zeros(3, dtype=np.int64)
    for axis in range(3):
        steps = counts[axis] - 1
        for k in range(counts[axis]):
            value = last[axis] if k == steps else first[axis] + k * ((last[axis] - first[axis]) / steps)
            if k > 0 and axes[axis, sizes[axis] - 1] < 0.0 < value:
                axes[axis, sizes[axis]] = 0.0
                sizes[axis] += 1
            axes[axis, sizes[axis]] = value
            sizes[axis] += 1
    combined = np.empty((sizes[0] * sizes[1] * sizes[2], 3))
    n = 0
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            for k in range(sizes[2]):
                combined[n, 0], combined[n, 1], combined[n, 2] = axes[0, i], axes[1, j], axes[2, k]
                n += 1
    return combined


class VelocitySimulation(NamedTuple):
    """How the motion of a sampled velocity is simulated.

    Attributes:
        horizon: Duration of the simulation [s].
        max_acceleration: Largest change of vx and of vy [m/s²]; infinite: the sample is reached at once.
        max_angular_acceleration: Largest change of wz [rad/s²]; infinite with ``max_acceleration``.
        linear_granularity: Distance between two collision checks [m].
        angular_granularity: Rotation between two collision checks [rad].
    """

    horizon: float
    max_acceleration: float
    max_angular_acceleration: float
    linear_granularity: float
    angular_granularity: float


class DistanceFields(NamedTuple):
    """Distances from each cell around obstacles, (rows + 2, columns + 2) each [cells].

    Attributes:
        path: Distance to the path.
        goal: Distance to the end of the local path.
    """

    path: NDArray[np.float64]
    goal: NDArray[np.float64]


class DwaWeights(NamedTuple):
    """Weights of the terms that rate a simulated motion.

    Attributes:
        path: Distance of its end from the path [1/m].
        goal: Distance of its end from the end of the local path [1/m].
        forward_path: Distance of a point ahead of its end from the path [1/m].
        forward_goal: Distance of that point from the end of the local path [1/m].
        obstacle: Highest cost on its way, as a ratio to the cost of a collision.
        rotation: Angular speed [s/rad].
        forward_point_distance: Distance of the point ahead, negative behind [m].
    """

    path: float
    goal: float
    forward_path: float
    forward_goal: float
    obstacle: float
    rotation: float
    forward_point_distance: float


def _example_scoring() -> list[tuple[object, ...]]:
    return [
        (
            np.zeros((2, 3)),
            np.zeros(3),
            VelocitySimulation(1.7, 1.0, 1.0, 0.025, 0.1),
            example_window_arrays(),
            DistanceFields(np.zeros((7, 7)), np.zeros((7, 7))),
            DwaWeights(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.3),
        )
    ]


@kernel(examples=_example_scoring)
def score_velocities(
    samples: NDArray[np.float64],
    twist: NDArray[np.float64],
    simulation: VelocitySimulation,
    window: CostmapWindowArrays,
    fields: DistanceFields,
    weights: DwaWeights,
) -> NDArray[np.float64]:
    """Simulate the motion of each sampled velocity, and return its cost.

    Args:
        samples: (n, 3) velocities vx, vy [m/s] and wz [rad/s].
        twist: (3,) velocity of the robot.
        simulation: Duration, accelerations and resolution of the simulation.
        window: Costmap around the robot.
        fields: Distances to the path and to its end.
        weights: Weights of the terms.

    Returns:
        Costs (n,), infinite for motions that collide.
    """
    path_field, goal_field = fields
    horizon, max_acceleration, max_angular_acceleration = simulation[:3]
    linear_granularity, angular_granularity = simulation.linear_granularity, simulation.angular_granularity
    forward_point_distance = weights.forward_point_distance
    costs = np.empty(len(samples))
    cells, scale = window.cells, 1.0 / window.resolution
    rows, columns = cells.shape
    for k in range(len(samples)):
        vx, vy, wz = samples[k]
        speed, angular_speed = math.hypot(vx, vy), abs(wz)
        if max_acceleration < np.inf:  # between the two velocities, the robot exceeds neither of them
            speed, angular_speed = max(speed, math.hypot(twist[0], twist[1])), max(angular_speed, abs(twist[2]))
        count = max(
            math.ceil(max(speed * horizon / linear_granularity, angular_speed * horizon / angular_granularity)), 1
        )
        dt = horizon / count
        x, y, theta = window.start_pose
        u, v, w = (twist[0], twist[1], twist[2])
        max_cost = 0
        is_colliding = False
        for _ in range(count):
            u = _step_toward(u, vx, max_acceleration * dt)
            v = _step_toward(v, vy, max_acceleration * dt)
            w = _step_toward(w, wz, max_angular_acceleration * dt)
            mean_heading = theta + 0.5 * w * dt
            c, s = math.cos(mean_heading), math.sin(mean_heading)
            x += (c * u - s * v) * dt
            y += (s * u + c * v) * dt
            theta += w * dt
            if is_in_collision(window, x, y, theta, True):
                is_colliding = True
                break
            if 0.0 <= x * scale < columns and 0.0 <= y * scale < rows:
                cost = int(cells[int(y * scale), int(x * scale)])
                if cost <= LETHAL:
                    max_cost = max(max_cost, cost)
        if is_colliding:
            costs[k] = np.inf
            continue
        c, s = math.cos(theta), math.sin(theta)
        nx, ny = x + c * forward_point_distance, y + s * forward_point_distance
        total = weights.path * _interpolate_field(path_field, x * scale, y * scale) / scale
        total += weights.goal * _interpolate_field(goal_field, x * scale, y * scale) / scale
        total += weights.forward_path * _interpolate_field(path_field, nx * scale, ny * scale) / scale
        total += weights.forward_goal * _interpolate_field(goal_field, nx * scale, ny * scale) / scale
        total += weights.obstacle * max_cost / INSCRIBED + weights.rotation * abs(wz)
        costs[k] = total
    return costs


@kernel
def _step_toward(value: float, target: float, change: float) -> float:
    return min(max(target, value - change), value + change)


@kernel
def _interpolate_field(field: NDArray[np.float64], x: float, y: float) -> float:
    """Interpolate a padded field between the four cells around a point; take the nearest cell if one is infinite."""
    rows, columns = field.shape
    fx, fy = min(max(x + 0.5, 0.0), columns - 1.001), min(max(y + 0.5, 0.0), rows - 1.001)
    c, r = np.int64(fx), np.int64(fy)
    a, b = fx - c, fy - r
    value = (1.0 - b) * ((1.0 - a) * field[r, c] + a * field[r, c + 1])
    value += b * ((1.0 - a) * field[r + 1, c] + a * field[r + 1, c + 1])
    if value < np.inf:
        return float(value)
    nearest = field[np.int64(fy + 0.5), np.int64(fx + 0.5)]
    # a point that cannot be reached costs more than any other, and yet a finite number, so that sums stay comparable
    return float(nearest) if nearest < np.inf else float(rows * columns)


class DwaConfig(Config):
    """Samples and weights; the names follow dwa_local_planner."""

    n_samples: tuple[int, int, int] = parameter(
        (20, 1, 20),
        low=1,
        high=1000,
        aliases=(
            "vx_samples",
            "vy_samples",
            "vtheta_samples",
        ),
        doc="Numbers of samples of vx, vy and wz.",
    )
    horizon: float = parameter(
        1.7, unit="s", low=1e-3, high=1e3, aliases=("sim_time",), doc="Duration of the simulation."
    )
    rollout: bool = parameter(
        False,
        doc="Sample the velocities reached within the horizon (Trajectory Rollout), not within one period.",
    )
    linear_granularity: float = parameter(
        0.05, unit="m", low=1e-3, high=1e3, aliases=("linear_granularity",), doc="Distance between collision checks."
    )
    angular_granularity: float = parameter(
        0.1, unit="rad", low=1e-3, high=1e3, aliases=("angular_granularity",), doc="Rotation between collision checks."
    )
    path_distance_weight: float = parameter(
        32.0,
        unit="1/m",
        aliases=("PathDist.scale",),
        doc="Weight of the distance between the end of the motion and the path.",
    )
    goal_distance_weight: float = parameter(
        24.0,
        unit="1/m",
        aliases=("GoalDist.scale",),
        doc="Weight of the distance between the end of the motion and the local goal.",
    )
    forward_point_weight: float = parameter(
        0.5,
        aliases=(
            "PathAlign.scale",
            "GoalAlign.scale",
        ),
        doc="Weight of the same distances for a point ahead of the robot, which turns it along the path.",
    )
    forward_point_distance: float = parameter(
        0.325, unit="m", aliases=("PathAlign.forward_point_distance",), doc="Distance of that point ahead of the robot."
    )
    obstacle_weight: float = parameter(
        8.0, aliases=("BaseObstacle.scale",), doc="Weight of the highest cost met, as a ratio to an obstacle's."
    )
    rotation_weight: float = parameter(
        0.0, unit="s/rad", aliases=("Twirling.scale",), doc="Weight of the angular speed."
    )
    min_speed: float = parameter(
        0.1, unit="m/s", aliases=("min_speed_xy",), doc="Speed below which a sample that does not turn is discarded."
    )
    min_angular_speed: float = parameter(
        0.1,
        unit="rad/s",
        aliases=("min_speed_theta",),
        doc="Angular speed below which a sample that does not drive is discarded.",
    )
    lookahead_distance: float = parameter(
        2.0,
        unit="m",
        low=1e-3,
        high=1e3,
        doc="Distance along the path to the local goal; farther if the simulation leads farther.",
    )


class DwaController(PathFollower):
    """Dynamic Window Approach, or Trajectory Rollout if the configuration says so.

    Args:
        footprint: Footprint of the robot.
        limits: Motion limits of its base.
        config: Samples and weights.
        tolerance: Tolerance of the goal.
        period: Time between two commands [s].
    """

    _MAX_BLOCKED_CYCLES = 10  # cycles without a free motion until the controller gives up

    def __init__(
        self,
        footprint: Footprint,
        limits: MotionLimits,
        config: DwaConfig | None = None,
        tolerance: GoalTolerance | None = None,
        *,
        period: float = DEFAULT_CONTROL_PERIOD,
    ) -> None:
        config, tolerance = config or DwaConfig(), tolerance or GoalTolerance()
        expect_kernels(score_velocities, velocity_grid)
        self._max_distance = (
            max(limits.max_forward_speed, limits.max_backward_speed, limits.max_lateral_speed) * config.horizon
            + config.forward_point_distance
        )
        super().__init__(footprint, limits, period, max(config.lookahead_distance, self._max_distance), tolerance)
        self._config = config
        self._blocked_index, self._blocked_cycles = 0, 0

    def set_path(self, path: Path) -> None:
        """Set the path to follow."""
        super().set_path(path)
        self._blocked_index, self._blocked_cycles = 0, 0

    def save_state(self) -> dict[str, Any]:
        """Return the state of the path follower and the count of blocked cycles."""
        return super().save_state() | {"blocked_index": self._blocked_index, "blocked_cycles": self._blocked_cycles}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(saved)
        self._blocked_index, self._blocked_cycles = saved["blocked_index"], saved["blocked_cycles"]

    def _compute_target_velocity(
        self, window: CostmapWindow, segment: PathSegment, twist: PlanarTwist, limits: MotionLimits
    ) -> PlanarTwist:
        config = self._config
        path, remaining = _next_part(segment.poses[:, :2], self._window_radius)
        # the simulation ends at the end of the path, so that an obstacle beyond it does not keep the robot from it
        remaining = max(remaining, self._CUSP_TOLERANCE)
        limits = limits.with_max_speed(max(math.sqrt(limits.max_acceleration * remaining), config.min_speed))
        horizon = min(config.horizon, remaining / max(math.hypot(twist.vx, twist.vy), config.min_speed))
        samples = self._sample_velocities(twist, limits)
        # near the goal the point ahead would lie beyond it, and hold the robot back
        forward_point_weight = config.forward_point_weight if remaining > 2.0 * config.forward_point_distance else 0.0
        weights = DwaWeights(
            config.path_distance_weight,
            config.goal_distance_weight,
            config.path_distance_weight * forward_point_weight,
            config.goal_distance_weight * forward_point_weight,
            config.obstacle_weight,
            config.rotation_weight,
            -config.forward_point_distance if segment.backward else config.forward_point_distance,
        )
        simulation = VelocitySimulation(
            horizon,
            limits.max_acceleration if config.rollout else math.inf,
            limits.max_angular_acceleration if config.rollout else math.inf,
            config.linear_granularity,
            config.angular_granularity,
        )
        fields = _distance_fields(window, path, self._max_distance)
        costs = score_velocities(samples, np.array(twist, dtype=np.float64), simulation, window.arrays, fields, weights)
        costs[self._is_nearly_standing(samples, limits)] = np.inf
        braking = PlanarTwist(limits.max_acceleration, limits.max_acceleration, limits.max_angular_acceleration)
        for k in np.argsort(costs, kind="stable"):
            command = PlanarTwist(*(float(value) for value in samples[k]))
            if not math.isfinite(costs[k]):
                break
            if window.can_stop_safely(command, braking, self._period):  # a finer check than that of the simulation
                return command
        if self._path_index > self._blocked_index:
            self._blocked_index, self._blocked_cycles = self._path_index, 0
        self._blocked_cycles += 1
        is_moving = math.hypot(twist.vx, twist.vy) > 0.02 or abs(twist.wz) > 0.05
        if is_moving and self._blocked_cycles <= self._MAX_BLOCKED_CYCLES:
            return ZERO_TWIST  # a standing robot can turn either way
        self._blocked_cycles = 0
        raise NoSafeCommandError(
            "every velocity that the base can reach leads to a collision", valid="stop, then recover"
        )

    def _is_nearly_standing(self, samples: NDArray[np.float64], limits: MotionLimits) -> NDArray[np.bool_]:
        """Return for each sample (n,) whether the robot hardly moves with it.

        Such samples would cost least near obstacles, and the robot would stand still.
        """
        config, span = self._config, self._sampling_time
        # within one period the base may reach less than the smallest speeds: then what it reaches must do
        min_speed = min(config.min_speed, 0.5 * limits.max_forward_speed, limits.max_acceleration * span)
        min_angular_speed = min(
            config.min_angular_speed, 0.5 * limits.max_angular_speed, limits.max_angular_acceleration * span
        )
        is_slow = np.hypot(samples[:, 0], samples[:, 1]) < min_speed
        return np.asarray(is_slow & (np.abs(samples[:, 2]) < min_angular_speed))

    @property
    def _sampling_time(self) -> float:
        """Time within which the base reaches the sampled velocities [s]."""
        return self._config.horizon if self._config.rollout else self._period

    def _sample_velocities(self, twist: PlanarTwist, limits: MotionLimits) -> NDArray[np.float64]:
        """Return velocities (n, 3) that the base can reach, zero among them if it can stop."""
        config, span = self._config, self._sampling_time
        ramp = (limits.max_acceleration, limits.max_acceleration, limits.max_angular_acceleration)
        lows = (-limits.max_backward_speed, -limits.max_lateral_speed, -limits.max_angular_speed)
        highs = (limits.max_forward_speed, limits.max_lateral_speed, limits.max_angular_speed)
        first, last = np.empty(3), np.empty(3)
        for k, count in enumerate(config.n_samples):
            change = ramp[k] * span if count > 1 else 0.0
            first[k] = min(max(twist[k] - change, lows[k]), highs[k])
            last[k] = max(min(twist[k] + change, highs[k]), lows[k])
        return velocity_grid(first, last, np.array(config.n_samples))


def _next_part(path: NDArray[np.float64], length: float) -> tuple[NDArray[np.float64], float]:
    """Return the first part of the path, ``length`` [m] long, and the length of the whole path [m]."""
    arc_lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    return path[: int(np.searchsorted(arc_lengths, length, side="right"))], float(arc_lengths[-1])


def _distance_fields(window: CostmapWindow, path: NDArray[np.float64], max_distance: float) -> DistanceFields:
    """Compute the distances to the path and to its last free point, around obstacles [cells].

    They are infinite where the robot, which moves at most ``max_distance`` [m], cannot get.
    """
    arrays, scale = window.arrays, 1.0 / window.arrays.resolution
    is_free = arrays.proximity != IN_COLLISION
    grid = TraversalGrid.with_border(
        is_free.astype(np.uint8), np.eye(1, 256, 1, dtype=np.float32)[0]
    )  # 1 is free, and costs 1
    cells = np.floor(path[:, ::-1] * scale).astype(np.int64)
    cells = cells[((cells >= 0) & (cells < np.array(is_free.shape))).all(axis=1)]
    path_indices = (cells[:, 0] + 1) * grid.cells.shape[1] + cells[:, 1] + 1
    free_path_indices = path_indices[is_free[cells[:, 0], cells[:, 1]]]
    row, column = math.floor(arrays.start_pose[1] * scale), math.floor(arrays.start_pose[0] * scale)
    is_on_map = 0 <= row < is_free.shape[0] and 0 <= column < is_free.shape[1]
    start = grid.flat_index((row, column)) if is_on_map else -1
    # a path over eight neighbors is longer than a straight line: by a ratio, and by the cells at its ends
    cost_margin = math.hypot(1.0, math.sqrt(2.0) - 1.0) * max_distance * scale + 4.0
    fields = []
    for sources in (np.unique(path_indices), free_path_indices[-1:] if len(free_path_indices) else path_indices[-1:]):
        costs = np.full(grid.cells.size, np.inf)
        grid_search.search_grid(grid, costs, sources, start, cost_margin, False)
        fields.append(costs.reshape(grid.cells.shape))
    return DistanceFields(fields[0], fields[1])
