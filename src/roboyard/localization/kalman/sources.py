"""From poses, twists and inertial readings in their own frames to measurements of the state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import STANDARD_GRAVITY
from roboyard.localization.kalman.fusion import Measurement
from roboyard.localization.kalman.state import ACCELERATION, POSE, SIZE, TWIST, rotation

ASSUMED = np.array([1e-2] * 3 + [1e-3] * 3 + [1e-2] * 3 + [1e-4] * 3 + [1e-1] * 3)
"""Variances taken where a message says, by zeros only, that it does not know them."""


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """One source, with robot_localization's settings.

    Attributes:
        name: Such as odom0 or imu0.
        used: (15,) which states are taken from it, in the order of ``NAMES``.
        differential: Take the change between its poses, as velocities, instead of the poses.
        relative: Count its poses from the first one.
        pose_rejection_threshold: Largest Mahalanobis distance of a pose.
        twist_rejection_threshold: Of a velocity.
        linear_acceleration_rejection_threshold: Of an acceleration.
        remove_gravitational_acceleration: Whether gravity is in its accelerations.
        bias_at_rest: Turn rates measured while the base stands are taken for the gyroscope's bias (ours).
        gravity: Of the place [m/s²].

    Raises:
        ConfigError: not 15 flags, both differential and relative, or a threshold that is not positive.
    """

    name: str
    used: tuple[bool, ...]
    differential: bool = False
    relative: bool = False
    pose_rejection_threshold: float = math.inf
    twist_rejection_threshold: float = math.inf
    linear_acceleration_rejection_threshold: float = math.inf
    remove_gravitational_acceleration: bool = False
    bias_at_rest: bool = False
    gravity: float = STANDARD_GRAVITY

    def __post_init__(self) -> None:
        if len(self.used) != SIZE:
            raise ConfigError(
                f"{self.name}_config has {len(self.used)} entries",
                location="Kalman filter",
                valid="15: x y z, roll pitch yaw, vx vy vz, vroll vpitch vyaw, ax ay az",
            )
        if self.differential and self.relative:
            raise ConfigError(f"{self.name} is both differential and relative", location="Kalman filter", valid="one")
        for name in ("pose", "twist", "linear_acceleration"):
            if not getattr(self, f"{name}_rejection_threshold") > 0.0:
                raise ConfigError(
                    f"{self.name}_{name}_rejection_threshold", location="Kalman filter", valid="more than 0"
                )


class Source:
    """What must be remembered of a source between its messages.

    Args:
        config: Its settings.

    Attributes:
        refused: Messages that cannot be used: stamps that do not go forward, numbers that are not finite.
        assumed: Whether variances had to be assumed.
    """

    def __init__(self, config: SourceConfig) -> None:
        self.config = config
        self._used = np.array(config.used, dtype=np.bool_)
        self.refused = 0
        self.assumed = False
        self._last_ns: dict[str, int] = {}
        self._first: SE3 | None = None
        self._before: tuple[int, SE3, Array] | None = None

    @property
    def wants_pose(self) -> bool:
        """Whether anything of a pose is taken from it."""
        return bool(self._used[POSE].any())

    @property
    def wants_twist(self) -> bool:
        """Whether velocities of its own are taken from it."""
        return bool(self._used[TWIST].any())

    def pose(self, time_ns: int, T_world_base: SE3, covariance: Array) -> Measurement | None:
        """A pose with its covariance (6, 6) in the world's axes; None where nothing is to be taken."""
        if not self.wants_pose or not self._fresh("pose", time_ns):
            return None
        if self.config.differential:
            return self._change(time_ns, T_world_base, covariance)
        if self.config.relative:
            if self._first is None:
                self._first = T_world_base
            start, T_world_base = self._first, self._first.inverse() @ T_world_base
            R = np.kron(np.eye(2), start.rotation_matrix().T)
            covariance = R @ covariance @ R.T
        values = np.concatenate([T_world_base.translation, T_world_base.rpy])
        return self._measurement(time_ns, POSE, values, covariance, self.config.pose_rejection_threshold)

    def twist(self, time_ns: int, values: Array, covariance: Array) -> Measurement | None:
        """A velocity (6,) with its covariance (6, 6) in the base's axes; None where nothing is to be taken."""
        if not self.wants_twist or not self._fresh("twist", time_ns):
            return None
        return self._measurement(time_ns, TWIST, values, covariance, self.config.twist_rejection_threshold)

    def acceleration(
        self, time_ns: int, values: Array, covariance: Array, attitude: tuple[float, float]
    ) -> Measurement | None:
        """An acceleration (3,), covariance (3, 3), in the base's axes; ``attitude``: roll and pitch, for gravity."""
        if not self._used[ACCELERATION].any() or not self._fresh("acceleration", time_ns):
            return None
        if self.config.remove_gravitational_acceleration:
            roll, pitch = np.array(attitude[0]), np.array(attitude[1])
            values = values - rotation(roll, pitch, np.array(0.0)).T @ np.array([0.0, 0.0, self.config.gravity])
        limit = self.config.linear_acceleration_rejection_threshold
        return self._measurement(time_ns, ACCELERATION, values, covariance, limit)

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _fresh(self, kind: str, time_ns: int) -> bool:
        if time_ns <= self._last_ns.get(kind, -1):
            self.refused += 1
            return False
        self._last_ns[kind] = time_ns
        return True

    def _change(self, time_ns: int, pose: SE3, covariance: Array) -> Measurement | None:
        """The change since the pose before, as a velocity in the base's axes."""
        before, self._before = self._before, (time_ns, pose, covariance)
        if before is None:
            return None
        dt = (time_ns - before[0]) * 1e-9
        values = (before[1].inverse() @ pose).log() / dt
        R = np.kron(np.eye(2), before[1].rotation_matrix().T)
        spread = R @ (covariance + before[2]) @ R.T / dt**2
        used = np.zeros(SIZE, dtype=np.bool_)
        used[TWIST] = self._used[POSE]
        threshold = self.config.pose_rejection_threshold
        return self._measurement(time_ns, TWIST, values, spread, threshold, used=used, kind="change")

    def _measurement(
        self, time_ns: int, part: slice, values: Array, covariance: Array, threshold: float,
        *, used: NDArray[np.bool_] | None = None, kind: str | None = None,
    ) -> Measurement | None:  # fmt: skip
        taken = np.zeros(SIZE, dtype=np.bool_)
        taken[part] = (self._used if used is None else used)[part]
        full = np.zeros(SIZE)
        full[part] = values
        spread = np.zeros((SIZE, SIZE))
        block = np.array(covariance, dtype=np.float64)
        if not np.any(block):  # all zeros: "covariance unknown", says sensor_msgs
            block = np.diag(ASSUMED[part])
            self.assumed = True
        spread[part, part] = block
        # A negative variance says "not measured" (sensor_msgs/Imu); so do numbers that are not finite.
        taken &= np.isfinite(full) & np.isfinite(spread).all(axis=1) & (np.diag(spread) >= 0.0)
        if not taken.any():
            self.refused += 1
            return None
        names = {POSE.start: "pose", TWIST.start: "twist", ACCELERATION.start: "acceleration"}
        name = f"{self.config.name} {kind or names[part.start]}"
        return Measurement(time_ns, name, full, taken, spread, threshold)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        before = self._before
        return {
            "refused": self.refused,
            "assumed": self.assumed,
            "last_ns": dict(self._last_ns),
            "first": None if self._first is None else _plain(self._first),
            "before": None if before is None else (before[0], _plain(before[1]), before[2].copy()),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.refused, self.assumed, self._last_ns = state["refused"], state["assumed"], dict(state["last_ns"])
        self._first = None if state["first"] is None else SE3(*state["first"])
        before = state["before"]
        self._before = None if before is None else (before[0], SE3(*before[1]), np.array(before[2]))


def twist_at_base(T_base_sensor: SE3, twist: Array, covariance: Array) -> tuple[Array, Array]:
    """A velocity (6,) of a sensor frame fixed to the base, in its own axes, as that of the base; covariances (6, 6).

    The lever arm counts: what turns about the base moves sideways out there.

    Raises:
        InputError: an array of another shape.
    """
    if np.shape(twist) != (6,) or np.shape(covariance) != (6, 6):
        raise InputError(f"a twist of {np.shape(twist)} with covariance {np.shape(covariance)}", valid="(6,), (6, 6)")
    Ad = T_base_sensor.adjoint()
    return Ad @ twist, Ad @ covariance @ Ad.T


def _plain(pose: SE3) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return pose.quaternion, (pose.x, pose.y, pose.z)
