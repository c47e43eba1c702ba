"""The leaf of behavior trees that walks to a pose by odometry."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from roboyard.behavior.basic_types import FAILURE, RUNNING, SUCCESS, NodeStatus
from roboyard.behavior.nodes.leaf_host import ERROR_PORTS, BusLeaf
from roboyard.behavior.ports import input_port
from roboyard.behavior.tree_node import StatefulActionNode
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se2

_POSITION_GAIN = 1.0
"""Ratio of the speed to the remaining distance [1/s]."""


def velocity_towards(target: SE2, speed: float, angular_speed: float) -> tuple[float, float, float]:
    """Return the velocity that moves an omnidirectional body to a pose, slower near the goal.

    Args:
        target: The pose in the body's frame.
        speed, angular_speed: Upper limits [m/s, rad/s].

    Returns:
        Velocity forward and to the left [m/s], and angular velocity [rad/s].
    """
    distance = math.hypot(target.x, target.y)
    gain = min(_POSITION_GAIN, speed / distance) if distance > 0.0 else 0.0
    angular_velocity = math.copysign(min(_POSITION_GAIN * abs(target.theta), angular_speed), target.theta)
    return gain * target.x, gain * target.y, angular_velocity


class WalkToPose(BusLeaf, StatefulActionNode):
    """Moves an omnidirectional robot, such as one with legs, to a pose relative to its start pose.

    It is controlled by odometry, and requires no map.
    """

    ports: ClassVar = {
        "goal": input_port(SE2, doc="Goal pose `x;y;yaw` relative to the start pose [m, rad]."),
        "speed": input_port(float, 0.05, "Largest speed [m/s]."),
        "angular_speed": input_port(float, 0.2, "Largest angular speed [rad/s]."),
        "tolerance": input_port(float, 0.01, "Largest distance from the goal at the end [m]."),
        "yaw_tolerance": input_port(float, 0.02, "Largest angle to the goal at the end [rad]."),
        "time_allowance": input_port(float, 120.0, "Time after which the leaf fails [s]."),
        "topic": input_port(str, "cmd_vel", "Topic of the velocity commands (geometry_msgs/Twist)."),
        "odometry": input_port(str, "odom", "Topic of the odometry (nav_msgs/Odometry)."),
        **ERROR_PORTS,
    }
    state_fields = ("_target_pose", "_odometry_pose", "_deadline_ns")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._target_pose: tuple[float, float, float] | None = None
        self._odometry_pose: tuple[float, float, float] | None = None
        self._deadline_ns = 0
        self.failure_reason = ""
        self._subscription: Any = None
        self._publisher = None
        if self.host is not None:
            self._publisher = self.release_with_tree(
                self.host.node.publisher(self.inputs.get("topic", "cmd_vel"), msg.Twist)
            )

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        self.require_host()
        self._target_pose = self._odometry_pose = None
        self._deadline_ns = self.now_ns + round(self.get_input("time_allowance") * 1e9)
        self._subscribe()
        return RUNNING

    def on_running(self) -> NodeStatus:
        """See `StatefulActionNode.on_running`."""
        if self.now_ns >= self._deadline_ns:
            return self._fail(
                "the robot did not reach the goal in time" if self._odometry_pose else "there is no odometry"
            )
        if self._odometry_pose is None:
            return RUNNING
        pose = SE2(*self._odometry_pose)
        if self._target_pose is None:
            goal = pose @ self.get_input("goal")
            self._target_pose = (goal.x, goal.y, goal.theta)
        remaining = pose.inverse() @ SE2(*self._target_pose)
        is_near = math.hypot(remaining.x, remaining.y) <= self.get_input("tolerance")
        if is_near and abs(remaining.theta) <= self.get_input("yaw_tolerance"):
            self.on_halted()
            return SUCCESS
        self._publish_velocity(*velocity_towards(remaining, self.get_input("speed"), self.get_input("angular_speed")))
        return RUNNING

    def on_halted(self) -> None:
        """See `StatefulActionNode.on_halted`."""
        self._publish_velocity(0.0, 0.0, 0.0)
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            self.require_host().node.release_endpoint(subscription)

    def _fail(self, reason: str) -> NodeStatus:
        self.on_halted()
        self.failure_reason = reason
        if "error_msg" in self.outputs:
            self.set_output("error_msg", reason)
        return FAILURE

    def _publish_velocity(self, forward: float, left: float, angular_velocity: float) -> None:
        if self._publisher is not None:
            twist = msg.Twist(linear=msg.Vector3(x=forward, y=left), angular=msg.Vector3(z=angular_velocity))
            self._publisher.publish(twist)

    def _subscribe(self) -> None:
        self._subscription = self.require_host().node.subscribe(
            self.get_input("odometry"), msg.Odometry, self._on_odometry
        )

    def _on_odometry(self, message: Any) -> None:
        pose = pose_to_se2(message.pose.pose)
        self._odometry_pose = (pose.x, pose.y, pose.theta)

    def load_state(self, saved: dict[str, Any]) -> None:
        """See `TreeNode.load_state`."""
        super().load_state(saved)
        if self.status is RUNNING:
            self._subscribe()
