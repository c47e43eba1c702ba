"""Step planning problems that several test files share, and the check of a plan for one of them."""

from __future__ import annotations

from functools import cache

import numpy as np

from roboyard.bringup.legged_robot import load_free_gait_model
from roboyard.grids.terrain import Terrain, generate_terrain
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.plan_checker import PlanCheckLimits, PlanCheckReport, check_plan
from roboyard.walking.free_gait.problem import PlanCostWeights, StepPlanningProblem
from roboyard.walking.free_gait.robot_model import FreeGaitModel
from roboyard.walking.free_gait.step_plan import StepPlan

START = (0.0, 0.0)


@cache
def robot_model_named(robot: str, failed_leg: str | None = None) -> FreeGaitModel:
    """Return the model of a robot of the package; tests do not change it."""
    return load_free_gait_model(robot, failed_leg=failed_leg)


@cache
def level_terrain() -> Terrain:
    """Return one square meter of level ground."""
    return generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))


def problem_on(
    terrain: Terrain,
    goal: tuple[float, float],
    robot: str = "akrobat",
    *,
    heading: float = 0.0,
    cost_weights: PlanCostWeights | None = None,
    failed_leg: str | None = None,
) -> StepPlanningProblem:
    """Return the problem from the origin to a goal [m] over a terrain, with a heading [rad]."""
    robot_model = robot_model_named(robot, failed_leg)
    foothold_map = FootholdMap.from_terrain(terrain, robot_model, [START, goal], heading=heading)
    return (
        StepPlanningProblem.create(robot_model, foothold_map, START, goal)
        if cost_weights is None
        else StepPlanningProblem.create(robot_model, foothold_map, START, goal, cost_weights)
    )


def check_plan_on(
    plan: StepPlan,
    problem: StepPlanningProblem,
    terrain: Terrain,
    *,
    rate: float = 1.0,
    period: float = PlanCheckLimits.period,
) -> PlanCheckReport:
    """Return the check of a plan every ``period`` [s], with joint speeds up to ``rate`` of their limits."""
    robot_model, (x, y) = problem.robot_model, problem.goal.tolist()
    check_limits = PlanCheckLimits(
        min_stability_margin=robot_model.min_stability_margin, max_speed_fraction=rate, period=period
    )
    return check_plan(plan, robot_model.legged_robot, robot_model.body_box, terrain.height_at, (x, y), check_limits)
