"""Simulated errors of wheel odometry: none without errors, and each error has its defined effect."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roboyard.control import DifferentialDrive
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.localization import FaultyEncoders, OdometryErrorModel, WheelOdometry, fit_drive, simulate_faulty_readings

DRIVE = DifferentialDrive(wheel_radius=0.1, track=0.35, slip_factor=1.7)
PATH = [SE2.exp([0.02 * k, 0.0, 0.01 * k]) for k in range(200)]


def final_pose(errors: OdometryErrorModel, seed: int = 0, path: list[SE2] = PATH) -> SE2:
    odometry = WheelOdometry(DRIVE)
    timed = [(k * 20_000_000, pose) for k, pose in enumerate(path)]
    for reading in simulate_faulty_readings(timed, DRIVE, errors, np.random.default_rng(seed)):
        odometry.update(*reading)
    return odometry.T_odom_base


def test_odometry_without_errors_equals_the_truth() -> None:
    assert final_pose(OdometryErrorModel()).almost_equal(PATH[-1], 1e-9)
    assert final_pose(OdometryErrorModel(max_rate=10.0)).almost_equal(PATH[195], 1e-9)  # readings at 0, 0.1, … 3.9 s


def test_drive_fit_recovers_systematic_errors() -> None:
    errors = OdometryErrorModel(radius_scale=1.02, diameter_ratio=1.01, track_scale=0.97)
    rng = np.random.default_rng(0)
    lengths, rotations = rng.uniform(-1, 1, 20), rng.uniform(-2, 2, 20)
    sides = []
    for length, angle in zip(lengths, rotations, strict=True):
        encoders = FaultyEncoders(DRIVE, errors, rng)
        encoders.advance(length, angle)
        sides.append(encoders.read(0))
    fit = fit_drive(DRIVE, *np.array(sides).T, lengths, rotations)
    truth = errors.apply_to_drive(DRIVE)
    radii = truth.wheel_radius * np.array([truth.left_radius_scale, truth.right_radius_scale])
    found = fit.wheel_radius.value * np.array([fit.left_radius_scale.value, fit.right_radius_scale.value])
    assert found == pytest.approx(radii)
    assert fit.slip_factor.value * DRIVE.track == pytest.approx(truth.effective_track)


def test_quantization_error_is_below_one_step() -> None:
    step = math.tau / 64
    encoders, exact = (
        FaultyEncoders(DRIVE, OdometryErrorModel(encoder_resolution=n), np.random.default_rng(0)) for n in (64, 0)
    )
    for k in range(100):
        for one in (encoders, exact):
            one.advance(0.013, 0.004)
        for reading, true in zip(encoders.read(k), exact.read(k), strict=True):
            assert 0.0 <= true - reading + 1e-9 < step + 2e-9


def test_slip_grows_with_the_square_root_of_the_distance() -> None:
    straight = {n: [SE2(4.0 * k / n, 0.0, 0.0) for k in range(n + 1)] for n in (10, 100)}
    for poses in straight.values():
        ends = [final_pose(OdometryErrorModel(slip_std=0.01), seed, poses).x for seed in range(200)]
        assert np.std(ends) == pytest.approx(0.01 * math.sqrt(4.0) / math.sqrt(2), rel=0.2)  # mean of two sides


def test_miscounts_are_whole_steps_and_persist() -> None:
    encoders = FaultyEncoders(
        DRIVE,
        OdometryErrorModel(miscount_probability=1.0, max_miscount=3, encoder_resolution=100),
        np.random.default_rng(1),
    )
    readings = np.array([encoders.read(k) for k in range(50)])
    steps = np.diff(readings, axis=0) / (math.tau / 100)
    assert np.allclose(steps, np.round(steps), atol=1e-6)
    assert np.abs(steps).max() <= 4.0 + 1e-6  # three, and one more where a step ends between two readings
    assert (steps != 0).any(axis=1).mean() > 0.9


def test_saved_encoders_continue_identically_and_check_settings() -> None:
    errors, rng = OdometryErrorModel(slip_std=0.1, miscount_probability=0.5), np.random.default_rng(0)
    one = FaultyEncoders(DRIVE, errors, rng)
    one.advance(1.0, 0.2)
    state, generator = one.save_state(), rng.bit_generator.state
    one.advance(1.0, 0.2)
    rng2 = np.random.default_rng(9)
    rng2.bit_generator.state = generator
    two = FaultyEncoders(DRIVE, errors, rng2)
    two.load_state(state)
    two.advance(1.0, 0.2)
    assert one.read(5) == two.read(5)
    for bad in (
        {"radius_scale": 0.0},
        {"slip_std": -1.0},
        {"miscount_probability": math.nan},
        {"encoder_resolution": -1},
    ):
        with pytest.raises(ConfigError):
            OdometryErrorModel(**bad)
