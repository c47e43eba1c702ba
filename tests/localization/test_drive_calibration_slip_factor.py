"""Laws of the slip factor's regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import DifferentialDrive
from roboyard.errors import InputError
from roboyard.localization import compute_no_slip_rotations, fit_slip_factor


@given(st.floats(1.0, 3.0), st.lists(st.floats(0.1, 6.0), min_size=2, max_size=20))
def test_exact_data_give_the_exact_slip_factor(k: float, rotations: list[float]) -> None:
    drive = DifferentialDrive(wheel_radius=0.1, track=0.35, slip_factor=k)
    sides = np.array([drive.left_right_speeds(0.2, rotation) for rotation in rotations])
    fit = fit_slip_factor(compute_no_slip_rotations(drive, sides[:, 0], sides[:, 1]), rotations)
    assert fit.slip_factor == pytest.approx(k)
    assert fit.standard_error == pytest.approx(0.0, abs=1e-7)
    assert fit.n_samples == len(rotations)


def test_slip_factor_and_error_agree_with_least_squares() -> None:
    random = np.random.default_rng(1)
    measured = random.uniform(-6, 6, 40)
    rolled = 1.7 * measured + 0.1 * random.standard_normal(40)
    fit = fit_slip_factor(rolled, measured)
    slope, residuals, *_ = np.linalg.lstsq(measured[:, None], rolled, rcond=None)
    assert fit.slip_factor == pytest.approx(slope[0])
    assert fit.standard_error == pytest.approx(np.sqrt(residuals[0] / 39 / (measured @ measured)))


def test_confidence_interval_covers_the_truth_as_claimed() -> None:
    random = np.random.default_rng(2)
    hits = 0
    for _ in range(400):
        measured = random.uniform(1, 6, 8)
        fit = fit_slip_factor(1.5 * measured + 0.2 * random.standard_normal(8), measured, confidence=0.9)
        hits += fit.confidence_interval[0] <= 1.5 <= fit.confidence_interval[1]
    assert 0.86 <= hits / 400 <= 0.94


@pytest.mark.parametrize(
    ("rolled", "measured"),
    [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, np.nan], [1.0, 2.0]), ([1.0, 2.0], [0.0, 0.0])],
    ids=["one", "unequal", "nan", "no_rotation"],
)
def test_uninformative_data_are_refused(rolled: list[float], measured: list[float]) -> None:
    with pytest.raises(InputError):
        fit_slip_factor(rolled, measured)
