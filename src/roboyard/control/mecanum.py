"""Mecanum kinematics: four wheels whose rollers stand at 45° let a base move in any direction of the plane."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.control.kinematics import PlanarTwist
from roboyard.errors import ConfigError

_FORWARD = np.array([1.0, 1.0, 1.0, 1.0])
_LEFT = np.array([-1.0, 1.0, 1.0, -1.0])
_TURN = np.array([-1.0, 1.0, -1.0, 1.0])


@dataclass(frozen=True, slots=True)
class MecanumDrive:
    """Four driven mecanum wheels, their rollers forming an X seen from above.

    front left, front right = (vx ∓ vy ∓ ω·a) / r, rear left, rear right = (vx ± vy ∓ ω·a) / r, with wheel radius r and
    a half of wheelbase plus track (P. F. Muir, C. P. Neuman, IEEE ICRA 1987; Gazebo's MecanumDrive does the same).
    Four wheels have one speed more than the plane has directions; what they would only slip is left out on the way back
    (least squares).

    Attributes:
        wheel_radius: r [m].
        wheelbase: Between front and rear axles [m].
        track: Between the middles of left and right wheels [m].
        axle_x: Of the wheels' middle ahead of the base frame's origin [m].

    Raises:
        ConfigError: a length is not positive or not finite.
    """

    wheel_radius: float
    wheelbase: float
    track: float
    axle_x: float = 0.0

    def __post_init__(self) -> None:
        for name in ("wheel_radius", "wheelbase", "track"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", location="MecanumDrive", valid="a positive length [m]")
        if not math.isfinite(self.axle_x):
            raise ConfigError(f"axle_x = {self.axle_x}", location="MecanumDrive", valid="a finite number [m]")

    @property
    def wheels(self) -> tuple[str, ...]:
        """Front left, front right, rear left, rear right."""
        return ("front_left", "front_right", "rear_left", "rear_right")

    @property
    def arm(self) -> float:
        """a [m]: how far a wheel's rim travels per radian that the base turns."""
        return 0.5 * (self.wheelbase + self.track)

    def wheel_speeds(self, twist: PlanarTwist) -> NDArray[np.float64]:
        """(4,) [rad/s], in the order of ``wheels``."""
        vy = twist.vy + twist.wz * self.axle_x  # of the wheels' middle
        rims: NDArray[np.float64] = _FORWARD * twist.vx + _LEFT * vy + _TURN * (twist.wz * self.arm)
        return rims / self.wheel_radius

    def body_twist(self, speeds: NDArray[np.float64]) -> PlanarTwist:
        """Twist of the base frame at wheel speeds (4,) [rad/s]; of wheel angles [rad] the way [m, m, rad]."""
        quarter = 0.25 * self.wheel_radius * np.asarray(speeds, dtype=np.float64)
        wz = float(_TURN @ quarter) / self.arm
        return PlanarTwist(float(_FORWARD @ quarter), float(_LEFT @ quarter) - wz * self.axle_x, wz)
