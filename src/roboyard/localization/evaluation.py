"""Metrics of odometry and of localization in a map, against ground truth."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping
from typing import Any

from roboyard.evaluation.plugin import MessageHandler, MetricCollector, MetricValue
from roboyard.geometry import SE2, wrap_angle
from roboyard.messages.convert.poses import pose_to_xy_yaw
from roboyard.messages.time import to_nanoseconds

_MAX_PENDING = 10_000
PlanarPose = tuple[float, float, float]


class OdometryMetrics(MetricCollector):
    """Error of an odometry topic against the truth, both aligned at the first common moment.

    With T_world_odom fixed so that the first odometry pose falls on the true one, each later message has a position
    error [m] and a heading error [rad] against the truth interpolated linearly at its stamp.

    ``odom_rmse``, ``odom_max_error``, ``odom_final_error`` [m]; ``odom_heading_rmse``, ``odom_final_heading_error``
    [rad]; with another ``prefix`` accordingly.
    """

    def __init__(self, truth_topic: str, odometry_topic: str, prefix: str = "odom") -> None:
        self._truth_topic, self._odometry_topic = truth_topic, odometry_topic
        self.metric_names = tuple(
            f"{prefix}_{name}" for name in ("rmse", "max_error", "final_error", "heading_rmse", "final_heading_error")
        )
        self.truth_topics = {odometry_topic: truth_topic}
        self._pending: list[tuple[int, PlanarPose]] = []  # by their stamps
        self._previous_truth: tuple[int, PlanarPose] | None = None
        self._alignment: tuple[float, float, float, float, float] | None = None  # T_world_odom: x, y, cos, sin, angle
        self.count = 0
        self._squared_error_sum = self._squared_heading_error_sum = 0.0
        self.error = self.heading_error = self.max_error = 0.0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Truth and odometry."""
        return {self._truth_topic: self._on_truth, self._odometry_topic: self._on_odometry}

    def _on_odometry(self, message: Any, time_ns: int) -> None:
        stamp_ns = to_nanoseconds(message.header.stamp)
        pose = pose_to_xy_yaw(message.pose.pose)
        has_older_pending = bool(self._pending) and self._pending[0][0] <= stamp_ns
        if self._previous_truth is not None and self._previous_truth[0] == stamp_ns and not has_older_pending:
            self._compare(pose, self._previous_truth[1])  # the usual case: truth and odometry of the same moment
        else:
            insort(self._pending, (stamp_ns, pose))
            del self._pending[_MAX_PENDING:]  # what is stamped farthest in the future

    def _on_truth(self, message: Any, time_ns: int) -> None:
        stamp_ns, truth = to_nanoseconds(message.header.stamp), pose_to_xy_yaw(message.pose.pose)
        while self._pending and self._pending[0][0] <= stamp_ns:
            odometry_ns, odometry = self._pending.pop(0)
            if odometry_ns == stamp_ns:
                self._compare(odometry, truth)
            elif self._previous_truth is not None and odometry_ns >= self._previous_truth[0]:
                previous_ns, previous = self._previous_truth
                ratio = (odometry_ns - previous_ns) / (stamp_ns - previous_ns)
                self._compare(odometry, _interpolate_pose(previous, truth, ratio))
            # else older than the first truth: nothing to hold it against
        self._previous_truth = (stamp_ns, truth)

    def _compare(self, odometry: PlanarPose, truth: PlanarPose) -> None:
        if self._alignment is None:
            T_world_odom = SE2(*truth) @ SE2(*odometry).inverse()
            self._alignment = (
                T_world_odom.x,
                T_world_odom.y,
                math.cos(T_world_odom.theta),
                math.sin(T_world_odom.theta),
                T_world_odom.theta,
            )
        x, y, c, s, angle = self._alignment
        dx = x + c * odometry[0] - s * odometry[1] - truth[0]
        dy = y + s * odometry[0] + c * odometry[1] - truth[1]
        self.error = error = math.sqrt(dx * dx + dy * dy)
        self.heading_error = heading = abs(wrap_angle(angle + odometry[2] - truth[2]))
        if error > self.max_error:
            self.max_error = error
        self._squared_error_sum += error * error
        self._squared_heading_error_sum += heading * heading
        self.count += 1

    def values(self) -> dict[str, MetricValue]:
        """All None while nothing could be compared."""
        if not self.count:
            return dict.fromkeys(self.metric_names)
        values = (
            math.sqrt(self._squared_error_sum / self.count),
            self.max_error,
            self.error,
            math.sqrt(self._squared_heading_error_sum / self.count),
            self.heading_error,
        )
        return dict(zip(self.metric_names, values, strict=True))


def _interpolate_pose(first: PlanarPose, second: PlanarPose, ratio: float) -> PlanarPose:
    """Linear in position and heading, the short way round."""
    return (
        first[0] + ratio * (second[0] - first[0]),
        first[1] + ratio * (second[1] - first[1]),
        first[2] + ratio * wrap_angle(second[2] - first[2]),
    )


_LOCALIZED_TOLERANCE = 0.25
"""Nearer than this it counts as found [m]."""


def _add_to_histogram(histogram: dict[int, int], value: float) -> None:
    """Add a value to bins of equal ratio, so that a median needs no list and is exact to half a percent."""
    index = round(math.log(max(value, 1e-6)) * 100.0)
    histogram[index] = histogram.get(index, 0) + 1


def _histogram_median(histogram: dict[int, int]) -> float:
    remaining = sum(histogram.values()) / 2.0
    for index in sorted(histogram):
        remaining -= histogram[index]
        if remaining <= 0.0:
            return math.exp(index / 100.0)
    return math.nan


class LocalizationMetrics(OdometryMetrics):
    """Error of poses in the map against the truth at their stamps; the map's frame is taken for the world's.

    ``localization_median_error``, ``localization_rmse``, ``localization_max_error``, ``localization_final_error`` [m],
    ``localization_heading_median_error`` [rad], ``localized_since``: time [s] since when the error is below 0.25 m.
    """

    def __init__(self, truth_topic: str, pose_topic: str) -> None:
        super().__init__(truth_topic, pose_topic)
        self.metric_names = (
            "localization_median_error", "localization_rmse", "localization_max_error", "localization_final_error",
            "localization_heading_median_error", "localized_since",
        )  # fmt: skip
        self._error_histogram: dict[int, int] = {}
        self._heading_histogram: dict[int, int] = {}
        self._localized_since_ns: int | None = None
        self._message_ns = 0

    def _compare(self, odometry: PlanarPose, truth: PlanarPose) -> None:
        self.error = error = math.hypot(odometry[0] - truth[0], odometry[1] - truth[1])
        self.heading_error = abs(wrap_angle(odometry[2] - truth[2]))
        self.max_error = max(self.max_error, error)
        self._squared_error_sum += error * error
        _add_to_histogram(self._error_histogram, error)
        _add_to_histogram(self._heading_histogram, self.heading_error)
        self.count += 1
        if error > _LOCALIZED_TOLERANCE:
            self._localized_since_ns = None
        elif self._localized_since_ns is None:
            self._localized_since_ns = self._message_ns

    def _on_odometry(self, message: Any, time_ns: int) -> None:
        self._message_ns = time_ns
        super()._on_odometry(message, time_ns)

    def values(self) -> dict[str, MetricValue]:
        """All None while nothing could be compared."""
        if not self.count:
            return dict.fromkeys(self.metric_names)
        values: tuple[MetricValue, ...] = (
            _histogram_median(self._error_histogram),
            math.sqrt(self._squared_error_sum / self.count),
            self.max_error,
            self.error,
            _histogram_median(self._heading_histogram),
            None if self._localized_since_ns is None else self._localized_since_ns * 1e-9,
        )
        return dict(zip(self.metric_names, values, strict=True))
