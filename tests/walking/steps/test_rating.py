"""What plans may cost beside: joints' work and the loss of a leg, by measures of other code; and a leg less."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.walking.steps.step_problems import problem_on, rig_of, verdict_of

from roboyard.bringup.legged_robot import load_free_gait_model
from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.terrain import Terrain, generate_terrain
from roboyard.walking.steps.extras import leg_work, limb_heights, margin_without_one, share_loads
from roboyard.walking.steps.plan import StepPlan, plan_as_data, plan_of_data
from roboyard.walking.steps.planning import plan_steps
from roboyard.walking.steps.problem import Problem, Rating
from roboyard.walking.steps.searches import searches
from roboyard.walking.steps.upkeep import leg_loss_margins, work

ONLY_ENERGY, ONLY_LOSS = Rating(0.0, 0.0, energy=1.0), Rating(0.0, 0.0, leg_loss=1.0)


@cache
def ground_of(kind: str) -> Terrain:
    return generate_terrain(kind, (0.7, 2.4), np.random.default_rng(4), corner=(0.3, -1.2), height_range=0.06)


def problem_of(rating: Rating, kind: str = "flat", robot: str = "akrobat", failed_leg: str | None = None) -> Problem:
    return problem_on(ground_of(kind), (0.6, 0.05), robot, rating=rating, failed_leg=failed_leg)


@cache
def planned(rating: Rating, kind: str = "flat", robot: str = "akrobat", seed: int = 0) -> StepPlan:
    return plan_steps(problem_of(rating, kind, robot), "random-sampling", budget=20_000, seed=seed)


def work_of(plan: StepPlan, robot: str = "akrobat") -> float:
    """As the rating counts it: how long raising the robot as far would take [s]."""
    rig = rig_of(robot)
    return work(plan, rig) / rig.weight / problem_of(Rating(), robot=robot).world.number.body_speed


def loss_of(plan: StepPlan, robot: str = "akrobat") -> float:
    """As the rating counts it [s]."""
    _, margins = leg_loss_margins(plan)
    return float((1.0 - np.clip(margins / (2.5 * rig_of(robot).margin), 0.0, 1.0)).mean()) * plan.duration


def test_limb_heights_agree_with_the_description() -> None:
    rng = np.random.default_rng(0)
    for robot in ("akrobat", "lauron"):
        walker, limbs = rig_of(robot).walker, problem_of(Rating(), robot=robot).limbs
        q = rng.uniform(walker.lower, walker.upper)
        for leg, one in enumerate(walker.legs):
            frames = one.chain.frames(q[leg])
            knee, foot = limb_heights(limbs, leg, *q[leg].tolist())
            assert knee == pytest.approx(frames[3, 2, 3], abs=1e-9)
            assert foot == pytest.approx(walker.feet(q)[leg, 2], abs=1e-9)


def test_shared_loads_balance_the_weight() -> None:
    rng, loads = np.random.default_rng(1), np.zeros(6)
    home = rig_of("akrobat").rows.home
    for _ in range(20):
        feet, down = home + rng.uniform(-0.03, 0.03, home.shape), np.ones((1, 6), bool)
        down[0, rng.choice(6, 2, replace=False)] = False
        share_loads(feet[None], down, 0.01, 0.005, loads)
        assert (loads[~down[0]] == 0.0).all()
        if (loads[down[0]] > 0.0).all():
            assert loads.sum() == pytest.approx(1.0)
            assert loads @ feet[:, :2] == pytest.approx([0.01, 0.005])


def test_leg_work_of_a_rising_body_is_its_height() -> None:
    """Straight up all joints of a leg that raise it do as much as the weight takes, if none works against another."""
    rig, limbs = rig_of("akrobat"), problem_of(Rating()).limbs._replace(share=np.zeros((6, 2)))
    walker, up = rig.walker, 1e-4
    before = walker.reach(walker.stance_feet)
    after = walker.reach(walker.stance_feet - (0.0, 0.0, up))
    done = sum(leg_work(limbs, leg, before[leg], after[leg], 1.0 / 6.0) for leg in range(6))
    assert done >= up * (1.0 - 1e-3)
    back = sum(leg_work(limbs, leg, after[leg], before[leg], 1.0 / 6.0) for leg in range(6))
    assert back == pytest.approx(done, rel=1e-2)


@pytest.mark.parametrize(("robot", "kind"), [("akrobat", "flat"), ("akrobat", "blocks"), ("lauron", "flat")])
def test_energy_cost_agrees_with_measured_work(robot: str, kind: str) -> None:
    plan = planned(ONLY_ENERGY, kind, robot)
    assert plan.cost - plan.duration == pytest.approx(work_of(plan, robot), rel=0.05)


@pytest.mark.parametrize("kind", ["flat", "blocks"])
def test_leg_loss_cost_agrees_with_measured_margins(kind: str) -> None:
    plan = planned(ONLY_LOSS, kind)
    assert plan.cost - plan.duration == pytest.approx(loss_of(plan), rel=0.02)


def test_ratings_of_zero_weight_change_nothing() -> None:
    plan = planned(Rating(0.0, 0.0))
    assert plan.cost == plan.duration
    assert plan.swings == planned(Rating(0.0, 0.0, energy=1e-12)).swings


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_heavier_rating_lowers_the_rated_quantity(seed: int) -> None:
    bare = planned(Rating(0.0, 0.0), seed=seed)
    for rating, measure in ((ONLY_ENERGY, work_of), (ONLY_LOSS, loss_of)):
        weighed = planned(rating, seed=seed)
        assert weighed.duration + measure(weighed) <= (bare.duration + measure(bare)) * 1.001
        heavy = planned(replace(rating, energy=100.0 * rating.energy, leg_loss=100.0 * rating.leg_loss), seed=seed)
        assert measure(heavy) <= min(measure(bare), measure(weighed)) * 1.01


def test_margin_of_two_feet_is_negative_infinity() -> None:
    edges, counts = np.zeros((6, 12, 3)), np.full(6, -1)
    counts[:3] = 0
    assert margin_without_one(edges, counts, 0.0, 0.0) == -math.inf


@pytest.mark.parametrize("leg", ["lf", "rm", "rr"])
def test_failed_leg_is_not_used(leg: str) -> None:
    problem = problem_of(Rating(), failed_leg=leg)
    rig = problem.rig
    plan = plan_steps(problem, budget=60_000, seed=1)
    assert leg not in [rig.walker.legs[one.leg].name for one in plan.swings]
    assert [one.name for one in rig.walker.legs] == [
        one.name for one in rig_of("akrobat").walker.legs if one.name != leg
    ]
    assert not verdict_of(plan, problem, ground_of("flat")).faults


def test_bad_rating_weights_and_legs_are_refused() -> None:
    for name in ("tipping", "footing", "energy", "leg_loss"):
        for wrong in (-0.1, math.nan, 101.0):
            with pytest.raises(InputError, match=name):
                Rating(**{name: wrong})
    with pytest.raises(UnknownNameError, match="lf, rf"):
        load_free_gait_model("akrobat", failed_leg="left front")


def test_foothold_searches_go_outwards_from_the_wish() -> None:
    problem = problem_of(Rating(), "blocks")
    ground, plan = problem.ground, planned(Rating(), "blocks")
    found, cell = searches(plan, ground), ground.rows.cell
    assert len(found) == len(plan.swings)
    for one in found:
        low = (ground.rows.x, ground.rows.y)
        wish, foot = (np.floor((np.array(place) - low) / cell) for place in (one.wish, one.found))
        away = np.linalg.norm(np.floor((one.cells - low) / cell) - wish, axis=1)
        assert (np.diff(away) >= -1e-9).all()
        assert (away < np.linalg.norm(foot - wish)).all()
        assert bool(len(one.cells)) == bool((foot != wish).any())
    assert any(len(one.cells) and not one.firm[0] for one in found), "some were drawn for where no foot may stand"
    again = plan_of_data(plan_as_data(plan)).swings
    assert [one.wish for one in again] == [one.wish for one in plan.swings]
    silent = replace(plan, swings=tuple(replace(one, wish=None) for one in plan.swings))
    assert searches(silent, ground) == []
