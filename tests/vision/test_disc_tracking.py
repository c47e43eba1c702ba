"""Objects that move through a sequence of images: their linear motion is recovered in spite of outliers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.vision.discs.disc_tracking import track_discs

RATE = 15.0


def simulate_detections(starts, velocities, count, *, noise=0.0, seed=0):
    """(count) arrays (n, 4) of positions in random order, the fourth number names the object; and times [s]."""
    rng = np.random.default_rng(seed)
    times = np.arange(count) / RATE - (count - 1) / RATE
    found = []
    for time in times:
        rows = np.c_[np.asarray(starts) + time * np.asarray(velocities), np.arange(len(starts))]
        rows[:, :3] += rng.normal(0.0, noise, (len(starts), 3)) if noise else 0.0
        found.append(rows[rng.permutation(len(starts))])
    return found, times.tolist()


SPEEDS = st.floats(-0.14, 0.14)  # of both axes: nothing moves faster than 0.2 m/s


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(SPEEDS, SPEEDS), min_size=1, max_size=4), st.integers(3, 25))
def test_linear_motion_without_noise_is_tracked_exactly(speeds, count):
    starts = [(0.1 * k, 0.5 * k, 0.02) for k in range(len(speeds))]
    rows, times = simulate_detections(starts, [(*speed, 0.0) for speed in speeds], count)
    found = sorted(track_discs(rows, times, min_agreeing=3), key=lambda one: one.mean[3])
    assert len(found) == len(starts)
    for one, start, speed in zip(found, starts, speeds, strict=True):
        assert one.mean[:3] == pytest.approx(start, abs=1e-9)
        assert one.velocity == pytest.approx(speed, abs=1e-8)
        assert one.n_agreeing == count


def test_track_speed_errors_equal_least_squares_theory():
    """Over many draws the scatter of the speed is sigma / sqrt(sum of t²), and the mean is right."""
    count, sigma = 20, 1e-4
    found = []
    for seed in range(200):
        rows, times = simulate_detections([(0.2, 0.1, 0.0)], [(-0.03, 0.0, 0.0)], count, noise=sigma, seed=seed)
        found.append(track_discs(rows, times)[0].velocity)
    t = np.array(times) - np.mean(times)
    expected_std = sigma / np.sqrt(t @ t)
    errors = np.array(found) - (-0.03, 0.0)
    assert errors.std(axis=0) == pytest.approx([expected_std, expected_std], rel=0.2)
    assert np.abs(errors.mean(axis=0)).max() < 4.0 * expected_std / np.sqrt(200)


def test_outliers_of_single_images_do_not_change_tracks():
    rows, times = simulate_detections([(0.2, 0.1, 0.0), (0.3, 0.1, 0.0)], [(-0.03, 0.0, 0.0)] * 2, 12)
    rows[5] = rows[5] + (0.004, 0.0, 0.0, 0.0)
    rows[7] = rows[7][:1]
    rows[3] = np.vstack([rows[3], [0.25, 0.2, 0.0, 9.0]])
    found = track_discs(rows, times, min_agreeing=6)
    assert len(found) == 2
    for one in found:
        assert one.velocity == pytest.approx((-0.03, 0.0), abs=1e-9)
        assert one.n_agreeing in (10, 11)


def test_empty_images_give_no_tracks_and_bad_times_are_refused():
    assert track_discs([np.zeros((0, 9)), np.zeros((0, 9))], [0.0, 0.1]) == []
    for times in ([0.0], [0.1, 0.0], [0.0, np.nan]):
        with pytest.raises(InputError, match="times"):
            track_discs([np.zeros((1, 3)), np.zeros((1, 3))], times)
    with pytest.raises(InputError, match="outlier_distance"):
        track_discs([], [], outlier_distance=0.0)
