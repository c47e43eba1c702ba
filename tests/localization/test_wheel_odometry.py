"""Laws of wheel odometry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import DifferentialDrive
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.localization import OdometryNoise, WheelOdometry, compute_arc_displacement, compute_arc_jacobian

DRIVE = DifferentialDrive(wheel_radius=0.1, track=0.35, slip_factor=1.4)
SECOND = 1_000_000_000
angles = st.floats(-20.0, 20.0)
lengths = st.floats(-2.0, 2.0)
rotations = st.floats(-3.0, 3.0)


@given(lengths, rotations)
def test_arc_equals_the_exponential_of_its_twist(length: float, rotation: float) -> None:
    step, expected = compute_arc_displacement(length, rotation), SE2.exp((length, 0.0, rotation))
    assert (step.x, step.y) == pytest.approx((expected.x, expected.y), abs=1e-12)
    assert math.remainder(step.theta - expected.theta, math.tau) == pytest.approx(0.0, abs=1e-12)


@given(lengths, rotations)
def test_arc_jacobian_equals_finite_differences(length: float, rotation: float) -> None:
    def parts(w: float, t: float) -> np.ndarray:
        step = compute_arc_displacement(w, t)
        return np.array([step.x, step.y, t])

    h = 1e-6
    columns = [
        (parts(length + h, rotation) - parts(length - h, rotation)) / (2 * h),
        (parts(length, rotation + h) - parts(length, rotation - h)) / (2 * h),
    ]
    np.testing.assert_allclose(compute_arc_jacobian(length, rotation), np.column_stack(columns), atol=1e-8)


def drive_arc(odometry: WheelOdometry, v: float, w: float, seconds: float, steps: int) -> SE2:
    """Wheel angles of a perfect arc, read ``steps`` times."""
    left, right = odometry.drive.left_right_speeds(v, w)
    for i in range(steps + 1):
        t = seconds * i / steps
        odometry.update(round(t * 1e9), left * t, right * t)
    return odometry.T_odom_base


@given(lengths, rotations, st.integers(1, 50))
def test_exact_arc_is_integrated_exactly_at_any_rate(v: float, w: float, steps: int) -> None:
    end = drive_arc(WheelOdometry(DRIVE), v, w, 1.5, steps)
    if abs(w) < 1e-9:
        x, y = v * 1.5, 0.5 * v * w * 1.5**2
    else:
        x, y = v / w * math.sin(w * 1.5), v / w * (1 - math.cos(w * 1.5))
    assert (end.x, end.y) == pytest.approx((x, y), abs=1e-7)
    assert math.remainder(end.theta - w * 1.5, math.tau) == pytest.approx(0.0, abs=1e-9)


@given(st.lists(st.tuples(angles, angles), min_size=1, max_size=20))
def test_reversed_motion_returns_to_the_origin(steps: list[tuple[float, float]]) -> None:
    odometry = WheelOdometry(DRIVE)
    odometry.update(0, 0.0, 0.0)
    readings = [(0.0, 0.0), *steps]
    for i, (left, right) in enumerate([*readings, *reversed(readings)], start=1):
        odometry.update(i * SECOND, left, right)
    end = odometry.T_odom_base
    assert (end.x, end.y) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert math.sin(0.5 * end.theta) == pytest.approx(0.0, abs=1e-9)


@given(rotations, st.floats(-0.4, 0.4))
def test_turning_in_place_keeps_the_axle_fixed(rotation: float, axle_x: float) -> None:
    """The base's origin, not the axle, moves: a Scitos turns about an axle ahead of its middle."""
    odometry = WheelOdometry(DifferentialDrive(wheel_radius=0.05, track=0.31, axle_x=axle_x))
    end = drive_arc(odometry, 0.0, rotation, 1.0, 7)
    axle = end @ SE2(axle_x, 0.0, 0.0)
    assert (axle.x, axle.y) == pytest.approx((axle_x, 0.0), abs=1e-9)


def test_radius_scales_correct_unequal_wheels() -> None:
    """A drive whose left wheels are 2 % larger drives straight at equal length, and calibrated odometry knows it."""
    true = DifferentialDrive(wheel_radius=0.1, track=0.35, left_radius_scale=1.02)
    left, right = true.left_right_speeds(1.0, 0.0)
    naive, calibrated = WheelOdometry(DifferentialDrive(wheel_radius=0.1, track=0.35)), WheelOdometry(true)
    for i in range(101):
        for odometry in (naive, calibrated):
            odometry.update(i * SECOND // 10, left * i / 10, right * i / 10)
    assert calibrated.T_odom_base.x == pytest.approx(10.0)
    assert calibrated.T_odom_base.y == pytest.approx(0.0, abs=1e-12)
    assert abs(naive.T_odom_base.y) > 1.0


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=30), st.floats(-0.3, 0.3))
def test_covariance_stays_valid_and_uncertainty_grows(steps: list[tuple[float, float]], axle_x: float) -> None:
    odometry = WheelOdometry(DifferentialDrive(wheel_radius=0.1, track=0.35, axle_x=axle_x))
    odometry.update(0, 0.0, 0.0)
    heading_variance = 0.0
    for i, (left, right) in enumerate(steps, start=1):
        estimate = odometry.update(i * SECOND, left, right)
        assert estimate is not None
        for matrix in (estimate.covariance, estimate.twist_covariance):
            np.testing.assert_array_equal(matrix, matrix.T)
            assert np.linalg.eigvalsh(matrix).min() >= -1e-12
        assert estimate.covariance[2, 2] >= heading_variance
        heading_variance = estimate.covariance[2, 2]


@pytest.mark.parametrize("axle_x", [0.0, 0.2])
def test_wheel_covariance_agrees_with_sampling(axle_x: float) -> None:
    """Independent: 4000 drives with noisy steps, scattered as the covariance says."""
    noise = OdometryNoise(
        translation_variance_per_meter=1e-3, rotation_variance_per_meter=1e-3, rotation_variance_per_radian=2e-3
    )
    drive = DifferentialDrive(wheel_radius=0.1, track=0.35, axle_x=axle_x)
    random = np.random.default_rng(3)
    length, rotation, steps, runs = 0.05, 0.04, 25, 4000
    odometry = WheelOdometry(drive, noise)
    left, right = drive.left_right_speeds(length, rotation)
    for i in range(steps + 1):
        estimate = odometry.update(i * SECOND, left * i, right * i)
    assert estimate is not None
    distance_std = math.sqrt(noise.translation_variance_per_meter * length)
    rotation_std = math.sqrt(noise.rotation_variance_per_meter * length + noise.rotation_variance_per_radian * rotation)
    x, y, heading = np.full(runs, 0.0), np.zeros(runs), np.zeros(runs)
    for _ in range(steps):
        d = length + distance_std * random.standard_normal(runs)
        t = rotation + rotation_std * random.standard_normal(runs)
        # the axle runs the arc, then the base hangs behind it
        ax, ay = x + axle_x * np.cos(heading), y + axle_x * np.sin(heading)
        ax += d / t * (np.sin(heading + t) - np.sin(heading))
        ay -= d / t * (np.cos(heading + t) - np.cos(heading))
        heading = heading + t
        x, y = ax - axle_x * np.cos(heading), ay - axle_x * np.sin(heading)
    sampled = np.cov(np.stack([x, y, heading]))
    scale = np.sqrt(np.outer(np.diag(sampled), np.diag(sampled)))
    np.testing.assert_allclose(estimate.covariance / scale, sampled / scale, atol=0.08)


def test_invalid_wheel_readings_are_ignored() -> None:
    odometry = WheelOdometry(DRIVE, max_wheel_speed=30.0)
    assert odometry.update(0, 5.0, 5.0) is None
    assert odometry.update(SECOND, 6.0, 6.0) is not None
    assert odometry.update(2 * SECOND, math.nan, 7.0) is None
    assert odometry.update(2 * SECOND, 700.0, 7.0) is None, "a jump"
    assert odometry.update(2 * SECOND, 701.0, 8.0) is None, "no time passed"
    assert odometry.update(3 * SECOND, 702.0, 9.0) is not None
    assert odometry.n_rejected == 3
    assert odometry.T_odom_base.x == pytest.approx(0.2)


def test_saved_wheel_odometry_continues_identically() -> None:
    one, other = WheelOdometry(DRIVE), WheelOdometry(DRIVE)
    drive_arc(one, 0.4, 0.3, 1.0, 5)
    other.load_state(one.save_state())
    for odometry in (one, other):
        last = odometry.update(2 * SECOND, 9.0, 11.0)
        assert last is not None
    assert one.T_odom_base == other.T_odom_base


def test_invalid_noise_is_refused() -> None:
    with pytest.raises(ConfigError, match="translation_variance_per_meter"):
        OdometryNoise(translation_variance_per_meter=-1.0)
