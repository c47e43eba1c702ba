"""Limits of joint groups: ranges, speeds and accelerations; and the check of start positions."""

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

DEFAULT_ACCELERATION_TIME = 0.5
"""Time in which a joint without stated acceleration reaches full speed [s]."""
DEFAULT_SPEED = 1.0
"""Speed of a joint that states no speed either [rad/s or m/s]."""


def default_acceleration(speed: Array) -> Array:
    """Return the accelerations (n,) of joints that state none: full speed in half a second.

    Args:
        speed: (n,) largest speeds [rad/s or m/s]; not finite where the joint states none either.
    """
    return np.asarray(np.where(np.isfinite(speed), speed, DEFAULT_SPEED) / DEFAULT_ACCELERATION_TIME)


@dataclass(frozen=True)
class JointAccelerationLimits:
    """Acceleration limits of a robot's joints, which its description does not contain.

    Attributes:
        acceleration: Stated limits by joint [rad/s² or m/s²].
    """

    acceleration: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JointGroupLimits:
    """Limits of joints, (n,) each [rad, rad/s, rad/s² or m, m/s, m/s²]; infinite where unknown.

    Attributes:
        lower: Smallest positions.
        upper: Largest positions.
        speed: Largest speeds.
        acceleration: Largest accelerations and decelerations; full speed in half a second where none is stated.
        has_acceleration_limit: (n,) whether an acceleration is stated.
    """

    lower: Array
    upper: Array
    speed: Array
    acceleration: Array
    has_acceleration_limit: NDArray[np.bool_]

    @classmethod
    def from_model(
        cls, model: Model, joints: Sequence[str], acceleration_limits: JointAccelerationLimits
    ) -> JointGroupLimits:
        """Return the limits of joints of a robot."""
        lower, upper = np.array([joint_limit_range(model, joint, "position") for joint in joints], dtype=np.float64).T
        speed = np.array([joint_limit_range(model, joint, "velocity")[1] for joint in joints], dtype=np.float64)
        stated_acceleration = [acceleration_limits.acceleration.get(joint, math.nan) for joint in joints]
        has_acceleration_limit = np.isfinite(stated_acceleration)
        return cls(
            lower,
            upper,
            speed,
            np.where(has_acceleration_limit, stated_acceleration, default_acceleration(speed)),
            has_acceleration_limit,
        )

    def clamp(self, position: Array) -> Array:
        """Return the nearest positions within the range."""
        clamped: Array = np.minimum(np.maximum(position, self.lower), self.upper)
        return clamped


def check_start_state(commanded: Array, measured: Array, tolerance: float, joints: Sequence[str], label: str) -> None:
    """Check that joints are at the start of a motion.

    Args:
        commanded: (n,) positions at the start.
        measured: (n,) measured positions.
        tolerance: Largest allowed difference.
        joints: Names of the joints.
        label: Description of ``commanded``, for the error.

    Raises:
        InputError: the difference of a joint is larger.
    """
    errors = np.abs(commanded - measured)
    if (errors > tolerance).any():
        k = int(np.argmax(errors))
        raise InputError(
            f"joint {joints[k]} is at {measured[k]:.4g}, {label} {commanded[k]:.4g}", valid=f"at most {tolerance:g} off"
        )
