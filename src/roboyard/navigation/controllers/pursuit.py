"""Regulated pure pursuit (Macenski, Singh, Martin, Ginés 2023): a circle through a point of the path ahead.

The speed is what the bend, the obstacles near by, the way to the goal and the base allow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import Config, parameter
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import wrap_angle
from roboyard.navigation.controllers.arrival import Tolerance
from roboyard.navigation.controllers.base import MotionLimits
from roboyard.navigation.controllers.following import Leg, PathFollower
from roboyard.navigation.controllers.surroundings import Ground, Surroundings, empty_ground, touches
from roboyard.navigation.costmap import INSCRIBED
from roboyard.navigation.errors import NoSafeCommand
from roboyard.navigation.footprint import Footprint


class PursuitConfig(Config):
    """How far to look, and what slows the robot."""

    period: float = parameter(0.05, unit="s", low=1e-3, high=1e3, doc="Time between commands.")
    look_time: float = parameter(
        0.8,
        unit="s",
        low=0.0,
        high=60.0,
        doc="Time in which the robot drives to the point that it pursues, within the next two distances.",
    )
    look_min: float = parameter(0.25, unit="m", low=1e-3, high=1e3, doc="Smallest distance of that point.")
    look_max: float = parameter(1.2, unit="m", low=1e-3, high=1e3, doc="Largest distance of that point.")
    turn_from: float = parameter(
        0.785,
        unit="rad",
        low=1e-3,
        high=1e3,
        doc="Angle from which the robot turns on the spot towards that point first.",
    )
    side_acceleration: float = parameter(1.0, unit="m/s²", low=1e-3, high=1e3, doc="Largest centripetal acceleration.")
    cost_slow: float = parameter(
        0.4, low=0.0, high=1.0, doc="Share of the speed that is left where the costs are highest."
    )
    slowest: float = parameter(
        0.1, unit="m/s", low=1e-3, high=1e3, doc="Speed below which neither bends nor costs slow the robot down."
    )
    braking: float = parameter(
        0.5,
        low=1e-3,
        high=1e3,
        doc="Share of the base's deceleration that is planned with, before the goal and before obstacles.",
    )

    def validate(self) -> None:
        """Check the order of the distances."""
        if self.look_min > self.look_max:
            raise ConfigError(f"look_min = {self.look_min}", location="PursuitConfig", valid=f"at most {self.look_max}")


class RegulatedPursuit(PathFollower):
    """The controller; see the module.  It follows the path as it is: what stands on it is waited for, not passed.

    Args:
        footprint: Of the robot.
        limits: Of its base.
        config: How far to look, and what slows it.
        tolerance: At the goal.
    """

    def __init__(
        self,
        footprint: Footprint,
        limits: MotionLimits,
        config: PursuitConfig | None = None,
        tolerance: Tolerance | None = None,
    ) -> None:
        config, tolerance = config or PursuitConfig(), tolerance or Tolerance()
        expect_kernels(arc_room)
        braking = limits.forward**2 / (2.0 * config.braking * limits.acceleration)
        reach = config.look_max + braking
        super().__init__(footprint, limits, config.period, reach, tolerance)
        self._config = config
        self._turning = False

    def save_state(self) -> dict[str, Any]:
        """See ``Controller``."""
        return super().save_state() | {"turning": self._turning}

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Controller``."""
        super().load_state(saved)
        self._turning = saved["turning"]

    def _steer(self, seen: Surroundings, leg: Leg, twist: PlanarTwist, limits: MotionLimits) -> PlanarTwist:
        config = self._config
        way = -1.0 if leg.backward and limits.backward > 0.0 else 1.0
        highest = limits.backward if way < 0.0 else limits.forward
        here = seen.here
        points = here.inverse() @ leg.poses[:, :2]
        along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
        left = math.hypot(*points[0]) + along[-1] if len(points) > 1 else math.hypot(*points[-1])
        look = min(max(abs(twist.vx) * config.look_time, config.look_min), config.look_max)
        while True:
            x, y = _at(points, along, look)
            side = wrap_angle(math.atan2(y * way, x * way))
            if self._turns(side, twist):
                return PlanarTwist(0.0, 0.0, self._turn(side))
            bend = 2.0 * y / max(x * x + y * y, 1e-9)
            room = self._room(seen, way, bend, math.hypot(x, y))
            # where the circle cuts a corner, a nearer point keeps closer to the path
            if room == math.inf or look <= config.look_min:
                break
            look = max(0.7 * look, config.look_min)
        speed = min(highest, limits.turn / max(abs(bend), 1e-9))
        slow = min(math.sqrt(config.side_acceleration / max(abs(bend), 1e-9)), highest * self._cost_share(seen))
        speed = min(speed, max(slow, min(config.slowest, highest)))
        speed = min(speed, self._stopping_speed(left))
        if room < math.inf:
            speed = min(speed, self._stopping_speed(room))
            if room < 0.5 * seen.ground.resolution:
                raise NoSafeCommand("an obstacle stands on the path", valid="another path")
        return PlanarTwist(way * speed, 0.0, way * speed * bend)

    def _turns(self, side: float, twist: PlanarTwist) -> bool:
        """Whether to turn on the spot first; once begun, until it nearly looks along the path."""
        limit = self._config.turn_from * (0.25 if self._turning else 1.0)
        self._turning = abs(side) > limit
        return self._turning

    def _stopping_speed(self, way: float) -> float:
        """From which the base can stop within a way [m]."""
        brake, period = self._config.braking * self._base.acceleration, self._period
        return max(math.sqrt((0.5 * brake * period) ** 2 + 2.0 * brake * way) - 0.5 * brake * period, 0.0)

    def _cost_share(self, seen: Surroundings) -> float:
        """Share of the speed that the cost at the robot leaves."""
        return 1.0 - (1.0 - self._config.cost_slow) * min(seen.cost(), INSCRIBED) / INSCRIBED

    def _room(self, seen: Surroundings, way: float, bend: float, chord: float) -> float:
        """How far the robot comes along a circle before it touches something [m]; infinite if it gets to its end."""
        half = min(abs(bend) * chord / 2.0, 1.0)
        arc = chord if half < 1e-6 else 2.0 * math.asin(half) / abs(bend)
        return float(arc_room(seen.ground, way, bend, arc))


def _at(points: NDArray[np.float64], along: NDArray[np.float64], look: float) -> tuple[float, float]:
    """Where the path leaves the circle of radius ``look`` about the robot, or its end."""
    distance = np.hypot(points[:, 0], points[:, 1])
    beyond = np.flatnonzero(distance >= look)
    if not len(beyond):
        return float(points[-1, 0]), float(points[-1, 1])
    k = int(beyond[0])
    if k == 0:
        return float(points[0, 0]), float(points[0, 1])
    a, b = points[k - 1], points[k]
    step = b - a
    aa, ab = float(step @ step), float(a @ step)
    share = (-ab + math.sqrt(max(ab * ab - aa * (float(a @ a) - look * look), 0.0))) / max(aa, 1e-12)
    x, y = a + min(max(share, 0.0), 1.0) * step
    return float(x), float(y)


@kernel(examples=lambda: [(empty_ground(), 1.0, 0.0, 1.0)])
def arc_room(ground: Ground, way: float, bend: float, length: float) -> float:
    """How far along a circle the robot touches nothing [m]; infinite if it gets to the end of ``length``.

    Args:
        ground: What lies about it.
        way: 1 forward, -1 backward.
        bend: Curvature [1/m].
        length: How far to look [m].
    """
    count = max(math.ceil(length / ground.resolution), 1)
    step = length / count
    x, y, theta = ground.start
    for k in range(count):
        middle = theta + 0.5 * way * bend * step
        x += way * math.cos(middle) * step
        y += way * math.sin(middle) * step
        theta += way * bend * step
        if touches(ground, x, y, theta, True):
            return k * step
    return np.inf
