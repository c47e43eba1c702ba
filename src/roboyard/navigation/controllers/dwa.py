"""Dynamic Window Approach (Fox, Burgard, Thrun 1997) and Trajectory Rollout (Gerkey, Konolige 2008).

Both simulate a grid of velocities, discard those that collide, and take the one with the lowest cost of its end: near
the path, near the local goal, away from obstacles.  They differ in the velocities that they sample: those that the base
reaches within one control period (dynamic window), or by the end of the simulation (rollout).

Positions in the kernels are in the frame of the costmap window: metres from the corner of its cell (0, 0).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import Config, parameter
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import ConfigError
from roboyard.navigation.controllers.controller import GoalTolerance, MotionLimits
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
    """(n, 3) all combinations of evenly spaced numbers from ``first`` to ``last``, and of zero where it is between."""
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


@kernel(
    examples=lambda: [
        (np.zeros((2, 3)), np.zeros(3), np.zeros(3), 1.7, 0.025, 0.1, example_window_arrays(), np.zeros((7, 7)),
         np.zeros((7, 7)), np.ones(6), 0.3, np.zeros(2))
    ]
)  # fmt: skip
def score_velocities(
    samples: NDArray[np.float64],
    twist: NDArray[np.float64],
    acceleration: NDArray[np.float64],
    horizon: float,
    linear_granularity: float,
    angular_granularity: float,
    window: CostmapWindowArrays,
    path_field: NDArray[np.float64],
    goal_field: NDArray[np.float64],
    weights: NDArray[np.float64],
    forward_point_distance: float,
    costs: NDArray[np.float64],
) -> None:
    """Simulate each sample and write what it costs, infinite where it touches an obstacle.

    Args:
        samples: (n, 3) velocities vx, vy, wz.
        twist: vx, vy, wz now.
        acceleration: (3,) with which the base goes from ``twist`` to the sample during the rollout [1/s²]; infinite:
            at once.
        horizon: Of the simulation [s].
        linear_granularity: Between looks at obstacles [m].
        angular_granularity: The same for turning [rad].
        window: What lies about the robot.
        path_field: (rows + 2, columns + 2) distance from each cell to the path [cells].
        goal_field: The same to the path's end.
        weights: Of the distance of the end to the path and to the goal [1/m], of the same for the nose, of the highest
            cost met, as a share, and of turning [1/rad].
        forward_point_distance: How far the nose lies ahead of the base's origin [m].
        costs: (n,) result.
    """
    cells, scale = window.cells, 1.0 / window.resolution
    rows, columns = cells.shape
    for k in range(len(samples)):
        vx, vy, wz = samples[k]
        speed, angular_speed = math.hypot(vx, vy), abs(wz)
        if acceleration[0] < np.inf:  # on the way from the one velocity to the other, neither is exceeded
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
            u = _step_toward(u, vx, acceleration[0] * dt)
            v = _step_toward(v, vy, acceleration[1] * dt)
            w = _step_toward(w, wz, acceleration[2] * dt)
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
        total = weights[0] * _interpolate_field(path_field, x * scale, y * scale) / scale
        total += weights[1] * _interpolate_field(goal_field, x * scale, y * scale) / scale
        total += weights[2] * _interpolate_field(path_field, nx * scale, ny * scale) / scale
        total += weights[3] * _interpolate_field(goal_field, nx * scale, ny * scale) / scale
        total += weights[4] * max_cost / INSCRIBED + weights[5] * abs(wz)
        costs[k] = total


@kernel
def _step_toward(value: float, target: float, change: float) -> float:
    return min(max(target, value - change), value + change)


@kernel
def _interpolate_field(field: NDArray[np.float64], x: float, y: float) -> float:
    """Of a padded field, between the four middles about a point; of the nearest cell where one of them is unknown."""
    rows, columns = field.shape
    fx, fy = min(max(x + 0.5, 0.0), columns - 1.001), min(max(y + 0.5, 0.0), rows - 1.001)
    c, r = np.int64(fx), np.int64(fy)
    a, b = fx - c, fy - r
    value = (1.0 - b) * ((1.0 - a) * field[r, c] + a * field[r, c + 1])
    value += b * ((1.0 - a) * field[r + 1, c] + a * field[r + 1, c + 1])
    if value < np.inf:
        return float(value)
    nearest = field[np.int64(fy + 0.5), np.int64(fx + 0.5)]
    # nobody gets there: dearer than anything that can be reached, and finite, so that sums stay comparable
    return float(nearest) if nearest < np.inf else float(rows * columns)


class DwaConfig(Config):
    """Samples and weights, with the names' meaning of dwa_local_planner."""

    n_samples: tuple[int, int, int] = parameter(
        (20, 1, 20), low=1, high=1000, doc="Numbers of samples of vx, vy and wz."
    )
    horizon: float = parameter(1.7, unit="s", low=1e-3, high=1e3, doc="Duration of the simulation.")
    period: float = parameter(0.05, unit="s", low=1e-3, high=1e3, doc="Time between commands.")
    rollout: bool = parameter(False, doc="Trajectory Rollout instead of the dynamic window.")
    linear_granularity: float = parameter(
        0.05, unit="m", low=1e-3, high=1e3, doc="Distance between checks of obstacles."
    )
    angular_granularity: float = parameter(0.1, unit="rad", low=1e-3, high=1e3, doc="Turn between checks of obstacles.")
    path_distance_weight: float = parameter(
        32.0, unit="1/m", doc="Weight of the distance between the end and the path."
    )
    goal_distance_weight: float = parameter(
        24.0, unit="1/m", doc="Weight of the distance between the end and the local goal."
    )
    forward_point_weight: float = parameter(
        0.5, doc="Weight of the same distances for a point ahead of the robot, which turns it along the path."
    )
    forward_point_distance: float = parameter(0.325, unit="m", doc="Distance of that point ahead of the robot.")
    obstacle_weight: float = parameter(8.0, doc="Weight of the highest cost met, as a share of an obstacle's.")
    rotation_weight: float = parameter(0.0, unit="s/rad", doc="Weight of the turning rate.")
    min_speed: float = parameter(0.1, unit="m/s", doc="Smallest speed of a sample that counts.")
    min_angular_speed: float = parameter(0.1, unit="rad/s", doc="Smallest turning rate of a sample that counts.")
    lookahead_distance: float = parameter(
        2.0,
        unit="m",
        low=1e-3,
        high=1e3,
        doc="Distance along the path to the local goal; farther where the simulation leads farther.",
    )

    def validate(self) -> None:
        """Check the number of samples."""
        if len(self.n_samples) != 3:
            raise ConfigError(f"n_samples = {self.n_samples}", location="DwaConfig", valid="three numbers")


class DwaController(PathFollower):
    """The controller; see the module.

    Args:
        footprint: Of the robot.
        limits: Of its base.
        config: Samples and weights.
        tolerance: At the goal.
    """

    _MAX_BLOCKED_CYCLES = 10  # so often in a row it may find no way on before it has come on along the path

    def __init__(
        self,
        footprint: Footprint,
        limits: MotionLimits,
        config: DwaConfig | None = None,
        tolerance: GoalTolerance | None = None,
    ) -> None:
        config, tolerance = config or DwaConfig(), tolerance or GoalTolerance()
        expect_kernels(score_velocities, velocity_grid)
        self._max_distance = (
            max(limits.max_forward_speed, limits.max_backward_speed, limits.max_lateral_speed) * config.horizon
            + config.forward_point_distance
        )
        super().__init__(
            footprint, limits, config.period, max(config.lookahead_distance, self._max_distance), tolerance
        )
        self._config = config
        self._blocked_index, self._blocked_cycles = 0, 0

    def set_path(self, path: Path) -> None:
        """See ``Controller``."""
        super().set_path(path)
        self._blocked_index, self._blocked_cycles = 0, 0

    def save_state(self) -> dict[str, Any]:
        """See ``Controller``."""
        return super().save_state() | {"blocked_index": self._blocked_index, "blocked_cycles": self._blocked_cycles}

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Controller``."""
        super().load_state(saved)
        self._blocked_index, self._blocked_cycles = saved["blocked_index"], saved["blocked_cycles"]

    def _compute_target_velocity(
        self, window: CostmapWindow, segment: PathSegment, twist: PlanarTwist, limits: MotionLimits
    ) -> PlanarTwist:
        config = self._config
        path, remaining = _next_part(segment.poses[:, :2], self._window_radius)
        # to the path's end and no farther: what stands beyond it must not keep the robot from it
        remaining = max(remaining, self._CUSP_TOLERANCE)
        limits = limits.with_max_speed(max(math.sqrt(limits.max_acceleration * remaining), config.min_speed))
        horizon = min(config.horizon, remaining / max(math.hypot(twist.vx, twist.vy), config.min_speed))
        samples = self._sample_velocities(twist, limits)
        costs = np.empty(len(samples))
        ramp = np.array([limits.max_acceleration, limits.max_acceleration, limits.max_angular_acceleration])
        # at the goal the nose would arrive first, and hold the robot back
        forward_point_weight = config.forward_point_weight if remaining > 2.0 * config.forward_point_distance else 0.0
        weights = np.array(
            [
                config.path_distance_weight,
                config.goal_distance_weight,
                config.path_distance_weight * forward_point_weight,
                config.goal_distance_weight * forward_point_weight,
                config.obstacle_weight,
                config.rotation_weight,
            ]
        )
        score_velocities(
            samples,
            np.array(twist, dtype=np.float64),
            ramp if config.rollout else np.full(3, np.inf),
            horizon,
            config.linear_granularity,
            config.angular_granularity,
            window.arrays,
            *_distance_fields(window, path, self._max_distance),
            weights,
            -config.forward_point_distance if segment.backward else config.forward_point_distance,
            costs,
        )
        costs[self._is_nearly_standing(samples, limits)] = np.inf
        braking = PlanarTwist(limits.max_acceleration, limits.max_acceleration, limits.max_angular_acceleration)
        for k in np.argsort(costs, kind="stable"):
            command = PlanarTwist(*(float(value) for value in samples[k]))
            if not math.isfinite(costs[k]):
                break
            if window.can_stop_safely(command, braking, config.period):  # looks closer than the simulation
                return command
        if self._path_index > self._blocked_index:
            self._blocked_index, self._blocked_cycles = self._path_index, 0
        self._blocked_cycles += 1
        is_moving = math.hypot(twist.vx, twist.vy) > 0.02 or abs(twist.wz) > 0.05
        if is_moving and self._blocked_cycles <= self._MAX_BLOCKED_CYCLES:
            return ZERO_TWIST  # slower ones lead less far, and from a stand it can turn either way
        self._blocked_cycles = 0
        raise NoSafeCommandError(
            "every velocity the base could take leads into an obstacle", valid="stop, then recover"
        )

    def _is_nearly_standing(self, samples: NDArray[np.float64], limits: MotionLimits) -> NDArray[np.bool_]:
        """(n,) who hardly moves: standing still is cheap where obstacles are near, and leads nowhere."""
        config = self._config
        is_slow = np.hypot(samples[:, 0], samples[:, 1]) < min(config.min_speed, 0.5 * limits.max_forward_speed)
        return np.asarray(
            is_slow & (np.abs(samples[:, 2]) < min(config.min_angular_speed, 0.5 * limits.max_angular_speed))
        )

    def _sample_velocities(self, twist: PlanarTwist, limits: MotionLimits) -> NDArray[np.float64]:
        """(n, 3) velocities that the base can reach, zero among them where it can."""
        config = self._config
        span = config.horizon if config.rollout else config.period
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
    """The path's next part of length ``length``, however it winds, and the length of all that is left of it."""
    arc_lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    return path[: int(np.searchsorted(arc_lengths, length, side="right"))], float(arc_lengths[-1])


def _distance_fields(
    window: CostmapWindow, path: NDArray[np.float64], max_distance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distances (rows + 2, columns + 2) to the path and to its last free place, round obstacles [cells].

    As far as the robot can get by ``max_distance`` [m]; infinite beyond.
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
    # steps to eight neighbors lead farther than the straight way, by a share and by the cells at its ends
    cost_margin = math.hypot(1.0, math.sqrt(2.0) - 1.0) * max_distance * scale + 4.0
    fields = []
    for sources in (np.unique(path_indices), free_path_indices[-1:] if len(free_path_indices) else path_indices[-1:]):
        costs = np.full(grid.cells.size, np.inf)
        grid_search.search_grid(grid, costs, sources, start, cost_margin, False)
        fields.append(costs.reshape(grid.cells.shape))
    return fields[0], fields[1]
