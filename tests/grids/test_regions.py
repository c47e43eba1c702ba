"""Regions of a grid: laws, and equality with SciPy's labels."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.ndimage import label

from roboyard.grids.regions import label_components

MARKED = hnp.arrays(np.bool_, st.tuples(st.integers(0, 12), st.integers(0, 12)))


@given(MARKED, st.booleans())
def test_labels_equal_scipys(marked, diagonal):
    labels, count = label_components(marked, diagonal)
    expected, expected_count = label(marked, structure=np.ones((3, 3)) if diagonal else None)
    assert count == expected_count
    assert labels.dtype == expected.dtype
    np.testing.assert_array_equal(labels, expected)


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.95), st.booleans())
def test_labels_of_large_grids_equal_scipys(seed, density, diagonal):
    marked = np.random.default_rng(seed).random((70, 90)) < density
    np.testing.assert_array_equal(
        label_components(marked, diagonal)[0], label(marked, structure=np.ones((3, 3)) if diagonal else None)[0]
    )


@given(MARKED, st.booleans())
def test_marked_cells_are_those_with_a_number(marked, diagonal):
    labels, count = label_components(marked, diagonal)
    np.testing.assert_array_equal(labels > 0, marked)
    assert sorted(set(labels[marked].tolist())) == list(range(1, count + 1))


def test_checkerboard_has_a_region_for_each_cell_unless_corners_connect():
    marked = np.indices((7, 9)).sum(axis=0) % 2 == 0
    assert label_components(marked, False)[1] == 32
    assert label_components(marked, True)[1] == 1


def test_spiral_is_one_region():
    marked = np.zeros((5, 5), dtype=np.bool_)
    marked[0] = marked[:, 4] = marked[4] = marked[2:, 0] = marked[2, :3] = True
    assert label_components(marked, False)[1] == 1
