"""How a robot truly moved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from roboyard.geometry import SE2, wrap_angle
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.planar import planar, tilt_of

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
        self._last: SE2 | None = None
        self._last_ns = 0
        self.path_length = self.turned = self.max_speed = self.moving_seconds = self.max_tilt = 0.0

    def handlers(self) -> Mapping[str, Handler]:
        """The truth."""
        return {self._topic: self._on_truth}

    def _on_truth(self, message: Any, time_ns: int) -> None:
        pose = planar(message.pose.pose)
        twist = message.twist.twist.linear
        speed = math.hypot(twist.x, twist.y)
        if self._last is not None:
            step = self._last.distance(pose)
            if speed >= _MOVING:
                seconds = (time_ns - self._last_ns) * 1e-9
                self.path_length += step
                self.moving_seconds += seconds
            self.turned += abs(wrap_angle(pose.theta - self._last.theta))
        self.max_speed = max(self.max_speed, speed)
        self.max_tilt = max(self.max_tilt, tilt_of(message.pose.pose.orientation))
        self._last, self._last_ns = pose, time_ns

    def result(self) -> dict[str, Value]:
        """All None while nothing was heard."""
        last = self._last
        if last is None:
            return dict.fromkeys(self.names)
        mean = self.path_length / self.moving_seconds if self.moving_seconds > 0.0 else 0.0
        return {
            "path_length": self.path_length,
            "turned": self.turned,
            "max_speed": self.max_speed,
            "mean_speed": mean,
            "moving_seconds": self.moving_seconds,
            "max_tilt": self.max_tilt,
            "final_x": last.x,
            "final_y": last.y,
            "final_yaw": last.theta,
        }
