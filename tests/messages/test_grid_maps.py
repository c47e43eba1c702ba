"""Maps of heights come back from their messages, and messages that are none of them are refused."""

from __future__ import annotations

import numpy as np
import pytest

from roboyard.errors import InputError
from roboyard.grids.height_map import HeightMap
from roboyard.messages.convert.grid_maps import grid_map_to_msg, heights_from_msg, heights_to_msg, layer_from_msg


def some_heights() -> HeightMap:
    heights = np.random.default_rng(0).normal(size=(7, 11)).astype(np.float32).astype(np.float64)
    heights[2, 3] = np.nan
    return HeightMap(heights, (0.25, -1.5), 0.125)


def test_heights_survive_their_message() -> None:
    given = some_heights()
    back = heights_from_msg(heights_to_msg(given, 0, "map"))
    np.testing.assert_array_equal(back.heights, given.heights)
    assert (back.corner, back.resolution) == (given.corner, given.resolution)


def test_layers_survive_their_message() -> None:
    given = some_heights()
    message = grid_map_to_msg({"elevation": given.heights, "variance": given.heights**2}, (0.0, 0.0), 0.1, 0, "map")
    np.testing.assert_allclose(layer_from_msg(message, "variance"), given.heights**2, rtol=1e-6)
    assert layer_from_msg(message, "colour") is None


def test_invalid_grid_map_messages_are_refused() -> None:
    for spoil, said in (
        (lambda m: setattr(m, "layers", ["colour"]), "elevation"),
        (lambda m: setattr(m, "outer_start_index", 3), "begin"),
        (lambda m: setattr(m.info, "resolution", 0.0), "more than 0"),
        (lambda m: setattr(m.info, "length_x", 3.0), "numbers"),
        (lambda m: setattr(m, "data", []), "each layer"),
    ):
        message = heights_to_msg(some_heights(), 0, "map")
        spoil(message)
        with pytest.raises(InputError, match=said):
            heights_from_msg(message)


def test_points_outside_the_map_have_no_height() -> None:
    given = some_heights()
    x, y = given.corner
    places = np.array([[x + 0.01, y + 0.01], [x - 0.01, y], [x + 2.0, y + 0.1]])
    found = given.heights_at(places)
    assert found[0] == given.heights[0, 0]
    assert np.isnan(found[1:]).all()
    assert given.mean_height(places) == given.heights[0, 0]
    assert given.mean_height(places[1:]) == 0.0
