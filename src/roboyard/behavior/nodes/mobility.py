"""Leaves for docking, exploration, and walking to a pose."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from roboyard.behavior.basic_types import FAILURE, RUNNING, SUCCESS, NodeStatus
from roboyard.behavior.nodes.leaf_host import ACTION_PORTS, ERROR_PORTS, ActionLeaf, BusLeaf
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.tree_node import StatefulActionNode
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_se2

_POSITION_GAIN = 1.0
"""Speed for what is still to go [1/s]."""


class DockRobot(ActionLeaf):
    """Drives into a dock: one that the docking node knows, or at a pose."""

    ports: ClassVar = {
        "use_dock_id": input_port(bool, True, "Whether dock_id says which, not dock_pose"),
        "dock_id": input_port(str, "", "Name of the dock"),
        "dock_pose": input_port(SE2, doc="x;y;yaw [m, rad] of the docked robot in the map", optional=True),
        "dock_type": input_port(str, "", "Not used: there is one type"),
        "max_staging_time": input_port(float, 1000.0, "For the way to the pose before the dock [s]"),
        "navigate_to_staging_pose": input_port(bool, True, "Whether it drives there first"),
        "success": output_port(bool),
        "num_retries": output_port(int),
        **ACTION_PORTS,
    }
    action_name = "dock_robot"
    action_type = property(lambda _: action.DockRobot)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        goal = action.DockRobot.Goal(
            use_dock_id=self.get_input("use_dock_id"),
            dock_id=self.get_input("dock_id"),
            dock_type=self.get_input("dock_type"),
            max_staging_time=self.get_input("max_staging_time"),
            navigate_to_staging_pose=self.get_input("navigate_to_staging_pose"),
        )
        if not goal.use_dock_id:
            node = self.require_host().node
            goal.dock_pose = pose_stamped_to_msg(self.get_input("dock_pose"), node.frame("map"), node.now_ns)
        return goal

    def on_result(self, result: Any) -> None:
        """See `ActionLeaf.on_result`."""
        for port, value in (("success", bool(result.success)), ("num_retries", int(result.num_retries))):
            if port in self.outputs:
                self.set_output(port, value)


class UndockRobot(ActionLeaf):
    """Leaves the dock."""

    ports: ClassVar = {
        "dock_type": input_port(str, "", "Not used: there is one type"),
        "max_undocking_time": input_port(float, 30.0, "After which it has failed [s]"),
        "success": output_port(bool),
        **ACTION_PORTS,
    }
    action_name = "undock_robot"
    action_type = property(lambda _: action.UndockRobot)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        return action.UndockRobot.Goal(max_undocking_time=self.get_input("max_undocking_time"))

    def on_result(self, result: Any) -> None:
        """See `ActionLeaf.on_result`."""
        if "success" in self.outputs:
            self.set_output("success", bool(result.success))


class Explore(ActionLeaf):
    """Explores the unknown place that the robot stands in, and returns."""

    ports: ClassVar = {
        "stay_at_end": input_port(bool, False, "Does not return to the start"),
        "known_area": output_port(float, doc="Known free ground at the end [m²]"),
        **ACTION_PORTS,
    }
    action_name = "explore"
    action_type = property(lambda _: action.Explore)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        return action.Explore.Goal(stay_at_end=self.get_input("stay_at_end"))

    def on_result(self, result: Any) -> None:
        """See `ActionLeaf.on_result`."""
        if "known_area" in self.outputs:
            self.set_output("known_area", float(result.status.known_area))


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
        "goal": input_port(SE2, doc="x;y;yaw [m, rad], seen from where it stands when it begins"),
        "speed": input_port(float, 0.05, "At most [m/s]"),
        "angular_speed": input_port(float, 0.2, "At most [rad/s]"),
        "tolerance": input_port(float, 0.01, "How near is near enough [m]"),
        "yaw_tolerance": input_port(float, 0.02, "How near is near enough [rad]"),
        "time_allowance": input_port(float, 120.0, "After which it has failed [s]"),
        "topic": input_port(str, "cmd_vel", "Of velocities (geometry_msgs/Twist)"),
        "odometry": input_port(str, "odom", "Of its odometry (nav_msgs/Odometry)"),
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
            return self._fail("it did not get there in time" if self._odometry_pose else "there is no odometry")
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
