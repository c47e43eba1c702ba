"""The wave's times and the clearance of ways, against slow and simple methods."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.navigation.costmap import LETHAL
from roboyard.navigation.planning import Traversal
from roboyard.navigation.planning.grid_ways import nearest_obstacle
from roboyard.navigation.planning.ground import Ground
from roboyard.navigation.planning.marching import march


def _ground(rng: np.random.Generator, shape: tuple[int, int], blocked: float, dearest: float) -> Ground:
    weights = rng.uniform(1.0, dearest, 256).astype(np.float32)
    weights[LETHAL] = 0.0
    cells = rng.integers(0, LETHAL, shape).astype(np.uint8)
    cells[rng.random(shape) < blocked] = LETHAL
    return Ground.framed(cells, weights)


def _settled(weights: np.ndarray, source: tuple[int, int]) -> np.ndarray:
    """The eikonal equation's solution on the grid: all cells updated again and again, until nothing changes."""
    times = np.full(weights.shape, np.inf)
    times[source] = 0.0
    while True:
        framed = np.pad(times, 1, constant_values=np.inf)
        a = np.minimum(framed[2:, 1:-1], framed[:-2, 1:-1])
        b = np.minimum(framed[1:-1, 2:], framed[1:-1, :-2])
        low, high = np.minimum(a, b), np.maximum(a, b)
        with np.errstate(invalid="ignore"):
            gap = np.where(np.isfinite(low), np.minimum(high - low, weights), 0.0)
        found = np.where(weights > 0.0, low + 0.5 * (gap + np.sqrt(2.0 * weights**2 - gap**2)), np.inf)
        found[source] = 0.0
        found = np.minimum(found, times)
        with np.errstate(invalid="ignore"):
            moved = ~((times == found) | (times - found < 1e-9))
        if not moved.any():
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
    ground = _ground(rng, shape, blocked, dearest)
    weights = ground.weights[ground.cells]
    free = np.argwhere(weights > 0.0)
    if not len(free):
        return
    source, target = (tuple(int(i) for i in free[rng.integers(len(free))]) for _ in range(2))
    wanted = _settled(weights.astype(np.float64), source)
    times = np.full(weights.size, np.inf, dtype=np.float32)
    flat = int(np.ravel_multi_index(source, weights.shape))
    march(ground, times, flat, -1)
    found = times.reshape(weights.shape)
    assert (np.isfinite(found) == np.isfinite(wanted)).all()
    # what is not looked at again could win 2 % of a cell's weight
    reached = np.isfinite(wanted)
    assert (found[reached] >= wanted[reached] * (1.0 - 1e-5)).all()
    assert (found[reached] - wanted[reached] <= 0.03 * wanted[reached] + 0.02 * dearest).all()
    towards = np.full(weights.size, np.inf, dtype=np.float32)
    march(ground, towards, flat, int(np.ravel_multi_index(target, weights.shape)))
    assert towards.reshape(weights.shape)[target] == found[target]


def test_each_open_cell_is_expanded_once() -> None:
    ground = Traversal().ground(np.zeros((100, 200), dtype=np.uint8))
    times = np.full(ground.cells.size, np.inf, dtype=np.float32)
    assert march(ground, times, 50 * 202 + 60, -1) == 100 * 200 - 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 60), st.integers(0, 12), st.integers(1, 30))
def test_clearance_equals_exhaustive_distance(seed, rows, columns, obstacles, points) -> None:
    rng = np.random.default_rng(seed)
    cells = np.zeros((rows, columns), dtype=np.uint8)
    marked = rng.integers((0, 0), (rows, columns), (obstacles, 2))
    cells[marked[:, 0], marked[:, 1]] = LETHAL
    way = np.array([rows / 2, columns / 2]) + np.clip(np.cumsum(rng.normal(0.0, 2.0, (points, 2)), axis=0), -30, 30)
    aside = np.maximum(np.abs(way[:, None] - marked[None]) - 0.5, 0.0)
    wanted = float(np.linalg.norm(aside, axis=2).min()) if obstacles else math.inf
    assert nearest_obstacle(cells, way) == pytest.approx(wanted)
