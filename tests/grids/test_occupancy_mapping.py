"""Occupancy mapping: order of beams, occupied and free cells, invalid beams."""

import numpy as np
import pytest

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import (
    UNKNOWN,
    GridGeometry,
    InverseSensorModel,
    OccupancyMapBuilder,
)


def test_occupancy_map_does_not_depend_on_the_order_of_beams() -> None:
    rng = np.random.default_rng(3)
    geometry = GridGeometry(0.1, (50, 60), SE2(-1.0, -2.0, 0.3))
    ends = rng.uniform(-3.0, 6.0, (200, 2))
    forward, reversed_order = OccupancyMapBuilder(geometry), OccupancyMapBuilder(geometry)
    forward.add_beams((0.5, 0.5), ends)
    reversed_order.add_beams((0.5, 0.5), ends[::-1][:80])
    reversed_order.add_beams((0.5, 0.5), ends[::-1][80:])
    assert np.array_equal(forward.to_grid().cells, reversed_order.to_grid().cells)
    observed = forward.hits + forward.misses > 0
    assert np.array_equal(forward.to_grid().cells == UNKNOWN, ~observed)


def test_observed_wall_is_occupied_and_the_space_in_front_is_free() -> None:
    builder = OccupancyMapBuilder(GridGeometry(0.05, (40, 100)))
    builder.add_beams((0.1, 1.0), [[4.0 + 0.025, 1.0 + 0.01 * k] for k in range(10)])
    cells, geometry = builder.to_grid().cells, builder.geometry
    assert cells[tuple(geometry.cells_of_points([4.025, 1.02]))] > 80
    assert cells[tuple(geometry.cells_of_points([2.0, 1.02]))] < 30
    assert builder.log_odds().max() <= InverseSensorModel().log_odds_max


def test_beams_that_are_not_finite_are_ignored() -> None:
    builder = OccupancyMapBuilder(GridGeometry(0.1, (10, 10)))
    builder.add_beams((0.5, 0.5), [[np.nan, 0.5], [np.inf, 0.2]])
    assert not (builder.hits + builder.misses).any()
    with pytest.raises(InputError):
        builder.add_beams((0.5, 0.5), [0.1, 0.2, 0.3])
