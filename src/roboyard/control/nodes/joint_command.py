"""The joint command node: set-points of single joints, or of a group, from topics to the hardware."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from roboyard.bus import Node, param, resource
from roboyard.control.nodes.twist import check_modes
from roboyard.description.model import Limits, Model
from roboyard.errors import ConfigError
from roboyard.hardware.interface import CommandMode, Hardware, JointCommand
from roboyard.messages import msg


class JointCommandNode(Node):
    """Sets joints as topics say, within their limits.

    in: one topic for each joint (std_msgs/Float64), ``JOINT/cmd`` unless ``topics`` names others;
    ~commands (std_msgs/Float64MultiArray) for all of them in the order of ``joints``   out: set-points to the hardware

    A value that is not finite is dropped; one beyond the joint's limits is held to them, and said.
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    joints: tuple[str, ...] = param((), doc="which", fixed=True)
    mode: str = param("position", choices=("position", "velocity", "effort"), fixed=True)
    topics: tuple[str, ...] = param((), doc="one for each joint; none: JOINT/cmd", fixed=True)
    initial: tuple[float, ...] = param((), doc="set-points from the start on; none: see hold", fixed=True)
    hold: bool = param(False, doc="in position mode: hold the joints where they stand from the start on", fixed=True)

    def setup(self) -> None:
        """Check the joints, put them where they begin, and listen."""
        self._mode: CommandMode = self.mode  # type: ignore[assignment]
        check_modes(self.hardware, self.joints, self._mode, self.full_name)
        topics = self.topics or tuple(f"{joint}/cmd" for joint in self.joints)
        for name, values in (("topics", topics), ("initial", self.initial)):
            if values and len(values) != len(self.joints):
                raise ConfigError(
                    f"{len(values)} {name} for {len(self.joints)} joints", where=self.full_name, valid="one for each"
                )
        self._bounds = [bounds_of(self.description, joint, self._mode) for joint in self.joints]
        if self.initial:
            self._write(list(range(len(self.joints))), list(self.initial))
        elif self.hold and self.mode == "position":
            now, names = self.hardware.read().position, self.hardware.joint_names
            self._write(list(range(len(self.joints))), [float(now[names.index(joint)]) for joint in self.joints])
        for index, topic in enumerate(topics):
            self.subscribe(topic, msg.Float64, self._listener(index))
        self.subscribe("~commands", msg.Float64MultiArray, self._on_all)

    def _listener(self, index: int) -> Callable[[Any], None]:
        def on_value(message: Any) -> None:
            self._write([index], [message.data])

        return on_value

    def _on_all(self, message: Any) -> None:
        values = message.data.tolist()
        if len(values) != len(self.joints):
            self.log.error(f"dropped {len(values)} set-points for {len(self.joints)} joints", every=5.0)
            return
        self._write(list(range(len(values))), values)

    def _write(self, where: list[int], values: list[float]) -> None:
        if not all(map(math.isfinite, values)):
            self.log.error(f"dropped set-points that are not finite: {values}", every=5.0)
            return
        held = [min(max(value, self._bounds[i][0]), self._bounds[i][1]) for i, value in zip(where, values, strict=True)]
        if held != values:
            self.log.warn("held set-points to the joints' limits", every=5.0)
        self.hardware.write(JointCommand(self._mode, tuple(self.joints[i] for i in where), np.array(held)))


def bounds_of(model: Model, joint: str, mode: CommandMode) -> tuple[float, float]:
    """Least and largest set-point of a joint [rad, rad/s, N m; m, m/s, N]; infinite where nobody says."""
    found = next((one for one in model.joints if one.name == joint), None)
    limits = found.axes[0].limits if found is not None and found.axes else Limits()
    if mode == "position":
        return limits.lower, limits.upper
    top = limits.velocity if mode == "velocity" else limits.effort
    top = top if top > 0.0 else math.inf  # zero and negative limits in files mean none
    return -top, top
