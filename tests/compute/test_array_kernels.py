"""Array kernels: `assign` and read-only views."""

import numpy as np
import pytest

from roboyard.compute import (
    read_only,
)
from roboyard.compute.array_kernels import assign


def test_assign_copies_as_numpy_does() -> None:
    for shape in (0, 1, 7):
        source, target = np.random.default_rng(shape).normal(size=shape), np.full(9, np.nan)
        assign(target, source)
        np.testing.assert_array_equal(target[:shape], source)
        assert np.isnan(target[shape:]).all()


def test_read_only_view_has_the_same_memory_and_cannot_be_written() -> None:
    array = np.zeros(3)
    view = read_only(array)
    array[0] = 1.0
    assert view[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 2.0
    array[1] = 2.0  # the array itself stays writable
