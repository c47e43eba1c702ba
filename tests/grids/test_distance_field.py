"""Distance fields, rays and sums over tables, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import distance_transform_edt

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import (
    GridGeometry,
    LikelihoodField,
    OccupancyGrid,
    distance_transform,
    simulate_scans,
    surface_cells,
)

SEEDS = st.integers(0, 2**32 - 1)


def random_cells(seed: int, density: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.random(rng.integers(1, 30, 2)) < density


@given(SEEDS, st.sampled_from([0.002, 0.1, 0.7]))
@settings(max_examples=25, deadline=None)
def test_distances_equal_brute_force(seed: int, density: float) -> None:
    marked = random_cells(seed, density)
    found = distance_transform(marked, 0.05)
    if not marked.any():
        assert np.isinf(found).all()
        return
    cells, sources = np.indices(marked.shape).reshape(2, -1).T, np.argwhere(marked)
    brute = np.linalg.norm(cells[:, None] - sources[None], axis=2).min(axis=1).reshape(marked.shape) * 0.05
    assert np.allclose(found, brute, rtol=1e-6, atol=0.0)


def test_distances_equal_scipys_on_a_large_grid() -> None:
    marked = np.random.default_rng(3).random((301, 407)) < 0.001
    assert np.allclose(distance_transform(marked), distance_transform_edt(~marked), rtol=1e-6)


def test_distances_are_limited_and_bad_shapes_refused() -> None:
    assert distance_transform(np.zeros((3, 4), bool), 0.1, limit=2.0).max() == 2.0
    assert distance_transform(np.eye(9, dtype=bool), 1.0, limit=2.0).max() == 2.0
    with pytest.raises(InputError, match="shape"):
        distance_transform(np.zeros(3, bool))


def test_surface_of_a_block_is_its_border() -> None:
    solid = np.zeros((8, 9), bool)
    solid[2:6, 2:7] = True
    rim = solid.copy()
    rim[3:5, 3:6] = False
    assert (surface_cells(solid) == rim).all()
    assert not surface_cells(np.ones((4, 4), bool)).any()  # what lies beyond the grid counts as solid


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_cast_scans_end_at_the_first_solid_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    solid = random_cells(seed)
    frame = GridGeometry(0.1, solid.shape, SE2(*rng.uniform(-3, 3, 2), rng.uniform(-3, 3)))
    start = frame.T_map_grid @ SE2(*(rng.random(2) * np.array(solid.shape)[::-1] * 0.1), rng.uniform(-3, 3))
    found = simulate_scans(solid, frame, [start.x, start.y, start.theta], [0.0, 1.0], 2.0)[0]
    for length, angle in zip(found, (0.0, 1.0), strict=True):
        steps = np.arange(0.0, 2.0, 1e-4)
        points = start @ (steps[:, None] * [math.cos(angle), math.sin(angle)])
        cells = frame.cells_of_points(points)
        inside = frame.contains(cells)
        hit = inside & solid[tuple(np.where(inside[:, None], cells, 0).T)]
        left = np.flatnonzero(~inside)
        first = np.flatnonzero(hit)
        if len(first) and not (len(left) and left[0] < first[0]):
            assert length <= steps[first[0]] + 2e-4  # a corner may be cut between two steps
        if math.isfinite(length):
            end = start @ ((length + 1e-6) * np.array([math.cos(angle), math.sin(angle)]))
            assert solid[tuple(frame.cells_of_points(end))]


def test_cast_scans_leave_and_enter_the_grid() -> None:
    solid = np.zeros((5, 5), bool)
    solid[2, 4] = True
    frame = GridGeometry(1.0, (5, 5))
    assert simulate_scans(solid, frame, [0.5, 2.5, 0.0], [0.0, math.pi / 2], 30.0)[0].tolist() == [3.5, math.inf]
    assert simulate_scans(solid, frame, [0.5, 2.5, 0.0], [0.0], 3.0)[0].tolist() == [math.inf]
    assert simulate_scans(solid, frame, [4.5, 2.5, 0.0], [0.0], 3.0)[0].tolist() == [0.0]
    assert simulate_scans(solid, frame, [-9.0, 2.5, 0.0], [0.0], 30.0)[0].tolist() == [13.0]  # into it


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_likelihood_sums_equal_single_lookups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = np.where(random_cells(seed, 0.2), 100, 0).astype(np.int8)
    cells[0, 0] = 100
    frame = GridGeometry(0.05, cells.shape, SE2(*rng.uniform(-3, 3, 2), rng.uniform(-3, 3)))
    field = LikelihoodField.from_grid(OccupancyGrid(cells, frame), limit=0.5)
    table = field.score_table(lambda d: d + 1.0)
    poses = np.column_stack([frame.cell_centers(rng.uniform(-3, 12, (40, 2))), rng.uniform(-9, 9, 40)])
    points = rng.uniform(-1, 1, (7, 2))
    sums = field.score_poses(table, poses, points)
    for pose, total in zip(poses, sums, strict=True):
        indices = field.geometry.cells_of_points(SE2(*pose) @ points)
        inside = field.geometry.contains(indices)
        edge = (indices == 0) | (indices == np.array(field.geometry.shape) - 1)
        values = np.where(
            inside & ~edge.any(axis=1), field.distances[tuple(np.where(inside[:, None], indices, 0).T)] + 1.0, 1.5
        )
        # single precision may put a point that lies on the border of two cells into the other
        assert abs(total - values.sum()) < 0.08


def test_likelihood_field_without_walls_is_refused() -> None:
    with pytest.raises(InputError, match="no occupied cell"):
        LikelihoodField.from_grid(OccupancyGrid(np.zeros((4, 4), np.int8), GridGeometry(0.1, (4, 4))))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(0, 3))
def test_wall_thickness_in_unknown_space_changes_no_distance(thick: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = np.full((40, 50), -1, np.int8)
    cells[8:30, 8:40] = 0
    for row, column in rng.integers(10, 26, (3, 2)):
        cells[row : row + 3, column : column + 2] = 100
    frame = GridGeometry(0.05, cells.shape)

    def distances(wall: int) -> np.ndarray:
        walled = cells.copy()
        ring = np.zeros(cells.shape, dtype=bool)
        ring[8 - wall : 30 + wall, 8 - wall : 40 + wall] = True
        walled[ring & (cells < 0)] = 100
        return LikelihoodField.from_grid(OccupancyGrid(walled, frame)).distances

    np.testing.assert_array_equal(distances(thick), distances(1))


def test_wall_within_unknown_space_is_a_surface() -> None:
    cells = np.full((20, 20), -1, np.int8)
    cells[10, 4:9] = 100
    field = LikelihoodField.from_grid(OccupancyGrid(cells, GridGeometry(0.1, cells.shape)))
    assert (field.distances[11, 5:10] == 0.0).all()
