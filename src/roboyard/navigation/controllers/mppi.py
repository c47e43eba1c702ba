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
from roboyard.navigation.controllers.controller import DEFAULT_CONTROL_PERIOD, GoalTolerance, MotionLimits
from roboyard.navigation.controllers.costmap_window import IN_COLLISION, CostmapWindow
from roboyard.navigation.controllers.mppi_kernels import (
    BaseState,
    ControlNoise,
    MotionModel,
    MotionWeights,
    ObstacleWeights,
    PathWeights,
    ReferencePath,
    RolloutPoses,
    VelocitySequences,
    add_motion_costs,
    add_obstacle_costs,
    add_path_costs,
    integrate_rollouts,
    write_pure_pursuit_controls,
)
from roboyard.navigation.controllers.path_follower import PathFollower, PathSegment
from roboyard.navigation.errors import NoSafeCommandError
from roboyard.navigation.footprint import Footprint

_HORIZON = 2.8
"""Duration of the rollouts unless ``time_steps`` is given [s]."""


class MppiCriticWeights(Config):
    """Weights of the critics.  The limits of the base need no critic, since rollouts never exceed them."""

    collision: float = parameter(1e6, aliases=("CostCritic.collision_cost",), doc="Cost of a collision.")
    cost: float = parameter(
        4.0,
        unit="1/m",
        aliases=("CostCritic.cost_weight",),
        doc="Cost of a distance on the most costly free cell; less than `path_follow`, or the robot stands still.",
    )
    speed_near_obstacles: float = parameter(
        0.0,
        unit="1/m²",
        doc="Cost of speed there: of a distance driven within two steps, in proportion to its length.",
    )
    path_align: float = parameter(
        8.0, unit="1/m", aliases=("PathAlignCritic.cost_weight",), doc="Cost of the mean distance from the path."
    )
    path_follow: float = parameter(
        6.0,
        unit="1/m",
        aliases=("PathFollowCritic.cost_weight",),
        doc="Cost of the length of the path that remains at the end.",
    )
    path_angle: float = parameter(
        1.0,
        unit="1/rad",
        aliases=("PathAngleCritic.cost_weight",),
        doc="Cost of a heading off the path's at the end; not for bases that move sideways.",
    )
    goal: float = parameter(
        5.0, unit="1/m", aliases=("GoalCritic.cost_weight",), doc="Cost of the mean distance to the goal, near it."
    )
    goal_angle: float = parameter(
        1.0,
        unit="1/rad",
        aliases=("GoalAngleCritic.cost_weight",),
        doc="Cost of the difference to the goal's heading, near it.",
    )
    prefer_forward: float = parameter(
        5.0,
        unit="1/m",
        aliases=("PreferForwardCritic.cost_weight",),
        doc="Cost of driving backward where the path is driven forward, and the reverse.",
    )
    twirling: float = parameter(0.2, unit="1/rad", aliases=("TwirlingCritic.cost_weight",), doc="Cost of rotation.")
    velocity_deadband: float = parameter(
        35.0,
        aliases=("VelocityDeadbandCritic.cost_weight",),
        doc="Cost of velocities within the dead bands, by their distance to the ends [1/m, 1/rad].",
    )
    deadband_velocities: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0),
        low=0.0,
        aliases=("VelocityDeadbandCritic.deadband_velocities",),
        doc="Smallest vx, vy and wz that the base follows [m/s, m/s, rad/s].",
    )
    goal_activation_distance: float = parameter(
        1.0, unit="m", aliases=("GoalCritic.threshold_to_consider",), doc="Distance to the goal within which it counts."
    )
    goal_angle_activation_distance: float = parameter(
        0.4,
        unit="m",
        aliases=("GoalAngleCritic.threshold_to_consider",),
        doc="Distance to the goal within which its heading counts.",
    )


class MppiConfig(Config):
    """Size and sharpness of the search."""

    batch_size: int = parameter(2000, low=32, high=100_000, aliases=("batch_size",), doc="Number of rollouts.")
    time_steps: int | None = parameter(
        None,
        low=4,
        high=1000,
        aliases=("time_steps",),
        doc=f"Number of steps of a rollout, one control period each; none: as many as fill {_HORIZON:g} s.",
    )
    vx_std_ratio: float = parameter(
        0.35,
        low=1e-6,
        high=1e3,
        aliases=("vx_std",),
        doc="Ratio of the standard deviation of the variation of vx to the highest speed.",
    )
    vy_std_ratio: float = parameter(
        0.35,
        low=1e-6,
        high=1e3,
        aliases=("vy_std",),
        doc="The same ratio of vy to the highest lateral speed, for bases that move sideways.",
    )
    wz_std_ratio: float = parameter(
        0.4, low=1e-6, high=1e3, aliases=("wz_std",), doc="The same ratio of wz to the highest angular speed."
    )
    noise_correlation: float = parameter(
        0.85, low=0.0, high=1.0, doc="Correlation of the variations of successive steps, below 1."
    )
    temperature: float = parameter(
        0.3,
        low=1e-6,
        high=1e6,
        aliases=("temperature",),
        doc="Temperature of the weights: the smaller, the more the best rollout counts.",
    )
    critics: MppiCriticWeights = parameter(factory=MppiCriticWeights, doc="Costs of the rollouts.")
    seed: int = parameter(0, doc="Seed of the variations.")

    def validate(self) -> None:
        """Check the correlation."""
        if self.noise_correlation == 1.0:
            raise ConfigError("noise_correlation = 1", location="MppiConfig", valid="0 to less than 1")


_LOOKAHEAD_DISTANCES = (0.3, 0.5, 0.8, 1.2)  # of the rollouts of pure pursuit [m]
_PURSUED_SPEED_RATIOS = (1.0, 0.7, 0.4, 0.2)  # their speeds, as ratios to the highest
_OBSTACLE_STRIDE = 2  # steps between two collision checks
_PATH_STRIDE = 4  # steps between two comparisons with the path


class MppiController(PathFollower):
    """Model predictive path integral controller.

    Args:
        footprint: Footprint of the robot.
        limits: Motion limits of its base.
        config: Size of the search and weights of the critics.
        tolerance: Tolerance of the goal.
        period: Time between two commands, and duration of a step of the rollouts [s].
    """

    def __init__(
        self,
        footprint: Footprint,
        limits: MotionLimits,
        config: MppiConfig | None = None,
        tolerance: GoalTolerance | None = None,
        *,
        period: float = DEFAULT_CONTROL_PERIOD,
    ) -> None:
        config, tolerance = config or MppiConfig(), tolerance or GoalTolerance()
        expect_kernels(
            add_motion_costs, add_obstacle_costs, add_path_costs, write_pure_pursuit_controls, integrate_rollouts
        )
        self._n_steps = config.time_steps or max(round(_HORIZON / period), 4)
        speed = max(limits.max_forward_speed, limits.max_backward_speed, limits.max_lateral_speed)
        super().__init__(footprint, limits, period, speed * self._n_steps * period, tolerance)
        self._config = config
        self._is_holonomic = limits.max_lateral_speed > 0.0
        self._used_axes = (0, 1, 2) if self._is_holonomic else (0, 2)
        self._standard_deviations = np.array(
            [
                config.vx_std_ratio * limits.max_forward_speed,
                config.vy_std_ratio * limits.max_lateral_speed,
                config.wz_std_ratio * limits.max_angular_speed,
            ],
            dtype=np.float32,
        )
        self._deadband_velocities = np.array(config.critics.deadband_velocities)
        self._generator = np.random.default_rng(config.seed)
        self._control_sequence = np.zeros((3, self._n_steps), dtype=np.float32)
        shape = (3, config.batch_size, self._n_steps)
        self._velocities = VelocitySequences(*np.zeros(shape, dtype=np.float32))
        self._poses = RolloutPoses(*np.zeros(shape, dtype=np.float32))

    def save_state(self) -> dict[str, Any]:
        """Return the state of the path follower, the control sequence and the random generator."""
        random = copy.deepcopy(self._generator.bit_generator.state)
        return super().save_state() | {"control_sequence": self._control_sequence.copy(), "random": random}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(saved)
        self._control_sequence[:] = saved["control_sequence"]
        self._generator.bit_generator.state = copy.deepcopy(saved["random"])

    def _compute_target_velocity(
        self, window: CostmapWindow, segment: PathSegment, twist: PlanarTwist, limits: MotionLimits
    ) -> PlanarTwist:
        state = BaseState(window.arrays.start_pose, np.array(twist, dtype=np.float64))
        model = MotionModel(
            limits.max_forward_speed,
            limits.max_backward_speed,
            limits.max_lateral_speed,
            limits.max_angular_speed,
            limits.max_acceleration,
            limits.max_angular_acceleration,
            self._period,
        )
        reference, remaining = _reachable_part(segment.poses, self._window_radius, window)
        first_random = self._sample_velocities(segment, reference, state, model)
        noise = ControlNoise(
            self._control_sequence, self._standard_deviations, self._config.noise_correlation, first_random
        )
        integrate_rollouts(self._velocities, noise, state, model, self._poses)
        costs = np.zeros(self._config.batch_size)
        if not self._score_rollouts(window, segment, reference, remaining, costs):
            self._control_sequence[:] = 0.0
            raise NoSafeCommandError("every motion of the base collides with an obstacle", valid="stop, then recover")
        self._update_control_sequence(window, costs, state, model)
        command = PlanarTwist(*(float(value) for value in self._control_sequence[:, 0]))
        self._control_sequence[:, :-1] = self._control_sequence[:, 1:]
        return command

    def _sample_velocities(
        self, segment: PathSegment, reference: ReferencePath, state: BaseState, model: MotionModel
    ) -> int:
        """Fill the batch, and return the index of the first rollout that varies the control sequence.

        The rollouts before it are the control sequence itself, a standing robot, and pure pursuit.
        """
        for axis in self._used_axes:
            self._generator.standard_normal(out=self._velocities[axis], dtype=np.float32)
        for axis, sequence in enumerate(self._velocities):
            sequence[0] = self._control_sequence[axis]
            sequence[1] = 0.0
        max_speed = model.max_backward_speed if segment.backward else model.max_forward_speed
        samples = np.array(
            [(lookahead, ratio * max_speed) for lookahead in _LOOKAHEAD_DISTANCES for ratio in _PURSUED_SPEED_RATIOS]
        )
        write_pure_pursuit_controls(self._velocities, samples, segment.backward, 2, reference.poses, state, model)
        return 2 + len(samples)

    def _score_rollouts(
        self,
        window: CostmapWindow,
        segment: PathSegment,
        reference: ReferencePath,
        remaining: float,
        costs: NDArray[np.float64],
    ) -> int:
        """Add the costs of the rollouts, and return the number of those without a collision."""
        critics = self._config.critics
        obstacle_weights = ObstacleWeights(critics.collision, critics.cost, critics.speed_near_obstacles)
        n_free = add_obstacle_costs(self._poses, window.arrays, _OBSTACLE_STRIDE, obstacle_weights, costs)
        is_near_goal = remaining < critics.goal_activation_distance
        has_path_angle = remaining > critics.goal_activation_distance and not self._is_holonomic
        path_weights = PathWeights(
            critics.path_align,
            critics.path_follow,
            critics.path_angle if has_path_angle else 0.0,
            critics.goal if is_near_goal else 0.0,
            critics.goal_angle if remaining < critics.goal_angle_activation_distance else 0.0,
        )
        add_path_costs(self._poses, reference, _PATH_STRIDE, path_weights, costs)
        direction_weight = -critics.prefer_forward if segment.backward else critics.prefer_forward
        motion_weights = MotionWeights(direction_weight, critics.twirling, critics.velocity_deadband)
        add_motion_costs(
            self._velocities, self._is_holonomic, motion_weights, self._deadband_velocities, self._period, costs
        )
        return int(n_free)

    def _update_control_sequence(
        self, window: CostmapWindow, costs: NDArray[np.float64], state: BaseState, model: MotionModel
    ) -> None:
        """Set the control sequence to the weighted mean, or to the best rollout if the mean collides.

        The mean of two rollouts that pass an obstacle on either side leads into it.
        """
        weights = np.exp((costs.min() - costs) / self._config.temperature)
        weights = (weights / weights.sum()).astype(np.float32)
        mean = np.zeros((3, 1, self._n_steps), dtype=np.float32)
        for axis in self._used_axes:
            mean[axis, 0] = weights @ self._velocities[axis]
        poses = RolloutPoses(*np.empty_like(mean))
        noise = ControlNoise(self._control_sequence, self._standard_deviations, 0.0, 1)
        integrate_rollouts(VelocitySequences(*mean), noise, state, model, poses)
        is_free = add_obstacle_costs(poses, window.arrays, 1, ObstacleWeights(0.0, 0.0, 0.0), np.zeros(1))
        if is_free:
            self._control_sequence[:] = mean[:, 0]
        else:
            best = int(np.argmin(costs))
            for axis, sequence in enumerate(self._velocities):
                self._control_sequence[axis] = sequence[best]


def _reachable_part(
    poses: NDArray[np.float64], max_distance: float, window: CostmapWindow
) -> tuple[ReferencePath, float]:
    """Return the path as far as rollouts reach, and the length of the whole path [m]."""
    arc_lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(poses[:, :2], axis=0).T))])
    count = int(np.searchsorted(arc_lengths, max_distance + 1.0)) + 1
    reachable = np.ascontiguousarray(poses[:count])
    return ReferencePath(reachable, arc_lengths[:count], _blocked_points(reachable, window)), float(arc_lengths[-1])


def _blocked_points(path: NDArray[np.float64], window: CostmapWindow) -> NDArray[np.uint8]:
    """Return for each point (n,) of the path whether the center of the robot cannot be there."""
    cells = np.floor(path[:, 1::-1] / window.arrays.resolution).astype(np.int64)
    is_inside = ((cells >= 0) & (cells < np.array(window.arrays.cells.shape))).all(axis=1)
    blocked = np.zeros(len(path), dtype=np.uint8)
    blocked[is_inside] = window.arrays.proximity[cells[is_inside, 0], cells[is_inside, 1]] == IN_COLLISION
    return blocked
