"""Terrain completion: observed ground and holes stay, and unobserved ground continues the nearest observed ground."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from tests.walking.free_gait.step_planning_problems import robot_model_named

from roboyard.grids.height_map import HeightMap
from roboyard.walking.free_gait.foothold_map import FootholdMap, interpolate_body_height
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.replanning import find_invalid_footholds, stance_at
from roboyard.walking.free_gait.terrain_completion import TerrainCompletion

Array = NDArray[np.float64]
NO_FEET = np.zeros((0, 3))
COMPLETION = TerrainCompletion(known_radius=0.9, start=(-0.4, 0.0, 0.0), start_radius=0.5)


def cell_centers(height_map: HeightMap) -> tuple[Array, Array]:
    arrays, columns = height_map.heights.shape
    x, y = (height_map.corner[k] + (np.arange(n) + 0.5) * height_map.resolution for k, n in ((0, columns), (1, arrays)))
    return np.meshgrid(x, y)


def observed_map(low: float = 0.2, high: float = 1.5, height: float = 0.1) -> HeightMap:
    """Return level ground that was observed between two values of x [m]."""
    empty = HeightMap(np.full((100, 120), np.nan), (-0.6, -1.0), 0.02)
    x, _ = cell_centers(empty)
    is_observed = (x > low) & (x < high)
    heights, variance = np.where(is_observed, height, np.nan), np.where(is_observed, 1e-5, np.nan)
    return HeightMap(heights, empty.corner, empty.resolution, variance, np.full(heights.shape, np.inf))


def complete_map(height_map: HeightMap, *, feet: Array = NO_FEET, footholds: Array = NO_FEET) -> HeightMap:
    return COMPLETION.complete(height_map, (0.0, 0.0), [[2.0, 0.0]], feet, footholds, 0.5)


def test_completed_map_keeps_observed_ground_and_contains_the_goal() -> None:
    height_map = observed_map()
    out = complete_map(height_map)
    x, y = cell_centers(height_map)
    positions = np.column_stack([x.ravel(), y.ravel()])
    is_observed = np.isfinite(height_map.heights_at(positions))
    np.testing.assert_array_equal(out.heights_at(positions)[is_observed], height_map.heights_at(positions)[is_observed])
    assert np.isfinite(out.heights_at(np.array([[2.4, 0.4]])))


def test_unobserved_ground_is_a_hole_nearby_and_continues_far_away() -> None:
    out = complete_map(observed_map())
    x, y = cell_centers(out)
    is_nearby, is_near_start = np.hypot(x, y) < 0.88, np.hypot(x + 0.4, y) <= 0.5
    is_unobserved = (x < 0.18) | (x > 1.52)
    assert np.isnan(out.heights[is_unobserved & is_nearby & ~is_near_start]).all()
    np.testing.assert_array_equal(out.heights[is_near_start & (x < 0.18)], 0.0)
    np.testing.assert_array_equal(out.heights[x > 1.52], 0.1)


def test_ground_below_passed_rays_is_absent() -> None:
    height_map = observed_map()
    x, y = cell_centers(height_map)
    assert height_map.ceiling is not None
    height_map.ceiling[(x > 1.6) & (x < 1.7)] = 0.05
    height_map.ceiling[np.hypot(x + 0.4, y) < 0.1] = -0.2  # a pit where it began
    out = complete_map(height_map)
    x, y = cell_centers(out)
    assert np.isnan(out.heights[(x > 1.6) & (x < 1.7) & (np.abs(y) < 0.5)]).all()
    assert np.isnan(out.heights[np.hypot(x + 0.4, y) < 0.09]).all()


def test_far_ground_continues_as_ground_and_not_as_pits() -> None:
    height_map = observed_map()
    x, _ = cell_centers(height_map)
    height_map.heights[(x > 1.42) & (x < 1.5)] = -0.3
    out = complete_map(height_map)
    x, _ = cell_centers(out)
    np.testing.assert_array_equal(out.heights[x > 1.52], 0.1)


def test_single_gaps_are_bridged_between_equal_heights() -> None:
    height_map = observed_map(height=0.0)
    x, y = cell_centers(height_map)
    row = int(np.argmin(np.abs(y[:, 0])))
    gap_column, edge_column = int(np.argmin(np.abs(x[0] - 0.51))), int(np.argmin(np.abs(x[0] - 0.71)))
    height_map.heights[:, edge_column + 1 :] += 0.1
    height_map.heights[row, gap_column] = height_map.heights[:, edge_column] = math.nan
    out = complete_map(height_map)
    assert out.heights_at(np.array([[x[0, gap_column], y[row, 0]]]))[0] == 0.0
    assert np.isnan(out.heights_at(np.array([[x[0, edge_column], y[row, 0]]]))).all()


def test_completed_map_has_ground_under_feet_and_footholds() -> None:
    foot = np.array([[0.03, -0.51, 0.02]])
    lower_foothold, wrong_foothold = np.array([[0.61, 0.01, 0.095]]), np.array([[0.81, 0.01, 0.05]])
    out = complete_map(observed_map(), feet=foot, footholds=np.vstack([lower_foothold, wrong_foothold]))
    assert out.heights_at(foot)[0] == 0.02
    assert out.heights_at(lower_foothold)[0] == 0.095  # was 0.1
    assert out.heights_at(wrong_foothold)[0] == 0.1  # as the map says: the foothold is another
    assert np.isnan(complete_map(observed_map()).heights_at(foot)).all()


def test_true_map_is_left_unchanged() -> None:
    truth = HeightMap(np.zeros((40, 40)), (-0.4, -0.4), 0.02)
    out = complete_map(truth)
    x, y = cell_centers(out)
    inside = (np.abs(x) < 0.4) & (np.abs(y) < 0.4)
    np.testing.assert_array_equal(out.heights[inside], 0.0)
    assert np.isnan(out.heights[~inside]).all()


def test_body_height_is_joined_after_a_map_change() -> None:
    foothold_map = FootholdMap.from_height_map(
        HeightMap(np.zeros((120, 160)), (-1.0, -1.2), 0.02), robot_model_named("akrobat")
    )
    arrays = foothold_map.arrays
    before = interpolate_body_height(arrays.body_height, arrays.x, arrays.y, arrays.cell_size, 0.3, 0.1)
    for offset in (0.04, -0.03):
        joined = foothold_map.with_body_at([0.3, 0.1, before + offset]).arrays
        assert math.isclose(
            interpolate_body_height(joined.body_height, joined.x, joined.y, joined.cell_size, 0.3, 0.1), before + offset
        )
        assert interpolate_body_height(joined.body_height, joined.x, joined.y, joined.cell_size, 0.8, 0.1) == before
        assert (
            np.nanmax(np.abs(np.diff(joined.body_height, axis=1))) <= 0.6 * arrays.cell_size + 1e-9
        )  # as steep as ground may be
        np.testing.assert_array_equal(np.isnan(joined.body_height), np.isnan(arrays.body_height))


def test_footholds_are_invalid_on_higher_or_uncertain_ground() -> None:
    robot_model = robot_model_named("akrobat")
    flat = HeightMap(np.zeros((120, 160)), (-1.0, -1.2), 0.02, np.zeros((120, 160)))
    foothold_map = FootholdMap.from_height_map(flat, robot_model)
    plan = plan_steps(
        StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), (0.4, 0.0)), budget=6_000, seed=3
    )
    assert find_invalid_footholds(plan, 0.0, foothold_map) == []
    swing = max(range(len(plan.swings)), key=lambda k: plan.swings[k].touch_down_time)
    lift_off_time, (px, py, _) = plan.swings[swing].lift_off_time, plan.swings[swing].target
    x, y = cell_centers(flat)
    is_near_foothold = np.hypot(x - px, y - py) < 0.05
    uncertain_map = FootholdMap.from_height_map(
        replace(flat, variance=np.where(is_near_foothold, 1.0, 0.0)), robot_model
    )
    assert swing in find_invalid_footholds(plan, 0.0, uncertain_map)
    assert swing not in find_invalid_footholds(plan, lift_off_time + 1e-6, uncertain_map)
    higher_map = FootholdMap.from_height_map(replace(flat, heights=np.where(is_near_foothold, 0.05, 0.0)), robot_model)
    assert swing in find_invalid_footholds(plan, lift_off_time + 1e-6, higher_map)
    assert find_invalid_footholds(plan, plan.duration, higher_map) == []
    np.testing.assert_array_equal(stance_at(plan, 0.0), plan.start_feet)
    np.testing.assert_array_equal(stance_at(plan, plan.duration)[plan.swings[swing].leg], plan.swings[swing].target)
