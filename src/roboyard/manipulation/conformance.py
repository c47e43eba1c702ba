"""Conformance tests of motion planners and time parameterizations, of this package and of others.

`check_motion_planner` tests what `MotionPlanner` promises, for an arm with four joints among walls.
`check_time_parameterization` tests what `TimeParameterization` promises, on random paths; `check_trajectory` tests a
single motion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from roboyard.control import JointSample, SampledMotion
from roboyard.description import Model, load_model
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.coal_checker import CoalChecker
from roboyard.manipulation.collision.collision_model import make_workspace
from roboyard.manipulation.collision.obstacles import Obstacle, box_obstacle
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import MotionBudgetExceededError, PlanningCancelledError, StartInCollisionError
from roboyard.manipulation.planning.axis_constraint import CHECK_SPACING, AxisConstraint
from roboyard.manipulation.planning.goals import JointGoal
from roboyard.manipulation.planning.plan import PlanConfig, joint_weights, plan_motion
from roboyard.manipulation.planning.planner import (
    STATES_PER_POLL,
    MotionPlanner,
    MotionPlanningProblem,
    PlannedPath,
    supports_axis_constraint,
)
from roboyard.manipulation.semantics.planning_groups import guess_groups
from roboyard.manipulation.time_parameterization import JointLimits, JointPath, TimeParameterization

_MAX_STATES: Final = 2000
"""Budget for problems that have a solution."""
_SMALL_BUDGET: Final = 600
"""Budget for problems without a solution."""
_CHECK_STEP: Final = 0.01
"""Largest change of a joint between two states that coal checks [rad]."""

_START: Final = (-0.8, 1.4, 0.3, -0.2)
_GOAL: Final = (0.8, 1.4, 0.3, -0.2)
_LOW_WALL: Final = box_obstacle("low wall", (0.7, 0.02, 0.35), (0.5, 0.0, 0.175))
"""Wall between start and goal, over which the arm reaches."""
_HIGH_WALL: Final = box_obstacle("high wall", (2.0, 0.02, 2.0), (1.06, 0.0, 1.0))
"""Wall that no motion of the joints within their limits avoids."""


def check_motion_planner(planner: MotionPlanner) -> None:
    """Test a motion planner against the contract of `MotionPlanner`.

    The planner moves an arm with four joints in free space, over a wall and to one of several goals; it is asked for a
    motion that does not exist, is cancelled, and plans for `plan_motion` from a start in collision.  Checked are the
    ends of each path, the joint limits, collisions by coal on the exact shapes, the class of each error, how often the
    planner polls whether it shall stop, that it changes neither scene nor problem, and that the same problem and seed
    give the same path to the last bit, whatever was planned in between.  A planner whose ``supports_axis_constraint``
    is true also keeps the tool upright on the way over the wall.

    Args:
        planner: The planner.

    Raises:
        InputError: The planner breaks its contract; the message says how.
        PlanningError: The planner finds no path where there is one.
    """
    _MotionPlannerCheck(planner).run_all()


_TIME_STEP: Final = 1e-3
"""Time between two sampled states of a motion [s]."""
_PATH_TOLERANCE: Final = 1e-6
"""Largest distance of a motion from its path, in joint space [rad or m]."""


def check_time_parameterization(parameterize: TimeParameterization) -> None:
    """Test a function that times joint paths against the contract of `TimeParameterization`.

    It times random paths of straight lines for one to six joints, each of which `check_trajectory` tests.  Also checked
    are that the function refuses the limits of other joints, changes none of its arguments, and returns the same motion
    for the same arguments.

    Args:
        parameterize: The function; its attribute ``limits_jerk`` is true if it keeps jerk limits.

    Raises:
        InputError: The function breaks its contract; the message says how.
    """
    name = getattr(parameterize, "__name__", type(parameterize).__name__)
    limits_jerk = bool(getattr(parameterize, "limits_jerk", False))
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 7))
        joints = tuple(f"joint_{k}" for k in range(n))
        limits = JointLimits(joints, *(rng.uniform(low, high, n) for low, high in ((0.3, 4), (0.3, 20), (5, 200))))
        path = JointPath.from_points(joints, rng.uniform(-2.0, 2.0, (int(rng.integers(2, 6)), n)))
        inputs = (path.segments, path.lengths, path.is_stop, limits.velocity, limits.acceleration, limits.jerk)
        before = [array.copy() for array in inputs]
        motion = parameterize(path, limits)
        if any(one.tobytes() != other.tobytes() for one, other in zip(before, inputs, strict=True)):
            _report_trajectory(name, "changes its arguments")
        check_trajectory(motion, path, limits, limits_jerk=limits_jerk, name=name)
        times = np.linspace(0.0, motion.duration, 50)
        if parameterize(path, limits).sample_at(times).position.tobytes() != motion.sample_at(times).position.tobytes():
            _report_trajectory(name, "returns another motion for the same arguments")
        others = JointLimits((*joints[:-1], "other"), limits.velocity, limits.acceleration, limits.jerk)
        try:
            parameterize(path, others)
        except InputError:
            continue
        _report_trajectory(name, "accepts the limits of other joints")


def check_trajectory(
    motion: SampledMotion, path: JointPath, limits: JointLimits, *, limits_jerk: bool = False, name: str | None = None
) -> None:
    """Test whether a motion follows a path of straight lines from rest to rest within all limits.

    A motion that has a method ``stop_from`` must be able to stop on the path from any moment.

    Args:
        motion: The motion.
        path: Path of straight lines.
        limits: Joint limits.
        limits_jerk: Whether the jerk is limited, too.
        name: Name of the motion, for the error; default: that of its class.

    Raises:
        InputError: The motion breaks the contract; the message says how.
    """
    label = name or type(motion).__name__
    duration = motion.duration
    if not (math.isfinite(duration) and duration > 0.0):
        _report_trajectory(label, f"takes {duration} s")
    samples = _sample_evenly(motion, 0.0)
    outside = motion.sample_at([-1.0, 0.0, duration, duration + 1.0])
    ends = np.array([path.segments[0, 0], path.segments[-1, 0] + path.lengths[-1] * path.segments[-1, 1]])
    if np.abs(outside.position - ends[[0, 0, 1, 1]]).max() > _PATH_TOLERANCE:
        _report_trajectory(label, "does not lead from the start of the path to its end")
    if np.abs(outside.velocity[[0, 2, 3]]).max() > 0.0 or np.abs(samples.velocity[[0, -1]]).max() > 1e-9:
        _report_trajectory(label, "is not at rest at its start and end")
    if limits.utilization(samples.velocity, samples.acceleration) > 1.0 + 1e-6:
        _report_trajectory(label, "exceeds a limit of velocity or acceleration")
    change = np.abs(np.diff(samples.acceleration, axis=0))
    if limits_jerk and (change > limits.jerk * _TIME_STEP * (1.0 + 1e-6) + 1e-9).any():
        _report_trajectory(label, "exceeds a limit of jerk")
    _check_on_path(label, samples.position, path)
    steps = np.diff(samples.position, axis=0)
    mean = 0.5 * (samples.velocity[1:] + samples.velocity[:-1]) * (duration / (len(samples.position) - 1))
    if np.abs(steps - mean).max() > 0.5 * limits.acceleration.max() * _TIME_STEP**2 + 1e-9:
        _report_trajectory(label, "states velocities that are not the derivatives of its positions")
    if hasattr(motion, "stop_from"):
        _check_stops(label, motion, path, limits)


def _sample_evenly(motion: SampledMotion, start: float) -> JointSample:
    return motion.sample_at(np.linspace(start, motion.duration, max(3, math.ceil(motion.duration / _TIME_STEP) + 1)))


def _check_on_path(name: str, positions: Array, path: JointPath) -> None:
    """Check that positions (k, n) lie on a path, in its order."""
    starts = np.concatenate([[0.0], np.cumsum(path.lengths)])[:-1]
    progress = -_PATH_TOLERANCE
    for q in positions:
        along = np.einsum("ij,ij->i", q - path.segments[:, 0], path.segments[:, 1])
        along = np.clip(along, 0.0, path.lengths)
        nearest = path.segments[:, 0] + along[:, None] * path.segments[:, 1]
        distances = np.abs(q - nearest).max(axis=1)
        is_on_path = distances <= _PATH_TOLERANCE
        if not is_on_path.any():
            _report_trajectory(name, f"leaves the path by {distances.min():.2g}")
        lengths = (starts + along)[is_on_path]
        lengths = lengths[lengths >= progress - _PATH_TOLERANCE]  # a path may cross itself
        if not len(lengths):
            _report_trajectory(name, "moves backwards on the path")
        progress = float(lengths[0])


def _check_stops(name: str, motion: Any, path: JointPath, limits: JointLimits) -> None:
    for fraction in (0.0, 0.2, 0.5, 0.9, 1.0):
        time = fraction * motion.duration
        stop = motion.stop_from(time)
        state, samples = motion.sample(time), _sample_evenly(stop, 0.0)
        if np.abs(samples.position[0] - state.position).max() > _PATH_TOLERANCE:
            _report_trajectory(name, "begins a stop at another state")
        if stop.duration > motion.duration - time + _PATH_TOLERANCE:
            _report_trajectory(name, "takes longer to stop than to arrive")
        if np.abs(stop.sample(stop.duration).velocity).max() > 0.0:
            _report_trajectory(name, "is not at rest at the end of a stop")
        if limits.utilization(samples.velocity[:-1], samples.acceleration[:-1]) > 1.0 + 1e-6:
            _report_trajectory(name, "exceeds a limit while it stops")
        _check_on_path(name, samples.position, path)


def _report_trajectory(name: str, violation: str) -> NoReturn:
    raise InputError(violation, location=name, valid="the contract of TimeParameterization")


class _MotionPlannerCheck:
    def __init__(self, planner: MotionPlanner) -> None:
        self._planner = planner
        self._start, self._goal = np.array(_START), np.array(_GOAL)

    def run_all(self) -> None:
        """Check every promise in turn."""
        first = self._plan(_make_scene(_LOW_WALL), [self._goal], seed=1)
        self._plan(_make_scene(), [self._goal])
        self._plan(_make_scene(), [self._start])
        self._plan(_make_scene(_LOW_WALL), [np.array((1.2, 1.0, -1.0, 0.5)), self._goal])
        self._check_unreachable_goal()
        self._check_one_reachable_goal()
        self._check_cancellation()
        self._check_start_in_collision()
        if supports_axis_constraint(self._planner):
            self._check_axis_constraint()
        repeated = self._plan(_make_scene(_LOW_WALL), [self._goal], seed=1)
        if repeated.points.tobytes() != first.points.tobytes():
            self._report("returns another path for the same problem and seed after other calls")

    def _check_unreachable_goal(self) -> None:
        problem = _make_problem(_make_scene(_HIGH_WALL), self._start, [self._goal])
        polls = 0

        def count_poll() -> bool:
            nonlocal polls
            polls += 1
            return False

        try:
            self._planner.solve(problem, np.random.default_rng(0), _SMALL_BUDGET, count_poll)
        except MotionBudgetExceededError:
            if polls < _SMALL_BUDGET // STATES_PER_POLL - 1:
                self._report(f"polls {polls} times whether it shall stop while it uses a budget of {_SMALL_BUDGET}")
            return
        except RoboyardError as raised:
            self._report(f"raises {type(raised).__name__} instead of MotionBudgetExceededError for an unreachable goal")
        self._report("finds a path where there is none")

    def _check_one_reachable_goal(self) -> None:
        reachable = self._start + np.array((-0.3, -0.2, 0.2, 0.1))
        path = self._plan(_make_scene(_HIGH_WALL), [self._goal, reachable])
        if not np.array_equal(path.points[-1], reachable):
            self._report("finds a path where there is none")

    def _check_cancellation(self) -> None:
        problem = _make_problem(_make_scene(_HIGH_WALL), self._start, [self._goal])
        try:
            self._planner.solve(problem, np.random.default_rng(0), _SMALL_BUDGET, lambda: True)
        except PlanningCancelledError:
            return
        except RoboyardError as raised:
            self._report(f"raises {type(raised).__name__} instead of PlanningCancelledError when it is cancelled")
        self._report("finds a path although it is cancelled")

    def _check_start_in_collision(self) -> None:
        start = np.array((-0.8, 1.4, 0.3, -0.2))
        tip = _make_scene().chain.forward(start)[:3, 3]
        obstacle = box_obstacle("box", (0.1, 0.1, 0.1), tip + np.array((0.0, 0.0, -0.065)))
        scene = _make_scene(obstacle)
        if scene.is_free(start):
            raise InputError("the start of the test is free", location="check_motion_planner")
        plan = plan_motion(scene, start, JointGoal(_GOAL), PlanConfig(max_states=_MAX_STATES), planner=self._planner)
        if not plan.start_repair > 0.0 or np.abs(plan.trajectory.start - start).max() > 1e-9:
            self._report("does not begin a motion at a start that had to be repaired")
        self._check_points(scene, plan.points, plan.points[0], [np.array(_GOAL)])
        try:
            plan_motion(scene, start, JointGoal(_GOAL), PlanConfig(max_start_repair=0.0), planner=self._planner)
        except StartInCollisionError:
            return
        self._report("plans from a start in collision that must not be repaired")

    def _check_axis_constraint(self) -> None:
        scene = _make_scene(_LOW_WALL)
        upright = scene.chain.forward(self._start)[:3, :3].T @ (0.0, 0.0, 1.0)
        constraint = AxisConstraint(axis=(float(upright[0]), float(upright[1]), float(upright[2])), tolerance=0.2)
        path = self._plan(scene, [self._goal], constraint=constraint)
        for one, other in pairwise(path.points):
            count = max(2, math.ceil(float(np.linalg.norm(other - one)) / CHECK_SPACING) + 1)
            tilt = constraint.tilt_angle(scene.chain, np.linspace(one, other, count)).max()
            if tilt > constraint.tolerance + 1e-9:
                self._report(f"tilts the tool by {tilt:.3f} rad where the constraint permits {constraint.tolerance:g}")

    def _plan(
        self,
        scene: PlanningScene,
        goals: Sequence[Array],
        *,
        seed: int = 0,
        constraint: AxisConstraint | None = None,
    ) -> PlannedPath:
        """Plan a path, and check it."""
        paths = []
        for _ in range(2):
            problem = _make_problem(scene, self._start, goals, constraint)
            before = _copy_inputs(problem)
            path: object = self._planner.solve(problem, np.random.default_rng(seed), _MAX_STATES, lambda: False)
            if not isinstance(path, PlannedPath):
                self._report(f"returns {type(path).__name__} instead of PlannedPath")
            if any(one.tobytes() != other.tobytes() for one, other in zip(before, _copy_inputs(problem), strict=True)):
                self._report("changes the problem or the scene")
            paths.append(path)
        self._check_points(scene, paths[0].points, self._start, goals)
        if paths[0].points.tobytes() != paths[1].points.tobytes():
            self._report("returns another path for the same problem and seed")
        return paths[0]

    def _check_points(self, scene: PlanningScene, points: Array, start: Array, goals: Sequence[Array]) -> None:
        if points.ndim != 2 or points.shape[1] != scene.chain.dof or not len(points) or not np.isfinite(points).all():
            self._report(f"returns points of shape {np.shape(points)} instead of (k, {scene.chain.dof}), finite")
        if not np.array_equal(points[0], start):
            self._report("returns a path that does not begin at the start")
        if not any(np.array_equal(points[-1], goal) for goal in goals):
            self._report("returns a path that does not end at a goal")
        low, high = scene.chain.lower, scene.chain.upper
        if ((points < low) | (points > high)).any():
            self._report("returns a path beyond the joint limits")
        checker = CoalChecker(scene)
        for one, other in pairwise(points):
            count = max(2, math.ceil(float(np.abs(other - one).max()) / _CHECK_STEP) + 1)
            for q in np.linspace(one, other, count):
                pair = checker.find_contact(q)
                if pair is not None:
                    self._report(f"returns a path on which {pair[0]} touches {pair[1]}")

    def _report(self, violation: str) -> NoReturn:
        raise InputError(violation, location=type(self._planner).__name__, valid="the contract of MotionPlanner")


def _make_problem(
    scene: PlanningScene, start: Array, goals: Sequence[Array], constraint: AxisConstraint | None = None
) -> MotionPlanningProblem:
    weights = joint_weights(JointLimits.from_chain(scene.chain))
    workspace = make_workspace(scene.collision_arrays)
    return MotionPlanningProblem(scene, workspace, start.copy(), np.array(goals), weights, constraint)


def _copy_inputs(problem: MotionPlanningProblem) -> list[NDArray[Any]]:
    """Return copies of all arrays that a planner must not change."""
    arrays: list[NDArray[Any]] = [problem.start, problem.goals, problem.weights]
    collision = problem.scene.collision_arrays
    for part in (collision, collision.robot_shapes, collision.world_shapes, collision.world_tree, collision.chain):
        arrays += [array for array in part if isinstance(array, np.ndarray)]
    return [array.copy() for array in arrays]


def _make_scene(*obstacles: Obstacle) -> PlanningScene:
    return PlanningScene.create(guess_groups(make_test_arm()), obstacles=obstacles)


_JOINTS: Final = (
    ("yaw", "0 0 1", "base", "column", "0 0 0", -2.0, 2.0),
    ("shoulder", "0 1 0", "column", "upper_arm", "0 0 0.3", 0.35, 2.0),
    ("elbow", "0 1 0", "upper_arm", "forearm", "0 0 0.35", -2.0, 2.0),
    ("wrist", "0 1 0", "forearm", "tool", "0 0 0.3", -2.0, 2.0),
)
_LINK_LENGTHS: Final = {"base": 0.02, "column": 0.3, "upper_arm": 0.35, "forearm": 0.3, "tool": 0.15}


@lru_cache(maxsize=1)
def make_test_arm() -> Model:
    """Return an arm for conformance tests: a column that rotates, and three parallel joints above it."""
    links = "".join(
        f'<link name="{name}"><inertial><mass value="1"/><origin xyz="0 0 {length / 2}"/>'
        '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
        f'<collision><origin xyz="0 0 {length / 2}"/><geometry><cylinder radius="0.025" length="{length}"/>'
        "</geometry></collision></link>"
        for name, length in _LINK_LENGTHS.items()
    )
    joints = "".join(
        f'<joint name="{name}" type="revolute"><origin xyz="{origin}"/><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="{axis}"/>'
        f'<limit lower="{lower}" upper="{upper}" effort="100" velocity="2"/></joint>'
        for name, axis, parent, child, origin, lower, upper in _JOINTS
    )
    return load_model(f'<robot name="test_arm">{links}{joints}</robot>')
