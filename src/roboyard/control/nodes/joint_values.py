"""The joint values node: joints of an arm or gripper by name, as the youBot's driver takes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from roboyard.control.nodes.moving import MovingNode
from roboyard.errors import InputError
from roboyard.messages import msg

_SLIDING = "prismatic"


class JointValuesNode(MovingNode):
    """Moves joints by lists of name, unit and value, as youbot_driver_ros_interface does (see `MovingNode`).

    in: position_command (brics_actuator/JointPositions; rad, m),
    velocity_command (brics_actuator/JointVelocities; "s^-1 rad", "s^-1 m")

    A list names some of the joints; those with the value NaN are left as they are.  A list is refused as a whole where
    a joint is not of the group or is named twice, a unit is another one, or a value is infinite.
    """

    def setup(self) -> None:
        """Listen."""
        super().setup()
        types = {joint.name: joint.type for joint in self.description.joints}
        self._units = ["m" if types.get(joint) == _SLIDING else "rad" for joint in self.config.joints]
        self.subscribe("position_command", msg.JointPositions, self._on_positions, with_source=True)
        self.subscribe("velocity_command", msg.JointVelocities, self._on_velocities, with_source=True)

    def _on_positions(self, message: Any, publisher: str) -> None:
        try:
            self.go(self._read(message.positions, self._units))
        except InputError as error:
            self.log.error(f"refused positions of {publisher}: {error}", throttle=1.0)

    def _on_velocities(self, message: Any, publisher: str) -> None:
        try:
            self.run(self._read(message.velocities, [f"s^-1 {unit}" for unit in self._units]))
        except InputError as error:
            self.log.error(f"refused velocities of {publisher}: {error}", throttle=1.0)

    def _read(self, values: Sequence[Any], units: Sequence[str]) -> list[tuple[int, float]]:
        """Places in the group, and values. Raises InputError."""
        found: dict[int, float] = {}
        for one in values:
            if one.joint_uri not in self.config.joints:
                raise InputError(f"no joint {one.joint_uri!r}", valid=f"joints: {', '.join(self.config.joints)}")
            index = self.config.joints.index(one.joint_uri)
            if index in found:
                raise InputError(f"{one.joint_uri} twice", valid="one value for each joint")
            if one.unit != units[index]:
                raise InputError(f"unit {one.unit!r} for {one.joint_uri}", valid=repr(units[index]))
            if math.isinf(one.value):
                raise InputError(f"{one.value} for {one.joint_uri}", valid="a finite number, or nan to leave it")
            found[index] = float(one.value)
        return [(index, value) for index, value in found.items() if not math.isnan(value)]
