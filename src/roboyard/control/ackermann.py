"""Ackermann kinematics: two steered wheels whose axes meet with the unsteered axle in one point."""

from __future__ import annotations

import math
from typing import NamedTuple

from roboyard.config import Config, parameter
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


class AckermannGeometry(Config):
    """Two steered wheels, and an unsteered axle behind them (or ahead of them, with a negative wheelbase).

    At curvature κ of the unsteered axle's middle the left wheel steers by atan(L·κ / (1 - κ·w/2)), the right by
    atan(L·κ / (1 + κ·w/2)), with wheelbase L and kingpins w apart: the axes of all wheels meet at the point 1/κ to the
    left on the unsteered axle, so that none has to slip.
    """

    wheelbase: float = parameter(
        1.0, unit="m", low=-50.0, high=50.0, runtime=True, doc="Distance L from the unsteered to the steered axle."
    )
    kingpin_width: float = parameter(
        0.8, unit="m", low=1e-3, high=20.0, runtime=True,
        doc="Distance w between the axes about which the steered wheels turn.",
    )  # fmt: skip

    def validate(self) -> None:
        """Check that there are two axles."""
        if self.wheelbase == 0.0:
            raise ConfigError("wheelbase = 0", valid="a length other than 0 m")

    def steering(self, curvature: float) -> tuple[float, float]:
        """Angles of the left and right steered wheels [rad] at a curvature [1/m] within the steering limit."""
        along, half = self.wheelbase * curvature, 0.5 * curvature * self.kingpin_width
        return math.atan2(along, 1.0 - half), math.atan2(along, 1.0 + half)

    def curvature_of(self, left: float, right: float) -> float:
        """κ [1/m] at which the steered wheels stand, the mean of what each says of it."""
        tan_left, tan_right = math.tan(left), math.tan(right)
        half = 0.5 * self.kingpin_width
        return 0.5 * (tan_left / (self.wheelbase + half * tan_left) + tan_right / (self.wheelbase - half * tan_right))


class AckermannSteering(AckermannGeometry):
    """Steered wheels that turn only so far."""

    steering_limit: float = parameter(
        0.5, unit="rad", low=1e-3, high=1.57, runtime=True, doc="Largest angle of a steered wheel."
    )

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


class AckermannWheels(AckermannGeometry):
    """Steered and unsteered wheels that roll without slip."""

    wheel_radius: float = parameter(0.1, unit="m", low=1e-3, high=10.0, runtime=True, doc="Radius of the wheels.")
    track: float = parameter(
        1.0, unit="m", low=1e-3, high=20.0, runtime=True, doc="Distance between the middles of left and right wheels."
    )

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


class AckermannDrive(AckermannSteering, AckermannWheels):
    """A car: two steered wheels with their limit, and wheels that roll."""


def ackermann_twist(speed: float, curvature: float, axle_x: float) -> PlanarTwist:
    """Return the twist of a base frame.

    Args:
        speed: Of the unsteered axle's middle [m/s].
        curvature: Of its path [1/m].
        axle_x: Position of the unsteered axle ahead of the base frame [m].
    """
    turn = speed * curvature
    return PlanarTwist(speed, -turn * axle_x if axle_x else 0.0, turn)
