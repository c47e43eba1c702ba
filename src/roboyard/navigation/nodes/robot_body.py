"""The robot's outline and limits, from parameters or from what its package says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roboyard.errors import ConfigError
from roboyard.navigation.controllers import MotionLimits
from roboyard.navigation.driving import Pace
from roboyard.navigation.footprint import Footprint

_UNKNOWN_RADIUS = 0.25
"""Of a robot about whose shape nobody says anything [m]."""


def footprint_of(given: Sequence[float], outline: Any, padding: float) -> Footprint:
    """The outline that is planned with.

    Args:
        given: x, y, x, y, … [m]; empty for the robot's own.
        outline: Corners (n, 2) of the robot's own [m], or None.
        padding: Added on each side [m].

    Raises:
        ConfigError: numbers that do not come in pairs, or an outline that is none.
    """
    if len(given) % 2:
        raise ConfigError(f"{len(given)} numbers", location="footprint", valid="pairs: x, y, x, y, …")
    own = Footprint.circle(_UNKNOWN_RADIUS).corners if outline is None or not len(outline) else np.asarray(outline)
    corners = Footprint(np.reshape(given, (-1, 2)) if given else own).corners
    return Footprint(corners + np.sign(corners) * padding)


def limits_of(pace: Pace, own: Any) -> MotionLimits:
    """How the robot is driven: as the settings say, else as its drive can, else carefully."""

    def choose(name: str, of_drive: str, default: float) -> float:
        wanted, able = getattr(pace, name), getattr(own, of_drive, None)
        if wanted is None:
            return float(able) if able else default
        return float(min(wanted, able)) if able else float(wanted)

    default = MotionLimits()
    forward, turn = choose("forward", "speed", default.forward), choose("turn", "angular_speed", default.turn)
    return MotionLimits(
        forward=forward,
        backward=choose("backward", "speed", default.backward),
        sideways=choose("sideways", "speed", default.sideways) if pace.sideways else 0.0,
        turn=turn,
        acceleration=choose("acceleration", "acceleration", default.acceleration),
        turn_acceleration=choose("turn_acceleration", "angular_acceleration", default.turn_acceleration),
        latency=pace.latency,
        least=min(getattr(own, "min_speed", 0.0), forward),
        least_turn=min(getattr(own, "min_angular_speed", 0.0), turn),
    )
