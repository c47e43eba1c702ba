"""Whether the robot comes on at all."""

from __future__ import annotations

import math

from roboyard.config import Config, parameter
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.driving.situation import Remembering


class Patience(Config):
    """How long without progress is too long."""

    way: float = parameter(0.25, unit="m", low=0.0, high=100.0, doc="Distance that counts as progress.")
    turn: float = parameter(0.5, unit="rad", low=0.01, high=100.0, doc="Turn that counts as progress too.")
    time: float = parameter(8.0, unit="s", low=0.1, high=1e4, doc="Time in which there must be progress.")


class Progress(Remembering):
    """Notices a robot that does not come on.

    Args:
        patience: What counts.
    """

    remembered = ("_mark",)

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._mark: tuple[float, float, float, float] | None = None

    def reset(self) -> None:
        """Count from the next call on."""
        self._mark = None

    def made(self, time: float, pose: SE2) -> bool:
        """Whether the robot came on within the time allowed."""
        if self._mark is None:
            self._mark = (time, pose.x, pose.y, pose.theta)
        since, x, y, theta = self._mark
        moved = math.hypot(pose.x - x, pose.y - y) > self._patience.way
        if moved or abs(wrap_angle(pose.theta - theta)) > self._patience.turn:
            self._mark = (time, pose.x, pose.y, pose.theta)
            return True
        return time - since <= self._patience.time
