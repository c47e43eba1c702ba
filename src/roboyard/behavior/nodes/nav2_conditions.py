"""Nav2's conditions, decorators and selectors about goals and paths."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.behavior.basic_types import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, NodeStatus, list_type, port_type_of
from roboyard.behavior.errors import PortError
from roboyard.behavior.nodes.leaf_host import POSE_LIST, SERVER_PORT, TIMEOUT_PORT, UNUSED_PORT, BusLeaf
from roboyard.behavior.ports import Port, input_port, output_port
from roboyard.behavior.tree_node import ConditionNode, DecoratorNode, SyncActionNode, TreeNode
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import grid_origin, grid_to_array, path_to_array

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


def _make_recovery_condition(name: str, codes: tuple[int, ...]) -> type[TreeNode]:
    ports = {
        "error_code": input_port(object, doc="What the leaf that failed said"),
        "error_codes_to_check": input_port(list_type(port_type_of(int)), doc="In the place of Nav2's", optional=True),
    }
    return type(
        name,
        (_RecoveryHelpCondition,),
        {"error_codes": (*codes, _GENERIC_ERROR_CODE), "ports": ports, "__module__": __name__},
    )


_PLAN_RESULT, _FOLLOW_RESULT = action.ComputePathToPose.Result, action.FollowPath.Result
RECOVERY_CONDITIONS = (
    _make_recovery_condition(
        "WouldAPlannerRecoveryHelp", (_PLAN_RESULT.UNKNOWN, _PLAN_RESULT.NO_VALID_PATH, _PLAN_RESULT.TIMEOUT)
    ),
    _make_recovery_condition(
        "WouldAControllerRecoveryHelp",
        (
            _FOLLOW_RESULT.UNKNOWN,
            _FOLLOW_RESULT.PATIENCE_EXCEEDED,
            _FOLLOW_RESULT.FAILED_TO_MAKE_PROGRESS,
            _FOLLOW_RESULT.NO_VALID_CONTROL,
        ),
    ),
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


def _make_selector(name: str, component: str) -> type[TreeNode]:
    ports = {
        "topic_name": input_port(str, f"{component}_selector", "On which somebody chooses (std_msgs/String)"),
        f"default_{component}": input_port(str, doc="Unless somebody does", optional=True),
        f"selected_{component}": output_port(str),
    }
    return type(name, (_Selector,), {"component": component, "ports": ports, "__module__": __name__})


SELECTORS = tuple(
    _make_selector(f"{''.join(word.title() for word in part.split('_'))}Selector", part)
    for part in ("planner", "controller", "smoother", "goal_checker", "progress_checker", "path_handler")
)


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


NAV2_GOAL_LEAVES: tuple[type[TreeNode], ...] = (
    GoalUpdated, GlobalUpdatedGoal, GoalUpdatedController, DistanceController, SpeedController, *RECOVERY_CONDITIONS,
    *SELECTORS, CancelControl, GetCurrentPose, ArePosesNear, GoalReached,
)  # fmt: skip

_PATH_PORT = input_port(object, doc="nav_msgs/Path")
_INSCRIBED_COST = 99
"""What a cell of a costmap says where the robot's middle means that it touches something."""
_FRAME_PORTS: dict[str, Port] = {
    "global_frame": UNUSED_PORT,
    "robot_base_frame": UNUSED_PORT,
    "max_robot_pose_search_dist": UNUSED_PORT,
}


def path_lengths(path: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far along the path each of its (n, 3) poses is [m]."""
    steps = np.hypot(*np.diff(path[:, :2], axis=0).T)
    return np.concatenate(([0.0], np.cumsum(steps)))


def nearest_pose_index(path: NDArray[np.float64], pose: SE2) -> int:
    """Which of a path's (n, 3) poses is nearest to a pose."""
    return int(np.argmin(np.hypot(path[:, 0] - pose.x, path[:, 1] - pose.y)))


def cut_path(path: Any, first: int, last: int) -> Any:
    """A nav_msgs/Path of some of its poses, from one to another that is left out."""
    return msg.Path(header=path.header, poses=list(path.poses[first:last]))


class IsGoalNearby(BusLeaf, ConditionNode):
    """Whether less of the path is left than so much."""

    ports: ClassVar = {
        "path": _PATH_PORT,
        "proximity_threshold": input_port(float, 1.0, "Of what is left [m]"),
        **_FRAME_PORTS,
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        robot_pose = self.robot_pose()
        try:
            path = path_to_array(self.get_input("path"))
        except PortError:
            return FAILURE
        if robot_pose is None or not len(path):
            return FAILURE
        distances = path_lengths(path)
        return (
            SUCCESS
            if distances[-1] - distances[nearest_pose_index(path, robot_pose)] < self.get_input("proximity_threshold")
            else FAILURE
        )


class TruncatePath(SyncActionNode):
    """Takes the end off a path."""

    ports: ClassVar = {
        "input_path": _PATH_PORT,
        "distance": input_port(float, 1.0, "How much [m]"),
        "output_path": output_port(object, doc="nav_msgs/Path"),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        path = self.get_input("input_path")
        poses = path_to_array(path)
        if not len(poses):
            return FAILURE
        distances = path_lengths(poses)
        self.set_output(
            "output_path",
            cut_path(path, 0, max(1, int(np.sum(distances <= distances[-1] - self.get_input("distance"))))),
        )
        return SUCCESS


class TruncatePathLocal(BusLeaf, SyncActionNode):
    """Cuts out of a path what is near the robot."""

    ports: ClassVar = {
        "input_path": _PATH_PORT,
        "distance_forward": input_port(float, 8.0, "Kept before it [m]; -1: all"),
        "distance_backward": input_port(float, 4.0, "Kept behind it [m]"),
        "pose": input_port(SE2, doc="x;y;yaw in the place of the robot's", optional=True),
        "angular_distance_weight": UNUSED_PORT,
        "transform_tolerance": UNUSED_PORT,
        "robot_base_frame": UNUSED_PORT,
        "max_robot_pose_search_dist": UNUSED_PORT,
        "output_path": output_port(object, doc="nav_msgs/Path"),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        path = self.get_input("input_path")
        poses = path_to_array(path)
        reference_pose = self.get_input("pose") if "pose" in self.inputs else self.robot_pose()
        if reference_pose is None or not len(poses):
            return FAILURE
        distances, forward = path_lengths(poses), self.get_input("distance_forward")
        nearest_index = nearest_pose_index(poses, reference_pose)
        is_in_range = distances >= distances[nearest_index] - self.get_input("distance_backward")
        if forward >= 0.0:
            is_in_range &= distances <= distances[nearest_index] + forward
        is_in_range[nearest_index] = True
        indices = np.flatnonzero(is_in_range)
        self.set_output("output_path", cut_path(path, int(indices[0]), int(indices[-1]) + 1))
        return SUCCESS


class GetPoseFromPath(SyncActionNode):
    """One pose of a path."""

    ports: ClassVar = {
        "path": _PATH_PORT,
        "index": input_port(int, 0, "Which; -1: the last"),
        "pose": output_port(SE2, doc="x;y;yaw"),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        poses, index = path_to_array(self.get_input("path")), self.get_input("index")
        if not -len(poses) <= index < len(poses):
            return FAILURE
        self.set_output("pose", SE2(*map(float, poses[index])))
        return SUCCESS


class ConcatenatePaths(SyncActionNode):
    """Joins two paths, of which one may be missing."""

    ports: ClassVar = {
        "input_path1": input_port(object, doc="nav_msgs/Path", optional=True),
        "input_path2": input_port(object, doc="nav_msgs/Path", optional=True),
        "output_path": output_port(object, doc="nav_msgs/Path"),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        paths = []
        for port in ("input_path1", "input_path2"):
            try:
                paths.append(self.get_input(port))
            except PortError:
                continue
        if not paths:
            return FAILURE
        self.set_output(
            "output_path", msg.Path(header=paths[0].header, poses=[one for path in paths for one in path.poses])
        )
        return SUCCESS


class ValidatePath(BusLeaf, ConditionNode):
    """Whether a path is free of collisions in the navigator's costmap."""

    ports: ClassVar = {
        "path": _PATH_PORT,
        "max_cost": UNUSED_PORT,
        "consider_unknown_as_obstacle": input_port(bool, False),
        "layer_name": UNUSED_PORT,
        "footprint": UNUSED_PORT,
        "stop_at_first_collision": UNUSED_PORT,
        "max_lookahead_distance": UNUSED_PORT,
        "service_name": UNUSED_PORT,
        "server_timeout": UNUSED_PORT,
        "collision_poses": output_port(object),
    }
    state_fields = ("_costmap",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._costmap: Any = None
        if self.host is not None:
            self.release_with_tree(
                self.host.node.subscribe("global_costmap/costmap", msg.OccupancyGrid, self._on_costmap)
            )

    def _on_costmap(self, message: Any) -> None:
        self._costmap = message

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        try:
            path = path_to_array(self.get_input("path"))
        except PortError:
            return FAILURE
        if self._costmap is None or not len(path):
            return FAILURE
        cells = self._costs_along_path(path)
        unknown = self.get_input("consider_unknown_as_obstacle")
        return FAILURE if np.any(cells >= _INSCRIBED_COST) or (unknown and np.any(cells < 0)) else SUCCESS

    def _costs_along_path(self, path: NDArray[np.float64]) -> NDArray[np.int8]:
        """What the costmap says below a path's poses; -1 outside of it."""
        grid, T_grid_map = grid_to_array(self._costmap), grid_origin(self._costmap).inverse()
        cos, sin = math.cos(T_grid_map.theta), math.sin(T_grid_map.theta)
        x = T_grid_map.x + cos * path[:, 0] - sin * path[:, 1]
        y = T_grid_map.y + sin * path[:, 0] + cos * path[:, 1]
        rows, columns = (np.floor(one / self._costmap.info.resolution).astype(int) for one in (y, x))
        inside = (rows >= 0) & (columns >= 0) & (rows < grid.shape[0]) & (columns < grid.shape[1])
        return np.where(inside, grid[np.where(inside, rows, 0), np.where(inside, columns, 0)], np.int8(-1))


class PathLongerOnApproach(DecoratorNode):
    """Does its child where a new path to the same goal is much longer than the last one, and the goal was near."""

    ports: ClassVar = {
        "path": _PATH_PORT,
        "prox_len": input_port(float, 3.0, "How near: length of the last path [m]"),
        "length_factor": input_port(float, 2.0, "How much longer"),
    }
    state_fields = ("_last_path",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._last_path: tuple[float, tuple[float, ...]] | None = None

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        path = path_to_array(self.get_input("path"))
        new = (float(path_lengths(path)[-1]), tuple(map(float, path[-1]))) if len(path) else None
        self.set_status(RUNNING)
        last = self._last_path
        if new and last and new[1] == last[1]:
            is_near, is_longer = (
                last[0] < self.get_input("prox_len"),
                new[0] > self.get_input("length_factor") * last[0],
            )
            if is_near and is_longer:
                child_status = self.children[0].execute_tick()
                if child_status is not RUNNING and child_status is not SKIPPED:
                    self._last_path = new
                    self.reset_child()
                return child_status
        self._last_path = new
        return SUCCESS


NAV2_PATH_LEAVES: tuple[type[TreeNode], ...] = (
    IsGoalNearby, TruncatePath, TruncatePathLocal, GetPoseFromPath, ConcatenatePaths, ValidatePath,
    PathLongerOnApproach,
)  # fmt: skip
