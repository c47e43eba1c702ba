"""Velocity ramps: velocities that follow a desired value within speed, acceleration and optional jerk limits.

`RampLimits` states the limits, `step_velocity` is one step as a pure function, `Ramp` keeps the state, and
`PlanarRampLimits` does the same for all three velocities of a base. A ramp passes neither its target nor its limits,
with one exception: with a jerk limit, a target that is moved closer while the ramp still accelerates is passed by what
the jerk limit needs to reverse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from roboyard.config import Config, parameter
from roboyard.control.wheel_kinematics import PlanarTwist
from roboyard.errors import ConfigError


def require_positive(limits: object, *names: str) -> None:
    """Check that attributes of a record of limits are positive numbers or None.

    Raises:
        ConfigError: one is zero, negative or not a number.
    """
    for name in names:
        value = getattr(limits, name)
        if value is not None and not value > 0.0:
            raise ConfigError(f"{name} = {value}", location=type(limits).__name__, valid="a positive number")


@dataclass(frozen=True, slots=True)
class RampLimits:
    """Limits of one velocity; lengths are m or rad.

    Attributes:
        speed: Largest magnitude [1/s].
        acceleration: Largest acceleration when the magnitude grows [1/s²].
        deceleration: Largest acceleration when it shrinks [1/s²]; None: as ``acceleration``.
        jerk: Largest rate of change of the acceleration [1/s³]; infinite: none.
        reverse_speed: Largest magnitude below zero [1/s]; None: as ``speed``.
        deadband: Commanded magnitudes below it count as zero [1/s].
        min_speed: Smaller commanded magnitudes, other than zero, are raised to it [1/s].

    Raises:
        ConfigError: a value is negative or not a number, or ``min_speed`` is above a speed limit.
    """

    speed: float = math.inf
    acceleration: float = math.inf
    deceleration: float | None = None
    jerk: float = math.inf
    reverse_speed: float | None = None
    deadband: float = 0.0
    min_speed: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, "acceleration", "deceleration", "jerk")
        for name in ("speed", "reverse_speed", "deadband", "min_speed"):
            value = getattr(self, name)
            if value is not None and not value >= 0.0:
                raise ConfigError(f"{name} = {value}", location="RampLimits", valid="zero or more")
        min_limit = self.speed if not self.reverse_speed else min(self.speed, self.reverse_speed)
        if self.min_speed > min_limit:
            raise ConfigError(
                f"min_speed = {self.min_speed}", location="RampLimits", valid=f"at most the speed {min_limit}"
            )

    def clamp_target(self, target: float) -> float:
        """Return the target with dead band, minimum and speed limits applied."""
        magnitude = abs(target)
        if magnitude < self.deadband or magnitude == 0.0:
            return 0.0
        max_speed = self.speed if target > 0.0 or self.reverse_speed is None else self.reverse_speed
        return math.copysign(min(max(magnitude, self.min_speed), max_speed), target)


class DriveRampConfig(Config):
    """Limits of a base's forward and angular velocities, and of their changes."""

    speed: float = parameter(1.0, unit="m/s", low=0.0, high=50.0, runtime=True, doc="Largest speed forward.")
    reverse_speed: float = parameter(
        -1.0, unit="m/s", low=-1.0, high=50.0, runtime=True, doc="Largest speed backward; -1: as speed."
    )
    angular_speed: float = parameter(2.0, unit="rad/s", low=0.0, high=50.0, runtime=True, doc="Largest turning rate.")
    acceleration: float = parameter(
        1.0, unit="m/s²", low=1e-3, high=1e6, runtime=True, doc="Largest acceleration when the speed grows."
    )
    deceleration: float = parameter(
        0.0, unit="m/s²", low=0.0, high=1e6, runtime=True,
        doc="Largest acceleration when the speed shrinks; 0: as acceleration.",
    )  # fmt: skip
    angular_acceleration: float = parameter(
        3.0, unit="rad/s²", low=1e-3, high=1e6, runtime=True, doc="Largest angular acceleration."
    )

    def forward_limits(self) -> RampLimits:
        """Return the limits of the speed along the base's heading."""
        return RampLimits(
            speed=self.speed,
            acceleration=self.acceleration,
            deceleration=self.deceleration or None,
            reverse_speed=None if self.reverse_speed < 0.0 else self.reverse_speed,
        )

    def lateral_limits(self) -> RampLimits:
        """Return the limits of the speed across the base's heading: none is possible, unless a subclass says so."""
        return RampLimits(speed=0.0)

    def angular_limits(self) -> RampLimits:
        """Return the limits of the turning rate."""
        return RampLimits(speed=self.angular_speed, acceleration=self.angular_acceleration)


class JerkLimitedRampConfig(DriveRampConfig):
    """Limits of `DriveRampConfig` with jerk limits, dead bands and a separate angular deceleration."""

    angular_deceleration: float = parameter(
        0.0, unit="rad/s²", low=0.0, high=1e6, runtime=True,
        doc="Largest angular acceleration when the turning rate shrinks; 0: as angular_acceleration.",
    )  # fmt: skip
    jerk: float = parameter(
        math.inf, unit="m/s³", low=1e-3, high=math.inf, runtime=True,
        doc="Largest change of the acceleration; infinite: no limit.",
    )  # fmt: skip
    angular_jerk: float = parameter(
        math.inf, unit="rad/s³", low=1e-3, high=math.inf, runtime=True,
        doc="Largest change of the angular acceleration; infinite: no limit.",
    )  # fmt: skip
    deadband: float = parameter(
        0.0, unit="m/s", low=0.0, high=1.0, runtime=True, doc="Commanded speed below which the target is standstill."
    )
    angular_deadband: float = parameter(
        0.0, unit="rad/s", low=0.0, high=1.0, runtime=True,
        doc="Commanded turning rate below which the base does not turn.",
    )  # fmt: skip

    def forward_limits(self) -> RampLimits:
        """Return the limits of the speed along the base's heading."""
        return replace(super().forward_limits(), jerk=self.jerk, deadband=self.deadband)

    def angular_limits(self) -> RampLimits:
        """Return the limits of the turning rate."""
        return replace(
            super().angular_limits(),
            deceleration=self.angular_deceleration or None,
            jerk=self.angular_jerk,
            deadband=self.angular_deadband,
        )


class RampState(NamedTuple):
    """A velocity and its rate of change."""

    velocity: float = 0.0
    acceleration: float = 0.0


def step_velocity(state: RampState, desired: float, dt: float, limits: RampLimits) -> RampState:
    """The state ``dt`` seconds later, on the way to ``desired``.

    Args:
        state: Now.
        desired: Target, shaped by ``limits.clamp_target`` first.
        dt: Step [s]; must be positive and should stay the same while jerk is limited.
        limits: What is allowed.
    """
    target = limits.clamp_target(desired)
    if math.isinf(limits.jerk):
        velocity = _step_with_acceleration_limit(state.velocity, target, dt, limits)
        return RampState(velocity, (velocity - state.velocity) / dt)
    return _step_with_jerk_limit(state, target, dt, limits)


def _step_with_acceleration_limit(velocity: float, target: float, dt: float, limits: RampLimits) -> float:
    """Constant acceleration; a step through zero brakes to it and accelerates for the rest."""
    acceleration = limits.acceleration
    deceleration = acceleration if limits.deceleration is None else limits.deceleration
    if velocity * target < 0.0:
        time_to_zero = abs(velocity) / deceleration
        if time_to_zero >= dt:
            return velocity - math.copysign(deceleration * dt, velocity)
        velocity, dt = 0.0, dt - time_to_zero
    change = (acceleration if abs(target) > abs(velocity) else deceleration) * dt
    gap = target - velocity
    return target if abs(gap) <= change else velocity + math.copysign(change, gap)


def _step_with_jerk_limit(state: RampState, target: float, dt: float, limits: RampLimits) -> RampState:
    """Time-optimal step under a jerk limit, exact for the sampled system v' = v + a'·dt."""
    velocity, acceleration = state
    gap = target - velocity
    desired_acceleration = math.copysign(max_approach_rate(abs(gap), limits.jerk, dt), gap)
    low, high = _acceleration_range(velocity, target, limits)
    desired_acceleration = min(max(desired_acceleration, low), high)
    max_change = limits.jerk * dt
    acceleration = min(max(desired_acceleration, acceleration - max_change), acceleration + max_change)
    if abs(gap - acceleration * dt) <= 1e-12 * max(1.0, abs(target)):
        return RampState(target, acceleration)
    return RampState(velocity + acceleration * dt, acceleration)


def max_approach_rate(gap: float, jerk: float, dt: float) -> float:
    """Return the largest acceleration from which m steps, each less by jerk·dt, cover at most ``gap``.

    The steps a, a - jdt, a - 2jdt, … sum to dt·(m·a - jdt·m·(m-1)/2) with m = ceil(a / jdt) of them above zero. One
    derivative lower the result is the largest velocity that still stops within a distance.
    """
    rate_step = jerk * dt
    distance_step = rate_step * dt
    if gap == 0.0 or distance_step == 0.0:
        return 0.0
    steps = max(1.0, math.ceil(0.5 * (math.sqrt(1.0 + 8.0 * gap / distance_step) - 1.0)))
    return gap / (steps * dt) + 0.5 * rate_step * (steps - 1.0)


def _acceleration_range(velocity: float, target: float, limits: RampLimits) -> tuple[float, float]:
    """Return the range of accelerations; towards a target beyond zero the smaller limit applies on both sides."""
    acceleration = limits.acceleration
    deceleration = acceleration if limits.deceleration is None else limits.deceleration
    smaller = min(acceleration, deceleration)
    high = acceleration if velocity >= 0.0 else deceleration if target <= 0.0 else smaller
    low = acceleration if velocity <= 0.0 else deceleration if target >= 0.0 else smaller
    return -low, high


class Ramp:
    """A ramp with its state.

    Args:
        limits: Limits of the velocity; they may be replaced.

    Attributes:
        state: Present velocity and acceleration.
    """

    def __init__(self, limits: RampLimits) -> None:
        self.limits = limits
        self.state = RampState()

    @property
    def velocity(self) -> float:
        """Present velocity [1/s]."""
        return self.state.velocity

    def step(self, desired: float, dt: float) -> float:
        """Advance by ``dt`` seconds towards ``desired``; return the new velocity."""
        self.state = step_velocity(self.state, desired, dt, self.limits)
        return self.state.velocity

    def reset(self, velocity: float = 0.0) -> None:
        """Set the velocity without a ramp, e.g. to standstill after an emergency stop."""
        self.state = RampState(velocity)


PlanarRampState = tuple[RampState, RampState, RampState]
ZERO_STATE: PlanarRampState = (RampState(), RampState(), RampState())


@dataclass(frozen=True, slots=True)
class PlanarRampLimits:
    """Limits of a base's velocities: forward, lateral and angular."""

    forward: RampLimits
    lateral: RampLimits
    angular: RampLimits

    def step(self, state: PlanarRampState, desired: PlanarTwist, dt: float) -> PlanarRampState:
        """Return the velocities ``dt`` seconds later on their ramps to ``desired``, see `step_velocity`."""
        return (
            step_velocity(state[0], desired.vx, dt, self.forward),
            step_velocity(state[1], desired.vy, dt, self.lateral),
            step_velocity(state[2], desired.wz, dt, self.angular),
        )


class HolonomicRampConfig(DriveRampConfig):
    """Limits of a base's forward, lateral and angular velocities, and of their changes."""

    lateral_speed: float = parameter(
        1.0, unit="m/s", low=0.0, high=50.0, runtime=True, doc="Largest speed sideways, of bases that move so."
    )

    def lateral_limits(self) -> RampLimits:
        """Return the limits of the speed across the base's heading."""
        return RampLimits(
            speed=self.lateral_speed, acceleration=self.acceleration, deceleration=self.deceleration or None
        )


def twist_from_state(state: PlanarRampState) -> PlanarTwist:
    """Return the velocities of a state."""
    return PlanarTwist(state[0].velocity, state[1].velocity, state[2].velocity)
