"""Where a body on legs has gone: by the feet that stood, and an inertial unit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from roboyard.compute import kernel
from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array


class LeggedOdometry:
    """Adds up how feet that stood have moved in the body; pure, with explicit state.

    Feet that stood at two moments did not move on the ground: the body did, against them.  Each counts by what it
    carried at the moment at which that was less, so that feet that are just coming or going, and slip, hardly do.  Feet
    that should be in the air count only where no others carry: one set takes over from the other while both are on
    their way.  Its tilt comes from the inertial unit, its turning, too; without one, from the feet, as they fit best
    (Umeyama, 1991, in the plane).  While no feet are known to stand, it goes on as before.

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
        self._loads = np.zeros((2, 0))
        self._heading: float | None = None

    def update(
        self,
        dt: float,
        feet: ArrayLike,
        loads: ArrayLike,
        turn: tuple[float, float, float] | None = None,
        down: ArrayLike = True,
    ) -> None:
        """Take in a moment.

        Args:
            dt: Since the one before [s].
            feet: (l, 3) in the body, by the joints as they are [m].
            loads: (l) what each carries, in any unit; 0 of those that touch nothing.
            turn: Roll, pitch and heading of the inertial unit [rad]; the heading counts from anywhere.
            down: (l) which should stand.
        """
        carried = np.outer((1.0, 1.0), np.asarray(loads, dtype=np.float64))
        carried[0] *= down
        if turn is not None:
            self.tilt = turn[:2]
        level = levelled(np.asarray(feet, dtype=np.float64), *self.tilt)
        before, were, heading = self._feet, self._loads, self._heading
        self._feet, self._loads, self._heading = level, carried, None if turn is None else turn[2]
        known = turn is not None and heading is not None
        angle = wrap_angle(turn[2] - heading) if turn is not None and heading is not None else float(self.speed[2]) * dt
        if before is None:
            before, were = level, np.zeros_like(carried)
        height, stood, angle, mx, my = body_motion(before, were, level, carried, angle, known)
        if height > -math.inf:
            self.z = height
        if before is level:
            return
        if not stood:
            mx, my = (self.speed[:2] * dt).tolist()
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        self.x += c * mx - s * my
        self.y += s * mx + c * my
        self.yaw = wrap_angle(self.yaw + angle)
        self.speed = np.array([mx / dt, my / dt, angle / dt])

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        for name, value in saved.items():
            setattr(self, name, np.array(value) if isinstance(value, np.ndarray) else value)


@kernel(examples=lambda: [(np.zeros((6, 3)), 0.0, 0.0)])
def levelled(feet: Array, roll: float, pitch: float) -> Array:
    """Feet (l, 3) in the body's frame without its tilt."""
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    out = np.empty_like(feet)
    for i in range(len(feet)):
        x, y, z = feet[i, 0], feet[i, 1], feet[i, 2]
        out[i, 0] = cp * x + sp * sr * y + sp * cr * z
        out[i, 1] = cr * y - sr * z
        out[i, 2] = -sp * x + cp * sr * y + cp * cr * z
    return out


@kernel(examples=lambda: [(np.zeros((6, 3)), np.ones((2, 6)), np.zeros((6, 3)), np.ones((2, 6)), 0.0, True)])
def body_motion(
    before: Array, were: Array, now: Array, are: Array, angle: float, known: bool
) -> tuple[float, bool, float, float, float]:
    """How a body moved against the feet that stood.

    Args:
        before: (l, 3) feet in the levelled body at the first moment [m].
        were: (2, l) what those carried that should stand, and what all did.
        now: (l, 3) at the second one.
        are: (2, l) what they carry.
        angle: How far it turned [rad].
        known: Whether that is known; else the feet tell, if two of them stood.

    Returns:
        Height above the feet that stand, -inf without; whether any stood at both; the turn [rad]; forward, left [m].
    """
    held, height = 0.0, 0.0
    weights = np.minimum(were[0], are[0])
    if not weights.any():
        weights = np.minimum(were[1], are[1])
    total = ox = oy = nx = ny = 0.0
    count = 0
    for i in range(len(now)):
        held += are[0, i]
        height -= are[0, i] * now[i, 2]
        w = weights[i]
        if w > 0.0:
            count += 1
            total += w
            ox, oy = ox + w * before[i, 0], oy + w * before[i, 1]
            nx, ny = nx + w * now[i, 0], ny + w * now[i, 1]
    height = height / held if held > 0.0 else -math.inf
    if total <= 0.0:
        return height, False, angle, 0.0, 0.0
    ox, oy, nx, ny = ox / total, oy / total, nx / total, ny / total
    if not known and count > 1:
        across = along = 0.0
        for i in range(len(now)):
            w = weights[i]
            ax, ay, bx, by = before[i, 0] - ox, before[i, 1] - oy, now[i, 0] - nx, now[i, 1] - ny
            across += w * (ax * by - ay * bx)
            along += w * (ax * bx + ay * by)
        angle = -math.atan2(across, along)
    c, s = math.cos(angle), math.sin(angle)
    return height, True, angle, ox - (c * nx - s * ny), oy - (s * nx + c * ny)
