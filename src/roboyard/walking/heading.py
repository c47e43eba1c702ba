"""Keeping a heading while walking: slipping feet turn a body, its inertial unit tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array


class HeadingHold:
    """Adds to the turning wanted what brings a body back to the heading it should have; pure, with explicit state.

    The heading that it should have begins with the one it has when it sets out, and goes on as its legs carry it of the
    turning wanted: a body that is slowed down is not late.

    Args:
        gain: Turning by how far it is off [1/s]; 0: none.
        most: Of what is added [rad/s].
    """

    def __init__(self, gain: float, most: float = 0.3) -> None:
        self.gain, self.most = gain, most
        self._should: float | None = None

    def steer(self, twist: Array, heading: float | None) -> Array:
        """The twist (3,) to walk with.

        Args:
            twist: Wanted: forward, left [m/s], turning [rad/s]; all zero forgets the heading.
            heading: Of the inertial unit [rad]; None: nobody knows.
        """
        vx, vy, turn = twist.tolist()
        if heading is None or self.gain <= 0.0 or not (vx or vy or turn):
            self._should = None
            return twist
        if self._should is None:
            self._should = heading
        off = self.gain * wrap_angle(self._should - heading)
        return np.array([vx, vy, turn + min(max(off, -self.most), self.most)])

    def carried(self, wanted: Array, told: Array, done: Array, dt: float) -> Array:
        """What legs did of the twist wanted (3,).

        Args:
            wanted: As `steer` got it.
            told: As it gave it.
            done: (3,) how the legs carried the body.
            dt: How long [s].
        """
        if self._should is None:
            return done
        (ax, ay, aw), (bx, by, bw) = told.tolist(), done.tolist()
        square = ax * ax + ay * ay + aw * aw
        share = min(max((ax * bx + ay * by + aw * bw) / square, 0.0), 1.0) if square > 0.0 else 0.0
        turned = share * float(wanted[2])
        self._should = wrap_angle(self._should + turned * dt)
        return np.array([bx, by, turned])

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {"should": self._should}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._should = saved["should"]
