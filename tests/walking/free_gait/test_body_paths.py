"""Body paths: distances to the goal against SciPy, and intervals that are searched in strides against single steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import ConvexHull
from tests.walking.free_gait.step_planning_problems import level_terrain, problem_on, robot_model_named

from roboyard.walking.free_gait.body_paths import GUIDE_STRIDE, dijkstra_distances
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.partial_plans import PATH_SPACING
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.step_constraints import edge_margin, last_stable_sample, support_edges

Array = NDArray[np.float64]


def dijkstra_kernel_distances(cost: Array, row: int, column: int) -> Array:
    """Return the distances that the kernel computes."""
    out = np.full(cost.shape, np.inf)
    dijkstra_distances(cost, row, column, out, np.zeros(8 * out.size + 1), np.zeros(8 * out.size + 1, np.int64))
    return out


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_guide_distances_agree_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cost = rng.uniform(0.5, 3.0, (9, 13))
    cost[rng.random(cost.shape) < 0.3] = np.inf
    row, column = (int(n) for n in np.argwhere(np.isfinite(cost))[rng.integers(np.isfinite(cost).sum())])
    starts, ends, weights = [], [], []
    for r, c in np.argwhere(np.isfinite(cost)):
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                a, b = r + dr, c + dc
                if not (0 <= a < 9 and 0 <= b < 13) or not np.isfinite(cost[[a, r, a], [b, b, c]]).all():
                    continue  # not around the corner of a wall
                if (dr, dc) != (0, 0):
                    starts.append(r * 13 + c)
                    ends.append(a * 13 + b)
                    weights.append(0.5 * (cost[r, c] + cost[a, b]) * math.hypot(dr, dc))
    graph = coo_array((weights, (starts, ends)), shape=(117, 117)).tocsr()
    expected = dijkstra(graph, indices=row * 13 + column).reshape(9, 13)
    np.testing.assert_allclose(dijkstra_kernel_distances(cost, row, column), expected, rtol=1e-12)


def test_guided_plan_leads_round_a_wall() -> None:
    robot_model, start, goal = robot_model_named("akrobat"), (0.0, 0.0), (2.4, 0.0)
    heights = np.zeros((120, 190))
    heights[:52, 91:97] = 0.6  # a wall that is open at one end only
    foothold_map = FootholdMap.from_heights(heights, (-0.7, -1.0), robot_model)
    problem = StepPlanningProblem.create(robot_model, foothold_map, start, goal)
    edge = GUIDE_STRIDE * foothold_map.arrays.cell_size
    guide_distance = problem.distance_to_goal[
        int((start[1] - foothold_map.arrays.y) / edge), int((start[0] - foothold_map.arrays.x) / edge)
    ]
    assert 2.5 < guide_distance < 6.0
    plan = plan_steps(problem, budget=60_000, seed=1)
    assert plan.body_track[:, 2].max() > 0.25
    np.testing.assert_allclose(plan.body_positions([plan.duration])[0, :2], goal, atol=0.011)


def test_plan_over_level_ground_is_straight() -> None:
    plan = plan_steps(problem_on(level_terrain(), (1.0, 0.2)), budget=40_000, seed=2)
    path_length = np.hypot(*np.diff(plan.body_track[:, 1:3], axis=0).T).sum()
    assert path_length == pytest.approx(math.hypot(1.0, 0.2), rel=0.15)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_last_stable_by_strides_equals_single_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0.0, 2.0 * math.pi, 5))
    feet = np.zeros((1, 5, 3))
    feet[0, :, :2] = 0.3 * np.stack([np.cos(angles), np.sin(angles)], axis=1) * rng.uniform(0.5, 1.2, (5, 1))
    edges = np.zeros((12, 3))
    count = support_edges(feet, np.ones((1, 5), np.bool_), 0, -1, edges)
    headings = np.cumsum(rng.normal(0.0, 0.3, 80)) + rng.uniform(0.0, 6.0)
    positions = np.zeros((1, 81, 3))
    positions[0, 1:, 0], positions[0, 1:, 1] = (
        np.cumsum(PATH_SPACING * np.cos(headings)),
        np.cumsum(PATH_SPACING * np.sin(headings)),
    )
    margin, inner = 0.02, int(rng.integers(81))
    for outer in (0, 80):
        sample, step = inner, 1 if outer > inner else -1
        while sample != outer and edge_margin(edges, count, *positions[0, sample + step, :2]) >= margin:
            sample += step
        assert last_stable_sample(positions, 0, edges, count, margin, inner, outer) == sample


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(3, 6))
@example(1_096_083_052, 3)  # three collinear points, but for rounding
def test_polygon_edges_agree_with_the_convex_hull(seed: int, legs: int) -> None:
    rng = np.random.default_rng(seed)
    feet = np.zeros((1, 7, 3))
    feet[0, :, :2] = np.round(rng.normal(0.0, 0.2, (7, 2)), 2)  # some are collinear, some coincide
    in_stance = np.arange(7)[None] < legs + 1
    excluded_leg, positions = int(rng.integers(legs + 1)), rng.normal(0.0, 0.2, (20, 2))
    edges = np.zeros((12, 3))
    count = support_edges(feet, in_stance, 0, excluded_leg, edges)
    corners = np.delete(feet[0, : legs + 1, :2], excluded_leg, axis=0)
    if np.linalg.matrix_rank(corners - corners[0], tol=1e-6) < 2:
        assert count < 3
        return
    planes = ConvexHull(corners).equations
    for x, y in positions:
        assert edge_margin(edges, count, x, y) == pytest.approx(-(planes @ [x, y, 1.0]).max(), abs=1e-6)
