"""Leaves of behavior trees that use the actions of the navigator, the docking node and the explorer, with Nav2's
names and ports."""

from __future__ import annotations

from typing import Any, ClassVar

from roboyard.behavior.basic_types import NodeStatus
from roboyard.behavior.nodes.leaf_host import (
    ACTION_PORTS,
    POSE_LIST,
    POSE_LIST_DOC,
    TIMEOUT_PORT,
    ActionLeaf,
)
from roboyard.behavior.nodes.topic_leaves import CallService
from roboyard.behavior.ports import input_port, output_port, remapped_key
from roboyard.geometry import SE2
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import pose_stamped_to_msg
from roboyard.messages.time import duration_to_msg

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


class ComputePathThroughPoses(ActionLeaf):
    """Plans a path through poses in the map, in order."""

    ports: ClassVar = {
        "goals": input_port(POSE_LIST, doc=POSE_LIST_DOC),
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


class ClearEntireCostmap(CallService):
    """Clears the navigator's costmaps."""

    ports: ClassVar = {
        "service_name": input_port(str, doc="Nav2's name; both are cleared", optional=True),
        "plugins": input_port(object, doc="Not used", optional=True),
        "server_timeout": TIMEOUT_PORT,
    }

    def _service_name(self) -> str:
        return "clear_costmaps"

    def _service_type(self) -> Any:
        return srv.Empty

    def _make_request(self) -> Any:
        return srv.Empty.Request()
