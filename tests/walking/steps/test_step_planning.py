"""Planned steps: the rule of support states, the reach, plans that a checker of other code finds right, and repeats."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.walking.steps.step_problems import level_terrain, problem_on, rig_of, verdict_of

from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.height_map import HeightMap
from roboyard.grids.terrain import Terrain, generate_terrain
from roboyard.walking.errors import BadGoal, BadStart, NoPlan
from roboyard.walking.steps.checker import Limits, check_plan
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.steps.planning import PLANNERS, plan_steps
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.stretches import along_way, stretches
from roboyard.walking.steps.support import support_states, transitions

SIX = [1, -1] * 3


def test_support_states_are_those_of_table_2_2_of_the_thesis() -> None:
    states = support_states(SIX)
    after = transitions(states)
    assert len(states) == 40
    assert sum(map(len, after.values())) == 2 * 90
    assert all(state in after[other] for state, others in after.items() for other in others)
    assert Counter(map(len, after.values())) == {3: 18, 5: 6, 6: 16}
    # as in the table: of three feet 18, of four 15, of five 6, of six 1
    assert Counter(state.bit_count() for state in states) == {3: 18, 4: 15, 5: 6, 6: 1}


def test_reach_table_keeps_its_margin() -> None:
    rig = rig_of("akrobat")
    rows, rng = rig.rows, np.random.default_rng(0)
    words = rows.table
    for leg in range(6):
        a, b = (axis[::37] for axis in np.nonzero(words[leg]))
        for x, y in itertools.islice(zip(a, b, strict=True), 12):
            layers = [k for k in range(48) if int(words[leg, x, y]) >> k & 1]
            for layer in layers[:: max(len(layers) // 3, 1)]:
                place = rows.low[leg] + np.array([x * rows.cell, y * rows.cell, layer * rows.layer])
                away = rng.normal(size=(8, 3))
                away *= 0.012 * rig.scale / np.linalg.norm(away, axis=1)[:, None]
                feet = np.tile(rig.walker.stance_feet, (8, 1, 1))
                feet[:, leg] = place + away
                assert rig.walker.reached(feet).all()


@pytest.mark.slow
@pytest.mark.parametrize("planner", PLANNERS)
def test_plans_over_level_ground_are_valid(planner: str) -> None:
    terrain = level_terrain()
    problem = problem_on(terrain, (1.0, 0.0))
    plan = plan_steps(problem, planner, budget=200_000 if planner == "ara-star" else 20_000, seed=1)
    seen = verdict_of(plan, problem, terrain)
    assert not seen.faults
    assert seen.margin >= problem.rig.margin - 1e-3
    assert plan.cost >= plan.duration > 0.0
    assert plan.length >= 1.0 - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_random_sampling_reaches_the_goal_of_the_thesis(seed: int) -> None:
    """S(0, 0) to Z(0, 1), three seeds; the thesis's y points forward, here it is to the left."""
    problem = problem_on(level_terrain(), (0.0, 1.0))
    assert not verdict_of(
        plan_steps(problem, "random-sampling", budget=40_000, seed=seed), problem, level_terrain()
    ).faults


def test_plan_of_a_budget_does_not_depend_on_workers() -> None:
    problem = problem_on(level_terrain(), (0.6, 0.1))
    one = plan_steps(problem, budget=420_000, seed=3, workers=1)
    two = plan_steps(problem, budget=420_000, seed=3, workers=3)
    assert one.effort == two.effort
    assert one.swings == two.swings
    assert one.track.tobytes() == two.track.tobytes()


def test_larger_budget_never_costs_more() -> None:
    problem = problem_on(level_terrain(), (0.6, 0.0))
    costs = [plan_steps(problem, "random-sampling", budget=n, seed=0).cost for n in (2_000, 10_000, 30_000)]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize(
    ("kind", "options", "goal"),
    [
        pytest.param("blocks", {"height_range": 0.08}, (2.4, 0.0), marks=pytest.mark.slow),
        ("stones", {"cell_size": 0.06, "height_range": 0.3, "fraction": 0.12}, (2.0, 0.0)),
        ("slope", {"height_range": 0.12}, (1.2, 0.0)),
    ],
)
def test_plans_over_uneven_ground_are_valid(kind: str, options: dict[str, float], goal: tuple[float, float]) -> None:
    terrain = generate_terrain(kind, (1.32, 2.4), np.random.default_rng([0x6E04, 0]), corner=(0.34, -1.2), **options)
    problem = problem_on(terrain, goal)
    plan = plan_steps(problem, budget=200_000, seed=0)
    seen = verdict_of(plan, problem, terrain)
    assert not seen.faults


def test_joint_speeds_are_kept_at_corners_of_the_path() -> None:
    """Between two looks, and for less than 0.1 ms: found among 330 plans over stones."""
    terrain = generate_terrain(
        "stones", (1.32, 2.4), np.random.default_rng([0x57E9, 5032, 100]), corner=(0.34, -1.2), cell_size=0.06,
        height_range=0.3, fraction=0.1,
    )  # fmt: skip
    problem = problem_on(terrain, (2.0, 0.0))
    assert not verdict_of(plan_steps(problem, budget=2_000, seed=32), problem, terrain).faults


@pytest.mark.parametrize(("kind", "heading"), [("flat", 0.0), ("flat", 0.7), ("blocks", 0.0)])
def test_body_is_always_on_the_admissible_stretch(kind: str, heading: float) -> None:
    terrain = generate_terrain(kind, (1.0, 2.4), np.random.default_rng(1), corner=(0.3, -1.2), height_range=0.06)
    problem = problem_on(terrain, (0.9, 0.1), heading=heading)
    plan = plan_steps(problem, budget=20_000, seed=1)
    found = stretches(plan, problem.rig)
    assert sum(one.end - one.begin for one in found) == pytest.approx(plan.duration)
    for one in found:
        at = along_way(plan, np.linspace(one.begin, one.end, 7)[1:-1])
        assert one.low - 0.011 <= at.min(), one
        assert at.max() <= one.high + 0.011, one
    gone = along_way(plan, plan.track[:, 0])
    for one in found:  # however the way winds, legs end
        ends = [np.interp([one.low, one.high], gone, plan.track[:, k]) for k in (1, 2)]
        assert np.hypot(*np.diff(ends)[:, 0]) < 0.5, one


def test_checker_finds_faults_of_a_changed_plan() -> None:
    terrain = level_terrain()
    problem = problem_on(terrain, (0.5, 0.0))
    plan = plan_steps(problem, budget=20_000, seed=1)

    def kinds(changed: StepPlan, ground: Terrain = terrain) -> set[str]:
        return {one.kind for one in verdict_of(changed, problem, ground).faults}

    assert not kinds(plan)
    quick = plan.track.copy()
    quick[:, 0] *= 0.5
    swings = tuple(replace(one, lifts=0.5 * one.lifts, lands=0.5 * one.lands) for one in plan.swings)
    assert "speed" in kinds(replace(plan, track=quick, swings=swings))
    x, y, z = plan.swings[0].target
    assert "foothold" in kinds(
        replace(plan, swings=(replace(plan.swings[0], target=(x, y, z + 0.05)), *plan.swings[1:]))
    )
    assert "slide" in kinds(replace(plan, swings=(replace(plan.swings[0], target=(x + 0.01, y, z)), *plan.swings[1:])))
    aside = plan.track.copy()
    aside[:, 2] += 0.2
    assert {"tipping", "goal"} <= kinds(replace(plan, track=aside))
    high = plan.track.copy()
    high[:, 3] += 0.2
    assert "reach" in kinds(replace(plan, track=high))
    low = replace(plan, swings=tuple(replace(one, top=-0.02) for one in plan.swings))
    assert "ground" in kinds(low)
    step = generate_terrain(
        "wall", (0.3, 3.0), np.random.default_rng(0), corner=(0.1, -1.5), height_range=0.12, fraction=1.0
    )
    assert {"foothold", "belly"} <= kinds(plan, step)


def test_plan_cut_off_by_a_wall_names_its_cells() -> None:
    rig = rig_of("akrobat")
    heights = np.zeros((100, 150))
    heights[:, 70:75] = 0.6
    ground = Ground.of(heights, (-0.8, -1.0), rig)
    problem = Problem.of(rig, ground, (0.0, 0.0), (1.6, 0.0))
    with pytest.raises(NoPlan, match="cut off") as caught:
        plan_steps(problem, budget=2_000)
    assert all(45 <= column <= 75 for _, column in caught.value.cells)


def test_plan_round_a_wall_keeps_the_body_height() -> None:
    rig = rig_of("akrobat")
    heights = np.zeros((160, 180))
    heights[60:100, 70:76] = 0.6
    ground = Ground.of(heights, (-0.8, -1.6), rig, start=(0.1, 0.0))
    plan = plan_steps(Problem.of(rig, ground, (0.1, 0.0), (1.6, 0.0)), budget=200_000)
    assert np.ptp(plan.track[:, 3]) < 1e-9
    assert np.abs(plan.track[:, 2]).max() > 0.4
    there = HeightMap(heights, (-0.8, -1.6), 0.02)

    def height(places: np.ndarray) -> np.ndarray:
        return there.heights_at(places.reshape(-1, 2)).reshape(places.shape[:-1])

    assert not check_plan(plan, rig.walker, rig.body, height, (1.6, 0.0), Limits(margin=rig.margin)).faults


def test_body_height_follows_stairs_and_not_gaps() -> None:
    rig, stairs = rig_of("akrobat"), np.repeat(0.1 * np.arange(14.0), 12)[None].repeat(80, axis=0)
    up = Ground.of(stairs, (0.0, -0.8), rig, start=(0.4, 0.0)).rows.body
    assert up[40, 150] - up[40, 30] == pytest.approx(1.0, abs=0.1)
    rng, deep = np.random.default_rng(3), np.zeros((80, 160))
    deep[:, 40:] = np.where(rng.random((20, 30)) < 0.2, 0.0, -0.3).repeat(4, axis=0).repeat(4, axis=1)
    body = Ground.of(deep, (0.0, -0.8), rig, start=(0.4, 0.0)).rows.body
    assert np.nanmin(body) == pytest.approx(np.nanmax(body), abs=1e-9)
    # from stones that a robot stands on it goes on as high, whatever is under its middle
    stones = np.argwhere(deep == 0.0)[:, ::-1] * 0.02 + np.array([0.01, -0.79])
    for x in np.linspace(1.2, 2.6, 8):
        homes = rig.rows.home[:, :2] + np.array([x, 0.0])
        feet = np.array([stones[np.argmin(np.hypot(*(stones - home).T))] for home in homes])
        assert np.nanmax(np.abs(Ground.of(deep, (0.0, -0.8), rig, start=feet).rows.body - body)) < 1e-9


def test_plan_steps_refuses_bad_starts_and_goals() -> None:
    rig = rig_of("akrobat")
    heights = np.zeros((100, 150))
    heights[:, 98:102] = 0.6
    heights[40:60, 20:24] = np.nan
    ground = Ground.of(heights, (-0.8, -1.0), rig)
    with pytest.raises(BadGoal, match="outside of the map"):
        Problem.of(rig, ground, (0.0, 0.0), (9.0, 0.0))
    with pytest.raises(BadGoal, match="no room for the body"):
        Problem.of(rig, ground, (0.0, 0.0), (1.2, 0.0))
    with pytest.raises(BadStart):
        Problem.of(rig, ground, (1.2, 0.0), (0.0, 0.0))
    with pytest.raises(InputError, match="finite"):
        Problem.of(rig, ground, (0.0, np.nan), (1.0, 0.0))
    with pytest.raises(InputError, match="nothing but holes"):
        Ground.of(np.full((50, 50), np.nan), (0.0, 0.0), rig)
    problem = problem_on(level_terrain(), (0.5, 0.0))
    with pytest.raises(UnknownNameError, match="splitting"):
        plan_steps(problem, "spliting")
    for wrong in ({"budget": 0}, {"seed": -1}, {"workers": 0}):
        with pytest.raises(InputError):
            plan_steps(problem, **wrong)


def test_plan_steps_over_holes() -> None:
    rig = rig_of("akrobat")
    heights = np.zeros((100, 150))
    heights[:, 60:66] = np.nan
    ground = Ground.of(heights, (-0.8, -1.0), rig)
    problem = Problem.of(rig, ground, (0.0, 0.0), (1.0, 0.0))
    plan = plan_steps(problem, budget=60_000)
    hole = -0.8 + 60 * 0.02, -0.8 + 66 * 0.02
    assert not [one for one in plan.swings if hole[0] < one.target[0] < hole[1]]


@pytest.mark.slow
def test_step_search_reports_progress_and_can_be_stopped() -> None:
    problem, told = problem_on(level_terrain(), (0.5, 0.0)), []
    plan = plan_steps(
        problem, budget=10**9, stop=lambda: len(told) > 3, told=lambda events, better: told.append((events, better))
    )
    assert plan.effort.events < 10**6
    costs = [better.cost for _, better in told if better is not None]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == plan.cost
