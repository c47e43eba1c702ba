"""Laws of the drive's regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import DifferentialDrive
from roboyard.errors import InputError
from roboyard.localization import fit_drive

NOMINAL = DifferentialDrive(wheel_radius=0.1, track=0.35)


def random_moves(drive: DifferentialDrive, seed: int, count: int = 18, noise: tuple[float, float] = (0.0, 0.0)):
    """Straights, turns on the spot and arcs, with noise of both."""
    random = np.random.default_rng(seed)
    length, angle = random.uniform(-2.0, 2.0, count), random.uniform(-3.0, 3.0, count)
    length[::3] = 0.0
    angle[1::3] = 0.0
    sides = np.array([drive.left_right_speeds(d, t) for d, t in zip(length, angle, strict=True)])
    noisy = length + noise[0] * random.standard_normal(count), angle + noise[1] * random.standard_normal(count)
    return sides[:, 0], sides[:, 1], *noisy


@given(st.floats(0.05, 0.2), st.floats(0.9, 1.1), st.floats(1.0, 2.5), st.integers(0, 100))
def test_exact_moves_give_the_exact_drive(radius: float, left: float, k: float, seed: int) -> None:
    drive = DifferentialDrive(
        wheel_radius=radius, track=0.35, slip_factor=k, left_radius_scale=left, right_radius_scale=2.0 - left
    )
    fit = fit_drive(NOMINAL, *random_moves(drive, seed))
    assert fit.wheel_radius.value == pytest.approx(radius)
    assert fit.left_radius_scale.value == pytest.approx(left)
    assert fit.right_radius_scale.value == pytest.approx(2.0 - left)
    assert fit.slip_factor.value == pytest.approx(k)
    assert fit.drive.effective_track == pytest.approx(drive.effective_track)
    assert fit.slip_factor.standard_error < 1e-6


def test_drive_fit_agrees_with_scipys_least_squares() -> None:
    from scipy.optimize import least_squares

    left, right, length, angle = random_moves(
        DifferentialDrive(
            wheel_radius=0.104, track=0.35, slip_factor=1.7, left_radius_scale=0.99, right_radius_scale=1.01
        ),
        4,
        noise=(0.02, 0.05),
    )
    fit = fit_drive(NOMINAL, left, right, length, angle)
    is_straight = np.abs(angle) < 0.1
    fraction = 1.0 - 3.0 / (2 * length.size)
    residual_stds = []
    for residual in (fit.distance_residuals, fit.rotation_residuals):
        kinds = [np.sqrt((residual[subset] ** 2).mean() / fraction) for subset in (is_straight, ~is_straight)]
        residual_stds.append(np.where(is_straight, *kinds))

    def residuals(p: np.ndarray) -> np.ndarray:
        drive = DifferentialDrive(
            wheel_radius=p[0], track=0.35, slip_factor=p[1], left_radius_scale=1.0 - p[2], right_radius_scale=1.0 + p[2]
        )
        steps = np.array([drive.travel(a, b) for a, b in zip(left, right, strict=True)])
        return np.concatenate([(steps[:, 0] - length) / residual_stds[0], (steps[:, 1] - angle) / residual_stds[1]])

    found = least_squares(residuals, [0.1, 1.5, 0.0], x_scale=[0.1, 1.0, 0.01], xtol=1e-14, ftol=1e-14, gtol=1e-14)
    errors = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    for value, error, estimate in zip(
        found.x, errors, (fit.wheel_radius, fit.slip_factor, fit.right_radius_scale), strict=True
    ):
        assert estimate.value - (estimate is fit.right_radius_scale) == pytest.approx(value, rel=1e-3, abs=1e-4)
        assert estimate.standard_error == pytest.approx(error, rel=0.02)


def test_confidence_intervals_cover_the_truth_as_claimed() -> None:
    drive = DifferentialDrive(
        wheel_radius=0.104, track=0.35, slip_factor=1.7, left_radius_scale=0.99, right_radius_scale=1.01
    )
    hits = np.zeros(3)
    for seed in range(300):
        fit = fit_drive(NOMINAL, *random_moves(drive, seed, count=48, noise=(0.02, 0.05)), confidence=0.9)
        for k, (found, truth) in enumerate(
            ((fit.wheel_radius, 0.104), (fit.slip_factor, 1.7), (fit.left_radius_scale, 0.99))
        ):
            hits[k] += found.confidence_interval[0] <= truth <= found.confidence_interval[1]
    assert (hits / 300 >= 0.85).all()
    assert (hits / 300 <= 0.96).all()


def test_straights_without_slip_do_not_bias_the_slip_factor() -> None:
    """Straights have an error of 0.1 mrad, rotations of 0.05 rad: k and its interval follow the rotations."""
    turning, rolling = (
        DifferentialDrive(wheel_radius=0.1, track=0.35, slip_factor=1.7),
        DifferentialDrive(wheel_radius=0.1, track=0.35, slip_factor=1.0),
    )
    hits = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        moves = random_moves(turning, seed, 30, (0.01, 0.05))
        is_large = np.abs(moves[3]) > 0.5
        length, veer = random.uniform(1.0, 2.0, 12), random.uniform(-0.02, 0.02, 12)
        sides = np.array([rolling.left_right_speeds(d, t) for d, t in zip(length, veer, strict=True)])
        straights = sides[:, 0], sides[:, 1], length, veer + 1e-4 * random.standard_normal(12)
        fit = fit_drive(NOMINAL, *(np.concatenate([a[is_large], b]) for a, b in zip(moves, straights, strict=True)))
        assert fit.wheel_radius.value == pytest.approx(0.1, rel=1e-3)
        hits += fit.slip_factor.confidence_interval[0] <= 1.7 <= fit.slip_factor.confidence_interval[1]
    assert hits >= 52


def test_uninformative_moves_are_refused() -> None:
    left, right, length, angle = random_moves(NOMINAL, 1)
    with pytest.raises(InputError, match="at least 3"):
        fit_drive(NOMINAL, left[:2], right[:2], length[:2], angle[:2])
    with pytest.raises(InputError, match="equally long"):
        fit_drive(NOMINAL, left, right, length, angle[:-1])
    with pytest.raises(InputError, match="finite"):
        fit_drive(NOMINAL, left, right, length, angle * np.nan)
    with pytest.raises(InputError, match="straights"):
        fit_drive(NOMINAL, left, right, length, np.zeros_like(angle))
    with pytest.raises(InputError, match="confidence"):
        fit_drive(NOMINAL, left, right, length, angle, confidence=1.0)
