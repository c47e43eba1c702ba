"""Settings of the fusion, under the names that robot_localization gives them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.localization.kalman.state import SIZE

_PROCESS = (0.05, 0.05, 0.06, 0.03, 0.03, 0.06, 0.025, 0.025, 0.04, 0.01, 0.01, 0.02, 0.01, 0.01, 0.015)
"""Diagonal of robot_localization's default process noise covariance."""


def covariance_of(values: tuple[float, ...], name: str) -> NDArray[np.float64]:
    """(15, 15) of its diagonal (15 numbers) or of all rows one after the other (225).

    Raises:
        ConfigError: another count, a number that is not finite, or a negative variance.
    """
    array = np.array(values, dtype=np.float64)
    if array.shape == (SIZE,):
        array = np.diag(array)
    elif array.shape == (SIZE * SIZE,):
        array = array.reshape(SIZE, SIZE)
    else:
        raise ConfigError(
            f"{name} has {array.size} numbers", location="Kalman filter", valid="15 (diagonal) or 225 (rows)"
        )
    if not np.isfinite(array).all() or (np.diag(array) < 0.0).any():
        raise ConfigError(f"{name} is no covariance", location="Kalman filter", valid="finite, variances not negative")
    return 0.5 * (array + array.T)


@dataclass(frozen=True, slots=True)
class ControlConfig:
    """What commanded velocities are taken for.

    Attributes:
        used: vx, vy, vz, vroll, vpitch, vyaw: which are commanded.
        timeout: A command counts so long [s].
        acceleration_limits: Of each [m/s², rad/s²].
        deceleration_limits: Likewise; empty: the same.
        acceleration_gains: Acceleration for each unit that the velocity is short of the command; limited as above.
        deceleration_gains: Likewise; empty: the same.
    """

    used: tuple[bool, ...] = (False,) * 6
    timeout: float = 0.2
    acceleration_limits: tuple[float, ...] = (1.0,) * 6
    deceleration_limits: tuple[float, ...] = ()
    acceleration_gains: tuple[float, ...] = (1.0,) * 6
    deceleration_gains: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name, may_lack in (("used", False), ("acceleration_limits", False), ("deceleration_limits", True),
                               ("acceleration_gains", False), ("deceleration_gains", True)):  # fmt: skip
            values = getattr(self, name)
            if len(values) != 6 and not (may_lack and not values):
                raise ConfigError(
                    f"{name} has {len(values)} entries", location="control", valid="6: vx vy vz vroll vpitch vyaw"
                )

    def push(self, velocity: NDArray[np.float64], command: NDArray[np.float64]) -> NDArray[np.float64]:
        """Accelerations (6,) from the present velocity (6,) towards the commanded one; NaN where none is commanded."""
        result = np.full(6, np.nan)
        for k in np.flatnonzero(self.used).tolist():
            now, wanted = float(velocity[k]), float(command[k])
            faster = abs(wanted) >= abs(now) and (wanted * now >= 0.0 or now == 0.0)
            limits = self.acceleration_limits if faster else self.deceleration_limits or self.acceleration_limits
            gains = self.acceleration_gains if faster else self.deceleration_gains or self.acceleration_gains
            result[k] = min(max(gains[k] * (wanted - now), -limits[k]), limits[k])
        return result


@dataclass(frozen=True, slots=True)
class FusionConfig:
    """Settings of ``Fusion``.

    Attributes:
        kind: "ekf" or "ukf".
        two_d_mode: Whether the base stays in the plane.
        sensor_timeout: After so long without measurements the state is predicted on [s].
        process_noise_covariance: 15 variances for a second, or 225 numbers.
        dynamic_process_noise_covariance: Scale it with the speed, so that a base that stands stays sure.
        initial_state: 15 numbers.
        initial_estimate_covariance: 15 variances, or 225 numbers.
        smooth_lagged_data: Put late measurements where they belong in time, and redo what came after.
        history_length: How late they may be [s].
        control: What commands say.
        alpha: Of the unscented filter.
        kappa: Of the unscented filter.
        beta: Of the unscented filter.

    Raises:
        ConfigError: a value is out of range, or of another length.
    """

    kind: str = "ekf"
    two_d_mode: bool = False
    sensor_timeout: float = 0.1
    process_noise_covariance: tuple[float, ...] = _PROCESS
    dynamic_process_noise_covariance: bool = False
    initial_state: tuple[float, ...] = (0.0,) * SIZE
    initial_estimate_covariance: tuple[float, ...] = (1e-9,) * SIZE
    smooth_lagged_data: bool = False
    history_length: float = 1.0
    control: ControlConfig = ControlConfig()
    alpha: float = 1e-3
    kappa: float = 0.0
    beta: float = 2.0

    def __post_init__(self) -> None:
        if self.kind not in ("ekf", "ukf"):
            raise ConfigError(f"a filter of kind {self.kind!r}", location="Kalman filter", valid="ekf, ukf")
        for name in ("sensor_timeout", "history_length", "alpha"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", location="Kalman filter", valid="more than 0")
        if len(self.initial_state) != SIZE or not all(map(math.isfinite, self.initial_state)):
            raise ConfigError("initial_state is no state", location="Kalman filter", valid="15 finite numbers")
        covariance_of(self.process_noise_covariance, "process_noise_covariance")
        covariance_of(self.initial_estimate_covariance, "initial_estimate_covariance")
