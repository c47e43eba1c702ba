"""Laws of resampled polylines, for positions alone and for poses with headings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from roboyard.errors import InputError
from roboyard.navigation.path import Path, resample_polyline

POINTS = st.integers(1, 12).flatmap(lambda n: arrays(np.float64, (n, 3), elements=st.floats(-20.0, 20.0, width=32)))
SPACINGS = st.floats(0.05, 30.0)


def segment_lengths(points):
    return np.hypot(*np.diff(points[:, :2], axis=0).T)


@given(points=POINTS, spacing=SPACINGS)
def test_resampled_polyline_keeps_points_length_and_spacing(points, spacing):
    resampled = resample_polyline(points, spacing)
    counts = np.maximum(np.ceil(segment_lengths(points) / spacing - 1e-9), 1).astype(int)
    assert len(resampled) == counts.sum() + 1
    corners = np.concatenate([[0], np.cumsum(counts)])
    np.testing.assert_array_equal(resampled[corners], points)
    assert segment_lengths(resampled).max(initial=0.0) <= spacing * (1.0 + 1e-6)
    assert segment_lengths(resampled).sum() == pytest.approx(segment_lengths(points).sum(), rel=1e-9, abs=1e-9)
    for k, count in enumerate(counts):
        piece = resampled[corners[k] : corners[k] + count]
        assert (piece[:, 2] == points[k, 2]).all()
        lengths = segment_lengths(resampled[corners[k] : corners[k] + count + 1])
        np.testing.assert_allclose(lengths, lengths.mean(), atol=1e-9)


@given(points=POINTS, spacing=SPACINGS)
def test_resampling_twice_changes_nothing(points, spacing):
    once = resample_polyline(points, spacing)
    np.testing.assert_array_equal(resample_polyline(once, spacing * (1.0 + 1e-6)), once)


@given(points=POINTS, spacing=SPACINGS)
def test_positions_do_not_depend_on_further_columns(points, spacing):
    np.testing.assert_array_equal(resample_polyline(points[:, :2], spacing), resample_polyline(points, spacing)[:, :2])


def test_path_checks_its_poses():
    assert Path(np.zeros((3, 3))).length == 0.0
    for wrong in (np.zeros((3, 2)), np.zeros(3), np.full((1, 3), np.nan)):
        with pytest.raises(InputError, match="finite"):
            Path(wrong)
