"""Distance transforms, surface cells and likelihood sums equal those of brute-force computation."""

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
    distances = distance_transform(marked, 0.05)
    if not marked.any():
        assert np.isinf(distances).all()
        return
    cells, sources = np.indices(marked.shape).reshape(2, -1).T, np.argwhere(marked)
    expected = np.linalg.norm(cells[:, None] - sources[None], axis=2).min(axis=1).reshape(marked.shape) * 0.05
    assert np.allclose(distances, expected, rtol=1e-6, atol=0.0)


def test_distances_agree_with_scipy_on_a_large_grid() -> None:
    marked = np.random.default_rng(3).random((301, 407)) < 0.001
    assert np.allclose(distance_transform(marked), distance_transform_edt(~marked), rtol=1e-6)


def test_distances_are_limited_and_invalid_shapes_refused() -> None:
    assert distance_transform(np.zeros((3, 4), bool), 0.1, limit=2.0).max() == 2.0
    assert distance_transform(np.eye(9, dtype=bool), 1.0, limit=2.0).max() == 2.0
    with pytest.raises(InputError, match="shape"):
        distance_transform(np.zeros(3, bool))


def test_surface_cells_of_a_block_are_its_outermost_cells() -> None:
    solid = np.zeros((8, 9), bool)
    solid[2:6, 2:7] = True
    expected = solid.copy()
    expected[3:5, 3:6] = False
    assert (surface_cells(solid) == expected).all()
    assert not surface_cells(np.ones((4, 4), bool)).any()  # cells outside the grid count as solid


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_likelihood_sums_equal_single_lookups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = np.where(random_cells(seed, 0.2), 100, 0).astype(np.int8)
    cells[0, 0] = 100
    grid_geometry = GridGeometry(0.05, cells.shape, SE2(*rng.uniform(-3, 3, 2), rng.uniform(-3, 3)))
    field = LikelihoodField.from_grid(OccupancyGrid(cells, grid_geometry), limit=0.5)
    table = field.score_table(lambda d: d + 1.0)
    poses = np.column_stack([grid_geometry.cell_centers(rng.uniform(-3, 12, (40, 2))), rng.uniform(-9, 9, 40)])
    points = rng.uniform(-1, 1, (7, 2))
    sums = field.score_poses(table, poses, points)
    for pose, total in zip(poses, sums, strict=True):
        indices = field.geometry.cells_of_points(SE2(*pose) @ points)
        inside = field.geometry.contains(indices)
        on_edge = (indices == 0) | (indices == np.array(field.geometry.shape) - 1)
        values = np.where(
            inside & ~on_edge.any(axis=1), field.distances[tuple(np.where(inside[:, None], indices, 0).T)] + 1.0, 1.5
        )
        # In single precision a point on the border of two cells may belong to the other cell.
        assert abs(total - values.sum()) < 0.08


def test_likelihood_field_without_walls_is_refused() -> None:
    with pytest.raises(InputError, match="no occupied cell"):
        LikelihoodField.from_grid(OccupancyGrid(np.zeros((4, 4), np.int8), GridGeometry(0.1, (4, 4))))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(0, 3))
def test_wall_thickness_in_unknown_space_changes_no_distance(thickness: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = np.full((40, 50), -1, np.int8)
    cells[8:30, 8:40] = 0
    for row, column in rng.integers(10, 26, (3, 2)):
        cells[row : row + 3, column : column + 2] = 100
    geometry = GridGeometry(0.05, cells.shape)

    def compute_distances(wall_thickness: int) -> np.ndarray:
        cells_with_wall = cells.copy()
        ring = np.zeros(cells.shape, dtype=bool)
        ring[8 - wall_thickness : 30 + wall_thickness, 8 - wall_thickness : 40 + wall_thickness] = True
        cells_with_wall[ring & (cells < 0)] = 100
        return LikelihoodField.from_grid(OccupancyGrid(cells_with_wall, geometry)).distances

    np.testing.assert_array_equal(compute_distances(thickness), compute_distances(1))


def test_wall_within_unknown_space_is_a_surface() -> None:
    cells = np.full((20, 20), -1, np.int8)
    cells[10, 4:9] = 100
    field = LikelihoodField.from_grid(OccupancyGrid(cells, GridGeometry(0.1, cells.shape)))
    assert (field.distances[11, 5:10] == 0.0).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_limited_distances_equal_those_to_the_nearest_marked_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    marked = rng.random((12, 17)) < 0.05
    distances = distance_transform(marked, 0.05, limit=0.4)
    cells = np.argwhere(marked)
    for row, column in np.ndindex(marked.shape):
        nearest = min((math.dist((row, column), cell) * 0.05 for cell in cells), default=math.inf)
        assert distances[row, column] == pytest.approx(min(nearest, 0.4), abs=1e-6)
