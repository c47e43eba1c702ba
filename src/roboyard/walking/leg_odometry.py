"""Odometry of legged robots: body motion from the feet in stance and an inertial unit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from roboyard.compute import kernel
from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array


class LegOdometry:
    """Integrates the motion of the stance feet in the body frame; pure, with explicit state.

    Feet in stance at two successive moments did not move on the ground: the body moved against them.  Each foot is
    weighted by the smaller of its two loads, so that feet that are just lifting off or touching down, and slip, hardly
    count.  Feet that should be in the air count only where no others carry load: one set takes over from the other.
    Tilt and rotation come from the inertial unit; without it the rotation is the best fit of the feet (Umeyama, 1991,
    in the plane).  While no foot is known to be in stance, the body continues with its last twist.

    Attributes:
        x: Position in the odometry frame [m].
        y: Position in the odometry frame [m].
        z: Height above the stance feet [m].
        yaw: Heading [rad].
        tilt: Roll and pitch [rad].
        twist: (3,) forward [m/s], left [m/s], yaw rate [rad/s].
    """

    def __init__(self) -> None:
        self.x = self.y = self.z = self.yaw = 0.0
        self.tilt = (0.0, 0.0)
        self.twist = np.zeros(3)
        self._feet: Array | None = None
        self._loads = np.zeros((2, 0))
        self._heading: float | None = None

    def update(
        self,
        dt: float,
        feet: ArrayLike,
        loads: ArrayLike,
        roll_pitch_yaw: tuple[float, float, float] | None = None,
        in_stance: ArrayLike = True,
    ) -> None:
        """Add one control step.

        Args:
            dt: Duration of the step [s].
            feet: (l, 3) measured foot positions in the body frame [m].
            loads: (l) load of each foot, in any unit; 0 without contact.
            roll_pitch_yaw: Orientation of the inertial unit [rad]; its heading may start anywhere.
            in_stance: (l) feet that should be in stance.
        """
        loads_by_kind = np.outer((1.0, 1.0), np.asarray(loads, dtype=np.float64))
        loads_by_kind[0] *= in_stance
        if roll_pitch_yaw is not None:
            self.tilt = roll_pitch_yaw[:2]
        level_feet = remove_tilt(np.asarray(feet, dtype=np.float64), *self.tilt)
        feet_before, loads_before, heading = self._feet, self._loads, self._heading
        self._feet, self._loads, self._heading = (
            level_feet,
            loads_by_kind,
            None if roll_pitch_yaw is None else roll_pitch_yaw[2],
        )
        is_rotation_known = roll_pitch_yaw is not None and heading is not None
        rotation = (
            wrap_angle(roll_pitch_yaw[2] - heading)
            if roll_pitch_yaw is not None and heading is not None
            else float(self.twist[2]) * dt
        )
        if feet_before is None:
            feet_before, loads_before = level_feet, np.zeros_like(loads_by_kind)
        height, has_stance, rotation, dx, dy = body_motion(
            feet_before, loads_before, level_feet, loads_by_kind, rotation, is_rotation_known
        )
        if height > -math.inf:
            self.z = height
        if feet_before is level_feet:
            return
        if not has_stance:
            dx, dy = (self.twist[:2] * dt).tolist()
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        self.x += c * dx - s * dy
        self.y += s * dx + c * dy
        self.yaw = wrap_angle(self.yaw + rotation)
        self.twist = np.array([dx / dt, dy / dt, rotation / dt])

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        for name, value in saved.items():
            setattr(self, name, np.array(value) if isinstance(value, np.ndarray) else value)


@kernel(examples=lambda: [(np.zeros((6, 3)), 0.0, 0.0)])
def remove_tilt(feet: Array, roll: float, pitch: float) -> Array:
    """Return feet (l, 3) of the body frame in a frame without its tilt."""
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
    feet_before: Array, loads_before: Array, feet_now: Array, loads_now: Array, rotation: float, is_rotation_known: bool
) -> tuple[float, bool, float, float, float]:
    """Compute the motion of a body from its stance feet.

    Args:
        feet_before: (l, 3) feet in the leveled body frame at the first moment [m].
        loads_before: (2, l) loads of the feet that should be in stance, and of all feet.
        feet_now: (l, 3) feet at the second moment [m].
        loads_now: (2, l) loads at the second moment.
        rotation: Rotation of the body [rad].
        is_rotation_known: Whether the rotation is measured; otherwise two or more feet determine it.

    Returns:
        Height above the stance feet, -inf without any; whether any foot was in stance at both moments; rotation [rad];
        forward and left displacement [m].
    """
    load_sum, height = 0.0, 0.0
    weights = np.minimum(loads_before[0], loads_now[0])
    if not weights.any():
        weights = np.minimum(loads_before[1], loads_now[1])
    weight_sum = ox = oy = nx = ny = 0.0
    n_feet = 0
    for i in range(len(feet_now)):
        load_sum += loads_now[0, i]
        height -= loads_now[0, i] * feet_now[i, 2]
        w = weights[i]
        if w > 0.0:
            n_feet += 1
            weight_sum += w
            ox, oy = ox + w * feet_before[i, 0], oy + w * feet_before[i, 1]
            nx, ny = nx + w * feet_now[i, 0], ny + w * feet_now[i, 1]
    height = height / load_sum if load_sum > 0.0 else -math.inf
    if weight_sum <= 0.0:
        return height, False, rotation, 0.0, 0.0
    ox, oy, nx, ny = ox / weight_sum, oy / weight_sum, nx / weight_sum, ny / weight_sum
    if not is_rotation_known and n_feet > 1:
        cross_sum = dot_sum = 0.0
        for i in range(len(feet_now)):
            w = weights[i]
            ax, ay, bx, by = feet_before[i, 0] - ox, feet_before[i, 1] - oy, feet_now[i, 0] - nx, feet_now[i, 1] - ny
            cross_sum += w * (ax * by - ay * bx)
            dot_sum += w * (ax * bx + ay * by)
        rotation = -math.atan2(cross_sum, dot_sum)
    c, s = math.cos(rotation), math.sin(rotation)
    return height, True, rotation, ox - (c * nx - s * ny), oy - (s * nx + c * ny)
