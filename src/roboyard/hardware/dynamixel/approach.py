"""From where the joints are to where they are wanted, without a lurch."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Approach:
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
        self._takes = -1.0
        self._gone = 0.0
        self.at = start.copy()

    @property
    def arrived(self) -> bool:
        """Whether it has come to what is wanted."""
        return 0.0 <= self._takes <= self._gone

    def advance(self, dt: float, wanted: Array) -> Array:
        """(n) the set-points ``dt`` seconds later, towards ``wanted`` (n) [rad]."""
        if self._takes < 0.0:
            self._takes = 0.5 * math.pi * float(np.abs(wanted - self._start).max()) / self._start_speed
        self._gone += dt
        share = 1.0 if self.arrived else 0.5 - 0.5 * math.cos(math.pi * self._gone / self._takes)
        target = self._start + share * (wanted - self._start)
        most = (self._speed if self.arrived else self._speed + self._start_speed) * dt
        self.at = self.at + np.clip(target - self.at, -most, most)
        return self.at
