"""Where a body on legs has gone: by the feet that stood, and an inertial unit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.geometry import wrap_angle

Array = NDArray[np.float64]


class LeggedOdometry:
    """Adds up how feet that stood have moved in the body; pure, with explicit state.

    Feet that stood at two moments did not move on the ground: the body did, against them.  Its tilt comes from the
    inertial unit, its turning, too; without one, from the feet, as they fit best (Umeyama, 1991, in the plane).  While
    no feet are known to stand, it goes on as before.

    Attributes:
        x: In the frame where it began [m].
        y: In the same frame [m].
        z: Height above the feet that stand [m].
        yaw: Heading [rad].
        tilt: Roll and pitch [rad].
        speed: (3,) forward [m/s], to the left [m/s], turning [rad/s].
    """

    def __init__(self) -> None:
        self.x = self.y = self.z = self.yaw = 0.0
        self.tilt = (0.0, 0.0)
        self.speed = np.zeros(3)
        self._feet: Array | None = None
        self._standing: NDArray[np.bool_] | None = None
        self._heading: float | None = None

    def update(
        self, dt: float, feet: ArrayLike, standing: ArrayLike, turn: tuple[float, float, float] | None = None
    ) -> None:
        """Take in a moment.

        Args:
            dt: Since the one before [s].
            feet: (l, 3) in the body, by the joints as they are [m].
            standing: (l) which of them are on the ground.
            turn: Roll, pitch and heading of the inertial unit [rad]; the heading counts from anywhere.
        """
        down = np.asarray(standing, dtype=bool)
        if turn is not None:
            self.tilt = turn[:2]
        level = _levelled(np.asarray(feet, dtype=np.float64), *self.tilt)
        if down.any():
            self.z = -float(level[down, 2].mean())
        before, were, heading = self._feet, self._standing, self._heading
        self._feet, self._standing, self._heading = level, down, None if turn is None else turn[2]
        if before is None or were is None:
            return
        both = down & were
        old, new = before[both, :2], level[both, :2]
        if turn is not None and heading is not None:
            angle = wrap_angle(turn[2] - heading)
        elif both.sum() > 1:
            a, b = old - old.mean(axis=0), new - new.mean(axis=0)
            angle = -math.atan2(float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum()), float((a * b).sum()))
        else:
            angle = float(self.speed[2]) * dt
        if both.any():
            c, s = math.cos(angle), math.sin(angle)
            moved = (old - new @ np.array([[c, s], [-s, c]])).mean(axis=0)
        else:
            moved = self.speed[:2] * dt
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        self.x += c * float(moved[0]) - s * float(moved[1])
        self.y += s * float(moved[0]) + c * float(moved[1])
        self.yaw = wrap_angle(self.yaw + angle)
        self.speed = np.array([moved[0], moved[1], angle]) / dt

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return {name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    def load(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        for name, value in saved.items():
            setattr(self, name, np.array(value) if isinstance(value, np.ndarray) else value)


def _levelled(feet: Array, roll: float, pitch: float) -> Array:
    """Feet (l, 3) in the body's frame without its tilt."""
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    turned = np.array([[cp, sp * sr, sp * cr], [0.0, cr, -sr], [-sp, cp * sr, cp * cr]])
    out: Array = feet @ turned.T
    return out
