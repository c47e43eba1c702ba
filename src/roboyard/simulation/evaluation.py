"""Metrics of a robot's true motion, its distance from other robots, and the errors of its depth camera."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from roboyard.evaluation.collector import (
    FootprintPolygon,
    GroundTruthProvider,
    MessageHandler,
    Metric,
    MetricCollector,
    MetricValue,
    RobotContext,
)
from roboyard.evaluation.contacts import ContactMetrics
from roboyard.evaluation.plugin import RunPlugin
from roboyard.geometry import SE2, polygons, wrap_angle
from roboyard.messages.convert.poses import pose_to_xy_yaw

_MIN_MOVING_SPEED = 0.02
"""Speed from which a robot counts as moving [m/s]; below it the path length would add up jitter at rest."""


class MotionMetrics(MetricCollector):
    """Measures path, speeds and tilt by the true odometry (pose in the world, twist in the body's frame).

    Args:
        truth_topic: Topic of the robot's true nav_msgs/Odometry.
    """

    metrics = (
        Metric("path_length", "m", "Length of the true path along the ground.", summary_label="path"),
        Metric("total_rotation", "rad", "Sum of all true rotation about the vertical, in either direction."),
        Metric("max_speed", "m/s", "Largest true speed along the ground."),
        Metric("mean_speed", "m/s", "Mean true speed while the robot moved."),
        Metric("moving_time", "s", "Time in which the robot moved at 2 cm/s or faster."),
        Metric("max_tilt", "rad", "Largest angle between the robot's and the world's vertical.", "lower"),
        Metric("final_x", "m", "True x coordinate in the world at the end."),
        Metric("final_y", "m", "True y coordinate in the world at the end."),
        Metric("final_yaw", "rad", "True heading in the world at the end."),
    )
    position = 10

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.topics.truth)

    def __init__(self, truth_topic: str) -> None:
        self._topic = truth_topic
        self._last_pose: tuple[float, float, float] | None = None
        self._last_ns = 0
        self._moving_ns = 0
        self._min_upright_cosine = 1.0  # cosine of the largest tilt
        self.path_length = self.total_rotation = self.max_speed = 0.0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topic of the true odometry."""
        return {self._topic: self._on_truth}

    def _on_truth(self, message: Any, time_ns: int) -> None:
        pose = message.pose.pose
        planar_pose = x, y, yaw = pose_to_xy_yaw(pose)
        velocity, q = message.twist.twist.linear, pose.orientation
        speed = math.hypot(velocity.x, velocity.y)
        if self._last_pose is not None:
            x0, y0, yaw0 = self._last_pose
            if speed >= _MIN_MOVING_SPEED:
                self.path_length += math.hypot(x - x0, y - y0)
                self._moving_ns += time_ns - self._last_ns
            self.total_rotation += abs(wrap_angle(yaw - yaw0))
        if speed > self.max_speed:
            self.max_speed = speed
        self._min_upright_cosine = min(self._min_upright_cosine, 1.0 - 2.0 * (q.x * q.x + q.y * q.y))
        self._last_pose, self._last_ns = planar_pose, time_ns

    def values(self) -> dict[str, MetricValue]:
        """Return all metrics; none before the first message."""
        if self._last_pose is None:
            return {}
        x, y, yaw = self._last_pose
        moving_time = self._moving_ns * 1e-9
        return {
            "path_length": self.path_length,
            "total_rotation": self.total_rotation,
            "max_speed": self.max_speed,
            "mean_speed": self.path_length / moving_time if moving_time > 0.0 else 0.0,
            "moving_time": moving_time,
            "max_tilt": math.acos(max(-1.0, self._min_upright_cosine)),
            "final_x": x,
            "final_y": y,
            "final_yaw": yaw,
        }


class SeparationMetrics(MetricCollector):
    """Measures the smallest true distance between the footprints of a robot and of all other robots.

    Args:
        truth_topic: Topic of the robot's true nav_msgs/Odometry.
        footprint: Footprint of the robot [m].
    """

    metrics = (
        Metric(
            "min_separation",
            "m",
            "Least distance of the robot's outline from that of another robot, or of an arm from people; no value in "
            "a run without others.",
            "higher",
            "least separation",
        ),
    )
    position = 110

    @classmethod
    def create(cls, robot: RobotContext) -> Self | None:
        """Return the collector of a robot with a known footprint."""
        return cls(robot.topics.truth, robot.footprint) if len(robot.footprint) >= 3 else None

    def __init__(self, truth_topic: str, footprint: FootprintPolygon) -> None:
        self._topic = truth_topic
        self._footprint = tuple(footprint)
        self._other_footprints: dict[str, FootprintPolygon] = {}
        self._other_poses: dict[str, tuple[float, float, float]] = {}
        self._min_distance = math.inf

    def on_robot_added(self, other: RobotContext) -> Mapping[str, MessageHandler]:
        """Return the topic of the other robot's true odometry; nothing if its footprint is unknown."""
        if len(other.footprint) < 3:
            return {}
        topic = other.topics.truth
        self._other_footprints[topic] = other.footprint
        return {topic: lambda message, _: self._on_other(topic, message)}

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topic of the robot's own true odometry."""
        return {self._topic: self._on_truth}

    def _on_other(self, topic: str, message: Any) -> None:
        self._other_poses[topic] = pose_to_xy_yaw(message.pose.pose)

    def _on_truth(self, message: Any, time_ns: int) -> None:
        robot_pose = pose_to_xy_yaw(message.pose.pose)
        for topic, other_pose in self._other_poses.items():
            max_radius = max(math.hypot(*corner) for corner in (*self._footprint, *self._other_footprints[topic]))
            if math.dist(robot_pose[:2], other_pose[:2]) - 2.0 * max_radius < self._min_distance:
                self._min_distance = min(
                    self._min_distance,
                    _polygon_distance(self._footprint, robot_pose, self._other_footprints[topic], other_pose),
                )

    def values(self) -> dict[str, MetricValue]:
        """Return the distance; nothing until another robot's pose is known."""
        return {"min_separation": self._min_distance} if math.isfinite(self._min_distance) else {}


def _polygon_distance(
    footprint: FootprintPolygon,
    pose: tuple[float, ...],
    other_footprint: FootprintPolygon,
    other_pose: tuple[float, ...],
) -> float:
    """Return the distance of two polygons that do not intersect: from corners of one to the border of the other [m]."""
    a, b = SE2(*pose) @ np.array(footprint), SE2(*other_pose) @ np.array(other_footprint)
    return float(min(polygons.distance(a, b).min(), polygons.distance(b, a).min()))


class DepthCameraMetrics(MetricCollector):
    """Compares the image of the robot's first depth camera at the end of the run with exact rays.

    Args:
        truth: The ground truth.
        robot: Name of the robot.
    """

    metrics = (
        Metric(
            "depth_error",
            "m",
            "Median error of the depth that the first depth camera measures at the end of the run; no value, as of "
            "the next two, without such a camera or a rendered image.",
            "lower",
        ),
        Metric("depth_error_ideal", "m", "The same error without the camera's noise: that of the renderer.", "lower"),
        Metric(
            "depth_coverage",
            "ratio",
            "Share of the pixels with a surface in the camera's range that have a depth.",
            "higher",
        ),
    )
    position = 70

    @classmethod
    def create(cls, robot: RobotContext) -> Self | None:
        """Return the collector of a robot whose ground truth is known."""
        return None if robot.truth is None else cls(robot.truth, robot.name)

    def __init__(self, truth: GroundTruthProvider, robot: str) -> None:
        self._truth, self._robot = truth, robot
        self._values: dict[str, MetricValue] = {}

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return nothing: the ground truth renders the images."""
        return {}

    def finish(self, time_ns: int) -> None:
        """Compare the camera's image of this moment."""
        errors = self._truth.depth_error(self._robot)
        if errors is not None:
            named_errors = zip(self.metric_names(), errors, strict=True)
            self._values = {name: value for name, value in named_errors if math.isfinite(value)}

    def values(self) -> dict[str, MetricValue]:
        """Return the errors; nothing before the end, and without such a camera or a rendered image."""
        return dict(self._values)

    def save_state(self) -> dict[str, Any]:
        """Return nothing: everything is measured at the end."""
        return {}


PLUGIN = RunPlugin("simulation", (MotionMetrics, ContactMetrics, SeparationMetrics, DepthCameraMetrics))
