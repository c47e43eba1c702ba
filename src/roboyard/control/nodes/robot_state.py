"""The robot state node: joint readings in, transforms of all links out."""

from __future__ import annotations

from itertools import compress
from typing import Any

from roboyard.bus import Node, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.control.throttle import Throttle
from roboyard.description.model import Model
from roboyard.kinematics.forward_kinematics import ForwardKinematics, compute_child_poses, fixed_transforms
from roboyard.messages import msg
from roboyard.messages.time import to_nanoseconds


class RobotStateNodeConfig(Config):
    """Configuration of `RobotStateNode`."""

    rate: float = parameter(20.0, unit="Hz", low=0.1, high=1000.0, doc="Largest rate on /tf.")


class RobotStateNode(Node[RobotStateNodeConfig]):
    """Publishes where the robot's links are.

    in: joint_states   out: /tf for moving joints, /tf_static for fixed ones and for sensor frames

    A message may name only some joints; the others keep their last position, at first zero.
    """

    description: Model = resource(Model)

    state_fields = ("_positions",)

    def setup(self) -> None:
        """Publish the fixed frames and listen to the joints."""
        expect_kernels(compute_child_poses)
        self._kinematics = ForwardKinematics(self.description)
        self._positions = dict.fromkeys(self._kinematics.independent_positions, 0.0)
        self._names: list[str] = []  # of the message before, and which of them count
        self._known: list[bool] = []
        self._frames = [(self.frame(joint.parent), self.frame(joint.child)) for joint in self._kinematics.moving_joints]
        self._throttle = Throttle(self.config.rate)
        fixed = fixed_transforms(self.description)
        if fixed:
            self.send_transforms([(T, self.frame(a), self.frame(b)) for T, a, b in fixed], static=True)
        if self._kinematics.moving_joints:
            self.subscribe("joint_states", msg.JointState, self._on_joints)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {"throttle": self._throttle.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._throttle.load_state(state["throttle"])

    def _on_joints(self, state: Any) -> None:
        if state.name != self._names:
            self._names = list(state.name)
            self._known = [name in self._positions for name in self._names]
        self._positions.update(compress(zip(state.name, state.position.tolist(), strict=False), self._known))
        time_ns = to_nanoseconds(state.header.stamp)
        if not self._throttle.passes(time_ns):
            return
        moving = self._kinematics.joint_transforms(self._positions)
        named = [(T, *frames) for (T, _, _), frames in zip(moving, self._frames, strict=True)]
        self.send_transforms(named, time_ns=time_ns)
