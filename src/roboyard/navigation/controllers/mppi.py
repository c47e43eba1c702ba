"""Model predictive path integral control (Williams et al. 2016), with the critics that users of Nav2 know.

Each call perturbs the last plan many times, drives every variant with the base's limits, and takes the mean of the
commands, weighted by exp(-cost / temperature).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.controllers.base import MotionLimits
from roboyard.navigation.controllers.mppi_kernels import (
    aim_costs,
    align_costs,
    furthest_reached,
    obstacle_costs,
    roll_out,
)
from roboyard.navigation.costmap import INSCRIBED, LETHAL, Costmap
from roboyard.navigation.errors import NavigationError, NoSafeCommand
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path


@dataclass(frozen=True, slots=True)
class Critics:
    """Weights; the defaults are Nav2's order of magnitude.

    Attributes:
        collision: Of touching an obstacle.
        cost: Of the mean cost of the cells passed, as a share of the highest.
        align: Of the mean distance to the path [1/m].
        follow: Of the distance to a point of the path ahead [1/m].
        angle: Of looking away from the path, when it bends more than ``angle_from`` [1/rad].
        goal: Of the mean distance to the goal, near it [1/m].
        goal_angle: Of the mean difference to the goal's heading, near it [1/rad].
        forward: Of driving backward [1/m].
        twirl: Of turning [1/rad].
        near_goal: Where the goal's critics take over from the path's [m].
        near_goal_angle: Where the goal's heading counts [m].
        angle_from: [rad].
        follow_ahead: How far beyond the farthest rollout's end the path's point lies [m].
    """

    collision: float = 1e6
    cost: float = 10.0
    align: float = 10.0
    follow: float = 5.0
    angle: float = 2.0
    goal: float = 5.0
    goal_angle: float = 3.0
    forward: float = 5.0
    twirl: float = 0.1
    near_goal: float = 1.0
    near_goal_angle: float = 0.5
    angle_from: float = 0.8
    follow_ahead: float = 0.3


@dataclass(frozen=True, slots=True)
class MppiConfig:
    """Size and sharpness of the search.

    Attributes:
        batch: Number of variants.
        steps: Of each.
        dt: Of a step [s].
        spread_vx: Standard deviation of the perturbation [m/s].
        spread_vy: The same sideways [m/s]; only for bases that can.
        spread_wz: The same of turning [rad/s].
        temperature: Of the weights: smaller follows the best variant only.
        gamma: Of keeping to the last plan.
        critics: What variants pay for.
        seed: Of the perturbations.

    Raises:
        ConfigError: a number out of range.
    """

    batch: int = 2000
    steps: int = 56
    dt: float = 0.05
    spread_vx: float = 0.2
    spread_vy: float = 0.2
    spread_wz: float = 0.4
    temperature: float = 0.3
    gamma: float = 0.015
    critics: Critics = field(default_factory=Critics)
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("batch", 2, 100_000), ("steps", 4, 1000)):
            if not low <= getattr(self, name) <= high:
                raise ConfigError(f"{name} = {getattr(self, name)}", where="MppiConfig", valid=f"{low} to {high}")
        for name in ("dt", "spread_vx", "spread_vy", "spread_wz", "temperature"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", where="MppiConfig", valid="a positive number")


class Mppi:
    """The controller; see the module.

    Args:
        footprint: Of the robot.
        limits: Of its base.
        config: Of the search.
    """

    def __init__(self, footprint: Footprint, limits: MotionLimits, config: MppiConfig = MppiConfig()) -> None:
        self._footprint = footprint
        self._limits = limits
        self._config = config
        self._omni = limits.sideways > 0.0
        self._rng = np.random.default_rng(config.seed)
        self._path: Path | None = None
        self._plan = np.zeros((3, config.steps))
        shape = (config.batch, config.steps)
        self._commands = np.zeros((3, *shape), dtype=np.float32)
        self._states = np.zeros((3, *shape), dtype=np.float32)

    def follow(self, path: Path) -> None:
        """See ``Controller``; the last plan is kept as the place to begin the search."""
        self._path = path

    def command(self, pose: SE2, twist: PlanarTwist, costmap: Costmap) -> PlanarTwist:
        """See ``Controller``."""
        if self._path is None:
            raise NavigationError("no path to follow", valid="follow(path) first")
        config, limits = self._config, self._limits
        T_grid_map = costmap.frame.T_map_grid.inverse()
        here = T_grid_map @ pose
        path = _in_grid(self._path, T_grid_map)
        self._sample()
        vx, vy, wz = self._commands
        xs, ys, yaws = self._states
        roll_out(
            vx, vy, wz, np.array([here.x, here.y, here.theta]), np.array(twist, dtype=np.float64),
            np.array([limits.forward, limits.backward, limits.sideways, limits.turn, limits.acceleration,
                      limits.turn_acceleration]), config.dt, xs, ys, yaws,
        )  # fmt: skip
        costs = np.zeros(config.batch)
        free = self._judge(here, path, costmap, costs)
        if not free:
            self._plan[:] = 0.0
            raise NoSafeCommand("every way the base could go touches an obstacle", valid="stop, then recover")
        return self._take(costs)

    def save(self) -> dict[str, Any]:
        """See ``Controller``."""
        return {"plan": self._plan.copy(), "random": copy.deepcopy(self._rng.bit_generator.state)}

    def load(self, saved: dict[str, Any]) -> None:
        """See ``Controller``."""
        self._plan[:] = saved["plan"]
        self._rng.bit_generator.state = copy.deepcopy(saved["random"])

    def _sample(self) -> None:
        """Variants of the last plan; the first is the plan itself, the second stands still."""
        config = self._config
        spreads = (config.spread_vx, config.spread_vy, config.spread_wz)
        for axis in range(3):
            if axis == 1 and not self._omni:
                continue
            commands = self._commands[axis]
            self._rng.standard_normal(out=commands, dtype=np.float32)
            commands *= np.float32(spreads[axis])
            commands[0] = 0.0
            commands += self._plan[axis].astype(np.float32)
            commands[1] = 0.0

    def _judge(self, here: SE2, path: NDArray[np.float64], costmap: Costmap, costs: NDArray[np.float64]) -> int:
        config, critics = self._config, self._config.critics
        xs, ys, yaws = self._states
        scale = 1.0 / costmap.frame.resolution
        to_goal = math.hypot(path[-1, 0] - here.x, path[-1, 1] - here.y)
        near_goal = to_goal < critics.near_goal
        nearest = int(np.argmin((path[:, 0] - here.x) ** 2 + (path[:, 1] - here.y) ** 2))
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path[:, :2], axis=0).T))])
        free = obstacle_costs(
            xs, ys, yaws, costmap.cells, self._footprint.border(costmap.frame.resolution) * scale, 1, scale, 2,
            np.array([critics.collision, 0.0, critics.cost, 1.0]), near_goal, costs,
        )  # fmt: skip
        if near_goal:
            look = ahead = len(path) - 1
            heading = critics.goal_angle if to_goal < critics.near_goal_angle else 0.0
            weights = np.array([0.0, 0.0, critics.goal, heading, critics.forward, critics.twirl])
        else:
            reach = config.steps * config.dt * self._limits.forward
            last = int(np.searchsorted(along, along[nearest] + 1.5 * reach + 0.5))
            furthest = furthest_reached(xs[::8], ys[::8], path[: last + 1], nearest)
            align_costs(xs, ys, yaws, path, along, _blocked(path, costmap), nearest, furthest, 4, critics.align, costs)
            ahead = min(int(np.searchsorted(along, along[furthest] + critics.follow_ahead)), len(path) - 1)
            look = ahead
            bend = abs(wrap_angle(math.atan2(path[look, 1] - here.y, path[look, 0] - here.x) - here.theta))
            weights = np.array(
                [critics.follow, critics.angle if bend > critics.angle_from else 0.0, 0.0, 0.0, critics.forward,
                 critics.twirl]
            )  # fmt: skip
        aim_costs(xs, ys, yaws, self._commands[0], path, weights, config.dt, ahead, look, costs)
        return int(free)

    def _take(self, costs: NDArray[np.float64]) -> PlanarTwist:
        """The weighted mean becomes the plan; its first command is the answer, the rest waits for the next call."""
        config = self._config
        spreads = (config.spread_vx, config.spread_vy, config.spread_wz)
        for axis in range(3):
            if axis == 1 and not self._omni:
                continue
            pull = config.gamma / spreads[axis] ** 2
            costs += pull * (self._commands[axis] @ self._plan[axis].astype(np.float32))
        weights = np.exp(-(costs - costs.min()) / config.temperature)
        weights = (weights / weights.sum()).astype(np.float32)
        for axis in range(3):
            if axis == 1 and not self._omni:
                continue
            self._plan[axis] = weights @ self._commands[axis]
        first = PlanarTwist(*(float(value) for value in self._plan[:, 0]))
        self._plan[:, :-1] = self._plan[:, 1:]
        return first


def _in_grid(path: Path, T_grid_map: SE2) -> NDArray[np.float64]:
    points = T_grid_map @ path.poses[:, :2]
    return np.column_stack([points, path.poses[:, 2] + T_grid_map.theta])


def _blocked(path: NDArray[np.float64], costmap: Costmap) -> NDArray[np.uint8]:
    """(n,) whether the robot's centre cannot be at a point of the path."""
    cells = np.floor(path[:, 1::-1] / costmap.frame.resolution).astype(np.int64)
    inside = costmap.frame.contains(cells)
    blocked = np.zeros(len(path), dtype=np.uint8)
    values = costmap.cells[cells[inside, 0], cells[inside, 1]]
    blocked[inside] = (values >= INSCRIBED) & (values <= LETHAL)
    return blocked
