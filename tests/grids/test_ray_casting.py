"""Ray casting and simulated scans on grids agree with exact intersection and with small steps along the ray."""

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.geometry import SE2
from roboyard.grids import (
    GridGeometry,
    cast_rays,
    count_hits_and_misses,
    simulate_scans,
)

coordinates = st.floats(-3.0, 23.0).map(
    lambda value: round(value, 3) + 0.0004
)  # not on an edge, where both adjacent cells are valid


def find_segment_cells(x0: float, y0: float, x1: float, y1: float) -> set[tuple[int, int]]:
    """Return the cells that a segment crosses, found from its intersections with the lines of the grid."""
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
    inside = {(r, c) for r, c in find_segment_cells(x0, y0, x1, y1) if 0 <= r < 20 and 0 <= c < 20}
    updated = {(int(r), int(c)) for r, c in np.argwhere(hits + misses)}
    neighbors = set()  # a beam through a corner may cross the cell on either side
    for offset in (-1e-7, 1e-7):
        neighbors |= find_segment_cells(x0 + offset, y0 - offset, x1 + offset, y1 - offset)
        neighbors |= find_segment_cells(x0 + offset, y0 + offset, x1 + offset, y1 + offset)
    assert inside <= updated <= inside | neighbors
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
    is_blocked = np.zeros(len(steps), dtype=bool)
    is_blocked[inside] = blocked[rows[inside], columns[inside]]
    stepped_length = steps[np.argmax(is_blocked)] if is_blocked.any() else 60.0
    assert length <= stepped_length + 1e-9  # steps may miss a corner
    if stepped_length - length > 0.003:
        distance = length + 1e-6
        assert blocked[math.floor(y + distance * math.sin(direction)), math.floor(x + distance * math.cos(direction))]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_simulated_scans_end_at_the_first_solid_cell(seed: int) -> None:
    rng, cells_rng = np.random.default_rng(seed), np.random.default_rng(seed)
    solid = cells_rng.random(cells_rng.integers(1, 30, 2)) < 0.1
    geometry = GridGeometry(0.1, solid.shape, SE2(*rng.uniform(-3, 3, 2), rng.uniform(-3, 3)))
    start = geometry.T_map_grid @ SE2(*(rng.random(2) * np.array(solid.shape)[::-1] * 0.1), rng.uniform(-3, 3))
    ranges = simulate_scans(solid, geometry, [start.x, start.y, start.theta], [0.0, 1.0], 2.0)[0]
    for length, angle in zip(ranges, (0.0, 1.0), strict=True):
        steps = np.arange(0.0, 2.0, 1e-4)
        points = start @ (steps[:, None] * [math.cos(angle), math.sin(angle)])
        cells = geometry.cells_of_points(points)
        inside = geometry.contains(cells)
        hit = inside & solid[tuple(np.where(inside[:, None], cells, 0).T)]
        outside_steps = np.flatnonzero(~inside)
        hit_steps = np.flatnonzero(hit)
        if len(hit_steps) and not (len(outside_steps) and outside_steps[0] < hit_steps[0]):
            assert length <= steps[hit_steps[0]] + 2e-4  # steps may miss a corner
        if math.isfinite(length):
            end = start @ ((length + 1e-6) * np.array([math.cos(angle), math.sin(angle)]))
            assert solid[tuple(geometry.cells_of_points(end))]


def test_simulated_scans_leave_and_enter_the_grid() -> None:
    solid = np.zeros((5, 5), bool)
    solid[2, 4] = True
    geometry = GridGeometry(1.0, (5, 5))
    assert simulate_scans(solid, geometry, [0.5, 2.5, 0.0], [0.0, math.pi / 2], 30.0)[0].tolist() == [3.5, math.inf]
    assert simulate_scans(solid, geometry, [0.5, 2.5, 0.0], [0.0], 3.0)[0].tolist() == [math.inf]
    assert simulate_scans(solid, geometry, [4.5, 2.5, 0.0], [0.0], 3.0)[0].tolist() == [0.0]
    assert simulate_scans(solid, geometry, [-9.0, 2.5, 0.0], [0.0], 30.0)[0].tolist() == [13.0]  # from outside
