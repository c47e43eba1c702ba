"""The thesis's P controllers: each joint to its angle, and the first one until a symbol is straight ahead."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array


def _bounded(speed: Array, least: float, most: float) -> Array:
    return np.asarray(np.copysign(np.clip(np.abs(speed), least, most), speed))


@dataclass(frozen=True)
class JointControl:
    """From where five joints are to what speeds they get; listing K.

    Attributes:
        gains: (5,) speed for each unit of error [1/s].
        slowest: Of a joint that is not there yet [rad/s].
        fastest: Of any [rad/s].
        tolerance: A joint so near is there, and stands [rad].
        end_speed: Slower than this, all together, they rest [rad/s].
    """

    gains: tuple[float, ...] = (0.9, 0.9, 0.7, 0.9, 0.5)
    slowest: float = 0.1
    fastest: float = 0.8
    tolerance: float = 0.01
    end_speed: float = 0.01

    def speeds(self, goal: ArrayLike, joints: ArrayLike) -> Array:
        """(5,) [rad/s] towards a goal (5,) from where the joints are (5,). Raises InputError."""
        error = self._error(goal, joints)
        wanted = _bounded(np.array(self.gains) * error, self.slowest, self.fastest)
        return np.where(np.abs(error) > self.tolerance, wanted, 0.0)

    def done(self, goal: ArrayLike, joints: ArrayLike, velocity: ArrayLike) -> bool:
        """Whether they are there and rest: then a position command does the last of it. Raises InputError."""
        off = float(np.abs(self._error(goal, joints)).sum())
        speed = float(np.abs(np.asarray(velocity, dtype=np.float64)).sum())
        return off < len(self.gains) * self.tolerance and speed < self.end_speed

    def _error(self, goal: ArrayLike, joints: ArrayLike) -> Array:
        a, b = np.asarray(goal, dtype=np.float64), np.asarray(joints, dtype=np.float64)
        if not a.shape == b.shape == (len(self.gains),) or not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise InputError(f"joints of shapes {a.shape} and {b.shape}", valid=f"({len(self.gains)},), finite")
        return a - b


@dataclass(frozen=True)
class AlignControl:
    """How fast joint 1 turns towards a symbol; listing I.

    Attributes:
        gain: Speed for each degree off [rad/s].
        slowest: [rad/s].
        fastest: [rad/s].
        tolerance: So near it is straight ahead [degrees].
    """

    gain: float = 0.03
    slowest: float = 0.01
    fastest: float = 1.0
    tolerance: float = 0.05

    def speed(self, aside: float, ahead: float) -> float:
        """Of joint 1 [rad/s], as the youBot's driver counts it; 0: the symbol is straight ahead.

        Args:
            aside: Where the symbol is across the arm's plane, to its right.
            ahead: And along it, in the same unit.

        Raises:
            InputError: it is not ahead, or a number is not finite.
        """
        if not (math.isfinite(aside) and math.isfinite(ahead) and ahead > 0.0):
            raise InputError(f"a symbol {aside:g} aside and {ahead:g} ahead", valid="finite, and ahead")
        off = math.degrees(math.atan(aside / ahead))
        if abs(off) <= self.tolerance:
            return 0.0
        return float(_bounded(np.array(self.gain * off), self.slowest, self.fastest))
