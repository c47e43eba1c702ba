"""The wave's times and the clearance of ways, against slow and simple methods."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.navigation.costmap import LETHAL
from roboyard.navigation.planners import TraversalCosts
from roboyard.navigation.planners.cost_grid import TraversalGrid
from roboyard.navigation.planners.fast_marching import propagate_wave
from roboyard.navigation.planners.planner import distance_to_nearest_obstacle


def _random_grid(rng: np.random.Generator, shape: tuple[int, int], blocked: float, dearest: float) -> TraversalGrid:
    weights = rng.uniform(1.0, dearest, 256).astype(np.float32)
    weights[LETHAL] = 0.0
    cells = rng.integers(0, LETHAL, shape).astype(np.uint8)
    cells[rng.random(shape) < blocked] = LETHAL
    return TraversalGrid.with_border(cells, weights)


def _brute_force_times(weights: np.ndarray, source: tuple[int, int]) -> np.ndarray:
    """The eikonal equation's solution on the grid: all cells updated again and again, until nothing changes."""
    times = np.full(weights.shape, np.inf)
    times[source] = 0.0
    while True:
        padded = np.pad(times, 1, constant_values=np.inf)
        a = np.minimum(padded[2:, 1:-1], padded[:-2, 1:-1])
        b = np.minimum(padded[1:-1, 2:], padded[1:-1, :-2])
        low, high = np.minimum(a, b), np.maximum(a, b)
        with np.errstate(invalid="ignore"):
            gap = np.where(np.isfinite(low), np.minimum(high - low, weights), 0.0)
        found = np.where(weights > 0.0, low + 0.5 * (gap + np.sqrt(2.0 * weights**2 - gap**2)), np.inf)
        found[source] = 0.0
        found = np.minimum(found, times)
        with np.errstate(invalid="ignore"):
            has_changed = ~((times == found) | (times - found < 1e-9))
        if not has_changed.any():
            return times
        times = found


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 24), st.integers(1, 24)),
    st.floats(0.0, 0.4),
    st.sampled_from([1.0, 1.5, 4.0, 30.0]),
)
def test_arrival_times_equal_a_brute_force_solution(seed, shape, blocked, dearest) -> None:
    rng = np.random.default_rng(seed)
    grid = _random_grid(rng, shape, blocked, dearest)
    weights = grid.weights[grid.cells]
    free = np.argwhere(weights > 0.0)
    if not len(free):
        return
    source, target = (tuple(int(i) for i in free[rng.integers(len(free))]) for _ in range(2))
    expected = _brute_force_times(weights.astype(np.float64), source)
    times = np.full(weights.size, np.inf, dtype=np.float32)
    flat = int(np.ravel_multi_index(source, weights.shape))
    propagate_wave(grid, times, flat, -1)
    found = times.reshape(weights.shape)
    assert (np.isfinite(found) == np.isfinite(expected)).all()
    # what is not looked at again could win 2 % of a cell's weight
    reached = np.isfinite(expected)
    assert (found[reached] >= expected[reached] * (1.0 - 1e-5)).all()
    assert (found[reached] - expected[reached] <= 0.03 * expected[reached] + 0.02 * dearest).all()
    towards = np.full(weights.size, np.inf, dtype=np.float32)
    propagate_wave(grid, towards, flat, int(np.ravel_multi_index(target, weights.shape)))
    assert towards.reshape(weights.shape)[target] == found[target]


def test_each_open_cell_is_expanded_once() -> None:
    grid = TraversalCosts().make_grid(np.zeros((100, 200), dtype=np.uint8))
    times = np.full(grid.cells.size, np.inf, dtype=np.float32)
    assert propagate_wave(grid, times, 50 * 202 + 60, -1) == 100 * 200 - 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 60), st.integers(0, 12), st.integers(1, 30))
def test_clearance_equals_exhaustive_distance(seed, rows, columns, obstacles, points) -> None:
    rng = np.random.default_rng(seed)
    cells = np.zeros((rows, columns), dtype=np.uint8)
    marked = rng.integers((0, 0), (rows, columns), (obstacles, 2))
    cells[marked[:, 0], marked[:, 1]] = LETHAL
    path_points = np.array([rows / 2, columns / 2]) + np.clip(
        np.cumsum(rng.normal(0.0, 2.0, (points, 2)), axis=0), -30, 30
    )
    offsets = np.maximum(np.abs(path_points[:, None] - marked[None]) - 0.5, 0.0)
    expected = float(np.linalg.norm(offsets, axis=2).min()) if obstacles else math.inf
    assert distance_to_nearest_obstacle(cells, path_points) == pytest.approx(expected)
