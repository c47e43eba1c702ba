"""Laws of rays, evidence and distances."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import (
    UNKNOWN,
    GridGeometry,
    InverseSensorModel,
    OccupancyMapBuilder,
    cast_rays,
    count_hits_and_misses,
    distance_transform,
)

coordinates = st.floats(-3.0, 23.0).map(lambda value: round(value, 3) + 0.0004)  # not on an edge, where both are right


def segment_cells(x0: float, y0: float, x1: float, y1: float) -> set[tuple[int, int]]:
    """Cells that a segment touches, by cutting it at all lines of the grid."""
    cuts = [0.0, 1.0]
    for low, high in ((x0, x1), (y0, y1)):
        if low != high:
            lines = np.arange(math.ceil(min(low, high)), math.floor(max(low, high)) + 1)
            cuts += [(line - low) / (high - low) for line in lines]
    cuts.sort()
    centers = [(a + b) / 2 for a, b in itertools.pairwise(cuts) if b - a > 1e-9]
    centers += [0.0, 1.0]
    return {(math.floor(y0 + t * (y1 - y0)), math.floor(x0 + t * (x1 - x0))) for t in centers}


@settings(max_examples=200, deadline=None)
@given(coordinates, coordinates, coordinates, coordinates, st.booleans())
def test_beam_updates_the_cells_that_its_segment_crosses(x0: float, y0: float, x1: float, y1: float, hit: bool) -> None:
    hits, misses = np.zeros((20, 20), dtype=np.int32), np.zeros((20, 20), dtype=np.int32)
    count_hits_and_misses(hits, misses, np.array([[x0, y0]]), np.array([[x1, y1]]), np.array([hit]))
    inside = {(r, c) for r, c in segment_cells(x0, y0, x1, y1) if 0 <= r < 20 and 0 <= c < 20}
    found = {(int(r), int(c)) for r, c in np.argwhere(hits + misses)}
    neighbors = set()  # a beam through a corner may take the cell on either side
    for nudge in (-1e-7, 1e-7):
        neighbors |= segment_cells(x0 + nudge, y0 - nudge, x1 + nudge, y1 - nudge)
        neighbors |= segment_cells(x0 + nudge, y0 + nudge, x1 + nudge, y1 + nudge)
    assert inside <= found <= inside | neighbors
    assert (hits + misses).max(initial=0) <= 1
    end = (math.floor(y1), math.floor(x1))
    assert [tuple(cell) for cell in np.argwhere(hits)] == ([end] if hit and end in inside else [])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**31), st.floats(-math.pi, math.pi))
def test_cast_rays_stop_at_the_first_blocked_cell(seed: int, direction: float) -> None:
    rng = np.random.default_rng(seed)
    blocked = rng.random((30, 40)) < 0.05
    x, y = rng.uniform(-2, 42), rng.uniform(-2, 32)
    length = cast_rays(blocked, np.array([[x, y, direction]]), 60.0)[0]
    steps = np.arange(0.0, 60.0, 0.002)
    columns = np.floor(x + steps * math.cos(direction)).astype(int)
    rows = np.floor(y + steps * math.sin(direction)).astype(int)
    inside = (columns >= 0) & (columns < 40) & (rows >= 0) & (rows < 30)
    met = np.zeros(len(steps), dtype=bool)
    met[inside] = blocked[rows[inside], columns[inside]]
    by_steps = steps[np.argmax(met)] if met.any() else 60.0
    assert length <= by_steps + 1e-9  # small steps may jump over a corner
    if by_steps - length > 0.003:
        distance = length + 1e-6
        assert blocked[math.floor(y + distance * math.sin(direction)), math.floor(x + distance * math.cos(direction))]


def test_evidence_is_order_independent_and_keeps_unknown_cells() -> None:
    rng = np.random.default_rng(3)
    frame = GridGeometry(0.1, (50, 60), SE2(-1.0, -2.0, 0.3))
    ends = rng.uniform(-3.0, 6.0, (200, 2))
    forth, back = OccupancyMapBuilder(frame), OccupancyMapBuilder(frame)
    forth.add_beams((0.5, 0.5), ends)
    back.add_beams((0.5, 0.5), ends[::-1][:80])
    back.add_beams((0.5, 0.5), ends[::-1][80:])
    assert np.array_equal(forth.to_grid().cells, back.to_grid().cells)
    observed = forth.hits + forth.misses > 0
    assert np.array_equal(forth.to_grid().cells == UNKNOWN, ~observed)


def test_observed_wall_is_occupied_and_the_space_before_it_free() -> None:
    evidence = OccupancyMapBuilder(GridGeometry(0.05, (40, 100)))
    evidence.add_beams((0.1, 1.0), [[4.0 + 0.025, 1.0 + 0.01 * k] for k in range(10)])
    cells, frame = evidence.to_grid().cells, evidence.geometry
    assert cells[tuple(frame.cells_of_points([4.025, 1.02]))] > 80
    assert cells[tuple(frame.cells_of_points([2.0, 1.02]))] < 30
    assert evidence.log_odds().max() <= InverseSensorModel().log_odds_max


def test_beams_that_are_not_finite_are_ignored() -> None:
    evidence = OccupancyMapBuilder(GridGeometry(0.1, (10, 10)))
    evidence.add_beams((0.5, 0.5), [[np.nan, 0.5], [np.inf, 0.2]])
    assert not (evidence.hits + evidence.misses).any()
    with pytest.raises(InputError):
        evidence.add_beams((0.5, 0.5), [0.1, 0.2, 0.3])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_limited_distances_equal_the_nearest_marked_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    marked = rng.random((12, 17)) < 0.05
    found = distance_transform(marked, 0.05, limit=0.4)
    cells = np.argwhere(marked)
    for row, column in np.ndindex(marked.shape):
        nearest = min((math.dist((row, column), cell) * 0.05 for cell in cells), default=math.inf)
        assert found[row, column] == pytest.approx(min(nearest, 0.4), abs=1e-6)
