"""The robot's outline and limits, from parameters or from what its package says."""

from __future__ import annotations

import numpy as np

from roboyard.control.drive_config import DriveLimits
from roboyard.description.extent import FootprintPolygon
from roboyard.navigation.controllers import MotionLimits
from roboyard.navigation.driving import Pace
from roboyard.navigation.footprint import Footprint

_UNKNOWN_RADIUS = 0.25
"""Of a robot about whose shape nobody says anything [m]."""


def padded_footprint(polygon: FootprintPolygon | None, padding: float) -> Footprint:
    """Return the footprint that a robot is planned with.

    Args:
        polygon: Corners of the robot's own [m]; None or empty where nobody knows them: then that of a usual robot.
        padding: Addition on each side [m].

    Raises:
        ConfigError: The corners form no polygon.
    """
    own = np.asarray(polygon) if polygon else Footprint.circle(_UNKNOWN_RADIUS).corners
    corners = Footprint(own).corners
    return Footprint(corners + np.sign(corners) * padding)


def limits_of(pace: Pace, own: DriveLimits | None) -> MotionLimits:
    """Return how the robot is driven: as the settings say, as far as its drive can; carefully where nobody says.

    Args:
        pace: The settings.
        own: Limits of the robot's drive; None where nobody knows them.
    """
    own, default = own or DriveLimits(), MotionLimits()

    def choose(wanted: float | None, able: float | None, otherwise: float) -> float:
        if wanted is None:
            return float(able) if able else otherwise
        return float(min(wanted, able)) if able else float(wanted)

    forward, turn = (
        choose(pace.forward, own.speed, default.forward),
        choose(pace.turn, own.angular_speed, default.turn),
    )
    return MotionLimits(
        forward=forward,
        backward=choose(pace.backward, own.speed, default.backward),
        sideways=choose(pace.sideways, own.speed, default.sideways) if pace.sideways else 0.0,
        turn=turn,
        acceleration=choose(pace.acceleration, own.acceleration, default.acceleration),
        turn_acceleration=choose(pace.turn_acceleration, own.angular_acceleration, default.turn_acceleration),
        latency=pace.latency,
        least=min(own.min_speed, forward),
        least_turn=min(own.min_angular_speed, turn),
    )
