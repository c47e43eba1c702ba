"""Wheel kinematics of differential, mecanum and Ackermann drives: from a desired body twist to wheel speeds, and back.

Each drive is a frozen record that fulfills `WheelKinematics`; drive nodes and odometry know only that protocol.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.errors import ConfigError


class PlanarTwist(NamedTuple):
    """Velocity of the base frame in the plane, in its own axes.

    Attributes:
        vx: Speed forward [m/s].
        vy: Speed to the left [m/s].
        wz: Angular speed, counter-clockwise positive [rad/s].
    """

    vx: float = 0.0
    vy: float = 0.0
    wz: float = 0.0


ZERO_TWIST = PlanarTwist()


class WheelKinematics(Protocol):
    """Linear map between a planar twist and the speeds of the wheel groups."""

    @property
    def wheels(self) -> tuple[str, ...]:
        """Names of the wheel groups, in the order of the arrays; all joints of a group have the same speed."""
        ...

    def wheel_speeds(self, twist: PlanarTwist) -> NDArray[np.float64]:
        """Return the wheel speeds (n,) for a twist [rad/s]; components that the drive cannot follow are ignored."""
        ...

    def body_twist(self, speeds: NDArray[np.float64]) -> PlanarTwist:
        """Return the base frame's twist at wheel speeds (n,) [rad/s]; for wheel angles [rad] the displacement."""
        ...


class DifferentialWheels(Config):
    """Wheels on two driven sides, as differential drive or, with ``slip_factor`` > 1, skid steering.

    Wheels that cannot steer must slip sideways to turn, so a skid-steered base turns less than rolling without slip
    predicts.  One factor k on the track models it: left, right = v / r ∓ ω·k·c / (2r), with wheel radius r and track c.
    k is found by calibration; a bachelor thesis (MIPT 2014) found 1.26402 ± 0.01564 for its simulated rover.
    """

    wheel_radius: float = parameter(
        0.1, unit="m", low=1e-3, high=10.0, runtime=True, doc="Nominal radius r of the wheels."
    )
    track: float = parameter(
        0.35,
        unit="m",
        low=1e-3,
        high=20.0,
        runtime=True,
        doc="Distance c between middles of left and right wheels.",
    )
    slip_factor: float = parameter(
        1.0, low=0.1, high=10.0, runtime=True,
        doc="Factor k by which the track of skid steering seems wider; 1: rolling without slip.",
    )  # fmt: skip
    left_radius_scale: float = parameter(
        1.0, low=0.5, high=2.0, runtime=True, doc="True over nominal radius of the left wheels, from calibration."
    )
    right_radius_scale: float = parameter(
        1.0, low=0.5, high=2.0, runtime=True, doc="True over nominal radius of the right wheels, from calibration."
    )

    @property
    def wheels(self) -> tuple[str, ...]:
        """``("left", "right")``."""
        return ("left", "right")

    @property
    def effective_track(self) -> float:
        """Track k·c of the drive without slip that turns in the same way [m]."""
        return self.slip_factor * self.track

    def left_right_speeds(self, vx: float, wz: float) -> tuple[float, float]:
        """Return the speeds of the left and right wheels [rad/s] for ``vx`` [m/s] and ``wz`` [rad/s]."""
        rotation_speed = 0.5 * wz * self.effective_track
        return (
            (vx - rotation_speed) / (self.wheel_radius * self.left_radius_scale),
            (vx + rotation_speed) / (self.wheel_radius * self.right_radius_scale),
        )

    def wheel_speeds(self, twist: PlanarTwist) -> NDArray[np.float64]:
        """Return the left and right speeds (2,) [rad/s]; ``twist.vy`` follows from ``wz`` and is ignored."""
        return np.array(self.left_right_speeds(twist.vx, twist.wz))

    def travel(self, left: float, right: float) -> tuple[float, float]:
        """Return travel of the axle's center [m] and rotation [rad] for wheel angles [rad]; for speeds the rates."""
        left_travel = left * self.wheel_radius * self.left_radius_scale
        right_travel = right * self.wheel_radius * self.right_radius_scale
        return 0.5 * (left_travel + right_travel), (right_travel - left_travel) / self.effective_track


class DifferentialDrive(DifferentialWheels):
    """Wheels on two driven sides, with the position of their axle."""

    axle_x: float = parameter(
        0.0, unit="m", low=-10.0, high=10.0, runtime=True,
        doc="Position of the axis about which the base turns, ahead of the base frame.",
    )  # fmt: skip

    def body_twist(self, speeds: NDArray[np.float64]) -> PlanarTwist:
        """Return the twist of the base frame; ``vy`` is not zero if the axle is not at its origin."""
        vx, wz = self.travel(float(speeds[0]), float(speeds[1]))
        return PlanarTwist(vx, -wz * self.axle_x if self.axle_x else 0.0, wz)


def scale_to_wheel_limit(speeds: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """Scale wheel speeds (n,) [rad/s] down together so that none exceeds ``limit``; the driven arc stays the same."""
    max_speed = max((abs(speed) for speed in speeds.tolist()), default=0.0)
    return speeds if max_speed <= limit else speeds * (limit / max_speed)


_FORWARD = np.array([1.0, 1.0, 1.0, 1.0])
_LEFT = np.array([-1.0, 1.0, 1.0, -1.0])
_ROTATION = np.array([-1.0, 1.0, -1.0, 1.0])


class MecanumDrive(Config):
    """Four driven mecanum wheels, their rollers forming an X seen from above.

    front left, front right = (vx ∓ vy ∓ ω·a) / r, rear left, rear right = (vx ± vy ∓ ω·a) / r, with wheel radius r and
    a half of wheelbase plus track (P. F. Muir, C. P. Neuman, IEEE ICRA 1987; Gazebo's MecanumDrive does the same).
    Four wheel speeds have one degree of freedom more than a planar twist; the forward kinematics is the least-squares
    solution.
    """

    wheel_radius: float = parameter(0.1, unit="m", low=1e-3, high=10.0, runtime=True, doc="Radius r of the wheels.")
    wheelbase: float = parameter(
        0.4, unit="m", low=1e-3, high=20.0, runtime=True, doc="Distance between the front and the rear axle."
    )
    track: float = parameter(
        0.35, unit="m", low=1e-3, high=20.0, runtime=True, doc="Distance between the middles of left and right wheels."
    )
    axle_x: float = parameter(
        0.0, unit="m", low=-10.0, high=10.0, runtime=True,
        doc="Position of the middle of the wheels, ahead of the base frame.",
    )  # fmt: skip

    @property
    def wheels(self) -> tuple[str, ...]:
        """Front left, front right, rear left, rear right."""
        return ("front_left", "front_right", "rear_left", "rear_right")

    @property
    def rotation_radius(self) -> float:
        """Travel a of a wheel's rim per rotation of the base [m/rad]."""
        return 0.5 * (self.wheelbase + self.track)

    def wheel_speeds(self, twist: PlanarTwist) -> NDArray[np.float64]:
        """Return the wheel speeds (4,) [rad/s], in the order of ``wheels``."""
        vy = twist.vy + twist.wz * self.axle_x  # at the center of the wheels
        rim_speeds: NDArray[np.float64] = (
            _FORWARD * twist.vx + _LEFT * vy + _ROTATION * (twist.wz * self.rotation_radius)
        )
        return rim_speeds / self.wheel_radius

    def body_twist(self, speeds: NDArray[np.float64]) -> PlanarTwist:
        """Return the base frame's twist at wheel speeds (4,) [rad/s]; for wheel angles [rad] the displacement."""
        quarter_rim_speeds = 0.25 * self.wheel_radius * np.asarray(speeds, dtype=np.float64)
        wz = float(_ROTATION @ quarter_rim_speeds) / self.rotation_radius
        return PlanarTwist(
            float(_FORWARD @ quarter_rim_speeds), float(_LEFT @ quarter_rim_speeds) - wz * self.axle_x, wz
        )


_STANDSTILL_SPEED = 1e-6
"""Speed below which the base counts as at rest, where a curvature is undefined [m/s]."""


class AckermannWheelValues(NamedTuple):
    """Values of the four wheels: speeds [rad/s] or angles [rad]."""

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
        """Return the angles of the left and right steered wheels [rad] for a curvature [1/m] within the limit."""
        along, half = self.wheelbase * curvature, 0.5 * curvature * self.kingpin_width
        return math.atan2(along, 1.0 - half), math.atan2(along, 1.0 + half)

    def curvature_from_steering(self, left: float, right: float) -> float:
        """Return the curvature for the angles of the steered wheels [1/m], the mean of both wheels."""
        tan_left, tan_right = math.tan(left), math.tan(right)
        half = 0.5 * self.kingpin_width
        return 0.5 * (tan_left / (self.wheelbase + half * tan_left) + tan_right / (self.wheelbase - half * tan_right))


class AckermannSteering(AckermannGeometry):
    """Steered wheels with a steering limit."""

    steering_limit: float = parameter(
        0.5, unit="rad", low=1e-3, high=1.57, runtime=True, doc="Largest angle of a steered wheel."
    )

    @property
    def max_curvature(self) -> float:
        """Curvature at which the inner wheel is at its limit [1/m]."""
        tangent = math.tan(self.steering_limit)
        return tangent / (abs(self.wheelbase) + 0.5 * tangent * self.kingpin_width)

    def curvature(self, twist: PlanarTwist) -> float:
        """Return the curvature nearest to that of a twist, within the steering limit [1/m].

        At standstill a command to turn steers to the limit, so that the base is ready to drive in that direction.
        """
        max_curvature = self.max_curvature
        if abs(twist.vx) < _STANDSTILL_SPEED:
            return math.copysign(max_curvature, twist.wz) if twist.wz else 0.0
        return min(max(twist.wz / twist.vx, -max_curvature), max_curvature)


class AckermannWheels(AckermannGeometry):
    """Steered and unsteered wheels that roll without slip."""

    wheel_radius: float = parameter(0.1, unit="m", low=1e-3, high=10.0, runtime=True, doc="Radius of the wheels.")
    track: float = parameter(
        1.0, unit="m", low=1e-3, high=20.0, runtime=True, doc="Distance between the middles of left and right wheels."
    )

    def wheel_speeds(self, speed: float, curvature: float) -> AckermannWheelValues:
        """Return the wheel speeds at which all wheels roll without slip [rad/s].

        Args:
            speed: Speed of the unsteered axle's center [m/s].
            curvature: Curvature of its path [1/m].
        """
        half_track, half_kingpin_width = 0.5 * curvature * self.track, 0.5 * curvature * self.kingpin_width
        wheel_offset = (
            half_track - half_kingpin_width
        )  # steered wheels stand outside their kingpins, on their own axles
        along = curvature * self.wheelbase
        v = speed / self.wheel_radius
        return AckermannWheelValues(
            v * (1.0 - half_track),
            v * (1.0 + half_track),
            v * (math.hypot(1.0 - half_kingpin_width, along) - wheel_offset),
            v * (math.hypot(1.0 + half_kingpin_width, along) + wheel_offset),
        )

    def travel(self, wheel_values: AckermannWheelValues, curvature: float) -> float:
        """Return the travel of the unsteered axle's center [m], the mean of all wheels; for speeds its rate.

        A wheel that is not driven or not measured is nan and ignored.
        """
        unit_values = self.wheel_speeds(self.wheel_radius, curvature)  # for a travel of one wheel radius
        ratios = [
            value / unit_value
            for value, unit_value in zip(wheel_values, unit_values, strict=True)
            if not math.isnan(value) and unit_value > 1e-3
        ]
        return self.wheel_radius * sum(ratios) / len(ratios) if ratios else 0.0


class AckermannDrive(AckermannSteering, AckermannWheels):
    """A car: two steered wheels with their limit, and wheels that roll without slip."""


def ackermann_twist(speed: float, curvature: float, axle_x: float) -> PlanarTwist:
    """Return the twist of a base frame.

    Args:
        speed: Speed of the unsteered axle's center [m/s].
        curvature: Curvature of its path [1/m].
        axle_x: Position of the unsteered axle ahead of the base frame [m].
    """
    angular_velocity = speed * curvature
    return PlanarTwist(speed, -angular_velocity * axle_x if axle_x else 0.0, angular_velocity)
