"""Evaluation of plans: joint work and leg-loss cost against independent code, cost weights, and failed legs."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.walking.free_gait.step_planning_problems import check_plan_on, problem_on, robot_model_named

from roboyard.bringup.legged_robot import load_free_gait_model
from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.terrain import Terrain, generate_terrain
from roboyard.walking.free_gait.plan_analysis import joint_work, leg_loss_margins
from roboyard.walking.free_gait.plan_evaluation import (
    distribute_weight_over_stance,
    leg_work,
    limb_heights,
    min_margin_after_leg_loss,
)
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import PlanCostWeights, StepPlanningProblem
from roboyard.walking.free_gait.step_plan import StepPlan

JOINT_WORK_ONLY, LEG_LOSS_ONLY = PlanCostWeights(0.0, 0.0, joint_work=1.0), PlanCostWeights(0.0, 0.0, leg_loss=1.0)


@cache
def make_terrain(kind: str) -> Terrain:
    return generate_terrain(kind, (0.7, 2.4), np.random.default_rng(4), corner=(0.3, -1.2), height_range=0.06)


def make_problem(
    weights: PlanCostWeights, kind: str = "flat", robot: str = "akrobat", failed_leg: str | None = None
) -> StepPlanningProblem:
    return problem_on(make_terrain(kind), (0.6, 0.05), robot, cost_weights=weights, failed_leg=failed_leg)


@cache
def planned(weights: PlanCostWeights, kind: str = "flat", robot: str = "akrobat", seed: int = 0) -> StepPlan:
    return plan_steps(make_problem(weights, kind, robot), "random-sampling", budget=20_000, seed=seed)


def work_cost(plan: StepPlan, robot: str = "akrobat") -> float:
    """Return the time that lifting the robot by the height of the work would take [s]."""
    robot_model = robot_model_named(robot)
    return (
        joint_work(plan, robot_model)
        / robot_model.weight
        / make_problem(PlanCostWeights(), robot=robot).context.parameters.body_speed
    )


def leg_loss_cost(plan: StepPlan, robot: str = "akrobat") -> float:
    """Return the leg-loss cost of a plan from its margins [s]."""
    _, margins = leg_loss_margins(plan)
    return (
        float((1.0 - np.clip(margins / (2.5 * robot_model_named(robot).min_stability_margin), 0.0, 1.0)).mean())
        * plan.duration
    )


def test_limb_heights_agree_with_the_description() -> None:
    rng = np.random.default_rng(0)
    for robot in ("akrobat", "lauron"):
        legged_robot, leg_arrays = (
            robot_model_named(robot).legged_robot,
            make_problem(PlanCostWeights(), robot=robot).leg_arrays,
        )
        q = rng.uniform(legged_robot.lower, legged_robot.upper)
        for leg, one in enumerate(legged_robot.legs):
            frames = one.chain.frames(q[leg])
            knee, foot = limb_heights(leg_arrays, leg, *q[leg].tolist())
            assert knee == pytest.approx(frames[3, 2, 3], abs=1e-9)
            assert foot == pytest.approx(legged_robot.foot_positions(q)[leg, 2], abs=1e-9)


def test_shared_loads_balance_the_weight() -> None:
    rng, loads = np.random.default_rng(1), np.zeros(6)
    home = robot_model_named("akrobat").arrays.stance_feet
    for _ in range(20):
        feet, in_stance = home + rng.uniform(-0.03, 0.03, home.shape), np.ones((1, 6), bool)
        in_stance[0, rng.choice(6, 2, replace=False)] = False
        distribute_weight_over_stance(feet[None], in_stance, 0.01, 0.005, loads)
        assert (loads[~in_stance[0]] == 0.0).all()
        if (loads[in_stance[0]] > 0.0).all():
            assert loads.sum() == pytest.approx(1.0)
            assert loads @ feet[:, :2] == pytest.approx([0.01, 0.005])


def test_leg_work_of_a_rising_body_is_its_height() -> None:
    """The joints of a leg do at least the work that lifting its load takes; more, if one works against another."""
    robot_model, leg_arrays = (
        robot_model_named("akrobat"),
        make_problem(PlanCostWeights()).leg_arrays._replace(mass_fractions=np.zeros((6, 2))),
    )
    legged_robot, rise = robot_model.legged_robot, 1e-4
    before = legged_robot.solve_ik(legged_robot.stance_feet)
    after = legged_robot.solve_ik(legged_robot.stance_feet - (0.0, 0.0, rise))
    work = sum(leg_work(leg_arrays, leg, before[leg], after[leg], 1.0 / 6.0) for leg in range(6))
    assert work >= rise * (1.0 - 1e-3)
    back = sum(leg_work(leg_arrays, leg, after[leg], before[leg], 1.0 / 6.0) for leg in range(6))
    assert back == pytest.approx(work, rel=1e-2)


@pytest.mark.parametrize(("robot", "kind"), [("akrobat", "flat"), ("akrobat", "blocks"), ("lauron", "flat")])
def test_joint_work_cost_agrees_with_measured_work(robot: str, kind: str) -> None:
    plan = planned(JOINT_WORK_ONLY, kind, robot)
    assert plan.cost - plan.duration == pytest.approx(work_cost(plan, robot), rel=0.05)


@pytest.mark.parametrize("kind", ["flat", "blocks"])
def test_leg_loss_cost_agrees_with_measured_margins(kind: str) -> None:
    plan = planned(LEG_LOSS_ONLY, kind)
    assert plan.cost - plan.duration == pytest.approx(leg_loss_cost(plan), rel=0.02)


def test_cost_weights_of_zero_change_nothing() -> None:
    plan = planned(PlanCostWeights(0.0, 0.0))
    assert plan.cost == plan.duration
    assert plan.swings == planned(PlanCostWeights(0.0, 0.0, joint_work=1e-12)).swings


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_heavier_cost_weights_lower_the_weighted_quantity(seed: int) -> None:
    unweighted = planned(PlanCostWeights(0.0, 0.0), seed=seed)
    for weights, measure in ((JOINT_WORK_ONLY, work_cost), (LEG_LOSS_ONLY, leg_loss_cost)):
        weighted = planned(weights, seed=seed)
        assert weighted.duration + measure(weighted) <= (unweighted.duration + measure(unweighted)) * 1.001
        heavily_weighted = planned(
            replace(weights, joint_work=100.0 * weights.joint_work, leg_loss=100.0 * weights.leg_loss), seed=seed
        )
        assert measure(heavily_weighted) <= min(measure(unweighted), measure(weighted)) * 1.01


def test_margin_of_two_feet_is_negative_infinity() -> None:
    edges, counts = np.zeros((6, 12, 3)), np.full(6, -1)
    counts[:3] = 0
    assert min_margin_after_leg_loss(edges, counts, 0.0, 0.0) == -math.inf


@pytest.mark.parametrize("leg", ["lf", "rm", "rr"])
def test_failed_leg_is_not_used(leg: str) -> None:
    problem = make_problem(PlanCostWeights(), failed_leg=leg)
    robot_model = problem.robot_model
    plan = plan_steps(problem, budget=60_000, seed=1)
    assert leg not in [robot_model.legged_robot.legs[one.leg].name for one in plan.swings]
    assert [one.name for one in robot_model.legged_robot.legs] == [
        one.name for one in robot_model_named("akrobat").legged_robot.legs if one.name != leg
    ]
    assert not check_plan_on(plan, problem, make_terrain("flat")).faults


def test_bad_cost_weights_and_legs_are_refused() -> None:
    for name in ("tipping", "foothold", "joint_work", "leg_loss"):
        for wrong in (-0.1, math.nan, 101.0):
            with pytest.raises(InputError, match=name):
                PlanCostWeights(**{name: wrong})
    with pytest.raises(UnknownNameError, match="lf, rf"):
        load_free_gait_model("akrobat", failed_leg="left front")
