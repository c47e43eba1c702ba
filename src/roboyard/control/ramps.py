"""Ramps: velocities that follow a wanted value within speed, acceleration and, if asked, jerk limits.

``RampLimits`` says what is allowed, ``next_velocity`` is one step as a pure function, ``Ramp`` keeps the state.
A ramp never goes beyond its target, nor beyond its limits.  The one exception is physics: with a jerk limit, a target
that is moved to the near side while the ramp still accelerates is passed by what the jerk limit needs to turn round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from roboyard.config import Config, parameter
from roboyard.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RampLimits:
    """What one velocity may do; in m or rad.

    Attributes:
        speed: Largest magnitude [1/s].
        acceleration: When the magnitude grows [1/s²].
        deceleration: When it shrinks [1/s²]; None = as ``acceleration``.
        jerk: Largest change of acceleration [1/s³]; infinite = none.
        reverse_speed: Largest magnitude below zero [1/s]; None = as ``speed``.
        deadband: Wanted magnitudes below it count as zero [1/s].
        minimum: Smaller wanted magnitudes, other than zero, are raised to it [1/s].

    Raises:
        ConfigError: a value is negative or not a number, or ``minimum`` is above a speed limit.
    """

    speed: float = math.inf
    acceleration: float = math.inf
    deceleration: float | None = None
    jerk: float = math.inf
    reverse_speed: float | None = None
    deadband: float = 0.0
    minimum: float = 0.0

    def __post_init__(self) -> None:
        for name in ("acceleration", "deceleration", "jerk"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise ConfigError(f"{name} = {value}", location="RampLimits", valid="a positive number")
        for name in ("speed", "reverse_speed", "deadband", "minimum"):
            value = getattr(self, name)
            if value is not None and not value >= 0.0:
                raise ConfigError(f"{name} = {value}", location="RampLimits", valid="zero or more")
        slowest = self.speed if not self.reverse_speed else min(self.speed, self.reverse_speed)
        if self.minimum > slowest:
            raise ConfigError(f"minimum = {self.minimum}", location="RampLimits", valid=f"at most the speed {slowest}")

    def shape(self, wanted: float) -> float:
        """The reachable target nearest in meaning to ``wanted``: dead band, minimum and speed limits applied."""
        size = abs(wanted)
        if size < self.deadband or size == 0.0:
            return 0.0
        top = self.speed if wanted > 0.0 or self.reverse_speed is None else self.reverse_speed
        return math.copysign(min(max(size, self.minimum), top), wanted)


class RampConfig(Config):
    """Limits of a base's velocities forward and in turning, and of their changes."""

    speed: float = parameter(1.0, unit="m/s", low=0.0, high=50.0, runtime=True, doc="Largest speed forward.")
    reverse_speed: float = parameter(
        -1.0, unit="m/s", low=-1.0, high=50.0, runtime=True, doc="Largest speed backward; -1: as speed."
    )
    turn_rate: float = parameter(2.0, unit="rad/s", low=0.0, high=50.0, runtime=True, doc="Largest turning rate.")
    acceleration: float = parameter(
        1.0, unit="m/s²", low=1e-3, high=1e6, runtime=True, doc="Largest acceleration when the speed grows."
    )
    deceleration: float = parameter(
        0.0, unit="m/s²", low=0.0, high=1e6, runtime=True,
        doc="Largest acceleration when the speed shrinks; 0: as acceleration.",
    )  # fmt: skip
    turn_acceleration: float = parameter(
        3.0, unit="rad/s²", low=1e-3, high=1e6, runtime=True, doc="Largest angular acceleration."
    )

    def forward(self) -> RampLimits:
        """Return the limits of the speed along the base's heading."""
        return RampLimits(
            speed=self.speed,
            acceleration=self.acceleration,
            deceleration=self.deceleration or None,
            reverse_speed=None if self.reverse_speed < 0.0 else self.reverse_speed,
        )

    def sideways(self) -> RampLimits:
        """Return the limits of the speed across the base's heading: none is possible, unless a subclass says so."""
        return RampLimits(speed=0.0)

    def turning(self) -> RampLimits:
        """Return the limits of the turning rate."""
        return RampLimits(speed=self.turn_rate, acceleration=self.turn_acceleration)


class SmoothRampConfig(RampConfig):
    """The same with limits of jerk, with dead bands and with another limit for slower turning."""

    turn_deceleration: float = parameter(
        0.0, unit="rad/s²", low=0.0, high=1e6, runtime=True,
        doc="Largest angular acceleration when the turning rate shrinks; 0: as turn_acceleration.",
    )  # fmt: skip
    jerk: float = parameter(
        math.inf, unit="m/s³", low=1e-3, high=math.inf, runtime=True,
        doc="Largest change of the acceleration; infinite: no limit.",
    )  # fmt: skip
    turn_jerk: float = parameter(
        math.inf, unit="rad/s³", low=1e-3, high=math.inf, runtime=True,
        doc="Largest change of the angular acceleration; infinite: no limit.",
    )  # fmt: skip
    deadband: float = parameter(
        0.0, unit="m/s", low=0.0, high=1.0, runtime=True, doc="Commanded speed below which the base stands."
    )
    turn_deadband: float = parameter(
        0.0, unit="rad/s", low=0.0, high=1.0, runtime=True,
        doc="Commanded turning rate below which the base does not turn.",
    )  # fmt: skip

    def forward(self) -> RampLimits:
        """Return the limits of the speed along the base's heading."""
        return replace(super().forward(), jerk=self.jerk, deadband=self.deadband)

    def turning(self) -> RampLimits:
        """Return the limits of the turning rate."""
        return replace(
            super().turning(),
            deceleration=self.turn_deceleration or None,
            jerk=self.turn_jerk,
            deadband=self.turn_deadband,
        )


class RampState(NamedTuple):
    """A velocity and its rate of change."""

    velocity: float = 0.0
    acceleration: float = 0.0


def next_velocity(state: RampState, wanted: float, dt: float, limits: RampLimits) -> RampState:
    """The state ``dt`` seconds later, on the way to ``wanted``.

    Args:
        state: Now.
        wanted: Target, shaped by ``limits.shape`` first.
        dt: Step [s]; must be positive and should stay the same while jerk is limited.
        limits: What is allowed.
    """
    target = limits.shape(wanted)
    if math.isinf(limits.jerk):
        velocity = _linear(state.velocity, target, dt, limits)
        return RampState(velocity, (velocity - state.velocity) / dt)
    return _smooth(state, target, dt, limits)


def _linear(velocity: float, target: float, dt: float, limits: RampLimits) -> float:
    """Constant acceleration; a step through zero brakes to it and accelerates for the rest."""
    speeding = limits.acceleration
    slowing = speeding if limits.deceleration is None else limits.deceleration
    if velocity * target < 0.0:
        stop = abs(velocity) / slowing
        if stop >= dt:
            return velocity - math.copysign(slowing * dt, velocity)
        velocity, dt = 0.0, dt - stop
    change = (speeding if abs(target) > abs(velocity) else slowing) * dt
    gap = target - velocity
    return target if abs(gap) <= change else velocity + math.copysign(change, gap)


def _smooth(state: RampState, target: float, dt: float, limits: RampLimits) -> RampState:
    """Time-optimal step under a jerk limit, exact for the sampled system v' = v + a'·dt."""
    velocity, acceleration = state
    gap = target - velocity
    wanted = math.copysign(longest_approach(abs(gap), limits.jerk, dt), gap)
    low, high = _range(velocity, target, limits)
    wanted = min(max(wanted, low), high)
    swing = limits.jerk * dt
    acceleration = min(max(wanted, acceleration - swing), acceleration + swing)
    if abs(gap - acceleration * dt) <= 1e-12 * max(1.0, abs(target)):
        return RampState(target, acceleration)
    return RampState(velocity + acceleration * dt, acceleration)


def longest_approach(gap: float, jerk: float, dt: float) -> float:
    """Largest acceleration from which m steps, each less by jerk·dt, cover at most ``gap``.

    The steps a, a - jdt, a - 2jdt, … sum to dt·(m·a - jdt·m·(m-1)/2) with m = ceil(a / jdt) of them above zero.  One
    derivative lower it is the largest velocity that still stops within a distance.
    """
    swing = jerk * dt
    unit = swing * dt
    if gap == 0.0 or unit == 0.0:
        return 0.0
    steps = max(1.0, math.ceil(0.5 * (math.sqrt(1.0 + 8.0 * gap / unit) - 1.0)))
    return gap / (steps * dt) + 0.5 * swing * (steps - 1.0)


def _range(velocity: float, target: float, limits: RampLimits) -> tuple[float, float]:
    """Lowest and highest acceleration; towards a target beyond zero the smaller limit holds on both sides of it."""
    speeding = limits.acceleration
    slowing = speeding if limits.deceleration is None else limits.deceleration
    smaller = min(speeding, slowing)
    high = speeding if velocity >= 0.0 else slowing if target <= 0.0 else smaller
    low = speeding if velocity <= 0.0 else slowing if target >= 0.0 else smaller
    return -low, high


class Ramp:
    """A ramp with its state.

    Args:
        limits: What is allowed; may be replaced while running.

    Attributes:
        state: Velocity and acceleration now.
    """

    def __init__(self, limits: RampLimits) -> None:
        self.limits = limits
        self.state = RampState()

    @property
    def velocity(self) -> float:
        """Velocity now [1/s]."""
        return self.state.velocity

    def step(self, wanted: float, dt: float) -> float:
        """Go on by ``dt`` seconds towards ``wanted``; returns the new velocity."""
        self.state = next_velocity(self.state, wanted, dt, self.limits)
        return self.state.velocity

    def reset(self, velocity: float = 0.0) -> None:
        """Be at ``velocity`` without any ramp, e.g. at standstill after an emergency stop."""
        self.state = RampState(velocity)
