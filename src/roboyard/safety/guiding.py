"""Hand guiding: an arm whose tool yields to the hand that pushes it, as a mass in honey, never fast."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array

REACH = 0.3
"""Who guides an arm is no farther from it [m]."""


def guide(gaps: Mapping[str, float]) -> str:
    """Who it is that guides an arm by hand: the nearest, if they reach it; empty: nobody.

    Args:
        gaps: By person, how far they are from the arm [m].
    """
    nearest = min(gaps, key=lambda who: gaps[who], default="")
    return nearest if nearest and gaps[nearest] <= REACH else ""


class GuidingConfig(Config):
    """How a guided tool feels."""

    mass: float = parameter(4.0, unit="kg", low=0.1, high=1e3, doc="Apparent mass of the tool.")
    damping: float = parameter(80.0, low=0.1, high=1e5, doc="Force per speed [N s/m].")
    dead_band: float = parameter(3.0, unit="N", low=0.0, high=1e3, doc="Force below which the tool does not move.")
    speed: float = parameter(
        0.25, unit="m/s", low=0.001, high=5.0, doc="Largest speed of the tool, the reduced speed of ISO 10218-1."
    )
    deceleration: float = parameter(
        2.0, unit="m/s²", low=0.01, high=100.0, doc="Deceleration after the enabling switch is released."
    )


class HandGuide:
    """An admittance ``m dv/dt + d v = F``, solved exactly from step to step, whose speed has an end.

    Attributes:
        velocity: (3,) of the tool [m/s].
    """

    def __init__(self, config: GuidingConfig) -> None:
        self._config = config
        self.velocity = np.zeros(3)

    def step(self, force: ArrayLike, dt: float, *, held: bool) -> Array:
        """The tool's velocity (3,) after ``dt`` seconds.

        Args:
            force: (3,) of the hand on the tool, in the axes of the velocity [N].
            dt: Since the last step [s].
            held: Whether somebody holds the switch; without, the tool slows down and stands.

        Raises:
            InputError: the force is not finite.
        """
        push, config = np.asarray(force, dtype=np.float64), self._config
        if push.shape != (3,) or not np.isfinite(push).all():
            raise InputError(f"a force {push.tolist()}", valid="three finite numbers")
        speed = float(np.linalg.norm(self.velocity))
        if not held:
            left = max(speed - config.deceleration * dt, 0.0)
            self.velocity = self.velocity * (left / speed) if speed > 0.0 else np.zeros(3)
            return self.velocity
        size = float(np.linalg.norm(push))
        felt = push * (max(size - config.dead_band, 0.0) / size) if size > 0.0 else push
        goal = felt / config.damping
        share = math.exp(-config.damping / config.mass * dt)
        moved = goal + share * (self.velocity - goal)
        fast = float(np.linalg.norm(moved))
        self.velocity = moved * min(1.0, config.speed / fast) if fast > 0.0 else moved
        return self.velocity
