"""Reaching: a joint on its way to a position or at a wanted velocity, within its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from roboyard.control.ramps import longest_approach
from roboyard.errors import ConfigError


class Reach(NamedTuple):
    """Where a joint shall be, and how fast it moves [rad, rad/s or m, m/s]."""

    position: float
    velocity: float = 0.0


@dataclass(frozen=True, slots=True)
class ReachLimits:
    """What one joint may do.

    Attributes:
        lower: Least position [rad or m]; may be -inf.
        upper: Largest.
        speed: [rad/s or m/s].
        acceleration: Also when it slows down [rad/s² or m/s²].

    Raises:
        ConfigError: speed or acceleration is not positive, or the positions leave no room.
    """

    lower: float
    upper: float
    speed: float
    acceleration: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ConfigError(f"from {self.lower} to {self.upper}", location="ReachLimits", valid="lower below upper")
        for name in ("speed", "acceleration"):
            if not getattr(self, name) > 0.0:
                raise ConfigError(f"{name} = {getattr(self, name)}", location="ReachLimits", valid="a positive number")

    def toward(self, now: Reach, target: float, dt: float) -> Reach:
        """The state ``dt`` seconds later on the fastest way to ``target`` and to standstill there.

        Sampled exactly: positions change by the new velocity times ``dt``, velocities by at most the acceleration times
        ``dt``, and a joint that stands reaches any target without passing it.
        """
        gap = min(max(target, self.lower), self.upper) - now.position
        wanted = math.copysign(min(self.speed, longest_approach(abs(gap), self.acceleration, dt)), gap)
        velocity = self._changed(now.velocity, wanted, dt)
        if abs(gap - velocity * dt) <= 1e-12 * max(1.0, abs(target)):
            return Reach(now.position + gap, velocity)
        return Reach(now.position + velocity * dt, velocity)

    def at(self, now: Reach, velocity: float, dt: float) -> Reach:
        """The state ``dt`` seconds later if ``velocity`` is wanted; it slows down before the joint's limits."""
        room = (self.upper if velocity > 0.0 else self.lower) - now.position
        most = min(self.speed, longest_approach(max(math.copysign(room, velocity * room), 0.0), self.acceleration, dt))
        wanted = math.copysign(min(abs(velocity), most), velocity)
        velocity = self._changed(now.velocity, wanted, dt)
        return Reach(min(max(now.position + velocity * dt, self.lower), self.upper), velocity)

    def _changed(self, velocity: float, wanted: float, dt: float) -> float:
        most = self.acceleration * dt
        return min(max(wanted, velocity - most), velocity + most)
