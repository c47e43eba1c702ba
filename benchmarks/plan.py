"""Planning between the compartments of a shelf, beside OMPL with coal; what coal says to motions and random states.

The shelf has 2 × 2 compartments, boards of 2 cm, and is as large as the arm's reach asks for.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from roboyard.bringup.catalog import ROBOTS
from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import RoboyardError
from roboyard.kinematics.ik import PointingTarget
from roboyard.manipulation import PlanConfig, SemanticDescription, box_obstacle, plan_motion
from roboyard.manipulation.collision import CoalChecker, Obstacle
from roboyard.manipulation.collision.coal_checker import recheck_motion
from roboyard.manipulation.collision.collision_model import make_workspace
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import PlanningError
from roboyard.manipulation.planning import MotionPlanningProblem, PointingGoal, find_goal_states
from roboyard.manipulation.planning.motion_planners import RrtConnectPlanner
from roboyard.manipulation.planning.plan import joint_weights
from roboyard.manipulation.time_parameterization import JointLimits

ARMS = ("scitos_arm", "iisy", "youbot_arm")
BOARD = 0.02
BUDGET = 20_000
PEER_PROBLEMS = 10
PEER_BUDGET = 3_000


@dataclass
class Shelf:
    """Four compartments in front of an arm, in proportion to its reach."""

    reach: float
    axis: np.ndarray  # (3,) a point of the arm's first axis; the height is the second one's
    boxes: list[Obstacle] = field(default_factory=list)

    def __post_init__(self) -> None:
        r, t = self.reach, BOARD
        self.wide, self.high, self.deep = 0.42 * r, 0.37 * r, 0.3 * r
        self.front, self.floor = 0.6 * r, self.axis[2] - 0.25 * r
        across, up = 2 * self.wide + 3 * t, 2 * self.high + 3 * t
        x, side = self.axis[0] + self.front + self.deep / 2, self.axis[1]
        for k in range(3):
            z = self.floor + t / 2 + k * (self.high + t)
            self.boxes.append(box_obstacle(f"board {k}", (self.deep, across, t), (x, side, z)))
            y = side + (k - 1) * (self.wide + t)
            self.boxes.append(box_obstacle(f"side {k}", (self.deep, t, up), (x, y, self.floor + up / 2)))
        back = (x + self.deep / 2 + t / 2, side, self.floor + up / 2)
        self.boxes.append(box_obstacle("back", (t, across, up), back))

    def goal(self, compartment: int, tool_axis: tuple[float, float, float], rng: np.random.Generator) -> PointingGoal:
        """A place inside, approached from the arm's axis."""
        side, level = (-1, 1)[compartment % 2], compartment // 2
        x = self.front + self.deep * rng.uniform(0.15, 0.6)  # from the axis
        y = side * (self.wide + BOARD) / 2 + self.wide * rng.uniform(-0.25, 0.25)
        z = self.floor + BOARD + level * (self.high + BOARD) + self.high * rng.uniform(0.3, 0.7)
        turn, lift = math.atan2(y, x), rng.uniform(-0.5, 0.5)
        axis = (math.cos(turn) * math.cos(lift), math.sin(turn) * math.cos(lift), math.sin(lift))
        return PointingGoal(PointingTarget((x + self.axis[0], y + self.axis[1], z), axis, tool_axis))


def made(groups: SemanticDescription) -> tuple[PlanningScene, Shelf]:
    group = groups.group()
    tool = "fingertips" if "fingertips" in group.tools else None
    bare = PlanningScene.create(groups, group.name, tool=tool)
    chain = bare.chain
    tips = chain.forward(chain.sample_positions(np.random.default_rng(0), 4000))[:, :3, 3]
    frames = chain.frames(np.clip(np.zeros(chain.dof), chain.lower, chain.upper))
    axis = np.array([*frames[1, :2, 3], frames[min(2, len(chain.moving_joints)), 2, 3]])
    shelf = Shelf(float(np.linalg.norm(tips - axis, axis=1).max()), axis)
    ground = box_obstacle("ground", (6.0, 6.0, 0.02), (0.0, 0.0, -0.012))
    return bare.with_obstacles([*shelf.boxes, ground]), shelf


def problems(scene: PlanningScene, shelf: Shelf, count: int, seed: int) -> list[tuple[np.ndarray, PointingGoal]]:
    """Starts in a compartment and goals in another one, both possible."""
    rng, found, middle = np.random.default_rng(seed), [], (scene.chain.lower + scene.chain.upper) / 2.0
    middle = np.where(np.isfinite(middle), middle, 0.0)
    axis = scene.group.tool_axis
    for _ in range(40 * count):
        if len(found) == count:
            break
        one, other = rng.choice(4, 2, replace=False)
        try:
            start = find_goal_states(scene, shelf.goal(int(one), axis, rng), middle)[0]
            goal = shelf.goal(int(other), axis, rng)
            find_goal_states(scene, goal, start)
        except PlanningError:
            continue
        found.append((start, goal))
    return found


def ms(seconds: list[float], share: float = 50.0) -> float:
    return round(1e3 * float(np.percentile(seconds, share)), 2)


def peer_times(
    scene: PlanningScene, asked: list[tuple[np.ndarray, PointingGoal]], seed: int
) -> tuple[list[float], int]:
    """OMPL's RRTConnect, every state looked at by coal 0.02 rad apart; how long it took, and how many it solved."""
    from ompl import base, geometric, util

    util.setLogLevel(util.LOG_NONE)
    util.RNG.setSeed(seed + 1)
    checker, chain = CoalChecker(scene), scene.chain
    times, solved = [], 0
    for start, goal in asked:
        goals = find_goal_states(scene, goal, start)
        space = base.RealVectorStateSpace(chain.dof)
        bounds = base.RealVectorBounds(chain.dof)
        for k in range(chain.dof):
            bounds.setLow(k, float(chain.lower[k]))
            bounds.setHigh(k, float(chain.upper[k]))
        space.setBounds(bounds)
        setup = geometric.SimpleSetup(space)
        information = setup.getSpaceInformation()
        setup.setStateValidityChecker(lambda s: checker.find_contact([s[k] for k in range(chain.dof)]) is None)
        information.setStateValidityCheckingResolution(0.02 / space.getMaximumExtent())

        def state(q: np.ndarray, space: Any = space) -> Any:
            made = space.allocState()
            for k, value in enumerate(q.tolist()):
                made[k] = value
            return made

        setup.setStartState(state(start))
        several = base.GoalStates(information)
        for q in goals:
            several.addState(state(q))
        setup.setGoal(several)
        setup.setPlanner(geometric.RRTConnect(information))
        rounds = iter(range(PEER_BUDGET))
        begin = time.perf_counter()
        setup.solve(base.PlannerTerminationCondition(lambda rounds=rounds: next(rounds, None) is None))
        times.append(time.perf_counter() - begin)
        solved += bool(setup.haveExactSolutionPath())
    return times, solved


def measured(
    name: str, groups: SemanticDescription, count: int, states: int, seed: int
) -> tuple[list[dict[str, Any]], list[str]]:
    scene, shelf = made(groups)
    asked = problems(scene, shelf, count, seed)
    if len(asked) < count:
        return [], [f"{name}: only {len(asked)} of {count} problems exist in its shelf"]
    limits, checker = JointLimits.from_chain(scene.chain), CoalChecker(scene)
    plan_motion(scene, *asked[0])  # compile
    first, whole, looks, spent, failures, contacts, seen = [], [], 0, 0.0, [], 0, 0
    for number, (start, goal) in enumerate(asked):
        goals = find_goal_states(scene, goal, start)
        work = make_workspace(scene.collision_arrays)
        problem = MotionPlanningProblem(scene, work, start, goals, joint_weights(limits))
        draws = seed + number  # with the same for all, luck with one row of states would be luck with every problem
        begin = time.perf_counter()
        try:
            RrtConnectPlanner().solve(problem, np.random.default_rng(draws), BUDGET, lambda: False)
            first.append(time.perf_counter() - begin)
            looks, spent = looks + int(work.n_checks[0]), spent + first[-1]
            begin = time.perf_counter()
            found = plan_motion(scene, start, goal, PlanConfig(seed=draws, max_states=BUDGET))
            whole.append(time.perf_counter() - begin)
        except RoboyardError as error:
            failures.append(f"{name}, problem {number}: {error}")
            continue
        second = recheck_motion(checker, found.trajectory)
        contacts, seen = contacts + len(second.contacts), seen + second.n_states
    drawn = scene.chain.sample_positions(np.random.default_rng(seed), states)
    begin = time.perf_counter()
    ours = scene.find_contacts(drawn)
    each = (time.perf_counter() - begin) / states
    begin = time.perf_counter()
    theirs = [checker.find_contact(q) for q in drawn]
    coal_each = (time.perf_counter() - begin) / states
    false_free = sum(mine is None and other is not None for mine, other in zip(ours, theirs, strict=True))
    lost = sum(mine is not None and other is None for mine, other in zip(ours, theirs, strict=True))
    peer, missing, solved = None, None, 0
    try:
        peer, solved = peer_times(scene, asked[:PEER_PROBLEMS], seed)
    except ImportError as error:
        missing = str(error)
    ratio = None if peer is None else round(float(np.median(peer)) / float(np.median(first)), 1)
    figures = [
        {"name": f"{name}: solved", "value": round(100.0 * len(whole) / count, 2), "unit": "%", "target": ">= 100"},
        {
            "name": f"{name}: first way, median", "value": ms(first), "unit": "ms", "target": "<= 2",
            "peer": "OMPL RRTConnect + coal, in Python", "peer_value": None if peer is None else ms(peer),
            "ratio": ratio, "missing": missing,
        },
        {"name": f"{name}: first way, 95 of 100", "value": ms(first, 95.0), "unit": "ms"},
        {"name": f"{name}: short, round, timed, with IK, median", "value": ms(whole), "unit": "ms", "target": "<= 20"},
        {"name": f"{name}: states that touch in coal's recheck", "value": contacts, "unit": "", "target": "<= 0"},
        {"name": f"{name}: random states called free that touch", "value": false_free, "unit": "", "target": "<= 0"},
        {
            "name": f"{name}: a random state, looked at", "value": round(1e6 * each, 2), "unit": "µs",
            "peer": "coal, in Python", "peer_value": round(1e6 * coal_each, 1), "ratio": round(coal_each / each, 1),
        },
    ]  # fmt: skip
    details = [
        f"{name}: {seen} states rechecked; {1e6 * spent / looks:.2f} µs for a state on the way; of {states} random "
        f"states {lost} are called touching that coal calls free; the peer solved {solved} of {len(peer or ())}"
    ]
    return figures, [*details, *failures]


def run(nightly: bool, runs: int | None = None, seed: int | None = None, robot: str | None = None) -> dict[str, Any]:
    """Motions between the compartments of a shelf."""
    count = runs if runs is not None else 400 if nightly else 100
    states = 100_000 if nightly else 5_000
    figures, details = [], []
    for name in [robot] if robot is not None else [arm for arm in ARMS if arm in ROBOTS]:
        more, lines = measured(name.rsplit("/", 1)[-1], load_joint_groups(name), count, states, seed or 0)
        figures += more
        details += lines
    return {"figures": figures, "details": details}
