"""Problems of step planning that several test files share, and the checker's verdict on a plan for one."""

from __future__ import annotations

from functools import cache

import numpy as np

from roboyard.bringup.legged_robot import load_free_gait_model
from roboyard.grids.terrain import Terrain, generate_terrain
from roboyard.walking.steps.checker import Limits, Verdict, check_plan
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.steps.problem import Problem, Rating
from roboyard.walking.steps.rig import Rig

START = (0.0, 0.0)


@cache
def rig_of(robot: str, failed_leg: str | None = None) -> Rig:
    """Legs and body of a robot of the package; nobody changes them."""
    return load_free_gait_model(robot, failed_leg=failed_leg)


@cache
def level_terrain() -> Terrain:
    """One square metre of level ground."""
    return generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))


def problem_on(
    terrain: Terrain,
    goal: tuple[float, float],
    robot: str = "akrobat",
    *,
    heading: float = 0.0,
    rating: Rating | None = None,
    failed_leg: str | None = None,
) -> Problem:
    """From the origin to a goal [m] over a terrain, with a heading [rad]."""
    rig = rig_of(robot, failed_leg)
    ground = Ground.of_terrain(terrain, rig, [START, goal], heading=heading)
    return Problem.of(rig, ground, START, goal) if rating is None else Problem.of(rig, ground, START, goal, rating)


def verdict_of(
    plan: StepPlan, problem: Problem, terrain: Terrain, *, rate: float = 1.0, period: float = Limits.period
) -> Verdict:
    """What the checker says of a plan; ``rate`` scales the joint speeds that it allows, every ``period`` [s]."""
    rig, (x, y) = problem.rig, problem.goal.tolist()
    limits = Limits(margin=rig.margin, rate=rate, period=period)
    return check_plan(plan, rig.walker, rig.body, terrain.height_at, (x, y), limits)
