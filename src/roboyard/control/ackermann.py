"""Ackermann kinematics: two steered wheels whose axes meet with the unsteered axle in one point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from roboyard.control.kinematics import PlanarTwist
from roboyard.errors import ConfigError

_STANDING = 1e-6
"""Speeds below it count as standing, where a curvature has no meaning [m/s]."""


class WheelRims(NamedTuple):
    """Something of each of the four wheels: speeds [rad/s] or ways [rad]."""

    left: float
    right: float
    left_steered: float
    right_steered: float


@dataclass(frozen=True, slots=True)
class AckermannDrive:
    """A car: an unsteered axle, and ahead of it (or behind, with a negative wheelbase) two steered wheels.

    At curvature κ of the unsteered axle's middle the left wheel steers by atan(L·κ / (1 - κ·w/2)), the right by
    atan(L·κ / (1 + κ·w/2)), with wheelbase L and kingpins w apart: the axes of all wheels meet at the point 1/κ to the
    left on the unsteered axle, so that none has to slip.

    Attributes:
        wheel_radius: [m].
        wheelbase: L, from the unsteered to the steered axle [m].
        track: Between the middles of left and right wheels [m].
        kingpin_width: w, between the axes about which the steered wheels turn [m].
        steering_limit: Largest angle of a steered wheel [rad].
        axle_x: Of the unsteered axle ahead of the base frame's origin [m].

    Raises:
        ConfigError: a length is not positive or not finite, or the limit is not below a right angle.
    """

    wheel_radius: float
    wheelbase: float
    track: float
    kingpin_width: float
    steering_limit: float = 0.5
    axle_x: float = 0.0

    def __post_init__(self) -> None:
        for name in ("wheel_radius", "track", "kingpin_width"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", location="AckermannDrive", valid="a positive length [m]")
        if not (math.isfinite(self.wheelbase) and self.wheelbase != 0.0):
            raise ConfigError(f"wheelbase = {self.wheelbase}", location="AckermannDrive", valid="a length [m]")
        if not 0.0 < self.steering_limit < 0.5 * math.pi:
            raise ConfigError(
                f"steering_limit = {self.steering_limit}", location="AckermannDrive", valid="between 0 and pi/2 rad"
            )
        if not math.isfinite(self.axle_x):
            raise ConfigError(f"axle_x = {self.axle_x}", location="AckermannDrive", valid="a finite number [m]")

    @property
    def largest_curvature(self) -> float:
        """At which the inner wheel stands at its limit [1/m]."""
        tangent = math.tan(self.steering_limit)
        return tangent / (abs(self.wheelbase) + 0.5 * tangent * self.kingpin_width)

    def curvature(self, twist: PlanarTwist) -> float:
        """κ [1/m] that comes nearest to ``twist``, within the steering limit.

        Standing, a wish to turn steers as far as it goes, ready to drive off that way.
        """
        top = self.largest_curvature
        if abs(twist.vx) < _STANDING:
            return math.copysign(top, twist.wz) if twist.wz else 0.0
        return min(max(twist.wz / twist.vx, -top), top)

    def steering(self, curvature: float) -> tuple[float, float]:
        """Angles of the left and right steered wheels [rad] at a curvature [1/m] within ``largest_curvature``."""
        along, half = self.wheelbase * curvature, 0.5 * curvature * self.kingpin_width
        return math.atan2(along, 1.0 - half), math.atan2(along, 1.0 + half)

    def curvature_of(self, left: float, right: float) -> float:
        """κ [1/m] at which the steered wheels stand, the mean of what each says of it."""
        tan_left, tan_right = math.tan(left), math.tan(right)
        half = 0.5 * self.kingpin_width
        return 0.5 * (tan_left / (self.wheelbase + half * tan_left) + tan_right / (self.wheelbase - half * tan_right))

    def wheel_speeds(self, speed: float, curvature: float) -> WheelRims:
        """Wheel speeds [rad/s] at which all roll without slip.

        Args:
            speed: Of the unsteered axle's middle [m/s].
            curvature: [1/m].
        """
        half_track, half_pins = 0.5 * curvature * self.track, 0.5 * curvature * self.kingpin_width
        outside = half_track - half_pins  # steered wheels stand outside their kingpins, on their own axles
        along = curvature * self.wheelbase
        v = speed / self.wheel_radius
        return WheelRims(
            v * (1.0 - half_track),
            v * (1.0 + half_track),
            v * (math.hypot(1.0 - half_pins, along) - outside),
            v * (math.hypot(1.0 + half_pins, along) + outside),
        )

    def way(self, rims: WheelRims, curvature: float) -> float:
        """Way of the unsteered axle's middle [m], the mean of what the wheels say [rad]; of speeds its rate.

        A wheel that is not driven or not read is nan and left out.
        """
        unit = self.wheel_speeds(self.wheel_radius, curvature)  # of one radian each at a way of r
        found = [rim / share for rim, share in zip(rims, unit, strict=True) if not math.isnan(rim) and share > 1e-3]
        return self.wheel_radius * sum(found) / len(found) if found else 0.0

    def body_twist(self, speed: float, curvature: float) -> PlanarTwist:
        """Twist of the base frame when the unsteered axle moves at ``speed`` [m/s] and ``curvature`` [1/m]."""
        turn = speed * curvature
        return PlanarTwist(speed, -turn * self.axle_x if self.axle_x else 0.0, turn)
