"""Conformance checks: every odometry, state estimator and model passes its own, and wrong ones are found."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.localization.simulated_scans import make_room_map, scan_at

from roboyard.config.registry import Registry
from roboyard.control import AckermannDrive, DifferentialDrive, MecanumDrive, PlanarTwist
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.localization import (
    AckermannJointCounts,
    AckermannOdometry,
    DifferentialOdometry,
    DriveOdometry,
    MecanumOdometry,
)
from roboyard.localization.amcl import Amcl, AmclConfig, LaserModel, OdometryMotionModel
from roboyard.localization.amcl.config import LASER_MODELS, MOTION_MODELS
from roboyard.localization.amcl.motion_models import DifferentialMotionModel
from roboyard.localization.conformance import (
    DrivenMotion,
    check_drive_odometry,
    check_laser_model,
    check_motion_model,
    check_state_estimator,
)
from roboyard.localization.kalman import (
    STATE_ESTIMATORS,
    Ekf,
    FusionConfig,
    Measurement,
    SensorFusion,
    StateEstimator,
    process_jacobian,
    propagate_state,
)
from roboyard.localization.kalman.filters import KalmanFilter
from roboyard.localization.kalman.process_model import wrap_angles

DIFFERENTIAL = DifferentialDrive(wheel_radius=0.1, track=0.35, slip_factor=1.5, left_radius_scale=1.01, axle_x=0.1)
MECANUM = MecanumDrive(wheel_radius=0.05, wheelbase=0.46, track=0.3, axle_x=-0.05)
START = SE2(3.0, 1.5, 0.4)
CAR = AckermannDrive(wheel_radius=0.1, wheelbase=0.6, track=0.4, kingpin_width=0.3)


def differential_motion(vx: float, wz: float) -> DrivenMotion:
    """Return a motion of the differential drive with two wheels on each side."""
    speeds = np.repeat(DIFFERENTIAL.left_right_speeds(vx, wz), 2)
    return DrivenMotion(PlanarTwist(vx, -wz * DIFFERENTIAL.axle_x, wz), lambda seconds: speeds * seconds)


def mecanum_motion(vx: float, vy: float, wz: float) -> DrivenMotion:
    """Return a motion of the mecanum drive."""
    twist = PlanarTwist(vx, vy, wz)
    speeds = MECANUM.wheel_speeds(twist)
    return DrivenMotion(twist, lambda seconds: speeds * seconds)


def car_motion(speed: float, curvature: float, axle_x: float) -> DrivenMotion:
    """Return a motion of the car, whose steering stays as it is."""
    wheels, steering = CAR.wheel_speeds(speed, curvature), CAR.steering(curvature)
    speeds = np.array([*wheels, 0.0, 0.0])
    twist = PlanarTwist(speed, -speed * curvature * axle_x, speed * curvature)
    return DrivenMotion(twist, lambda seconds: speeds * seconds + np.array([0.0] * 4 + list(steering)))


DRIVES: dict[str, tuple[Callable[[], DriveOdometry], list[DrivenMotion]]] = {
    "differential": (
        lambda: DifferentialOdometry(DIFFERENTIAL, 2),
        [differential_motion(0.5, 0.4), differential_motion(-0.3, 0.0), differential_motion(0.0, 1.0)],
    ),
    "mecanum": (
        lambda: MecanumOdometry(MECANUM),
        [mecanum_motion(0.3, 0.2, 0.5), mecanum_motion(0.0, -0.4, 0.0), mecanum_motion(0.0, 0.0, -1.0)],
    ),
    "ackermann": (
        lambda: AckermannOdometry(CAR, AckermannJointCounts(1, 1, 1, 1), axle_x=0.2),
        [car_motion(0.5, 0.7, 0.2), car_motion(-0.5, -0.4, 0.2), car_motion(0.4, 0.0, 0.2)],
    ),
}


@pytest.mark.parametrize("drive", DRIVES)
def test_odometry_of_each_drive_conforms(drive: str) -> None:
    check_drive_odometry(*DRIVES[drive])


class OverconfidentOdometry(MecanumOdometry):
    """Odometry that forgets its uncertainty."""

    def update(self, time_ns: int, angles: np.ndarray) -> Any:
        """Update the pose, and clear the covariance."""
        estimate = super().update(time_ns, angles)
        self._integrator._covariance[:] = 0.0
        return estimate


class SlowOdometry(MecanumOdometry):
    """Odometry that counts each step twice."""

    def displacement(self, previous_angles: np.ndarray, angles: np.ndarray) -> PlanarTwist:
        """Return twice the displacement."""
        return PlanarTwist(*(2.0 * value for value in super().displacement(previous_angles, angles)))


class ForgetfulOdometry(MecanumOdometry):
    """Odometry whose saved state lacks the last reading."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the pose only."""
        super().load_state(state | {"last_reading": None})


@pytest.mark.parametrize(
    ("odometry_class", "text"),
    [
        (OverconfidentOdometry, "determinant"),
        (SlowOdometry, "instead of"),
        (ForgetfulOdometry, "restored"),
    ],
)
def test_wrong_odometry_is_found(odometry_class: type[MecanumOdometry], text: str) -> None:
    with pytest.raises(InputError, match=text):
        check_drive_odometry(lambda: odometry_class(MECANUM), [mecanum_motion(0.3, 0.2, 0.5)])


# -- state estimators --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", STATE_ESTIMATORS.names())
def test_each_state_estimator_conforms(name: str) -> None:
    check_state_estimator(STATE_ESTIMATORS[name])


def test_estimators_agree_where_the_model_is_linear() -> None:
    """Without rotation the extended and the unscented filter are the same Kalman filter."""
    rng = np.random.default_rng(0)
    filters = [STATE_ESTIMATORS[name](np.zeros(15), 0.1 * np.eye(15), FusionConfig()) for name in ("ekf", "ukf")]
    for tested in filters:
        tested.covariance[3:6] = tested.covariance[:, 3:6] = 0.0
        tested.covariance[9:12] = tested.covariance[:, 9:12] = 0.0
    noise = np.diag([0.01] * 3 + [0.0] * 3 + [0.02] * 3 + [0.0] * 3 + [0.03] * 3)
    for _ in range(20):
        values, used = rng.normal(0, 1, 15), rng.random(15) < 0.3
        used[3:6] = used[9:12] = False
        for tested in filters:
            tested.predict(0.1, noise)
            tested.correct(values, used, 0.2 * np.eye(15))
        np.testing.assert_allclose(filters[1].state, filters[0].state, atol=1e-6)
        np.testing.assert_allclose(filters[1].covariance, filters[0].covariance, atol=1e-6)


def test_measurements_of_equal_stamps_apply_in_the_order_of_arrival() -> None:
    """On equal stamps the order of arrival counts; independent measurements of other states may be swapped."""
    used = {name: np.arange(15) == index for name, index in (("x", 0), ("vx", 6))}
    ends = []
    for order in (("x", "vx"), ("vx", "x")):
        fusion = SensorFusion(FusionConfig())
        fusion.add(Measurement(0, "start", np.zeros(15), np.ones(15, bool), 0.1 * np.eye(15)))
        for name in order:
            fusion.add(Measurement(100_000_000, name, np.full(15, 0.3), used[name], 0.05 * np.eye(15)))
        fusion.advance(100_000_000)
        ends.append((fusion.estimate, list(fusion.counts)))
    assert ends[0][1] == ["start", "x", "vx"]
    assert ends[1][1] == ["start", "vx", "x"]
    np.testing.assert_allclose(ends[0][0].state, ends[1][0].state, atol=1e-12)
    np.testing.assert_allclose(ends[0][0].covariance, ends[1][0].covariance, atol=1e-12)


class FrozenCovariance(Ekf):
    """Filter whose covariance does not grow in predictions."""

    def _predict(self, dt: float, noise: np.ndarray) -> None:
        covariance = self.covariance.copy()
        super()._predict(dt, noise)
        self.covariance[:] = covariance


class UngatedFilter(Ekf):
    """Filter that accepts every measurement."""

    def correct(self, values: Any, used: Any, noise: Any, threshold: float = math.inf) -> bool:
        """Correct without the threshold."""
        return super().correct(values, used, noise)


class LopsidedFilter(Ekf):
    """Filter whose covariance is not symmetric."""

    def _predict(self, dt: float, noise: np.ndarray) -> None:
        super()._predict(dt, noise)
        self.covariance[1, 2] += 0.01


@pytest.mark.parametrize(
    ("estimator_class", "text"),
    [
        (FrozenCovariance, "linear system"),
        (UngatedFilter, "beyond the threshold"),
        (LopsidedFilter, "not symmetric"),
    ],
)
def test_wrong_state_estimators_are_found(estimator_class: type[KalmanFilter], text: str) -> None:
    with pytest.raises(InputError, match=text):
        check_state_estimator(estimator_class)


class InformationFilter(StateEstimator):
    """State estimator of a user's package: the correction in information form, with NumPy alone."""

    def predict(self, dt: float, noise: Any, control_acceleration: Any = None) -> None:
        """Predict with the derivative of the process model."""
        if control_acceleration is not None:
            is_commanded = np.isfinite(control_acceleration)
            self.state[12:15] = np.where(is_commanded[:3], control_acceleration[:3], self.state[12:15])
            self.state[9:12] += np.where(is_commanded[3:], control_acceleration[3:] * dt, 0.0)
        F = process_jacobian(self.state, dt)
        self.state = wrap_angles(propagate_state(self.state, dt))
        self.covariance = F @ self.covariance @ F.T + noise * dt
        self.covariance = 0.5 * (self.covariance + self.covariance.T)

    def correct(self, values: Any, used: Any, noise: Any, threshold: float = math.inf) -> bool:
        """Add the information of the measured states."""
        index = np.flatnonzero(used)
        if not len(index):
            return False
        innovation = wrap_angles(values - self.state)[index]
        S = self.covariance[np.ix_(index, index)] + noise[np.ix_(index, index)]
        if innovation @ np.linalg.solve(S, innovation) > threshold**2:
            return False
        gain = np.linalg.solve(S, self.covariance[index]).T
        self.state = wrap_angles(self.state + gain @ innovation)
        self.covariance = self.covariance - gain @ S @ gain.T
        self.covariance = 0.5 * (self.covariance + self.covariance.T)
        return True


def test_state_estimator_of_a_user_conforms_and_runs_in_the_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    check_state_estimator(InformationFilter)
    monkeypatch.setitem(STATE_ESTIMATORS._built_in, "information", InformationFilter)
    ends = []
    for name in ("ekf", "information"):
        fusion = SensorFusion(FusionConfig(two_d_mode=True), name)
        for k in range(51):
            used = np.isin(np.arange(15), [6, 11])
            values = np.where(np.arange(15) == 6, 0.5, 0.1)
            fusion.add(Measurement(k * 20_000_000, "wheels", values, used, 1e-4 * np.eye(15)))
            fusion.advance(k * 20_000_000)
        ends.append(fusion.estimate)
    np.testing.assert_allclose(ends[1].state, ends[0].state, atol=1e-8)


# -- models of Monte Carlo localization --------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MOTION_MODELS.names())
def test_each_motion_model_conforms(name: str) -> None:
    check_motion_model(MOTION_MODELS[name])


@pytest.mark.parametrize("name", LASER_MODELS.names())
def test_each_laser_model_conforms(name: str) -> None:
    check_laser_model(LASER_MODELS[name])


class MapFrameNoise(OdometryMotionModel):
    """Motion model whose noise lies along the axes of the map."""

    def sample(self, particles: np.ndarray, step: SE2, rng: np.random.Generator) -> np.ndarray:
        """Move the particles, with noise along x of the map."""
        samples = np.array([[(p := SE2(*row) @ step).x, p.y, p.theta] for row in particles.tolist()])
        samples[:, 0] += self.config.alpha3 * rng.standard_normal(len(samples))
        return samples


class InPlaceMotion(DifferentialMotionModel):
    """Motion model that changes the particles it is given."""

    def sample(self, particles: np.ndarray, step: SE2, rng: np.random.Generator) -> np.ndarray:
        """Move the particles in place."""
        particles[:] = super().sample(particles, step, rng)
        return particles


class BlindLaser(LaserModel):
    """Laser model to which all poses are equally likely but the last one."""

    def log_weights(self, particles: np.ndarray, measurement: Any) -> tuple[np.ndarray, np.ndarray]:
        """Prefer the last particle."""
        weights = np.arange(float(len(particles)))
        return weights, weights


class MeanDistanceLaser(LaserModel):
    """Laser model of a user: the mean distance of the points to the surfaces of the map."""

    def log_weights(self, particles: np.ndarray, measurement: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return minus the mean distance, in units of ``sigma_hit``."""
        points = measurement.subsample(self.config.max_beams)
        if not len(points):
            return np.zeros(len(particles)), np.zeros(len(particles))
        table = self.field.score_table(lambda distance: -distance / self.config.sigma_hit)
        total = self.field.score_poses(table, particles, points).astype(np.float64)
        return total, total / len(points)


@pytest.mark.parametrize(
    ("model_class", "text"), [(MapFrameNoise, "where the particles are"), (InPlaceMotion, "changes the particles")]
)
def test_wrong_motion_models_are_found(model_class: type[OdometryMotionModel], text: str) -> None:
    with pytest.raises(InputError, match=text):
        check_motion_model(model_class)


def test_wrong_laser_models_are_found() -> None:
    with pytest.raises(InputError, match="more likely"):
        check_laser_model(BlindLaser)


def test_laser_model_of_a_user_conforms_and_localizes(monkeypatch: pytest.MonkeyPatch) -> None:
    check_laser_model(MeanDistanceLaser)
    monkeypatch.setitem(LASER_MODELS._built_in, "mean_distance", MeanDistanceLaser)
    amcl = Amcl(AmclConfig(laser_model_type="mean_distance"), np.random.default_rng(0))
    grid = make_room_map()
    amcl.set_map(grid)
    amcl.set_initial_pose(START, np.diag([0.01, 0.01, 0.01]))
    estimate = amcl.process(scan_at(grid, START))
    assert estimate is not None
    assert estimate.T_map_base.distance(START) < 0.05


@pytest.mark.parametrize(("key", "registry"), [("laser_model_type", LASER_MODELS), ("robot_model_type", MOTION_MODELS)])
def test_registered_objects_of_another_kind_are_refused(
    key: str, registry: Registry[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._built_in, "wrong", lambda *arguments: object())
    with pytest.raises(ConfigError, match="'wrong' is no"):
        Amcl(AmclConfig(**{key: "wrong"})).set_map(make_room_map())
