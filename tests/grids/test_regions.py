"""Connected regions: the numbers of an independent implementation, SciPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.ndimage import label

from roboyard.grids import label_regions


@given(arrays(bool, array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=12), elements=st.booleans()))
def test_regions_are_numbered_as_scipy_numbers_them(cells: np.ndarray) -> None:
    np.testing.assert_array_equal(label_regions(cells), label(cells)[0])
    np.testing.assert_array_equal(label_regions(cells, corners=True), label(cells, np.ones((3, 3)))[0])


def test_many_regions_of_a_large_grid_are_numbered_as_scipy_numbers_them() -> None:
    for share in (0.4, 0.6, 0.9):
        cells = np.random.default_rng(1).uniform(size=(300, 170)) < share
        np.testing.assert_array_equal(label_regions(cells), label(cells)[0])
        np.testing.assert_array_equal(label_regions(cells, corners=True), label(cells, np.ones((3, 3)))[0])
