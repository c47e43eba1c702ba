"""The last stretch of a base that goes sideways too: straight to a pose, place and heading at once."""

from __future__ import annotations

import math

from roboyard.control import PlanarTwist
from roboyard.geometry import SE2
from roboyard.navigation.controllers import Tolerance
from roboyard.navigation.driving.behaviors import Body
from roboyard.navigation.driving.config import ApproachSettings
from roboyard.navigation.driving.situation import Remembering, Situation
from roboyard.navigation.errors import TimeOut

_STANDS = (0.01, 0.02)
"""Slower than this the base stands [m/s], [rad/s]."""
_AIM = 0.5
"""It drives on until it is so much nearer than tolerated, lest noise in its pose undo the arrival."""


class Approach(Remembering):
    """Drives straight to a pose that is near, and stands there.

    Each of place and heading is approached as fast as can still be braked within what is left of it.

    Args:
        body: Of the robot; its base goes sideways.
        goal: In the map.
        tolerance: How near is there.
        settings: How fast, and how long it may take.
    """

    remembered = ("_began",)

    def __init__(self, body: Body, goal: SE2, tolerance: Tolerance, settings: ApproachSettings) -> None:
        self._body, self._goal, self._tolerance, self._settings = body, goal, tolerance, settings
        self._began: float | None = None

    def step(self, now: Situation) -> PlanarTwist | None:
        """See ``Task``; raises Blocked, TimeOut."""
        self._began = now.time if self._began is None else self._began
        left = now.pose.inverse() @ self._goal
        away, turn = math.hypot(left.x, left.y), abs(left.theta)
        stands = math.hypot(now.twist.vx, now.twist.vy) < _STANDS[0] and abs(now.twist.wz) < _STANDS[1]
        if stands and away <= self._tolerance.xy and turn <= self._tolerance.yaw:
            return None
        if now.time - self._began > self._settings.allowance:
            raise TimeOut(f"still {away:.3f} m and {turn:.3f} rad from the goal after the time allowed")
        limits = self._body.limits
        speed = turning = 0.0
        if away > _AIM * self._tolerance.xy:
            speed = self._body.approach(away, min(self._settings.speed, limits.sideways), 0.5 * limits.acceleration)
        if turn > _AIM * self._tolerance.yaw:
            fastest = min(self._settings.turn, limits.turn)
            turning = self._body.approach(turn, fastest, 0.5 * limits.turn_acceleration)
        share = speed / max(away, 1e-9)
        twist = PlanarTwist(share * left.x, share * left.y, math.copysign(turning, left.theta))
        self._body.check(now, twist)
        return twist
