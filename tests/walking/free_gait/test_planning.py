"""Planned steps: the rule of support states, the reach, plans that a checker of other code finds right, and repeats."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.walking.free_gait.step_planning_problems import check_plan_on, level_terrain, problem_on, robot_model_named

from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.height_map import HeightMap
from roboyard.grids.terrain import Terrain, generate_terrain
from roboyard.walking.errors import InvalidStepGoalError, InvalidStepStartError, NoStepPlanError
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.plan_analysis import admissible_intervals, distance_along_path
from roboyard.walking.free_gait.plan_checker import PlanCheckLimits, check_plan
from roboyard.walking.free_gait.planning import PLANNERS, plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.robot_model import state_transitions, support_states
from roboyard.walking.free_gait.step_plan import StepPlan

SIX = [1, -1] * 3


def test_support_states_are_those_of_table_2_2_of_the_thesis() -> None:
    states = support_states(SIX)
    after = state_transitions(states)
    assert len(states) == 40
    assert sum(map(len, after.values())) == 2 * 90
    assert all(state in after[other] for state, others in after.items() for other in others)
    assert Counter(map(len, after.values())) == {3: 18, 5: 6, 6: 16}
    # as in the table: of three feet 18, of four 15, of five 6, of six 1
    assert Counter(state.bit_count() for state in states) == {3: 18, 4: 15, 5: 6, 6: 1}


def test_reach_table_keeps_its_margin() -> None:
    robot_model = robot_model_named("akrobat")
    arrays, rng = robot_model.arrays, np.random.default_rng(0)
    reach_tables = arrays.stance_reach
    for leg in range(6):
        a, b = (axis[::37] for axis in np.nonzero(reach_tables[leg]))
        for x, y in itertools.islice(zip(a, b, strict=True), 12):
            layers = [k for k in range(48) if int(reach_tables[leg, x, y]) >> k & 1]
            for layer in layers[:: max(len(layers) // 3, 1)]:
                position = arrays.table_origin[leg] + np.array(
                    [x * arrays.cell_size, y * arrays.cell_size, layer * arrays.layer_height]
                )
                offsets = rng.normal(size=(8, 3))
                offsets *= 0.012 * robot_model.scale / np.linalg.norm(offsets, axis=1)[:, None]
                feet = np.tile(robot_model.legged_robot.stance_feet, (8, 1, 1))
                feet[:, leg] = position + offsets
                assert robot_model.legged_robot.is_reachable(feet).all()


@pytest.mark.slow
@pytest.mark.parametrize("planner", PLANNERS)
def test_plans_over_level_ground_are_valid(planner: str) -> None:
    terrain = level_terrain()
    problem = problem_on(terrain, (1.0, 0.0))
    plan = plan_steps(problem, planner, budget=200_000 if planner == "ara-star" else 20_000, seed=1)
    report = check_plan_on(plan, problem, terrain)
    assert not report.faults
    assert report.min_stability_margin >= problem.robot_model.min_stability_margin - 1e-3
    assert plan.cost >= plan.duration > 0.0
    assert plan.path_length >= 1.0 - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_random_sampling_reaches_the_goal_of_the_thesis(seed: int) -> None:
    """S(0, 0) to Z(0, 1), three seeds; the thesis's y points forward, here it is to the left."""
    problem = problem_on(level_terrain(), (0.0, 1.0))
    assert not check_plan_on(
        plan_steps(problem, "random-sampling", budget=40_000, seed=seed), problem, level_terrain()
    ).faults


def test_plan_of_a_budget_does_not_depend_on_workers() -> None:
    problem = problem_on(level_terrain(), (0.6, 0.1))
    one = plan_steps(problem, budget=420_000, seed=3, workers=1)
    two = plan_steps(problem, budget=420_000, seed=3, workers=3)
    assert one.statistics == two.statistics
    assert one.swings == two.swings
    assert one.body_track.tobytes() == two.body_track.tobytes()


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
    report = check_plan_on(plan, problem, terrain)
    assert not report.faults


def test_joint_speeds_are_kept_at_corners_of_the_path() -> None:
    """Between two looks, and for less than 0.1 ms: found among 330 plans over stones."""
    terrain = generate_terrain(
        "stones", (1.32, 2.4), np.random.default_rng([0x57E9, 5032, 100]), corner=(0.34, -1.2), cell_size=0.06,
        height_range=0.3, fraction=0.1,
    )  # fmt: skip
    problem = problem_on(terrain, (2.0, 0.0))
    assert not check_plan_on(plan_steps(problem, budget=2_000, seed=32), problem, terrain).faults


@pytest.mark.parametrize(("kind", "heading"), [("flat", 0.0), ("flat", 0.7), ("blocks", 0.0)])
def test_body_is_always_in_the_admissible_interval(kind: str, heading: float) -> None:
    terrain = generate_terrain(kind, (1.0, 2.4), np.random.default_rng(1), corner=(0.3, -1.2), height_range=0.06)
    problem = problem_on(terrain, (0.9, 0.1), heading=heading)
    plan = plan_steps(problem, budget=20_000, seed=1)
    intervals = admissible_intervals(plan, problem.robot_model)
    assert sum(interval.end_time - interval.start_time for interval in intervals) == pytest.approx(plan.duration)
    for interval in intervals:
        distances = distance_along_path(plan, np.linspace(interval.start_time, interval.end_time, 7)[1:-1])
        assert interval.first_distance - 0.011 <= distances.min(), interval
        assert distances.max() <= interval.last_distance + 0.011, interval
    path_lengths = distance_along_path(plan, plan.body_track[:, 0])
    for interval in intervals:  # however the way winds, legs end
        ends = [
            np.interp([interval.first_distance, interval.last_distance], path_lengths, plan.body_track[:, k])
            for k in (1, 2)
        ]
        assert np.hypot(*np.diff(ends)[:, 0]) < 0.5, interval


def test_checker_finds_faults_of_a_changed_plan() -> None:
    terrain = level_terrain()
    problem = problem_on(terrain, (0.5, 0.0))
    plan = plan_steps(problem, budget=20_000, seed=1)

    def fault_kinds(changed: StepPlan, checked_terrain: Terrain = terrain) -> set[str]:
        return {swing.kind for swing in check_plan_on(changed, problem, checked_terrain).faults}

    assert not fault_kinds(plan)
    fast_track = plan.body_track.copy()
    fast_track[:, 0] *= 0.5
    swings = tuple(
        replace(swing, lift_off_time=0.5 * swing.lift_off_time, touch_down_time=0.5 * swing.touch_down_time)
        for swing in plan.swings
    )
    assert "speed" in fault_kinds(replace(plan, body_track=fast_track, swings=swings))
    x, y, z = plan.swings[0].target
    assert "foothold" in fault_kinds(
        replace(plan, swings=(replace(plan.swings[0], target=(x, y, z + 0.05)), *plan.swings[1:]))
    )
    assert "slip" in fault_kinds(
        replace(plan, swings=(replace(plan.swings[0], target=(x + 0.01, y, z)), *plan.swings[1:]))
    )
    offset_track = plan.body_track.copy()
    offset_track[:, 2] += 0.2
    assert {"tipping", "goal"} <= fault_kinds(replace(plan, body_track=offset_track))
    high_track = plan.body_track.copy()
    high_track[:, 3] += 0.2
    assert "reach" in fault_kinds(replace(plan, body_track=high_track))
    low = replace(plan, swings=tuple(replace(swing, apex_height=-0.02) for swing in plan.swings))
    assert "ground" in fault_kinds(low)
    step = generate_terrain(
        "wall", (0.3, 3.0), np.random.default_rng(0), corner=(0.1, -1.5), height_range=0.12, fraction=1.0
    )
    assert {"foothold", "body_contact"} <= fault_kinds(plan, step)


def test_plan_cut_off_by_a_wall_names_its_cells() -> None:
    robot_model = robot_model_named("akrobat")
    heights = np.zeros((100, 150))
    heights[:, 70:75] = 0.6
    foothold_map = FootholdMap.from_heights(heights, (-0.8, -1.0), robot_model)
    problem = StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), (1.6, 0.0))
    with pytest.raises(NoStepPlanError, match="cut off") as caught:
        plan_steps(problem, budget=2_000)
    assert all(45 <= column <= 75 for _, column in caught.value.barrier_cells)


def test_plan_round_a_wall_keeps_the_body_height() -> None:
    robot_model = robot_model_named("akrobat")
    heights = np.zeros((160, 180))
    heights[60:100, 70:76] = 0.6
    foothold_map = FootholdMap.from_heights(heights, (-0.8, -1.6), robot_model, start=(0.1, 0.0))
    plan = plan_steps(StepPlanningProblem.create(robot_model, foothold_map, (0.1, 0.0), (1.6, 0.0)), budget=200_000)
    assert np.ptp(plan.body_track[:, 3]) < 1e-9
    assert np.abs(plan.body_track[:, 2]).max() > 0.4
    height_map = HeightMap(heights, (-0.8, -1.6), 0.02)

    def height(positions: np.ndarray) -> np.ndarray:
        return height_map.heights_at(positions.reshape(-1, 2)).reshape(positions.shape[:-1])

    assert not check_plan(
        plan,
        robot_model.legged_robot,
        robot_model.body_box,
        height,
        (1.6, 0.0),
        PlanCheckLimits(min_stability_margin=robot_model.min_stability_margin),
    ).faults


def test_body_height_follows_stairs_and_not_gaps() -> None:
    robot_model, stairs = robot_model_named("akrobat"), np.repeat(0.1 * np.arange(14.0), 12)[None].repeat(80, axis=0)
    up = FootholdMap.from_heights(stairs, (0.0, -0.8), robot_model, start=(0.4, 0.0)).arrays.body_height
    assert up[40, 150] - up[40, 30] == pytest.approx(1.0, abs=0.1)
    rng, deep = np.random.default_rng(3), np.zeros((80, 160))
    deep[:, 40:] = np.where(rng.random((20, 30)) < 0.2, 0.0, -0.3).repeat(4, axis=0).repeat(4, axis=1)
    body = FootholdMap.from_heights(deep, (0.0, -0.8), robot_model, start=(0.4, 0.0)).arrays.body_height
    assert np.nanmin(body) == pytest.approx(np.nanmax(body), abs=1e-9)
    # from stones that a robot stands on it goes on as high, whatever is under its middle
    stones = np.argwhere(deep == 0.0)[:, ::-1] * 0.02 + np.array([0.01, -0.79])
    for x in np.linspace(1.2, 2.6, 8):
        homes = robot_model.arrays.stance_feet[:, :2] + np.array([x, 0.0])
        feet = np.array([stones[np.argmin(np.hypot(*(stones - home).T))] for home in homes])
        assert (
            np.nanmax(
                np.abs(FootholdMap.from_heights(deep, (0.0, -0.8), robot_model, start=feet).arrays.body_height - body)
            )
            < 1e-9
        )


def test_plan_steps_refuses_bad_starts_and_goals() -> None:
    robot_model = robot_model_named("akrobat")
    heights = np.zeros((100, 150))
    heights[:, 98:102] = 0.6
    heights[40:60, 20:24] = np.nan
    foothold_map = FootholdMap.from_heights(heights, (-0.8, -1.0), robot_model)
    with pytest.raises(InvalidStepGoalError, match="outside of the map"):
        StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), (9.0, 0.0))
    with pytest.raises(InvalidStepGoalError, match="no room for the body"):
        StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), (1.2, 0.0))
    with pytest.raises(InvalidStepStartError):
        StepPlanningProblem.create(robot_model, foothold_map, (1.2, 0.0), (0.0, 0.0))
    with pytest.raises(InputError, match="finite"):
        StepPlanningProblem.create(robot_model, foothold_map, (0.0, np.nan), (1.0, 0.0))
    with pytest.raises(InputError, match="no finite cell"):
        FootholdMap.from_heights(np.full((50, 50), np.nan), (0.0, 0.0), robot_model)
    problem = problem_on(level_terrain(), (0.5, 0.0))
    with pytest.raises(UnknownNameError, match="splitting"):
        plan_steps(problem, "spliting")
    for wrong in ({"budget": 0}, {"seed": -1}, {"workers": 0}):
        with pytest.raises(InputError):
            plan_steps(problem, **wrong)


def test_plan_steps_over_holes() -> None:
    robot_model = robot_model_named("akrobat")
    heights = np.zeros((100, 150))
    heights[:, 60:66] = np.nan
    foothold_map = FootholdMap.from_heights(heights, (-0.8, -1.0), robot_model)
    problem = StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), (1.0, 0.0))
    plan = plan_steps(problem, budget=60_000)
    hole = -0.8 + 60 * 0.02, -0.8 + 66 * 0.02
    assert not [one for one in plan.swings if hole[0] < one.target[0] < hole[1]]


@pytest.mark.slow
def test_step_search_reports_progress_and_can_be_stopped() -> None:
    problem, reports = problem_on(level_terrain(), (0.5, 0.0)), []
    plan = plan_steps(
        problem,
        budget=10**9,
        should_stop=lambda: len(reports) > 3,
        on_progress=lambda events, better: reports.append((events, better)),
    )
    assert plan.statistics.events < 10**6
    costs = [better.cost for _, better in reports if better is not None]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == plan.cost
