"""Zones about a robot: what is to happen when something is in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import ConfigError
from roboyard.geometry import polygons


class Action(Enum):
    """What a zone makes of a command; the values are those of nav2_msgs/CollisionMonitorState."""

    NONE = 0
    STOP = 1
    SLOWDOWN = 2
    APPROACH = 3
    LIMIT = 4


def outline(corners: ArrayLike, where: str) -> NDArray[np.float64]:
    """Corners (n, 2) [m] of a polygon that is one, anticlockwise.

    Raises:
        ConfigError: fewer than three corners, not finite, crossing itself, or without area.
    """
    array = np.asarray(corners, dtype=np.float64)
    if array.ndim != 2 or array.shape[1:] != (2,) or len(array) < 3 or not np.isfinite(array).all():
        raise ConfigError(
            f"a polygon of shape {array.shape}", location=where, valid="(n, 2), finite, at least 3 corners"
        )
    if not polygons.is_simple(array):
        raise ConfigError("its outline crosses itself", location=where, valid="corners in order, each once")
    if abs(polygons.signed_area(array)) < 1e-6:
        raise ConfigError("its outline holds no area", location=where, valid="corners that span an area")
    return np.ascontiguousarray(polygons.make_counter_clockwise(array))


@dataclass(frozen=True)
class Zone:
    """A part of the plane about the robot, as one of Nav2's collision monitor's polygons or circles.

    Attributes:
        name: For messages.
        action: Stop; slow down to a share of the speed; limit the speed; approach: keep a time from touching.
        corners: (n, 2) in the base's frame [m]; for a circle ``polygons.regular_polygon(radius)``.
        min_points: So many points of the sensors make something.
        ratio: Of ``SLOWDOWN``: what is left of the speed.
        linear_limit: Of ``LIMIT`` [m/s].
        angular_limit: Of ``LIMIT`` [rad/s].
        time: Of ``APPROACH``: from touching, at the present speed [s].
        speeds: The zone holds for forward speeds within these [m/s].
        turns: And for turning rates within these [rad/s].

    Raises:
        ConfigError: a number out of range, or a polygon that is none.
    """

    name: str
    action: Action
    corners: NDArray[np.float64]
    min_points: int = 4
    ratio: float = 0.5
    linear_limit: float = 0.5
    angular_limit: float = 0.5
    time: float = 2.0
    speeds: tuple[float, float] = (-math.inf, math.inf)
    turns: tuple[float, float] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        where = f"zone {self.name}"
        object.__setattr__(self, "corners", outline(self.corners, where))
        if self.action is Action.NONE:
            raise ConfigError("an action of none", location=where, valid="stop, slowdown, limit, approach")
        if self.min_points < 1:
            raise ConfigError(f"min_points = {self.min_points}", location=where, valid="at least 1")
        if not 0.0 <= self.ratio <= 1.0:
            raise ConfigError(f"ratio = {self.ratio}", location=where, valid="0 to 1")
        for key in ("linear_limit", "angular_limit", "time"):
            if not 0.0 <= getattr(self, key) < math.inf:
                raise ConfigError(f"{key} = {getattr(self, key)}", location=where, valid="zero or more, finite")
        for key in ("speeds", "turns"):
            low, high = getattr(self, key)
            if not low < high:
                raise ConfigError(f"{key} from {low} to {high}", location=where, valid="ascending")

    def holds_for(self, vx: float, wz: float) -> bool:
        """Whether it is to be looked at, at such a command."""
        return self.speeds[0] <= vx <= self.speeds[1] and self.turns[0] <= wz <= self.turns[1]

    def inside(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those of the points (n, 2) that are in it; none if they are too few to be something."""
        found = points[polygons.contains(self.corners, points)]
        return found if len(found) >= self.min_points else found[:0]
