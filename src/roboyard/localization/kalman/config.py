"""Configuration of the sensor fusion and of its sources, under the names of robot_localization."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.control.drive_config import DriveLimits
from roboyard.errors import ConfigError
from roboyard.localization.kalman.process_model import STATE_SIZE

_DEFAULT_PROCESS_NOISE = (0.05, 0.05, 0.06, 0.03, 0.03, 0.06, 0.025, 0.025, 0.04, 0.01, 0.01, 0.02, 0.01, 0.01, 0.015)
"""Diagonal of robot_localization's default process noise covariance."""


def covariance_from_values(values: tuple[float, ...], name: str) -> NDArray[np.float64]:
    """Return a covariance (15, 15) from its diagonal (15 numbers) or its rows (225).

    Raises:
        ConfigError: Another number of values, a number that is not finite, or a negative variance.
    """
    array = np.array(values, dtype=np.float64)
    if array.shape == (STATE_SIZE,):
        array = np.diag(array)
    elif array.shape == (STATE_SIZE * STATE_SIZE,):
        array = array.reshape(STATE_SIZE, STATE_SIZE)
    else:
        raise ConfigError(
            f"{name} has {array.size} numbers", location="Kalman filter", valid="15 (diagonal) or 225 (rows)"
        )
    if not np.isfinite(array).all() or (np.diag(array) < 0.0).any():
        raise ConfigError(f"{name} is no covariance", location="Kalman filter", valid="finite, variances not negative")
    return 0.5 * (array + array.T)


class SourceConfig(Config):
    """Settings that sources of every kind have; a source without a topic does not exist.

    Settings that a kind does not have are read as those of a source that needs none.
    """

    topic: str = parameter("", key="", doc="Topic; empty: no such source.")
    used: tuple[bool, ...] = parameter(
        (False,) * STATE_SIZE, key="_config",
        doc="States taken from it: x y z, roll pitch yaw, their velocities, the linear accelerations.",
    )  # fmt: skip
    queue_size: int = parameter(10, low=0, high=100_000, key="_queue_size", doc="Without effect: no message is lost.")
    nodelay: bool = parameter(False, key="_nodelay", doc="Without effect.")

    @property
    def differential(self) -> bool:
        """Whether changes between its poses are used as velocities."""
        return False

    @property
    def relative(self) -> bool:
        """Whether its poses count from the first one."""
        return False

    @property
    def pose_rejection_threshold(self) -> float:
        """Largest Mahalanobis distance of a pose."""
        return math.inf

    @property
    def twist_rejection_threshold(self) -> float:
        """Largest Mahalanobis distance of a velocity."""
        return math.inf

    @property
    def linear_acceleration_rejection_threshold(self) -> float:
        """Largest Mahalanobis distance of an acceleration."""
        return math.inf

    @property
    def remove_gravitational_acceleration(self) -> bool:
        """Whether its accelerations contain gravity."""
        return False

    @property
    def bias_at_rest(self) -> bool:
        """Whether the gyroscope's bias is estimated while odometry reports standstill."""
        return False

    def check(self, name: str) -> None:
        """Check the number of flags, the use of poses and the thresholds of the source ``name``, such as odom0.

        Raises:
            ConfigError: There are not 15 flags, both differential and relative poses, or a threshold that is not
                positive.
        """
        if len(self.used) != STATE_SIZE:
            raise ConfigError(
                f"{name}_config has {len(self.used)} entries",
                location="Kalman filter",
                valid="15: x y z, roll pitch yaw, vx vy vz, vroll vpitch vyaw, ax ay az",
            )
        if self.differential and self.relative:
            raise ConfigError(f"{name} is both differential and relative", location="Kalman filter", valid="one")
        for part in ("pose", "twist", "linear_acceleration"):
            if not getattr(self, f"{part}_rejection_threshold") > 0.0:
                raise ConfigError(
                    f"{name}_{part}_rejection_threshold is 0", location="Kalman filter", valid="more than 0"
                )


class TwistSourceConfig(SourceConfig):
    """Settings of a source of geometry_msgs/TwistWithCovarianceStamped."""

    twist_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_rejection_threshold", doc="Largest Mahalanobis distance of a velocity."
    )


class _PoseInputConfig(SourceConfig):
    differential: bool = parameter(False, key="_differential", doc="Use changes between its poses as velocities.")
    relative: bool = parameter(False, key="_relative", doc="Poses count from its first one.")


class PoseSourceConfig(_PoseInputConfig):
    """Settings of a source of geometry_msgs/PoseWithCovarianceStamped."""

    pose_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_rejection_threshold", doc="Largest Mahalanobis distance of a pose."
    )


class OdometrySourceConfig(_PoseInputConfig):
    """Settings of a source of nav_msgs/Odometry."""

    pose_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_pose_rejection_threshold", doc="Largest Mahalanobis distance of a pose."
    )
    twist_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_twist_rejection_threshold",
        doc="Largest Mahalanobis distance of a velocity.",
    )  # fmt: skip


class ImuSourceConfig(OdometrySourceConfig):
    """Settings of a source of sensor_msgs/Imu."""

    linear_acceleration_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_linear_acceleration_rejection_threshold",
        doc="Largest Mahalanobis distance of an acceleration.",
    )  # fmt: skip
    remove_gravitational_acceleration: bool = parameter(
        False, key="_remove_gravitational_acceleration", doc="Its accelerations contain gravity."
    )
    bias_at_rest: bool = parameter(
        False, key="_bias_at_rest", doc="Estimate the gyroscope's bias while odometry reports standstill."
    )


class ControlConfig(Config):
    """How commanded velocities enter the prediction; six entries each: vx, vy, vz, vroll, vpitch, vyaw."""

    control_mask: tuple[bool, ...] = parameter(
        (False,) * 6, key="control_config", doc="Velocities that commands state."
    )
    timeout: float = parameter(
        0.2, unit="s", low=1e-3, high=100.0, key="control_timeout", doc="Age at which a command is no longer used."
    )
    acceleration_limits: tuple[float, ...] = parameter(
        (),
        low=0.0,
        doc="Largest accelerations [m/s², rad/s²]; empty: the drive's, 1 where it states none.",
    )
    deceleration_limits: tuple[float, ...] = parameter(
        (), low=0.0, doc="Largest decelerations [m/s², rad/s²]; empty: those of the drive, else as the accelerations."
    )
    acceleration_gains: tuple[float, ...] = parameter(
        (1.0,) * 6, low=0.0, doc="Accelerations per difference between the commanded and the present velocity [1/s]."
    )
    deceleration_gains: tuple[float, ...] = parameter(
        (), low=0.0, doc="Gains while the velocity falls [1/s]; empty: as acceleration_gains."
    )

    def validate(self) -> None:
        """Check the number of entries."""
        for name, may_be_empty in (("control_mask", False), ("acceleration_limits", True),
                                   ("deceleration_limits", True), ("acceleration_gains", False),
                                   ("deceleration_gains", True)):  # fmt: skip
            values = getattr(self, name)
            if len(values) != 6 and not (may_be_empty and not values):
                raise ConfigError(
                    f"{name} has {len(values)} entries", location="control", valid="6: vx vy vz vroll vpitch vyaw"
                )

    def with_drive_limits(self, limits: DriveLimits | None) -> ControlConfig:
        """Return the configuration with the limits of the robot's drive where it states none of its own."""
        if limits is None or self.acceleration_limits:
            return self
        acceleration, angular_acceleration = limits.acceleration, limits.angular_acceleration
        deceleration = acceleration if limits.deceleration is None else limits.deceleration
        return replace(
            self,
            acceleration_limits=_planar_limits(acceleration, angular_acceleration),
            deceleration_limits=self.deceleration_limits or _planar_limits(deceleration, angular_acceleration),
        )

    def acceleration_toward(self, velocity: NDArray[np.float64], command: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return accelerations (6,) from the present to the commanded velocity (6,); NaN where none is commanded."""
        accelerations = self.acceleration_limits or _DEFAULT_ACCELERATION_LIMITS
        result = np.full(6, np.nan)
        for k in np.flatnonzero(self.control_mask).tolist():
            current, desired = float(velocity[k]), float(command[k])
            is_accelerating = abs(desired) >= abs(current) and (desired * current >= 0.0 or current == 0.0)
            limits = accelerations if is_accelerating else self.deceleration_limits or accelerations
            gains = self.acceleration_gains if is_accelerating else self.deceleration_gains or self.acceleration_gains
            result[k] = min(max(gains[k] * (desired - current), -limits[k]), limits[k])
        return result


_DEFAULT_ACCELERATION_LIMITS = (1.0,) * 6
"""Accelerations that are assumed of a drive whose limits are unknown [m/s², rad/s²]; those of robot_localization."""


def _planar_limits(linear: float | None, angular: float | None) -> tuple[float, ...]:
    """Return limits (6,) with those of a drive in the plane [m/s², rad/s²]; None: the default."""
    x, y, z, roll, pitch, yaw = _DEFAULT_ACCELERATION_LIMITS
    if linear is not None:
        x = y = linear
    return x, y, z, roll, pitch, yaw if angular is None else angular


class FusionConfig(Config):
    """Configuration of the sensor fusion, under the names of robot_localization.

    Raises:
        ConfigError: A value is out of range, or has another length.
    """

    two_d_mode: bool = parameter(False, doc="The base stays in the plane.")
    sensor_timeout: float = parameter(
        0.1, unit="s", low=1e-3, high=1e3, doc="Time without measurements after which the state is predicted."
    )
    process_noise_covariance: tuple[float, ...] = parameter(
        _DEFAULT_PROCESS_NOISE, doc="Process noise per second: 15 variances, or 225 numbers."
    )
    dynamic_process_noise_covariance: bool = parameter(False, doc="Scale the process noise with the speed.")
    initial_state: tuple[float, ...] = parameter(
        (0.0,) * STATE_SIZE, doc="State before the first measurement: 15 numbers."
    )
    initial_estimate_covariance: tuple[float, ...] = parameter(
        (1e-9,) * STATE_SIZE, doc="Covariance of the initial state: 15 variances, or 225 numbers."
    )
    smooth_lagged_data: bool = parameter(
        False, doc="Insert late measurements at their time and repeat the later updates."
    )
    history_length: float = parameter(1.0, unit="s", low=0.0, high=1e3, doc="Largest delay of a late measurement.")
    control: ControlConfig = parameter(factory=ControlConfig, flatten="", doc="Use of commanded velocities.")
    alpha: float = parameter(1e-3, low=1e-6, high=10.0, doc="Spread of the sigma points (unscented filter).")
    kappa: float = parameter(
        0.0, low=-14.0, high=100.0, doc="Secondary scaling of the sigma points (unscented filter)."
    )
    beta: float = parameter(2.0, low=0.0, high=100.0, doc="Prior knowledge of the distribution (unscented filter).")

    def validate(self) -> None:
        """Check the numbers of entries and the covariances."""
        if len(self.initial_state) != STATE_SIZE:
            raise ConfigError(
                f"initial_state has {len(self.initial_state)} numbers", location="Kalman filter", valid="15"
            )
        covariance_from_values(self.process_noise_covariance, "process_noise_covariance")
        covariance_from_values(self.initial_estimate_covariance, "initial_estimate_covariance")
