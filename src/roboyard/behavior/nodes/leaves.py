"""Leaves for what Roboyard's robots do, under the names and with the ports that Nav2 has where it has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from roboyard.behavior.nodes.asking import CallService, ClearEntireCostmap, WaitForMessage
from roboyard.behavior.nodes.sending import ERRORS, SERVER, TIMEOUT, Desk, OnBus, SendGoal, plain
from roboyard.behavior.ports import Port, input_port, output_port
from roboyard.behavior.types import converter
from roboyard.geometry import SE2
from roboyard.messages import action, action_type, msg
from roboyard.messages.convert import pose_stamped
from roboyard.messages.filling import fill
from roboyard.messages.time import duration

if TYPE_CHECKING:
    from roboyard.behavior.factory import Factory


def _pose(text: str) -> SE2:
    """A pose from ``x;y;yaw``."""
    numbers = [float(part) for part in text.split(";")]
    if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
        raise ValueError("x;y;yaw in m and rad")
    x, y, yaw = (*numbers, 0.0)[:3]
    return SE2(x, y, yaw)


converter(SE2, _pose)
_COMMON: dict[str, Port] = {"server_name": SERVER, "server_timeout": TIMEOUT, **ERRORS}
_ALLOWANCE = input_port(float, 10.0, "After which it has failed [s]")


def _seconds(leaf: SendGoal) -> Any:
    return duration(round(leaf.input("time_allowance") * 1e9))


class NavigateToPose(SendGoal):
    """Drives to a pose in the map, ``x;y;yaw``."""

    ports: ClassVar = {
        "goal": input_port(SE2, doc="x;y;yaw [m, rad] in the map"),
        "behavior_tree": input_port(str, doc="Not used: how it drives is the navigator's choice"),
        **_COMMON,
    }
    server = "navigate_to_pose"
    type = property(lambda _: action.NavigateToPose)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        node = self.on_desk().node
        return action.NavigateToPose.Goal(pose=pose_stamped(self.input("goal"), node.frame("map"), node.now_ns))


class ComputePathToPose(SendGoal):
    """Plans a way to a pose in the map."""

    ports: ClassVar = {
        "goal": input_port(SE2, doc="x;y;yaw [m, rad] in the map"),
        "start": input_port(SE2, doc="From where, if use_start; else from where the robot is"),
        "use_start": input_port(bool, False),
        "planner_id": input_port(str, doc="Which planner"),
        "viapoints": input_port(object, doc="Not used"),
        "path": output_port(object, doc="nav_msgs/Path"),
        **_COMMON,
    }
    server = "compute_path_to_pose"
    type = property(lambda _: action.ComputePathToPose)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        node = self.on_desk().node
        goal = action.ComputePathToPose.Goal(goal=pose_stamped(self.input("goal"), node.frame("map"), node.now_ns))
        if self.input("use_start"):
            goal.start, goal.use_start = pose_stamped(self.input("start"), node.frame("map"), node.now_ns), True
        return goal

    def take(self, result: Any) -> None:
        """See `SendGoal.take`."""
        if "path" in self.outputs:
            self.output("path", result.path)


class FollowPath(SendGoal):
    """Drives along a path."""

    ports: ClassVar = {
        "path": input_port(object, doc="nav_msgs/Path"),
        "controller_id": input_port(str, doc="Which controller"),
        "goal_checker_id": input_port(str),
        "progress_checker_id": input_port(str),
        "path_handler_id": input_port(str),
        "tracking_feedback": output_port(object),
        **_COMMON,
    }
    server = "follow_path"
    type = property(lambda _: action.FollowPath)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return action.FollowPath.Goal(path=self.input("path"))


class Spin(SendGoal):
    """Turns on the spot."""

    ports: ClassVar = {
        "spin_dist": input_port(float, 1.57, "Angle [rad]"),
        "time_allowance": _ALLOWANCE,
        "is_recovery": input_port(bool, True),
        "disable_collision_checks": input_port(bool, False),
        **_COMMON,
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
        **_COMMON,
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
        **_COMMON,
    }
    server = "drive_on_heading"
    type = property(lambda _: action.DriveOnHeading)
    _distance, _speed = "dist_to_travel", "speed"


class Wait(SendGoal):
    """Has the robot wait."""

    ports: ClassVar = {"wait_duration": input_port(float, 1.0, "Time [s]"), **_COMMON}
    server = "wait"
    type = property(lambda _: action.Wait)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return action.Wait.Goal(time=duration(round(self.input("wait_duration") * 1e9)))


class MoveArm(SendGoal):
    """Moves an arm to a pose that its groups name."""

    ports: ClassVar = {
        "pose": input_port(str, doc="A named pose of the group"),
        "speed": input_port(float, 1.0, "Share of the joints' speeds"),
        **_COMMON,
    }
    server = "move_action"
    type = property(lambda _: action.MoveGroup)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        goal = action.MoveGroup.Goal()
        goal.request.goal_constraints = [msg.moveit_msgs.Constraints(name=self.input("pose"))]
        goal.request.max_velocity_scaling_factor = self.input("speed")
        return goal


class Grip(SendGoal):
    """Opens or closes a gripper."""

    ports: ClassVar = {
        "position": input_port(float, doc="Of the fingers [m]"),
        "effort": input_port(float, 0.0, "At most [N]; 0: the gripper's own"),
        **_COMMON,
    }
    server = "gripper/gripper_cmd"
    type = property(lambda _: action.GripperCommand)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        goal = action.GripperCommand.Goal()
        goal.command.position = self.input("position")
        goal.command.max_effort = self.input("effort")
        return goal


class RunSkill(SendGoal):
    """Has an arm do something that it knows how to do: look, pick, place, stow …"""

    ports: ClassVar = {
        "skill": input_port(str, doc="Which one"),
        "wish": input_port(str, "", "Further fields of roboyard_msgs/RunSkill, as polarity: white"),
        "cause": output_port(str, doc="Why it was not done, in one word"),
        **_COMMON,
    }
    type = property(lambda _: action.RunSkill)

    def _server(self) -> str:
        return super()._server() or f"skills/{self.inputs.get('skill', '')}"

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return fill(action.RunSkill.Goal, plain(self.input("wish")))

    def take(self, result: Any) -> None:
        """See `SendGoal.take`."""
        if "cause" in self.outputs:
            self.output("cause", result.cause)


class CallAction(SendGoal):
    """Sends a goal to any action."""

    ports: ClassVar = {
        "action_type": input_port(str, doc="As nav2_msgs/action/Spin"),
        "goal": input_port(str, "", "The goal's fields, as target_yaw: 1.57"),
        **_COMMON,
    }

    @property
    def type(self) -> Any:
        """The action's type."""
        return action_type(self.inputs.get("action_type", ""))

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return fill(self.type.Goal, plain(self.input("goal")))


READY = (
    NavigateToPose, ComputePathToPose, FollowPath, Spin, BackUp, DriveOnHeading, Wait, MoveArm, Grip, RunSkill,
    CallAction, CallService, ClearEntireCostmap, WaitForMessage,
)  # fmt: skip


def register(factory: Factory) -> None:
    """Add the leaves to a factory, without a desk: their trees can be looked at and not be run."""
    for leaf in READY:
        factory.register(leaf)


def bind(factory: Factory, desk: Desk) -> None:
    """Give all leaves on the bus that a factory has the desk of the node that runs their tree."""
    for name in factory.names:
        leaf = factory.find(name)
        if leaf is not None and issubclass(leaf, OnBus):
            factory.replace(type(leaf.__name__, (leaf,), {"desk": desk, "__module__": leaf.__module__}), name)
