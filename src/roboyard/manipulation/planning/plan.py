"""Motion planning from a start state to a goal: collision-free, shortened, blended and time-optimal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.collision_model import make_workspace
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import PlanningCancelledError
from roboyard.manipulation.planning.axis_constraint import (
    AxisConstraint,
    blend_constrained_path,
    plan_constrained_path,
    select_feasible_goals,
    shorten_constrained_path,
)
from roboyard.manipulation.planning.goals import MotionGoal, find_goal_states
from roboyard.manipulation.planning.ompl_planners import OMPL_PLANNER_NAMES, OmplPlanner
from roboyard.manipulation.planning.path_shortening import blend_corners, shortcut_path
from roboyard.manipulation.planning.planner import (
    MotionPlanner,
    MotionPlanningProblem,
    RrtConnectPlanner,
    StopCallback,
    find_free_start,
)
from roboyard.manipulation.time_parameterization import (
    EffortLimits,
    JointLimits,
    JointPath,
    TimedWaypointTrajectory,
    TimeOptimalTrajectory,
)

BUILT_IN_PLANNERS = ("rrt_connect",)


def planner_names() -> tuple[str, ...]:
    """Return the names of all planners."""
    return (*BUILT_IN_PLANNERS, *(f"ompl:{name}" for name in OMPL_PLANNER_NAMES))


def make_planner(name: str) -> MotionPlanner:
    """Return the planner with a name. Raises UnknownNameError."""
    if name == "rrt_connect":
        return RrtConnectPlanner()
    kind, _, ompl_name = name.partition(":")
    if kind == "ompl" and ompl_name in OMPL_PLANNER_NAMES:
        return OmplPlanner(ompl_name)
    known_names = planner_names()
    raise UnknownNameError(f"no planner {name!r}{did_you_mean(name, known_names)}", valid=", ".join(known_names))


MAX_BLEND: Final = 0.6
"""Maximum distance of a blend's start from its corner, in joint space."""


@dataclass(frozen=True)
class PlanConfig:
    """Options of motion planning.

    Attributes:
        planner: Name of the planner: "rrt_connect", or one of OMPL's as "ompl:RRTConnect".
        seed: Seed of the random states; the same seed gives the same plan.
        max_states: Number of sampled states after which the search is given up.
        max_shortcuts: Number of shortcuts that are tried; 0 keeps the path as it was found.
        velocity_scaling: Fraction of the joints' velocity limits.
        acceleration_scaling: Fraction of their acceleration limits.
        effort_scaling: Fraction of their effort limits, see `EffortLimits`.
        max_start_repair: Maximum change of a joint by which a start in collision or outside the limits may be moved to
            a valid state [rad or m].
    """

    planner: str = "rrt_connect"
    seed: int = 0
    max_states: int = 20_000
    max_shortcuts: int = 100
    velocity_scaling: float = 1.0
    acceleration_scaling: float = 1.0
    effort_scaling: float = 0.95
    max_start_repair: float = 0.1

    def __post_init__(self) -> None:
        for name, value, low in (
            ("max_states", self.max_states, 1),
            ("max_shortcuts", self.max_shortcuts, 0),
            ("seed", self.seed, 0),
        ):
            if value < low:
                raise InputError(f"{name} {value}", location="PlanConfig", valid=f"{low} or more")
        if not 0.0 <= self.max_start_repair <= math.pi:
            raise InputError(f"max_start_repair {self.max_start_repair}", location="PlanConfig", valid="0 to pi")


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
    goal: MotionGoal,
    config: PlanConfig | None = None,
    *,
    limits: JointLimits | None = None,
    constraint: AxisConstraint | None = None,
    should_stop: StopCallback = _never_stop,
) -> MotionPlan:
    """Plan a short, blended, collision-free motion with times.

    Args:
        scene: The scene.
        start: (n,) start state.
        goal: Joint positions, a named pose, a pose of the tool, or its position and direction.
        config: Options.
        limits: Joint limits; default: those of the scene's chain, scaled by the options.
        constraint: Axis constraint of the path; only the planner "rrt_connect" supports it.
        should_stop: Polled during the search; True ends it.

    Raises:
        ConstraintViolatedError: start or goal violates the constraint.
        StartInCollisionError, StartOutsideLimitsError: no valid state is near the start.
        GoalUnreachableError, GoalOutsideLimitsError, GoalInCollisionError: see there.
        MotionBudgetExceededError: no path was found.
        EffortLimitError: a joint cannot hold the start or goal at rest, or cannot be moved on the path.
        PlanningCancelledError: the search was cancelled.
        InputError: start, goal or options are invalid.
        UnknownNameError: there is no such planner, frame or named pose.
    """
    plan_config = config or PlanConfig()
    planner = make_planner(plan_config.planner)
    if constraint is not None and plan_config.planner != "rrt_connect":
        raise InputError(f"planner {plan_config.planner!r} supports no axis constraint", valid="rrt_connect")
    chain = scene.chain
    joint_limits = limits or JointLimits.from_chain(
        chain, velocity_scaling=plan_config.velocity_scaling, acceleration_scaling=plan_config.acceleration_scaling
    )
    rng = np.random.default_rng(plan_config.seed)
    start_state, start_repair = find_free_start(scene, start, plan_config.max_start_repair, rng)
    effort_limits = EffortLimits(scene.dynamics, plan_config.effort_scaling)
    effort_limits.check_can_hold(start_state, "at the start")
    goals = find_goal_states(scene, goal, start_state)
    can_hold = effort_limits.can_hold(goals)
    if not can_hold.any():
        effort_limits.check_can_hold(goals[0], "at the goal")
    goals = np.ascontiguousarray(goals[can_hold])
    if should_stop():
        raise PlanningCancelledError("the search was cancelled before it began")
    workspace = make_workspace(scene.collision_arrays)
    problem = MotionPlanningProblem(scene, workspace, start_state, goals, joint_weights(joint_limits))
    if constraint is None:
        planned_path = planner.solve(problem, rng, plan_config.max_states, should_stop)
        points = shorten_path(problem, planned_path.points, rng, plan_config.max_shortcuts)
        path = blend_path(problem, points)
    else:
        problem = select_feasible_goals(problem, constraint)
        planned_path = plan_constrained_path(problem, constraint, rng, plan_config.max_states, should_stop)
        points = shorten_constrained_path(problem, constraint, planned_path.points, rng, plan_config.max_shortcuts)
        path = blend_constrained_path(problem, constraint, points)
    if start_repair > 0.0:
        path = _prepend_lead_in(chain.as_positions(start), path)
    length = float(np.linalg.norm(np.diff(planned_path.points, axis=0), axis=1).sum())
    return MotionPlan(
        path.parameterize(joint_limits, effort_limits),
        points,
        start_repair,
        length,
        planned_path.n_states,
        int(workspace.n_checks[0]),
        plan_config.planner,
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
