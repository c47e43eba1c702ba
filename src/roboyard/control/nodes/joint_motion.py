"""Nodes that move joints of a group one by one, by number or by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from roboyard.bus import resource
from roboyard.config import parameter
from roboyard.control.joint_limits import JointAccelerationLimits, JointGroupLimits
from roboyard.control.joint_motion import JointMotionGenerator
from roboyard.control.nodes.joint_group import JointGroupConfig, JointGroupNode, add_stop_services
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.interface import JointCommand
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg

_TARGET_CHANGE = 1e-3
"""Joints that another source moved by more than this are published as new targets [rad or m]."""
_TARGET_PERIOD_NS = 100_000_000
"""Shortest time between two such messages [ns]."""


class JointMotionNodeConfig(JointGroupConfig):
    """Configuration of `JointMotionNode`."""

    joints: tuple[str, ...] = parameter((), doc="Joints of the group, in the order of their numbers.")
    rate: float = parameter(100.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    timeout: float = parameter(0.5, unit="s", low=0.01, high=60.0, runtime=True, doc="Age at which a velocity ends.")
    hold_position: bool = parameter(True, doc="Hold the joints at their positions from the start on.")
    start_tolerance: float = parameter(
        0.1,
        unit="rad or m",
        low=0.0,
        high=1e3,
        runtime=True,
        doc="Distance from its set-point from which a joint at rest starts at its measured position.",
    )


class JointMotionNode(JointGroupNode[JointMotionNodeConfig]):
    """Moves joints of a group one by one, to positions or at velocities, without jumps of the set-points.

    The set-points are those of a `JointMotionGenerator`.

    services: ~stop (std_srvs/Trigger), ~pause (std_srvs/SetBool)
    out: positions to the hardware; joint_targets (sensor_msgs/JointState, latched): target positions, or the measured
        positions while another source has claimed the joints, so that a client may add a step to the newest message

    Subclasses subscribe, and call ``move_to`` and ``move_at``. The newest command of a joint counts; a velocity ends
    when it is older than ``timeout``. Commands are rejected while another source moves the joints (see `JointClaims`);
    then joint_targets is published again, so that a client does not rely on the rejected command. A joint at rest that
    was moved farther than ``start_tolerance`` from its set-point starts from its measured position.
    """

    acceleration_limits: JointAccelerationLimits = resource(JointAccelerationLimits, make=JointAccelerationLimits)

    def setup(self) -> None:
        """Check the joints, hold them at their measured positions, and subscribe."""
        self.set_up_joints("position")
        self._limits = JointGroupLimits.from_model(self.description, self.config.joints, self.acceleration_limits)
        try:
            self._motion = JointMotionGenerator(self._limits, self.config.joints, self.measured_positions())
        except ConfigError as error:
            raise ConfigError(error.message, location=self.full_name, valid=error.valid) from None
        self._target_publisher = self.publisher("joint_targets", msg.JointState, latched=True)
        self._published, self._published_ns = self._motion.targets, self.now_ns
        self._publish_targets()
        if self.config.hold_position:
            self.joint_claims.claim_if_free(self.full_name, self.config.joints)
        add_stop_services(self, self.joint_claims, self.config.joints, self._motion.stop)
        self.timer(rate=self.config.rate, callback=self._update, immediate=True)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {
            "moves": self._motion.save_state(),
            "published": (self._published.copy(), self._published_ns),
            **self.save_claims(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._motion.load_state(state["moves"])
        self._published, self._published_ns = np.array(state["published"][0]), int(state["published"][1])
        self.load_claims(state, is_moving=True)  # the next update shows whether they are at rest

    def move_to(self, positions: Sequence[tuple[int, float]]) -> None:
        """Move joints, by their places in the group, to positions. Raises InputError where another source has them."""
        try:
            self._claim_joints([index for index, _ in positions])
        except InputError:
            self._publish_targets()
            raise
        for index, position in positions:
            target = self._motion.move_to(index, position)
            if target != position:
                self.log.warn(
                    f"{self.config.joints[index]} moves to its limit {target:.3f}, not to {position:.3f}", throttle=1.0
                )
        self._publish_targets()

    def move_at(self, speeds: Sequence[tuple[int, float]]) -> None:
        """Move joints at velocities. Raises InputError where another source has them."""
        self._claim_joints([index for index, _ in speeds])
        for index, speed in speeds:
            self._motion.move_at(index, speed, self.now_ns + round(self.config.timeout * 1e9))

    def _claim_joints(self, indices: Sequence[int]) -> None:
        """Claim the joints; those of ``indices`` that are not at their set-points start from their measured positions.

        Raises:
            InputError: another source moves the joints; nothing changes.
        """
        self.joint_claims.claim(self.full_name, self.config.joints)
        measured, set_points = self.measured_positions(), self._motion.position
        for index in indices:
            if abs(measured[index] - set_points[index]) > self.config.start_tolerance and self._motion.is_at_rest(
                index
            ):
                self._motion.reset_joint(index, float(measured[index]))

    def _publish_targets(self) -> None:
        self._published, self._published_ns = self._motion.targets, self.now_ns
        self._target_publisher.publish(
            msg.JointState(
                header=msg.Header(stamp=time_to_msg(self.now_ns)),
                name=list(self.config.joints),
                position=self._motion.targets,
            )
        )

    def _update(self) -> None:
        if not self.has_claim():
            self._motion.reset(self.measured_positions())  # ready to continue from there
            has_changed = float(np.abs(self._motion.targets - self._published).max()) > _TARGET_CHANGE
            if has_changed and self.now_ns - self._published_ns >= _TARGET_PERIOD_NS:
                self._publish_targets()
            return
        if self._motion.step(self.now_ns, 1.0 / self.config.rate, self.joint_claims.is_paused(self.config.joints)):
            self._publish_targets()
        self.hardware.write(JointCommand("position", self.config.joints, self._motion.position))
        if self._motion.is_finished:
            self.joint_claims.finish_motion(self.full_name)


class IndexedJointMotionNode(JointMotionNode):
    """Moves the joints of a group one by one, by messages of a number and a value (see `JointMotionNode`).

    in: move_position, move_velocity (metralabs_msgs/IDAndFloat: number of the joint from 1 on; rad, rad/s)

    A value that is not finite and an unknown number are rejected.
    """

    def setup(self) -> None:
        """Listen."""
        super().setup()
        self.subscribe("move_position", msg.IDAndFloat, self._on_position, with_source=True)
        self.subscribe("move_velocity", msg.IDAndFloat, self._on_velocity, with_source=True)

    def _on_position(self, message: Any, publisher: str) -> None:
        try:
            self.move_to([(self._index(message), float(message.value))])
        except InputError as error:
            self.log.error(f"rejected a position of {publisher}: {error}", throttle=1.0)

    def _on_velocity(self, message: Any, publisher: str) -> None:
        try:
            self.move_at([(self._index(message), float(message.value))])
        except InputError as error:
            self.log.error(f"rejected a velocity of {publisher}: {error}", throttle=1.0)

    def _index(self, message: Any) -> int:
        index = int(message.id) - 1
        if not 0 <= index < len(self.config.joints):
            raise InputError(f"joint {message.id}", valid=f"there are 1 to {len(self.config.joints)}")
        if not math.isfinite(message.value):
            raise InputError(f"{message.value} for {self.config.joints[index]}", valid="a finite number")
        return index


_PRISMATIC = "prismatic"


class NamedJointMotionNode(JointMotionNode):
    """Moves joints by lists of name, unit and value, as youbot_driver_ros_interface does (see `JointMotionNode`).

    in: position_command (brics_actuator/JointPositions; rad, m),
    velocity_command (brics_actuator/JointVelocities; "s^-1 rad", "s^-1 m")

    A list names some of the joints; those with the value NaN are not changed. A list is rejected as a whole if a joint
    is not in the group or is named twice, a unit is wrong, or a value is infinite.
    """

    def setup(self) -> None:
        """Listen."""
        super().setup()
        types = {joint.name: joint.type for joint in self.description.joints}
        self._units = ["m" if types.get(joint) == _PRISMATIC else "rad" for joint in self.config.joints]
        self.subscribe("position_command", msg.JointPositions, self._on_positions, with_source=True)
        self.subscribe("velocity_command", msg.JointVelocities, self._on_velocities, with_source=True)

    def _on_positions(self, message: Any, publisher: str) -> None:
        try:
            self.move_to(self._read(message.positions, self._units))
        except InputError as error:
            self.log.error(f"rejected positions of {publisher}: {error}", throttle=1.0)

    def _on_velocities(self, message: Any, publisher: str) -> None:
        try:
            self.move_at(self._read(message.velocities, [f"s^-1 {unit}" for unit in self._units]))
        except InputError as error:
            self.log.error(f"rejected velocities of {publisher}: {error}", throttle=1.0)

    def _read(self, values: Sequence[Any], units: Sequence[str]) -> list[tuple[int, float]]:
        """Return indices in the group, and values. Raises InputError."""
        value_of_index: dict[int, float] = {}
        for entry in values:
            if entry.joint_uri not in self.config.joints:
                raise InputError(f"no joint {entry.joint_uri!r}", valid=f"joints: {', '.join(self.config.joints)}")
            index = self.config.joints.index(entry.joint_uri)
            if index in value_of_index:
                raise InputError(f"{entry.joint_uri} twice", valid="one value for each joint")
            if entry.unit != units[index]:
                raise InputError(f"unit {entry.unit!r} for {entry.joint_uri}", valid=repr(units[index]))
            if math.isinf(entry.value):
                raise InputError(f"{entry.value} for {entry.joint_uri}", valid="a finite number, or nan to leave it")
            value_of_index[index] = float(entry.value)
        return [(index, value) for index, value in value_of_index.items() if not math.isnan(value)]
