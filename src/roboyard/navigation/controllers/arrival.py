"""When a robot has arrived."""

from __future__ import annotations

import math

from roboyard.config import Config, parameter
from roboyard.geometry import SE2, wrap_angle


class Tolerance(Config):
    """How near to a goal counts as there."""

    xy: float = parameter(0.1, unit="m", low=1e-3, high=100.0, doc="Tolerance of the position.")
    yaw: float = parameter(
        0.15, unit="rad", low=1e-3, high=math.pi + 1e-9, doc="Tolerance of the heading; pi: any heading."
    )


class Arrival:
    """Remembers that the place was reached: while the robot turns to the heading, it may drift a little.

    Args:
        tolerance: How near is near enough.
    """

    _DRIFT = 1.5  # of the tolerated distance: how far the robot may slip while it turns

    def __init__(self, tolerance: Tolerance) -> None:
        self._tolerance = tolerance
        self._goal: SE2 | None = None
        self._in_place = False

    def expect(self, goal: SE2) -> None:
        """Go by another goal; one that has hardly moved keeps what is known."""
        if self._goal is None or self._goal.distance(goal) > 0.5 * self._tolerance.xy:
            self._in_place = False
        self._goal = goal

    def in_place(self, pose: SE2) -> bool:
        """Whether only the heading is left to reach."""
        if self._goal is None:
            return False
        room = self._tolerance.xy * (self._DRIFT if self._in_place else 1.0)
        self._in_place = pose.distance(self._goal) <= room
        return self._in_place

    def heading_left(self, pose: SE2) -> float:
        """How far to turn to the goal's heading [rad], 0 where any will do."""
        if self._goal is None or self._tolerance.yaw >= math.pi:
            return 0.0
        return wrap_angle(self._goal.theta - pose.theta)

    def save_state(self) -> bool:
        """What it remembers."""
        return self._in_place

    def load_state(self, saved: bool) -> None:
        """Counterpart of `save`, after ``expect``."""
        self._in_place = saved

    def complete(self, pose: SE2) -> bool:
        """Whether place and heading are reached."""
        return self.in_place(pose) and abs(self.heading_left(pose)) <= self._tolerance.yaw
