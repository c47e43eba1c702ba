"""Wheel kinematics: from a wanted body twist to wheel speeds, and back.

Every drive is one frozen record that fulfils ``WheelKinematics``; the drive node and odometry know only that contract,
so further drives (mecanum, Ackermann) are further records.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter


class PlanarTwist(NamedTuple):
    """Velocity of the base frame in the plane, in its own axes.

    Attributes:
        vx: Forward [m/s].
        vy: To the left [m/s].
        wz: Turning, counter-clockwise positive [rad/s].
    """

    vx: float = 0.0
    vy: float = 0.0
    wz: float = 0.0


STANDSTILL = PlanarTwist()


class WheelKinematics(Protocol):
    """Linear map between a planar twist and the speeds of the wheel groups."""

    @property
    def wheels(self) -> tuple[str, ...]:
        """Names of the wheel groups, in the order of the arrays below (a group's joints turn alike)."""
        ...

    def wheel_speeds(self, twist: PlanarTwist) -> NDArray[np.float64]:
        """(n,) [rad/s] that give ``twist``; components that the drive cannot move in are ignored."""
        ...

    def body_twist(self, speeds: NDArray[np.float64]) -> PlanarTwist:
        """Twist of the base frame at wheel speeds (n,) [rad/s]; also maps wheel angles [rad] to m and rad travelled."""
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
        """k·c [m]: the track of the drive without slip that turns alike."""
        return self.slip_factor * self.track

    def side_speeds(self, vx: float, wz: float) -> tuple[float, float]:
        """Speeds of the left and right wheels [rad/s] for ``vx`` [m/s] and ``wz`` [rad/s]."""
        turn = 0.5 * wz * self.effective_track
        return (
            (vx - turn) / (self.wheel_radius * self.left_radius_scale),
            (vx + turn) / (self.wheel_radius * self.right_radius_scale),
        )

    def wheel_speeds(self, twist: PlanarTwist) -> NDArray[np.float64]:
        """(2,) left and right [rad/s]; ``twist.vy`` follows from ``wz`` and is ignored."""
        return np.array(self.side_speeds(twist.vx, twist.wz))

    def travel(self, left: float, right: float) -> tuple[float, float]:
        """Way of the axle's middle [m] and turn [rad] for wheel angles [rad]; for wheel speeds their rates."""
        way_left = left * self.wheel_radius * self.left_radius_scale
        way_right = right * self.wheel_radius * self.right_radius_scale
        return 0.5 * (way_left + way_right), (way_right - way_left) / self.effective_track


class DifferentialDrive(DifferentialWheels):
    """The wheels of two driven sides, and where they lie under the base frame."""

    axle_x: float = parameter(
        0.0, unit="m", low=-10.0, high=10.0, runtime=True,
        doc="Position of the axis about which the base turns, ahead of the base frame.",
    )  # fmt: skip

    def body_twist(self, speeds: NDArray[np.float64]) -> PlanarTwist:
        """Twist of the base frame; ``vy`` is not zero where the axle is not at its origin."""
        vx, wz = self.travel(float(speeds[0]), float(speeds[1]))
        return PlanarTwist(vx, -wz * self.axle_x if self.axle_x else 0.0, wz)


def slow_to_wheel_limit(speeds: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """Scale wheel speeds (n,) [rad/s] down together so that none exceeds ``limit``; the driven arc stays the same."""
    fastest = max((abs(speed) for speed in speeds.tolist()), default=0.0)
    return speeds if fastest <= limit else speeds * (limit / fastest)
