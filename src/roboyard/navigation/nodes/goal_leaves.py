"""Leaves and decorators of behavior trees that depend on goals and on the robot's pose, with Nav2's names and ports."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, ClassVar

from roboyard.behavior.basic_types import FAILURE, IDLE, RUNNING, SUCCESS, NodeStatus, list_type, port_type_of
from roboyard.behavior.errors import PortError
from roboyard.behavior.nodes.leaf_host import (
    POSE_LIST,
    POSE_LIST_DOC,
    SERVER_PORT,
    TIMEOUT_PORT,
    UNUSED_OUTPUT,
    UNUSED_PORT,
    BusLeaf,
)
from roboyard.behavior.ports import Port, input_port, output_port, remapped_key
from roboyard.behavior.tree_node import ConditionNode, DecoratorNode, SyncActionNode, TreeNode
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_se2

_GOAL_PORT = input_port(SE2, "{goal}", "Goal pose `x;y;yaw` in the map [m, rad].")
_GOALS_PORT = input_port(POSE_LIST, "{goals}", "Goal poses `x;y;yaw|x;y;yaw`, if there are several.")
_GENERIC_ERROR_CODE = 1
"""Error code of failures for which the server gives none."""


GoalPoses = tuple[tuple[float, float, float], ...]


def read_goals(node: TreeNode) -> GoalPoses:
    """Return the goal in the port ``goal`` of a node, and those in ``goals``; empty if there is none."""
    found: list[SE2] = []
    with suppress(PortError):
        found.append(node.get_input("goal"))
    with suppress(PortError):
        found += node.get_input("goals")
    return tuple((one.x, one.y, one.theta) for one in found)


class GoalUpdated(ConditionNode):
    """Succeeds if the goal differs from that of the last tick; the first tick fails.

    Nav2: the same.
    """

    ports: ClassVar = {"goal": _GOAL_PORT, "goals": _GOALS_PORT}
    state_fields = ("_goal", "_was_ticked")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._goal: GoalPoses = ()
        self._was_ticked = False

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        previous, self._goal = self._goal, read_goals(self)
        if not self._was_ticked:
            self._was_ticked = True
            return self._first_status()
        return SUCCESS if previous != self._goal else FAILURE

    def _first_status(self) -> NodeStatus:
        return FAILURE


class GlobalUpdatedGoal(GoalUpdated):
    """Succeeds if the goal differs from that of the last tick; the first tick succeeds.

    Nav2: the same.
    """

    def _first_status(self) -> NodeStatus:
        return SUCCESS


class _RepeatWhenDue(DecoratorNode):
    """Ticks its child in the first tick, while the child runs, and when it is due; in between it is RUNNING."""

    state_fields: ClassVar[tuple[str, ...]] = ("_is_first_tick",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._is_first_tick = True

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self._is_first_tick = True
            self.restart_interval()
        self.set_status(RUNNING)
        if not (self._is_due() or self._is_first_tick or self.children[0].status is RUNNING):
            return RUNNING
        self._is_first_tick = False
        child_status = self.children[0].execute_tick()
        if child_status is SUCCESS:
            self.restart_interval()
        return child_status

    def restart_interval(self) -> None:
        """Note the start of the interval after which the child is due again."""

    def _is_due(self) -> bool:
        raise NotImplementedError


class GoalUpdatedController(_RepeatWhenDue):
    """Ticks its child again when the goal has changed.

    Nav2: the same.
    """

    ports: ClassVar = {"goal": _GOAL_PORT, "goals": _GOALS_PORT}
    state_fields = ("_is_first_tick", "_goal")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._goal: GoalPoses = ()

    def _is_due(self) -> bool:
        previous, self._goal = self._goal, read_goals(self)
        return previous != self._goal


class DistanceController(BusLeaf, _RepeatWhenDue):
    """Ticks its child again when the robot has moved a distance.

    Nav2: the pose of `base_link` in `map` is used.
    """

    ports: ClassVar = {
        "distance": input_port(float, 1.0, "Distance that the robot moves between two ticks of the child [m]."),
        "global_frame": UNUSED_PORT,
        "robot_base_frame": UNUSED_PORT,
    }
    state_fields = ("_is_first_tick", "_interval_start")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._interval_start: tuple[float, float] | None = None

    def restart_interval(self) -> None:
        """See `_RepeatWhenDue.restart_interval`."""
        robot_pose = self.robot_pose()
        self._interval_start = None if robot_pose is None else (robot_pose.x, robot_pose.y)

    def _is_due(self) -> bool:
        robot_pose = self.robot_pose()
        if robot_pose is None or self._interval_start is None:
            return robot_pose is not None
        return bool(
            math.hypot(robot_pose.x - self._interval_start[0], robot_pose.y - self._interval_start[1])
            >= self.get_input("distance")
        )


class SpeedController(BusLeaf, _RepeatWhenDue):
    """Ticks its child at a rate that grows with the speed of the robot, and at once when the goal has changed.

    Nav2: the speed is that of the topic `odom`; it is not filtered.
    """

    ports: ClassVar = {
        "min_rate": input_port(float, 0.1, "Rate at the lowest speed [Hz]."),
        "max_rate": input_port(float, 1.0, "Rate at the highest speed [Hz]."),
        "min_speed": input_port(float, 0.0, "Lowest speed [m/s]."),
        "max_speed": input_port(float, 0.5, "Highest speed [m/s]."),
        "goal": _GOAL_PORT,
        "goals": _GOALS_PORT,
    }
    state_fields = ("_is_first_tick", "_interval_start_ns", "_speed", "_goal")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._interval_start_ns, self._speed = 0, 0.0
        self._goal: GoalPoses = ()
        if self.host is not None:
            self.release_with_tree(self.host.node.subscribe("odom", msg.Odometry, self._on_odometry))

    def _on_odometry(self, message: Any) -> None:
        self._speed = math.hypot(message.twist.twist.linear.x, message.twist.twist.linear.y)

    def restart_interval(self) -> None:
        """See `_RepeatWhenDue.restart_interval`."""
        self._interval_start_ns = self.now_ns

    def _is_due(self) -> bool:
        previous, self._goal = self._goal, read_goals(self)
        low, high = self.get_input("min_speed"), self.get_input("max_speed")
        fraction = min(max((self._speed - low) / (high - low), 0.0), 1.0) if high > low else 1.0
        rate = self.get_input("min_rate") + fraction * (self.get_input("max_rate") - self.get_input("min_rate"))
        return previous != self._goal or (self.now_ns - self._interval_start_ns) * 1e-9 * rate >= 1.0 - 1e-9


_PLAN_RESULT, _FOLLOW_RESULT = action.ComputePathToPose.Result, action.FollowPath.Result


class _RecoveryHelpCondition(ConditionNode):
    """Succeeds if the error code of the last failure is one that a recovery can mend."""

    error_codes: ClassVar[tuple[int, ...]] = ()

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        try:
            code = int(self.get_input("error_code"))
        except PortError:
            return FAILURE
        error_codes = (
            self.get_input("error_codes_to_check") if "error_codes_to_check" in self.inputs else self.error_codes
        )
        return SUCCESS if code in error_codes else FAILURE


def _recovery_ports() -> dict[str, Port]:
    return {
        "error_code": input_port(object, doc="Error code of the leaf that failed."),
        "error_codes_to_check": input_port(
            list_type(port_type_of(int)),
            doc="Error codes that a recovery can mend; by default those of Nav2.",
            optional=True,
        ),
    }


class WouldAPlannerRecoveryHelp(_RecoveryHelpCondition):
    """Succeeds if the last failure of the planner is one that a recovery can mend.

    Nav2: the code 1 of failures without a code is also one.
    """

    ports: ClassVar = _recovery_ports()
    error_codes = (_PLAN_RESULT.UNKNOWN, _PLAN_RESULT.NO_VALID_PATH, _PLAN_RESULT.TIMEOUT, _GENERIC_ERROR_CODE)


class WouldAControllerRecoveryHelp(_RecoveryHelpCondition):
    """Succeeds if the last failure of the controller is one that a recovery can mend.

    Nav2: the code 1 of failures without a code is also one.
    """

    ports: ClassVar = _recovery_ports()
    error_codes = (
        _FOLLOW_RESULT.UNKNOWN,
        _FOLLOW_RESULT.PATIENCE_EXCEEDED,
        _FOLLOW_RESULT.FAILED_TO_MAKE_PROGRESS,
        _FOLLOW_RESULT.NO_VALID_CONTROL,
        _GENERIC_ERROR_CODE,
    )


class _Selector(BusLeaf, SyncActionNode):
    """Outputs the name selected on a topic, or else the default."""

    state_fields = ("_selection",)
    component: ClassVar[str] = ""

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._selection = ""
        if self.host is not None:
            self.release_with_tree(self.host.node.subscribe(self.inputs["topic_name"], msg.String, self._on_selection))

    def _on_selection(self, message: Any) -> None:
        self._selection = str(message.data)

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        default = f"default_{self.component}"
        selection = self._selection or (self.get_input(default) if default in self.inputs else "")
        if not selection:
            return FAILURE
        self.set_output(f"selected_{self.component}", selection)
        return SUCCESS


def _selector_ports(component: str) -> dict[str, Port]:
    return {
        "topic_name": input_port(str, f"{component}_selector", "Topic of the selection (std_msgs/String)."),
        f"default_{component}": input_port(str, doc="Name that is used until a selection is published.", optional=True),
        f"selected_{component}": output_port(str, doc="Selected name."),
    }


class PlannerSelector(_Selector):
    """Selects a planner by the name on a topic, or by default.

    Nav2: the navigator has one plug-in of the kind and does not use the selection.
    """

    ports: ClassVar = _selector_ports("planner")
    component = "planner"


class ControllerSelector(_Selector):
    """Selects a controller by the name on a topic, or by default.

    Nav2: the navigator has one plug-in of the kind and does not use the selection.
    """

    ports: ClassVar = _selector_ports("controller")
    component = "controller"


class SmootherSelector(_Selector):
    """Selects a smoother by the name on a topic, or by default.

    Nav2: the navigator has one plug-in of the kind and does not use the selection.
    """

    ports: ClassVar = _selector_ports("smoother")
    component = "smoother"


class GoalCheckerSelector(_Selector):
    """Selects a goal checker by the name on a topic, or by default.

    Nav2: the navigator has one plug-in of the kind and does not use the selection.
    """

    ports: ClassVar = _selector_ports("goal_checker")
    component = "goal_checker"


class ProgressCheckerSelector(_Selector):
    """Selects a progress checker by the name on a topic, or by default.

    Nav2: the navigator has one plug-in of the kind and does not use the selection.
    """

    ports: ClassVar = _selector_ports("progress_checker")
    component = "progress_checker"


class PathHandlerSelector(_Selector):
    """Selects a path handler by the name on a topic, or by default.

    Nav2: the navigator has one plug-in of the kind and does not use the selection.
    """

    ports: ClassVar = _selector_ports("path_handler")
    component = "path_handler"


class CancelControl(BusLeaf, SyncActionNode):
    """Cancels the goals of the controller, so that the robot stops following its path.

    Nav2: the same.
    """

    ports: ClassVar = {"server_name": SERVER_PORT, "server_timeout": TIMEOUT_PORT}

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        self.require_host().cancel_goals(self.inputs.get("server_name") or "follow_path")
        return SUCCESS


class GetCurrentPose(BusLeaf, SyncActionNode):
    """Outputs the pose of the robot in the map; fails if it is not known.

    Nav2: the pose of `base_link` in `map` is used.
    """

    ports: ClassVar = {
        "global_frame": UNUSED_PORT,
        "robot_base_frame": UNUSED_PORT,
        "current_pose": output_port(SE2, doc="Pose `x;y;yaw` of the robot in the map [m, rad]."),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        robot_pose = self.robot_pose()
        if robot_pose is None:
            return FAILURE
        self.set_output("current_pose", robot_pose)
        return SUCCESS


class ArePosesNear(ConditionNode):
    """Succeeds if the distance of two poses is small.

    Nav2: both poses are in one frame.
    """

    ports: ClassVar = {
        "ref_pose": input_port(SE2, doc="First pose `x;y;yaw` [m, rad]."),
        "target_pose": input_port(SE2, doc="Second pose `x;y;yaw` [m, rad]."),
        "tolerance": input_port(float, 0.5, "Largest distance [m]."),
        "global_frame": UNUSED_PORT,
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        try:
            a, b = self.get_input("ref_pose"), self.get_input("target_pose")
        except PortError:
            return FAILURE
        return SUCCESS if math.hypot(a.x - b.x, a.y - b.y) <= self.get_input("tolerance") else FAILURE


class GoalReached(BusLeaf, ConditionNode):
    """Succeeds if the robot is near the goal.

    Nav2: the tolerance is a port, not a parameter of the goal checker.
    """

    ports: ClassVar = {
        "goal": input_port(SE2, doc="Goal pose `x;y;yaw` in the map [m, rad]."),
        "tolerance": input_port(float, 0.25, "Largest distance [m]."),
        "global_frame": UNUSED_PORT,
        "robot_base_frame": UNUSED_PORT,
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        robot_pose, goal = self.robot_pose(), self.get_input("goal")
        if robot_pose is None:
            return FAILURE
        return (
            SUCCESS
            if math.hypot(robot_pose.x - goal.x, robot_pose.y - goal.y) <= self.get_input("tolerance")
            else FAILURE
        )


class RemovePassedGoals(BusLeaf, SyncActionNode):
    """Removes the leading poses of a list that the robot is near to; the last pose stays.

    Nav2: statuses of waypoints are ignored.
    """

    ports: ClassVar = {
        "input_goals": input_port(POSE_LIST, doc=POSE_LIST_DOC),
        "output_goals": output_port(POSE_LIST, doc="Poses that are left."),
        "radius": input_port(float, 0.5, "Largest distance [m]."),
        "robot_base_frame": UNUSED_PORT,
        "input_waypoint_statuses": UNUSED_PORT,
        "output_waypoint_statuses": UNUSED_OUTPUT,
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
    """Outputs the first few of several poses.

    Nav2: the same.
    """

    ports: ClassVar = {
        "num_goals": input_port(int, doc="Largest number of poses."),
        "input_goals": input_port(POSE_LIST, doc=POSE_LIST_DOC),
        "output_goals": output_port(POSE_LIST, doc="The first poses."),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        self.set_output("output_goals", list(self.get_input("input_goals"))[: max(self.get_input("num_goals"), 0)])
        return SUCCESS


class GoalUpdater(BusLeaf, DecoratorNode):
    """Outputs the last goal of the topic ``goal_update``, or else the goal of its port, and ticks its child.

    Nav2: several goals come from the port only, not from a topic.
    """

    ports: ClassVar = {
        "input_goal": input_port(SE2, doc="Goal pose `x;y;yaw` in the map [m, rad].", optional=True),
        "input_goals": input_port(POSE_LIST, doc=POSE_LIST_DOC, optional=True),
        "output_goal": output_port(SE2, doc="The newer of `input_goal` and the goal on the topic."),
        "output_goals": output_port(POSE_LIST, doc="The poses of `input_goals`."),
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
        """Return the time at which the goal of the port was set [ns]."""
        key = remapped_key("input_goal", self.inputs["input_goal"])
        entry = None if key is None else self.blackboard.entry(key)
        return 0 if entry is None else entry.stamp_ns
