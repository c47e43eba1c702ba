"""A way that somebody walks: where they are after so many metres, where they face, and how fast they may be there."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np

from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array

_FINE = 0.05
"""From one place to the next where bends are looked at [m]."""
_AHEAD = 0.15
"""Somebody faces from so far behind them to so far ahead of them [m]."""
_TURN, _ASIDE = 1.8, 1.2
"""Fastest turn while walking, and acceleration to the side [rad/s, m/s²]."""
_FAST = 10.0
"""Faster than anybody goes [m/s]."""
_BEND = 0.6
"""So far before a corner a bend begins, where there is room [m]."""
_LEAST_BEND = 0.08


class Route:
    """A polyline.

    Args:
        points: (n, 2) from the first place to the last, at least two [m].
        slowing: How hard somebody slows down before a bend [m/s²].

    Attributes:
        points: See above.
        length: [m].
    """

    def __init__(self, points: Array, slowing: float) -> None:
        self.points = points
        self._places: list[list[float]] = points.tolist()
        steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
        self._gone: list[float] = [0.0, *np.cumsum(steps).tolist()]
        self.length = self._gone[-1]
        self._squares = self._squared_speeds(slowing) if len(points) > 2 else [_FAST**2]

    @classmethod
    def through(cls, corners: Array, slowing: float, free: Callable[[Array], bool]) -> Route:
        """With bends in place of corners, as wide as there is room.

        Args:
            corners: (n, 2) [m].
            slowing: See above.
            free: Whether all of some places (k, 2) can be walked over.
        """
        pieces = [corners[:1]]
        for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
            back, on = before - corner, after - corner
            behind, ahead = float(np.linalg.norm(back)), float(np.linalg.norm(on))
            room = min(_BEND, 0.5 * behind, 0.5 * ahead)
            bend = corner[None]
            while room >= _LEAST_BEND:
                s = np.linspace(0.0, 1.0, 9)[:, None]
                first, last = corner + back * (room / behind), corner + on * (room / ahead)
                curve = (1.0 - s) ** 2 * first + 2.0 * s * (1.0 - s) * corner + s**2 * last
                if free(curve):
                    bend = curve
                    break
                room *= 0.5
            pieces.append(bend)
        return cls(np.concatenate([*pieces, corners[-1:]]), slowing)

    def place(self, gone: float) -> tuple[float, float]:
        """Where somebody is who has gone so far [m]."""
        k = min(max(bisect_right(self._gone, gone), 1), len(self._gone) - 1)
        step = self._gone[k] - self._gone[k - 1]
        share = min(max((gone - self._gone[k - 1]) / step, 0.0), 1.0) if step > 0.0 else 1.0
        (x, y), (to_x, to_y) = self._places[k - 1], self._places[k]
        return x + share * (to_x - x), y + share * (to_y - y)

    def facing(self, gone: float) -> float:
        """Where they face [rad]."""
        straight = len(self._places) == 2
        behind, ahead = (0.0, self.length) if straight else (gone - _AHEAD, gone + _AHEAD)
        (x, y), (to_x, to_y) = self.place(behind), self.place(ahead)
        return math.atan2(to_y - y, to_x - x)

    def fastest(self, gone: float) -> float:
        """How fast they may be there for the sake of bends [m/s]."""
        if len(self._squares) == 1:
            return _FAST
        at = min(max(gone / self.length, 0.0), 1.0) * (len(self._squares) - 1)
        k = min(int(at), len(self._squares) - 2)
        return math.sqrt(self._squares[k] + (at - k) * (self._squares[k + 1] - self._squares[k]))

    def _squared_speeds(self, slowing: float) -> list[float]:
        """Greatest squared speeds at even distances, so that each can be braked to from the one before [m²/s²]."""
        at = np.linspace(0.0, self.length, max(math.ceil(self.length / _FINE), 1) + 1)
        facing = np.array([self.facing(s) for s in at.tolist()])
        bend = np.abs(wrap_angle(np.diff(facing))) / max(float(at[1]), 1e-9)
        bend = np.maximum(np.maximum(np.append(bend, 0.0), np.append(0.0, bend)), 1e-3)
        squares = np.minimum(np.minimum((_TURN / bend) ** 2, _ASIDE / bend), _FAST**2).tolist()
        for k in range(len(squares) - 2, -1, -1):
            squares[k] = min(squares[k], squares[k + 1] + 2.0 * slowing * float(at[1]))
        found: list[float] = squares
        return found

    def save_state(self) -> list[list[float]]:
        """State as plain data: the points."""
        found: list[Any] = self.points.tolist()
        return found
