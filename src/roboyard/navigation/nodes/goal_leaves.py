"""Leaves and decorators of behavior trees that depend on goals and on the robot's pose, with Nav2's names and ports."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, ClassVar

from roboyard.behavior.basic_types import FAILURE, IDLE, RUNNING, SUCCESS, NodeStatus, list_type, port_type_of
from roboyard.behavior.errors import PortError
from roboyard.behavior.nodes.leaf_host import POSE_LIST, POSE_LIST_DOC, SERVER_PORT, TIMEOUT_PORT, UNUSED_PORT, BusLeaf
from roboyard.behavior.ports import Port, input_port, output_port, remapped_key
from roboyard.behavior.tree_node import ConditionNode, DecoratorNode, SyncActionNode, TreeNode
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_se2

_GOAL_PORT = input_port(SE2, "{goal}", "x;y;yaw")
_GOALS_PORT = input_port(POSE_LIST, "{goals}", "x;y;yaw|x;y;yaw, where there are several")
_GENERIC_ERROR_CODE = 1
"""What leaves say that failed for a reason that has no number."""


GoalPoses = tuple[tuple[float, float, float], ...]


def read_goals(node: TreeNode) -> GoalPoses:
    """The goal in a node's port ``goal``, and those in ``goals``; empty if there is none."""
    found: list[SE2] = []
    with suppress(PortError):
        found.append(node.get_input("goal"))
    with suppress(PortError):
        found += node.get_input("goals")
    return tuple((one.x, one.y, one.theta) for one in found)


class GoalUpdated(ConditionNode):
    """Whether the goal differs from that of the last tick; the first tick fails."""

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
    """Whether the goal differs from that of the last tick; the first tick succeeds."""

    def _first_status(self) -> NodeStatus:
        return SUCCESS


class _RepeatWhenDue(DecoratorNode):
    """Ticks its child at first, while it runs, and again when it is due; it is running in between."""

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
        """Note from when on it is not time yet."""

    def _is_due(self) -> bool:
        raise NotImplementedError


class GoalUpdatedController(_RepeatWhenDue):
    """Does its child again when there is another goal."""

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
    """Does its child again when the robot has come so far."""

    ports: ClassVar = {
        "distance": input_port(float, 1.0, "How far [m]"),
        "global_frame": UNUSED_PORT,
        "robot_base_frame": UNUSED_PORT,
    }
    state_fields = ("_is_first_tick", "_interval_start")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._interval_start: tuple[float, float] | None = None

    def restart_interval(self) -> None:
        """See `_Again.restart_interval`."""
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
    """Does its child again the more often the faster the robot is, and at once for another goal."""

    ports: ClassVar = {
        "min_rate": input_port(float, 0.1, "At rest [Hz]"),
        "max_rate": input_port(float, 1.0, "At full speed [Hz]"),
        "min_speed": input_port(float, 0.0, "That is rest [m/s]"),
        "max_speed": input_port(float, 0.5, "That is full speed [m/s]"),
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
        """See `_Again.restart_interval`."""
        self._interval_start_ns = self.now_ns

    def _is_due(self) -> bool:
        previous, self._goal = self._goal, read_goals(self)
        low, high = self.get_input("min_speed"), self.get_input("max_speed")
        fraction = min(max((self._speed - low) / (high - low), 0.0), 1.0) if high > low else 1.0
        rate = self.get_input("min_rate") + fraction * (self.get_input("max_rate") - self.get_input("min_rate"))
        return previous != self._goal or (self.now_ns - self._interval_start_ns) * 1e-9 * rate >= 1.0 - 1e-9


_PLAN_RESULT, _FOLLOW_RESULT = action.ComputePathToPose.Result, action.FollowPath.Result


class _RecoveryHelpCondition(ConditionNode):
    """Whether the last failure is one of those that a recovery can mend."""

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
        "error_code": input_port(object, doc="What the leaf that failed said"),
        "error_codes_to_check": input_port(list_type(port_type_of(int)), doc="In the place of Nav2's", optional=True),
    }


class WouldAPlannerRecoveryHelp(_RecoveryHelpCondition):
    """Whether the last failure of the planner is one that a recovery can mend."""

    ports: ClassVar = _recovery_ports()
    error_codes = (_PLAN_RESULT.UNKNOWN, _PLAN_RESULT.NO_VALID_PATH, _PLAN_RESULT.TIMEOUT, _GENERIC_ERROR_CODE)


class WouldAControllerRecoveryHelp(_RecoveryHelpCondition):
    """Whether the last failure of the controller is one that a recovery can mend."""

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
        "topic_name": input_port(str, f"{component}_selector", "On which somebody chooses (std_msgs/String)"),
        f"default_{component}": input_port(str, doc="Unless somebody does", optional=True),
        f"selected_{component}": output_port(str),
    }


class PlannerSelector(_Selector):
    """Selects a planner by the name on a topic, or by default."""

    ports: ClassVar = _selector_ports("planner")
    component = "planner"


class ControllerSelector(_Selector):
    """Selects a controller by the name on a topic, or by default."""

    ports: ClassVar = _selector_ports("controller")
    component = "controller"


class SmootherSelector(_Selector):
    """Selects a smoother by the name on a topic, or by default."""

    ports: ClassVar = _selector_ports("smoother")
    component = "smoother"


class GoalCheckerSelector(_Selector):
    """Selects a goal checker by the name on a topic, or by default."""

    ports: ClassVar = _selector_ports("goal_checker")
    component = "goal_checker"


class ProgressCheckerSelector(_Selector):
    """Selects a progress checker by the name on a topic, or by default."""

    ports: ClassVar = _selector_ports("progress_checker")
    component = "progress_checker"


class PathHandlerSelector(_Selector):
    """Selects a path handler by the name on a topic, or by default."""

    ports: ClassVar = _selector_ports("path_handler")
    component = "path_handler"


class CancelControl(BusLeaf, SyncActionNode):
    """Cancels the path that the robot follows."""

    ports: ClassVar = {"server_name": SERVER_PORT, "server_timeout": TIMEOUT_PORT}

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        self.require_host().cancel_goals(self.inputs.get("server_name") or "follow_path")
        return SUCCESS


class GetCurrentPose(BusLeaf, SyncActionNode):
    """Where the robot is in the map."""

    ports: ClassVar = {
        "global_frame": UNUSED_PORT,
        "robot_base_frame": UNUSED_PORT,
        "current_pose": output_port(SE2, doc="x;y;yaw"),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        robot_pose = self.robot_pose()
        if robot_pose is None:
            return FAILURE
        self.set_output("current_pose", robot_pose)
        return SUCCESS


class ArePosesNear(ConditionNode):
    """Whether two poses are near each other."""

    ports: ClassVar = {
        "ref_pose": input_port(SE2, doc="x;y;yaw"),
        "target_pose": input_port(SE2, doc="x;y;yaw"),
        "tolerance": input_port(float, 0.5, "How near [m]"),
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
    """Whether the robot is at the goal."""

    ports: ClassVar = {
        "goal": input_port(SE2, doc="x;y;yaw"),
        "tolerance": input_port(float, 0.25, "How near [m]"),
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
    """Leaves out the first of several poses as long as the robot is near to it; the last one stays."""

    ports: ClassVar = {
        "input_goals": input_port(POSE_LIST, doc=POSE_LIST_DOC),
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
        "input_goals": input_port(POSE_LIST, doc=POSE_LIST_DOC),
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
        "input_goals": input_port(POSE_LIST, doc=POSE_LIST_DOC, optional=True),
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
