"""Navigation to a pose: plan a path, follow it, replan, recover, and explain a failure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.geometry import SE2
from roboyard.navigation.controllers import Controller, GoalChecker, GoalTolerance
from roboyard.navigation.costmap import INSCRIBED, LETHAL, UNKNOWN, Costmap
from roboyard.navigation.costmap.reachability import find_nearest_free_pose, find_nearest_reachable_pose
from roboyard.navigation.errors import (
    GoalOccupiedError,
    GoalOutsideMapError,
    GoalUnknownError,
    InvalidGoalError,
    NavigationError,
    NoPathError,
    NoProgressError,
    NoSafeCommandError,
    StartOccupiedError,
)
from roboyard.navigation.navigator.behavior import Behavior, BehaviorContext, MobileBase
from roboyard.navigation.navigator.behaviors import ApproachPoseTask
from roboyard.navigation.navigator.config import NavigatorConfig
from roboyard.navigation.navigator.costmaps import NavigationCostmaps
from roboyard.navigation.navigator.task import (
    AttributeState,
    NavigationState,
    ProgressChecker,
    ProgressCheckerConfig,
)
from roboyard.navigation.path import Path
from roboyard.navigation.planners import (
    GlobalPlanner,
    TraversalCosts,
    describe_extent,
    explain_no_path,
    no_path_error,
    traversal_costs_of,
)

_MAX_COST_PENALTY = 3.0
"""Additional cost of a metre on the most costly free cell, when paths are compared."""


def plan_through_poses(
    planner: GlobalPlanner, costmap: Costmap, start: SE2, goals: Sequence[SE2], start_search_radius: float
) -> Path:
    """Return one path from the start through all goals.

    Args:
        planner: Planner of each segment.
        costmap: Global costmap.
        start: Pose of the robot; if an obstacle is within its reach, the path begins at the nearest free pose.
        goals: One or more poses, in order.
        start_search_radius: Largest distance to that free pose [m].

    Raises:
        NavigationError: A segment cannot be found.
    """
    segments = [_plan_from_free_start(planner, costmap, start, goals[0], start_search_radius)]
    segments += [
        planner.plan(costmap, segment_start, segment_goal) for segment_start, segment_goal in itertools.pairwise(goals)
    ]
    if len(segments) == 1:
        return segments[0]
    poses = np.concatenate([segments[0].poses, *(segment.poses[1:] for segment in segments[1:])])
    return Path(poses, sum(segment.cost for segment in segments), min(segment.clearance for segment in segments))


def _plan_from_free_start(
    planner: GlobalPlanner, costmap: Costmap, start: SE2, goal: SE2, start_search_radius: float
) -> Path:
    try:
        return planner.plan(costmap, start, goal)
    except StartOccupiedError:
        free_start = find_nearest_free_pose(costmap, start, start_search_radius)
        if free_start is None:
            raise
        path = planner.plan(costmap, free_start, goal)
        return Path(np.concatenate([[(start.x, start.y, start.theta)], path.poses]), path.cost, 0.0)


def path_cost(costmap: Costmap, poses: NDArray[np.float64]) -> float:
    """Return the cost of driving along poses (n, 3), in metres of free space; infinite if one is within an obstacle's
    reach."""
    if len(poses) < 2:
        return 0.0
    values, blocked = _costs_at_poses(costmap, poses)
    if blocked.any():
        return float("inf")
    steps = np.hypot(*np.diff(poses[:, :2], axis=0).T)
    return float((steps * (1.0 + _MAX_COST_PENALTY * values[1:] / (INSCRIBED - 1))).sum())


def is_path_blocked(costmap: Costmap, poses: NDArray[np.float64]) -> bool:
    """Return whether the robot's center cannot be at one of the poses (n, 3); poses outside of the costmap do not
    count."""
    return bool(_costs_at_poses(costmap, poses)[1].any())


def _costs_at_poses(costmap: Costmap, poses: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return (n,) costs, 0 for unknown cells and outside of the costmap, and (n,) whether an obstacle is within
    reach."""
    cells = costmap.geometry.cells_of_points(poses[:, :2])
    is_inside = costmap.geometry.contains(cells)
    costs = np.zeros(len(poses), dtype=np.uint8)
    costs[is_inside] = costmap.cells[cells[is_inside, 0], cells[is_inside, 1]]
    costs[costs > LETHAL] = 0
    return costs.astype(np.float64), costs >= INSCRIBED


class FollowPathTask(AttributeState):
    """Drive along a path (Nav2's controller server).

    Args:
        path: Path in the map.
        controller: Controller that computes the commands.
        tolerance: Tolerance at the end of the path.
        progress_checker: Motion that counts as progress.
        no_command_timeout: Time without a safe command after which the task fails; the robot stands still meanwhile
            [s].
    """

    state_attributes = ("remaining_distance", "_nearest_index", "_no_command_since", "_poses")

    def __init__(
        self,
        path: Path,
        controller: Controller,
        tolerance: GoalTolerance,
        progress_checker: ProgressCheckerConfig,
        no_command_timeout: float,
    ) -> None:
        self._controller, self._no_command_timeout = controller, no_command_timeout
        self._goal_checker, self._progress_checker = GoalChecker(tolerance), ProgressChecker(progress_checker)
        self._no_command_since: float | None = None
        self.set_path(path)

    def set_path(self, path: Path) -> None:
        """Replace the path."""
        self.path = path
        self._poses = path.poses
        self._remaining_lengths = _compute_remaining_lengths(path)
        self._nearest_index = 0
        self.remaining_distance = float(self._remaining_lengths[0])
        self._goal_checker.set_goal(path.pose(-1))
        self._controller.set_path(path)

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return the command of the controller; None if the end of the path is reached."""
        self._update_nearest_index(state.pose)
        if self._goal_checker.is_goal_reached(state.pose):
            return None
        if not self._progress_checker.is_progressing(state.time, state.pose):
            raise NoProgressError("the robot makes no progress", valid="a path that the controller can follow")
        try:
            twist = self._controller.compute_velocity(state.pose, state.twist, state.local_costmap)
        except NoSafeCommandError:
            self._no_command_since = state.time if self._no_command_since is None else self._no_command_since
            if state.time - self._no_command_since >= self._no_command_timeout:
                raise
            return ZERO_TWIST
        self._no_command_since = None
        return twist

    def upcoming_poses(self, distance: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the poses (n, 3) of the path within a distance ahead of the robot [m]."""
        last_index = int(np.searchsorted(-self._remaining_lengths, -(self.remaining_distance - distance)))
        return self.path.poses[self._nearest_index : last_index + 1]

    def _update_nearest_index(self, pose: SE2) -> None:
        """Find the nearest pose of the path, only forward and within a metre."""
        last_index = (
            int(np.searchsorted(-self._remaining_lengths, -(self._remaining_lengths[self._nearest_index] - 1.0))) + 1
        )
        offsets = self.path.poses[self._nearest_index : last_index + 1, :2] - (pose.x, pose.y)
        self._nearest_index += int(np.argmin(np.einsum("ij,ij->i", offsets, offsets)))
        nearest_pose = self.path.poses[self._nearest_index]
        self.remaining_distance = float(self._remaining_lengths[self._nearest_index]) + math.hypot(
            nearest_pose[0] - pose.x, nearest_pose[1] - pose.y
        )

    def save_state(self) -> dict[str, Any]:
        """Return the path and the states of the checkers as plain data."""
        return super().save_state() | {
            "cost": (self.path.cost, self.path.clearance),
            "arrival": self._goal_checker.save_state(),
            "progress": self._progress_checker.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self.set_path(Path(saved["_poses"], *saved["cost"]))
        super().load_state(saved)
        self._goal_checker.load_state(saved["arrival"])
        self._progress_checker.load_state(saved["progress"])


def _compute_remaining_lengths(path: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return (n,) the remaining length of the path from each pose [m]."""
    if not len(path):
        raise NavigationError("the path has no poses", valid="at least one")
    steps = np.hypot(*np.diff(path.poses[:, :2], axis=0).T)
    return np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])


_RECOVERY_RESET_DISTANCE = 1.0
"""Distance from the last recovery after which all recovery steps may be tried again [m]."""
_MAX_RECOVERIES = 30
"""Maximum number of recoveries of one goal, regardless of the progress between them."""
_MAX_DETOUR_RATIO, _DETOUR_TOLERANCE = 1.2, 0.05
"""Ratio and distance [m] by which a path that is longer than the straight line leads around an obstacle."""


@dataclass(frozen=True)
class NavigatorContext:
    """Planner, controller, robot, costmaps and configuration of the navigator.

    Attributes:
        planner: Global planner.
        controller: Controller that follows paths.
        mobile_base: Footprint and limits of the robot.
        costmaps: Global and local costmap.
        config: Configuration of the navigator.
    """

    planner: GlobalPlanner
    controller: Controller
    mobile_base: MobileBase
    costmaps: NavigationCostmaps
    config: NavigatorConfig

    @property
    def traversal(self) -> TraversalCosts:
        """Costs by which the planner plans."""
        return traversal_costs_of(self.planner)

    def validate_goal(self, goal: SE2) -> None:
        """Reject a goal that no path can reach, regardless of sensor data.

        Raises:
            NavigationError: The goal is not finite, outside of the map, in an obstacle of the map, or in unknown space
                that the planner may not enter.
        """
        x, y = goal.x, goal.y
        if not all(map(math.isfinite, (x, y, goal.theta))):
            raise InvalidGoalError("the goal is not finite", valid="numbers")
        costmaps = self.costmaps
        frame = costmaps.global_costmap.geometry
        if not frame.contains(frame.cells_of_points(goal.xy)):
            raise GoalOutsideMapError(
                f"the goal ({x:.2f}, {y:.2f}) lies outside of the map", valid=describe_extent(frame)
            )
        if not costmaps.has_map:
            return
        cost = costmaps.static_cost(goal, self.mobile_base.footprint.inscribed_radius)
        if cost == LETHAL:
            raise GoalOccupiedError(
                f"the goal ({x:.2f}, {y:.2f}) lies in an obstacle of the map, or too near to one", valid="a free pose"
            )
        if cost == UNKNOWN and not self.traversal.allow_unknown:
            raise GoalUnknownError(
                f"the goal ({x:.2f}, {y:.2f}) lies in unknown space", valid="known space, or allow_unknown"
            )


class NavigateTask(AttributeState):
    """Navigation to a pose through viapoints: plan, follow, replan, recover, explain (Nav2's BT navigator).

    Args:
        context: Planner, controller, costmaps and configuration.
        goals: Poses in the map, in order; those before the last are passed without a stop.
        allow_nearest_pose: Whether the robot drives to the nearest reachable pose if the last goal cannot be reached.
    """

    state_attributes = (
        "replans",
        "recoveries",
        "n_passed_goals",
        "goal",
        "_n_attempted_steps",
        "_last_recovery_position",
        "_last_plan_time",
        "_blocked_since",
    )

    def __init__(self, context: NavigatorContext, goals: Sequence[SE2], *, allow_nearest_pose: bool = False) -> None:
        self._context, self.goals, self._allow_nearest_pose = context, tuple(goals), allow_nearest_pose
        self.goal = _pose_to_tuple(self.goals[-1])
        self.replans = self.recoveries = self.n_passed_goals = 0
        self._n_attempted_steps = 0
        self._last_recovery_position: tuple[float, float] | None = None
        self._last_plan_time = -math.inf
        self._blocked_since: float | None = None
        self._follow_task: FollowPathTask | None = None
        self._approach_task: ApproachPoseTask | None = None
        self._recovery: tuple[str, Behavior] | None = None

    # -- progress ------------------------------------------------------------------------------------------------------
    @property
    def path(self) -> Path | None:
        """Path that the robot follows; None if there is none."""
        return None if self._follow_task is None else self._follow_task.path

    @property
    def remaining_distance(self) -> float:
        """Remaining length of the path [m]; infinite while there is none."""
        return math.inf if self._follow_task is None else self._follow_task.remaining_distance

    @property
    def activity(self) -> str:
        """State for people: "planning", "following", "approaching", or the name of the recovery step."""
        if self._recovery is not None:
            return self._recovery[0]
        if self._approach_task is not None:
            return "approaching"
        return "planning" if self._follow_task is None else "following"

    # -- each step -----------------------------------------------------------------------------------------------------
    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Plan, follow, replan or recover by one control period; None if the goal is reached."""
        if self._recovery is not None:
            twist = self._continue_recovery(state, self._recovery[1])
            if twist is not None:
                return twist
        try:
            self._drop_passed_viapoints(state.pose)
            if self._approach_task is not None:
                return self._approach_task.compute_command(state)
            if self._follow_task is None:
                self._follow_task = self._make_follow_task(self._plan(state))
            else:
                self._consider_replanning(state, self._follow_task)
            if self._can_approach(state.pose, self._follow_task):
                self._approach_task = self._make_approach_task()
                return self._approach_task.compute_command(state)
            return self._follow_task.compute_command(state)
        except NavigationError as error:
            return self._start_next_recovery(state, error)

    def _drop_passed_viapoints(self, pose: SE2) -> None:
        radius = self._context.config.viapoint_radius
        while self.n_passed_goals < len(self.goals) - 1 and pose.distance(self.goals[self.n_passed_goals]) <= radius:
            self.n_passed_goals += 1

    def _make_follow_task(self, path: Path) -> FollowPathTask:
        config = self._context.config
        return FollowPathTask(
            path, self._context.controller, config.goal_tolerance, config.progress_checker, config.no_command_timeout
        )

    def _can_approach(self, pose: SE2, follow_task: FollowPathTask) -> bool:
        """Return whether the rest is driven straight: the base moves sideways, and the path leads around no
        obstacle."""
        distance, is_last_goal = pose.distance(SE2(*self.goal)), self.n_passed_goals == len(self.goals) - 1
        is_near = (
            distance <= self._context.config.approach.distance
            and follow_task.remaining_distance <= _MAX_DETOUR_RATIO * distance + _DETOUR_TOLERANCE
        )
        return is_last_goal and is_near and self._context.mobile_base.limits.max_lateral_speed > 0.0

    def _make_approach_task(self) -> ApproachPoseTask:
        config = self._context.config
        return ApproachPoseTask(self._context.mobile_base, SE2(*self.goal), config.goal_tolerance, config.approach)

    def _plan(self, state: NavigationState, costmap: Costmap | None = None) -> Path:
        context, config = self._context, self._context.config
        costs = context.costmaps.get_global_costmap() if costmap is None else costmap
        goals = list(self.goals[self.n_passed_goals :])
        if self._allow_nearest_pose:
            nearest_pose = find_nearest_reachable_pose(
                costs, state.pose, goals[-1], config.start_search_radius, allow_unknown=context.traversal.allow_unknown
            )
            goals[-1] = nearest_pose or goals[-1]
        self._last_plan_time = state.time
        path = plan_through_poses(context.planner, costs, state.pose, goals, config.start_search_radius)
        self.goal = _pose_to_tuple(goals[-1])
        return path

    def _consider_replanning(self, state: NavigationState, follow_task: FollowPathTask) -> None:
        """Replan when an obstacle blocks the path, or periodically to find a better one."""
        config = self._context.config
        has_obstacle = is_path_blocked(state.local_costmap, follow_task.upcoming_poses(config.collision_check_distance))
        age = state.time - self._last_plan_time
        if age < config.replan_period * (0.25 if has_obstacle else 1.0):
            return
        costs = self._context.costmaps.get_global_costmap()
        remaining_poses = follow_task.upcoming_poses(math.inf)
        has_obstacle = has_obstacle or is_path_blocked(costs, remaining_poses)
        try:
            path = self._plan(state, costs)
        except NavigationError:
            if not has_obstacle:
                return  # the present path stays usable
            self._blocked_since = state.time if self._blocked_since is None else self._blocked_since
            if state.time - self._blocked_since >= config.no_command_timeout:
                raise
            return
        self._blocked_since = None
        if has_obstacle or path_cost(costs, path.poses) < config.replan_improvement_ratio * path_cost(
            costs, remaining_poses
        ):
            follow_task.set_path(path)
            self.replans += 1

    # -- recovery ------------------------------------------------------------------------------------------------------
    def _continue_recovery(self, state: NavigationState, behavior: Behavior) -> PlanarTwist | None:
        try:
            twist = behavior.compute_command(state)
        except NavigationError:  # after a step that fails the robot plans, and then takes the next step
            twist = None
        if twist is None:
            self._recovery = None
        return twist

    def _start_next_recovery(self, state: NavigationState, error: NavigationError) -> PlanarTwist:
        """Start the next recovery step, or give up.

        Raises:
            NavigationError: All steps were tried, or none can help.
        """
        self._follow_task, self._approach_task, self._blocked_since = None, None, None
        if self._is_unrecoverable(error):
            raise error
        if (
            self._last_recovery_position is not None
            and math.dist(self._last_recovery_position, (state.pose.x, state.pose.y)) > _RECOVERY_RESET_DISTANCE
        ):
            self._n_attempted_steps = 0
        recovery = self._context.config.recovery
        order = recovery.order_after(isinstance(error, StartOccupiedError))
        if self._n_attempted_steps >= len(order) * recovery.max_rounds or self.recoveries >= _MAX_RECOVERIES:
            raise self._with_explanation(state, error)
        name = order[self._n_attempted_steps % len(order)]
        self._n_attempted_steps += 1
        self.recoveries += 1
        self._last_recovery_position = (state.pose.x, state.pose.y)
        self._execute_recovery_step(name, state)
        return ZERO_TWIST

    def _with_explanation(self, state: NavigationState, error: NavigationError) -> NavigationError:
        """Return the error with the blocking obstacles, the layers that marked them, and the gap width that the robot
        requires."""
        costmaps, radius = self._context.costmaps, self._context.mobile_base.footprint.inscribed_radius
        allow_unknown = self._context.traversal.allow_unknown
        goal = SE2(*self.goal)
        if isinstance(error, NoPathError):
            return no_path_error(costmaps.global_costmap, state.pose, goal, radius, allow_unknown=allow_unknown)
        if isinstance(error, GoalOccupiedError | StartOccupiedError):
            return type(error)(
                str(explain_no_path(costmaps.global_costmap, state.pose, goal, radius, allow_unknown=allow_unknown))
            )
        return error

    def _is_unrecoverable(self, error: NavigationError) -> bool:
        """Return whether clearing the costmaps cannot help."""
        if isinstance(error, GoalOutsideMapError | GoalUnknownError):
            return True
        costmaps, radius = self._context.costmaps, self._context.mobile_base.footprint.inscribed_radius
        return isinstance(error, GoalOccupiedError) and costmaps.static_cost(SE2(*self.goal), radius) == LETHAL

    def _execute_recovery_step(self, name: str, state: NavigationState) -> None:
        """Start a recovery step; after a step that cannot begin the robot plans, as after one that fails."""
        try:
            behavior = self._make_behavior(name)
            is_running = behavior.start(state)
        except NavigationError:
            return
        if is_running:
            self._recovery = (name, behavior)

    def _make_behavior(self, name: str) -> Behavior:
        context = BehaviorContext(self._context.mobile_base, self._context.costmaps)
        return self._context.config.recovery.behavior(name).make_behavior(context)

    def cancel(self) -> None:
        """Cancel a recovery step that is being executed."""
        if self._recovery is not None:
            self._recovery[1].cancel()
            self._recovery = None

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data; costmaps and controller are saved by the node."""
        follow_task, recovery = self._follow_task, self._recovery
        return super().save_state() | {
            "following": None if follow_task is None else follow_task.save_state(),
            "last": None if self._approach_task is None else self._approach_task.save_state(),
            "recovery": None if recovery is None else (recovery[0], recovery[1].save_state()),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        super().load_state(saved)
        if saved["following"] is not None:
            self._follow_task = self._make_follow_task(Path(saved["following"]["_poses"]))
            self._follow_task.load_state(saved["following"])
        if saved["last"] is not None:
            self._approach_task = self._make_approach_task()
            self._approach_task.load_state(saved["last"])
        if saved["recovery"] is not None:
            name, state = saved["recovery"]
            behavior = self._make_behavior(name)
            behavior.load_state(state)
            self._recovery = (name, behavior)


def _pose_to_tuple(pose: SE2) -> tuple[float, float, float]:
    return pose.x, pose.y, pose.theta
