"""Sources of measurements: convert poses, twists and IMU readings to measurements of the state.

`MeasurementSource` handles differential and relative poses, gravity and missing covariances as robot_localization does.
`StationaryGyroBias` estimates the bias of a gyroscope.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import STANDARD_GRAVITY
from roboyard.localization.kalman.config import SourceConfig
from roboyard.localization.kalman.fusion import Measurement
from roboyard.localization.kalman.process_model import ACCELERATION, POSE, STATE_SIZE, TWIST, rotation_matrices

DEFAULT_VARIANCES = np.array([1e-2] * 3 + [1e-3] * 3 + [1e-2] * 3 + [1e-4] * 3 + [1e-1] * 3)
"""Default variances for messages whose covariance is zero, which means unknown."""


class MeasurementSource:
    """Converts the messages of one source to measurements, and keeps what it needs of earlier messages.

    Args:
        name: Name of the source, such as odom0 or imu0.
        config: Settings of the source.
        gravity: Gravity in the accelerations of an IMU [m/s²].

    Raises:
        ConfigError: The settings contradict each other.

    Attributes:
        n_rejected: Number of unusable messages: stamps that do not increase, numbers that are not finite.
        uses_default_covariance: Whether a message without covariance was given default variances.
    """

    def __init__(self, name: str, config: SourceConfig, gravity: float = STANDARD_GRAVITY) -> None:
        config.check(name)
        self.name, self.config, self.gravity = name, config, gravity
        self._used = np.array(config.used, dtype=np.bool_)
        self.n_rejected = 0
        self.uses_default_covariance = False
        self._last_ns: dict[str, int] = {}
        self._first_pose: SE3 | None = None
        self._previous_pose: tuple[int, SE3, Array] | None = None

    @property
    def uses_pose(self) -> bool:
        """Whether any state of a pose is taken from the source."""
        return bool(self._used[POSE].any())

    @property
    def uses_twist(self) -> bool:
        """Whether velocities are taken from the source."""
        return bool(self._used[TWIST].any())

    def pose(self, time_ns: int, T_world_base: SE3, covariance: Array) -> Measurement | None:
        """Return the measurement of a pose, covariance (6, 6) in the world's axes; None if unusable."""
        if not self.uses_pose or not self._is_newer("pose", time_ns):
            return None
        if self.config.differential:
            return self._differential_measurement(time_ns, T_world_base, covariance)
        if self.config.relative:
            if self._first_pose is None:
                self._first_pose = T_world_base
            start, T_world_base = self._first_pose, self._first_pose.inverse() @ T_world_base
            R = np.kron(np.eye(2), start.rotation_matrix().T)
            covariance = R @ covariance @ R.T
        values = np.concatenate([T_world_base.translation, T_world_base.rpy])
        return self._make_measurement(time_ns, POSE, values, covariance, self.config.pose_rejection_threshold)

    def twist(self, time_ns: int, values: Array, covariance: Array) -> Measurement | None:
        """Return the measurement of a velocity (6,), covariance (6, 6), in the base's axes; None if unusable."""
        if not self.uses_twist or not self._is_newer("twist", time_ns):
            return None
        return self._make_measurement(time_ns, TWIST, values, covariance, self.config.twist_rejection_threshold)

    def acceleration(
        self, time_ns: int, values: Array, covariance: Array, attitude: tuple[float, float]
    ) -> Measurement | None:
        """Return the measurement of an acceleration (3,), covariance (3, 3), in the base's axes.

        ``attitude`` is roll and pitch, which remove gravity.
        """
        if not self._used[ACCELERATION].any() or not self._is_newer("acceleration", time_ns):
            return None
        if self.config.remove_gravitational_acceleration:
            roll, pitch = np.array(attitude[0]), np.array(attitude[1])
            values = values - rotation_matrices(roll, pitch, np.array(0.0)).T @ np.array([0.0, 0.0, self.gravity])
        threshold = self.config.linear_acceleration_rejection_threshold
        return self._make_measurement(time_ns, ACCELERATION, values, covariance, threshold)

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _is_newer(self, kind: str, time_ns: int) -> bool:
        if time_ns <= self._last_ns.get(kind, -1):
            self.n_rejected += 1
            return False
        self._last_ns[kind] = time_ns
        return True

    def _differential_measurement(self, time_ns: int, pose: SE3, covariance: Array) -> Measurement | None:
        """Return the change since the previous pose, as a velocity in the base's axes."""
        previous, self._previous_pose = self._previous_pose, (time_ns, pose, covariance)
        if previous is None:
            return None
        dt = (time_ns - previous[0]) * 1e-9
        values = (previous[1].inverse() @ pose).log() / dt
        R = np.kron(np.eye(2), previous[1].rotation_matrix().T)
        twist_covariance = R @ (covariance + previous[2]) @ R.T / dt**2
        used = np.zeros(STATE_SIZE, dtype=np.bool_)
        used[TWIST] = self._used[POSE]
        threshold = self.config.pose_rejection_threshold
        return self._make_measurement(time_ns, TWIST, values, twist_covariance, threshold, used=used, kind="change")

    def _make_measurement(
        self, time_ns: int, part: slice, values: Array, covariance: Array, threshold: float,
        *, used: NDArray[np.bool_] | None = None, kind: str | None = None,
    ) -> Measurement | None:  # fmt: skip
        is_measured = np.zeros(STATE_SIZE, dtype=np.bool_)
        is_measured[part] = (self._used if used is None else used)[part]
        state_values = np.zeros(STATE_SIZE)
        state_values[part] = values
        state_covariance = np.zeros((STATE_SIZE, STATE_SIZE))
        block = np.array(covariance, dtype=np.float64)
        if not np.any(block):  # all zeros mean "covariance unknown" (sensor_msgs)
            block = np.diag(DEFAULT_VARIANCES[part])
            self.uses_default_covariance = True
        state_covariance[part, part] = block
        # A negative variance means "not measured" (sensor_msgs/Imu); so do numbers that are not finite.
        is_measured &= (
            np.isfinite(state_values) & np.isfinite(state_covariance).all(axis=1) & (np.diag(state_covariance) >= 0.0)
        )
        if not is_measured.any():
            self.n_rejected += 1
            return None
        names = {POSE.start: "pose", TWIST.start: "twist", ACCELERATION.start: "acceleration"}
        name = f"{self.name} {kind or names[part.start]}"
        return Measurement(time_ns, name, state_values, is_measured, state_covariance, threshold)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        previous = self._previous_pose
        return {
            "n_rejected": self.n_rejected,
            "uses_default_covariance": self.uses_default_covariance,
            "last_ns": dict(self._last_ns),
            "first_pose": None if self._first_pose is None else _pose_to_plain(self._first_pose),
            "previous_pose": None
            if previous is None
            else (previous[0], _pose_to_plain(previous[1]), previous[2].copy()),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self.n_rejected, self.uses_default_covariance, self._last_ns = (
            state["n_rejected"],
            state["uses_default_covariance"],
            dict(state["last_ns"]),
        )
        self._first_pose = None if state["first_pose"] is None else SE3(*state["first_pose"])
        previous = state["previous_pose"]
        self._previous_pose = None if previous is None else (previous[0], SE3(*previous[1]), np.array(previous[2]))


def twist_at_base(T_base_sensor: SE3, twist: Array, covariance: Array) -> tuple[Array, Array]:
    """Return the velocity (6,) of the base and its covariance (6, 6) from those of a sensor fixed to it.

    The lever arm counts: a rotation of the base moves the sensor sideways.

    Raises:
        InputError: An array has another shape.
    """
    if np.shape(twist) != (6,) or np.shape(covariance) != (6, 6):
        raise InputError(f"a twist of {np.shape(twist)} with covariance {np.shape(covariance)}", valid="(6,), (6, 6)")
    Ad = T_base_sensor.adjoint()
    return Ad @ twist, Ad @ covariance @ Ad.T


def _pose_to_plain(pose: SE3) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return pose.quaternion, (pose.x, pose.y, pose.z)


_SETTLE_NS = 200_000_000
"""Time without motion after which the base counts as stationary, so that rocking has settled [ns]."""
_MIN_READINGS = 10


class StationaryGyroBias:
    """Gyroscope bias estimated while the robot is stationary, by an average that prefers recent readings.

    Args:
        memory: Number of readings over which the average extends.

    Attributes:
        bias: (3,) [rad/s]; zero until the base has been stationary.
        variance: (3,) of the bias [(rad/s)²]; infinite until then.
    """

    def __init__(self, memory: int = 1000) -> None:
        self._memory = memory
        self._mean, self._variance, self._n_readings = np.zeros(3), np.zeros(3), 0
        self._stationary_since: int | None = None

    def set_stationary(self, time_ns: int, is_stationary: bool) -> None:
        """Set whether the base is stationary."""
        if not is_stationary:
            self._stationary_since = None
        elif self._stationary_since is None:
            self._stationary_since = time_ns

    def correct(self, time_ns: int, rates: Array) -> Array:
        """Return angular velocities (3,) [rad/s] without the bias; update the bias if the base is stationary."""
        if (
            self._stationary_since is not None
            and time_ns - self._stationary_since >= _SETTLE_NS
            and np.isfinite(rates).all()
        ):
            self._n_readings += 1
            weight = 1.0 / min(self._n_readings, self._memory)
            deviation = rates - self._mean
            self._mean = self._mean + weight * deviation
            self._variance = (1.0 - weight) * (self._variance + weight * deviation**2)
        return rates - self.bias

    @property
    def bias(self) -> Array:
        """(3,) [rad/s]."""
        return self._mean if self._n_readings >= _MIN_READINGS else np.zeros(3)

    @property
    def variance(self) -> Array:
        """(3,) [(rad/s)²]."""
        if self._n_readings < _MIN_READINGS:
            return np.full(3, np.inf)
        return np.asarray(self._variance / min(self._n_readings, self._memory))

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "mean": self._mean.copy(), "variance": self._variance.copy(), "n_readings": self._n_readings,
            "stationary_since": self._stationary_since,
        }  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self._mean, self._variance = np.array(state["mean"]), np.array(state["variance"])
        self._n_readings, self._stationary_since = state["n_readings"], state["stationary_since"]
