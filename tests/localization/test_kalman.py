"""Kalman filters: laws that each of them obeys, and the treatment of sources as in robot_localization."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.localization.kalman import (
    STATE_NAMES,
    ControlConfig,
    Ekf,
    FusionConfig,
    ImuSourceConfig,
    Measurement,
    MeasurementSource,
    SensorFusion,
    SourceConfig,
    StationaryGyroBias,
    Ukf,
    process_jacobian,
    propagate_state,
    twist_at_base,
)
from roboyard.localization.kalman.process_model import rotation_matrices, wrap_angles

SECOND = 1_000_000_000
SEEDS = st.integers(0, 2**32 - 1)


def flags(*names: str) -> np.ndarray:
    return np.array([name in names for name in STATE_NAMES])


def measurement(
    time: float, covariance: float = 0.01, source: str = "test", threshold: float = math.inf, **values: float
):
    full = np.zeros(15)
    for name, value in values.items():
        full[STATE_NAMES.index(name)] = value
    return Measurement(round(time * 1e9), source, full, flags(*values), covariance * np.eye(15), threshold)


def random_covariance(rng: np.random.Generator, size: int = 15, scale: float = 0.1) -> np.ndarray:
    root = rng.normal(0, scale, (size, size))
    return root @ root.T + 1e-4 * np.eye(size)


# -- the model ---------------------------------------------------------------------------------------------------------
@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_jacobian_equals_finite_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = rng.uniform(-1, 1, 15)
    slopes = np.array(
        [(propagate_state(state + h, 0.1) - propagate_state(state - h, 0.1)) / 2e-6 for h in 1e-6 * np.eye(15)]
    ).T
    assert np.allclose(process_jacobian(state, 0.1), slopes, atol=1e-8)


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_small_model_steps_follow_a_rigid_motion(seed: int) -> None:
    """A constant twist over a second in many steps is the exponential of the twist."""
    rng = np.random.default_rng(seed)
    state = np.zeros(15)
    state[3:6], state[6:12] = rng.uniform(-0.5, 0.5, 3), rng.uniform(-0.5, 0.5, 6)
    start = SE3.from_xyz_rpy(state[:3], state[3:6])
    truth = start @ SE3.exp(state[6:12])
    for _ in range(300):
        state = propagate_state(state, 1.0 / 300)
    found = SE3.from_xyz_rpy(state[:3], state[3:6])
    assert found.distance(truth) < 5e-3
    assert found.angle_to(truth) < 5e-3


def test_model_stays_finite_at_gimbal_lock() -> None:
    state = np.zeros(15)
    state[4], state[9:12] = math.pi / 2, 0.1
    assert np.isfinite(propagate_state(state, 0.1)).all()
    assert np.isfinite(process_jacobian(state, 0.1)).all()


# -- the filters -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [Ekf, Ukf])
def test_filter_on_a_linear_system_is_the_kalman_filter(kind: type) -> None:
    """Along a line, with no rotation, the model is linear: position, velocity, acceleration."""
    rng = np.random.default_rng(1)
    P, Q = np.diag([0.5, 0.2, 0.1]), np.diag([0.01, 0.02, 0.03])
    x, indices = np.array([0.0, 1.0, 0.2]), [0, 6, 12]
    full, noise = 1e-12 * np.eye(15), np.zeros((15, 15))
    full[np.ix_(indices, indices)], noise[np.ix_(indices, indices)] = P, Q
    state = np.zeros(15)
    state[indices] = x
    tested = kind(state, full)
    for k in range(50):
        dt = 0.1
        F = np.array([[1, dt, dt * dt / 2], [0, 1, dt], [0, 0, 1]])
        x, P = F @ x, F @ P @ F.T + Q * dt
        tested.predict(dt, noise)
        H = np.array([[1.0, 0.0, 0.0]]) if k % 2 else np.array([[0.0, 1.0, 0.0]])
        z, R = rng.normal(size=1), np.array([[0.3]])
        gain = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
        x, P = x + gain @ (z - H @ x), (np.eye(3) - gain @ H) @ P
        name = "x" if k % 2 else "vx"
        values = np.zeros(15)
        values[STATE_NAMES.index(name)] = z[0]
        assert tested.correct(values, flags(name), 0.3 * np.eye(15))
        # the unscented filter adds and takes away numbers a million times as large
        tolerance = 1e-9 if kind is Ekf else 1e-5
        assert np.allclose(tested.state[indices], x, atol=tolerance)
        assert np.allclose(tested.covariance[np.ix_(indices, indices)], P, atol=tolerance)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_compiled_ekf_steps_equal_the_textbook_equations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state, P, Q = rng.uniform(-2, 2, 15), random_covariance(rng), random_covariance(rng)
    state[4] = rng.uniform(-1.5, 1.5)
    tested, F = Ekf(state, P), process_jacobian(state, 0.1)
    tested.predict(0.1, Q)
    state, P = wrap_angles(propagate_state(state, 0.1)), F @ P @ F.T + 0.1 * Q
    assert np.allclose(tested.state, state, atol=1e-12)
    assert np.allclose(tested.covariance, P, atol=1e-12 * np.abs(P).max())
    index = np.flatnonzero(rng.random(15) < 0.4)
    used = np.isin(np.arange(15), index)
    values, R = state + rng.normal(0, 0.1, 15), random_covariance(rng)
    assert tested.correct(values, used, R) == bool(len(index))
    gain = P[:, index] @ np.linalg.inv(P[np.ix_(index, index)] + R[np.ix_(index, index)])
    assert np.allclose(tested.state, wrap_angles(state + gain @ (values - state)[index]), atol=1e-8)
    assert np.allclose(tested.covariance, P - gain @ P[index], atol=1e-8)


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_ukf_equals_ekf_where_the_model_is_nearly_linear(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state, P = rng.uniform(-0.5, 0.5, 15), random_covariance(rng, scale=0.003)
    noise = random_covariance(rng, scale=0.01)
    both = [Ekf(state, P), Ukf(state, P)]
    for one in both:
        one.predict(0.05, noise)
        one.correct(state + 0.01, flags("x", "yaw", "vx"), 1e-3 * np.eye(15))
    assert np.allclose(both[0].state, both[1].state, atol=1e-4)
    assert np.allclose(both[0].covariance, both[1].covariance, atol=1e-4)


@given(SEEDS, st.sampled_from([Ekf, Ukf]))
@settings(max_examples=15, deadline=None)
def test_covariances_stay_valid_and_measurements_reduce_them(seed: int, kind: type) -> None:
    rng = np.random.default_rng(seed)
    tested = kind(rng.uniform(-1, 1, 15), random_covariance(rng))
    for _ in range(5):
        tested.predict(float(rng.uniform(0.01, 0.3)), random_covariance(rng))
        # Near a pitch of 90 degrees rates of roll and yaw grow without bound; numbers of 1e11 leave no digits to judge.
        assume(np.abs(tested.covariance).max() < 1e4)
        before = np.diag(tested.covariance).copy()
        used = rng.random(15) < 0.4
        tested.correct(tested.state + rng.normal(0, 0.1, 15), used, random_covariance(rng))
        assert (np.diag(tested.covariance) <= before * (1 + 1e-6) + 1e-9).all()
        assert np.linalg.eigvalsh(tested.covariance).min() > -1e-7
        assert (np.abs(tested.state[3:6]) <= math.pi).all()


@pytest.mark.parametrize("kind", ["ekf", "ukf"])
def test_filter_errors_match_its_covariance(kind: str) -> None:
    """NEES over 50 runs of a planar base whose truth obeys the model: within its 95 % bounds."""
    runs, dt = 50, 0.05
    noise = np.full(15, 0.0)
    noise[[6, 11]] = 0.05, 0.08
    indices = np.array([0, 1, 5, 6, 11])
    found = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        truth = np.zeros(15)
        truth[6], truth[11] = 0.5 + rng.normal(0, 0.1), rng.normal(0, 0.1)
        start = tuple(0.5 if k == 6 else 0.0 for k in range(15))
        fusion = SensorFusion(
            FusionConfig(
                two_d_mode=True,
                process_noise_covariance=tuple(noise.tolist()),
                initial_state=start,
                initial_estimate_covariance=tuple(1e-2 if k in (6, 11) else 1e-9 for k in range(15)),
            ),
            kind,
        )
        fusion.set_pose(0, np.zeros(6), 1e-9 * np.eye(6))
        fusion._filter.state[6] = 0.5
        for k in range(1, 25):
            truth = propagate_state(truth, dt)
            truth += rng.standard_normal(15) * np.sqrt(noise * dt)
            readings = {"vx": truth[6] + rng.normal(0, 0.05), "vyaw": truth[11] + rng.normal(0, 0.02)}
            if k % 10 == 0:
                readings["yaw"] = truth[5] + rng.normal(0, 0.05)
            for name, value in readings.items():
                fusion.add(
                    measurement(k * dt, {"vx": 0.05, "vyaw": 0.02, "yaw": 0.05}[name] ** 2, name, **{name: value})
                )
            fusion.advance(round(k * dt * 1e9))
        now = fusion.estimate
        error = (now.state - truth)[indices]
        error[2] = math.remainder(error[2], math.tau)
        found.append(error @ np.linalg.inv(now.covariance[np.ix_(indices, indices)]) @ error)
    low, high = chi2.ppf([0.025, 0.975], runs * len(indices)) / runs
    assert low < np.mean(found) < high


def test_gates_reject_outliers() -> None:
    fusion = SensorFusion()
    fusion.add(measurement(0.0, x=0.0))
    fusion.add(measurement(0.1, x=100.0, threshold=3.0, source="wild"))
    fusion.add(measurement(0.2, x=0.1, threshold=3.0, source="tame"))
    fusion.advance(SECOND // 4)
    assert fusion.counts["wild"] == {"taken": 0, "gated": 1, "late": 0}
    assert fusion.counts["tame"]["taken"] == 1
    assert abs(fusion.estimate.state[0]) < 0.2


@given(st.permutations(range(6)))
@settings(max_examples=25, deadline=None)
def test_measurement_order_does_not_change_smoothed_estimates(order: list[int]) -> None:
    """With smooth_lagged_data the order of arrival does not matter, down to the last bit."""
    items = [measurement(1.0 + 0.1 * k, source=f"s{k}", vx=1.0 + 0.1 * k, vyaw=0.05 * k) for k in range(6)]
    ends = []
    for sequence in (range(6), order):
        fusion = SensorFusion(FusionConfig(smooth_lagged_data=True, history_length=10.0, two_d_mode=True))
        fusion.add(measurement(0.9, x=0.0, y=0.0, yaw=0.0))
        fusion.advance(SECOND)
        for k in sequence:
            fusion.add(items[k])
            fusion.advance(SECOND + SECOND // 2)
        ends.append((fusion.estimate, fusion.counts))
    (a, counts_a), (b, counts_b) = ends
    assert a.time_ns == b.time_ns
    assert (a.state == b.state).all()
    assert (a.covariance == b.covariance).all()
    assert counts_a == counts_b


def test_saved_fusion_continues_identically() -> None:
    ends, saved = [], None
    for is_restored in (False, True):
        fusion = SensorFusion(FusionConfig(smooth_lagged_data=True))
        for k in range(20):
            if is_restored and k < 10:
                continue
            if is_restored and k == 10:
                fusion.load_state(saved)
            if not is_restored and k == 10:
                saved = fusion.save_state()
            fusion.add(measurement(0.1 * k, vx=1.0, vyaw=0.3))
            fusion.advance(k * SECOND // 10)
        ends.append(fusion.estimate)
    assert (ends[0].state == ends[1].state).all()


def test_fusion_predicts_without_measurements() -> None:
    fusion = SensorFusion(FusionConfig(sensor_timeout=0.5))
    assert fusion.estimate is None
    assert fusion.predict_at(SECOND) is None
    fusion.add(measurement(0.0, 1e-6, vx=1.0))
    fusion.advance(SECOND // 4)
    assert fusion.estimate.time_ns == 0
    fusion.advance(2 * SECOND)
    assert fusion.estimate.state[0] == pytest.approx(2.0, abs=1e-3)
    prediction = fusion.predict_at(3 * SECOND)
    assert prediction.state[0] == pytest.approx(3.0, abs=1e-3)
    assert fusion.estimate.time_ns == 2 * SECOND


def test_commands_accelerate_within_limits() -> None:
    control = ControlConfig(control_mask=(True, *(False,) * 5), timeout=10.0, acceleration_limits=(0.5,) * 6)
    fusion = SensorFusion(FusionConfig(control=control, sensor_timeout=0.01))
    fusion.add(measurement(0.0, 1e-9, vx=0.0, ax=0.0))
    fusion.advance(0)
    fusion.set_control(0, np.array([1.0, 0, 0, 0, 0, 0]))
    for k in range(1, 101):
        fusion.advance(k * SECOND // 100)
    assert fusion.estimate.state[6] == pytest.approx(0.5, abs=0.05)
    assert control.acceleration_toward(np.full(6, 2.0), np.zeros(6))[0] == -0.5


# -- sources -----------------------------------------------------------------------------------------------------------
def source(*names: str, **more: object) -> MeasurementSource:
    return MeasurementSource("odom0", ImuSourceConfig(used=tuple(flags(*names).tolist()), **more))


def test_differential_poses_are_velocities() -> None:
    one = source("x", "yaw", differential=True)
    twist = np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.3])
    start = SE3.from_xyz_rpy((3.0, -2.0, 0.0), (0.0, 0.0, 1.0))
    assert one.pose(0, start, 0.01 * np.eye(6)) is None
    found = one.pose(SECOND // 2, start @ SE3.exp(0.5 * twist), 0.01 * np.eye(6))
    assert np.allclose(found.values[6:12], twist)
    assert (found.used == flags("vx", "vyaw")).all()
    assert found.covariance[6, 6] == pytest.approx(0.02 / 0.25)


def test_relative_poses_count_from_the_first() -> None:
    one = source("x", "y", "yaw", relative=True)
    start = SE3.from_xyz_rpy((3.0, -2.0, 0.0), (0.0, 0.0, 1.0))
    step = SE3.from_xyz_rpy((1.0, 0.2, 0.0), (0.0, 0.0, 0.1))
    assert np.allclose(one.pose(0, start, np.eye(6)).values, 0.0)
    found = one.pose(SECOND, start @ step, np.eye(6))
    assert np.allclose(found.values[:6], [1.0, 0.2, 0.0, 0.0, 0.0, 0.1])


def test_unusable_measurements_are_ignored() -> None:
    one = source("vx", "vyaw")
    good = np.array([0.5, 0, 0, 0, 0, 0.1])
    assert one.twist(SECOND, good, np.eye(6)) is not None
    assert one.twist(SECOND, good, np.eye(6)) is None  # the same moment again
    assert one.twist(0, good, np.eye(6)) is None  # time went back
    assert one.n_rejected == 2
    half = one.twist(2 * SECOND, np.array([np.nan, 0, 0, 0, 0, 0.1]), np.eye(6))
    assert (half.used == flags("vyaw")).all()
    assert one.twist(3 * SECOND, np.full(6, np.inf), np.eye(6)) is None
    assert not one.uses_default_covariance
    unknown = one.twist(4 * SECOND, good, np.zeros((6, 6)))
    assert one.uses_default_covariance
    assert unknown.covariance[11, 11] > 0.0


def test_gravity_is_removed_by_the_attitude() -> None:
    one = source("ax", "ay", "az", remove_gravitational_acceleration=True)
    roll, pitch = 0.2, -0.3
    measured_acceleration = rotation_matrices(np.array(roll), np.array(pitch), np.array(0.7)).T @ np.array(
        [0.0, 0.0, 9.80665]
    )
    found = one.acceleration(0, measured_acceleration, np.eye(3), (roll, pitch))
    assert np.allclose(found.values[12:], 0.0, atol=1e-12)


def test_twist_of_an_offset_sensor_is_moved_to_the_base() -> None:
    mount = SE3.from_xyz_rpy((1.0, 0.0, 0.0), (0.0, 0.0, math.pi / 2))
    values, _ = twist_at_base(mount, np.array([0.3, 0.0, 0.0, 0.0, 0.0, 0.3]), np.eye(6))
    assert np.allclose(values, [0.0, 0.0, 0.0, 0.0, 0.0, 0.3], atol=1e-12)
    with pytest.raises(InputError):
        twist_at_base(mount, np.zeros(3), np.eye(6))


def test_gyroscope_bias_is_estimated_at_rest() -> None:
    rng = np.random.default_rng(0)
    estimator, bias = StationaryGyroBias(), np.array([1e-3, -2e-3, 3e-3])
    for k in range(300):
        estimator.set_stationary(k * 10_000_000, is_stationary=k < 200)
        out = estimator.correct(k * 10_000_000, bias + rng.normal(0, 1e-3, 3))
    assert np.abs(estimator.bias - bias).max() < 3e-4
    assert np.sqrt(estimator.variance).max() < 1.5e-4
    assert np.abs(out).max() < 5e-3


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: MeasurementSource("odom0", SourceConfig(used=(True,) * 14)), "14 entries"),
        (lambda: source(*STATE_NAMES, differential=True, relative=True), "both"),
        (lambda: source(*STATE_NAMES, pose_rejection_threshold=0.0), "threshold"),
        (lambda: FusionConfig(process_noise_covariance=(1.0,) * 14), "14 numbers"),
        (lambda: FusionConfig(process_noise_covariance=(-1.0,) * 15), "no covariance"),
        (lambda: FusionConfig(initial_state=(1.0,)), "initial_state"),
        (lambda: FusionConfig(sensor_timeout=math.nan), "sensor_timeout"),
        (lambda: ControlConfig(control_mask=(True,)), "control_mask has 1"),
    ],
    ids=[
        "config_length", "two_modes", "threshold", "noise_length", "noise_sign", "initial_state", "timeout",
        "control_length",
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(make, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()
