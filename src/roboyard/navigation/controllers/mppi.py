"""Model predictive path integral control (Williams et al. 2016), with the critics of Nav2.

Each call varies the last control sequence many times, integrates each variant within the limits of the base, and takes
the mean of the controls, weighted by exp(-cost / temperature).  Among the variants are pure pursuit and standing still
(Trevisan and Alonso-Mora, Biased-MPPI, 2024), so that the path is tried even where the last sequence leads into an
obstacle.  The noise is correlated in time, since noise that changes with every step cancels out before the base moves.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.navigation.controllers.controller import GoalTolerance, MotionLimits
from roboyard.navigation.controllers.costmap_window import IN_COLLISION, CostmapWindow
from roboyard.navigation.controllers.mppi_kernels import (
    add_motion_costs,
    add_obstacle_costs,
    add_path_costs,
    integrate_rollouts,
    write_pure_pursuit_controls,
)
from roboyard.navigation.controllers.path_follower import PathFollower, PathSegment
from roboyard.navigation.errors import NoSafeCommandError
from roboyard.navigation.footprint import Footprint


class MppiCriticWeights(Config):
    """Weights.  The base's limits are no critic: every variant is driven within them."""

    collision: float = parameter(1e6, doc="Cost of touching an obstacle.")
    cost: float = parameter(
        4.0,
        unit="1/m",
        doc="Cost of a distance where costs are highest; less than `path_follow`, or the robot stands still.",
    )
    speed_near_obstacles: float = parameter(
        0.0, unit="1/m²", doc="Cost of speed there: of a distance driven within 2 dt, in proportion to its length."
    )
    path_align: float = parameter(8.0, unit="1/m", doc="Cost of the mean distance from the path.")
    path_follow: float = parameter(6.0, unit="1/m", doc="Cost of the length of the path that is left at the end.")
    path_angle: float = parameter(
        1.0, unit="1/rad", doc="Cost of a heading off the path's at the end; not for bases that move sideways."
    )
    goal: float = parameter(5.0, unit="1/m", doc="Cost of the mean distance to the goal, near it.")
    goal_angle: float = parameter(1.0, unit="1/rad", doc="Cost of the difference to the goal's heading, near it.")
    prefer_forward: float = parameter(
        5.0, unit="1/m", doc="Cost of driving backward where the path is driven forward, and the reverse."
    )
    twirling: float = parameter(0.2, unit="1/rad", doc="Cost of turning.")
    velocity_deadband: float = parameter(
        35.0, doc="Cost of velocities within the dead bands, by their distance to the ends [1/m, 1/rad]."
    )
    deadband_velocities: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), low=0.0, doc="Smallest vx, vy and wz that the base follows [m/s, m/s, rad/s]."
    )
    goal_activation_distance: float = parameter(1.0, unit="m", doc="Distance to the goal within which it counts.")
    goal_angle_activation_distance: float = parameter(
        0.4, unit="m", doc="Distance to the goal within which its heading counts."
    )

    def validate(self) -> None:
        """Check the number of dead bands."""
        if len(self.deadband_velocities) != 3:
            raise ConfigError(
                f"deadband_velocities = {self.deadband_velocities}", location="MppiCriticWeights", valid="three numbers"
            )


class MppiConfig(Config):
    """Size and sharpness of the search."""

    batch_size: int = parameter(2000, low=32, high=100_000, doc="Number of variants.")
    time_steps: int = parameter(56, low=4, high=1000, doc="Number of steps of a variant.")
    model_dt: float = parameter(
        0.05, unit="s", low=1e-6, high=1e3, doc="Duration of a step, and time between commands."
    )
    vx_std_ratio: float = parameter(
        0.35, low=1e-6, high=1e3, doc="Standard deviation of the variation of vx, as a share of the highest speed."
    )
    vy_std_ratio: float = parameter(
        0.35,
        low=1e-6,
        high=1e3,
        doc="Standard deviation of the variation of vy, likewise; only for bases that move sideways.",
    )
    wz_std_ratio: float = parameter(0.4, low=1e-6, high=1e3, doc="Standard deviation of the variation of wz, likewise.")
    noise_correlation: float = parameter(
        0.85, low=0.0, high=1.0, doc="Correlation of the variations of successive steps, below 1."
    )
    temperature: float = parameter(
        0.3, low=1e-6, high=1e6, doc="Temperature of the weights: the smaller, the more the best variant counts."
    )
    critics: MppiCriticWeights = parameter(factory=MppiCriticWeights, doc="Costs of the variants.")
    seed: int = parameter(0, doc="Seed of the variations.")

    def validate(self) -> None:
        """Check the correlation."""
        if self.noise_correlation == 1.0:
            raise ConfigError("noise_correlation = 1", location="MppiConfig", valid="0 to less than 1")


_LOOKAHEAD_DISTANCES = (0.3, 0.5, 0.8, 1.2)  # how far ahead the pursued points lie [m]
_PURSUED_SPEED_RATIOS = (1.0, 0.7, 0.4, 0.2)  # of the highest
_OBSTACLE_STRIDE = 2  # looks at obstacles
_PATH_STRIDE = 4  # looks at the path


class MppiController(PathFollower):
    """The controller; see the module.

    Args:
        footprint: Of the robot.
        limits: Of its base.
        config: Of the search.
        tolerance: At the goal.
    """

    def __init__(
        self,
        footprint: Footprint,
        limits: MotionLimits,
        config: MppiConfig | None = None,
        tolerance: GoalTolerance | None = None,
    ) -> None:
        config, tolerance = config or MppiConfig(), tolerance or GoalTolerance()
        expect_kernels(
            add_motion_costs, add_obstacle_costs, add_path_costs, write_pure_pursuit_controls, integrate_rollouts
        )
        speed = max(limits.max_forward_speed, limits.max_backward_speed, limits.max_lateral_speed)
        super().__init__(footprint, limits, config.model_dt, speed * config.time_steps * config.model_dt, tolerance)
        self._config = config
        self._is_holonomic = limits.max_lateral_speed > 0.0
        self._standard_deviations = np.array(
            [
                config.vx_std_ratio * limits.max_forward_speed,
                config.vy_std_ratio * limits.max_lateral_speed,
                config.wz_std_ratio * limits.max_angular_speed,
            ],
            dtype=np.float32,
        )
        self._generator = np.random.default_rng(config.seed)
        self._control_sequence = np.zeros((3, config.time_steps), dtype=np.float32)
        shape = (config.batch_size, config.time_steps)
        self._controls = np.zeros((3, *shape), dtype=np.float32)
        self._rollout_poses = np.zeros((3, *shape), dtype=np.float32)

    def save_state(self) -> dict[str, Any]:
        """See ``Controller``."""
        random = copy.deepcopy(self._generator.bit_generator.state)
        return super().save_state() | {"control_sequence": self._control_sequence.copy(), "random": random}

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Controller``."""
        super().load_state(saved)
        self._control_sequence[:] = saved["control_sequence"]
        self._generator.bit_generator.state = copy.deepcopy(saved["random"])

    def _compute_target_velocity(
        self, window: CostmapWindow, segment: PathSegment, twist: PlanarTwist, limits: MotionLimits
    ) -> PlanarTwist:
        config = self._config
        pose, current_twist = window.arrays.start_pose, np.array(twist, dtype=np.float64)
        bounds = np.array(
            [
                limits.max_forward_speed,
                limits.max_backward_speed,
                limits.max_lateral_speed,
                limits.max_angular_speed,
                limits.max_acceleration,
                limits.max_angular_acceleration,
            ]
        )
        path, arc_lengths, remaining = _reachable_part(segment.poses, self._window_radius)
        first_random = self._sample_controls(segment, path, pose, current_twist, bounds)
        vx, vy, wz = self._controls
        xs, ys, yaws = self._rollout_poses
        integrate_rollouts(
            vx,
            vy,
            wz,
            self._control_sequence,
            first_random,
            self._standard_deviations,
            config.noise_correlation,
            pose,
            current_twist,
            bounds,
            config.model_dt,
            xs,
            ys,
            yaws,
        )
        costs = np.zeros(config.batch_size)
        if not self._score_rollouts(window, segment, path, arc_lengths, remaining, costs):
            self._control_sequence[:] = 0.0
            raise NoSafeCommandError("every way the base could go touches an obstacle", valid="stop, then recover")
        self._update_control_sequence(window, costs, pose, current_twist, bounds)
        command = PlanarTwist(*(float(value) for value in self._control_sequence[:, 0]))
        self._control_sequence[:, :-1] = self._control_sequence[:, 1:]
        return command

    def _sample_controls(
        self,
        segment: PathSegment,
        path: NDArray[np.float64],
        pose: NDArray[np.float64],
        current_twist: NDArray[np.float64],
        bounds: NDArray[np.float64],
    ) -> int:
        """Fill the batch: the plan itself, standing still, pursuits, and random numbers from the row returned on."""
        for axis in (0, 1, 2) if self._is_holonomic else (0, 2):
            self._generator.standard_normal(out=self._controls[axis], dtype=np.float32)
        self._controls[:, 0] = self._control_sequence
        self._controls[:, 1] = 0.0
        max_speed = bounds[1] if segment.backward else bounds[0]
        pure_pursuit_samples = np.array(
            [(lookahead, ratio * max_speed) for lookahead in _LOOKAHEAD_DISTANCES for ratio in _PURSUED_SPEED_RATIOS]
        )
        vx, vy, wz = self._controls
        write_pure_pursuit_controls(
            vx,
            vy,
            wz,
            pure_pursuit_samples,
            segment.backward,
            2,
            path,
            pose,
            current_twist,
            bounds,
            self._config.model_dt,
        )
        return 2 + len(pure_pursuit_samples)

    def _score_rollouts(
        self,
        window: CostmapWindow,
        segment: PathSegment,
        path: NDArray[np.float64],
        arc_lengths: NDArray[np.float64],
        remaining: float,
        costs: NDArray[np.float64],
    ) -> int:
        """Add what the variants cost; how many of them touch nothing."""
        config, critics = self._config, self._config.critics
        vx, vy, wz = self._controls
        xs, ys, yaws = self._rollout_poses
        n_free = add_obstacle_costs(
            xs,
            ys,
            yaws,
            window.arrays,
            _OBSTACLE_STRIDE,
            np.array([critics.collision, critics.cost, critics.speed_near_obstacles]),
            costs,
        )
        weights = np.array(
            [
                critics.path_align,
                critics.path_follow,
                critics.path_angle if remaining > critics.goal_activation_distance and not self._is_holonomic else 0.0,
                critics.goal if remaining < critics.goal_activation_distance else 0.0,
                critics.goal_angle if remaining < critics.goal_angle_activation_distance else 0.0,
            ]
        )
        add_path_costs(xs, ys, yaws, path, arc_lengths, _blocked_points(path, window), _PATH_STRIDE, weights, costs)
        direction_weight = -critics.prefer_forward if segment.backward else critics.prefer_forward
        motion_weights = np.array([direction_weight, critics.twirling, critics.velocity_deadband])
        add_motion_costs(
            vx,
            vy,
            wz,
            self._is_holonomic,
            motion_weights,
            np.array(critics.deadband_velocities),
            config.model_dt,
            costs,
        )
        return int(n_free)

    def _update_control_sequence(
        self,
        window: CostmapWindow,
        costs: NDArray[np.float64],
        pose: NDArray[np.float64],
        current_twist: NDArray[np.float64],
        bounds: NDArray[np.float64],
    ) -> None:
        """The weighted mean becomes the plan, or the best variant where the mean of good ways is none."""
        weights = np.exp((costs.min() - costs) / self._config.temperature)
        weights = (weights / weights.sum()).astype(np.float32)
        mean = np.zeros((3, 1, self._config.time_steps), dtype=np.float32)
        for axis in (0, 1, 2) if self._is_holonomic else (0, 2):
            mean[axis, 0] = weights @ self._controls[axis]
        vx, vy, wz = mean
        xs, ys, yaws = np.empty_like(mean)
        integrate_rollouts(
            vx,
            vy,
            wz,
            self._control_sequence,
            1,
            self._standard_deviations,
            0.0,
            pose,
            current_twist,
            bounds,
            self._config.model_dt,
            xs,
            ys,
            yaws,
        )
        mean_cost = np.zeros(1)
        is_free = add_obstacle_costs(xs, ys, yaws, window.arrays, 1, np.zeros(3), mean_cost)
        self._control_sequence[:] = mean[:, 0] if is_free else self._controls[:, int(np.argmin(costs))]


def _reachable_part(
    poses: NDArray[np.float64], max_distance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The path as far as variants can come, the length up to each of its points, and that of the whole path."""
    arc_lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(poses[:, :2], axis=0).T))])
    count = int(np.searchsorted(arc_lengths, max_distance + 1.0)) + 1
    return np.ascontiguousarray(poses[:count]), arc_lengths[:count], float(arc_lengths[-1])


def _blocked_points(path: NDArray[np.float64], window: CostmapWindow) -> NDArray[np.uint8]:
    """(n,) whether the robot's center cannot be at a point of the path."""
    cells = np.floor(path[:, 1::-1] / window.arrays.resolution).astype(np.int64)
    is_inside = ((cells >= 0) & (cells < np.array(window.arrays.cells.shape))).all(axis=1)
    blocked = np.zeros(len(path), dtype=np.uint8)
    blocked[is_inside] = window.arrays.proximity[cells[is_inside, 0], cells[is_inside, 1]] == IN_COLLISION
    return blocked
