"""How fast joints may move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.control.joint_limits import DEFAULT_ACCELERATION_TIME, DEFAULT_SPEED
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of joints (n,) each.

    Attributes:
        joints: Names.
        velocity: [rad/s or m/s].
        acceleration: [rad/s² or m/s²].
        jerk: [rad/s³ or m/s³]; infinite where there is no limit.
    """

    joints: tuple[str, ...]
    velocity: Array
    acceleration: Array
    jerk: Array

    def __post_init__(self) -> None:
        for what, values in (("velocity", self.velocity), ("acceleration", self.acceleration), ("jerk", self.jerk)):
            if values.shape != (len(self.joints),):
                raise InputError(f"{values.size} limits of {what}", valid=f"{len(self.joints)}, one for each joint")
            for name, value in zip(self.joints, values.tolist(), strict=True):
                if not value > 0.0 or (what != "jerk" and not math.isfinite(value)):
                    raise InputError(f"{what} of {name} is limited to {value:g}", valid="more than 0")

    @classmethod
    def of(
        cls,
        chain: Chain,
        *,
        speed: float = 1.0,
        acceleration: float = 1.0,
        default_acceleration: ArrayLike | None = None,
    ) -> JointLimits:
        """Those of a chain, in part.

        Args:
            chain: The joints.
            speed: Share of the velocity that is used.
            acceleration: Share of the acceleration that is used.
            default_acceleration: Where nobody states one; else full speed is reached in half a second.

        Raises:
            InputError: a share is not in 0 … 1, or a joint's limit is 0.
        """
        for name, value in (("speed", speed), ("acceleration", acceleration)):
            if not 0.0 < value <= 1.0:
                raise InputError(f"a share of {name} of {value}", valid="more than 0, at most 1")
        velocity = np.where(np.isfinite(chain.max_velocity), chain.max_velocity, DEFAULT_SPEED)
        otherwise = (
            velocity / DEFAULT_ACCELERATION_TIME
            if default_acceleration is None
            else np.asarray(default_acceleration, float)
        )
        known = np.where(np.isfinite(chain.max_acceleration), chain.max_acceleration, otherwise)
        return cls(chain.joints, speed * velocity, acceleration * known, chain.max_jerk)

    def exceeded(self, velocity: Array, acceleration: Array) -> float:
        """The greatest share of a limit that velocities and accelerations (k, n) take; more than 1 breaks one."""
        return float(max(np.abs(velocity / self.velocity).max(), np.abs(acceleration / self.acceleration).max()))


def checked_names(joints: Sequence[str], limits: JointLimits) -> None:
    """Raises InputError where limits are of other joints."""
    if tuple(joints) != limits.joints:
        raise InputError(f"limits of {', '.join(limits.joints)}", valid=", ".join(joints))
