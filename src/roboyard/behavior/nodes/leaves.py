"""Leaves for what the navigator does, with Nav2's names and ports, and all that come ready for trees on the bus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from roboyard.behavior.node import TreeNode
from roboyard.behavior.nodes import nav2_goals, nav2_paths, nav2_poses
from roboyard.behavior.nodes.asking import CallService, ClearEntireCostmap, FeelPull, WaitForMessage
from roboyard.behavior.nodes.handling import Grip, Look, MoveArm, Pick, Place, RunSkill
from roboyard.behavior.nodes.people import ActorAnimation, ActorMovement, RandomSleep, TellWork, WeightedRandom
from roboyard.behavior.nodes.reaching import FindThing, PointAhead, Reach
from roboyard.behavior.nodes.roaming import DockRobot, Explore, UndockRobot, Walk
from roboyard.behavior.nodes.sending import COMMON, Desk, OnBus, SendGoal, check_fields, filled
from roboyard.behavior.nodes.tool_poses import MoveTool
from roboyard.behavior.nodes.topics import LastMessage, PublishMessage
from roboyard.behavior.ports import input_port, output_port, remapped
from roboyard.behavior.status import Status
from roboyard.geometry import SE2
from roboyard.messages import action, action_type, msg
from roboyard.messages.convert import pose_stamped_to_msg
from roboyard.messages.time import duration_to_msg

if TYPE_CHECKING:
    from roboyard.behavior.factory import Factory


_ALLOWANCE = input_port(float, 10.0, "After which it has failed [s]")


def _seconds(leaf: SendGoal) -> Any:
    return duration_to_msg(round(leaf.input("time_allowance") * 1e9))


class NavigateToPose(SendGoal):
    """Drives to a pose in the map, ``x;y;yaw``."""

    ports: ClassVar = {
        "goal": input_port(SE2, doc="x;y;yaw [m, rad] in the map"),
        "behavior_tree": input_port(str, doc="Not used: how it drives is the navigator's choice", optional=True),
        **COMMON,
    }
    server = "navigate_to_pose"
    type = property(lambda _: action.NavigateToPose)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        node = self.on_desk().node
        return action.NavigateToPose.Goal(pose=pose_stamped_to_msg(self.input("goal"), node.frame("map"), node.now_ns))


class ComputePathToPose(SendGoal):
    """Plans a way to a pose in the map."""

    ports: ClassVar = {
        "goal": input_port(SE2, doc="x;y;yaw [m, rad] in the map"),
        "start": input_port(SE2, doc="From where, if use_start; else from where the robot is", optional=True),
        "use_start": input_port(bool, False),
        "planner_id": input_port(str, doc="Which planner", optional=True),
        "viapoints": input_port(object, doc="Not used", optional=True),
        "path": output_port(object, doc="nav_msgs/Path"),
        **COMMON,
    }
    server = "compute_path_to_pose"
    type = property(lambda _: action.ComputePathToPose)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        node = self.on_desk().node
        goal = action.ComputePathToPose.Goal(
            goal=pose_stamped_to_msg(self.input("goal"), node.frame("map"), node.now_ns)
        )
        if self.input("use_start"):
            goal.start, goal.use_start = pose_stamped_to_msg(self.input("start"), node.frame("map"), node.now_ns), True
        return goal

    def take(self, result: Any) -> None:
        """See `SendGoal.take`."""
        if "path" in self.outputs:
            self.output("path", result.path)


class FollowPath(SendGoal):
    """Drives along a path, and along a new one as soon as there is one."""

    ports: ClassVar = {
        "path": input_port(object, doc="nav_msgs/Path"),
        "controller_id": input_port(str, doc="Which controller", optional=True),
        "goal_checker_id": input_port(str, optional=True),
        "progress_checker_id": input_port(str, optional=True),
        "path_handler_id": input_port(str, optional=True),
        "tracking_feedback": output_port(object),
        **COMMON,
    }
    state_fields = ("_key", "_sent")
    server = "follow_path"
    type = property(lambda _: action.FollowPath)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        self._sent = self._sequence()
        return action.FollowPath.Goal(path=self.input("path"))

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._sent = -1

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`; a path that was planned meanwhile takes the older one's place."""
        return super().on_running() if self._sent == self._sequence() else self.on_start()

    def _sequence(self) -> int:
        """How often the path was set."""
        key = remapped("path", self.inputs["path"])
        entry = None if key is None else self.blackboard.entry(key)
        return 0 if entry is None else entry.sequence


class Spin(SendGoal):
    """Turns on the spot."""

    ports: ClassVar = {
        "spin_dist": input_port(float, 1.57, "Angle [rad]"),
        "time_allowance": _ALLOWANCE,
        "is_recovery": input_port(bool, True),
        "disable_collision_checks": input_port(bool, False),
        **COMMON,
    }
    server = "spin"
    type = property(lambda _: action.Spin)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return action.Spin.Goal(target_yaw=self.input("spin_dist"), time_allowance=_seconds(self))


class _Straight(SendGoal):
    _distance, _speed = "", ""

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        target = msg.Point(x=self.input(self._distance))
        return self.type.Goal(target=target, speed=self.input(self._speed), time_allowance=_seconds(self))


class BackUp(_Straight):
    """Backs up in a straight line."""

    ports: ClassVar = {
        "backup_dist": input_port(float, 0.15, "Distance [m]"),
        "backup_speed": input_port(float, 0.025, "Speed [m/s]"),
        "time_allowance": _ALLOWANCE,
        "disable_collision_checks": input_port(bool, False),
        **COMMON,
    }
    server = "backup"
    type = property(lambda _: action.BackUp)
    _distance, _speed = "backup_dist", "backup_speed"


class DriveOnHeading(_Straight):
    """Drives straight on."""

    ports: ClassVar = {
        "dist_to_travel": input_port(float, 0.15, "Distance [m]"),
        "speed": input_port(float, 0.025, "Speed [m/s]"),
        "time_allowance": _ALLOWANCE,
        "disable_collision_checks": input_port(bool, False),
        **COMMON,
    }
    server = "drive_on_heading"
    type = property(lambda _: action.DriveOnHeading)
    _distance, _speed = "dist_to_travel", "speed"


class Wait(SendGoal):
    """Has the robot wait."""

    ports: ClassVar = {"wait_duration": input_port(float, 1.0, "Time [s]"), **COMMON}
    server = "wait"
    type = property(lambda _: action.Wait)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return action.Wait.Goal(time=duration_to_msg(round(self.input("wait_duration") * 1e9)))


class CallAction(SendGoal):
    """Sends a goal to any action."""

    ports: ClassVar = {
        "action_type": input_port(str, doc="As nav2_msgs/action/Spin"),
        "goal": input_port(str, "", "The goal's fields, as target_yaw: 1.57"),
        **COMMON,
        "server_name": input_port(str, doc="The action's name"),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        if "action_type" in self.inputs:
            check_fields(self, self.type.Goal, "goal")

    @property
    def type(self) -> Any:
        """The action's type."""
        return action_type(self.inputs.get("action_type", ""))

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return filled(self, self.type.Goal, "goal")


READY: tuple[type[TreeNode], ...] = (
    NavigateToPose, ComputePathToPose, FollowPath, Spin, BackUp, DriveOnHeading, Wait, DockRobot, UndockRobot, Explore,
    Walk, MoveArm, Grip, Look, RunSkill, Pick, Place, CallAction, CallService, ClearEntireCostmap, WaitForMessage,
    LastMessage, PublishMessage, FindThing, PointAhead, Reach, MoveTool, ActorMovement, ActorAnimation, WeightedRandom,
    RandomSleep, TellWork, FeelPull,
)  # fmt: skip


def register(factory: Factory) -> None:
    """Add the leaves to a factory, without a desk: their trees can be looked at and not be run."""
    for leaf in (*READY, *nav2_goals.READY, *nav2_paths.READY, *nav2_poses.READY):
        factory.register(leaf)


def bind(factory: Factory, desk: Desk) -> None:
    """Give all leaves on the bus that a factory has the desk of the node that runs their tree."""
    for name in factory.names:
        leaf = factory.find(name)
        if leaf is not None and issubclass(leaf, OnBus):
            factory.replace(type(leaf.__name__, (leaf,), {"desk": desk, "__module__": leaf.__module__}), name)
