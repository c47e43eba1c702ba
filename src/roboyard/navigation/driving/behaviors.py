"""Simple motions, each bounded in time even when blocked: spin, drive straight, wait."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.controllers import MotionLimits, Surroundings
from roboyard.navigation.driving.situation import Remembering, Situation
from roboyard.navigation.errors import Blocked, TimeOut
from roboyard.navigation.footprint import Footprint

_FINEST_TURN = 0.02
"""A spin is done this near to its angle [rad]."""
_FINEST_WAY = 0.01
"""A straight drive is done this near to its distance [m]."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a motion has to know of the robot.

    Attributes:
        footprint: The outline that is planned with.
        outline: That of the robot itself, on which it falls back in a narrow place.
        limits: Of its base.
        period: Between steps [s].
    """

    footprint: Footprint
    outline: Footprint
    limits: MotionLimits
    period: float

    def approach(self, left: float, fastest: float, acceleration: float) -> float:
        """The speed from which ``left`` can still be braked within, one period's way allowed for."""
        braking = math.sqrt(2.0 * acceleration * left + (acceleration * self.period) ** 2) - acceleration * self.period
        return min(fastest, braking, left / self.period)

    def check(self, now: Situation, twist: PlanarTwist) -> None:
        """Refuse a velocity that would touch something before the robot stands again.

        Raises:
            Blocked: it would.
        """
        limits, speed = self.limits, math.hypot(twist.vx, twist.vy)
        reach = speed * (2.0 * self.period + speed / limits.acceleration)
        seen = Surroundings.about(now.pose, now.local, self.footprint, reach)
        # with room to spare, for whatever is to follow: half the deceleration, and two periods until it begins
        braking = PlanarTwist(*(0.5 * limits.acceleration,) * 2, 0.5 * limits.turn_acceleration)
        if not seen.stops_clear(twist, braking, 2.0 * self.period):
            raise Blocked("something stands where the robot would move", valid="room for the motion")


class Spin(Remembering):
    """Turns on the spot by an angle.

    Args:
        body: Of the robot.
        angle: To the left, negative to the right [rad]; more than a turn is fine.
        allowance: Longest time [s].
        speed: Fastest turning [rad/s].

    Raises:
        InputError: numbers that are not finite, or a time that is not positive.
    """

    remembered = ("turned", "_last", "_began")

    def __init__(self, body: Body, angle: float, allowance: float, speed: float = 1.0) -> None:
        _check(angle=angle)
        check_positive(time_allowance=allowance, speed=speed)
        self._body, self._angle, self._allowance = body, angle, allowance
        self._speed = min(speed, body.limits.turn)
        self.turned = 0.0
        self._last: float | None = None
        self._began: float | None = None

    def step(self, now: Situation) -> PlanarTwist | None:
        """See ``Task``."""
        self._began = now.time if self._began is None else self._began
        if self._last is not None:
            self.turned += wrap_angle(now.pose.theta - self._last)
        self._last = now.pose.theta
        left = self._angle - self.turned
        if left * self._angle <= 0.0 or abs(left) < _FINEST_TURN:
            return None
        if now.time - self._began > self._allowance:
            raise TimeOut(f"turned {self.turned:.2f} of {self._angle:.2f} rad in the time allowed")
        speed = self._body.approach(abs(left), self._speed, self._body.limits.turn_acceleration)
        twist = PlanarTwist(0.0, 0.0, math.copysign(max(speed, 0.05), left))
        self._body.check(now, twist)
        return twist


class Straight(Remembering):
    """Drives ahead, or back, along the heading that the robot has at the start.

    Args:
        body: Of the robot.
        distance: To drive, negative for back [m].
        speed: Fastest [m/s], without a sign.
        allowance: Longest time [s].

    Raises:
        InputError: numbers that are not finite, or a speed or time that is not positive.
    """

    remembered = ("driven", "_start", "_began")

    def __init__(self, body: Body, distance: float, speed: float, allowance: float) -> None:
        _check(distance=distance)
        check_positive(speed=speed, time_allowance=allowance)
        fastest = body.limits.forward if distance > 0.0 else body.limits.backward
        if fastest == 0.0:
            raise InputError("this base does not drive back", valid="a distance ahead")
        self._body, self._distance, self._allowance = body, distance, allowance
        self._speed = min(speed, fastest)
        self.driven = 0.0
        self._start: tuple[float, float, float] | None = None
        self._began: float | None = None

    def step(self, now: Situation) -> PlanarTwist | None:
        """See ``Task``."""
        if self._start is None or self._began is None:
            self._start, self._began = (now.pose.x, now.pose.y, now.pose.theta), now.time
        moved = SE2(*self._start).inverse() @ now.pose
        self.driven = moved.x
        left = self._distance - moved.x
        if left * self._distance <= 0.0 or abs(left) < _FINEST_WAY:
            return None
        if now.time - self._began > self._allowance:
            raise TimeOut(f"drove {self.driven:.2f} of {self._distance:.2f} m in the time allowed")
        speed = self._body.approach(abs(left), self._speed, self._body.limits.acceleration)
        ahead = math.copysign(max(speed, 0.02), self._distance)
        # keeps its heading, as a rail would
        turn = max(-0.5, min(0.5, -2.0 * moved.theta - 2.0 * math.copysign(1.0, ahead) * moved.y))
        twist = PlanarTwist(ahead, 0.0, turn)
        self._body.check(now, twist)
        return twist


class Wait(Remembering):
    """Stands still.

    Args:
        seconds: How long.

    Raises:
        InputError: not a positive time.
    """

    remembered = ("left", "_until")

    def __init__(self, seconds: float) -> None:
        check_positive(time=seconds)
        self.left = seconds
        self._until: float | None = None

    def step(self, now: Situation) -> PlanarTwist | None:
        """See ``Task``."""
        if self._until is None:
            self._until = now.time + self.left
        self.left = max(self._until - now.time, 0.0)
        return STANDSTILL if self.left > 1e-9 else None


def _check(**values: float) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise InputError(f"{name} = {value}", valid="a finite number")


def check_positive(**values: float) -> None:
    """Refuse arguments that are not positive and finite.

    Raises:
        InputError: it names the first.
    """
    _check(**values)
    for name, value in values.items():
        if value <= 0.0:
            raise InputError(f"{name} = {value}", valid="more than 0")
