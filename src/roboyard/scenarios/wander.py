"""Driving about by lidar: where there is room, the operator drives.  Pure: scans in, twists out.

For each heading the free way of a disc (the robot with a margin) is found from the scan's points; the operator steers
for the heading with most room, rather ahead than aside, and slows down as the way ahead gets short.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_HEADINGS = np.radians(np.arange(-100.0, 101.0, 5.0))
_FAR = 3.0
"""Room beyond this many metres is as good as any."""
_ASIDE = 0.5
"""Metres of room that one radian aside must be better by."""
_MOOD = 0.2
"""Metres of room per radian by which it favours one side for a while, so as not to go round one pillar forever."""
_MOOD_SECONDS = 14.0
"""How long it favours a side."""
_STEERING = 1.5
"""Turn rate per heading [1/s]."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A planar scan: ``points`` (n, 2) [m] in the robot's frame, returns only."""

    points: NDArray[np.float64]


def free_ways(points: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """How far a disc of ``radius`` [m] can go along each of the headings before it touches a point, at most 3 m.

    Args:
        points: (n, 2) [m] in the robot's frame.
        radius: Of the disc [m]; points inside it block every heading that leads towards them.

    Returns:
        (headings,) [m].
    """
    ahead = np.column_stack([np.cos(_HEADINGS), np.sin(_HEADINGS)])
    aside = np.column_stack([-ahead[:, 1], ahead[:, 0]])
    along, lateral = points @ ahead.T, points @ aside.T  # (n, headings)
    blocking = (np.abs(lateral) < radius) & (along > 0.0)
    way = along - np.sqrt(np.maximum(radius**2 - lateral**2, 0.0))
    free: NDArray[np.float64] = np.min(np.where(blocking, np.maximum(way, 0.0), _FAR), axis=0, initial=_FAR)
    return free


class Wanderer:
    """Chooses twists from scans.

    Attributes:
        turning: Direction in which it turns on the spot (1 left, -1 right), 0 while it drives.
    """

    def __init__(self) -> None:
        self.turning = 0
        self._seen: Sight | None = None
        self._twist = (0.0, 0.0)

    def update(self, time: float, sight: Sight | None, radius: float, speed: float, turn: float) -> tuple[float, float]:
        """The twist (v [m/s], w [rad/s]) to send; it changes with each new scan.

        Args:
            time: Now [s].
            sight: Newest scan; None while nothing was seen: it waits.
            radius: Of the robot with its margin [m].
            speed: At most [m/s].
            turn: At most [rad/s].
        """
        if sight is not self._seen and sight is not None:
            self._seen = sight
            self._twist = self._choose(time, sight, radius, speed, turn)
        return self._twist

    def _choose(self, time: float, sight: Sight, radius: float, speed: float, turn: float) -> tuple[float, float]:
        free = free_ways(sight.points, radius)
        middle = len(_HEADINGS) // 2
        if self.turning and free[middle] < 2.0 * radius:
            return 0.0, self.turning * turn
        self.turning = 0
        side = 1.0 if int(time / _MOOD_SECONDS) % 2 == 0 else -1.0
        best = int(np.argmax(free - _ASIDE * np.abs(_HEADINGS) + _MOOD * side * _HEADINGS))
        if free[middle] < 0.5 * radius:
            self.turning = 1 if _HEADINGS[best] >= 0.0 else -1
            return 0.0, self.turning * turn
        heading = float(_HEADINGS[best])
        way = float(min(free[middle], free[best]))
        v = min(speed, 0.6 * way) * max(0.2, math.cos(heading))
        return v, max(-turn, min(turn, _STEERING * heading))
