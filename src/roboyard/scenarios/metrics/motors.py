"""The motors of legs: what their efforts cost, and when they give all that they have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Model
from roboyard.geometry.arrays import Array
from roboyard.scenarios.metrics.walking_kernels import SATURATED, MotorRows
from roboyard.walking.walker import Walker


@dataclass(frozen=True, eq=False)
class Motors:
    """Motors by their torque-speed lines, leg after leg.

    Attributes:
        mass: Of the robot that they move [kg].
        legs: (l) names.
        joints: (3 l) names.
        stall: (3 l) efforts at rest [N m].
        no_load: (3 l) speeds at which they have none left [rad/s]; inf: they always have all.
    """

    mass: float
    legs: tuple[str, ...]
    joints: tuple[str, ...]
    stall: Array
    no_load: Array

    @classmethod
    def of(cls, walker: Walker, model: Model) -> Motors:
        """Of a robot's description."""
        said = {interface.joint: dict(interface.parameters) for interface in model.interfaces}
        efforts = {joint.name: joint.axes[0].limits.effort for joint in model.joints if joint.axes}
        stall = np.array([efforts[name] if efforts[name] > 0.0 else math.inf for name in walker.joints])
        free = np.array([float(said.get(name, {}).get("no_load_speed", math.inf)) for name in walker.joints])
        return cls(model.mass, tuple(leg.name for leg in walker.legs), walker.joints, stall, free)

    def heat(self, effort: Array) -> Array:
        """(…, 3 l) what efforts (…, 3 l) [N m] turn into heat of the copper [W].

        ``effort² no_load / stall``: it follows from the torque-speed line alone, as a motor turns all that it takes
        into heat while it is stalled, which is its voltage times its stall current.  0 without such a line.
        """
        found: Array = effort**2 * self._warmth
        return found

    @cached_property
    def rows(self) -> MotorRows:
        """What kernels take."""
        return MotorRows(self.stall, self.no_load, self._warmth)

    @cached_property
    def _warmth(self) -> Array:
        """(3 l) heat by the square of the effort."""
        known = np.isfinite(self.no_load) & np.isfinite(self.stall)
        shares: Array = np.where(known, self.no_load, 0.0) / np.where(known, self.stall, 1.0)
        return shares

    def power(self, effort: Array, speed: Array) -> Array:
        """(…, 3 l) work and heat [W] at efforts [N m] and speeds [rad/s] (…, 3 l); nothing is given back."""
        return np.maximum(effort * speed + self.heat(effort), 0.0)

    def saturated(self, effort: Array, speed: Array) -> NDArray[np.bool_]:
        """(…, 3 l) which motors give all that they have at their speed."""
        along = np.maximum(speed * np.sign(effort), 0.0)
        most = self.stall * np.maximum(1.0 - along / self.no_load, 0.0)
        full: NDArray[np.bool_] = np.abs(effort) >= SATURATED * most
        return full

    def to_dict(self) -> dict[str, Any]:
        """As plain data; None for what has no end."""

        def finite(values: Array) -> list[float | None]:
            return [value if math.isfinite(value) else None for value in values.tolist()]

        return {
            "mass": self.mass, "legs": list(self.legs), "joints": list(self.joints),
            "stall_torque": finite(self.stall), "no_load_speed": finite(self.no_load),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Motors:
        """Counterpart of `to_dict`."""

        def ended(values: list[float | None]) -> Array:
            return np.array([math.inf if value is None else value for value in values])

        return cls(
            float(data["mass"]), tuple(data["legs"]), tuple(data["joints"]),
            ended(data["stall_torque"]), ended(data["no_load_speed"]),
        )  # fmt: skip
