"""How far odometry strayed from the truth."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from roboyard.geometry import SE2, wrap_angle
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.planar import planar, stamp_ns

_PENDING = 10_000


class OdometryError(Collector):
    """Error of an odometry topic against the truth, both aligned at the first common moment.

    With T_world_odom fixed so that the first odometry pose falls on the true one, each later message has a position
    error [m] and a heading error [rad] against the truth interpolated at its stamp.

    ``odom_rmse``, ``odom_max_error``, ``odom_final_error`` [m]; ``odom_heading_rmse``, ``odom_final_heading_error``
    [rad]; with another ``prefix`` accordingly.
    """

    def __init__(self, truth_topic: str, odometry_topic: str, prefix: str = "odom") -> None:
        self._truth_topic, self._odometry_topic = truth_topic, odometry_topic
        self.names = tuple(
            f"{prefix}_{name}" for name in ("rmse", "max_error", "final_error", "heading_rmse", "final_heading_error")
        )
        self._pending: deque[tuple[int, SE2]] = deque(maxlen=_PENDING)
        self._before: tuple[int, SE2] | None = None
        self._T_world_odom: SE2 | None = None
        self.count = 0
        self._squares = self._heading_squares = 0.0
        self.error = self.heading_error = self.max_error = 0.0

    def handlers(self) -> Mapping[str, Handler]:
        """Truth and odometry."""
        return {self._truth_topic: self._on_truth, self._odometry_topic: self._on_odometry}

    def _on_odometry(self, message: Any, _time_ns: int) -> None:
        self._pending.append((stamp_ns(message.header), planar(message.pose.pose)))
        self._settle()

    def _on_truth(self, message: Any, _time_ns: int) -> None:
        now = (stamp_ns(message.header), planar(message.pose.pose))
        while self._pending and self._pending[0][0] <= now[0]:
            time_ns, odometry = self._pending.popleft()
            if self._before is None or time_ns <= self._before[0]:
                if time_ns == now[0]:
                    self._compare(odometry, now[1])
                continue  # older than the first truth: nothing to hold it against
            share = (time_ns - self._before[0]) / (now[0] - self._before[0])
            self._compare(odometry, self._before[1].interpolate(now[1], share))
        self._before = now

    def _settle(self) -> None:
        """Odometry that comes after the truth of the same moment."""
        while self._pending and self._before is not None and self._pending[0][0] == self._before[0]:
            self._compare(self._pending.popleft()[1], self._before[1])

    def _compare(self, odometry: SE2, truth: SE2) -> None:
        if self._T_world_odom is None:
            self._T_world_odom = truth @ odometry.inverse()
        seen = self._T_world_odom @ odometry
        self.error = seen.distance(truth)
        self.heading_error = abs(wrap_angle(seen.theta - truth.theta))
        self.max_error = max(self.max_error, self.error)
        self._squares += self.error**2
        self._heading_squares += self.heading_error**2
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
