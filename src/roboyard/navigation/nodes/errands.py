"""What can be asked of the navigator by actions: how a goal becomes a task, and how it is told how that goes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg
from roboyard.messages.time import duration_to_msg, to_nanoseconds
from roboyard.navigation.driving import Driver, FollowPath, Navigate, Situation, Spin, Straight, VisitWaypoints, Wait
from roboyard.navigation.errors import NavigationError
from roboyard.navigation.nodes.navigator_messages import following_number, motion_number
from roboyard.navigation.path import Path
from roboyard.navigation.waypoints import Waypoint, WaypointSequence

DEFAULT_ALLOWANCE = 30.0
"""For motions whose goal says no time [s]."""


@dataclass(frozen=True)
class Places:
    """How an errand reads poses: into the map, from whatever frame.

    Attributes:
        pose: From a geometry_msgs/PoseStamped; raises GoalInvalid.
        path: From a nav_msgs/Path, (n, 3); raises GoalInvalid.
        frame: Of the map.
    """

    pose: Callable[[Any], SE2]
    path: Callable[[Any], np.ndarray[Any, np.dtype[np.float64]]]
    frame: str


@dataclass(frozen=True)
class Errand:
    """One kind of goal.

    Attributes:
        name: Of the action.
        type: Of the action.
        goals: The poses it shall bring the robot to.
        make: The task, from the driver, those poses, the goal message and the places.
        feedback: From the task, the situation and the seconds so far.
        result: From the task, the error or None, the seconds, and the frame of goals.
        anywhere: Whether the goal may be one that cannot be reached.
    """

    name: str
    type: Any
    goals: Callable[[Any, Places], list[SE2]]
    make: Callable[[Driver, list[SE2], Any, Places], Any]
    feedback: Callable[[Any, Situation, float, Places], Any]
    result: Callable[[Any, NavigationError | None, float, str], Any]
    anywhere: bool = False


def _duration(seconds: float) -> Any:
    return duration_to_msg(round(seconds * 1e9))


# -- to a pose ---------------------------------------------------------------------------------------------------------
def _progress(kind: Any, task: Navigate, now: Situation, passed: float, places: Places) -> Any:
    feedback = kind.Feedback()
    feedback.current_pose = pose_stamped_to_msg(now.pose, places.frame, round(now.time * 1e9))
    feedback.navigation_time = _duration(passed)
    feedback.number_of_recoveries = task.recoveries
    feedback.distance_remaining = task.left
    speed = math.hypot(now.twist.vx, now.twist.vy)
    if math.isfinite(task.left) and speed > 0.05:
        feedback.estimated_time_remaining = _duration(task.left / speed)
    return feedback


def _to_pose_result(kind: Any, error: NavigationError | None) -> Any:
    if error is None:
        return kind.Result()
    return kind.Result(error_code=kind.Result.UNKNOWN if hasattr(kind.Result, "UNKNOWN") else 1, error_msg=str(error))


def _to_pose(name: str, *, approach: bool) -> Errand:
    kind = action.NavigateToPose
    return Errand(
        name, kind,
        lambda goal, places: [places.pose(goal.pose)],
        lambda driver, goals, goal, places: Navigate(driver, goals, approach=approach),
        lambda task, now, passed, places: _progress(kind, task, now, passed, places),
        lambda task, error, passed, frame: _to_pose_result(kind, error),
        anywhere=approach,
    )  # fmt: skip


def _through_poses() -> Errand:
    kind = action.NavigateThroughPoses

    def goals(goal: Any, places: Places) -> list[SE2]:
        if not goal.poses:
            raise InputError("no poses to go through", valid="at least one")
        return [places.pose(pose) for pose in goal.poses]

    def feedback(task: Navigate, now: Situation, passed: float, places: Places) -> Any:
        found = _progress(kind, task, now, passed, places)
        found.number_of_poses_remaining = len(task.goals) - task.passed
        return found

    return Errand(
        "navigate_through_poses", kind, goals,
        lambda driver, goals, goal, places: Navigate(driver, goals),
        feedback,
        lambda task, error, passed, frame: _to_pose_result(kind, error),
    )  # fmt: skip


def _follow_waypoints() -> Errand:
    kind = action.FollowWaypoints

    def make(driver: Driver, goals: list[SE2], goal: Any, places: Places) -> VisitWaypoints:
        return VisitWaypoints(
            driver,
            WaypointSequence(
                [Waypoint(pose) for pose in goals], loops=goal.number_of_loops, first=goal.goal_index,
                stop_on_failure=False,
            ),
        )  # fmt: skip

    def result(task: VisitWaypoints, error: NavigationError | None, passed: float, frame: str) -> Any:
        missed = [
            msg.MissedWaypoint(
                index=miss.index, goal=pose_stamped_to_msg(task.sequence.waypoints[miss.index].pose, frame, 0)
            )
            for miss in task.sequence.missed
        ]
        found = kind.Result(missed_waypoints=missed)
        if error is not None:
            found.error_code, found.error_msg = kind.Result.UNKNOWN, str(error)
        return found

    return Errand(
        "follow_waypoints", kind,
        lambda goal, places: [places.pose(pose) for pose in goal.poses],
        make,
        lambda task, now, passed, places: kind.Feedback(current_waypoint=task.sequence.index),
        result,
        anywhere=True,
    )  # fmt: skip


def _move_base() -> Errand:
    kind = action.MoveBase
    return Errand(
        "move_base", kind,
        lambda goal, places: [places.pose(goal.target_pose)],
        lambda driver, goals, goal, places: Navigate(driver, goals),
        lambda task, now, passed, places: kind.Feedback(
            base_position=pose_stamped_to_msg(now.pose, places.frame, round(now.time * 1e9))
        ),
        lambda task, error, passed, frame: kind.Result(),
    )  # fmt: skip


# -- along a path ------------------------------------------------------------------------------------------------------
def _follow_path() -> Errand:
    kind = action.FollowPath

    def make(driver: Driver, goals: list[SE2], goal: Any, places: Places) -> FollowPath:
        poses = places.path(goal.path)
        if not len(poses):
            raise InputError("a path without poses", valid="at least one")
        settings = driver.settings
        return FollowPath(Path(poses), driver.controller, settings.tolerance, settings.patience, settings.stuck_time)

    return Errand(
        "follow_path", kind,
        lambda goal, places: [],
        make,
        lambda task, now, passed, places: kind.Feedback(
            distance_to_goal=task.left, speed=math.hypot(now.twist.vx, now.twist.vy)
        ),
        lambda task, error, passed, frame: kind.Result(
            error_code=0 if error is None else following_number(error), error_msg="" if error is None else str(error)
        ),
    )  # fmt: skip


# -- simple motions ----------------------------------------------------------------------------------------------------
def _allowance(goal: Any) -> float:
    return to_nanoseconds(goal.time_allowance) * 1e-9 or DEFAULT_ALLOWANCE


def _motion_result(kind: Any, error: NavigationError | None, passed: float, base: int, blocked: int) -> Any:
    result = kind.Result(total_elapsed_time=_duration(passed))
    if error is not None:
        result.error_code, result.error_msg = motion_number(error, base, blocked), str(error)
    return result


def _spin() -> Errand:
    kind = action.Spin
    return Errand(
        "spin", kind,
        lambda goal, places: [],
        lambda driver, goals, goal, places: Spin(
            driver.body, goal.target_yaw, _allowance(goal), 0.5 * driver.body.limits.turn
        ),
        lambda task, now, passed, places: kind.Feedback(angular_distance_traveled=abs(task.turned)),
        lambda task, error, passed, frame: _motion_result(kind, error, passed, 700, 703),
    )  # fmt: skip


def _straight(name: str, kind: Any, sign: float, base: int, blocked: int) -> Errand:
    def make(driver: Driver, goals: list[SE2], goal: Any, places: Places) -> Straight:
        if goal.target.y or goal.target.z:
            raise InputError("a target beside the robot", valid="y = z = 0: this motion is straight")
        backward = sign < 0.0 or goal.speed < 0.0 or goal.target.x < 0.0
        distance = math.copysign(abs(goal.target.x), -1.0 if backward else 1.0)
        return Straight(driver.body, distance, abs(goal.speed), _allowance(goal))

    return Errand(
        name, kind,
        lambda goal, places: [],
        make,
        lambda task, now, passed, places: kind.Feedback(distance_traveled=abs(task.driven)),
        lambda task, error, passed, frame: _motion_result(kind, error, passed, base, blocked),
    )  # fmt: skip


def _wait() -> Errand:
    kind = action.Wait
    return Errand(
        "wait", kind,
        lambda goal, places: [],
        lambda driver, goals, goal, places: Wait(to_nanoseconds(goal.time) * 1e-9),
        lambda task, now, passed, places: kind.Feedback(time_left=_duration(task.left)),
        lambda task, error, passed, frame: kind.Result(total_elapsed_time=_duration(passed)),
    )  # fmt: skip


def errands() -> dict[str, Errand]:
    """All of them, by the name of their action."""
    found = [
        _to_pose("navigate_to_pose", approach=False),
        _to_pose("approach_pose", approach=True),
        _through_poses(),
        _follow_waypoints(),
        _move_base(),
        _follow_path(),
        _spin(),
        _straight("backup", action.BackUp, -1.0, 710, 714),
        _straight("drive_on_heading", action.DriveOnHeading, 1.0, 720, 723),
        _wait(),
    ]
    return {errand.name: errand for errand in found}
