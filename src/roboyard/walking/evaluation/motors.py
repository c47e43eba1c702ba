"""Model of a robot's motors by their torque-speed lines: power, heat of the windings, and saturation.

The torque of a motor at a constant voltage falls linearly with its speed, from the stall torque τ₀ to 0 at the no-load
speed ω₀.  Voltage times current is then proportional to the torque: a motor that gives a torque τ takes τ ω₀ at full
voltage, of which τ ω is work, and dissipates τ² ω₀ / τ₀ in its windings, whatever its speed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.description import Model
from roboyard.geometry.arrays import Array
from roboyard.walking.legged_robot import LeggedRobot

SATURATION_RATIO = 0.99
"""A motor whose torque is at least this fraction of the largest one at its speed is saturated."""


class MotorParameters(NamedTuple):
    """Torque-speed lines of n motors as arguments of kernels.

    Attributes:
        stall_torque: (n) torques at rest [N m].
        no_load_speed: (n) speeds at which no torque is left [rad/s].
        heat_coefficient: (n) heat divided by the square of the torque [W/(N m)²].
    """

    stall_torque: Array
    no_load_speed: Array
    heat_coefficient: Array


def _motor_examples() -> list[tuple[object, ...]]:
    ones = np.ones(1)
    return [(MotorParameters(ones, ones, ones), np.zeros(1, np.int64), read_only(ones), read_only(ones))]


@kernel(examples=_motor_examples)
def motor_power_and_saturation(
    motors: MotorParameters, indices: NDArray[np.int64], effort: Array, speed: Array
) -> tuple[float, int]:
    """Return work and heat of all motors without recovery [W], and how many of them are saturated.

    Args:
        motors: Torque-speed lines.
        indices: (n) indices of the motors' joints in the arrays that follow.
        effort: (k) torques of joints [N m].
        speed: (k) speeds of joints [rad/s].
    """
    power, n_saturated = 0.0, 0
    for i in range(len(indices)):
        f, v = effort[indices[i]], speed[indices[i]]
        power += max(f * v + f * f * motors.heat_coefficient[i], 0.0)
        speed_along_effort = max(v * np.sign(f), 0.0)
        n_saturated += abs(f) >= SATURATION_RATIO * motors.stall_torque[i] * max(
            1.0 - speed_along_effort / motors.no_load_speed[i], 0.0
        )
    return power, n_saturated


@dataclass(frozen=True, eq=False)
class MotorModel:
    """Motors of a legged robot by their torque-speed lines, leg after leg.

    Attributes:
        mass: Mass of the robot [kg].
        legs: (l) names of the legs.
        joints: (3 l) names of the joints.
        stall_torque: (3 l) torques at rest [N m].
        no_load_speed: (3 l) speeds at which no torque is left [rad/s]; inf: the torque does not depend on the speed.
    """

    mass: float
    legs: tuple[str, ...]
    joints: tuple[str, ...]
    stall_torque: Array
    no_load_speed: Array

    @classmethod
    def from_model(cls, legged_robot: LeggedRobot, model: Model) -> MotorModel:
        """Return the motors of a robot's description."""
        interface_parameters = {interface.joint: dict(interface.parameters) for interface in model.interfaces}
        effort_limits = {joint.name: joint.axes[0].limits.effort for joint in model.joints if joint.axes}
        stall_torque = np.array(
            [effort_limits[name] if effort_limits[name] > 0.0 else math.inf for name in legged_robot.joints]
        )
        no_load_speed = np.array(
            [float(interface_parameters.get(name, {}).get("no_load_speed", math.inf)) for name in legged_robot.joints]
        )
        return cls(
            model.mass, tuple(leg.name for leg in legged_robot.legs), legged_robot.joints, stall_torque, no_load_speed
        )

    def heat(self, effort: Array) -> Array:
        """Return the heat of the windings (…, 3 l) at torques (…, 3 l) [N m], in W.

        It is effort² no_load_speed / stall_torque, which follows from the torque-speed line alone: a stalled motor
        turns all its power, voltage times stall current, into heat.  0 without such a line.
        """
        heat: Array = effort**2 * self._heat_coefficient
        return heat

    @cached_property
    def parameters(self) -> MotorParameters:
        """Torque-speed lines as arguments of kernels."""
        return MotorParameters(self.stall_torque, self.no_load_speed, self._heat_coefficient)

    @cached_property
    def _heat_coefficient(self) -> Array:
        """(3 l) heat divided by the square of the torque [W/(N m)²]."""
        is_limited = np.isfinite(self.no_load_speed) & np.isfinite(self.stall_torque)
        coefficients: Array = np.where(is_limited, self.no_load_speed, 0.0) / np.where(
            is_limited, self.stall_torque, 1.0
        )
        return coefficients

    def power(self, effort: Array, speed: Array) -> Array:
        """Return work and heat (…, 3 l) at torques [N m] and speeds [rad/s] (…, 3 l), in W; no power is recovered."""
        return np.maximum(effort * speed + self.heat(effort), 0.0)

    def is_saturated(self, effort: Array, speed: Array) -> NDArray[np.bool_]:
        """Return (…, 3 l) which motors give the largest torque possible at their speed."""
        speed_along_effort = np.maximum(speed * np.sign(effort), 0.0)
        max_effort = self.stall_torque * np.maximum(1.0 - speed_along_effort / self.no_load_speed, 0.0)
        is_saturated: NDArray[np.bool_] = np.abs(effort) >= SATURATION_RATIO * max_effort
        return is_saturated

    def to_dict(self) -> dict[str, Any]:
        """Return the motors as plain data; None for infinite values."""

        def finite_or_null(values: Array) -> list[float | None]:
            return [value if math.isfinite(value) else None for value in values.tolist()]

        return {
            "mass": self.mass, "legs": list(self.legs), "joints": list(self.joints),
            "stall_torque": finite_or_null(self.stall_torque), "no_load_speed": finite_or_null(self.no_load_speed),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MotorModel:
        """Return the motors that `to_dict` returned as plain data."""

        def null_to_infinite(values: list[float | None]) -> Array:
            return np.array([math.inf if value is None else value for value in values])

        return cls(
            float(data["mass"]), tuple(data["legs"]), tuple(data["joints"]),
            null_to_infinite(data["stall_torque"]), null_to_infinite(data["no_load_speed"]),
        )  # fmt: skip
