"""How far odometry strayed from the truth."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping
from typing import Any

from roboyard.geometry import SE2, wrap_angle
from roboyard.messages.time import to_nanoseconds
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.planar import position_and_yaw

_PENDING = 10_000
Pose = tuple[float, float, float]


class OdometryError(Collector):
    """Error of an odometry topic against the truth, both aligned at the first common moment.

    With T_world_odom fixed so that the first odometry pose falls on the true one, each later message has a position
    error [m] and a heading error [rad] against the truth interpolated linearly at its stamp.

    ``odom_rmse``, ``odom_max_error``, ``odom_final_error`` [m]; ``odom_heading_rmse``, ``odom_final_heading_error``
    [rad]; with another ``prefix`` accordingly.
    """

    def __init__(self, truth_topic: str, odometry_topic: str, prefix: str = "odom") -> None:
        self._truth_topic, self._odometry_topic = truth_topic, odometry_topic
        self.names = tuple(
            f"{prefix}_{name}" for name in ("rmse", "max_error", "final_error", "heading_rmse", "final_heading_error")
        )
        self.truth_of = {odometry_topic: truth_topic}
        self._pending: list[tuple[int, Pose]] = []  # by their stamps
        self._before: tuple[int, Pose] | None = None
        self._align: tuple[float, float, float, float, float] | None = None  # T_world_odom: x, y, cos, sin, angle
        self.count = 0
        self._squares = self._heading_squares = 0.0
        self.error = self.heading_error = self.max_error = 0.0

    def handlers(self) -> Mapping[str, Handler]:
        """Truth and odometry."""
        return {self._truth_topic: self._on_truth, self._odometry_topic: self._on_odometry}

    def _on_odometry(self, message: Any, time_ns: int) -> None:
        moment = to_nanoseconds(message.header.stamp)
        pose = position_and_yaw(message.pose.pose)
        waits = bool(self._pending) and self._pending[0][0] <= moment
        if self._before is not None and self._before[0] == moment and not waits:
            self._compare(pose, self._before[1])  # the usual case: truth and odometry of the same moment
        else:
            insort(self._pending, (moment, pose))
            del self._pending[_PENDING:]  # what is stamped farthest in the future

    def _on_truth(self, message: Any, time_ns: int) -> None:
        moment, truth = to_nanoseconds(message.header.stamp), position_and_yaw(message.pose.pose)
        while self._pending and self._pending[0][0] <= moment:
            asked, odometry = self._pending.pop(0)
            if asked == moment:
                self._compare(odometry, truth)
            elif self._before is not None and asked >= self._before[0]:
                start, before = self._before
                share = (asked - start) / (moment - start)
                self._compare(odometry, _between(before, truth, share))
            # else older than the first truth: nothing to hold it against
        self._before = (moment, truth)

    def _compare(self, odometry: Pose, truth: Pose) -> None:
        if self._align is None:
            fixed = SE2(*truth) @ SE2(*odometry).inverse()
            self._align = (fixed.x, fixed.y, math.cos(fixed.theta), math.sin(fixed.theta), fixed.theta)
        x, y, c, s, angle = self._align
        dx = x + c * odometry[0] - s * odometry[1] - truth[0]
        dy = y + s * odometry[0] + c * odometry[1] - truth[1]
        self.error = error = math.sqrt(dx * dx + dy * dy)
        self.heading_error = heading = abs(wrap_angle(angle + odometry[2] - truth[2]))
        if error > self.max_error:
            self.max_error = error
        self._squares += error * error
        self._heading_squares += heading * heading
        self.count += 1

    def result(self) -> dict[str, Value]:
        """All None while nothing could be compared."""
        if not self.count:
            return dict.fromkeys(self.names)
        values = (
            math.sqrt(self._squares / self.count),
            self.max_error,
            self.error,
            math.sqrt(self._heading_squares / self.count),
            self.heading_error,
        )
        return dict(zip(self.names, values, strict=True))


def _between(a: Pose, b: Pose, share: float) -> Pose:
    """Linear in position and heading, the short way round."""
    return (
        a[0] + share * (b[0] - a[0]),
        a[1] + share * (b[1] - a[1]),
        a[2] + share * wrap_angle(b[2] - a[2]),
    )
