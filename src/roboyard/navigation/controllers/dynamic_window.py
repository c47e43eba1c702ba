"""Dynamic Window Approach (Fox, Burgard, Thrun 1997) and Trajectory Rollout (Gerkey, Konolige 2008).

Both try a grid of velocities, simulate each, leave out those that touch an obstacle, and take the cheapest by where it
ends: near the path, near the goal, away from obstacles.  They differ in what the base can reach: within one control
period (window), or at the end of the simulation (rollout).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, wrap_angle
from roboyard.grids import GridFrame
from roboyard.navigation.controllers.base import MotionLimits
from roboyard.navigation.controllers.window_kernels import judge_velocities
from roboyard.navigation.costmap import INSCRIBED, UNKNOWN, Costmap
from roboyard.navigation.errors import NavigationError, NoSafeCommand
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path
from roboyard.navigation.planning import octile


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
        turning: Weight of turning [1/(rad/s)].
        reach: How far the controller looks, for its distance fields [m].
        near_goal: Where the robot turns to the goal's heading on the spot [m].

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
    turning: float = 0.0
    reach: float = 2.5
    near_goal: float = 0.15

    def __post_init__(self) -> None:
        if len(self.samples) != 3 or not all(1 <= n <= 1000 for n in self.samples):
            raise ConfigError(f"samples = {self.samples}", where="WindowConfig", valid="three numbers from 1 to 1000")
        for name in ("horizon", "period", "way_step", "turn_step", "reach"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", where="WindowConfig", valid="a positive number")


class DynamicWindow:
    """The controller; see the module.

    Args:
        footprint: Of the robot.
        limits: Of its base.
        config: Samples and weights.
    """

    def __init__(self, footprint: Footprint, limits: MotionLimits, config: WindowConfig = WindowConfig()) -> None:
        self._footprint = footprint
        self._limits = limits
        self._config = config
        self._path: Path | None = None

    def follow(self, path: Path) -> None:
        """See ``Controller``."""
        self._path = path

    def save(self) -> dict[str, Any]:
        """See ``Controller``: nothing."""
        return {}

    def load(self, saved: dict[str, Any]) -> None:
        """See ``Controller``."""

    def command(self, pose: SE2, twist: PlanarTwist, costmap: Costmap) -> PlanarTwist:
        """See ``Controller``."""
        if self._path is None:
            raise NavigationError("no path to follow", valid="follow(path) first")
        goal = self._path.pose(-1)
        if pose.distance(goal) < self._config.near_goal:
            return self._turn_to(wrap_angle(goal.theta - pose.theta), twist)
        window, here, path = _cut_out(costmap, pose, self._path, self._config.reach)
        local = _local_part(path, here, window.frame.size)
        fields = _fields(window, local)
        samples = self._samples(twist)
        costs = np.empty(len(samples))
        config, limits = self._config, self._limits
        scale = 1.0 / window.frame.resolution
        # at the goal the nose would arrive first, and hold the robot back
        nose = config.nose if pose.distance(goal) > 2.0 * config.nose_ahead else 0.0
        ramp = np.array([limits.acceleration, limits.acceleration, limits.turn_acceleration])
        judge_velocities(
            samples, np.array([here.x, here.y, here.theta]), np.array(twist, dtype=np.float64),
            ramp if config.rollout else np.full(3, np.inf), config.horizon, config.way_step, config.turn_step,
            window.cells, self._footprint.border(window.frame.resolution) * scale, 1, scale, *fields,
            np.array([config.path, config.goal, config.path * nose, config.goal * nose,
                      config.obstacles, config.turning]), config.nose_ahead, costs,
        )  # fmt: skip
        best = int(np.argmin(costs))
        if not math.isfinite(costs[best]):
            raise NoSafeCommand("every velocity the base could take leads into an obstacle", valid="stop, then recover")
        return PlanarTwist(*(float(value) for value in samples[best]))

    def _samples(self, twist: PlanarTwist) -> NDArray[np.float64]:
        """(n, 3) velocities that the base can reach, zero among them where it can."""
        limits, config = self._limits, self._config
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

    def _turn_to(self, left: float, twist: PlanarTwist) -> PlanarTwist:
        """Turn on the spot so that it can stop at the heading."""
        limits = self._limits
        wanted = math.copysign(min(math.sqrt(1.6 * limits.turn_acceleration * abs(left)), limits.turn), left)
        change = limits.turn_acceleration * self._config.period
        return PlanarTwist(0.0, 0.0, min(max(wanted, twist.wz - change), twist.wz + change))


def _cut_out(costmap: Costmap, pose: SE2, path: Path, reach: float) -> tuple[Costmap, SE2, NDArray[np.float64]]:
    """The part of the map about the robot; pose and path in its grid's frame."""
    frame = costmap.frame
    row, column = (int(i) for i in frame.cells(pose.xy))
    half = math.ceil(reach / frame.resolution)
    r0, c0 = max(row - half, 0), max(column - half, 0)
    cells = costmap.cells[r0 : max(row + half + 1, 0), c0 : max(column + half + 1, 0)]
    T_map_window = frame.T_map_grid @ SE2(c0 * frame.resolution, r0 * frame.resolution, 0.0)
    window = Costmap(np.ascontiguousarray(cells), GridFrame(frame.resolution, cells.shape, T_map_window))
    T_window_map = T_map_window.inverse()
    return window, T_window_map @ pose, np.asarray(T_window_map @ path.poses[:, :2])


def _local_part(path: NDArray[np.float64], here: SE2, size: tuple[float, float]) -> NDArray[np.float64]:
    """From the nearest point on, as far as the path stays within the window."""
    nearest = int(np.argmin(np.hypot(path[:, 0] - here.x, path[:, 1] - here.y)))
    ahead = path[nearest:]
    outside = np.flatnonzero((ahead < 0.0).any(axis=1) | (ahead >= np.array(size)).any(axis=1))
    return ahead[: outside[0]] if len(outside) and outside[0] > 0 else ahead[: 1 if len(outside) else None]


def _fields(window: Costmap, path: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distances (rows + 2, columns + 2) to the path and to its last point, round the obstacles [cells]."""
    free = (window.cells < INSCRIBED) | (window.cells == UNKNOWN)
    weights = np.zeros((free.shape[0] + 2, free.shape[1] + 2), dtype=np.float32)
    weights[1:-1, 1:-1] = free
    cells = np.clip(np.floor(path[:, ::-1] / window.frame.resolution).astype(np.int64), 0, np.array(free.shape) - 1)
    flat = (cells[:, 0] + 1) * weights.shape[1] + cells[:, 1] + 1
    fields = []
    for sources in (np.unique(flat), flat[-1:]):
        costs = np.full(weights.size, np.inf)
        octile.search(weights, costs, sources, -1, False)
        fields.append(costs.reshape(weights.shape))
    return fields[0], fields[1]
