"""Hand guiding: admittance control of the tool with virtual mass and damping, and a speed limit."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array

ARM_REACH = 0.3
"""Largest distance between an arm and the person who guides it [m]."""


def find_guiding_person(distances: Mapping[str, float]) -> str:
    """Return the name of the person who guides an arm by hand: the nearest one within `ARM_REACH`; empty without one.

    Args:
        distances: Distance from the arm by name of the person [m].
    """
    nearest = min(distances, key=lambda person: distances[person], default="")
    return nearest if nearest and distances[nearest] <= ARM_REACH else ""


class AdmittanceConfig(Config):
    """Parameters of `AdmittanceController`."""

    mass: float = parameter(4.0, unit="kg", low=0.1, high=1e3, doc="Apparent mass of the tool.")
    damping: float = parameter(80.0, low=0.1, high=1e5, doc="Damping [N s/m].")
    dead_band: float = parameter(3.0, unit="N", low=0.0, high=1e3, doc="Force below which the tool does not move.")
    speed: float = parameter(
        0.25, unit="m/s", low=0.001, high=5.0, doc="Largest speed of the tool, the reduced speed of ISO 10218-1."
    )
    deceleration: float = parameter(
        2.0, unit="m/s²", low=0.01, high=100.0, doc="Deceleration after the enabling switch is released."
    )


class AdmittanceController:
    """An admittance ``m dv/dt + d v = F``, integrated exactly over each step, with a speed limit.

    Attributes:
        velocity: (3,) velocity of the tool [m/s].
    """

    def __init__(self, config: AdmittanceConfig) -> None:
        self._config = config
        self.velocity = np.zeros(3)

    def step(self, force: ArrayLike, dt: float, *, is_enabled: bool) -> Array:
        """Return the tool's velocity (3,) after a time step [m/s].

        Args:
            force: (3,) force of the hand on the tool, in the axes of the velocity [N].
            dt: Time step [s].
            is_enabled: Whether the enabling switch is held; otherwise the tool brakes and stops.

        Raises:
            InputError: the force is not finite.
        """
        applied_force, config = np.asarray(force, dtype=np.float64), self._config
        if applied_force.shape != (3,) or not np.isfinite(applied_force).all():
            raise InputError(f"a force of {applied_force.tolist()}", valid="three finite numbers")
        speed = float(np.linalg.norm(self.velocity))
        if not is_enabled:
            reduced_speed = max(speed - config.deceleration * dt, 0.0)
            self.velocity = self.velocity * (reduced_speed / speed) if speed > 0.0 else np.zeros(3)
            return self.velocity
        magnitude = float(np.linalg.norm(applied_force))
        effective_force = (
            applied_force * (max(magnitude - config.dead_band, 0.0) / magnitude) if magnitude > 0.0 else applied_force
        )
        steady_velocity = effective_force / config.damping
        decay = math.exp(-config.damping / config.mass * dt)
        velocity = steady_velocity + decay * (self.velocity - steady_velocity)
        new_speed = float(np.linalg.norm(velocity))
        self.velocity = velocity * min(1.0, config.speed / new_speed) if new_speed > 0.0 else velocity
        return self.velocity
