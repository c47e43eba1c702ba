"""Metrics of the true motion, the distance from other robots, and the depth camera."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from roboyard.evaluation.plugin import (
    DepthErrorProvider,
    FootprintPolygon,
    MessageHandler,
    MetricCollector,
    MetricValue,
)
from roboyard.geometry import SE2, polygons, wrap_angle
from roboyard.messages.convert.poses import pose_to_xy_yaw

_MIN_MOVING_SPEED = 0.02
"""Speed from which a robot counts as moving [m/s]; below it the path would add up the jitter of standing still."""


class MotionMetrics(MetricCollector):
    """Path, speeds and tilt from the truth's odometry (frame world, twist in the body's frame).

    ``path_length`` [m] along the ground, ``turned`` [rad] sum of all turning, ``max_speed`` [m/s], ``mean_speed`` [m/s]
    over the time in motion, ``moving_time`` [s], ``max_tilt`` [rad] from the vertical, ``final_x``, ``final_y`` [m]
    and ``final_yaw`` [rad] in the world.
    """

    metric_names = (
        "path_length", "total_rotation", "max_speed", "mean_speed", "moving_time", "max_tilt",
        "final_x", "final_y", "final_yaw",
    )  # fmt: skip

    def __init__(self, truth_topic: str) -> None:
        self._topic = truth_topic
        self._last_pose: tuple[float, float, float] | None = None
        self._last_ns = 0
        self._moving_ns = 0
        self._min_upright_cosine = 1.0  # cosine of the largest tilt
        self.path_length = self.total_rotation = self.max_speed = 0.0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """The truth."""
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
        """All None while nothing was heard."""
        if self._last_pose is None:
            return dict.fromkeys(self.metric_names)
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
    """``min_separation`` [m]: least true distance between the robot's outline and anybody else's; None where nobody is.

    Args:
        truth_topic: Of the robot's nav_msgs/Odometry.
        outline: Its corners [m].
    """

    metric_names = ("min_separation",)

    def __init__(self, truth_topic: str, footprint: FootprintPolygon) -> None:
        self._topic = truth_topic
        self._footprint = tuple(footprint)
        self._other_footprints: dict[str, FootprintPolygon] = {}
        self._other_poses: dict[str, tuple[float, float, float]] = {}
        self._min_distance = math.inf

    def on_robot_added(self, other: SeparationMetrics) -> Mapping[str, MessageHandler]:
        """Look at another robot as well, from now on; what is to be listened to for that."""
        if len(self._footprint) < 3 or len(other._footprint) < 3:
            return {}
        self._other_footprints[other._topic] = other._footprint
        return {other._topic: lambda message, _: self._on_other(other._topic, message)}

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """The robot's own truth."""
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
        """None until somebody else was seen."""
        return {"min_separation": self._min_distance if math.isfinite(self._min_distance) else None}


def _polygon_distance(
    footprint: FootprintPolygon,
    pose: tuple[float, ...],
    other_footprint: FootprintPolygon,
    other_pose: tuple[float, ...],
) -> float:
    """Between two outlines that do not cross: from a corner of one to the other's border."""
    a, b = SE2(*pose) @ np.array(footprint), SE2(*other_pose) @ np.array(other_footprint)
    return float(min(polygons.distance(a, b).min(), polygons.distance(b, a).min()))


class DepthCameraMetrics(MetricCollector):
    """What the robot's first depth camera says at the end of the run, against exact rays through the same lens.

    ``depth_error``: median distance of measured depth from the truth [m]; ``depth_error_ideal``: the same without the
    camera's noise, which is the renderer's own; ``depth_coverage``: share of the pixels with something within the
    camera's range that were measured.

    Args:
        sight: Looks through it.
    """

    metric_names = ("depth_error", "depth_error_ideal", "depth_coverage")

    def __init__(self, depth_error: DepthErrorProvider | None) -> None:
        self._depth_error = depth_error
        self._values: dict[str, MetricValue] = dict.fromkeys(self.metric_names)

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Nothing: it looks itself."""
        return {}

    def finish(self, time_ns: int) -> None:
        """Look through the camera."""
        errors = None if self._depth_error is None else self._depth_error()
        if errors is not None:
            self._values = dict(
                zip(self.metric_names, (value if math.isfinite(value) else None for value in errors), strict=True)
            )

    def values(self) -> dict[str, MetricValue]:
        """All None before the end, and where nobody ever looked through such a camera."""
        return dict(self._values)

    def save_state(self) -> dict[str, Any]:
        """Nothing: what it finds is of the end."""
        return {}
