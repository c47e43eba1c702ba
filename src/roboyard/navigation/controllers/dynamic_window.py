"""Dynamic Window Approach (Fox, Burgard, Thrun 1997) and Trajectory Rollout (Gerkey, Konolige 2008).

Both try a grid of velocities, simulate each, leave out those that touch an obstacle, and take the cheapest by where it
ends: near the path, near the local goal, away from obstacles.  They differ in what the base can reach: within one
control period (window), or at the end of the simulation (rollout); of that, too, only a period's share is commanded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.errors import ConfigError
from roboyard.navigation.controllers.arrival import Tolerance
from roboyard.navigation.controllers.base import MotionLimits
from roboyard.navigation.controllers.following import Leg, PathFollower
from roboyard.navigation.controllers.surroundings import TOUCHED, Surroundings
from roboyard.navigation.controllers.window_kernels import judge_velocities, lattice
from roboyard.navigation.errors import NoSafeCommand
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path
from roboyard.navigation.planning import octile
from roboyard.navigation.planning.ground import Ground


class WindowConfig(Config):
    """Samples and weights, with the names' meaning of dwa_local_planner."""

    samples: tuple[int, int, int] = parameter((20, 1, 20), low=1, high=1000, doc="Numbers of samples of vx, vy and wz.")
    horizon: float = parameter(1.7, unit="s", low=1e-3, high=1e3, doc="Duration of the simulation.")
    period: float = parameter(0.05, unit="s", low=1e-3, high=1e3, doc="Time between commands.")
    rollout: bool = parameter(False, doc="Trajectory Rollout instead of the dynamic window.")
    way_step: float = parameter(0.05, unit="m", low=1e-3, high=1e3, doc="Distance between checks of obstacles.")
    turn_step: float = parameter(0.1, unit="rad", low=1e-3, high=1e3, doc="Turn between checks of obstacles.")
    path: float = parameter(32.0, unit="1/m", doc="Weight of the distance between the end and the path.")
    goal: float = parameter(24.0, unit="1/m", doc="Weight of the distance between the end and the local goal.")
    nose: float = parameter(
        0.5, doc="Weight of the same distances for a point ahead of the robot, which turns it along the path."
    )
    nose_ahead: float = parameter(0.325, unit="m", doc="Distance of that point ahead of the robot.")
    obstacles: float = parameter(8.0, doc="Weight of the highest cost met, as a share of an obstacle's.")
    turning: float = parameter(0.0, unit="s/rad", doc="Weight of the turning rate.")
    slowest: float = parameter(0.1, unit="m/s", doc="Smallest speed of a sample that counts.")
    slowest_turn: float = parameter(0.1, unit="rad/s", doc="Smallest turning rate of a sample that counts.")
    reach: float = parameter(
        2.0,
        unit="m",
        low=1e-3,
        high=1e3,
        doc="Distance along the path to the local goal; farther where the simulation leads farther.",
    )

    def validate(self) -> None:
        """Check the number of samples."""
        if len(self.samples) != 3:
            raise ConfigError(f"samples = {self.samples}", location="WindowConfig", valid="three numbers")


class DynamicWindow(PathFollower):
    """The controller; see the module.

    Args:
        footprint: Of the robot.
        limits: Of its base.
        config: Samples and weights.
        tolerance: At the goal.
    """

    _MOST_BALKS = 10  # so often in a row it may find no way on before it has come on along the path

    def __init__(
        self,
        footprint: Footprint,
        limits: MotionLimits,
        config: WindowConfig | None = None,
        tolerance: Tolerance | None = None,
    ) -> None:
        config, tolerance = config or WindowConfig(), tolerance or Tolerance()
        expect_kernels(judge_velocities, lattice)
        self._farthest = max(limits.forward, limits.backward, limits.sideways) * config.horizon + config.nose_ahead
        super().__init__(footprint, limits, config.period, max(config.reach, self._farthest), tolerance)
        self._config = config
        self._balked_at, self._balks = 0, 0

    def follow(self, path: Path) -> None:
        """See ``Controller``."""
        super().follow(path)
        self._balked_at, self._balks = 0, 0

    def save_state(self) -> dict[str, Any]:
        """See ``Controller``."""
        return super().save_state() | {"balked_at": self._balked_at, "balks": self._balks}

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Controller``."""
        super().load_state(saved)
        self._balked_at, self._balks = saved["balked_at"], saved["balks"]

    def _steer(self, seen: Surroundings, leg: Leg, twist: PlanarTwist, limits: MotionLimits) -> PlanarTwist:
        config = self._config
        path, left = _ahead(leg.poses[:, :2], self._reach)
        # to the path's end and no farther: what stands beyond it must not keep the robot from it
        left = max(left, self._CUSP)
        limits = limits.slowed(max(math.sqrt(limits.acceleration * left), config.slowest))
        horizon = min(config.horizon, left / max(math.hypot(twist.vx, twist.vy), config.slowest))
        samples = self._samples(twist, limits)
        costs = np.empty(len(samples))
        ramp = np.array([limits.acceleration, limits.acceleration, limits.turn_acceleration])
        # at the goal the nose would arrive first, and hold the robot back
        nose = config.nose if left > 2.0 * config.nose_ahead else 0.0
        weights = np.array(
            [config.path, config.goal, config.path * nose, config.goal * nose, config.obstacles, config.turning]
        )
        judge_velocities(
            samples, np.array(twist, dtype=np.float64), ramp if config.rollout else np.full(3, np.inf), horizon,
            config.way_step, config.turn_step, seen.ground, *_fields(seen, path, self._farthest), weights,
            -config.nose_ahead if leg.backward else config.nose_ahead, costs,
        )  # fmt: skip
        costs[self._dawdles(samples, limits)] = np.inf
        braking = PlanarTwist(limits.acceleration, limits.acceleration, limits.turn_acceleration)
        for k in np.argsort(costs, kind="stable"):
            command = PlanarTwist(*(float(value) for value in samples[k]))
            if not math.isfinite(costs[k]):
                break
            if seen.stops_clear(command, braking, config.period):  # looks closer than the simulation
                return command
        if self._index > self._balked_at:
            self._balked_at, self._balks = self._index, 0
        self._balks += 1
        moves = math.hypot(twist.vx, twist.vy) > 0.02 or abs(twist.wz) > 0.05
        if moves and self._balks <= self._MOST_BALKS:
            return STANDSTILL  # slower ones lead less far, and from a stand it can turn either way
        self._balks = 0
        raise NoSafeCommand("every velocity the base could take leads into an obstacle", valid="stop, then recover")

    def _dawdles(self, samples: NDArray[np.float64], limits: MotionLimits) -> NDArray[np.bool_]:
        """(n,) who hardly moves: standing still is cheap where obstacles are near, and leads nowhere."""
        config = self._config
        slow = np.hypot(samples[:, 0], samples[:, 1]) < min(config.slowest, 0.5 * limits.forward)
        return np.asarray(slow & (np.abs(samples[:, 2]) < min(config.slowest_turn, 0.5 * limits.turn)))

    def _samples(self, twist: PlanarTwist, limits: MotionLimits) -> NDArray[np.float64]:
        """(n, 3) velocities that the base can reach, zero among them where it can."""
        config = self._config
        span = config.horizon if config.rollout else config.period
        ramp = (limits.acceleration, limits.acceleration, limits.turn_acceleration)
        lows = (-limits.backward, -limits.sideways, -limits.turn)
        highs = (limits.forward, limits.sideways, limits.turn)
        first, last = np.empty(3), np.empty(3)
        for k, count in enumerate(config.samples):
            change = ramp[k] * span if count > 1 else 0.0
            first[k] = min(max(twist[k] - change, lows[k]), highs[k])
            last[k] = max(min(twist[k] + change, highs[k]), lows[k])
        return lattice(first, last, np.array(config.samples))


def _ahead(path: NDArray[np.float64], reach: float) -> tuple[NDArray[np.float64], float]:
    """The path's next part of length ``reach``, however it winds, and the length of all that is left of it."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    return path[: int(np.searchsorted(along, reach, side="right"))], float(along[-1])


def _fields(
    seen: Surroundings, path: NDArray[np.float64], reach: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distances (rows + 2, columns + 2) to the path and to its last free place, round obstacles [cells].

    As far as the robot can get by ``reach`` [m]; infinite beyond.
    """
    here, scale = seen.ground, 1.0 / seen.ground.resolution
    free = here.nearness != TOUCHED
    ground = Ground.framed(free.astype(np.uint8), np.eye(1, 256, 1, dtype=np.float32)[0])  # 1 is free, and costs 1
    cells = np.floor(path[:, ::-1] * scale).astype(np.int64)
    cells = cells[((cells >= 0) & (cells < np.array(free.shape))).all(axis=1)]
    flat = (cells[:, 0] + 1) * ground.cells.shape[1] + cells[:, 1] + 1
    reachable = flat[free[cells[:, 0], cells[:, 1]]]
    row, column = math.floor(here.start[1] * scale), math.floor(here.start[0] * scale)
    on_map = 0 <= row < free.shape[0] and 0 <= column < free.shape[1]
    start = ground.flat((row, column)) if on_map else -1
    # steps to eight neighbours lead farther than the straight way, by a share and by the cells at its ends
    beyond = math.hypot(1.0, math.sqrt(2.0) - 1.0) * reach * scale + 4.0
    fields = []
    for sources in (np.unique(flat), reachable[-1:] if len(reachable) else flat[-1:]):
        costs = np.full(ground.cells.size, np.inf)
        octile.search(ground, costs, sources, start, beyond, False)
        fields.append(costs.reshape(ground.cells.shape))
    return fields[0], fields[1]
