"""Leaves for getting about beyond the navigator: into docks, through the unknown, and on legs."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from roboyard.behavior.kinds import StatefulAction
from roboyard.behavior.nodes.sending import COMMON, ERRORS, OnBus, SendGoal
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_se2

_GAIN = 1.0
"""Speed for what is still to go [1/s]."""


class DockRobot(SendGoal):
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
        **COMMON,
    }
    server = "dock_robot"
    type = property(lambda _: action.DockRobot)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        goal = action.DockRobot.Goal(
            use_dock_id=self.input("use_dock_id"), dock_id=self.input("dock_id"), dock_type=self.input("dock_type"),
            max_staging_time=self.input("max_staging_time"),
            navigate_to_staging_pose=self.input("navigate_to_staging_pose"),
        )  # fmt: skip
        if not goal.use_dock_id:
            node = self.on_desk().node
            goal.dock_pose = pose_stamped_to_msg(self.input("dock_pose"), node.frame("map"), node.now_ns)
        return goal

    def take(self, result: Any) -> None:
        """See `SendGoal.take`."""
        for port, value in (("success", bool(result.success)), ("num_retries", int(result.num_retries))):
            if port in self.outputs:
                self.output(port, value)


class UndockRobot(SendGoal):
    """Leaves the dock."""

    ports: ClassVar = {
        "dock_type": input_port(str, "", "Not used: there is one type"),
        "max_undocking_time": input_port(float, 30.0, "After which it has failed [s]"),
        "success": output_port(bool),
        **COMMON,
    }
    server = "undock_robot"
    type = property(lambda _: action.UndockRobot)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return action.UndockRobot.Goal(max_undocking_time=self.input("max_undocking_time"))

    def take(self, result: Any) -> None:
        """See `SendGoal.take`."""
        if "success" in self.outputs:
            self.output("success", bool(result.success))


class Explore(SendGoal):
    """Explores the unknown place that the robot stands in, and returns."""

    ports: ClassVar = {
        "stay_at_end": input_port(bool, False, "Does not return to the start"),
        "known_area": output_port(float, doc="Known free ground at the end [m²]"),
        **COMMON,
    }
    server = "explore"
    type = property(lambda _: action.Explore)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return action.Explore.Goal(stay_at_end=self.input("stay_at_end"))

    def take(self, result: Any) -> None:
        """See `SendGoal.take`."""
        if "known_area" in self.outputs:
            self.output("known_area", float(result.status.known_area))


def command_towards(target: SE2, speed: float, turn_speed: float) -> tuple[float, float, float]:
    """The velocity with which a body that goes in all directions gets to a pose, slower as it comes near.

    Args:
        target: The pose in the body's frame.
        speed, turn_speed: At most [m/s, rad/s].

    Returns:
        Velocity forward and to the left [m/s], and of turning [rad/s].
    """
    way = math.hypot(target.x, target.y)
    share = min(_GAIN, speed / way) if way > 0.0 else 0.0
    turn = math.copysign(min(_GAIN * abs(target.theta), turn_speed), target.theta)
    return share * target.x, share * target.y, turn


class Walk(OnBus, StatefulAction):
    """Has something that goes in all directions, as legs do, walk to a pose that is seen from where it stands.

    It is led by its odometry, and needs no map.
    """

    ports: ClassVar = {
        "goal": input_port(SE2, doc="x;y;yaw [m, rad], seen from where it stands when it begins"),
        "speed": input_port(float, 0.05, "At most [m/s]"),
        "turn_speed": input_port(float, 0.2, "At most [rad/s]"),
        "tolerance": input_port(float, 0.01, "How near is near enough [m]"),
        "yaw_tolerance": input_port(float, 0.02, "How near is near enough [rad]"),
        "time_allowance": input_port(float, 120.0, "After which it has failed [s]"),
        "topic": input_port(str, "cmd_vel", "Of velocities (geometry_msgs/Twist)"),
        "odometry": input_port(str, "odom", "Of its odometry (nav_msgs/Odometry)"),
        **ERRORS,
    }
    state_fields = ("_target", "_here", "_until_ns")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._target: tuple[float, float, float] | None = None
        self._here: tuple[float, float, float] | None = None
        self._until_ns = 0
        self.why = ""
        self._subscription: Any = None
        self._out = None
        if self.desk is not None:
            self._out = self.keep(self.desk.node.publisher(self.inputs.get("topic", "cmd_vel"), msg.Twist))

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        self.on_desk()
        self._target = self._here = None
        self._until_ns = self.now_ns + round(self.input("time_allowance") * 1e9)
        self._listen()
        return RUNNING

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`."""
        if self.now_ns >= self._until_ns:
            return self._failed("it did not get there in time" if self._here else "there is no odometry")
        if self._here is None:
            return RUNNING
        here = SE2(*self._here)
        if self._target is None:
            goal = here @ self.input("goal")
            self._target = (goal.x, goal.y, goal.theta)
        left = here.inverse() @ SE2(*self._target)
        near = math.hypot(left.x, left.y) <= self.input("tolerance")
        if near and abs(left.theta) <= self.input("yaw_tolerance"):
            self.on_halted()
            return SUCCESS
        self._command(*command_towards(left, self.input("speed"), self.input("turn_speed")))
        return RUNNING

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        self._command(0.0, 0.0, 0.0)
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            self.on_desk().node.release_endpoint(subscription)

    def _failed(self, why: str) -> Status:
        self.on_halted()
        self.why = why
        if "error_msg" in self.outputs:
            self.output("error_msg", why)
        return FAILURE

    def _command(self, forward: float, left: float, turn: float) -> None:
        if self._out is not None:
            twist = msg.Twist(linear=msg.Vector3(x=forward, y=left), angular=msg.Vector3(z=turn))
            self._out.publish(twist)

    def _listen(self) -> None:
        self._subscription = self.on_desk().node.subscribe(self.input("odometry"), msg.Odometry, self._take)

    def _take(self, message: Any) -> None:
        here = pose_to_se2(message.pose.pose)
        self._here = (here.x, here.y, here.theta)

    def load_state(self, saved: dict[str, Any]) -> None:
        """See `TreeNode.load`."""
        super().load_state(saved)
        if self.status is RUNNING:
            self._listen()
