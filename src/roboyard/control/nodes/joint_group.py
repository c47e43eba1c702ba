"""Base of all nodes that command a group of joints: joints, claims and the `~stop` and `~pause` services."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.control.joint_claims import JointClaims
from roboyard.description.model import CommandMode, Model
from roboyard.errors import ConfigError
from roboyard.hardware.interface import Hardware, check_command_mode, joint_indices
from roboyard.messages import srv


class JointGroupConfig(Config):
    """Configuration of `JointGroupNode`; subclasses declare ``joints`` again with a description of their own."""

    joints: tuple[str, ...] = parameter((), doc="Joints of the group.")


JointGroupConfigT = TypeVar("JointGroupConfigT", bound=JointGroupConfig, default=JointGroupConfig, covariant=True)


class JointGroupNode(Node[JointGroupConfigT]):
    """Base of all nodes that command a group of joints.

    Subclasses call `set_up_joints` in ``setup``, and command the joints only while they have claimed them (see
    `JointClaims`). The claims are released when the node is closed.
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    joint_claims: JointClaims = resource(JointClaims, make=JointClaims)

    def set_up_joints(self, mode: CommandMode) -> None:
        """Check that there are joints, and that all of them take commands of a mode.

        Raises:
            ConfigError: there are none, or one does not take such commands.
        """
        if not self.config.joints:
            raise ConfigError("no joints", location=self.full_name, valid="parameter joints: names of the group")
        check_command_mode(self.hardware, self.config.joints, mode, self.full_name)
        self._joint_indices = joint_indices(self.hardware, self.config.joints)

    def measured_positions(self) -> NDArray[np.float64]:
        """Return the measured positions of the joints (n,) [rad or m]."""
        positions: NDArray[np.float64] = self.hardware.read().position[self._joint_indices]
        return positions

    def has_claim(self) -> bool:
        """Return whether the node has claimed all of its joints."""
        return self.joint_claims.has_claim(self.full_name, self.config.joints)

    def close(self) -> None:
        """Release the claims of the joints."""
        self.joint_claims.unregister(self.full_name)

    def save_claims(self) -> dict[str, bool]:
        """Return the claims as plain data, for ``save_state``."""
        return {"owns": self.has_claim(), "paused": self.joint_claims.is_paused(self.config.joints)}

    def load_claims(self, state: Mapping[str, Any], *, is_moving: bool) -> None:
        """Restore what `save_claims` returned.

        Args:
            state: Saved state of the node.
            is_moving: Whether the node was moving its joints; otherwise it only held them.
        """
        self.joint_claims.set_paused(self.config.joints, state["paused"])
        if state["owns"]:
            self.joint_claims.claim(self.full_name, self.config.joints)
            if not is_moving:
                self.joint_claims.finish_motion(self.full_name)


def add_stop_services(node: Node, claims: JointClaims, joints: tuple[str, ...], stop: Callable[[], None]) -> None:
    """Add the services ``~stop`` (std_srvs/Trigger) and ``~pause`` (std_srvs/SetBool) to a node.

    They apply to every source that moves the joints.

    Args:
        node: Node that gets the services, and moves joints itself.
        claims: Claims of the robot's joints.
        joints: Names of the joints.
        stop: Stops the motion of the node itself.
    """
    claims.register(node.full_name, stop)

    def on_stop(request: Any) -> Any:
        sources = claims.stop(joints)
        return srv.Trigger.Response(success=True, message=f"stopped: {', '.join(sources) or 'no motion'}")

    def on_pause(request: Any) -> Any:
        claims.set_paused(joints, bool(request.data))
        return srv.SetBool.Response(success=True, message="paused" if request.data else "resumed")

    node.service("~stop", srv.Trigger, on_stop)
    node.service("~pause", srv.SetBool, on_pause)
