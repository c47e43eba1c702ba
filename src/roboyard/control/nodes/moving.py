"""What all nodes have in common that move joints one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.control.limits import JointBounds, JointRates
from roboyard.control.moves import JointMoves
from roboyard.control.nodes.stopping import offer_stops
from roboyard.control.nodes.twist import check_modes
from roboyard.control.owners import JointOwners
from roboyard.description.model import Model
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg

_TARGET_CHANGE = 1e-3
"""Joints that another source moved by more than this are published as new targets [rad or m]."""
_TARGET_PERIOD_NS = 100_000_000
"""Shortest time between two such messages [ns]."""


class MovingNodeConfig(Config):
    """Configuration of `MovingNode`."""

    joints: tuple[str, ...] = parameter((), doc="Joints of the group, in the order of their numbers.")
    rate: float = parameter(100.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    timeout: float = parameter(0.5, unit="s", low=0.01, high=60.0, runtime=True, doc="Age at which a velocity ends.")
    hold: bool = parameter(True, doc="Hold the joints from the start on where they are.")
    start_tolerance: float = parameter(
        0.1,
        unit="rad or m",
        low=0.0,
        high=1e3,
        runtime=True,
        doc="Distance from its set-point from which a joint at rest starts at its measured position.",
    )


class MovingNode(Node[MovingNodeConfig]):
    """Moves joints of a group one by one, to positions or at velocities, never with a lurch (see `JointMoves`).

    services: ~stop (std_srvs/Trigger), ~pause (std_srvs/SetBool)
    out: positions to the hardware; joint_targets (sensor_msgs/JointState, latched): where they go to; where they are,
        while another source has them, so that a client may add a step to the newest message

    Subclasses listen, and call ``go`` and ``run``.  The newest command of a joint counts; a velocity ends when it is
    older than ``timeout``.  Everything is refused while another source moves the joints (see `JointOwners`); then
    joint_targets is published again, so that a client does not reckon with the refused command.  A joint at rest that
    something moved farther than ``start_tolerance`` from its set-point starts from its measured position.
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    owners: JointOwners = resource(JointOwners, make=JointOwners)
    rates: JointRates = resource(JointRates, make=JointRates)

    def setup(self) -> None:
        """Check the joints, hold them at their measured positions, and subscribe."""
        if not self.config.joints:
            raise ConfigError("no joints", location=self.full_name, valid="parameter joints: names of the group")
        check_modes(self.hardware, self.config.joints, "position", self.full_name)
        names = self.hardware.joint_names
        self._where = np.array([names.index(joint) for joint in self.config.joints])
        self._bounds = JointBounds.of(self.description, self.config.joints, self.rates)
        try:
            self._moves = JointMoves(self._bounds, self.config.joints, self._actual())
        except ConfigError as error:
            raise ConfigError(error.message, location=self.full_name, valid=error.valid) from None
        self._target_publisher = self.publisher("joint_targets", msg.JointState, latched=True)
        self._published, self._published_ns = self._moves.targets, self.now_ns
        self._publish_targets()
        if self.config.hold:
            self.owners.hold(self.full_name, self.config.joints)
        offer_stops(self, self.owners, self.config.joints, self._moves.stop)
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)

    def close(self) -> None:
        """Leave the joints to others."""
        self.owners.leave(self.full_name)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {
            "moves": self._moves.save_state(),
            "published": (self._published.copy(), self._published_ns),
            "owns": self.owners.owns(self.full_name, self.config.joints),
            "paused": self.owners.paused(self.config.joints),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._moves.load_state(state["moves"])
        self._published, self._published_ns = np.array(state["published"][0]), int(state["published"][1])
        self.owners.pause(self.config.joints, state["paused"])
        if state["owns"]:
            self.owners.take(self.full_name, self.config.joints)  # the next tick tells whether they rest

    def go(self, positions: Sequence[tuple[int, float]]) -> None:
        """Move joints, by their places in the group, to positions. Raises InputError where another source has them."""
        try:
            self._acquire([index for index, _ in positions])
        except InputError:
            self._publish_targets()
            raise
        for index, position in positions:
            held = self._moves.go(index, position)
            if held != position:
                self.log.warn(
                    f"{self.config.joints[index]} goes to its limit {held:.3f}, not to {position:.3f}", throttle=1.0
                )
        self._publish_targets()

    def run(self, speeds: Sequence[tuple[int, float]]) -> None:
        """Move joints at velocities. Raises InputError where another source has them."""
        self._acquire([index for index, _ in speeds])
        for index, speed in speeds:
            self._moves.run(index, speed, self.now_ns + round(self.config.timeout * 1e9))

    def _acquire(self, indices: Sequence[int]) -> None:
        """Take the joints; those of ``indices`` that stand somewhere else than their set-points start from there.

        Raises:
            InputError: another source moves the joints; nothing changes.
        """
        self.owners.take(self.full_name, self.config.joints)
        actual, set_points = self._actual(), self._moves.position
        for index in indices:
            if abs(actual[index] - set_points[index]) > self.config.start_tolerance and self._moves.is_at_rest(index):
                self._moves.start_at(index, float(actual[index]))

    def _actual(self) -> NDArray[np.float64]:
        actual: NDArray[np.float64] = self.hardware.read().position[self._where]
        return actual

    def _publish_targets(self) -> None:
        self._published, self._published_ns = self._moves.targets, self.now_ns
        self._target_publisher.publish(
            msg.JointState(
                header=msg.Header(stamp=time_to_msg(self.now_ns)),
                name=list(self.config.joints),
                position=self._moves.targets,
            )
        )

    def _tick(self) -> None:
        if not self.owners.owns(self.full_name, self.config.joints):
            self._moves.be_at(self._actual())  # ready to go on from there
            has_changed = float(np.abs(self._moves.targets - self._published).max()) > _TARGET_CHANGE
            if has_changed and self.now_ns - self._published_ns >= _TARGET_PERIOD_NS:
                self._publish_targets()
            return
        if self._moves.step(self.now_ns, 1.0 / self.config.rate, self.owners.paused(self.config.joints)):
            self._publish_targets()
        self.hardware.write(JointCommand("position", self.config.joints, self._moves.position))
        if self._moves.arrived:
            self.owners.rest(self.full_name)
