"""Conformance checks of localization: odometry of drives, state estimators, and the models of Monte Carlo localization.

Each check takes a class (or a function that makes its objects) and tries it on small problems, as the tests of this
package do with every class of its own: `check_drive_odometry`, `check_state_estimator`, `check_motion_model`,
`check_laser_model`.  A violation of a contract is an ``InputError`` that says which law is broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from roboyard.control.wheel_kinematics import PlanarTwist
from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.grids import GridGeometry, OccupancyGrid, simulate_scans
from roboyard.localization.amcl.config import AmclConfig
from roboyard.localization.amcl.laser_model import LaserModel, prepare_scan
from roboyard.localization.amcl.motion_models import OdometryMotionModel
from roboyard.localization.kalman.config import FusionConfig
from roboyard.localization.kalman.filters import StateEstimator
from roboyard.localization.kalman.process_model import STATE_NAMES, STATE_SIZE
from roboyard.localization.wheel_odometry import DriveOdometry, OdometryEstimate
from roboyard.mapping import LaserScan

_STEP_NS = 20_000_000


def _report_violation(tested: object, violation: str) -> NoReturn:
    name = tested.__name__ if isinstance(tested, type) else type(tested).__name__
    raise InputError(violation, location=name, valid="an object that fulfills its contract")


class DrivenMotion(NamedTuple):
    """A motion with constant twist, and the joint angles of a drive that moves so.

    Attributes:
        twist: Twist of the base frame.
        joint_angles: Returns the joint angles (n,) [rad] after a time [s].
    """

    twist: PlanarTwist
    joint_angles: Callable[[float], NDArray[np.float64]]


def check_drive_odometry(make: Callable[[], DriveOdometry], motions: Sequence[DrivenMotion]) -> None:
    """Check the odometry of a drive against the contract of `DriveOdometry`.

    The exponential map of SE(2) is the independent method: a constant twist ξ over a time t moves the base by
    exp(ξ t), and driving the same angles backward brings it to its start.

    Args:
        make: Makes a new odometry object.
        motions: Motions that the drive can execute exactly, at least one that moves and one that turns.

    Raises:
        InputError: The odometry breaks its contract; the message says how.
    """
    for motion in motions:
        _check_pose_of_motion(make(), motion)
        _check_closed_loop(make(), motion)
        _check_covariance(make(), motion)
        _check_rejections(make(), motion)
        _check_odometry_state(make, motion)


def _drive(odometry: DriveOdometry, motion: DrivenMotion, steps: Sequence[int]) -> list[OdometryEstimate]:
    """Return the estimates at readings whose angles are those after ``step`` · 20 ms, each 20 ms after the previous."""
    estimates = []
    for k, step in enumerate(steps):
        estimate = odometry.update(k * _STEP_NS, motion.joint_angles(step * _STEP_NS * 1e-9))
        if k == 0:
            if estimate is not None:
                _report_violation(odometry, "the first reading gives an estimate, although it only sets the start")
            continue
        if estimate is None:
            _report_violation(odometry, f"no estimate at reading {k + 1} of a motion that is not rejected")
        if estimate.time_ns != k * _STEP_NS:
            _report_violation(odometry, f"the estimate of a reading at {k * _STEP_NS} ns has time {estimate.time_ns}")
        estimates.append(estimate)
    return estimates


def _check_pose_of_motion(odometry: DriveOdometry, motion: DrivenMotion) -> None:
    last = _drive(odometry, motion, range(101))[-1]
    seconds = 100 * _STEP_NS * 1e-9
    expected = SE2.exp([component * seconds for component in motion.twist])
    if last.T_odom_base.distance(expected) > 1e-6 or abs(wrap_angle(last.T_odom_base.theta - expected.theta)) > 1e-6:
        _report_violation(odometry, f"a motion with {motion.twist} ends at {last.T_odom_base} instead of {expected}")
    if last.T_odom_base != odometry.T_odom_base:
        _report_violation(odometry, "T_odom_base differs from the pose of the last estimate")
    if np.abs(np.subtract(last.twist, motion.twist)).max() > 1e-6:
        _report_violation(odometry, f"a motion with {motion.twist} is reported as {last.twist}")


def _check_closed_loop(odometry: DriveOdometry, motion: DrivenMotion) -> None:
    last = _drive(odometry, motion, [*range(51), *range(49, -1, -1)])[-1]
    if last.T_odom_base.distance(SE2.identity()) > 1e-9 or abs(wrap_angle(last.T_odom_base.theta)) > 1e-9:
        _report_violation(odometry, f"angles back to their start end at {last.T_odom_base}, not at the origin")


def _check_covariance(odometry: DriveOdometry, motion: DrivenMotion) -> None:
    determinant = 0.0
    estimates = _drive(odometry, motion, [*range(51), *[50] * 5])
    for estimate in estimates:
        for covariance in (estimate.covariance, estimate.twist_covariance):
            scale = float(np.abs(covariance).max())
            if covariance.shape != (3, 3) or not np.isfinite(covariance).all():
                _report_violation(odometry, f"a covariance of shape {covariance.shape} that is not finite (3, 3)")
            if np.abs(covariance - covariance.T).max() > 1e-12 * scale:
                _report_violation(odometry, "a covariance is not symmetric")
            if np.linalg.eigvalsh(covariance).min() < -1e-12 * scale:
                _report_violation(odometry, "a covariance is not positive semi-definite")
        if np.linalg.eigvalsh(estimate.twist_covariance).min() <= 0.0:
            _report_violation(odometry, "the twist's covariance cannot be inverted")
        previous, determinant = determinant, float(np.linalg.det(estimate.covariance))
        if determinant < previous * (1.0 - 1e-9) - 1e-30:
            _report_violation(odometry, "the determinant of the covariance falls while the base moves")
    moving, standing = estimates[49], estimates[-1]
    if np.trace(moving.covariance) <= 0.0:
        _report_violation(odometry, "the covariance does not grow with the motion")
    if (moving.covariance != standing.covariance).any() or moving.T_odom_base != standing.T_odom_base:
        _report_violation(odometry, "pose or covariance change at standstill")


def _check_rejections(odometry: DriveOdometry, motion: DrivenMotion) -> None:
    _drive(odometry, motion, range(6))
    pose, angles = odometry.T_odom_base, motion.joint_angles(5 * _STEP_NS * 1e-9)
    for time_ns, reading, problem in (
        (6 * _STEP_NS, np.full_like(angles, math.nan), "angles that are not finite"),
        (5 * _STEP_NS, angles, "a time that is not later than the previous one"),
    ):
        n_rejected = odometry.n_rejected
        if odometry.update(time_ns, reading) is not None or odometry.T_odom_base != pose:
            _report_violation(odometry, f"takes a reading with {problem}")
        if odometry.n_rejected != n_rejected + 1:
            _report_violation(odometry, f"does not count a reading with {problem} as rejected")
    estimate = odometry.update(7 * _STEP_NS, motion.joint_angles(6 * _STEP_NS * 1e-9))
    if estimate is None:
        _report_violation(odometry, "does not continue after rejected readings")


def _check_odometry_state(make: Callable[[], DriveOdometry], motion: DrivenMotion) -> None:
    uninterrupted, first, restored = make(), make(), make()
    estimates = _drive(uninterrupted, motion, range(21))
    _drive(first, motion, range(11))
    restored.load_state(first.save_state())
    for k in range(11, 21):
        estimate = restored.update(k * _STEP_NS, motion.joint_angles(k * _STEP_NS * 1e-9))
        if estimate is None or not _are_equal_estimates(estimate, estimates[k - 1]):
            _report_violation(restored, "a restored odometry differs from an uninterrupted one")
    start = SE2(3.0, -1.0, 0.7)
    restored.reset(start)
    if restored.T_odom_base != start:
        _report_violation(restored, "reset does not set the pose")
    estimate = restored.update(21 * _STEP_NS, motion.joint_angles(21 * _STEP_NS * 1e-9))
    expected = start @ SE2.exp([component * _STEP_NS * 1e-9 for component in motion.twist])
    if estimate is None or estimate.T_odom_base.distance(expected) > 1e-6:
        _report_violation(restored, "the reading after reset does not continue from the last one")


def _are_equal_estimates(one: OdometryEstimate, other: OdometryEstimate) -> bool:
    return bool(
        one.T_odom_base == other.T_odom_base
        and one.twist == other.twist
        and (one.covariance == other.covariance).all()
        and (one.twist_covariance == other.twist_covariance).all()
    )


# -- state estimators --------------------------------------------------------------------------------------------------
_LINEAR_INDICES = [0, 6, 12]
"""Position, velocity and acceleration along x: without rotation a linear system."""


def check_state_estimator(
    estimator_class: Callable[[Array, Array, FusionConfig], StateEstimator], *, tolerance: float = 1e-5, seed: int = 0
) -> None:
    """Check a state estimator against the contract of `StateEstimator`.

    Args:
        estimator_class: The class.
        tolerance: Largest difference to the Kalman filter on a linear system.
        seed: Seed of the random problems.

    Raises:
        InputError: The estimator breaks its contract; the message says how.
    """
    rng = np.random.default_rng(seed)
    _check_linear_system(estimator_class, rng, tolerance)
    for _ in range(5):
        _check_growth_and_correction(estimator_class, rng)
    _check_gate(estimator_class, rng)
    _check_angles(estimator_class)
    _check_estimator_state(estimator_class, rng)


def _random_covariance(rng: np.random.Generator, scale: float = 0.1) -> Array:
    root = rng.normal(0.0, scale, (STATE_SIZE, STATE_SIZE))
    return np.asarray(root @ root.T + 1e-4 * np.eye(STATE_SIZE))


def _flags(*names: str) -> NDArray[np.bool_]:
    return np.array([name in names for name in STATE_NAMES])


def _check_linear_system(make: Callable[..., StateEstimator], rng: np.random.Generator, tolerance: float) -> None:
    """Compare with the closed form of the Kalman filter for position, velocity and acceleration along one axis."""
    x, P, Q = np.array([0.0, 1.0, 0.2]), np.diag([0.5, 0.2, 0.1]), np.diag([0.01, 0.02, 0.03])
    block = np.ix_(_LINEAR_INDICES, _LINEAR_INDICES)
    state, covariance, noise = np.zeros(STATE_SIZE), 1e-12 * np.eye(STATE_SIZE), np.zeros((STATE_SIZE, STATE_SIZE))
    state[_LINEAR_INDICES], covariance[block], noise[block] = x, P, Q
    estimator = make(state, covariance, FusionConfig())
    dt = 0.1
    F = np.array([[1.0, dt, 0.5 * dt * dt], [0.0, 1.0, dt], [0.0, 0.0, 1.0]])
    for k in range(50):
        x, P = F @ x, F @ P @ F.T + Q * dt
        estimator.predict(dt, noise)
        index = k % 2
        H, z = np.eye(3)[index : index + 1], rng.normal(size=1)
        gain = P @ H.T / float((H @ P @ H.T)[0, 0] + 0.3)
        x, P = x + gain @ (z - H @ x), (np.eye(3) - gain @ H) @ P
        values = np.zeros(STATE_SIZE)
        values[_LINEAR_INDICES[index]] = z[0]
        if not estimator.correct(values, _flags(("x", "vx")[index]), 0.3 * np.eye(STATE_SIZE)):
            _report_violation(estimator, "rejects a measurement without a threshold")
        error = max(
            float(np.abs(estimator.state[_LINEAR_INDICES] - x).max()),
            float(np.abs(estimator.covariance[block] - P).max()),
        )
        if error > tolerance:
            _report_violation(estimator, f"differs by {error:.3g} from the Kalman filter on a linear system")


def _check_covariance_matrix(estimator: StateEstimator, step: str) -> None:
    covariance = estimator.covariance
    scale = float(np.abs(covariance).max())
    if not (np.isfinite(covariance).all() and np.isfinite(estimator.state).all()):
        _report_violation(estimator, f"state or covariance are not finite after {step}")
    if np.abs(covariance - covariance.T).max() > 1e-9 * scale:
        _report_violation(estimator, f"the covariance is not symmetric after {step}")
    if np.linalg.eigvalsh(covariance).min() < -1e-7 * max(scale, 1.0):
        _report_violation(estimator, f"the covariance is not positive semi-definite after {step}")


def _check_growth_and_correction(make: Callable[..., StateEstimator], rng: np.random.Generator) -> None:
    estimator = make(rng.uniform(-0.5, 0.5, STATE_SIZE), _random_covariance(rng), FusionConfig())
    noise = _random_covariance(rng)
    for _ in range(5):
        before = float(np.linalg.slogdet(estimator.covariance)[1])
        estimator.predict(0.05, noise)
        _check_covariance_matrix(estimator, "a prediction")
        if float(np.linalg.slogdet(estimator.covariance)[1]) <= before:
            _report_violation(estimator, "the covariance does not grow without measurements")
        variances = np.diag(estimator.covariance).copy()
        used = rng.random(STATE_SIZE) < 0.4
        estimator.correct(estimator.state + rng.normal(0.0, 0.1, STATE_SIZE), used, _random_covariance(rng))
        _check_covariance_matrix(estimator, "a correction")
        if (np.diag(estimator.covariance) > variances * (1.0 + 1e-6) + 1e-9).any():
            _report_violation(estimator, "a correction makes a variance larger")
        estimator.predict(0.05, 30.0 * noise)


def _check_gate(make: Callable[..., StateEstimator], rng: np.random.Generator) -> None:
    estimator = make(np.zeros(STATE_SIZE), _random_covariance(rng), FusionConfig())
    before = estimator.save_state()
    distant_values = np.full(STATE_SIZE, 1e3)
    for used, problem in ((_flags(), "no used state"), (_flags("x"), "an innovation beyond the threshold")):
        if estimator.correct(distant_values, used, np.eye(STATE_SIZE), 3.0):
            _report_violation(estimator, f"accepts a measurement with {problem}")
        if (estimator.state != before["state"]).any() or (estimator.covariance != before["covariance"]).any():
            _report_violation(estimator, f"a rejected measurement with {problem} changes the estimate")


def _check_angles(make: Callable[..., StateEstimator]) -> None:
    """Correct a yaw near pi with one near -pi: the shorter way round leads over pi."""
    state = np.zeros(STATE_SIZE)
    state[5], state[11] = 3.1, 1.0
    estimator = make(state, 0.01 * np.eye(STATE_SIZE), FusionConfig())
    values = np.zeros(STATE_SIZE)
    values[5] = -3.1
    estimator.correct(values, _flags("yaw"), 0.01 * np.eye(STATE_SIZE))
    if abs(wrap_angle(float(estimator.state[5]) - math.pi)) > 0.02:
        _report_violation(estimator, f"the mean of the yaws 3.1 and -3.1 is {float(estimator.state[5]):.3g}, not pi")
    for _ in range(100):
        estimator.predict(0.1, 1e-6 * np.eye(STATE_SIZE))
        if np.abs(estimator.state[3:6]).max() > math.pi + 1e-12:
            _report_violation(estimator, "angles leave [-pi, pi]")


def _check_estimator_state(make: Callable[..., StateEstimator], rng: np.random.Generator) -> None:
    state, covariance, noise = rng.uniform(-0.5, 0.5, STATE_SIZE), _random_covariance(rng), _random_covariance(rng)
    uninterrupted, first, restored = (make(state, covariance, FusionConfig()) for _ in range(3))
    measurements = [(rng.normal(0.0, 1.0, STATE_SIZE), rng.random(STATE_SIZE) < 0.5) for _ in range(8)]

    def run(estimator: StateEstimator, items: Sequence[tuple[Any, Any]]) -> None:
        for values, used in items:
            estimator.predict(0.05, noise, np.full(6, 0.1))
            estimator.correct(values, used, 0.1 * np.eye(STATE_SIZE))

    run(uninterrupted, measurements)
    run(first, measurements[:4])
    restored.load_state(first.save_state())
    run(restored, measurements[4:])
    if (restored.state != uninterrupted.state).any() or (restored.covariance != uninterrupted.covariance).any():
        _report_violation(restored, "a restored estimator differs from an uninterrupted one")


# -- models of Monte Carlo localization --------------------------------------------------------------------------------
def check_motion_model(make: Callable[[AmclConfig], OdometryMotionModel]) -> None:
    """Check a motion model against the contract of `OdometryMotionModel`.

    Args:
        make: The class.

    Raises:
        InputError: The model breaks its contract; the message says how.
    """
    noise_free = make(AmclConfig(alpha1=0.0, alpha2=0.0, alpha3=0.0, alpha4=0.0, alpha5=0.0))
    rng = np.random.default_rng(0)
    particles = np.column_stack([rng.uniform(-5.0, 5.0, (50, 2)), rng.uniform(-math.pi, math.pi, 50)])
    for step in (SE2(0.3, 0.05, 0.4), SE2(-0.2, 0.02, -0.3), SE2(0.0, 0.0, 1.0), SE2.identity()):
        before = particles.copy()
        samples = noise_free.sample(particles, step, np.random.default_rng(1))
        if (particles != before).any():
            _report_violation(noise_free, "changes the particles that it was given")
        expected = [SE2(*pose) @ step for pose in particles.tolist()]
        errors = samples - np.array([[pose.x, pose.y, pose.theta] for pose in expected])
        errors[:, 2] = wrap_angle(errors[:, 2])
        if samples.shape != particles.shape or np.abs(errors).max() > 1e-9:
            _report_violation(noise_free, f"without noise particles do not move by the step {step}")
    model, step = make(AmclConfig()), SE2(0.3, 0.05, 0.4)
    first, second = (model.sample(particles, step, np.random.default_rng(2)) for _ in range(2))
    if (first != second).any():
        _report_violation(model, "the same generator state gives different particles")
    if not np.isfinite(first).all() or np.abs(first[:, 2]).max() > math.pi:
        _report_violation(model, "particles are not finite, or headings leave [-pi, pi]")
    if len(np.unique(first, axis=0)) < len(first):
        _report_violation(model, "particles have no noise of their own")
    _check_frame_independence(model, step)


def _check_frame_independence(model: OdometryMotionModel, step: SE2) -> None:
    frame = SE2(4.0, -2.0, 1.3)
    at_origin = model.sample(np.zeros((200, 3)), step, np.random.default_rng(3))
    in_frame = model.sample(np.tile([frame.x, frame.y, frame.theta], (200, 1)), step, np.random.default_rng(3))
    expected = frame @ at_origin[:, :2]
    heading_errors = wrap_angle(in_frame[:, 2] - at_origin[:, 2] - frame.theta)
    if np.abs(in_frame[:, :2] - expected).max() > 1e-9 or np.abs(heading_errors).max() > 1e-9:
        _report_violation(model, "the noise depends on where the particles are in the map")


def check_laser_model(make: Callable[[OccupancyGrid, AmclConfig], LaserModel]) -> None:
    """Check a laser model against the contract of `LaserModel`, in a room with a pillar.

    Args:
        make: The class.

    Raises:
        InputError: The model breaks its contract; the message says how.
    """
    cells = np.zeros((80, 120), np.int8)
    cells[[0, -1], :] = 100
    cells[:, [0, -1]] = 100
    cells[20:45, 70:75] = 100
    grid = OccupancyGrid(cells, GridGeometry(0.05, (80, 120), SE2(-1.0, 2.0, 0.3)))
    truth = grid.geometry.T_map_grid @ SE2(2.0, 1.5, 0.3)
    angles = np.linspace(-2.0, 2.0, 121)
    ranges = simulate_scans(cells > 50, grid.geometry, [truth.x, truth.y, truth.theta], angles, 10.0)[0] + 0.025
    scan = LaserScan(0, ranges.astype(np.float32), -2.0, 4.0 / 120, 0.1, 10.0, odometry=SE2.identity())
    config = AmclConfig()
    model, measurement = make(grid, config), prepare_scan(scan, config)
    offsets = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 0.8), (-0.7, 0.7, -0.5)]
    poses = [truth @ SE2(*offset) for offset in offsets]
    particles = np.array([[pose.x, pose.y, pose.theta] for pose in poses])
    particles_before, points_before = particles.copy(), measurement.points.copy()
    total, mean = model.log_weights(particles, measurement)
    if (particles != particles_before).any() or (measurement.points != points_before).any():
        _report_violation(model, "changes the particles or the scan that it was given")
    if np.shape(total) != (len(particles),) or np.shape(mean) != (len(particles),):
        _report_violation(model, f"gives {np.shape(total)} and {np.shape(mean)} numbers for {len(particles)} particles")
    if not (np.isfinite(total).all() and np.isfinite(mean).all()):
        _report_violation(model, "log-likelihoods are not finite")
    if np.argmax(total) != 0:
        _report_violation(model, f"a scan is more likely at {poses[int(np.argmax(total))]} than at its true {truth}")
    repeated, _ = make(grid, config).log_weights(particles, measurement)
    single, _ = model.log_weights(particles[1:2], measurement)
    if (repeated != total).any() or abs(float(single[0] - total[1])) > 1e-4 * max(1.0, abs(float(total[1]))):
        _report_violation(model, "the log-likelihood of a pose depends on the call or on the other particles")
    empty = LaserScan(0, np.full(121, math.nan, np.float32), -2.0, 4.0 / 120, 0.1, 10.0, odometry=SE2.identity())
    total, mean = model.log_weights(particles, prepare_scan(empty, config))
    if not (np.isfinite(total).all() and np.isfinite(mean).all()) or float(np.ptp(total)) > 1e-9:
        _report_violation(model, "a scan without a valid beam does not leave all particles equally likely")
