"""The node that plays an operator script: it publishes the twists that a person with a joystick would send."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from roboyard.bus import Node, TransformError, resource
from roboyard.config import Config, parameter
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import scan_points
from roboyard.messages.convert.poses import pose_to_se2_unchecked
from roboyard.scenarios.operator import (
    FollowStep,
    OperatorController,
    OperatorScript,
    ScanPoints,
    WanderStep,
    flatten_script,
)

_NOISE_CORRELATION_TIME = 0.5
"""Correlation time of the command noise [s]."""


class OperatorNodeConfig(Config):
    """Configuration of `OperatorNode`."""

    radius: float = parameter(
        0.3, unit="m", low=0.0, high=100.0, runtime=True, doc="Radius of the robot, for wandering."
    )
    base_frame: str = parameter("base_link", runtime=True, doc="Frame of the robot.")
    after_end: str = parameter(
        "stop",
        choices=("stop", "silence"),
        runtime=True,
        doc="Action after the end of the script: zero commands, or none.",
    )


class OperatorNode(Node[OperatorNodeConfig]):
    """Publishes the twists of an operator script.   in: odom, scan (only if the script needs them)   out: cmd_vel

    It uses only what the robot itself measures: points are followed by odometry, or by the robot's localization in its
    map, and free space is measured by the lidar.  Without a lidar, wandering becomes a small circle, and a warning is
    logged.
    """

    script: OperatorScript = resource(OperatorScript)

    def setup(self) -> None:
        """Subscribe and advertise."""
        actions = flatten_script(self.script)
        self._controller = OperatorController(actions, self.config.radius)
        self._pose: SE2 | None = None
        self._scan: ScanPoints | None = None
        self._lidar_poses: dict[str, SE2] = {}
        self._command_publisher = self.publisher("cmd_vel", msg.Twist)
        if any(isinstance(action, FollowStep) for action in actions):
            self.subscribe("odom", msg.Odometry, self._on_odometry)
        if any(isinstance(action, WanderStep) for action in actions):
            self.subscribe("scan", msg.LaserScan, self._on_scan)
        self.timer(rate=self.script.rate, callback=self._tick, immediate=True)
        self.is_finished = self.has_reported_missing_scan = False
        self._noise_state = [0.0, 0.0]

    def _on_odometry(self, message: Any) -> None:
        pose, frame = pose_to_se2_unchecked(message.pose.pose), self.script.frame
        if frame != "odom":
            with suppress(TransformError):  # until the robot has found its place, the map begins where odometry did
                pose = SE2.from_se3(self.transforms.lookup(self.frame(frame), message.header.frame_id)) @ pose
        self._pose = pose

    def _on_scan(self, message: Any) -> None:
        self._scan = ScanPoints(self._lidar_pose(message.header.frame_id) @ scan_points(message))

    def _lidar_pose(self, frame: str) -> SE2:
        """Return T_base_lidar once the transforms are known; until then the identity."""
        if frame not in self._lidar_poses:
            try:
                self._lidar_poses[frame] = SE2.from_se3(
                    self.transforms.lookup(self.frame(self.config.base_frame), frame)
                )
            except TransformError:
                return SE2()
        return self._lidar_poses[frame]

    def _tick(self) -> None:
        command = self._controller.update(self.now, self._pose, self._scan)
        if command.is_finished and not self.is_finished:
            self.is_finished = True
            self.log.info("the operator's script is over")
        if not self.has_reported_missing_scan and self._controller.is_without_scan(self.now, self._scan):
            self.has_reported_missing_scan = True
            self.log.warn("no scan comes: the operator, who is to drive where there is room, drives in a circle")
        if command.twist is None or (command.is_finished and self.config.after_end == "silence"):
            return
        v, w = self._add_command_noise(*command.twist)
        self._command_publisher.publish(msg.Twist(linear=msg.Vector3(x=v), angular=msg.Vector3(z=w)))

    def _add_command_noise(self, v: float, w: float) -> tuple[float, float]:
        """Return a twist with correlated noise, as of an unsteady hand; a zero twist has none."""
        noise_level = self.script.command_noise
        if noise_level == 0.0:
            return v, w
        persistence = math.exp(-1.0 / (self.script.rate * _NOISE_CORRELATION_TIME))
        deviation = noise_level * math.sqrt(1.0 - persistence * persistence)
        self._noise_state = [
            persistence * state + deviation * float(self.random.standard_normal()) for state in self._noise_state
        ]
        return v * (1.0 + self._noise_state[0]), w + (abs(w) + abs(v)) * self._noise_state[1]

    def save_state(self) -> dict[str, Any]:
        """Return the state of the node and of the script, and the newest measurements."""
        last_inputs = {"pose": self._pose, "scan": self._scan, "lidar_poses": dict(self._lidar_poses)}
        return {
            **super().save_state(),
            "controller": self._controller.save_state(),
            "is_finished": self.is_finished,
            "has_reported_missing_scan": self.has_reported_missing_scan,
            "noise_state": list(self._noise_state),
            **last_inputs,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._controller.load_state(state["controller"])
        self.is_finished, self.has_reported_missing_scan = state["is_finished"], state["has_reported_missing_scan"]
        self._noise_state = list(state["noise_state"])
        self._pose, self._scan, self._lidar_poses = state["pose"], state["scan"], dict(state["lidar_poses"])
