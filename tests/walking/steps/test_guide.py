"""The guide of the body's way, against scipy; and stretches that are found by strides, against one by one."""

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
from tests.walking.steps.step_problems import level_terrain, problem_on, rig_of

from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.guide import COARSE, lay_lengths
from roboyard.walking.steps.herd import STEP
from roboyard.walking.steps.planning import plan_steps
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.stretch import inside_by, last_stable, polygon_edges

Array = NDArray[np.float64]


def lengths(price: Array, row: int, column: int) -> Array:
    """By the kernel."""
    out = np.full(price.shape, np.inf)
    lay_lengths(price, row, column, out, np.zeros(8 * out.size + 1), np.zeros(8 * out.size + 1, np.int64))
    return out


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_guide_lengths_agree_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    price = rng.uniform(0.5, 3.0, (9, 13))
    price[rng.random(price.shape) < 0.3] = np.inf
    row, column = (int(n) for n in np.argwhere(np.isfinite(price))[rng.integers(np.isfinite(price).sum())])
    starts, ends, weights = [], [], []
    for r, c in np.argwhere(np.isfinite(price)):
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                a, b = r + dr, c + dc
                if not (0 <= a < 9 and 0 <= b < 13) or not np.isfinite(price[[a, r, a], [b, b, c]]).all():
                    continue  # nor past the corner of a wall
                if (dr, dc) != (0, 0):
                    starts.append(r * 13 + c)
                    ends.append(a * 13 + b)
                    weights.append(0.5 * (price[r, c] + price[a, b]) * math.hypot(dr, dc))
    graph = coo_array((weights, (starts, ends)), shape=(117, 117)).tocsr()
    expected = dijkstra(graph, indices=row * 13 + column).reshape(9, 13)
    np.testing.assert_allclose(lengths(price, row, column), expected, rtol=1e-12)


def test_guided_plan_leads_round_a_wall() -> None:
    rig, start, goal = rig_of("akrobat"), (0.0, 0.0), (2.4, 0.0)
    heights = np.zeros((120, 190))
    heights[:52, 91:97] = 0.6  # open at its far end only
    ground = Ground.of(heights, (-0.7, -1.0), rig)
    problem = Problem.of(rig, ground, start, goal)
    edge = COARSE * ground.rows.cell
    far = problem.guide[int((start[1] - ground.rows.y) / edge), int((start[0] - ground.rows.x) / edge)]
    assert 2.5 < far < 6.0
    plan = plan_steps(problem, budget=60_000, seed=1)
    assert plan.track[:, 2].max() > 0.25
    np.testing.assert_allclose(plan.body([plan.duration])[0, :2], goal, atol=0.011)


def test_plan_over_level_ground_is_straight() -> None:
    plan = plan_steps(problem_on(level_terrain(), (1.0, 0.2)), budget=40_000, seed=2)
    gone = np.hypot(*np.diff(plan.track[:, 1:3], axis=0).T).sum()
    assert gone == pytest.approx(math.hypot(1.0, 0.2), rel=0.15)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_last_stable_by_strides_equals_single_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    turns = np.sort(rng.uniform(0.0, 2.0 * math.pi, 5))
    feet = np.zeros((1, 5, 3))
    feet[0, :, :2] = 0.3 * np.stack([np.cos(turns), np.sin(turns)], axis=1) * rng.uniform(0.5, 1.2, (5, 1))
    edges = np.zeros((12, 3))
    count = polygon_edges(feet, np.ones((1, 5), np.bool_), 0, -1, edges)
    course = np.cumsum(rng.normal(0.0, 0.3, 80)) + rng.uniform(0.0, 6.0)
    places = np.zeros((1, 81, 3))
    places[0, 1:, 0], places[0, 1:, 1] = np.cumsum(STEP * np.cos(course)), np.cumsum(STEP * np.sin(course))
    margin, inner = 0.02, int(rng.integers(81))
    for outer in (0, 80):
        at, step = inner, 1 if outer > inner else -1
        while at != outer and inside_by(edges, count, *places[0, at + step, :2]) >= margin:
            at += step
        assert last_stable(places, 0, edges, count, margin, inner, outer) == at


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(3, 6))
@example(1_096_083_052, 3)  # three in a row but for rounding, which sent the march to and fro
def test_polygon_edges_agree_with_the_convex_hull(seed: int, legs: int) -> None:
    rng = np.random.default_rng(seed)
    feet = np.zeros((1, 7, 3))
    feet[0, :, :2] = np.round(rng.normal(0.0, 0.2, (7, 2)), 2)  # some in a row, some in one place
    down = np.arange(7)[None] < legs + 1
    without, places = int(rng.integers(legs + 1)), rng.normal(0.0, 0.2, (20, 2))
    edges = np.zeros((12, 3))
    count = polygon_edges(feet, down, 0, without, edges)
    corners = np.delete(feet[0, : legs + 1, :2], without, axis=0)
    if np.linalg.matrix_rank(corners - corners[0], tol=1e-6) < 2:
        assert count < 3
        return
    planes = ConvexHull(corners).equations
    for x, y in places:
        assert inside_by(edges, count, x, y) == pytest.approx(-(planes @ [x, y, 1.0]).max(), abs=1e-6)
