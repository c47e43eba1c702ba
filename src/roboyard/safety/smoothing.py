"""Velocity smoother: commands that jump become commands that a base can follow, along the arc that was meant.

As Nav2's velocity smoother, with its parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from roboyard.control import PlanarTwist
from roboyard.control.planar_ramps import PlanarLimits
from roboyard.control.ramps import RampLimits, RampState, next_velocity
from roboyard.errors import ConfigError

_UNLIMITED = RampLimits()
_ROUNDING = 1e-12
"""Speeds that differ by less are one: an axis that is there does not hold up the others."""


@dataclass(frozen=True, slots=True)
class SmootherConfig:
    """How commands are smoothed.

    Attributes:
        limits: Of each axis: speed, acceleration, deceleration, deadband.
        keep_curvature: Whether all axes are slowed down together where one reaches its limit, so that the base stays on
            the arc; else each takes what it can.
        timeout: An older command counts as standstill [s].

    Raises:
        ConfigError: a limit of jerk, which is the drive's business, or a time out of range.
    """

    limits: PlanarLimits = field(default_factory=lambda: PlanarLimits(_UNLIMITED, _UNLIMITED, _UNLIMITED))
    keep_curvature: bool = True
    timeout: float = 1.0

    def __post_init__(self) -> None:
        if any(not math.isinf(axis.jerk) for axis in self._axes):
            raise ConfigError("a limit of jerk", location="SmootherConfig", valid="none; the drive's ramps have one")
        if not 0.0 < self.timeout <= 3600.0:
            raise ConfigError(f"timeout = {self.timeout}", location="SmootherConfig", valid="more than 0, to 3600 s")

    @property
    def _axes(self) -> tuple[RampLimits, RampLimits, RampLimits]:
        return self.limits.forward, self.limits.sideways, self.limits.turning

    def shape(self, wanted: PlanarTwist) -> PlanarTwist:
        """The nearest in meaning that dead bands and speed limits allow."""
        shaped = PlanarTwist(*(axis.shape(speed) for axis, speed in zip(self._axes, wanted, strict=True)))
        if not self.keep_curvature:
            return shaped
        share = min((s / w for s, w in zip(shaped, wanted, strict=True) if s and w), default=1.0)
        return PlanarTwist(*(w * share if s else 0.0 for s, w in zip(shaped, wanted, strict=True)))

    def step(self, now: PlanarTwist, wanted: PlanarTwist, dt: float) -> PlanarTwist:
        """The twist ``dt`` seconds after ``now`` on the way to ``wanted``.

        Args:
            now: What the base does, or was last told.
            wanted: What it is to do.
            dt: Step [s].
        """
        target = self.shape(wanted)
        reached = [
            next_velocity(RampState(speed), goal, dt, replace(axis, deadband=0.0)).velocity  # shaped already
            for speed, goal, axis in zip(now, target, self._axes, strict=True)
        ]
        if not self.keep_curvature:
            return PlanarTwist(*reached)
        # the straight way through velocities, as far as the slowest axis comes: from or to rest the curvature stays
        parts = zip(now, reached, target, strict=True)
        share = min(((r - n) / (t - n) for n, r, t in parts if abs(t - n) > _ROUNDING), default=1.0)
        if share >= 1.0:
            return target
        return PlanarTwist(*(n + share * (t - n) for n, t in zip(now, target, strict=True)))


STANDSTILL = PlanarTwist()


class VelocitySmoother:
    """Holds the newest command and what was made of it.

    Args:
        config: How commands are smoothed.

    Attributes:
        twist: What was last told the base.
    """

    def __init__(self, config: SmootherConfig) -> None:
        self.config = config
        self.twist = STANDSTILL
        self._wanted = STANDSTILL
        self._heard_ns: int | None = None

    def command(self, wanted: PlanarTwist, now_ns: int) -> None:
        """Take a command.

        Raises:
            ConfigError: it is not finite.
        """
        if not all(map(math.isfinite, wanted)):
            raise ConfigError(f"a command of {tuple(wanted)}", location="velocity smoother", valid="finite speeds")
        self._wanted, self._heard_ns = wanted, now_ns

    def is_timed_out(self, now_ns: int) -> bool:
        """Whether nobody commands any more."""
        return self._heard_ns is None or now_ns - self._heard_ns > self.config.timeout * 1e9

    def step(self, now_ns: int, dt: float, measured: PlanarTwist | None = None) -> PlanarTwist:
        """What to tell the base now.

        Args:
            now_ns: Time [ns].
            dt: Since the last step [s].
            measured: What the base does (closed loop); None: it is believed to do what it was told (open loop).
        """
        wanted = STANDSTILL if self.is_timed_out(now_ns) else self._wanted
        self.twist = self.config.step(self.twist if measured is None else measured, wanted, dt)
        return self.twist

    def save_state(self) -> tuple[tuple[float, ...], tuple[float, ...], int | None]:
        """State as plain data."""
        return tuple(self.twist), tuple(self._wanted), self._heard_ns

    def load_state(self, state: tuple[tuple[float, ...], tuple[float, ...], int | None]) -> None:
        """Take back what ``save`` gave."""
        self.twist, self._wanted, self._heard_ns = PlanarTwist(*state[0]), PlanarTwist(*state[1]), state[2]
