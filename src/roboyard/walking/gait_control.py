"""Feedback while walking: control of the heading against slip, and detection of stalled joints."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array


class HeadingController:
    """Adds a yaw rate to the commanded twist that keeps the heading; pure, with explicit state.

    The reference starts at the heading at the beginning of the motion, and advances by what the legs achieve of the
    desired yaw rate: a body that is slowed down does not accumulate an error.

    Args:
        gain: Yaw rate by heading error [1/s]; 0: no control.
        max_correction: Maximum yaw rate that is added [rad/s].
    """

    def __init__(self, gain: float, max_correction: float = 0.3) -> None:
        self.gain, self.max_correction = gain, max_correction
        self._reference: float | None = None

    def correct(self, twist: Array, heading: float | None) -> Array:
        """Return the corrected twist (3,).

        Args:
            twist: Desired twist: forward, left [m/s], yaw rate [rad/s]; a zero twist clears the reference.
            heading: Heading of the inertial unit [rad]; None: unknown.
        """
        vx, vy, yaw_rate = twist.tolist()
        if heading is None or self.gain <= 0.0 or not (vx or vy or yaw_rate):
            self._reference = None
            return twist
        if self._reference is None:
            self._reference = heading
        correction = self.gain * wrap_angle(self._reference - heading)
        return np.array([vx, vy, yaw_rate + min(max(correction, -self.max_correction), self.max_correction)])

    def update_reference(self, desired: Array, commanded: Array, achieved: Array, dt: float) -> Array:
        """Advance the reference, and return what the legs achieved of the desired twist (3,).

        Args:
            desired: Argument of `correct`.
            commanded: Result of `correct`.
            achieved: (3,) twist that the legs executed.
            dt: Duration [s].
        """
        if self._reference is None:
            return achieved
        (ax, ay, aw), (bx, by, bw) = commanded.tolist(), achieved.tolist()
        norm_squared = ax * ax + ay * ay + aw * aw
        fraction = min(max((ax * bx + ay * by + aw * bw) / norm_squared, 0.0), 1.0) if norm_squared > 0.0 else 0.0
        achieved_yaw_rate = fraction * float(desired[2])
        self._reference = wrap_angle(self._reference + achieved_yaw_rate * dt)
        return np.array([bx, by, achieved_yaw_rate])

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"reference": self._reference}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        self._reference = saved["reference"]


_STANDSTILL_SPEED = 0.02
"""A joint slower than this counts as standing still [rad/s]."""


class StallDetector:
    """Detects joints that stand still away from their set-points; pure, with explicit state.

    A servo that yields under its load deviates from its set-point at most by what takes all its torque; a joint that
    stands farther away is blocked or overloaded.

    Args:
        n_legs: Number of legs, of three joints each.
        max_position_error: Position error above which a standing joint counts as stalled [rad].
        min_duration: Minimum duration of a stall [s].
    """

    def __init__(self, n_legs: int, max_position_error: float = 0.15, min_duration: float = 0.5) -> None:
        self.max_position_error, self.min_duration = max_position_error, min_duration
        self._previous, self._stall_times = np.zeros((n_legs, 3)), np.zeros((n_legs, 3))

    def update(self, commanded: Array, measured: Array, dt: float) -> tuple[int, int] | None:
        """Return leg and joint of the longest stall; None without one.

        Args:
            commanded: (l, 3) commanded joint positions [rad].
            measured: (l, 3) measured joint positions [rad].
            dt: Time since the previous update [s].
        """
        k = find_stalled_joint(commanded, measured, self._previous, self._stall_times, self.max_position_error, dt)
        return None if self._stall_times.flat[k] < self.min_duration else (k // 3, k % 3)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"previous": self._previous.copy(), "stall_times": self._stall_times.copy()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        self._previous, self._stall_times = np.array(saved["previous"]), np.array(saved["stall_times"])


@kernel(examples=lambda: [(*[np.zeros((6, 3)) for _ in range(4)], 0.1, 0.02)])
def find_stalled_joint(
    commanded: Array, measured: Array, previous: Array, stall_times: Array, max_position_error: float, dt: float
) -> int:
    """Return the index of the joint that has stalled longest; updates ``previous`` (l, 3) and ``stall_times`` (l, 3)
    [s]."""
    max_joint = 0
    for i in range(len(commanded)):
        for j in range(3):
            is_stalled = (
                abs(measured[i, j] - previous[i, j]) < _STANDSTILL_SPEED * dt
                and abs(commanded[i, j] - measured[i, j]) > max_position_error
            )
            stall_times[i, j] = stall_times[i, j] + dt if is_stalled else 0.0
            previous[i, j] = measured[i, j]
            if stall_times[i, j] > stall_times[max_joint // 3, max_joint % 3]:
                max_joint = 3 * i + j
    return max_joint
