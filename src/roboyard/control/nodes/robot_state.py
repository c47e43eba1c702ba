"""The robot state node: joint readings in, transforms of all links out."""

from __future__ import annotations

import math
from itertools import compress
from typing import Any

from roboyard.bus import Node, resource
from roboyard.bus.throttle import Throttle
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.description.model import Model
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.kinematics.forward_kinematics import ForwardKinematics, compute_child_poses, fixed_transforms
from roboyard.messages import msg
from roboyard.messages.time import to_nanoseconds


class RobotStateNodeConfig(Config):
    """Configuration of `RobotStateNode`."""

    rate: float = parameter(20.0, unit="Hz", low=0.1, high=1000.0, doc="Largest rate on /tf.")


class RobotStateNode(Node[RobotStateNodeConfig]):
    """Publishes the transforms of the robot's links.

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
        self._is_known: list[bool] = []
        self._frames = [(self.frame(joint.parent), self.frame(joint.child)) for joint in self._kinematics.moving_joints]
        self._throttle = Throttle(self.config.rate)
        fixed = fixed_transforms(self.description)
        if fixed:
            self.send_transforms([(T, self.frame(a), self.frame(b)) for T, a, b in fixed], static=True)
        if self._kinematics.moving_joints:
            self.subscribe("joint_states", msg.JointState, self._on_joints)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"throttle": self._throttle.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._throttle.load_state(state["throttle"])

    def _on_joints(self, state: Any) -> None:
        if state.name != self._names:
            self._names = list(state.name)
            self._is_known = [name in self._positions for name in self._names]
        self._positions.update(compress(zip(state.name, state.position.tolist(), strict=False), self._is_known))
        time_ns = to_nanoseconds(state.header.stamp)
        if not self._throttle.should_pass(time_ns):
            return
        moving = self._kinematics.joint_transforms(self._positions)
        named = [(T, *frames) for (T, _, _), frames in zip(moving, self._frames, strict=True)]
        self.send_transforms(named, time_ns=time_ns)


class StaticTransformNodeConfig(Config):
    """Configuration of `StaticTransformNode`."""

    frame_id: str = parameter("world", doc="Parent frame.")
    child_frame_id: str = parameter("base_link", doc="Child frame.")
    pose: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of the child in the parent [m, rad].")


class StaticTransformNode(Node[StaticTransformNodeConfig]):
    """Publishes a transform that never changes, as ROS's static_transform_publisher does.

    out: /tf_static
    """

    def setup(self) -> None:
        """Publish the transform. Raises ConfigError if the pose is not six finite numbers."""
        if len(self.config.pose) != 6 or not all(map(math.isfinite, self.config.pose)):
            location = f"{self.full_name}, parameter 'pose'"
            raise ConfigError(f"{list(self.config.pose)}", location=location, valid="x, y, z, roll, pitch, yaw")
        x, y, z, roll, pitch, yaw = self.config.pose
        T = SE3.from_xyz_rpy((x, y, z), (roll, pitch, yaw))
        self.send_transform(T, self.frame(self.config.frame_id), self.frame(self.config.child_frame_id), static=True)
