"""The joint command node: set-points of single joints, or of a group, from topics to the hardware."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from roboyard.config import parameter
from roboyard.control.nodes.joint_group import JointGroupConfig, JointGroupNode
from roboyard.description.joint_interfaces import joint_limit_range
from roboyard.description.model import CommandMode
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.interface import JointCommand
from roboyard.messages import msg


class JointCommandNodeConfig(JointGroupConfig):
    """Configuration of `JointCommandNode`."""

    joints: tuple[str, ...] = parameter((), doc="Joints.")
    mode: str = parameter("position", choices=("position", "velocity", "effort"), doc="Kind of the commands.")
    topics: tuple[str, ...] = parameter((), doc="Topics, one of each joint; empty: JOINT/cmd.")
    initial: tuple[float, ...] = parameter((), doc="Set-points from the start on; empty: see hold_position.")
    hold_position: bool = parameter(False, doc="Hold the joints at their positions from the start on (position mode).")


class JointCommandNode(JointGroupNode[JointCommandNodeConfig]):
    """Writes set-points of joints from topics, within the joints' limits.

    in: one topic for each joint (std_msgs/Float64), ``JOINT/cmd`` unless ``topics`` names others;
    ~commands (std_msgs/Float64MultiArray) for all of them in the order of ``joints``   out: set-points to the hardware

    A value that is not finite is dropped; one beyond the joint's limits is clamped. Set-points of joints that another
    source moves are dropped (see `JointClaims`). Both are logged.
    """

    def setup(self) -> None:
        """Check the joints, write their initial set-points, and subscribe."""
        self._mode: CommandMode = self.config.mode  # type: ignore[assignment]
        self.set_up_joints(self._mode)
        topics = self.config.topics or tuple(f"{joint}/cmd" for joint in self.config.joints)
        for name, values in (("topics", topics), ("initial", self.config.initial)):
            if values and len(values) != len(self.config.joints):
                raise ConfigError(
                    f"{len(values)} {name} for {len(self.config.joints)} joints",
                    location=self.full_name,
                    valid="one for each",
                )
        self._ranges = [joint_limit_range(self.description, joint, self._mode) for joint in self.config.joints]
        if self.config.initial:
            self._write(list(range(len(self.config.joints))), list(self.config.initial))
        elif self.config.hold_position and self.config.mode == "position":
            self._write(list(range(len(self.config.joints))), self.measured_positions().tolist())
        for index, topic in enumerate(topics):
            self.subscribe(topic, msg.Float64, self._make_callback(index))
        self.subscribe("~commands", msg.Float64MultiArray, self._on_commands)

    def _make_callback(self, index: int) -> Callable[[Any], None]:
        def on_value(message: Any) -> None:
            self._write([index], [message.data])

        return on_value

    def _on_commands(self, message: Any) -> None:
        values = message.data.tolist()
        if len(values) != len(self.config.joints):
            self.log.error(f"dropped {len(values)} set-points for {len(self.config.joints)} joints", throttle=5.0)
            return
        self._write(list(range(len(values))), values)

    def _write(self, indices: list[int], values: list[float]) -> None:
        if not all(map(math.isfinite, values)):
            self.log.error(f"dropped set-points that are not finite: {values}", throttle=5.0)
            return
        clamped = [
            min(max(value, self._ranges[i][0]), self._ranges[i][1]) for i, value in zip(indices, values, strict=True)
        ]
        if clamped != values:
            self.log.warn("clamped set-points to the joints' limits", throttle=5.0)
        joints = tuple(self.config.joints[i] for i in indices)
        try:
            self.joint_claims.claim(self.full_name, joints)
        except InputError as error:
            self.log.error(f"dropped set-points: {error}", throttle=5.0)
            return
        self.joint_claims.finish_motion(self.full_name)  # it holds the set-points
        self.hardware.write(JointCommand(self._mode, joints, np.array(clamped)))
