"""How a robot truly moved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from roboyard.geometry import wrap_angle
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.planar import position_and_yaw

_MOVING = 0.02
"""Speed from which a robot counts as moving [m/s]; below it the path would add up the jitter of standing still."""


class Motion(Collector):
    """Path, speeds and tilt from the truth's odometry (frame world, twist in the body's frame).

    ``path_length`` [m] along the ground, ``turned`` [rad] sum of all turning, ``max_speed`` [m/s], ``mean_speed`` [m/s]
    over the time in motion, ``moving_seconds`` [s], ``max_tilt`` [rad] from the vertical, ``final_x``, ``final_y`` [m]
    and ``final_yaw`` [rad] in the world.
    """

    names = (
        "path_length", "turned", "max_speed", "mean_speed", "moving_seconds", "max_tilt",
        "final_x", "final_y", "final_yaw",
    )  # fmt: skip

    def __init__(self, truth_topic: str) -> None:
        self._topic = truth_topic
        self._last: tuple[float, float, float] | None = None
        self._last_ns = 0
        self._moving_ns = 0
        self._least_upright = 1.0  # cosine of the largest tilt
        self.path_length = self.turned = self.max_speed = 0.0

    def handlers(self) -> Mapping[str, Handler]:
        """The truth."""
        return {self._topic: self._on_truth}

    def _on_truth(self, message: Any, time_ns: int) -> None:
        pose = message.pose.pose
        now = x, y, yaw = position_and_yaw(pose)
        velocity, q = message.twist.twist.linear, pose.orientation
        speed = math.hypot(velocity.x, velocity.y)
        if self._last is not None:
            x0, y0, yaw0 = self._last
            if speed >= _MOVING:
                self.path_length += math.hypot(x - x0, y - y0)
                self._moving_ns += time_ns - self._last_ns
            self.turned += abs(wrap_angle(yaw - yaw0))
        if speed > self.max_speed:
            self.max_speed = speed
        self._least_upright = min(self._least_upright, 1.0 - 2.0 * (q.x * q.x + q.y * q.y))
        self._last, self._last_ns = now, time_ns

    def result(self) -> dict[str, Value]:
        """All None while nothing was heard."""
        if self._last is None:
            return dict.fromkeys(self.names)
        x, y, yaw = self._last
        moving = self._moving_ns * 1e-9
        return {
            "path_length": self.path_length,
            "turned": self.turned,
            "max_speed": self.max_speed,
            "mean_speed": self.path_length / moving if moving > 0.0 else 0.0,
            "moving_seconds": moving,
            "max_tilt": math.acos(max(-1.0, self._least_upright)),
            "final_x": x,
            "final_y": y,
            "final_yaw": yaw,
        }
