"""From where the joints are to where they are wanted, without a lurch."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class SoftStartRamp:
    """Set-points that begin where the joints are and come to the wanted ones on a cosine.

    The first wanted positions say how long that takes; they may move meanwhile.  Later no joint's set-point goes
    faster than its speed.

    Args:
        start: (n) where the joints are [rad].
        speed: (n) greatest speeds [rad/s].
        start_speed: Greatest speed on the way to the first wanted positions, beside theirs [rad/s].
    """

    def __init__(self, start: Array, speed: Array, start_speed: float) -> None:
        self._start, self._speed, self._start_speed = start, speed, start_speed
        self._duration = -1.0
        self._elapsed = 0.0
        self.setpoints = start.copy()

    @property
    def is_finished(self) -> bool:
        """Whether it has come to what is wanted."""
        return 0.0 <= self._duration <= self._elapsed

    def advance(self, dt: float, target: Array) -> Array:
        """(n) the set-points ``dt`` seconds later, towards ``target`` (n) [rad]."""
        if self._duration < 0.0:
            self._duration = 0.5 * math.pi * float(np.abs(target - self._start).max()) / self._start_speed
        self._elapsed += dt
        fraction = 1.0 if self.is_finished else 0.5 - 0.5 * math.cos(math.pi * self._elapsed / self._duration)
        ramped = self._start + fraction * (target - self._start)
        max_change = (self._speed if self.is_finished else self._speed + self._start_speed) * dt
        self.setpoints = self.setpoints + np.clip(ramped - self.setpoints, -max_change, max_change)
        return self.setpoints
