"""Analysis of plans: admissible intervals of the body, searches for footholds, and cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.walking.free_gait.step_planning_problems import problem_on

from roboyard.grids.terrain import generate_terrain
from roboyard.walking.free_gait.plan_analysis import (
    admissible_intervals,
    compute_plan_cost,
    distance_along_path,
    trace_foothold_searches,
)
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import PlanCostWeights
from roboyard.walking.free_gait.step_plan import StepPlan


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
    for interval in intervals:  # however the path winds, the reach of the legs ends
        ends = [
            np.interp([interval.first_distance, interval.last_distance], path_lengths, plan.body_track[:, k])
            for k in (1, 2)
        ]
        assert np.hypot(*np.diff(ends)[:, 0]) < 0.5, interval


def test_foothold_searches_go_outwards_from_the_sample() -> None:
    terrain = generate_terrain("blocks", (0.7, 2.4), np.random.default_rng(4), corner=(0.3, -1.2), height_range=0.06)
    problem = problem_on(terrain, (0.6, 0.05))
    foothold_map, plan = problem.foothold_map, plan_steps(problem, "random-sampling", budget=20_000, seed=0)
    traces, cell = trace_foothold_searches(plan, foothold_map), foothold_map.arrays.cell_size
    assert len(traces) == len(plan.swings)
    for one in traces:
        low = (foothold_map.arrays.x, foothold_map.arrays.y)
        sampled_cell, foot = (np.floor((np.array(xy) - low) / cell) for xy in (one.sampled, one.foothold))
        distances = np.linalg.norm(np.floor((one.cells - low) / cell) - sampled_cell, axis=1)
        assert (np.diff(distances) >= -1e-9).all()
        assert (distances < np.linalg.norm(foot - sampled_cell)).all()
        assert bool(len(one.cells)) == bool((foot != sampled_cell).any())
    assert any(len(one.cells) and not one.can_stand[0] for one in traces), "some sampled cells hold no foot"
    restored = StepPlan.from_dict(plan.to_dict()).swings
    assert [one.sampled_foothold for one in restored] == [one.sampled_foothold for one in plan.swings]
    unsampled = replace(plan, swings=tuple(replace(one, sampled_foothold=None) for one in plan.swings))
    assert trace_foothold_searches(unsampled, foothold_map) == []


@pytest.mark.parametrize("weights", [PlanCostWeights(), PlanCostWeights(0.5, 0.0, 0.3, 0.3), PlanCostWeights(0.0, 0.0)])
def test_cost_of_a_plan_is_that_of_its_weights(weights: PlanCostWeights) -> None:
    terrain = generate_terrain("blocks", (0.7, 2.4), np.random.default_rng(4), corner=(0.3, -1.2), height_range=0.06)
    problem = problem_on(terrain, (0.6, 0.05), cost_weights=weights)
    plan = plan_steps(problem, budget=20_000, seed=0)
    assert compute_plan_cost(plan, problem) == pytest.approx(plan.cost, rel=0.03)
