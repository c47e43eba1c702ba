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
    UNUSED_OUTPUT,
    UNUSED_PORT,
    ActionLeaf,
)
from roboyard.behavior.nodes.topic_leaves import CallService
from roboyard.behavior.ports import input_port, output_port, remapped_key
from roboyard.geometry import SE2
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import pose_stamped_to_msg
from roboyard.messages.time import duration_to_msg

_TIME_ALLOWANCE = input_port(float, 10.0, "Time after which the server aborts the goal [s].")


def _time_allowance(leaf: ActionLeaf) -> Any:
    return duration_to_msg(round(leaf.get_input("time_allowance") * 1e9))


class NavigateToPose(ActionLeaf):
    """Drives to a pose in the map, ``x;y;yaw``.

    Nav2: the pose is in the frame of the map; `behavior_tree` is ignored.
    """

    ports: ClassVar = {
        "goal": input_port(SE2, doc="Goal pose `x;y;yaw` in the map [m, rad]."),
        "behavior_tree": input_port(
            str, doc="Accepted for Nav2's files, and ignored: the navigator has no trees.", optional=True
        ),
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
    """Plans a path to a pose in the map.

    Nav2: `viapoints` are ignored.
    """

    ports: ClassVar = {
        "goal": input_port(SE2, doc="Goal pose `x;y;yaw` in the map [m, rad]."),
        "start": input_port(SE2, doc="Start pose, if `use_start` is true.", optional=True),
        "use_start": input_port(bool, False, "Whether the path begins at `start`, not at the robot."),
        "planner_id": input_port(str, doc="Name of the planner.", optional=True),
        "viapoints": UNUSED_PORT,
        "path": output_port(object, doc="The path (nav_msgs/Path)."),
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
    """Follows a path, and a new one as soon as there is one.

    Nav2: a new path is sent as a new goal, which replaces the older one at once; checkers and path handlers are
    those of the navigator.
    """

    ports: ClassVar = {
        "path": input_port(object, doc="The path (nav_msgs/Path)."),
        "controller_id": input_port(str, doc="Name of the controller.", optional=True),
        "goal_checker_id": UNUSED_PORT,
        "progress_checker_id": UNUSED_PORT,
        "path_handler_id": UNUSED_PORT,
        "tracking_feedback": UNUSED_OUTPUT,
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
    """Rotates in place.

    Nav2: collisions are always checked, and recoveries are not counted.
    """

    ports: ClassVar = {
        "spin_dist": input_port(float, 1.57, "Angle, counterclockwise positive [rad]."),
        "time_allowance": _TIME_ALLOWANCE,
        "is_recovery": UNUSED_PORT,
        "disable_collision_checks": UNUSED_PORT,
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
    """Backs up in a straight line.

    Nav2: collisions are always checked.
    """

    ports: ClassVar = {
        "backup_dist": input_port(float, 0.15, "Distance [m]."),
        "backup_speed": input_port(float, 0.025, "Speed [m/s]."),
        "time_allowance": _TIME_ALLOWANCE,
        "disable_collision_checks": UNUSED_PORT,
        **ACTION_PORTS,
    }
    action_name = "backup"
    action_type = property(lambda _: action.BackUp)
    _distance_port, _speed_port = "backup_dist", "backup_speed"


class DriveOnHeading(_StraightMotion):
    """Drives straight on.

    Nav2: collisions are always checked.
    """

    ports: ClassVar = {
        "dist_to_travel": input_port(float, 0.15, "Distance [m]."),
        "speed": input_port(float, 0.025, "Speed [m/s]."),
        "time_allowance": _TIME_ALLOWANCE,
        "disable_collision_checks": UNUSED_PORT,
        **ACTION_PORTS,
    }
    action_name = "drive_on_heading"
    action_type = property(lambda _: action.DriveOnHeading)
    _distance_port, _speed_port = "dist_to_travel", "speed"


class Wait(ActionLeaf):
    """Has the robot wait.

    Nav2: the duration is simulated time.
    """

    ports: ClassVar = {"wait_duration": input_port(float, 1.0, "Duration [s]."), **ACTION_PORTS}
    action_name = "wait"
    action_type = property(lambda _: action.Wait)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        return action.Wait.Goal(time=duration_to_msg(round(self.get_input("wait_duration") * 1e9)))


class ComputePathThroughPoses(ActionLeaf):
    """Plans a path through poses in the map, in order.

    Nav2: `last_reached_index` is always -1: a partial path is a failure.
    """

    ports: ClassVar = {
        "goals": input_port(POSE_LIST, doc=POSE_LIST_DOC),
        "start": input_port(SE2, doc="Start pose `x;y;yaw`; by default the pose of the robot.", optional=True),
        "planner_id": input_port(str, doc="Name of the planner.", optional=True),
        "path": output_port(object, doc="The path (nav_msgs/Path)."),
        "last_reached_index": output_port(int, doc="Index of the last pose that the path reaches; -1: it reaches all."),
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
    """Drives into a dock: one that the docking node knows, or at a pose.

    Nav2: there is one type of dock; `dock_pose` is in the map.
    """

    ports: ClassVar = {
        "use_dock_id": input_port(bool, True, "Whether `dock_id` names the dock, or `dock_pose` is its pose."),
        "dock_id": input_port(str, "", "Name of the dock."),
        "dock_pose": input_port(SE2, doc="Pose `x;y;yaw` of the docked robot in the map [m, rad].", optional=True),
        "dock_type": UNUSED_PORT,
        "max_staging_time": input_port(float, 1000.0, "Longest time until the robot reaches the staging pose [s]."),
        "navigate_to_staging_pose": input_port(bool, True, "Whether the robot first drives to the staging pose."),
        "success": output_port(bool, doc="Whether the server reports success."),
        "num_retries": output_port(int, doc="Number of repeated attempts."),
        **ACTION_PORTS,
    }
    action_name = "dock_robot"
    action_type = property(lambda _: action.DockRobot)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        goal = action.DockRobot.Goal(
            use_dock_id=self.get_input("use_dock_id"),
            dock_id=self.get_input("dock_id"),
            dock_type=self.inputs.get("dock_type", ""),
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
    """Leaves the dock.

    Nav2: there is one type of dock.
    """

    ports: ClassVar = {
        "dock_type": UNUSED_PORT,
        "max_undocking_time": input_port(float, 30.0, "Time after which the server aborts the goal [s]."),
        "success": output_port(bool, doc="Whether the server reports success."),
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
        "stay_at_end": input_port(
            bool, False, "Whether the robot stays where the exploration ends; false: it returns to the start."
        ),
        "known_area": output_port(float, doc="Area of the known free ground at the end [m²]."),
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
    """Clears the navigator's costmaps.

    Nav2: every name of a service clears both costmaps.
    """

    ports: ClassVar = {
        "service_name": input_port(
            str, doc="Accepted for Nav2's files, and ignored: both costmaps are cleared.", optional=True
        ),
        "plugins": UNUSED_PORT,
        "server_timeout": TIMEOUT_PORT,
    }

    def _service_name(self) -> str:
        return "clear_costmaps"

    def _service_type(self) -> Any:
        return srv.Empty

    def _make_request(self) -> Any:
        return srv.Empty.Request()
