"""Speed limits that come from outside while the robot drives: absolute, or a share of what the robot may do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from roboyard.control import PlanarTwist
from roboyard.errors import InputError
from roboyard.navigation.controllers import MotionLimits


@dataclass(frozen=True, slots=True)
class SpeedLimit:
    """How fast the robot may be, as nav2_msgs/SpeedLimit says it.

    Attributes:
        value: Speed [m/s], or percents of the robot's own fastest; 0: no limit.
        percentage: Which of the two.

    Raises:
        InputError: a value that is negative or not finite, or more than 100 percent.
    """

    value: float = 0.0
    percentage: bool = False

    def __post_init__(self) -> None:
        most = 100.0 if self.percentage else math.inf
        if not (math.isfinite(self.value) and 0.0 <= self.value <= most):
            valid = "0 to 100 percent" if self.percentage else "m/s, 0 (no limit) or more"
            raise InputError(f"a speed limit of {self.value}", valid=valid)

    def speed(self, fastest: float) -> float:
        """What it allows a robot whose own fastest is ``fastest``; never more than that [m/s]."""
        if self.value == 0.0:
            return fastest
        return fastest * self.value / 100.0 if self.percentage else min(self.value, fastest)

    def limits(self, own: MotionLimits) -> MotionLimits:
        """The robot's limits under it: all velocities in the same ratio, accelerations as they are."""
        ratio = self.speed(own.forward) / own.forward
        return replace(
            own,
            forward=own.forward * ratio,
            backward=own.backward * ratio,
            sideways=own.sideways * ratio,
            turn=own.turn * ratio,
        )

    def slowed(self, twist: PlanarTwist, fastest: float) -> PlanarTwist:
        """A command under it: slower where it is too fast, along the same arc."""
        speed, allowed = math.hypot(twist.vx, twist.vy), self.speed(fastest)
        if speed <= allowed:
            return twist
        ratio = allowed / speed
        return PlanarTwist(twist.vx * ratio, twist.vy * ratio, twist.wz * ratio)


def tightest(limits: tuple[SpeedLimit, ...], fastest: float) -> SpeedLimit:
    """The one of several limits that allows least, or none at all where there are none."""
    return min(limits, key=lambda limit: limit.speed(fastest), default=SpeedLimit())
