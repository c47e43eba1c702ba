"""The joint moves node: single joints of an arm by number, to positions or at velocities, never with a lurch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bus import Node, param, resource
from roboyard.control.nodes.joint_command import bounds_of
from roboyard.control.nodes.twist import check_modes
from roboyard.control.owners import JointOwners
from roboyard.control.reaching import Reach, ReachLimits
from roboyard.description.model import Model
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import msg
from roboyard.messages.time import stamp


class JointMovesNode(Node):
    """Moves the joints of a group one by one, as messages of a number and a value say.

    in: move_position, move_velocity (metralabs_msgs/IDAndFloat: number of the joint from 1 on; rad, rad/s)
    out: positions to the hardware; joint_targets (sensor_msgs/JointState, latched): where they go to

    A position is reached with limited speed and acceleration, however far it is.  A velocity moves the position that
    the joint's servo holds (a cascade), ends when it is older than ``timeout``, and slows down before the limits.
    The newest message on a joint counts.  What is not finite and a number that no joint has are refused, and everything
    while another source moves the joints (see `JointOwners`).
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    owners: JointOwners | None = resource(JointOwners, optional=True)
    joints: tuple[str, ...] = param((), doc="the group, in the order of their numbers", fixed=True)
    rate: float = param(100.0, unit="Hz", low=1.0, high=1000.0, fixed=True)
    acceleration: float = param(1.0, unit="rad/s²", low=1e-3, high=1e3, doc="of every joint", fixed=True)
    timeout: float = param(0.5, unit="s", low=0.01, high=60.0, doc="an older velocity is over")

    def setup(self) -> None:
        """Check the joints, hold them where they are, and listen."""
        if not self.joints:
            raise ConfigError("no joints", where=self.full_name, valid="parameter joints: names of the group")
        check_modes(self.hardware, self.joints, "position", self.full_name)
        names = self.hardware.joint_names
        self._where = [names.index(joint) for joint in self.joints]
        self._limits = []
        for joint in self.joints:
            low, high = bounds_of(self.description, joint, "position")
            speed = bounds_of(self.description, joint, "velocity")[1]
            if not math.isfinite(speed):
                raise ConfigError(f"{joint} has no limit of speed", where=self.full_name, valid="<limit velocity>")
            self._limits.append(ReachLimits(low, high, speed, self.acceleration))
        now = self.hardware.read().position
        self._reach = [Reach(float(now[index])) for index in self._where]
        self._targets: list[float] = [one.position for one in self._reach]
        self._speeds: list[tuple[float, int] | None] = [None] * len(self.joints)
        self._told = self.publisher("joint_targets", msg.JointState, latched=True)
        self._tell()
        self.subscribe("move_position", msg.IDAndFloat, self._on_position, with_source=True)
        self.subscribe("move_velocity", msg.IDAndFloat, self._on_velocity, with_source=True)
        self.timer(rate=self.rate, callback=self._tick, start=True)

    def save(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save() | {
            "reach": [tuple(one) for one in self._reach],
            "targets": list(self._targets),
            "speeds": list(self._speeds),
            "owns": self.owners is not None and self.owners.owns(self.full_name, self.joints),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load(state)
        self._reach = [Reach(*one) for one in state["reach"]]
        self._targets = list(state["targets"])
        self._speeds = [None if one is None else (one[0], one[1]) for one in state["speeds"]]
        if self.owners is not None and state["owns"]:
            self.owners.take(self.full_name, self.joints)  # the next tick tells whether they rest

    def _on_position(self, message: Any, publisher: str) -> None:
        index = self._index(message, publisher)
        if index is None:
            return
        limits = self._limits[index]
        held = min(max(float(message.value), limits.lower), limits.upper)
        if held != message.value:
            self.log.warn(f"{self.joints[index]} goes to its limit {held:.3f}, not to {message.value:.3f}", every=1.0)
        self._targets[index], self._speeds[index] = held, None
        self._tell()

    def _on_velocity(self, message: Any, publisher: str) -> None:
        index = self._index(message, publisher)
        if index is not None:
            self._speeds[index] = float(message.value), self.now_ns

    def _index(self, message: Any, publisher: str) -> int | None:
        index = int(message.id) - 1
        if not 0 <= index < len(self.joints):
            known = len(self.joints)
            self.log.error(f"refused joint {message.id} of {publisher}: there are 1 to {known}", every=1.0)
            return None
        if not math.isfinite(message.value):
            self.log.error(f"refused {message.value} for {self.joints[index]} of {publisher}", every=1.0)
            return None
        if self.owners is not None:
            try:
                self.owners.take(self.full_name, self.joints)
            except InputError as error:
                self.log.error(f"refused {self.joints[index]} of {publisher}: {error}", every=1.0)
                return None
        return index

    def _tell(self) -> None:
        self._told.publish(
            msg.JointState(
                header=msg.Header(stamp=stamp(self.now_ns)), name=list(self.joints), position=np.array(self._targets)
            )
        )

    def _tick(self) -> None:
        if self.owners is not None and not self.owners.may(self.full_name, self.joints):
            self._follow()
            return
        dt = 1.0 / self.rate
        for index, limits in enumerate(self._limits):
            now, speed = self._reach[index], self._speeds[index]
            if speed is None:
                self._reach[index] = limits.toward(now, self._targets[index], dt)
                continue
            over = self.now_ns - speed[1] > self.timeout * 1e9
            then = self._reach[index] = limits.at(now, 0.0 if over else speed[0], dt)
            if over and then.velocity == 0.0:
                self._speeds[index], self._targets[index] = None, then.position
                self._tell()
        self.hardware.write(JointCommand("position", self.joints, np.array([one.position for one in self._reach])))
        if self.owners is not None and self._rests():
            self.owners.rest(self.full_name)

    def _rests(self) -> bool:
        arrived = (one == Reach(target) for one, target in zip(self._reach, self._targets, strict=True))
        return all(speed is None for speed in self._speeds) and all(arrived)

    def _follow(self) -> None:
        """Another source has the joints: be ready to go on from where they are."""
        now = self.hardware.read().position
        self._reach = [Reach(float(now[index])) for index in self._where]
        self._targets = [one.position for one in self._reach]
        self._speeds = [None] * len(self.joints)
