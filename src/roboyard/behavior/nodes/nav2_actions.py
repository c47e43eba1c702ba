"""Leaves of Nav2's actions, with Nav2's names and ports."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from roboyard.behavior.basic_types import FAILURE, SUCCESS, NodeStatus
from roboyard.behavior.nodes.leaf_host import (
    ACTION_PORTS,
    POSE_LIST,
    UNUSED_PORT,
    ActionLeaf,
    BusLeaf,
)
from roboyard.behavior.ports import input_port, output_port, remapped_key
from roboyard.behavior.tree_node import DecoratorNode, SyncActionNode, TreeNode
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_se2
from roboyard.messages.time import duration_to_msg

if TYPE_CHECKING:
    pass


_TIME_ALLOWANCE = input_port(float, 10.0, "After which it has failed [s]")


def _time_allowance(leaf: ActionLeaf) -> Any:
    return duration_to_msg(round(leaf.get_input("time_allowance") * 1e9))


class NavigateToPose(ActionLeaf):
    """Drives to a pose in the map, ``x;y;yaw``."""

    ports: ClassVar = {
        "goal": input_port(SE2, doc="x;y;yaw [m, rad] in the map"),
        "behavior_tree": input_port(str, doc="Not used: how it drives is the navigator's choice", optional=True),
        **ACTION_PORTS,
    }
    action_name = "navigate_to_pose"
    action_type = property(lambda _: action.NavigateToPose)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        node = self.require_host().node
        return action.NavigateToPose.Goal(
            pose=pose_stamped_to_msg(self.get_input("goal"), node.frame("map"), node.now_ns)
        )


class ComputePathToPose(ActionLeaf):
    """Plans a path to a pose in the map."""

    ports: ClassVar = {
        "goal": input_port(SE2, doc="x;y;yaw [m, rad] in the map"),
        "start": input_port(SE2, doc="From where, if use_start; else from where the robot is", optional=True),
        "use_start": input_port(bool, False),
        "planner_id": input_port(str, doc="Which planner", optional=True),
        "viapoints": input_port(object, doc="Not used", optional=True),
        "path": output_port(object, doc="nav_msgs/Path"),
        **ACTION_PORTS,
    }
    action_name = "compute_path_to_pose"
    action_type = property(lambda _: action.ComputePathToPose)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        node = self.require_host().node
        goal = action.ComputePathToPose.Goal(
            goal=pose_stamped_to_msg(self.get_input("goal"), node.frame("map"), node.now_ns)
        )
        if self.get_input("use_start"):
            goal.start, goal.use_start = (
                pose_stamped_to_msg(self.get_input("start"), node.frame("map"), node.now_ns),
                True,
            )
        return goal

    def on_result(self, result: Any) -> None:
        """See `ActionLeaf.on_result`."""
        if "path" in self.outputs:
            self.set_output("path", result.path)


class FollowPath(ActionLeaf):
    """Follows a path, and a new one as soon as there is one."""

    ports: ClassVar = {
        "path": input_port(object, doc="nav_msgs/Path"),
        "controller_id": input_port(str, doc="Which controller", optional=True),
        "goal_checker_id": input_port(str, optional=True),
        "progress_checker_id": input_port(str, optional=True),
        "path_handler_id": input_port(str, optional=True),
        "tracking_feedback": output_port(object),
        **ACTION_PORTS,
    }
    state_fields = ("_goal_id", "_sent_sequence")
    action_name = "follow_path"
    action_type = property(lambda _: action.FollowPath)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        self._sent_sequence = self._path_sequence()
        return action.FollowPath.Goal(path=self.get_input("path"))

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._sent_sequence = -1

    def on_running(self) -> NodeStatus:
        """See `StatefulActionNode.on_running`; a path that was planned meanwhile takes the older one's place."""
        return super().on_running() if self._sent_sequence == self._path_sequence() else self.on_start()

    def _path_sequence(self) -> int:
        """How often the path was set."""
        key = remapped_key("path", self.inputs["path"])
        entry = None if key is None else self.blackboard.entry(key)
        return 0 if entry is None else entry.sequence


class Spin(ActionLeaf):
    """Rotates in place."""

    ports: ClassVar = {
        "spin_dist": input_port(float, 1.57, "Angle [rad]"),
        "time_allowance": _TIME_ALLOWANCE,
        "is_recovery": input_port(bool, True),
        "disable_collision_checks": input_port(bool, False),
        **ACTION_PORTS,
    }
    action_name = "spin"
    action_type = property(lambda _: action.Spin)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        return action.Spin.Goal(target_yaw=self.get_input("spin_dist"), time_allowance=_time_allowance(self))


class _StraightMotion(ActionLeaf):
    _distance_port, _speed_port = "", ""

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        target = msg.Point(x=self.get_input(self._distance_port))
        return self.action_type.Goal(
            target=target, speed=self.get_input(self._speed_port), time_allowance=_time_allowance(self)
        )


class BackUp(_StraightMotion):
    """Backs up in a straight line."""

    ports: ClassVar = {
        "backup_dist": input_port(float, 0.15, "Distance [m]"),
        "backup_speed": input_port(float, 0.025, "Speed [m/s]"),
        "time_allowance": _TIME_ALLOWANCE,
        "disable_collision_checks": input_port(bool, False),
        **ACTION_PORTS,
    }
    action_name = "backup"
    action_type = property(lambda _: action.BackUp)
    _distance_port, _speed_port = "backup_dist", "backup_speed"


class DriveOnHeading(_StraightMotion):
    """Drives straight on."""

    ports: ClassVar = {
        "dist_to_travel": input_port(float, 0.15, "Distance [m]"),
        "speed": input_port(float, 0.025, "Speed [m/s]"),
        "time_allowance": _TIME_ALLOWANCE,
        "disable_collision_checks": input_port(bool, False),
        **ACTION_PORTS,
    }
    action_name = "drive_on_heading"
    action_type = property(lambda _: action.DriveOnHeading)
    _distance_port, _speed_port = "dist_to_travel", "speed"


class Wait(ActionLeaf):
    """Has the robot wait."""

    ports: ClassVar = {"wait_duration": input_port(float, 1.0, "Time [s]"), **ACTION_PORTS}
    action_name = "wait"
    action_type = property(lambda _: action.Wait)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        return action.Wait.Goal(time=duration_to_msg(round(self.get_input("wait_duration") * 1e9)))


_POSE_LIST_DOC = "x;y;yaw|x;y;yaw [m, rad] in the map"


class ComputePathThroughPoses(ActionLeaf):
    """Plans a path through poses in the map, in order."""

    ports: ClassVar = {
        "goals": input_port(POSE_LIST, doc=_POSE_LIST_DOC),
        "start": input_port(SE2, doc="From where; else from where the robot is", optional=True),
        "planner_id": input_port(str, doc="Which planner", optional=True),
        "path": output_port(object, doc="nav_msgs/Path"),
        "last_reached_index": output_port(int, doc="-1: all of them are reached"),
        **ACTION_PORTS,
    }
    action_name = "compute_path_through_poses"
    action_type = property(lambda _: action.ComputePathThroughPoses)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        node = self.require_host().node
        frame, now = node.frame("map"), node.now_ns
        goal = self.action_type.Goal(goals=[pose_stamped_to_msg(one, frame, now) for one in self.get_input("goals")])
        if "start" in self.inputs:
            goal.start, goal.use_start = pose_stamped_to_msg(self.get_input("start"), frame, now), True
        return goal

    def on_result(self, result: Any) -> None:
        """See `ActionLeaf.on_result`."""
        for port, value in (("path", result.path), ("last_reached_index", -1)):
            if port in self.outputs:
                self.set_output(port, value)


class RemovePassedGoals(BusLeaf, SyncActionNode):
    """Leaves out the first of several poses as long as the robot is near to it; the last one stays."""

    ports: ClassVar = {
        "input_goals": input_port(POSE_LIST, doc=_POSE_LIST_DOC),
        "output_goals": output_port(POSE_LIST, doc="Those that are left"),
        "radius": input_port(float, 0.5, "How near [m]"),
        "robot_base_frame": UNUSED_PORT,
        "input_waypoint_statuses": UNUSED_PORT,
        "output_waypoint_statuses": output_port(object, doc="Not used"),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        robot_pose, goals, radius = self.robot_pose(), list(self.get_input("input_goals")), self.get_input("radius")
        if robot_pose is None:
            return FAILURE
        while len(goals) > 1 and math.hypot(goals[0].x - robot_pose.x, goals[0].y - robot_pose.y) <= radius:
            del goals[0]
        self.set_output("output_goals", goals)
        return SUCCESS


class GetNextFewGoals(SyncActionNode):
    """The first few of several poses."""

    ports: ClassVar = {
        "num_goals": input_port(int, doc="How many"),
        "input_goals": input_port(POSE_LIST, doc=_POSE_LIST_DOC),
        "output_goals": output_port(POSE_LIST, doc="Those"),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        self.set_output("output_goals", list(self.get_input("input_goals"))[: max(self.get_input("num_goals"), 0)])
        return SUCCESS


class GoalUpdater(BusLeaf, DecoratorNode):
    """Ticks its child with the last goal on the topic ``goal_update``, or else with its own."""

    ports: ClassVar = {
        "input_goal": input_port(SE2, doc="x;y;yaw [m, rad] in the map", optional=True),
        "input_goals": input_port(POSE_LIST, doc=_POSE_LIST_DOC, optional=True),
        "output_goal": output_port(SE2, doc="The goal"),
        "output_goals": output_port(POSE_LIST, doc="The goals; nobody tells others"),
    }
    state_fields = ("_updated_goal", "_update_time_ns")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._updated_goal: tuple[float, float, float] | None = None
        self._update_time_ns = 0
        if self.host is not None:
            self.release_with_tree(self.host.node.subscribe("goal_update", msg.PoseStamped, self._on_goal_update))

    def _on_goal_update(self, message: Any) -> None:
        pose = pose_to_se2(message.pose)
        self._updated_goal, self._update_time_ns = (pose.x, pose.y, pose.theta), self.require_host().node.now_ns

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if "input_goal" in self.inputs and "output_goal" in self.outputs:
            is_newer = self._updated_goal is not None and self._update_time_ns >= self._input_goal_time_ns()
            self.set_output(
                "output_goal",
                SE2(*self._updated_goal) if is_newer and self._updated_goal else self.get_input("input_goal"),
            )
        if "input_goals" in self.inputs and "output_goals" in self.outputs:
            self.set_output("output_goals", self.get_input("input_goals"))
        return self.children[0].execute_tick()

    def _input_goal_time_ns(self) -> int:
        """When the goal of its own was set [ns]."""
        key = remapped_key("input_goal", self.inputs["input_goal"])
        entry = None if key is None else self.blackboard.entry(key)
        return 0 if entry is None else entry.stamp_ns


NAV2_POSE_LEAVES: tuple[type[TreeNode], ...] = (
    ComputePathThroughPoses,
    RemovePassedGoals,
    GetNextFewGoals,
    GoalUpdater,
)
