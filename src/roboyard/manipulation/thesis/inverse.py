"""The thesis's angles, and the three of them that bring a gripper that points down over a place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.manipulation.planning.errors import GoalUnreachable

LOW: Final = (-169.0, -65.0, -151.0, -102.0, -167.0)
HIGH: Final = (169.0, 90.0, 146.0, 102.0, 167.0)
REST: Final = (-169.0, -65.0, 146.0, -102.0, -167.0)
SEARCH: Final = (-45.0, 3.0, 0.0, 0.0, 5.0)
_UPPER, _FORE = 155.0, 135.0
"""Lengths between joints 2, 3 and 4 [mm]."""
_ASIDE, _HAND, _HEIGHT, _SAFE = 33.0, 217.5, 147.0, 10.0
"""From joint 1's axis to joint 2, from joint 4 to what is gripped, of joint 2 over the ground, kept above it [mm]."""
_CODE_ASIDE: Final = 1.0
"""What the thesis's program adds to the way out, beside its text [mm]."""
TRIMS: Final = (0.0, 5.0, 1.0)
"""What its program adds to joints 2, 3 and 4 [degrees]."""


@dataclass(frozen=True, eq=False)
class Scale:
    """From the thesis's degrees, 0 standing straight up, to a youBot's joints, and back: straight between the limits.

    Attributes:
        lower: (5,) of the joints [rad].
        upper: (5,) of the joints [rad].
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        if np.shape(self.lower) != (5,) or np.shape(self.upper) != (5,) or not (self.lower < self.upper).all():
            raise InputError(
                "limits of other joints", location="the thesis's scale", valid="five each, lower then upper"
            )

    @classmethod
    def of(cls, chain: Chain) -> Scale:
        """That of a youBot's arm. Raises InputError for another one."""
        return cls(chain.lower, chain.upper)

    def joints(self, degrees: ArrayLike, present: ArrayLike | None = None) -> Array:
        """(5,) joints [rad], held within the limits; where an angle is NaN that of ``present``. Raises InputError."""
        asked = self._five(degrees)
        held = np.clip(asked, LOW, HIGH)
        share = (held - LOW) / (np.array(HIGH) - LOW)
        found = self.lower + share * (self.upper - self.lower)
        left = np.isnan(asked)
        if left.any() and present is None:
            raise InputError(
                "an angle that is NaN", location="the thesis's scale", valid="a number, or the present joints"
            )
        return np.where(left, self._five(present), found) if present is not None else found

    def degrees(self, joints: ArrayLike) -> Array:
        """(5,) of joints [rad]. Raises InputError."""
        share = (self._five(joints) - self.lower) / (self.upper - self.lower)
        return np.asarray(LOW + share * (np.array(HIGH) - LOW))

    def _five(self, values: ArrayLike | None) -> Array:
        found = np.asarray(values, dtype=np.float64)
        if found.shape != (5,):
            raise InputError(f"angles of shape {found.shape}", location="the thesis's scale", valid="(5,)")
        return found


def point_down(out: float, height: float, *, as_programmed: bool = True) -> tuple[float, float, float]:
    """Joints 2, 3 and 4 [the thesis's degrees] with the gripper pointing down; sections 7.29 to 7.36.

    Args:
        out: From joint 1's axis, in the arm's plane [mm].
        height: Of the grip over the ground, less the 10 mm that are kept [mm].
        as_programmed: With what its program adds to its text, 1 mm and 5 and 1 degrees.

    Raises:
        GoalUnreachable: the arm is not so long, or not so short, or it would be behind joint 2's height.
        InputError: a number is not finite.
    """
    if not (math.isfinite(out) and math.isfinite(height)):
        raise InputError(
            f"a place {out} mm out and {height} mm high", location="the thesis's arm", valid="finite numbers"
        )
    y = out - _ASIDE + (_CODE_ASIDE if as_programmed else 0.0)
    z = height + _HAND - _HEIGHT + _SAFE
    far = math.hypot(y, z)
    if z <= 0.0 or not _UPPER - _FORE <= far <= _UPPER + _FORE:
        raise GoalUnreachable(
            f"joint 4 would be {far:.0f} mm from joint 2, {z:.0f} mm higher", location="the thesis's arm",
            valid=f"{_UPPER - _FORE:.0f} to {_UPPER + _FORE:.0f} mm, and higher",
        )  # fmt: skip
    second = math.atan(y / z) - math.acos((_UPPER**2 + far**2 - _FORE**2) / (2.0 * _UPPER * far))
    third = math.pi - math.acos((_FORE**2 + _UPPER**2 - far**2) / (2.0 * _FORE * _UPPER))
    angles = math.degrees(second), math.degrees(third)
    found = (*angles, 180.0 - sum(angles))
    trims = TRIMS if as_programmed else (0.0, 0.0, 0.0)
    return found[0] + trims[0], found[1] + trims[1], found[2] + trims[2]
