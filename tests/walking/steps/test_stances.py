"""Regions of bodies over stances, beside independent methods; and the queue of a graph of stances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import label
from tests.walking.steps.step_problems import problem_on, rig_of

from roboyard.grids.terrain import generate_terrain
from roboyard.walking.errors import NoPlan
from roboyard.walking.stability import stability_margin
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.ground_kernels import body_height
from roboyard.walking.steps.herd import make_herd
from roboyard.walking.steps.planning import PLANNERS, plan_steps
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.queues import pop, push
from roboyard.walking.steps.regions import SIDE, fill_region, flood, middle_of, path_in
from roboyard.walking.steps.stances import EXHAUSTED, HEAP, make_graph

Grid = NDArray[np.bool_]

grids = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).random((SIDE, SIDE)) < 0.62)


def bits_of(grid: Grid) -> NDArray[np.uint64]:
    return np.array([sum(1 << int(c) for c in np.flatnonzero(row)) for row in grid], np.uint64)


def grid_of(bits: NDArray[np.uint64]) -> Grid:
    return np.array([[int(row) >> c & 1 for c in range(SIDE)] for row in bits], np.bool_)


@settings(max_examples=40, deadline=None)
@given(grids, st.integers(0, SIDE * SIDE - 1))
def test_flood_fill_agrees_with_scipy_labels(grid: Grid, cell: int) -> None:
    row, column = divmod(cell, SIDE)
    grid[row, column] = True
    out = np.zeros(SIDE, np.uint64)
    flood(bits_of(grid), row, column, out)
    labels, _ = label(grid)
    assert np.array_equal(grid_of(out), labels == labels[row, column])


@settings(max_examples=40, deadline=None)
@given(grids, st.integers(0, SIDE * SIDE - 1), st.integers(0, SIDE * SIDE - 1))
def test_region_paths_stay_inside_and_cut_no_corner(grid: Grid, first: int, last: int) -> None:
    (r0, c0), (r1, c1) = divmod(first, SIDE), divmod(last, SIDE)
    grid[r0, c0] = grid[r1, c1] = True
    came, queue = np.zeros(SIDE * SIDE, np.int64), np.zeros(SIDE * SIDE, np.int64)
    count = path_in(bits_of(grid), r0, c0, r1, c1, came, queue)
    labels, _ = label(grid)
    assert (count >= 0) == (labels[r0, c0] == labels[r1, c1])
    at = np.array([[r0, c0], *(divmod(int(cell), SIDE) for cell in queue[: max(count, 0)])])
    if count >= 0:
        assert tuple(at[-1]) == (r1, c1)
    assert np.abs(np.diff(at, axis=0)).max(initial=0) <= 1
    assert grid[at[:, 0], at[:, 1]].all()
    assert grid[at[:-1, 0], at[1:, 1]].all()
    assert grid[at[1:, 0], at[:-1, 1]].all()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30))
def test_stance_queue_pops_the_least_key_first(keys: list[float]) -> None:
    graph = make_graph(40, 1)
    for node, key in enumerate(keys):
        push(graph, key, node)
    out = [keys[pop(graph)] for _ in keys]
    assert out == sorted(keys)
    assert graph.number[HEAP] == 0


def on_stones() -> Problem:
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
    """All places of a region are in reach by inverse kinematics; those beside it are not, but for margins of tables."""
    problem = on_stones()
    rig, world, herd, grid = problem.rig, problem.world, make_herd(1, 6), np.array([0.0, 0.0, 0.02])
    herd.feet[0], herd.down[0] = problem.feet, True
    if lifted is not None:
        herd.down[0, lifted] = False
    first, out = np.zeros(2, np.int64), np.zeros(SIDE, np.uint64)
    middle_of(world, herd, 0, grid, first)
    fill_region(world, herd, 0, grid, first, out)
    found, stood = grid_of(out), problem.feet[herd.down[0]]
    assert found.sum() > 20
    ground, off = problem.ground.rows, 0
    for r in range(SIDE):
        for c in range(SIDE):
            x, y = 0.02 * (first[1] + c), 0.02 * (first[0] + r)
            z = body_height(ground.body, ground.x, ground.y, ground.cell, x, y)
            can = rig.walker.reached(problem.feet - (x, y, z)) | ~herd.down[0]
            stable = stability_margin(stood, np.array([x, y])) >= rig.margin - 1e-9
            assert not found[r, c] or (can.all() and stable)
            off += bool(can.all() and stable and not found[r, c])
    assert off <= found.sum()


def search_on(problem: Problem, spend: int, room: Callable[[int], bool]) -> int:
    """How many graphs were gone through whole within a number of events."""
    chosen = PLANNERS["ara-star"]
    search = chosen.search(len(problem.feet))
    while search.tally[0] < spend and room(int(search.graph.number[EXHAUSTED])):
        chosen.spend(problem.world, problem.limbs, search, np.uint64(1), 2_000)
    return int(search.graph.number[EXHAUSTED])


def test_stance_search_on_an_island_ends() -> None:
    """An island: each stance on it is known in the end, and none leads off."""
    rig = rig_of("akrobat")
    heights = np.full((160, 200), np.nan)
    for x, y in rig.rows.home[:, :2]:
        column, row = round((x + 1.0) / 0.02), round((y + 1.6) / 0.02)
        heights[row - 1 : row + 2, column - 1 : column + 2] = 0.0
        heights[row - 1 : row + 2, column + 79 : column + 82] = 0.0
    ground = Ground.of(heights, (-1.0, -1.6), rig)
    problem = Problem.of(rig, ground, (0.0, 0.0), (1.6, 0.0))
    assert search_on(problem, 400_000, lambda ended: ended == 0) > 0
    with pytest.raises(NoPlan):
        plan_steps(problem, "ara-star", budget=5_000)
