"""Motion planning from a start state to a goal: collision-free, shortened, blended and time-optimal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.collision_model import make_workspace
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import PlanningCancelledError
from roboyard.manipulation.planning.axis_constraint import AxisConstraint
from roboyard.manipulation.planning.constrained_rrt import (
    add_constraint,
    blend_constrained_path,
    shorten_constrained_path,
)
from roboyard.manipulation.planning.goals import MotionGoal, as_motion_goal, find_goal_states
from roboyard.manipulation.planning.motion_planners import DEFAULT_PLANNER, make_planner
from roboyard.manipulation.planning.path_shortening import blend_corners, shortcut_path
from roboyard.manipulation.planning.planner import (
    MotionPlanner,
    MotionPlanningProblem,
    StopCallback,
    supports_axis_constraint,
)
from roboyard.manipulation.planning.start_state_repair import find_free_start
from roboyard.manipulation.time_parameterization import (
    EffortLimits,
    JointLimits,
    JointPath,
    TimedWaypointTrajectory,
    TimeOptimalTrajectory,
)

MAX_BLEND: Final = 0.6
"""Maximum distance of a blend's start from its corner, in joint space."""


class PlanConfig(Config):
    """Options of motion planning, as those of moveit_msgs/MotionPlanRequest."""

    planner: str = parameter(
        DEFAULT_PLANNER, aliases=("planner_id",), doc="Name of the motion planner; `roboyard list motion-planners`."
    )
    planner_settings: dict[str, Any] = parameter(factory=dict, doc="Settings of the motion planner by name.")
    seed: int = parameter(0, low=0, doc="Seed of all random states; the same seed gives the same plan to the last bit.")
    max_states: int = parameter(
        20_000,
        low=1,
        high=100_000_000,
        doc="Budget: the number of sampled states after which the search ends without a path.",
    )
    max_shortcuts: int = parameter(
        100, low=0, high=1_000_000, doc="Number of shortcuts that are tried; 0: the path stays as the planner found it."
    )
    velocity_scaling: float = parameter(
        1.0,
        low=0.0,
        high=1.0,
        aliases=("max_velocity_scaling_factor",),
        doc="Fraction of the joints' velocity limits; more than 0.",
    )
    acceleration_scaling: float = parameter(
        1.0,
        low=0.0,
        high=1.0,
        aliases=("max_acceleration_scaling_factor",),
        doc="Fraction of the joints' acceleration limits; more than 0.",
    )
    effort_scaling: float = parameter(
        0.95, low=0.0, high=1.0, doc="Fraction of the joints' effort limits, see `EffortLimits`; more than 0."
    )
    max_start_repair: float = parameter(
        0.1,
        low=0.0,
        high=math.pi,
        aliases=("start_state_max_bounds_error", "jiggle_fraction"),
        doc="Maximum change of a joint that moves a start in collision or outside the limits to a valid state "
        "[rad or m].",
    )


@dataclass(frozen=True, eq=False)
class MotionPlan:
    """A planned motion.

    Attributes:
        trajectory: The trajectory; it begins at the requested start.
        points: (k, n) corners of the path before blending.
        start_repair: Maximum change of a joint by which the start was moved out of collision [rad or m].
        raw_length: Length of the path as the planner found it, in joint space.
        n_states: Number of states in the search trees.
        n_checks: Number of states that were checked for collisions.
        planner: Name of the planner.
    """

    trajectory: TimeOptimalTrajectory | TimedWaypointTrajectory
    points: Array = field(repr=False)
    start_repair: float
    raw_length: float
    n_states: int
    n_checks: int
    planner: str

    @property
    def path(self) -> JointPath:
        """The path without times."""
        return self.trajectory.path

    @property
    def goal(self) -> Array:
        """(n,) goal state."""
        return np.array(self.points[-1])


def _never_stop() -> bool:
    return False


def plan_motion(
    scene: PlanningScene,
    start: ArrayLike,
    goal: MotionGoal | SE3 | ArrayLike,
    config: PlanConfig | None = None,
    *,
    limits: JointLimits | None = None,
    constraint: AxisConstraint | None = None,
    planner: MotionPlanner | None = None,
    should_stop: StopCallback = _never_stop,
) -> MotionPlan:
    """Plan a short, blended, collision-free motion with times (MoveIt's motion plan request and its adapters).

    Args:
        scene: The planning scene.
        start: (n,) start state [rad or m], or the name of a pose of the group.
        goal: A pose of the tool, its position and direction, joint positions, or the name of a pose of the group; see
            `as_motion_goal`.
        config: Options.
        limits: Joint limits; default: those of the scene's chain, scaled by the options.
        constraint: Axis constraint of the path; only some planners support it.
        planner: Planner that need not be registered; default: the one that the options name.
        should_stop: Polled during the search; True ends it.

    Raises:
        ConstraintViolatedError: Start or goal violates the constraint.
        StartInCollisionError, StartOutsideLimitsError: No valid state is near the start.
        GoalUnreachableError: No joint positions reach the goal.
        GoalOutsideLimitsError: The goal requires a joint outside its limits.
        GoalInCollisionError: All joint positions that reach the goal are in collision.
        MotionBudgetExceededError: The planner found no path.
        EffortLimitError: A joint cannot hold the start or goal at rest, or cannot be moved on the path.
        PlanningCancelledError: ``should_stop`` returned True.
        InputError: Start, goal or options are invalid.
        UnknownNameError: There is no such planner, frame or named pose.
    """
    plan_config = config or PlanConfig()
    planner_name = plan_config.planner if planner is None else type(planner).__name__
    motion_planner = planner or make_planner(plan_config.planner, plan_config.planner_settings)
    if constraint is not None and not supports_axis_constraint(motion_planner):
        raise InputError(f"planner {planner_name!r} supports no axis constraint", valid=DEFAULT_PLANNER)
    chain = scene.chain
    joint_limits = limits or JointLimits.from_chain(
        chain, velocity_scaling=plan_config.velocity_scaling, acceleration_scaling=plan_config.acceleration_scaling
    )
    rng = np.random.default_rng(plan_config.seed)
    requested_start = scene.group.pose(start) if isinstance(start, str) else chain.as_positions(start)
    start_state, start_repair = find_free_start(scene, requested_start, plan_config.max_start_repair, rng)
    effort_limits = EffortLimits(scene.dynamics, plan_config.effort_scaling)
    effort_limits.check_can_hold(start_state, "at the start")
    goals = find_goal_states(scene, as_motion_goal(goal), start_state)
    can_hold = effort_limits.can_hold(goals)
    if not can_hold.any():
        effort_limits.check_can_hold(goals[0], "at the goal")
    goals = np.ascontiguousarray(goals[can_hold])
    if should_stop():
        raise PlanningCancelledError("the search was cancelled before it began")
    workspace = make_workspace(scene.collision_arrays)
    problem = MotionPlanningProblem(scene, workspace, start_state, goals, joint_weights(joint_limits))
    if constraint is not None:
        problem = add_constraint(problem, constraint)
    planned_path = motion_planner.solve(problem, rng, plan_config.max_states, should_stop)
    if constraint is None:
        points = shorten_path(problem, planned_path.points, rng, plan_config.max_shortcuts)
        path = blend_path(problem, points)
    else:
        points = shorten_constrained_path(problem, constraint, planned_path.points, rng, plan_config.max_shortcuts)
        path = blend_constrained_path(problem, constraint, points)
    if start_repair > 0.0:
        path = _prepend_lead_in(requested_start, path)
    length = float(np.linalg.norm(np.diff(planned_path.points, axis=0), axis=1).sum())
    return MotionPlan(
        path.parameterize(joint_limits, effort_limits),
        points,
        start_repair,
        length,
        planned_path.n_states,
        int(workspace.n_checks[0]),
        planner_name,
    )


def joint_weights(limits: JointLimits) -> Array:
    """Return (n,) weights of the joints in distances: slow joints weigh more, the slowest 1."""
    return np.asarray(limits.velocity.min() / limits.velocity)


def shorten_path(problem: MotionPlanningProblem, points: Array, rng: np.random.Generator, max_shortcuts: int) -> Array:
    """Return a path (k, n) shortened by shortcuts."""
    if max_shortcuts == 0 or len(points) < 3:
        return points
    buffer = np.zeros((len(points) + 2 * max_shortcuts + 4, points.shape[1]))
    buffer[: len(points)] = points
    collision = problem.scene.collision_arrays
    count = shortcut_path(
        collision,
        problem.workspace,
        buffer,
        len(points),
        problem.weights,
        rng,
        max_shortcuts,
        max(max_shortcuts // 3, 10),
    )
    distinct_points = [buffer[0]]
    for state in buffer[1:count]:
        if np.abs(state - distinct_points[-1]).max() > 1e-9:
            distinct_points.append(state)
    return np.array(distinct_points)


def blend_path(problem: MotionPlanningProblem, points: Array) -> JointPath:
    """Return the path (k, n) with blended corners."""
    joints = problem.scene.chain.joints
    segments, lengths = np.zeros((0, 3, len(joints))), np.zeros(0)
    if len(points) > 1:
        segments, lengths = blend_corners(
            problem.scene.collision_arrays, problem.workspace, np.ascontiguousarray(points), MAX_BLEND
        )
    if not len(segments):  # the arm is at the goal already
        return JointPath(
            joints, np.array([[points[0], 0 * points[0], 0 * points[0]]]), np.zeros(1), np.array([True, True])
        )
    return JointPath.from_segments(joints, segments, lengths)


def _prepend_lead_in(start: Array, path: JointPath) -> JointPath:
    """Prepend a straight line to a path."""
    lead_in = JointPath.from_points(path.joints, np.stack([start, path.segments[0, 0]]))
    return JointPath.from_segments(
        path.joints, np.concatenate([lead_in.segments, path.segments]), np.concatenate([lead_in.lengths, path.lengths])
    )
