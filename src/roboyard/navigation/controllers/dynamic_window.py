"""Dynamic Window Approach (Fox, Burgard, Thrun 1997) and Trajectory Rollout (Gerkey, Konolige 2008).

Both try a grid of velocities, simulate each, leave out those that touch an obstacle, and take the cheapest by where it
ends: near the path, near the goal, away from obstacles.  They differ in what the base can reach: within one control
period (window), or at the end of the simulation (rollout).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.controllers.arrival import Tolerance
from roboyard.navigation.controllers.base import MotionLimits
from roboyard.navigation.controllers.following import Leg, PathFollower
from roboyard.navigation.controllers.surroundings import Surroundings
from roboyard.navigation.controllers.window_kernels import judge_velocities
from roboyard.navigation.errors import NoSafeCommand
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.planning import Traversal, octile


@dataclass(frozen=True, slots=True)
class WindowConfig:
    """Samples and weights, with the names' meaning of dwa_local_planner.

    Attributes:
        samples: Of vx, vy and wz.
        horizon: Of the simulation [s].
        period: Between commands [s].
        rollout: Trajectory Rollout instead of the window.
        way_step: Between looks at obstacles [m].
        turn_step: The same for turning [rad].
        path: Weight of the end's distance to the path [1/m].
        goal: Weight of its distance to the local goal [1/m].
        nose: Weight of the same two for a point ahead of the robot, which turns it along the path.
        nose_ahead: How far ahead that point lies [m].
        obstacles: Weight of the highest cost met, as a share of an obstacle's.
        cost_weight: How much longer a metre at the highest cost counts in the distances.
        turning: Weight of turning [1/(rad/s)].
        turn_from: If the path leads farther to the side than this, the robot turns on the spot first [rad].
        reach: How far the controller looks, for its distance fields [m].

    Raises:
        ConfigError: a number out of range.
    """

    samples: tuple[int, int, int] = (20, 1, 20)
    horizon: float = 1.7
    period: float = 0.05
    rollout: bool = False
    way_step: float = 0.05
    turn_step: float = 0.1
    path: float = 32.0
    goal: float = 24.0
    nose: float = 0.5
    nose_ahead: float = 0.325
    obstacles: float = 3.0
    cost_weight: float = 15.0
    turning: float = 0.0
    turn_from: float = 1.0
    reach: float = 1.5

    def __post_init__(self) -> None:
        if len(self.samples) != 3 or not all(1 <= n <= 1000 for n in self.samples):
            raise ConfigError(f"samples = {self.samples}", where="WindowConfig", valid="three numbers from 1 to 1000")
        for name in ("horizon", "period", "way_step", "turn_step", "reach"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", where="WindowConfig", valid="a positive number")


class DynamicWindow(PathFollower):
    """The controller; see the module.

    Args:
        footprint: Of the robot.
        limits: Of its base.
        config: Samples and weights.
        tolerance: At the goal.
    """

    def __init__(
        self,
        footprint: Footprint,
        limits: MotionLimits,
        config: WindowConfig = WindowConfig(),
        tolerance: Tolerance = Tolerance(),
    ) -> None:
        reach = max(config.reach, config.horizon * max(limits.forward, limits.sideways, limits.backward))
        super().__init__(footprint, limits, config.period, reach, tolerance)
        self._config = config

    def _steer(self, seen: Surroundings, leg: Leg, twist: PlanarTwist, limits: MotionLimits) -> PlanarTwist:
        config, here = self._config, seen.here
        side = _side(leg, here, config.nose_ahead)
        if abs(side) > config.turn_from:
            return PlanarTwist(0.0, 0.0, self._turn(side))
        path = _local_part(leg.poses[:, :2], seen)
        path_field, goal_field = _fields(seen, path, config.cost_weight)
        samples = self._samples(twist, limits)
        costs = np.empty(len(samples))
        scale = 1.0 / seen.resolution
        # at the goal the nose would arrive first, and hold the robot back
        left = math.hypot(leg.poses[-1, 0] - here.x, leg.poses[-1, 1] - here.y)
        nose = config.nose if left > 2.0 * config.nose_ahead else 0.0
        ramp = np.array([limits.acceleration, limits.acceleration, limits.turn_acceleration])
        judge_velocities(
            samples, np.array([here.x, here.y, here.theta]), np.array(twist, dtype=np.float64),
            ramp if config.rollout else np.full(3, np.inf), ramp, config.period, config.horizon, config.way_step,
            config.turn_step,
            seen.cells, seen.nearness, seen.border, scale, path_field, goal_field,
            np.array([config.path, config.goal, config.path * nose, config.goal * nose,
                      config.obstacles, config.turning]),
            -config.nose_ahead if leg.backward else config.nose_ahead, costs,
        )  # fmt: skip
        best = int(np.argmin(costs))
        if not math.isfinite(costs[best]):
            raise NoSafeCommand("every velocity the base could take leads into an obstacle", valid="stop, then recover")
        return PlanarTwist(*(float(value) for value in samples[best]))

    def _samples(self, twist: PlanarTwist, limits: MotionLimits) -> NDArray[np.float64]:
        """(n, 3) velocities that the base can reach, zero among them where it can."""
        config = self._config
        span = config.horizon if config.rollout else config.period
        axes = []
        for now, low, high, ramp, count in (
            (twist.vx, -limits.backward, limits.forward, limits.acceleration, config.samples[0]),
            (twist.vy, -limits.sideways, limits.sideways, limits.acceleration, config.samples[1]),
            (twist.wz, -limits.turn, limits.turn, limits.turn_acceleration, config.samples[2]),
        ):
            first = min(max(now - ramp * span, low), high)
            last = max(min(now + ramp * span, high), low)
            values = np.linspace(first, last, count) if count > 1 else np.array([min(max(now, low), high)])
            if first < 0.0 < last and count > 1:
                values = np.unique(np.append(values, 0.0))
            axes.append(values)
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def _side(leg: Leg, here: SE2, ahead: float) -> float:
    """How far the robot would have to turn to look along the path [rad]."""
    points = here.inverse() @ leg.poses[:, :2]
    beyond = np.flatnonzero(np.hypot(points[:, 0], points[:, 1]) >= ahead)
    if not len(beyond):
        return 0.0
    x, y = points[beyond[0]]
    return wrap_angle(math.atan2(-y, -x) if leg.backward else math.atan2(y, x))


def _local_part(path: NDArray[np.float64], seen: Surroundings) -> NDArray[np.float64]:
    """The path as far as it stays within the window."""
    size = np.array(seen.cells.shape[::-1]) * seen.resolution
    outside = np.flatnonzero((path < 0.0).any(axis=1) | (path >= size).any(axis=1))
    return path[: max(int(outside[0]), 1)] if len(outside) else path


def _fields(
    seen: Surroundings, path: NDArray[np.float64], cost_weight: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distances (rows + 2, columns + 2) to the path and to its end [cells], round obstacles and costly places."""
    weights = Traversal(cost_weight, unknown_cost=0).weights(seen.cells)
    cells = np.clip(np.floor(path[:, ::-1] / seen.resolution).astype(np.int64), 0, np.array(seen.cells.shape) - 1)
    flat = (cells[:, 0] + 1) * weights.shape[1] + cells[:, 1] + 1
    fields = []
    for sources in (np.unique(flat), flat[-1:]):
        costs = np.full(weights.size, np.inf)
        octile.search(weights, costs, sources, -1, False)
        fields.append(costs.reshape(weights.shape))
    return fields[0], fields[1]
