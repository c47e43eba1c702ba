"""Actions of the navigator: conversion of goals into tasks, feedback and results, error codes, and the server that runs
one task at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import GoalHandle, Node
from roboyard.bus.actions import PREEMPTED
from roboyard.control import PlanarTwist
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import grid_to_msg, make_header, pose_stamped_to_msg, pose_to_msg
from roboyard.messages.time import duration_to_msg, to_nanoseconds
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.errors import NavigationError
from roboyard.navigation.navigator import (
    Behavior,
    DriveOnHeadingTask,
    FollowPathTask,
    NavigateTask,
    NavigationState,
    NavigatorContext,
    SpinTask,
    WaitTask,
    WaypointTask,
)
from roboyard.navigation.navigator.waypoints import Waypoint, WaypointSequence
from roboyard.navigation.path import Path

_COST_TO_OCCUPANCY = np.concatenate([[0], 1 + (97 * (np.arange(1, 253) - 1)) // 251, [99, 100, -1]]).astype(np.int8)

_BEHAVIOR_CODE_OFFSETS = {"timeout": 1, "pose_unknown": 2}


def costmap_to_msg(costmap: Costmap, frame: str, time_ns: int) -> Any:
    """Convert costs to nav_msgs/OccupancyGrid as Nav2 does: 1 to 98, 99 inscribed, 100 lethal, -1 unknown."""
    geometry = costmap.geometry
    return grid_to_msg(_COST_TO_OCCUPANCY[costmap.cells], geometry.resolution, geometry.T_map_grid, frame, time_ns)


def compute_path_error_code(error: NavigationError) -> int:
    """Return the error_code of nav2_msgs/ComputePathToPose for an error."""
    return error.compute_path_code


def follow_path_error_code(error: NavigationError) -> int:
    """Return the error_code of nav2_msgs/FollowPath for an error."""
    return error.follow_path_code


def behavior_error_code(error: NavigationError, first_code: int, blocked_code: int) -> int:
    """Return the error_code of nav2_msgs/Spin, BackUp and DriveOnHeading, whose codes begin at ``first_code``."""
    if error.cause == "blocked":
        return blocked_code
    return first_code + _BEHAVIOR_CODE_OFFSETS.get(error.cause, 0)


DEFAULT_TIME_ALLOWANCE = 30.0
"""Time allowance of motions whose goal states none [s]."""


@dataclass(frozen=True)
class GoalTransformer:
    """Transforms poses and paths of goal messages into the map.

    Attributes:
        transform_pose: Returns the pose of a geometry_msgs/PoseStamped in the map; raises InvalidGoalError.
        transform_path: Returns the poses (n, 3) of a nav_msgs/Path in the map; raises InvalidGoalError.
        frame: Frame of the map.
    """

    transform_pose: Callable[[Any], SE2]
    transform_path: Callable[[Any], np.ndarray[Any, np.dtype[np.float64]]]
    frame: str


@dataclass(frozen=True)
class NavigationAction:
    """One action of the navigator.

    Attributes:
        name: Name of the action.
        action_type: Type of the action.
        goal_poses: Returns the poses in the map that the robot is to reach, from the goal message.
        make_task: Returns the task, from the navigator's context, those poses, the goal message and the transformer.
        make_feedback: Returns the feedback, from the task, the state, the elapsed time [s] and the transformer.
        make_result: Returns the result, from the task, the error or None, the elapsed time [s] and the goals' frame.
        accepts_unreachable_goals: Whether a goal that cannot be reached is accepted.
    """

    name: str
    action_type: Any
    goal_poses: Callable[[Any, GoalTransformer], list[SE2]]
    make_task: Callable[[NavigatorContext, list[SE2], Any, GoalTransformer], Any]
    make_feedback: Callable[[Any, NavigationState, float, GoalTransformer], Any]
    make_result: Callable[[Any, NavigationError | None, float, str], Any]
    accepts_unreachable_goals: bool = False


def _duration(seconds: float) -> Any:
    return duration_to_msg(round(seconds * 1e9))


# -- to a pose ---------------------------------------------------------------------------------------------------------
def _navigation_feedback(
    kind: Any, task: NavigateTask, state: NavigationState, elapsed: float, transformer: GoalTransformer
) -> Any:
    feedback = kind.Feedback()
    feedback.current_pose = pose_stamped_to_msg(state.pose, transformer.frame, round(state.time * 1e9))
    feedback.navigation_time = _duration(elapsed)
    feedback.number_of_recoveries = task.recoveries
    feedback.distance_remaining = task.remaining_distance
    speed = math.hypot(state.twist.vx, state.twist.vy)
    if math.isfinite(task.remaining_distance) and speed > 0.05:
        feedback.estimated_time_remaining = _duration(task.remaining_distance / speed)
    return feedback


def _navigate_to_pose_result(kind: Any, error: NavigationError | None) -> Any:
    if error is None:
        return kind.Result()
    return kind.Result(error_code=kind.Result.UNKNOWN if hasattr(kind.Result, "UNKNOWN") else 1, error_msg=str(error))


def _navigate_to_pose_action(name: str, *, allow_nearest_pose: bool) -> NavigationAction:
    kind = action.NavigateToPose
    return NavigationAction(
        name, kind,
        lambda goal, transformer: [transformer.transform_pose(goal.pose)],
        lambda context, goals, goal, transformer: NavigateTask(context, goals, allow_nearest_pose=allow_nearest_pose),
        lambda task, state, elapsed, transformer: _navigation_feedback(kind, task, state, elapsed, transformer),
        lambda task, error, elapsed, frame: _navigate_to_pose_result(kind, error),
        accepts_unreachable_goals=allow_nearest_pose,
    )  # fmt: skip


def _navigate_through_poses_action() -> NavigationAction:
    kind = action.NavigateThroughPoses

    def goals(goal: Any, transformer: GoalTransformer) -> list[SE2]:
        if not goal.poses:
            raise InputError("the goal has no poses", valid="at least one")
        return [transformer.transform_pose(pose) for pose in goal.poses]

    def feedback(task: NavigateTask, state: NavigationState, elapsed: float, transformer: GoalTransformer) -> Any:
        message = _navigation_feedback(kind, task, state, elapsed, transformer)
        message.number_of_poses_remaining = len(task.goals) - task.n_passed_goals
        return message

    return NavigationAction(
        "navigate_through_poses", kind, goals,
        lambda context, goals, goal, transformer: NavigateTask(context, goals),
        feedback,
        lambda task, error, elapsed, frame: _navigate_to_pose_result(kind, error),
    )  # fmt: skip


def _follow_waypoints_action() -> NavigationAction:
    kind = action.FollowWaypoints

    def make(context: NavigatorContext, goals: list[SE2], goal: Any, transformer: GoalTransformer) -> WaypointTask:
        return WaypointTask(
            context,
            WaypointSequence(
                [Waypoint(pose) for pose in goals], loops=goal.number_of_loops, first=goal.goal_index,
                stop_on_failure=False,
            ),
        )  # fmt: skip

    def result(task: WaypointTask, error: NavigationError | None, elapsed: float, frame: str) -> Any:
        missed = [
            msg.MissedWaypoint(
                index=miss.index, goal=pose_stamped_to_msg(task.sequence.waypoints[miss.index].pose, frame, 0)
            )
            for miss in task.sequence.missed
        ]
        message = kind.Result(missed_waypoints=missed)
        if error is not None:
            message.error_code, message.error_msg = kind.Result.UNKNOWN, str(error)
        return message

    return NavigationAction(
        "follow_waypoints", kind,
        lambda goal, transformer: [transformer.transform_pose(pose) for pose in goal.poses],
        make,
        lambda task, state, elapsed, transformer: kind.Feedback(current_waypoint=task.sequence.index),
        result,
        accepts_unreachable_goals=True,
    )  # fmt: skip


def _move_base_action() -> NavigationAction:
    kind = action.MoveBase
    return NavigationAction(
        "move_base", kind,
        lambda goal, transformer: [transformer.transform_pose(goal.target_pose)],
        lambda context, goals, goal, transformer: NavigateTask(context, goals),
        lambda task, state, elapsed, transformer: kind.Feedback(
            base_position=pose_stamped_to_msg(state.pose, transformer.frame, round(state.time * 1e9))
        ),
        lambda task, error, elapsed, frame: kind.Result(),
    )  # fmt: skip


# -- along a path ------------------------------------------------------------------------------------------------------
def _follow_path_action() -> NavigationAction:
    kind = action.FollowPath

    def make(context: NavigatorContext, goals: list[SE2], goal: Any, transformer: GoalTransformer) -> FollowPathTask:
        poses = transformer.transform_path(goal.path)
        if not len(poses):
            raise InputError("the path has no poses", valid="at least one")
        config = context.config
        return FollowPathTask(
            Path(poses), context.controller, config.goal_tolerance, config.progress_checker, config.no_command_timeout
        )

    return NavigationAction(
        "follow_path",
        kind,
        lambda goal, transformer: [],
        make,
        lambda task, state, elapsed, transformer: kind.Feedback(
            distance_to_goal=task.remaining_distance, speed=math.hypot(state.twist.vx, state.twist.vy)
        ),
        lambda task, error, elapsed, frame: kind.Result(
            error_code=0 if error is None else follow_path_error_code(error),
            error_msg="" if error is None else str(error),
        ),
    )


# -- simple motions ----------------------------------------------------------------------------------------------------
def _time_allowance(goal: Any) -> float:
    return to_nanoseconds(goal.time_allowance) * 1e-9 or DEFAULT_TIME_ALLOWANCE


def _behavior_result(
    kind: Any, error: NavigationError | None, elapsed: float, first_code: int, blocked_code: int
) -> Any:
    result = kind.Result(total_elapsed_time=_duration(elapsed))
    if error is not None:
        result.error_code, result.error_msg = behavior_error_code(error, first_code, blocked_code), str(error)
    return result


def _spin_action() -> NavigationAction:
    kind = action.Spin
    return NavigationAction(
        "spin",
        kind,
        lambda goal, transformer: [],
        lambda context, goals, goal, transformer: SpinTask(
            context.mobile_base,
            goal.target_yaw,
            _time_allowance(goal),
            0.5 * context.mobile_base.limits.max_angular_speed,
        ),
        lambda task, state, elapsed, transformer: kind.Feedback(angular_distance_traveled=abs(task.rotated_angle)),
        lambda task, error, elapsed, frame: _behavior_result(kind, error, elapsed, 700, 703),
    )


def _drive_on_heading_action(name: str, kind: Any, sign: float, first_code: int, blocked_code: int) -> NavigationAction:
    def make(
        context: NavigatorContext, goals: list[SE2], goal: Any, transformer: GoalTransformer
    ) -> DriveOnHeadingTask:
        if goal.target.y or goal.target.z:
            raise InputError("the target is not straight ahead or behind", valid="y = z = 0")
        is_backward = sign < 0.0 or goal.speed < 0.0 or goal.target.x < 0.0
        distance = math.copysign(abs(goal.target.x), -1.0 if is_backward else 1.0)
        return DriveOnHeadingTask(context.mobile_base, distance, abs(goal.speed), _time_allowance(goal))

    return NavigationAction(
        name, kind,
        lambda goal, transformer: [],
        make,
        lambda task, state, elapsed, transformer: kind.Feedback(distance_traveled=abs(task.driven_distance)),
        lambda task, error, elapsed, frame: _behavior_result(kind, error, elapsed, first_code, blocked_code),
    )  # fmt: skip


def _wait_action() -> NavigationAction:
    kind = action.Wait
    return NavigationAction(
        "wait", kind,
        lambda goal, transformer: [],
        lambda context, goals, goal, transformer: WaitTask(to_nanoseconds(goal.time) * 1e-9),
        lambda task, state, elapsed, transformer: kind.Feedback(time_left=_duration(task.remaining_time)),
        lambda task, error, elapsed, frame: kind.Result(total_elapsed_time=_duration(elapsed)),
    )  # fmt: skip


def navigation_actions() -> dict[str, NavigationAction]:
    """Return all actions of the navigator by name."""
    actions = [
        _navigate_to_pose_action("navigate_to_pose", allow_nearest_pose=False),
        _navigate_to_pose_action("approach_pose", allow_nearest_pose=True),
        _navigate_through_poses_action(),
        _follow_waypoints_action(),
        _move_base_action(),
        _follow_path_action(),
        _spin_action(),
        _drive_on_heading_action("backup", action.BackUp, -1.0, 710, 714),
        _drive_on_heading_action("drive_on_heading", action.DriveOnHeading, 1.0, 720, 723),
        _wait_action(),
    ]
    return {navigation_action.name: navigation_action for navigation_action in actions}


_FEEDBACK_PERIOD_NS = 200_000_000
"""Time between two feedback messages [ns]."""
_STATUS_PERIOD_NS = 1_000_000_000
"""Time between two status messages while nothing changes [ns]."""


CreateTask = Callable[[NavigationAction, Any], tuple[list[SE2], Any]]
RestoreTask = Callable[[NavigationAction, list[SE2], Any], Any]


class NavigationTaskServer:
    """Action servers of all navigation actions, and the task that runs.

    Args:
        node: Node that offers the actions.
        frame: Frame of goals.
        create_task: Returns the goal poses in the map and the task of a goal message; raises RoboyardError to
            reject it.
        restore_task: Returns the task of a goal from a saved state, from the goal poses and the goal message.
        on_finished: Function that is called when a task has ended.
    """

    def __init__(
        self,
        node: Node,
        frame: str,
        create_task: CreateTask,
        restore_task: RestoreTask,
        on_finished: Callable[[], None],
    ) -> None:
        self._frame = frame
        self._node, self._create_task, self._restore_task, self._on_finished = (
            node,
            create_task,
            restore_task,
            on_finished,
        )
        self._goals: tuple[SE2, ...] = ()
        self._handle: GoalHandle | None = None
        self._action: NavigationAction | None = None
        self._task: Any = None
        self._start_ns = self._last_feedback_ns = self._last_status_ns = 0
        self._last_state = ""
        self._status = node.publisher("~/status", msg.NavigationStatus, latched=True)
        self._actions = navigation_actions()
        for navigation_action in self._actions.values():
            node.action_server(
                navigation_action.name,
                navigation_action.action_type,
                partial(self._on_goal, navigation_action),
                preempt=False,
                on_goal_restored=partial(self._on_restored, navigation_action),
            )

    @property
    def is_busy(self) -> bool:
        """Whether a task runs."""
        return self._handle is not None

    @property
    def path(self) -> Path | None:
        """Path that the robot follows; None if it follows none."""
        return getattr(self._task, "path", None)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_goal(self, navigation_action: NavigationAction, handle: GoalHandle) -> None:
        try:
            goals, task = self._create_task(navigation_action, handle.goal)
        except RoboyardError as error:
            handle.reject(str(error), _error_cause(error))
            self._publish_rejection(navigation_action, error)
            return
        if self._handle is not None:
            self._finish("aborted", None, "preempted by a newer goal", PREEMPTED)
        handle.accept()
        self._start(navigation_action, handle, task, goals)
        self.publish_status("started")

    def _start(self, navigation_action: NavigationAction, handle: GoalHandle, task: Any, goals: Sequence[SE2]) -> None:
        self._action, self._handle, self._task, self._goals = navigation_action, handle, task, tuple(goals)
        self._start_ns = self._last_feedback_ns = self._node.now_ns
        handle.on_cancel = self._on_cancel

    def _on_cancel(self, handle: GoalHandle) -> None:
        if handle is self._handle:
            self._finish("canceled", None, "")

    def _on_restored(self, navigation_action: NavigationAction, handle: GoalHandle) -> None:
        self._start(navigation_action, handle, None, ())  # its task is made in ``load``

    # -- each step -----------------------------------------------------------------------------------------------------
    def compute_command(self, state: NavigationState, transformer: GoalTransformer) -> PlanarTwist | None:
        """Return the command of the running task; None if it has just ended."""
        if self._handle is None or self._action is None:
            return None
        try:
            twist: PlanarTwist | None = self._task.compute_command(state)
        except NavigationError as error:
            self.fail(error)
            return None
        if twist is None:
            self._finish("succeeded", None, "")
            return None
        if self._node.now_ns - self._last_feedback_ns >= _FEEDBACK_PERIOD_NS:
            self._last_feedback_ns = self._node.now_ns
            self._handle.publish_feedback(self._action.make_feedback(self._task, state, self._elapsed, transformer))
        self.publish_status(getattr(self._task, "activity", "moving"))
        return twist

    def fail(self, error: NavigationError) -> None:
        """Abort the task."""
        self._node.log.warn(f"aborted {'a goal' if self._action is None else self._action.name}: {error}")
        self._finish("aborted", error, str(error), error.cause)

    @property
    def _elapsed(self) -> float:
        return (self._node.now_ns - self._start_ns) * 1e-9

    def _finish(self, state: str, error: NavigationError | None, reason: str, cause: str = "") -> None:
        handle, navigation_action, task = self._handle, self._action, self._task
        if handle is None or navigation_action is None:
            return
        if state != "succeeded" and isinstance(task, Behavior | NavigateTask):
            task.cancel()
        self.publish_status(state, error, reason)
        result = navigation_action.make_result(task, error, self._elapsed, self._frame)
        self._handle = self._action = self._task = None
        if state == "succeeded":
            handle.succeed(result)
        elif state == "canceled":
            handle.set_canceled(result, reason)
        else:
            handle.abort(result, reason, cause)
        self._node.report_health("ok" if error is None else "warn", reason or state)
        if cause != PREEMPTED:  # else the next task drives on
            self._on_finished()

    # -- status --------------------------------------------------------------------------------------------------------
    def publish_status(self, state: str, error: RoboyardError | None = None, text: str = "") -> None:
        """Publish the status, if it changed or is old."""
        now_ns = self._node.now_ns
        if state == self._last_state and now_ns - self._last_status_ns < _STATUS_PERIOD_NS:
            return
        if self._handle is not None and state != self._last_state and error is None:
            self._node.report_health("ok", f"{'' if self._action is None else self._action.name}: {state}")
        self._last_state, self._last_status_ns = state, now_ns
        task = self._task
        message = self._status_message(self._action, state, error, text)
        message.elapsed = self._elapsed
        if isinstance(task, NavigateTask):
            message.goal = pose_to_msg(SE2(*task.goal))
            message.distance_remaining, message.replans, message.recoveries = (
                task.remaining_distance,
                task.replans,
                task.recoveries,
            )
        self._status.publish(message)

    def _publish_rejection(self, navigation_action: NavigationAction, error: RoboyardError) -> None:
        self._status.publish(self._status_message(navigation_action, "rejected", error, ""))

    def _status_message(
        self, navigation_action: NavigationAction | None, state: str, error: RoboyardError | None, text: str
    ) -> Any:
        return msg.NavigationStatus(
            header=make_header(self._frame, self._node.now_ns),
            task="" if navigation_action is None else navigation_action.name,
            state=state,
            error_code="" if error is None else _error_cause(error),
            message=text or ("" if error is None else str(error)),
        )

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data; the goal itself is saved by its action server."""
        return {
            "task": None if self._task is None else self._task.save_state(),
            "goals": [(goal.x, goal.y, goal.theta) for goal in self._goals],
            "times": (self._start_ns, self._last_feedback_ns, self._last_status_ns),
            "last_state": self._last_state,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned, after the action servers have restored their goals."""
        self._goals = tuple(SE2(*goal) for goal in saved["goals"])
        if self._action is not None and self._handle is not None and saved["task"] is not None:
            self._task = self._restore_task(self._action, list(self._goals), self._handle.goal)
            self._task.load_state(saved["task"])
        self._start_ns, self._last_feedback_ns, self._last_status_ns = saved["times"]
        self._last_state = saved["last_state"]


def _error_cause(error: RoboyardError) -> str:
    return str(getattr(error, "cause", "refused"))
