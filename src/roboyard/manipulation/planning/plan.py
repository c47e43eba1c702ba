"""Planning an arm's motion: from where it stands to a goal, touching nothing, within the limits of its joints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.bodies import make_work
from roboyard.manipulation.planning.choice import planner_named
from roboyard.manipulation.planning.constraints import KeepAxis
from roboyard.manipulation.planning.errors import Cancelled
from roboyard.manipulation.planning.goals import Goal, goal_states
from roboyard.manipulation.planning.keeping import keeping_goals, keeping_rounded, keeping_shortened, keeping_way
from roboyard.manipulation.planning.problem import Problem, Stop
from roboyard.manipulation.planning.shortening import round_corners, shorten
from roboyard.manipulation.planning.starting import free_start
from roboyard.manipulation.scene import PlanningScene
from roboyard.manipulation.timing import EffortLimits, GivenTimes, JointLimits, Path, Trajectory

LARGEST_ARC: Final = 0.6
"""A corner's arc begins at most so far before it, in the space of the joints."""


@dataclass(frozen=True)
class PlanSettings:
    """How a motion is looked for.

    Attributes:
        planner: Name of who looks: "connect", or one of OMPL's as "ompl:RRTConnect".
        seed: Of what is drawn; the same one gives the same plan.
        budget: How many states are drawn before giving up.
        shortcuts: How many cuts are tried to make the way shorter; 0 leaves it as it was found.
        speed: Share of the joints' velocities that is used.
        acceleration: Share of their accelerations.
        effort: Share of their efforts, see `EffortLimits`.
        repair: A start that touches something, or is beyond limits, may be moved by so much to one that does not, the
            greatest change of a joint [rad or m].
    """

    planner: str = "connect"
    seed: int = 0
    budget: int = 20_000
    shortcuts: int = 100
    speed: float = 1.0
    acceleration: float = 1.0
    effort: float = 0.95
    repair: float = 0.1

    def __post_init__(self) -> None:
        for name, value, low in (("budget", self.budget, 1), ("shortcuts", self.shortcuts, 0), ("seed", self.seed, 0)):
            if value < low:
                raise InputError(f"{name} {value}", location="plan settings", valid=f"{low} or more")
        if not 0.0 <= self.repair <= math.pi:
            raise InputError(f"repair {self.repair}", location="plan settings", valid="0 to pi")


@dataclass(frozen=True, eq=False)
class Plan:
    """A motion.

    Attributes:
        trajectory: Where the joints are at any moment.
        points: (k, n) corners of the way, before they were rounded.
        repaired: How far the start had to be moved to touch nothing, the greatest change of a joint [rad or m]; the
            trajectory begins where the arm stands, and goes there first.
        found_length: Of the way as it was found, in the space of the joints.
        states: How many states the search kept.
        looks: At how many states collisions were looked for.
        planner: Who looked.
    """

    trajectory: Trajectory | GivenTimes
    points: Array = field(repr=False)
    repaired: float
    found_length: float
    states: int
    looks: int
    planner: str

    @property
    def path(self) -> Path:
        """Where it goes, without time."""
        return self.trajectory.path

    @property
    def goal(self) -> Array:
        """(n,) where it ends."""
        return np.array(self.points[-1])


def _never() -> bool:
    return False


def plan(
    scene: PlanningScene,
    start: ArrayLike,
    goal: Goal,
    settings: PlanSettings | None = None,
    *,
    limits: JointLimits | None = None,
    keep: KeepAxis | None = None,
    cancelled: Stop = _never,
) -> Plan:
    """A motion that touches nothing, short, with round corners, in time.

    Args:
        scene: The arm and what must not be touched.
        start: (n,) where it stands.
        goal: Where it shall be: joints, a named pose, a pose of the tool, or its place and direction.
        settings: How to look.
        limits: Of the joints; those of the scene's chain unless given, of which the settings' shares are used.
        keep: What shall hold all along the way; the planner "connect" can do that.
        cancelled: Asked now and then; true ends the search.

    Raises:
        ConstraintBroken: start or goal do not keep what shall be kept.
        StartInCollision, StartOutsideLimits: and nothing free is near.
        GoalUnreachable, GoalOutsideLimits, GoalInCollision: see there.
        BudgetSpent: no way was found.
        EffortError: a joint cannot hold still at start or goal, or not be moved on the way.
        Cancelled: somebody ended it.
        InputError: start, goal or settings are none.
        UnknownNameError: there is no such planner, frame or named pose.
    """
    asked = settings or PlanSettings()
    planner = planner_named(asked.planner)
    if keep is not None and asked.planner != "connect":
        raise InputError(f"planner {asked.planner!r} keeps no axis", valid="connect")
    chain = scene.chain
    kept = limits or JointLimits.of(chain, speed=asked.speed, acceleration=asked.acceleration)
    rng = np.random.default_rng(asked.seed)
    begin, repaired = free_start(scene, start, asked.repair, rng)
    efforts = EffortLimits(scene.dynamics, asked.effort)
    efforts.check_held(begin, "at the start")
    goals = goal_states(scene, goal, begin)
    held = efforts.holds(goals)
    if not held.any():
        efforts.check_held(goals[0], "at the goal")
    goals = np.ascontiguousarray(goals[held])
    if cancelled():
        raise Cancelled("the search was ended before it began")
    work = make_work(scene.bodies)
    problem = Problem(scene, work, begin, goals, weights_of(kept))
    if keep is None:
        found = planner.solve(problem, rng, asked.budget, cancelled)
        points = shortened(problem, found.points, rng, asked.shortcuts)
        path = rounded(problem, points)
    else:
        problem = keeping_goals(problem, keep)
        found = keeping_way(problem, keep, rng, asked.budget, cancelled)
        points = keeping_shortened(problem, keep, found.points, rng, asked.shortcuts)
        path = keeping_rounded(problem, keep, points)
    if repaired > 0.0:
        path = _led_in(chain.as_positions(start), path)
    length = float(np.linalg.norm(np.diff(found.points, axis=0), axis=1).sum())
    return Plan(path.timed(kept, efforts), points, repaired, length, found.states, int(work.looks[0]), asked.planner)


def weights_of(limits: JointLimits) -> Array:
    """(n,) weights of the joints in distances: what takes long counts much; the slowest counts 1."""
    return np.asarray(limits.velocity.min() / limits.velocity)


def shortened(problem: Problem, points: Array, rng: np.random.Generator, tries: int) -> Array:
    """A way (k, n) with corners cut."""
    if tries == 0 or len(points) < 3:
        return points
    room = np.zeros((len(points) + 2 * tries + 4, points.shape[1]))
    room[: len(points)] = points
    bodies = problem.scene.bodies
    count = shorten(bodies, problem.work, room, len(points), problem.weights, rng, tries, max(tries // 3, 10))
    kept = [room[0]]
    for state in room[1:count]:
        if np.abs(state - kept[-1]).max() > 1e-9:
            kept.append(state)
    return np.array(kept)


def rounded(problem: Problem, points: Array) -> Path:
    """The way (k, n) with arcs in its corners."""
    joints = problem.scene.chain.joints
    pieces, lengths = np.zeros((0, 3, len(joints))), np.zeros(0)
    if len(points) > 1:
        pieces, lengths = round_corners(problem.scene.bodies, problem.work, np.ascontiguousarray(points), LARGEST_ARC)
    if not len(pieces):  # the arm is there already
        return Path(joints, np.array([[points[0], 0 * points[0], 0 * points[0]]]), np.zeros(1), np.array([True, True]))
    return Path.of_pieces(joints, pieces, lengths)


def _led_in(start: Array, path: Path) -> Path:
    """A path with a straight line before it."""
    line = Path.straight(path.joints, np.stack([start, path.pieces[0, 0]]))
    return Path.of_pieces(
        path.joints, np.concatenate([line.pieces, path.pieces]), np.concatenate([line.lengths, path.lengths])
    )
