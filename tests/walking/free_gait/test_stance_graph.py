"""Stance graph: regions of the body against independent methods, the queue, and a search that ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import label
from tests.walking.free_gait.step_planning_problems import problem_on, robot_model_named

from roboyard.grids.terrain import generate_terrain
from roboyard.walking.errors import NoStepPlanError
from roboyard.walking.free_gait.foothold_map import FootholdMap, interpolate_body_height
from roboyard.walking.free_gait.partial_plans import empty_partial_plans
from roboyard.walking.free_gait.planners.ara_star import AraStarPlanner, heap_pop, heap_push
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.stance_graph import (
    HEAP_SIZE,
    N_EXHAUSTED,
    REGION_SIZE,
    compute_region_origin,
    connected_region,
    empty_stance_graph,
    fill_region,
    shortest_path_in_region,
)
from roboyard.walking.statics import stability_margin

Grid = NDArray[np.bool_]

grids = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).random((REGION_SIZE, REGION_SIZE)) < 0.62
)


def bits_of(grid: Grid) -> NDArray[np.uint64]:
    return np.array([sum(1 << int(c) for c in np.flatnonzero(row)) for row in grid], np.uint64)


def grid_of(bits: NDArray[np.uint64]) -> Grid:
    return np.array([[int(row) >> c & 1 for c in range(REGION_SIZE)] for row in bits], np.bool_)


@settings(max_examples=40, deadline=None)
@given(grids, st.integers(0, REGION_SIZE * REGION_SIZE - 1))
def test_flood_fill_agrees_with_scipy_labels(grid: Grid, cell: int) -> None:
    row, column = divmod(cell, REGION_SIZE)
    grid[row, column] = True
    out = np.zeros(REGION_SIZE, np.uint64)
    connected_region(bits_of(grid), row, column, out)
    labels, _ = label(grid)
    assert np.array_equal(grid_of(out), labels == labels[row, column])


@settings(max_examples=40, deadline=None)
@given(grids, st.integers(0, REGION_SIZE * REGION_SIZE - 1), st.integers(0, REGION_SIZE * REGION_SIZE - 1))
def test_region_paths_stay_inside_and_cut_no_corner(grid: Grid, first: int, last: int) -> None:
    (r0, c0), (r1, c1) = divmod(first, REGION_SIZE), divmod(last, REGION_SIZE)
    grid[r0, c0] = grid[r1, c1] = True
    predecessors, queue = np.zeros(REGION_SIZE * REGION_SIZE, np.int64), np.zeros(REGION_SIZE * REGION_SIZE, np.int64)
    count = shortest_path_in_region(bits_of(grid), r0, c0, r1, c1, predecessors, queue)
    labels, _ = label(grid)
    assert (count >= 0) == (labels[r0, c0] == labels[r1, c1])
    cells = np.array([[r0, c0], *(divmod(int(cell), REGION_SIZE) for cell in queue[: max(count, 0)])])
    if count >= 0:
        assert tuple(cells[-1]) == (r1, c1)
    assert np.abs(np.diff(cells, axis=0)).max(initial=0) <= 1
    assert grid[cells[:, 0], cells[:, 1]].all()
    assert grid[cells[:-1, 0], cells[1:, 1]].all()
    assert grid[cells[1:, 0], cells[:-1, 1]].all()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30))
def test_stance_queue_pops_the_least_key_first(keys: list[float]) -> None:
    graph = empty_stance_graph(40, 1)
    for node, key in enumerate(keys):
        heap_push(graph, key, node)
    out = [keys[heap_pop(graph)] for _ in keys]
    assert out == sorted(keys)
    assert graph.counters[HEAP_SIZE] == 0


def stones_problem() -> StepPlanningProblem:
    terrain = generate_terrain(
        "stones",
        (1.0, 1.6),
        np.random.default_rng(5),
        corner=(0.3, -0.8),
        cell_size=0.06,
        height_range=0.3,
        fraction=0.5,
    )
    return problem_on(terrain, (1.6, 0.0))


@pytest.mark.parametrize("lifted", [None, 0, 3])
def test_region_bodies_are_reachable_and_stable(lifted: int | None) -> None:
    """Positions of a region are reachable by inverse kinematics; others are not, except for margins of the tables."""
    problem = stones_problem()
    robot_model, context, plans, grid = (
        problem.robot_model,
        problem.context,
        empty_partial_plans(1, 6),
        np.array([0.0, 0.0, 0.02]),
    )
    plans.feet[0], plans.in_stance[0] = problem.feet, True
    if lifted is not None:
        plans.in_stance[0, lifted] = False
    first, out = np.zeros(2, np.int64), np.zeros(REGION_SIZE, np.uint64)
    compute_region_origin(context, plans, 0, grid, first)
    fill_region(context, plans, 0, grid, first, out)
    found, stance_feet = grid_of(out), problem.feet[plans.in_stance[0]]
    assert found.sum() > 20
    map_arrays, n_missing = problem.foothold_map.arrays, 0
    for r in range(REGION_SIZE):
        for c in range(REGION_SIZE):
            x, y = 0.02 * (first[1] + c), 0.02 * (first[0] + r)
            z = interpolate_body_height(map_arrays.body_height, map_arrays.x, map_arrays.y, map_arrays.cell_size, x, y)
            is_reachable = robot_model.legged_robot.is_reachable(problem.feet - (x, y, z)) | ~plans.in_stance[0]
            stable = stability_margin(stance_feet, np.array([x, y])) >= robot_model.min_stability_margin - 1e-9
            assert not found[r, c] or (is_reachable.all() and stable)
            n_missing += bool(is_reachable.all() and stable and not found[r, c])
    assert n_missing <= found.sum()


def count_exhausted_graphs(problem: StepPlanningProblem, max_events: int, may_continue: Callable[[int], bool]) -> int:
    """Return the number of graphs that were searched completely within a number of events."""
    search = AraStarPlanner().start_search(problem, 1)
    counters = search.arrays.graph.counters
    while search.statistics.events < max_events and may_continue(int(counters[N_EXHAUSTED])):
        search.advance(2_000)
    return int(counters[N_EXHAUSTED])


def test_stance_search_on_an_island_ends() -> None:
    """On an island the search ends when it knows all stances, since none leads off."""
    robot_model = robot_model_named("akrobat")
    heights = np.full((160, 200), np.nan)
    for x, y in robot_model.arrays.stance_feet[:, :2]:
        column, row = round((x + 1.0) / 0.02), round((y + 1.6) / 0.02)
        heights[row - 1 : row + 2, column - 1 : column + 2] = 0.0
        heights[row - 1 : row + 2, column + 79 : column + 82] = 0.0
    foothold_map = FootholdMap.from_heights(heights, (-1.0, -1.6), robot_model)
    problem = StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), (1.6, 0.0))
    assert count_exhausted_graphs(problem, 400_000, lambda n_exhausted: n_exhausted == 0) > 0
    with pytest.raises(NoStepPlanError):
        plan_steps(problem, "ara-star", budget=5_000)
