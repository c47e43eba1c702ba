"""Metrics of odometry and of localization in a map, against ground truth."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from roboyard.evaluation.collector import MessageHandler, Metric, MetricCollector, MetricValue, PlanarPose, RobotContext
from roboyard.evaluation.plugin import RunPlugin
from roboyard.geometry import SE2, wrap_angle
from roboyard.messages.convert.poses import pose_to_xy_yaw
from roboyard.messages.time import to_nanoseconds

_MAX_PENDING = 10_000


class OdometryMetrics(MetricCollector):
    """Measures the error of an odometry topic against the ground truth, both aligned at the first common moment.

    T_world_odom is fixed so that the first odometry pose coincides with the true one.  Each later message has a
    position error [m] and a heading error [rad] against the truth interpolated linearly at its stamp.

    Args:
        truth_topic: Of the robot's true nav_msgs/Odometry.
        odometry_topic: Of the nav_msgs/Odometry to judge.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric(
            "odom_rmse",
            "m",
            "Root mean square of the position error of `odom`, aligned with the truth at the start; no value, as of "
            "the next four, without odometry.",
            "lower",
            "odometry RMSE",
        ),
        Metric("odom_max_error", "m", "Largest position error of `odom`.", "lower"),
        Metric("odom_final_error", "m", "Position error of `odom` at the end.", "lower", "final odometry error"),
        Metric("odom_heading_rmse", "rad", "Root mean square of the heading error of `odom`.", "lower"),
        Metric("odom_final_heading_error", "rad", "Heading error of `odom` at the end.", "lower"),
    )
    position = 20

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.topics.truth, robot.topics.odometry)

    def __init__(self, truth_topic: str, odometry_topic: str) -> None:
        self._truth_topic, self._odometry_topic = truth_topic, odometry_topic
        self.truth_topics = {odometry_topic: truth_topic}
        self._pending: list[tuple[int, PlanarPose]] = []  # by their stamps
        self._previous_truth: tuple[int, PlanarPose] | None = None
        self._alignment: tuple[float, float, float, float, float] | None = None  # T_world_odom: x, y, cos, sin, angle
        self.count = 0
        self._squared_error_sum = self._squared_heading_error_sum = 0.0
        self.error = self.heading_error = self.max_error = 0.0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of true odometry and of the odometry to judge."""
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
        """Return the errors; none while no message could be compared."""
        if not self.count:
            return {}
        values = (
            math.sqrt(self._squared_error_sum / self.count),
            self.max_error,
            self.error,
            math.sqrt(self._squared_heading_error_sum / self.count),
            self.heading_error,
        )
        return dict(zip(self.metric_names(), values, strict=True))


class FilteredOdometryMetrics(OdometryMetrics):
    """Measures the error of the odometry that a Kalman filter estimates from several sensors."""

    metrics = (
        Metric(
            "filtered_rmse",
            "m",
            "Root mean square of the position error of `odometry/filtered`, the estimate of a Kalman filter; no "
            "value, as of the next four, without such a filter.",
            "lower",
        ),
        Metric("filtered_max_error", "m", "Largest position error of `odometry/filtered`.", "lower"),
        Metric("filtered_final_error", "m", "Position error of `odometry/filtered` at the end.", "lower"),
        Metric(
            "filtered_heading_rmse",
            "rad",
            "Root mean square of the heading error of `odometry/filtered`.",
            "lower",
        ),
        Metric("filtered_final_heading_error", "rad", "Heading error of `odometry/filtered` at the end.", "lower"),
    )
    position = 30

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.topics.truth, robot.topics.filtered_odometry)


def _interpolate_pose(first: PlanarPose, second: PlanarPose, ratio: float) -> PlanarPose:
    """Interpolate position and heading linearly, the heading along the shorter arc."""
    return (
        first[0] + ratio * (second[0] - first[0]),
        first[1] + ratio * (second[1] - first[1]),
        first[2] + ratio * wrap_angle(second[2] - first[2]),
    )


_LOCALIZED_TOLERANCE = 0.25
"""A robot whose position error is smaller counts as localized [m]."""


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
    """Measures the error of poses in a map against the truth at their stamps; map and world are one frame.

    Args:
        truth_topic: Of the robot's true nav_msgs/Odometry.
        pose_topic: Of the geometry_msgs/PoseWithCovarianceStamped to judge.
    """

    metrics = (
        Metric(
            "localization_median_error",
            "m",
            "Median error of `amcl_pose` against the true position, with the map's frame as the world's; no value, as"
            " of the next five, without localization.",
            "lower",
        ),
        Metric("localization_rmse", "m", "Root mean square of the position error of `amcl_pose`.", "lower"),
        Metric("localization_max_error", "m", "Largest position error of `amcl_pose`.", "lower"),
        Metric("localization_final_error", "m", "Position error of the last `amcl_pose`.", "lower"),
        Metric("localization_heading_median_error", "rad", "Median of the heading error of `amcl_pose`.", "lower"),
        Metric(
            "localized_since",
            "s",
            "Time since when the position error has been below 0.25 m; no value if it is not.",
            "lower",
        ),
    )
    position = 40

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.topics.truth, robot.topics.localization)

    def __init__(self, truth_topic: str, pose_topic: str) -> None:
        super().__init__(truth_topic, pose_topic)
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
        """Return the errors; none while no message could be compared."""
        if not self.count:
            return {}
        values = (
            _histogram_median(self._error_histogram),
            math.sqrt(self._squared_error_sum / self.count),
            self.max_error,
            self.error,
            _histogram_median(self._heading_histogram),
        )
        named_values: dict[str, MetricValue] = dict(zip(self.metric_names()[:-1], values, strict=True))
        since_ns = self._localized_since_ns
        return named_values | ({} if since_ns is None else {"localized_since": since_ns * 1e-9})


PLUGIN = RunPlugin("localization", (OdometryMetrics, FilteredOdometryMetrics, LocalizationMetrics))
