"""Wheel kinematics: from a wanted body twist to wheel speeds, and back.

Every drive is one frozen record that fulfils ``WheelKinematics``; the drive node and odometry know only that contract,
so further drives (mecanum, Ackermann) are further records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError


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


@dataclass(frozen=True, slots=True)
class DifferentialDrive:
    """Two driven sides, as differential drive or, with ``slip_factor`` > 1, skid steering.

    Wheels that cannot steer must slip sideways to turn, so a skid-steered base turns less than rolling without slip
    predicts.  One factor k on the track models it: left, right = v / r ∓ ω·k·c / (2r), with wheel radius r and track c.
    k is found by calibration; a bachelor thesis (MIPT 2014) found 1.26402 ± 0.01564 for its simulated rover.

    Attributes:
        wheel_radius: r [m].
        track: c, between the middles of left and right wheels [m].
        slip_factor: k; 1 is rolling without slip.
        left_radius_scale: True over nominal radius of the left wheels, from calibration.
        right_radius_scale: The same for the right wheels.
        axle_x: Position of the line about which the drive turns, ahead of the base frame's origin [m].

    Raises:
        ConfigError: a length or factor is not positive, or a value is not finite.
    """

    wheel_radius: float
    track: float
    slip_factor: float = 1.0
    left_radius_scale: float = 1.0
    right_radius_scale: float = 1.0
    axle_x: float = 0.0

    def __post_init__(self) -> None:
        for name in ("wheel_radius", "track", "slip_factor", "left_radius_scale", "right_radius_scale"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", location="DifferentialDrive", valid="a positive number")
        if not math.isfinite(self.axle_x):
            raise ConfigError(f"axle_x = {self.axle_x}", location="DifferentialDrive", valid="a finite number [m]")

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

    def body_twist(self, speeds: NDArray[np.float64]) -> PlanarTwist:
        """Twist of the base frame; ``vy`` is not zero where the axle is not at its origin."""
        vx, wz = self.travel(float(speeds[0]), float(speeds[1]))
        return PlanarTwist(vx, -wz * self.axle_x if self.axle_x else 0.0, wz)


def slow_to_wheel_limit(speeds: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """Scale wheel speeds (n,) [rad/s] down together so that none exceeds ``limit``; the driven arc stays the same."""
    fastest = max((abs(speed) for speed in speeds.tolist()), default=0.0)
    return speeds if fastest <= limit else speeds * (limit / fastest)
