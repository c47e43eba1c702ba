"""People as obstacles: upright capsules, or those of their bodies' parts; the wider the faster they move."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.config import field as setting
from roboyard.description import Capsule
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.manipulation.collision import Obstacle

_STEP, _FINE = 0.02, 0.01
"""Places and widths are rounded to this, those of parts to the second, so that who stands does not change the scene all
the time [m]."""


@dataclass(frozen=True)
class PeopleSettings:
    """How much room people get.

    Attributes:
        height: Of a capsule [m].
        radius: Of somebody who stands, arms included [m].
        ahead: Whoever walks gets so much of the way of this time in addition, all round: people turn [s].
        within: Farther from the arm's foot parts of bodies do not matter [m].
        room: Round each part of a body [m].
    """

    height: float = setting(1.9, unit="m", low=0.1, high=3.0)
    radius: float = setting(0.35, unit="m", low=0.05, high=2.0)
    ahead: float = setting(0.3, unit="s", low=0.0, high=5.0)
    within: float = setting(1.5, unit="m", low=0.1, high=100.0)
    room: float = setting(0.02, unit="m", low=0.0, high=1.0)


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


def parts_near(
    middles: ArrayLike, radii: ArrayLike, lengths: ArrayLike, foot: ArrayLike, settings: PeopleSettings
) -> NDArray[np.bool_]:
    """Which parts (b,) of somebody's body are near enough to matter; those that make no sense are among them.

    Args:
        middles: (b, 3) of the parts' capsules [m].
        radii: (b,) of them [m].
        lengths: (b,) of their straight parts [m].
        foot: (3,) where the arm stands [m].
        settings: How near that is.
    """
    away = np.linalg.norm(np.asarray(middles) - np.asarray(foot), axis=-1)
    return np.asarray(~(away > settings.within + 0.5 * np.asarray(lengths) + np.asarray(radii)))


def part_at(name: str, T: SE3, radius: float, length: float, speed: float, settings: PeopleSettings) -> Obstacle:
    """A part of somebody's body as an obstacle.

    Args:
        name: Of the obstacle.
        T: Of the part's capsule, which lies along its z.
        radius: Of it [m].
        length: Of its straight part [m].
        speed: Of its middle [m/s].
        settings: How much room it gets.

    Raises:
        InputError: something is not finite, or negative.
    """
    where = T.translation
    if not (np.isfinite(where).all() and 0.0 <= speed < math.inf and 0.0 < radius < 1.0 and 0.0 <= length < 3.0):
        raise InputError(f"a part of radius {radius}, length {length}, at {speed} m/s", where=name, valid="a capsule")
    wide = math.ceil((radius + settings.room + settings.ahead * speed) / _FINE - 1e-9) * _FINE
    place = np.round(where / _FINE) * _FINE
    return Obstacle(name, Capsule(wide, max(length, 1e-3)), SE3(np.round(T.rotation, 2), place))
