"""People as obstacles: upright capsules, the wider the faster somebody walks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config import field as setting
from roboyard.description import Capsule
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.manipulation.collision import Obstacle

_STEP = 0.02
"""Places and widths are rounded to this, so that who stands does not change the scene all the time [m]."""


@dataclass(frozen=True)
class PeopleSettings:
    """How much room people get.

    Attributes:
        height: Of a capsule [m].
        radius: Of somebody who stands, arms included [m].
        ahead: Whoever walks gets so much of the way of this time in addition, all round: people turn [s].
    """

    height: float = setting(1.9, unit="m", low=0.1, high=3.0)
    radius: float = setting(0.35, unit="m", low=0.05, high=2.0)
    ahead: float = setting(0.3, unit="s", low=0.0, high=5.0)


def person_at(name: str, place: ArrayLike, speed: float, settings: PeopleSettings) -> Obstacle:
    """Somebody as an obstacle.

    Args:
        name: Of the obstacle.
        place: (3,) between the feet, in the world [m].
        speed: How fast they walk [m/s].
        settings: How much room they get.

    Raises:
        InputError: place or speed are not finite, or the speed is negative.
    """
    where = np.asarray(place, dtype=np.float64)
    if where.shape != (3,) or not np.isfinite(where).all() or not 0.0 <= speed < math.inf:
        raise InputError(f"somebody at {where.tolist()}, {speed} m/s", where=name, valid="finite numbers")
    radius = math.ceil((settings.radius + settings.ahead * speed) / _STEP - 1e-9) * _STEP + _STEP / 2.0
    x, y, z = (np.round(where / _STEP) * _STEP).tolist()
    length = max(settings.height - 2.0 * radius, 0.01)
    return Obstacle(name, Capsule(radius, length), SE3(translation=(x, y, z + settings.height / 2.0)))
