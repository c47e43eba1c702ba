"""Model predictive path integral control (Williams et al. 2016), with the critics that users of Nav2 know.

Each call varies the last plan many times, drives every variant with the base's limits, and takes the mean of the
commands, weighted by exp(-cost / temperature).  Among the variants are drives of pure pursuit and standing still
(Trevisan and Alonso-Mora, Biased-MPPI, 2024): whatever the last plan has run into, the way along the path is tried.
Variations last for some steps, since those that change with every step cancel out before the base has moved.
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
from roboyard.navigation.controllers.arrival import Tolerance
from roboyard.navigation.controllers.base import MotionLimits
from roboyard.navigation.controllers.following import Leg, PathFollower
from roboyard.navigation.controllers.mppi_kernels import motion_costs, obstacle_costs, path_costs, pursue, roll_out
from roboyard.navigation.controllers.surroundings import TOUCHED, Surroundings
from roboyard.navigation.errors import NoSafeCommand
from roboyard.navigation.footprint import Footprint


class Critics(Config):
    """Weights.  The base's limits are no critic: every variant is driven within them."""

    collision: float = parameter(1e6, doc="Cost of touching an obstacle.")
    cost: float = parameter(
        4.0,
        unit="1/m",
        doc="Cost of a distance where costs are highest; less than `follow`, or the robot would rather stand.",
    )
    haste: float = parameter(
        0.0, unit="1/m²", doc="Cost of speed there: of a distance driven within 2 dt, in proportion to its length."
    )
    align: float = parameter(8.0, unit="1/m", doc="Cost of the mean distance from the path.")
    follow: float = parameter(6.0, unit="1/m", doc="Cost of the length of the path that is left at the end.")
    angle: float = parameter(
        1.0, unit="1/rad", doc="Cost of a heading off the path's at the end; not for bases that move sideways."
    )
    goal: float = parameter(5.0, unit="1/m", doc="Cost of the mean distance to the goal, near it.")
    goal_angle: float = parameter(1.0, unit="1/rad", doc="Cost of the difference to the goal's heading, near it.")
    forward: float = parameter(
        5.0, unit="1/m", doc="Cost of driving backward where the path is driven forward, and the reverse."
    )
    twirl: float = parameter(0.2, unit="1/rad", doc="Cost of turning.")
    deadband: float = parameter(
        35.0, doc="Cost of velocities within the dead bands, by their distance to the ends [1/m, 1/rad]."
    )
    deadbands: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), low=0.0, doc="Smallest vx, vy and wz that the base follows [m/s, m/s, rad/s]."
    )
    near_goal: float = parameter(1.0, unit="m", doc="Distance to the goal within which it counts.")
    near_goal_angle: float = parameter(0.4, unit="m", doc="Distance to the goal within which its heading counts.")

    def validate(self) -> None:
        """Check the number of dead bands."""
        if len(self.deadbands) != 3:
            raise ConfigError(f"deadbands = {self.deadbands}", location="Critics", valid="three numbers")


class MppiConfig(Config):
    """Size and sharpness of the search."""

    batch: int = parameter(2000, low=32, high=100_000, doc="Number of variants.")
    steps: int = parameter(56, low=4, high=1000, doc="Number of steps of a variant.")
    dt: float = parameter(0.05, unit="s", low=1e-6, high=1e3, doc="Duration of a step, and time between commands.")
    spread_vx: float = parameter(
        0.35, low=1e-6, high=1e3, doc="Standard deviation of the variation of vx, as a share of the highest speed."
    )
    spread_vy: float = parameter(
        0.35,
        low=1e-6,
        high=1e3,
        doc="Standard deviation of the variation of vy, likewise; only for bases that move sideways.",
    )
    spread_wz: float = parameter(0.4, low=1e-6, high=1e3, doc="Standard deviation of the variation of wz, likewise.")
    lasting: float = parameter(
        0.85, low=0.0, high=1.0, doc="Correlation of the variations of successive steps, below 1."
    )
    temperature: float = parameter(
        0.3, low=1e-6, high=1e6, doc="Temperature of the weights: the smaller, the more the best variant counts."
    )
    critics: Critics = parameter(factory=Critics, doc="Costs of the variants.")
    seed: int = parameter(0, doc="Seed of the variations.")

    def validate(self) -> None:
        """Check the correlation."""
        if self.lasting == 1.0:
            raise ConfigError("lasting = 1", location="MppiConfig", valid="0 to less than 1")


_LOOKS = (0.3, 0.5, 0.8, 1.2)  # how far ahead the pursued points lie [m]
_SPEEDS = (1.0, 0.7, 0.4, 0.2)  # of the highest
_STRIDE = 2  # looks at obstacles
_PATH_STRIDE = 4  # looks at the path


class Mppi(PathFollower):
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
        tolerance: Tolerance | None = None,
    ) -> None:
        config, tolerance = config or MppiConfig(), tolerance or Tolerance()
        expect_kernels(motion_costs, obstacle_costs, path_costs, pursue, roll_out)
        speed = max(limits.forward, limits.backward, limits.sideways)
        super().__init__(footprint, limits, config.dt, speed * config.steps * config.dt, tolerance)
        self._config = config
        self._omni = limits.sideways > 0.0
        self._spreads = np.array(
            [config.spread_vx * limits.forward, config.spread_vy * limits.sideways, config.spread_wz * limits.turn],
            dtype=np.float32,
        )
        self._rng = np.random.default_rng(config.seed)
        self._plan = np.zeros((3, config.steps), dtype=np.float32)
        shape = (config.batch, config.steps)
        self._commands = np.zeros((3, *shape), dtype=np.float32)
        self._states = np.zeros((3, *shape), dtype=np.float32)

    def save_state(self) -> dict[str, Any]:
        """See ``Controller``."""
        random = copy.deepcopy(self._rng.bit_generator.state)
        return super().save_state() | {"plan": self._plan.copy(), "random": random}

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Controller``."""
        super().load_state(saved)
        self._plan[:] = saved["plan"]
        self._rng.bit_generator.state = copy.deepcopy(saved["random"])

    def _steer(self, seen: Surroundings, leg: Leg, twist: PlanarTwist, limits: MotionLimits) -> PlanarTwist:
        config = self._config
        pose, now = seen.ground.start, np.array(twist, dtype=np.float64)
        bounds = np.array(
            [limits.forward, limits.backward, limits.sideways, limits.turn, limits.acceleration,
             limits.turn_acceleration]
        )  # fmt: skip
        path, along, left = _ahead(leg.poses, self._reach)
        first = self._propose(leg, path, pose, now, bounds)
        vx, vy, wz = self._commands
        xs, ys, yaws = self._states
        roll_out(
            vx, vy, wz, self._plan, first, self._spreads, config.lasting, pose, now, bounds, config.dt, xs, ys, yaws
        )
        costs = np.zeros(config.batch)
        if not self._judge(seen, leg, path, along, left, costs):
            self._plan[:] = 0.0
            raise NoSafeCommand("every way the base could go touches an obstacle", valid="stop, then recover")
        self._take(seen, costs, pose, now, bounds)
        command = PlanarTwist(*(float(value) for value in self._plan[:, 0]))
        self._plan[:, :-1] = self._plan[:, 1:]
        return command

    def _propose(
        self,
        leg: Leg,
        path: NDArray[np.float64],
        pose: NDArray[np.float64],
        now: NDArray[np.float64],
        bounds: NDArray[np.float64],
    ) -> int:
        """Fill the batch: the plan itself, standing still, pursuits, and random numbers from the row returned on."""
        for axis in (0, 1, 2) if self._omni else (0, 2):
            self._rng.standard_normal(out=self._commands[axis], dtype=np.float32)
        self._commands[:, 0] = self._plan
        self._commands[:, 1] = 0.0
        highest = bounds[1] if leg.backward else bounds[0]
        pursuits = np.array([(look, share * highest) for look in _LOOKS for share in _SPEEDS])
        vx, vy, wz = self._commands
        pursue(vx, vy, wz, pursuits, leg.backward, 2, path, pose, now, bounds, self._config.dt)
        return 2 + len(pursuits)

    def _judge(
        self,
        seen: Surroundings,
        leg: Leg,
        path: NDArray[np.float64],
        along: NDArray[np.float64],
        left: float,
        costs: NDArray[np.float64],
    ) -> int:
        """Add what the variants cost; how many of them touch nothing."""
        config, critics = self._config, self._config.critics
        vx, vy, wz = self._commands
        xs, ys, yaws = self._states
        free = obstacle_costs(
            xs, ys, yaws, seen.ground, _STRIDE, np.array([critics.collision, critics.cost, critics.haste]), costs
        )
        weights = np.array(
            [
                critics.align,
                critics.follow,
                critics.angle if left > critics.near_goal and not self._omni else 0.0,
                critics.goal if left < critics.near_goal else 0.0,
                critics.goal_angle if left < critics.near_goal_angle else 0.0,
            ]
        )
        path_costs(xs, ys, yaws, path, along, _blocked(path, seen), _PATH_STRIDE, weights, costs)
        way = -critics.forward if leg.backward else critics.forward
        motion = np.array([way, critics.twirl, critics.deadband])
        motion_costs(vx, vy, wz, self._omni, motion, np.array(critics.deadbands), config.dt, costs)
        return int(free)

    def _take(
        self,
        seen: Surroundings,
        costs: NDArray[np.float64],
        pose: NDArray[np.float64],
        now: NDArray[np.float64],
        bounds: NDArray[np.float64],
    ) -> None:
        """The weighted mean becomes the plan, or the best variant where the mean of good ways is none."""
        weights = np.exp((costs.min() - costs) / self._config.temperature)
        weights = (weights / weights.sum()).astype(np.float32)
        mean = np.zeros((3, 1, self._config.steps), dtype=np.float32)
        for axis in (0, 1, 2) if self._omni else (0, 2):
            mean[axis, 0] = weights @ self._commands[axis]
        vx, vy, wz = mean
        xs, ys, yaws = np.empty_like(mean)
        roll_out(vx, vy, wz, self._plan, 1, self._spreads, 0.0, pose, now, bounds, self._config.dt, xs, ys, yaws)
        verdict = np.zeros(1)
        free = obstacle_costs(xs, ys, yaws, seen.ground, 1, np.zeros(3), verdict)
        self._plan[:] = mean[:, 0] if free else self._commands[:, int(np.argmin(costs))]


def _ahead(poses: NDArray[np.float64], reach: float) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The path as far as variants can come, the length up to each of its points, and that of the whole path."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(poses[:, :2], axis=0).T))])
    count = int(np.searchsorted(along, reach + 1.0)) + 1
    return np.ascontiguousarray(poses[:count]), along[:count], float(along[-1])


def _blocked(path: NDArray[np.float64], seen: Surroundings) -> NDArray[np.uint8]:
    """(n,) whether the robot's centre cannot be at a point of the path."""
    cells = np.floor(path[:, 1::-1] / seen.ground.resolution).astype(np.int64)
    inside = ((cells >= 0) & (cells < np.array(seen.ground.cells.shape))).all(axis=1)
    blocked = np.zeros(len(path), dtype=np.uint8)
    blocked[inside] = seen.ground.nearness[cells[inside, 0], cells[inside, 1]] == TOUCHED
    return blocked
