"""Nav2's leaves for ways through several poses, and for a goal that somebody moves."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from roboyard.behavior.kinds import Action, Decorator
from roboyard.behavior.node import TreeNode
from roboyard.behavior.nodes.sending import COMMON, POSES, UNUSED, OnBus, SendGoal
from roboyard.behavior.ports import input_port, output_port, remapped
from roboyard.behavior.status import FAILURE, SUCCESS, Status
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_se2

_MANY = "x;y;yaw|x;y;yaw [m, rad] in the map"


class ComputePathThroughPoses(SendGoal):
    """Plans a way through poses in the map, one after the other."""

    ports: ClassVar = {
        "goals": input_port(POSES, doc=_MANY),
        "start": input_port(SE2, doc="From where; else from where the robot is", optional=True),
        "planner_id": input_port(str, doc="Which planner", optional=True),
        "path": output_port(object, doc="nav_msgs/Path"),
        "last_reached_index": output_port(int, doc="-1: all of them are reached"),
        **COMMON,
    }
    server = "compute_path_through_poses"
    type = property(lambda _: action.ComputePathThroughPoses)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        node = self.on_desk().node
        frame, now = node.frame("map"), node.now_ns
        goal = self.type.Goal(goals=[pose_stamped_to_msg(one, frame, now) for one in self.input("goals")])
        if "start" in self.inputs:
            goal.start, goal.use_start = pose_stamped_to_msg(self.input("start"), frame, now), True
        return goal

    def take(self, result: Any) -> None:
        """See `SendGoal.take`."""
        for port, value in (("path", result.path), ("last_reached_index", -1)):
            if port in self.outputs:
                self.output(port, value)


class RemovePassedGoals(OnBus, Action):
    """Leaves out the first of several poses as long as the robot is near to it; the last one stays."""

    ports: ClassVar = {
        "input_goals": input_port(POSES, doc=_MANY),
        "output_goals": output_port(POSES, doc="Those that are left"),
        "radius": input_port(float, 0.5, "How near [m]"),
        "robot_base_frame": UNUSED,
        "input_waypoint_statuses": UNUSED,
        "output_waypoint_statuses": output_port(object, doc="Not used"),
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        here, goals, radius = self.here(), list(self.input("input_goals")), self.input("radius")
        if here is None:
            return FAILURE
        while len(goals) > 1 and math.hypot(goals[0].x - here.x, goals[0].y - here.y) <= radius:
            del goals[0]
        self.output("output_goals", goals)
        return SUCCESS


class GetNextFewGoals(Action):
    """The first few of several poses."""

    ports: ClassVar = {
        "num_goals": input_port(int, doc="How many"),
        "input_goals": input_port(POSES, doc=_MANY),
        "output_goals": output_port(POSES, doc="Those"),
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        self.output("output_goals", list(self.input("input_goals"))[: max(self.input("num_goals"), 0)])
        return SUCCESS


class GoalUpdater(OnBus, Decorator):
    """Has its child go to the goal that was last told on ``goal_update``, or else to its own."""

    ports: ClassVar = {
        "input_goal": input_port(SE2, doc="x;y;yaw [m, rad] in the map", optional=True),
        "input_goals": input_port(POSES, doc=_MANY, optional=True),
        "output_goal": output_port(SE2, doc="The goal"),
        "output_goals": output_port(POSES, doc="The goals; nobody tells others"),
    }
    state_fields = ("_told", "_told_ns")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._told: tuple[float, float, float] | None = None
        self._told_ns = 0
        if self.desk is not None:
            self.keep(self.desk.node.subscribe("goal_update", msg.PoseStamped, self._take))

    def _take(self, message: Any) -> None:
        pose = pose_to_se2(message.pose)
        self._told, self._told_ns = (pose.x, pose.y, pose.theta), self.on_desk().node.now_ns

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if "input_goal" in self.inputs and "output_goal" in self.outputs:
            newer = self._told is not None and self._told_ns >= self._set_ns()
            self.output("output_goal", SE2(*self._told) if newer and self._told else self.input("input_goal"))
        if "input_goals" in self.inputs and "output_goals" in self.outputs:
            self.output("output_goals", self.input("input_goals"))
        return self.children[0].execute()

    def _set_ns(self) -> int:
        """When the goal of its own was set [ns]."""
        key = remapped("input_goal", self.inputs["input_goal"])
        entry = None if key is None else self.blackboard.entry(key)
        return 0 if entry is None else entry.stamp_ns


READY: tuple[type[TreeNode], ...] = (ComputePathThroughPoses, RemovePassedGoals, GetNextFewGoals, GoalUpdater)
