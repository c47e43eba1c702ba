"""Planning of steps: valid plans over level and uneven ground on any number of threads, and errors with their cause."""

from __future__ import annotations

import numpy as np
import pytest
from tests.walking.free_gait.step_planning_problems import check_plan_on, level_terrain, problem_on, robot_model_named

from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.height_map import HeightMap
from roboyard.grids.terrain import generate_terrain
from roboyard.walking.errors import InvalidStepGoalError, InvalidStepStartError, NoStepPlanError
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.plan_checker import PlanCheckLimits, check_plan
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem


@pytest.mark.parametrize("seed", range(3))
def test_random_sampling_reaches_the_goal_of_the_thesis(seed: int) -> None:
    """From S(0, 0) to Z(0, 1) with three seeds; the y axis of the thesis points forward, here to the left."""
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
    """Joints once exceeded their speed for less than 0.1 ms between two checks, in one of 330 plans over stones."""
    terrain = generate_terrain(
        "stones", (1.32, 2.4), np.random.default_rng([0x57E9, 5032, 100]), corner=(0.34, -1.2), cell_size=0.06,
        height_range=0.3, fraction=0.1,
    )  # fmt: skip
    problem = problem_on(terrain, (2.0, 0.0))
    assert not check_plan_on(plan_steps(problem, budget=2_000, seed=32), problem, terrain).faults


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
