"""Maps against the truth: a perfect map has no error, and one that is off is off by what was done to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.mapping.evaluation.map_error import compare_with_floor_plan

PLAN = GridGeometry(0.01, (500, 700), SE2(-1.0, -2.0, 0.0))


def hall_plan() -> np.ndarray:
    solid = np.zeros(PLAN.shape, bool)
    solid[:20], solid[-20:], solid[:, :20], solid[:, -20:] = True, True, True, True
    solid[200:240, 300:400] = True
    return solid


def perfect_map(off: tuple[float, float] = (0.0, 0.0), T_world_map: SE2 = SE2()) -> OccupancyGrid:
    """What a robot with perfect sensors maps: free room and the outermost 5 cm of what is solid, moved by ``off``."""
    frame = GridGeometry(0.05, (140, 180), SE2(-2.0, -3.0, 0.0))
    cells = np.full(frame.shape, -1, np.int8)
    fine = hall_plan()
    deep = np.zeros_like(fine)
    deep[5:-5, 5:-5] = fine[5:-5, 5:-5] & fine[10:, 5:-5] & fine[:-10, 5:-5] & fine[5:-5, 10:] & fine[5:-5, :-10]
    points = T_world_map @ frame.cell_centers(np.argwhere(cells < 0)) - off
    indices = PLAN.cells_of_points(points)
    inside = ((indices >= 15) & (indices <= np.array(PLAN.shape) - 16)).all(axis=1)
    rows, columns = indices[inside].T
    cells.flat[inside] = np.where(deep[rows, columns], -1, np.where(fine[rows, columns], 100, 0))
    return OccupancyGrid(cells, frame)


def test_exact_map_has_errors_below_a_cell() -> None:
    found = compare_with_floor_plan(perfect_map(), hall_plan(), PLAN, SE2())
    assert found.wall_error < 0.04
    assert found.iou_occupied > 0.97
    assert found.iou_free > 0.99
    assert found.coverage > 0.98


@pytest.mark.slow
@settings(max_examples=5)
@given(st.integers(-200, 200), st.integers(-200, 200))
def test_map_comparison_is_independent_of_the_frame(x: int, y: int) -> None:
    T = SE2(0.05 * x, 0.05 * y, 0.0)
    grid = perfect_map()
    transformed = GridGeometry(0.05, grid.geometry.shape, T.inverse() @ grid.geometry.T_map_grid)
    found, reference = (
        compare_with_floor_plan(OccupancyGrid(grid.cells, transformed), hall_plan(), PLAN, T),
        compare_with_floor_plan(grid, hall_plan(), PLAN, SE2()),
    )
    assert found.wall_error == pytest.approx(reference.wall_error, abs=0.01)
    assert found.iou_free == pytest.approx(reference.iou_free, abs=0.02)


@pytest.mark.slow
def test_shifted_map_has_the_shift_as_error() -> None:
    errors = [
        compare_with_floor_plan(perfect_map((off, off)), hall_plan(), PLAN, SE2()) for off in (0.0, 0.1, 0.2, 0.3)
    ]
    walls = [found.wall_error for found in errors]
    assert walls == sorted(walls)
    assert walls[3] - walls[0] == pytest.approx(0.25, abs=0.1)
    assert errors[2].iou_occupied < 0.6 < errors[0].iou_occupied
    assert [found.iou_free for found in errors] == sorted((found.iou_free for found in errors), reverse=True)


def test_missing_cells_lower_the_coverage() -> None:
    grid = perfect_map()
    cells = grid.cells.copy()
    cells[:, 90:] = -1
    half = compare_with_floor_plan(OccupancyGrid(cells, grid.geometry), hall_plan(), PLAN, SE2())
    complete = compare_with_floor_plan(grid, hall_plan(), PLAN, SE2())
    assert half.coverage < 0.7 * complete.coverage
    assert half.iou_occupied > 0.95  # what it has is right


def test_comparison_of_empty_maps_is_refused() -> None:
    empty = OccupancyGrid(np.full((10, 10), -1, np.int8), GridGeometry(0.05, (10, 10)))
    with pytest.raises(InputError):
        compare_with_floor_plan(empty, hall_plan(), PLAN, SE2())
    with pytest.raises(InputError):
        compare_with_floor_plan(perfect_map(), np.zeros(PLAN.shape, bool), PLAN, SE2())
