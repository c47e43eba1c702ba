"""What joints can do: their range, their speed, and how fast they get there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.description.joint_interfaces import joint_limit_range
from roboyard.description.model import Model
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array

REACHED_IN = 0.5
"""Where nobody states an acceleration, full speed is reached in this time [s]."""
UNKNOWN_SPEED = 1.0
"""Where nobody states a speed either [rad/s or m/s]."""


@dataclass(frozen=True)
class JointRates:
    """What a robot's joints can do that descriptions do not tell.

    Attributes:
        acceleration: By joint, where somebody states it [rad/s² or m/s²].
    """

    acceleration: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JointBounds:
    """What joints can do, (n,) each [rad, rad/s, rad/s² or m, m/s, m/s²]; infinite where nobody knows.

    Attributes:
        lower: Least positions.
        upper: Largest.
        speed: Largest.
        acceleration: Largest, also to slow down; full speed in half a second where nobody states one.
        stated: (n,) whether somebody does.
    """

    lower: Array
    upper: Array
    speed: Array
    acceleration: Array
    stated: NDArray[np.bool_]

    @classmethod
    def of(cls, model: Model, joints: Sequence[str], rates: JointRates) -> JointBounds:
        """Those of some joints of a robot."""
        lower, upper = np.array([joint_limit_range(model, joint, "position") for joint in joints], dtype=np.float64).T
        speed = np.array([joint_limit_range(model, joint, "velocity")[1] for joint in joints], dtype=np.float64)
        usual = np.where(np.isfinite(speed), speed, UNKNOWN_SPEED) / REACHED_IN
        known = [rates.acceleration.get(joint, math.nan) for joint in joints]
        stated = np.isfinite(known)
        return cls(lower, upper, speed, np.where(stated, known, usual), stated)

    def hold(self, position: Array) -> Array:
        """The nearest positions within them."""
        held: Array = np.minimum(np.maximum(position, self.lower), self.upper)
        return held


def check_near(told: Array, measured: Array, tolerance: float, joints: Sequence[str], told_is: str) -> None:
    """Whether joints really are where something begins.

    Args:
        told: (n,) where it begins.
        measured: (n,) where they are.
        tolerance: How far they may be off.
        joints: Names.
        told_is: What ``told`` is, for the error.

    Raises:
        InputError: one is farther off.
    """
    off = np.abs(told - measured)
    if (off > tolerance).any():
        k = int(np.argmax(off))
        raise InputError(
            f"joint {joints[k]} is at {measured[k]:.4g}, {told_is} {told[k]:.4g}", valid=f"at most {tolerance:g} off"
        )
