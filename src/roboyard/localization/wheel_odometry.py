"""Wheel odometry: integrates the motion of the wheels to a pose with its covariance.

`DriveOdometry` is the contract: joint angles of a drive in, pose and twist with their covariances out.
`DifferentialOdometry`, `MecanumOdometry` and `AckermannOdometry` fulfill it for the three drives, and an odometry node
takes any of them.  Below them, `WheelOdometry` integrates the two sides of a differential drive, and `PlanarOdometry`
the displacements of a base that moves in any direction of the plane.

The integration is exact for a constant curvature between two readings: a distance d and a rotation θ move the base by
d·(sin θ/θ, (1 - cos θ)/θ) and rotate it by θ (R. Siegwart, I. Nourbakhsh, D. Scaramuzza, Introduction to Autonomous
Mobile Robots, 5.2.4, have the first-order form).  The covariance follows the exact Jacobians of the step.

Two places hold the causes of drift: the hardware has the errors of the encoders (resolution, miscounts, low rate), and
the drive's geometry has wrong radii, unequal radii and slip, which calibration corrects.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.control.wheel_kinematics import (
    ZERO_TWIST,
    AckermannWheels,
    AckermannWheelValues,
    DifferentialDrive,
    MecanumDrive,
    PlanarTwist,
    ackermann_twist,
)
from roboyard.geometry import SE2

MIN_VELOCITY_VARIANCE = 1e-6
"""Least variance of each velocity [(m/s)², (rad/s)²], so that filters can invert the covariance at standstill."""


class OdometryNoise(Config):
    """Growth of the uncertainty of odometry; variances grow per meter or radian of motion.

    The defaults fit a small indoor base on a hard floor: 2 cm after 1 m, 3° after a full rotation in place.
    """

    translation_variance_per_meter: float = parameter(
        4e-4, unit="m²/m", low=0.0, high=1.0, runtime=True,
        doc="Variance of the distance per distance traveled.",
    )  # fmt: skip
    rotation_variance_per_meter: float = parameter(
        1e-4, unit="rad²/m", low=0.0, high=1.0, runtime=True,
        doc="Variance of the heading per distance traveled.",
    )  # fmt: skip
    rotation_variance_per_radian: float = parameter(
        5e-4, unit="rad²/rad", low=0.0, high=1.0, runtime=True,
        doc="Variance of the heading per angle turned.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class OdometryEstimate:
    """Odometry estimate: pose, twist and their covariances.

    Attributes:
        time_ns: Time of the reading [ns].
        T_odom_base: Pose of the base since the start.
        twist: Mean velocity since the previous reading, in base axes.
        covariance: (3, 3) of x, y [m²] and heading [rad²], in odom axes.
        twist_covariance: (3, 3) of vx, vy, wz, in base axes.
    """

    time_ns: int
    T_odom_base: SE2
    twist: PlanarTwist
    covariance: NDArray[np.float64]
    twist_covariance: NDArray[np.float64]


class WheelOdometry:
    """Integrates the wheel angles of a drive with a left and a right side.

    Args:
        drive: Geometry, slip factor and radius scales.
        noise: Growth of the uncertainty.
        max_wheel_speed: Two readings that would need faster wheels [rad/s] are a miscount or a reset of the encoder;
            the step between them is dropped.

    Attributes:
        n_rejected: Number of readings that were rejected.
    """

    def __init__(
        self, drive: DifferentialDrive, noise: OdometryNoise | None = None, max_wheel_speed: float = math.inf
    ) -> None:
        self.drive = drive
        self.noise = noise or OdometryNoise()
        self.max_wheel_speed = max_wheel_speed
        self.n_rejected = 0
        self._last_reading: tuple[int, float, float] | None = None
        self._pose = SE2.identity()
        self._covariance = _PlanarCovariance()

    def update(self, time_ns: int, left_angle: float, right_angle: float) -> OdometryEstimate | None:
        """Update the pose with the angles of the left and the right wheels [rad], not wrapped.

        Returns:
            The new estimate; None for the first reading, which only sets the start, and for rejected readings: not
            finite, not later than the previous one, or too far from it.
        """
        if not (math.isfinite(left_angle) and math.isfinite(right_angle)):
            self.n_rejected += 1
            return None
        last, self._last_reading = self._last_reading, (time_ns, left_angle, right_angle)
        if last is None:
            return None
        dt = (time_ns - last[0]) * 1e-9
        left_step, right_step = left_angle - last[1], right_angle - last[2]
        if dt <= 0.0 or max(abs(left_step), abs(right_step)) > self.max_wheel_speed * dt:
            self.n_rejected += 1
            return None
        return self._advance(time_ns, dt, *self.drive.travel(left_step, right_step))

    def reset(self, T_odom_base: SE2 | None = None) -> None:
        """Set the pose to ``T_odom_base`` (by default the origin) without uncertainty."""
        self._pose = SE2.identity() if T_odom_base is None else T_odom_base
        self._covariance = _PlanarCovariance()

    @property
    def T_odom_base(self) -> SE2:
        """Pose of the base at the last reading."""
        return self._pose

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        pose = self._pose
        return {
            "last": self._last_reading,
            "pose": (pose.x, pose.y, pose.theta),
            "covariance": astuple(self._covariance),
            "n_rejected": self.n_rejected,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self._last_reading = None if state["last"] is None else tuple(state["last"])
        self._pose = SE2(*state["pose"])
        self._covariance = _PlanarCovariance(*state["covariance"])
        self.n_rejected = state["n_rejected"]

    # -- one step ------------------------------------------------------------------------------------------------------
    def _advance(self, time_ns: int, dt: float, distance: float, rotation: float) -> OdometryEstimate:
        axle_x, heading = self.drive.axle_x, self._pose.theta
        step = compute_arc_displacement(distance, rotation)
        if axle_x:  # the axle follows the arc; the base frame is fixed to it
            step = SE2(axle_x, 0.0, 0.0) @ step @ SE2(-axle_x, 0.0, 0.0)
        distance_variance, rotation_variance = self._step_variances(distance, rotation)
        x_by_distance, y_by_distance, x_by_rotation, y_by_rotation = _arc_derivatives(distance, rotation)
        x_by_rotation += axle_x * math.sin(rotation)  # the offset of the axle, rotated by the step
        y_by_rotation -= axle_x * math.cos(rotation)
        c, s = math.cos(heading), math.sin(heading)
        self._covariance = (
            self._covariance.propagate(c * step.x - s * step.y, s * step.x + c * step.y)
            .add_noise(
                distance_variance, c * x_by_distance - s * y_by_distance, s * x_by_distance + c * y_by_distance, 0.0
            )
            .add_noise(
                rotation_variance, c * x_by_rotation - s * y_by_rotation, s * x_by_rotation + c * y_by_rotation, 1.0
            )
        )
        self._pose = self._pose @ step
        is_moving = distance != 0.0 or rotation != 0.0
        twist = PlanarTwist(distance / dt, -rotation / dt * axle_x, rotation / dt) if is_moving else ZERO_TWIST
        inverse_dt_squared, min_variance = 1.0 / (dt * dt), MIN_VELOCITY_VARIANCE
        lateral_covariance = -axle_x * rotation_variance * inverse_dt_squared
        twist_covariance = np.array(
            [
                [distance_variance * inverse_dt_squared + min_variance, 0.0, 0.0],
                [0.0, -axle_x * lateral_covariance + min_variance, lateral_covariance],
                [0.0, lateral_covariance, rotation_variance * inverse_dt_squared + min_variance],
            ]
        )
        return OdometryEstimate(time_ns, self._pose, twist, self._covariance.to_matrix(), twist_covariance)

    def _step_variances(self, distance: float, rotation: float) -> tuple[float, float]:
        noise = self.noise
        return (
            noise.translation_variance_per_meter * abs(distance),
            noise.rotation_variance_per_meter * abs(distance) + noise.rotation_variance_per_radian * abs(rotation),
        )


def compute_arc_displacement(distance: float, rotation: float) -> SE2:
    """Return the motion along an arc of a length [m] over a rotation [rad], in the frame at its start."""
    half_rotation = 0.5 * rotation
    chord = distance * _sinc(half_rotation)
    return SE2(chord * math.cos(half_rotation), chord * math.sin(half_rotation), rotation)


def compute_arc_jacobian(distance: float, rotation: float) -> NDArray[np.float64]:
    """Return the (3, 2) derivative of an arc's x, y and heading by its distance and its rotation."""
    x_by_distance, y_by_distance, x_by_rotation, y_by_rotation = _arc_derivatives(distance, rotation)
    return np.array([[x_by_distance, x_by_rotation], [y_by_distance, y_by_rotation], [0.0, 1.0]])


def _arc_derivatives(distance: float, rotation: float) -> tuple[float, float, float, float]:
    """Return the derivatives of an arc: x by distance, y by distance, x by rotation, y by rotation."""
    half_rotation = 0.5 * rotation
    sinc, sinc_derivative = _sinc(half_rotation), _sinc_derivative(half_rotation)
    c, s = math.cos(half_rotation), math.sin(half_rotation)
    return (
        sinc * c,
        sinc * s,
        0.5 * distance * (sinc_derivative * c - sinc * s),
        0.5 * distance * (sinc_derivative * s + sinc * c),
    )


@dataclass(frozen=True, slots=True)
class _PlanarCovariance:
    """Symmetric covariance of x, y and heading t, as plain numbers: odometry updates it at every reading."""

    xx: float = 0.0
    xy: float = 0.0
    xt: float = 0.0
    yy: float = 0.0
    yt: float = 0.0
    tt: float = 0.0

    def propagate(self, dx: float, dy: float) -> _PlanarCovariance:
        """Return F P Fᵀ of a motion by (dx, dy) in the axes of x and y, F = [[1, 0, -dy], [0, 1, dx], [0, 0, 1]]."""
        return _PlanarCovariance(
            self.xx - 2.0 * dy * self.xt + dy * dy * self.tt,
            self.xy + dx * self.xt - dy * self.yt - dx * dy * self.tt,
            self.xt - dy * self.tt,
            self.yy + 2.0 * dx * self.yt + dx * dx * self.tt,
            self.yt + dx * self.tt,
            self.tt,
        )

    def add_noise(self, variance: float, gx: float, gy: float, gt: float) -> _PlanarCovariance:
        """Return P + variance · g gᵀ."""
        return _PlanarCovariance(
            self.xx + variance * gx * gx,
            self.xy + variance * gx * gy,
            self.xt + variance * gx * gt,
            self.yy + variance * gy * gy,
            self.yt + variance * gy * gt,
            self.tt + variance * gt * gt,
        )

    def to_matrix(self) -> NDArray[np.float64]:
        """Return the (3, 3) matrix."""
        return np.array([[self.xx, self.xy, self.xt], [self.xy, self.yy, self.yt], [self.xt, self.yt, self.tt]])


def _sinc(x: float) -> float:
    """Return sin x / x."""
    return math.sin(x) / x if abs(x) > 1e-6 else 1.0 - x * x / 6.0


def _sinc_derivative(x: float) -> float:
    """Return the derivative of sin x / x."""
    return (math.cos(x) - math.sin(x) / x) / x if abs(x) > 1e-3 else -x / 3.0 + x**3 / 30.0


class PlanarOdometry:
    """Integrates displacements of a base that moves in any direction of the plane.

    Args:
        noise: Growth of the uncertainty; lateral motion is as uncertain as forward motion.

    Attributes:
        T_odom_base: Present pose of the base.
    """

    def __init__(self, noise: OdometryNoise | None = None) -> None:
        self.noise = noise or OdometryNoise()
        self._time_ns: int | None = None
        self.reset()

    def reset(self, T_odom_base: SE2 | None = None) -> None:
        """Set the pose to ``T_odom_base`` (by default the origin) without uncertainty."""
        self.T_odom_base = SE2.identity() if T_odom_base is None else T_odom_base
        self._covariance = np.zeros((3, 3))

    def update(self, time_ns: int, displacement: PlanarTwist) -> OdometryEstimate | None:
        """Update the pose with the displacement of the base frame [m, m, rad], in its axes, since the last call.

        Returns:
            The new estimate; None for the first call, which only sets the start, and for a time that is not later than
            the previous one.
        """
        last, self._time_ns = self._time_ns, time_ns
        if last is None or time_ns <= last:
            return None
        dt, step, noise = (time_ns - last) * 1e-9, SE2.exp(displacement), self.noise
        distance = math.hypot(displacement.vx, displacement.vy)
        step_covariance = np.diag(
            [
                noise.translation_variance_per_meter * distance,
                noise.translation_variance_per_meter * distance,
                noise.rotation_variance_per_meter * distance
                + noise.rotation_variance_per_radian * abs(displacement.wz),
            ]
        )
        self._covariance = _propagate_covariance(self._covariance, self.T_odom_base, step, step_covariance)
        self.T_odom_base = self.T_odom_base @ step
        twist = PlanarTwist(displacement.vx / dt, displacement.vy / dt, displacement.wz / dt)
        twist_covariance = step_covariance / dt**2 + MIN_VELOCITY_VARIANCE * np.eye(3)
        return OdometryEstimate(time_ns, self.T_odom_base, twist, self._covariance.copy(), twist_covariance)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        pose = self.T_odom_base
        return {"pose": (pose.x, pose.y, pose.theta), "covariance": self._covariance.copy(), "time_ns": self._time_ns}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self.T_odom_base = SE2(*state["pose"])
        self._covariance = np.array(state["covariance"])
        self._time_ns = state["time_ns"]


def _propagate_covariance(
    covariance: NDArray[np.float64], T_odom_base: SE2, step: SE2, step_covariance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return F P Fᵀ + G Q Gᵀ: the pose's covariance after the step, and the step's own at the mean heading."""
    heading = T_odom_base.theta
    c, s = math.cos(heading), math.sin(heading)
    dx, dy = c * step.x - s * step.y, s * step.x + c * step.y
    F = np.array([[1.0, 0.0, -dy], [0.0, 1.0, dx], [0.0, 0.0, 1.0]])
    mean_heading = heading + 0.5 * step.theta
    c, s = math.cos(mean_heading), math.sin(mean_heading)
    G = np.array([[c, -s, -0.5 * dy], [s, c, 0.5 * dx], [0.0, 0.0, 1.0]])
    propagated: NDArray[np.float64] = F @ covariance @ F.T + G @ step_covariance @ G.T
    return propagated


IntegratorT = TypeVar("IntegratorT", WheelOdometry, PlanarOdometry)


class DriveOdometry(ABC):
    """Odometry of a drive from the angles of its joints: the contract of the odometry nodes.

    A class of your own derives from it, implements ``update``, ``reset`` and the properties, and is returned by
    ``make_odometry`` of a node that derives from ``DriveOdometryNode``.  ``check_drive_odometry`` in
    ``roboyard.localization.conformance`` tests the contract:

    - The first reading sets the start.  Every later reading gives an estimate at its own time, or is rejected and
      counted: angles that are not finite, or a time that is not later than the previous one.
    - Joint angles are continuous [rad], not wrapped.  Only their changes count.
    - The covariance stays symmetric and positive semi-definite.  Its determinant does not fall while the base moves,
      and it does not change at standstill.
    - The same readings give the same bits, also after ``save_state`` and ``load_state`` in between.
    - ``reset`` moves the pose and clears its covariance; the next reading continues from the last one.

    Attributes:
        noise: Growth of the uncertainty; may be replaced between two readings.
        n_rejected: Number of rejected readings.
    """

    noise: OdometryNoise
    n_rejected: int

    @property
    @abstractmethod
    def T_odom_base(self) -> SE2:
        """Pose of the base at the last reading."""

    @abstractmethod
    def update(self, time_ns: int, angles: NDArray[np.float64]) -> OdometryEstimate | None:
        """Update the pose with the joint angles (n,) [rad] at a time [ns].

        Returns:
            The new estimate; None for the first reading and for rejected ones.
        """

    @abstractmethod
    def reset(self, T_odom_base: SE2 | None = None) -> None:
        """Set the pose to ``T_odom_base`` (by default the origin) without uncertainty."""

    @abstractmethod
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""


class _IntegratedOdometry(DriveOdometry, Generic[IntegratorT]):
    """Base of drive odometry that keeps pose and covariance in an integrator."""

    _integrator: IntegratorT

    @property
    def noise(self) -> OdometryNoise:
        """Growth of the uncertainty."""
        return self._integrator.noise

    @noise.setter
    def noise(self, noise: OdometryNoise) -> None:
        self._integrator.noise = noise

    @property
    def T_odom_base(self) -> SE2:
        """Pose of the base at the last reading."""
        return self._integrator.T_odom_base

    def reset(self, T_odom_base: SE2 | None = None) -> None:
        """Set the pose to ``T_odom_base`` (by default the origin) without uncertainty."""
        self._integrator.reset(T_odom_base)


class DifferentialOdometry(_IntegratedOdometry[WheelOdometry]):
    """Odometry of a differential or skid-steered drive; the angles of several wheels on a side are averaged.

    Args:
        drive: Geometry, slip factor and radius scales; may be replaced between two readings.
        n_left: Number of left wheels, whose angles come first.
        noise: Growth of the uncertainty.
        max_wheel_speed: Two readings that would need faster wheels [rad/s] are rejected.
    """

    def __init__(
        self,
        drive: DifferentialDrive,
        n_left: int = 1,
        noise: OdometryNoise | None = None,
        max_wheel_speed: float = math.inf,
    ) -> None:
        self._integrator = WheelOdometry(drive, noise, max_wheel_speed)
        self._n_left = n_left

    def configure(self, drive: DifferentialDrive, noise: OdometryNoise, max_wheel_speed: float) -> None:
        """Set geometry, noise and largest wheel speed [rad/s]; the pose stays."""
        self._integrator.drive, self._integrator.noise = drive, noise
        self._integrator.max_wheel_speed = max_wheel_speed

    @property
    def n_rejected(self) -> int:  # type: ignore[override]
        """Number of rejected readings."""
        return self._integrator.n_rejected

    def update(self, time_ns: int, angles: NDArray[np.float64]) -> OdometryEstimate | None:
        """Update the pose with the angles (n,) [rad] of the left wheels, then of the right ones."""
        values: list[float] = angles.tolist()
        left, right = values[: self._n_left], values[self._n_left :]
        return self._integrator.update(time_ns, sum(left) / len(left), sum(right) / len(right))

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return self._integrator.save_state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self._integrator.load_state(state)


class DisplacementOdometry(_IntegratedOdometry[PlanarOdometry]):
    """Base of odometry whose readings give a displacement of the base: subclasses implement ``displacement``.

    The displacement is integrated by the exponential map of SE(2), as of a constant twist between two readings.
    """

    def __init__(self, noise: OdometryNoise | None = None) -> None:
        self._integrator = PlanarOdometry(noise)
        self._last_reading: tuple[int, NDArray[np.float64]] | None = None
        self.n_rejected = 0

    @abstractmethod
    def displacement(self, previous_angles: NDArray[np.float64], angles: NDArray[np.float64]) -> PlanarTwist:
        """Return the displacement of the base frame [m, m, rad], in its own axes, between joint angles (n,) [rad]."""

    def update(self, time_ns: int, angles: NDArray[np.float64]) -> OdometryEstimate | None:
        """Update the pose with the joint angles (n,) [rad]."""
        if not np.isfinite(angles).all():
            self.n_rejected += 1
            return None
        last, self._last_reading = self._last_reading, (time_ns, np.array(angles, dtype=np.float64))
        if last is not None and time_ns <= last[0]:
            self.n_rejected += 1
            return None
        displacement = PlanarTwist() if last is None else self.displacement(last[1], self._last_reading[1])
        return self._integrator.update(time_ns, displacement)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        last = self._last_reading
        return {
            "integrator": self._integrator.save_state(),
            "last_reading": None if last is None else (last[0], last[1].copy()),
            "n_rejected": self.n_rejected,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self._integrator.load_state(state["integrator"])
        last = state["last_reading"]
        self._last_reading = None if last is None else (last[0], np.array(last[1]))
        self.n_rejected = state["n_rejected"]


class MecanumOdometry(DisplacementOdometry):
    """Odometry of four mecanum wheels: front left, front right, rear left, rear right.

    Args:
        drive: Geometry; may be replaced between two readings.
        noise: Growth of the uncertainty.
    """

    def __init__(self, drive: MecanumDrive, noise: OdometryNoise | None = None) -> None:
        super().__init__(noise)
        self.drive = drive

    def displacement(self, previous_angles: NDArray[np.float64], angles: NDArray[np.float64]) -> PlanarTwist:
        """Return the displacement by the angles (4,) of the wheels."""
        return self.drive.body_twist(angles - previous_angles)


class AckermannJointCounts(NamedTuple):
    """Numbers of joints of each kind, in the order of the angles that `AckermannOdometry` takes.

    Attributes:
        left: Left wheels that do not steer.
        right: Right wheels that do not steer.
        left_steered: Left wheels that steer.
        right_steered: Right wheels that steer.
        left_steering: Steering joints on the left.
        right_steering: Steering joints on the right.
    """

    left: int
    right: int
    left_steered: int = 0
    right_steered: int = 0
    left_steering: int = 1
    right_steering: int = 1


class AckermannOdometry(DisplacementOdometry):
    """Odometry of a car: the distance by its wheels, the curvature by the mean steering angles of the step.

    Args:
        wheels: Geometry; may be replaced between two readings.
        joint_counts: Numbers of joints, in the order of the angles; a side without steering joints takes those of the
            other side.
        axle_x: Position of the unsteered axle ahead of the base frame [m].
        noise: Growth of the uncertainty.
    """

    def __init__(
        self,
        wheels: AckermannWheels,
        joint_counts: AckermannJointCounts,
        axle_x: float = 0.0,
        noise: OdometryNoise | None = None,
    ) -> None:
        super().__init__(noise)
        self.wheels, self.axle_x = wheels, axle_x
        ends = np.cumsum(joint_counts).tolist()
        groups = [slice(end - count, end) for count, end in zip(joint_counts, ends, strict=True)]
        self._wheel_groups = groups[:4]
        left, right = groups[4:]
        self._steering_groups = (left if joint_counts.left_steering else right,
                                 right if joint_counts.right_steering else left)  # fmt: skip

    def displacement(self, previous_angles: NDArray[np.float64], angles: NDArray[np.float64]) -> PlanarTwist:
        """Return the displacement by the angles of the wheels, and the mean steering angle of the step."""
        mean_angles = 0.5 * (previous_angles + angles)
        left, right = (float(mean_angles[group].mean()) for group in self._steering_groups)
        curvature = self.wheels.curvature_from_steering(left, right)
        rotations = angles - previous_angles
        wheel_rotations = [
            float(rotations[group].mean()) if group.stop > group.start else math.nan for group in self._wheel_groups
        ]
        return ackermann_twist(
            self.wheels.travel(AckermannWheelValues(*wheel_rotations), curvature), curvature, self.axle_x
        )
