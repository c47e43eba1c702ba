"""Velocity smoother: limits the changes of velocity commands, along the commanded arc.

Parameters and behavior are those of Nav2's velocity smoother.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.control.velocity_ramps import PlanarRampLimits, RampLimits, RampState, step_velocity
from roboyard.errors import ConfigError

_UNLIMITED = RampLimits()
_SPEED_TOLERANCE = 1e-12
"""Speeds that differ by less are equal: an axis at its target does not limit the others."""


@dataclass(frozen=True, slots=True)
class SmootherConfig:
    """Configuration of `VelocitySmoother`.

    Attributes:
        limits: Speed, acceleration, deceleration and dead band of each axis.
        preserves_curvature: Whether all axes are scaled together where one reaches its limit, so that the base stays on
            the commanded arc; otherwise each axis is limited by itself.
        timeout: Age from which a command counts as standstill [s].

    Raises:
        ConfigError: there is a jerk limit, which only the drive's ramps have, or the time is out of range.
    """

    limits: PlanarRampLimits = field(default_factory=lambda: PlanarRampLimits(_UNLIMITED, _UNLIMITED, _UNLIMITED))
    preserves_curvature: bool = True
    timeout: float = 1.0

    def __post_init__(self) -> None:
        if any(not math.isinf(axis.jerk) for axis in self._axes):
            raise ConfigError("a limit of jerk", location="SmootherConfig", valid="none; the drive's ramps have one")
        if not 0.0 < self.timeout <= 3600.0:
            raise ConfigError(f"timeout = {self.timeout}", location="SmootherConfig", valid="more than 0, to 3600 s")

    @property
    def _axes(self) -> tuple[RampLimits, RampLimits, RampLimits]:
        return self.limits.forward, self.limits.lateral, self.limits.angular

    def clamp_target(self, target: PlanarTwist) -> PlanarTwist:
        """Return the target with dead bands and speed limits applied."""
        clamped = PlanarTwist(*(axis.clamp_target(speed) for axis, speed in zip(self._axes, target, strict=True)))
        if not self.preserves_curvature:
            return clamped
        scaling = min((s / w for s, w in zip(clamped, target, strict=True) if s and w), default=1.0)
        return PlanarTwist(*(w * scaling if s else 0.0 for s, w in zip(clamped, target, strict=True)))

    def step(self, current: PlanarTwist, command: PlanarTwist, dt: float) -> PlanarTwist:
        """Return the smoothed twist a time step after ``current``, towards ``command``.

        Args:
            current: The base's present twist, or the last smoothed command.
            command: The commanded twist.
            dt: Time step [s].
        """
        target = self.clamp_target(command)
        reached = [
            step_velocity(RampState(speed), goal, dt, replace(axis, deadband=0.0)).velocity  # it is applied already
            for speed, goal, axis in zip(current, target, self._axes, strict=True)
        ]
        if not self.preserves_curvature:
            return PlanarTwist(*reached)
        # a straight line in velocities, as far as the slowest axis gets: from or to rest the curvature stays
        components = zip(current, reached, target, strict=True)
        fraction = min(((r - n) / (t - n) for n, r, t in components if abs(t - n) > _SPEED_TOLERANCE), default=1.0)
        if fraction >= 1.0:
            return target
        return PlanarTwist(*(n + fraction * (t - n) for n, t in zip(current, target, strict=True)))


class VelocitySmoother:
    """Holds the newest command and the smoothed command.

    Args:
        config: Limits and time-out.

    Attributes:
        twist: The last smoothed command.
    """

    def __init__(self, config: SmootherConfig) -> None:
        self.config = config
        self.twist = ZERO_TWIST
        self._command = ZERO_TWIST
        self._command_ns: int | None = None

    def set_command(self, command: PlanarTwist, now_ns: int) -> None:
        """Take a command.

        Raises:
            ConfigError: it is not finite.
        """
        if not all(map(math.isfinite, command)):
            raise ConfigError(f"a command of {tuple(command)}", location="velocity smoother", valid="finite speeds")
        self._command, self._command_ns = command, now_ns

    def is_timed_out(self, now_ns: int) -> bool:
        """Return whether the newest command is older than the time-out."""
        return self._command_ns is None or now_ns - self._command_ns > self.config.timeout * 1e9

    def step(self, now_ns: int, dt: float, measured: PlanarTwist | None = None) -> PlanarTwist:
        """Return the next smoothed command.

        Args:
            now_ns: Time [ns].
            dt: Since the last step [s].
            measured: The measured twist (closed loop); None: the last smoothed command is taken as the present twist
                (open loop).
        """
        command = ZERO_TWIST if self.is_timed_out(now_ns) else self._command
        self.twist = self.config.step(self.twist if measured is None else measured, command, dt)
        return self.twist

    def save_state(self) -> tuple[tuple[float, ...], tuple[float, ...], int | None]:
        """Return the state as plain data."""
        return tuple(self.twist), tuple(self._command), self._command_ns

    def load_state(self, state: tuple[tuple[float, ...], tuple[float, ...], int | None]) -> None:
        """Restore what `save_state` returned."""
        self.twist, self._command, self._command_ns = PlanarTwist(*state[0]), PlanarTwist(*state[1]), state[2]
