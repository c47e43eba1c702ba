"""Mecanum kinematics: four wheels whose rollers stand at 45° let a base move in any direction of the plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.control.kinematics import PlanarTwist

_FORWARD = np.array([1.0, 1.0, 1.0, 1.0])
_LEFT = np.array([-1.0, 1.0, 1.0, -1.0])
_TURN = np.array([-1.0, 1.0, -1.0, 1.0])


class MecanumDrive(Config):
    """Four driven mecanum wheels, their rollers forming an X seen from above.

    front left, front right = (vx ∓ vy ∓ ω·a) / r, rear left, rear right = (vx ± vy ∓ ω·a) / r, with wheel radius r and
    a half of wheelbase plus track (P. F. Muir, C. P. Neuman, IEEE ICRA 1987; Gazebo's MecanumDrive does the same).
    Four wheels have one speed more than the plane has directions; what they would only slip is left out on the way back
    (least squares).
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
