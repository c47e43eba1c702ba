"""State estimators over the fifteen states: the contract, and the extended and the unscented Kalman filter.

Prediction and correction are compiled, since they run with every measurement.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config.registry import Registry
from roboyard.errors import RunError
from roboyard.geometry.arrays import Array
from roboyard.geometry.planar_kernels import wrap_angle
from roboyard.localization.kalman.config import FusionConfig
from roboyard.localization.kalman.process_model import STATE_SIZE, is_finite, propagate_state, wrap_angles


def _predict_examples() -> Iterable[tuple[Any, ...]]:
    yield np.zeros(15), np.eye(15), np.eye(15), 0.1


@kernel(examples=_predict_examples)
def predict_ekf(
    state: NDArray[np.float64], covariance: NDArray[np.float64], noise: NDArray[np.float64], dt: float
) -> None:
    """Predict state and covariance in place by `propagate_state`, with ``noise`` (15, 15) per second."""
    sr, cr, sp, cp = math.sin(state[3]), math.cos(state[3]), math.sin(state[4]), math.cos(state[4])
    sy, cy = math.sin(state[5]), math.cos(state[5])
    safe_cp = cp
    if abs(cp) < 1e-6:  # at a pitch of 90° yaw has no rate
        safe_cp = 1e-6
    F = np.eye(15)
    half_dt_squared = 0.5 * dt * dt
    R = np.array(
        (
            (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
            (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
            (-sp, cp * sr, cp * cr),
        )
    )
    R_by_pitch = np.array(
        ((-cy * sp, cy * cp * sr, cy * cp * cr), (-sy * sp, sy * cp * sr, sy * cp * cr), (-cp, -sp * sr, -sp * cr))
    )
    displacement = np.empty(3)
    for i in range(3):
        displacement[i] = state[6 + i] * dt + state[12 + i] * half_dt_squared
    world_displacement = np.zeros(3)
    for i in range(3):
        for k in range(3):
            world_displacement[i] += R[i, k] * displacement[k]
            F[i, 6 + k] = R[i, k] * dt
            F[i, 12 + k] = R[i, k] * half_dt_squared
            F[i, 4] += R_by_pitch[i, k] * displacement[k]
        F[i, 3] = R[i, 2] * displacement[1] - R[i, 1] * displacement[2]
    F[0, 5], F[1, 5] = -world_displacement[1], world_displacement[0]
    q, r = state[10], state[11]
    across, along = sr * q + cr * r, cr * q - sr * r
    tan_pitch = sp / safe_cp
    F[3, 3] += dt * tan_pitch * along
    F[3, 4] = dt * across / (safe_cp * safe_cp)
    F[3, 9], F[3, 10], F[3, 11] = dt, dt * tan_pitch * sr, dt * tan_pitch * cr
    F[4, 3], F[4, 10], F[4, 11] = -dt * across, dt * cr, -dt * sr
    F[5, 3], F[5, 4] = dt * along / safe_cp, dt * across * sp / (safe_cp * safe_cp)
    F[5, 10], F[5, 11] = dt * sr / safe_cp, dt * cr / safe_cp
    for i in range(3):
        F[6 + i, 12 + i] = dt
        state[i] += world_displacement[i]
        state[6 + i] += state[12 + i] * dt
    state[3] += dt * (state[9] + tan_pitch * across)
    state[4] += dt * along
    state[5] += dt * across / safe_cp
    wrap_angles_in_place(state)
    F_covariance = np.zeros((15, 15))
    for i in range(15):
        for k in range(15):
            if F[i, k] != 0.0:
                for j in range(15):
                    F_covariance[i, j] += F[i, k] * covariance[k, j]
    covariance[:] = noise * dt
    for i in range(15):
        for k in range(15):
            if F[i, k] != 0.0:
                for j in range(15):
                    covariance[j, i] += F_covariance[j, k] * F[i, k]
    symmetrize_in_place(covariance)


def _correct_examples() -> Iterable[tuple[Any, ...]]:
    yield np.zeros(15), np.eye(15), np.zeros(15), np.zeros(15, np.bool_), np.eye(15), math.inf, 1e-9


@kernel(examples=_correct_examples)
def correct_state(
    state: NDArray[np.float64],
    covariance: NDArray[np.float64],
    values: NDArray[np.float64],
    used: NDArray[np.bool_],
    noise: NDArray[np.float64],
    max_squared_distance: float,
    min_variance: float,
) -> bool:
    """Correct state and covariance in place; return whether the measurement passed the gate.

    A squared Mahalanobis distance above ``max_squared_distance`` rejects the measurement.  Variances of ``noise`` are
    at least ``min_variance``.  The covariance follows Joseph's form.
    """
    index = np.flatnonzero(used)
    m = len(index)
    S, innovation = np.empty((m, m)), np.empty(m)
    for a in range(m):
        innovation[a] = values[index[a]] - state[index[a]]
        if 3 <= index[a] <= 5:
            innovation[a] = wrap_angle(innovation[a])
        for b in range(m):
            noise_entry = noise[index[a], index[b]]
            S[a, b] = covariance[index[a], index[b]] + (max(abs(noise_entry), min_variance) if a == b else noise_entry)
    inverse = invert_spd(S)
    squared_distance = 0.0
    for a in range(m):
        for b in range(m):
            squared_distance += innovation[a] * inverse[a, b] * innovation[b]
    if not squared_distance <= max_squared_distance:
        return False
    gain = np.zeros((15, m))
    for i in range(15):
        for a in range(m):
            for b in range(m):
                gain[i, a] += covariance[i, index[b]] * inverse[b, a]
    for i in range(15):
        for a in range(m):
            state[i] += gain[i, a] * innovation[a]
    wrap_angles_in_place(state)
    # (1 - K H) P (1 - K H)ᵀ + K R Kᵀ, where H selects rows
    I_KH = np.eye(15)
    for i in range(15):
        for a in range(m):
            I_KH[i, index[a]] -= gain[i, a]
    I_KH_covariance = np.zeros((15, 15))
    for i in range(15):
        for k in range(15):
            if I_KH[i, k] != 0.0:
                for j in range(15):
                    I_KH_covariance[i, j] += I_KH[i, k] * covariance[k, j]
    covariance[:] = 0.0
    for i in range(15):
        for k in range(15):
            if I_KH[i, k] != 0.0:
                for j in range(15):
                    covariance[j, i] += I_KH_covariance[j, k] * I_KH[i, k]
    for a in range(m):
        for b in range(m):
            noise_entry = noise[index[a], index[b]]
            noise_entry = max(abs(noise_entry), min_variance) if a == b else noise_entry
            if noise_entry != 0.0:
                for i in range(15):
                    for j in range(15):
                        covariance[i, j] += gain[i, a] * noise_entry * gain[j, b]
    symmetrize_in_place(covariance)
    return True


@kernel
def wrap_angles_in_place(state: NDArray[np.float64]) -> None:
    """Wrap roll, pitch and yaw of a state in place; angles in range keep their bits."""
    for i in range(3, 6):
        if not -math.pi <= state[i] <= math.pi:
            state[i] = wrap_angle(state[i])


@kernel
def symmetrize_in_place(matrix: NDArray[np.float64]) -> None:
    """Replace a matrix by the mean of itself and its transpose."""
    for i in range(len(matrix)):
        for j in range(i):
            mean = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = matrix[j, i] = mean


@kernel
def invert_spd(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverse of a positive definite matrix (Gauss-Jordan, no pivots needed); NaN if it is none."""
    m = len(matrix)
    reduced, inverse = matrix.copy(), np.eye(m)
    for k in range(m):
        pivot = reduced[k, k]
        if not pivot > 0.0:
            inverse[:] = np.nan
            return inverse
        for j in range(m):
            reduced[k, j] /= pivot
            inverse[k, j] /= pivot
        for i in range(m):
            factor = reduced[i, k]
            if i != k and factor != 0.0:
                for j in range(m):
                    reduced[i, j] -= factor * reduced[k, j]
                    inverse[i, j] -= factor * inverse[k, j]
    return inverse


_MIN_VARIANCE = 1e-9


class StateEstimator(ABC):
    """Estimates the fifteen states and their covariance: the contract of filters (robot_localization's FilterBase).

    A class of your own derives from it, implements ``predict`` and ``correct``, and is registered under a name with an
    entry point of the group ``roboyard.state_estimators``; `SensorFusion` and the fusion nodes then take it by this
    name.  ``check_state_estimator`` in ``roboyard.localization.conformance`` tests the contract:

    - The covariance stays symmetric and positive semi-definite.  It grows by predictions with process noise, and a
      correction does not make it larger.
    - On a linear system the estimate is that of the Kalman filter.
    - A correction with no used state, or beyond the threshold, is rejected and changes nothing.
    - Angles stay in [-pi, pi], and innovations of angles wrap around.
    - The same calls give the same bits, also after ``save_state`` and ``load_state`` in between.

    Args:
        state: (15,) initial state.
        covariance: (15, 15) of the initial state.
        config: Configuration of the fusion, with the parameters of the filter; None: the defaults.

    Attributes:
        state: (15,), see ``STATE_NAMES``.
        covariance: (15, 15).
    """

    def __init__(self, state: Array, covariance: Array, config: FusionConfig | None = None) -> None:
        self.config = config or FusionConfig()
        self.state: Array = np.array(state, dtype=np.float64)
        self.covariance: Array = np.array(covariance, dtype=np.float64)

    @abstractmethod
    def predict(self, dt: float, noise: Array, control_acceleration: Array | None = None) -> None:
        """Predict the state and its covariance.

        Args:
            dt: Time [s].
            noise: (15, 15) process noise per second.
            control_acceleration: (6,) accelerations by a command [m/s², rad/s²], NaN where there is none.

        Raises:
            RunError: The result is not finite.
        """

    @abstractmethod
    def correct(self, values: Array, used: NDArray[np.bool_], noise: Array, threshold: float = math.inf) -> bool:
        """Correct the state with measured states.

        Args:
            values: (15,) measured values; those in ``used`` count.
            used: (15,) which states were measured.
            noise: (15, 15) covariance of the values; variances are at least 1e-9.
            threshold: Largest Mahalanobis distance of the innovation; beyond it the measurement is rejected.

        Returns:
            Whether the measurement was accepted.

        Raises:
            RunError: The result is not finite.
        """

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"state": self.state.copy(), "covariance": self.covariance.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self.state, self.covariance = np.array(state["state"]), np.array(state["covariance"])


class KalmanFilter(StateEstimator):
    """Base of the extended and the unscented Kalman filter, which differ only in the prediction of the covariance."""

    def __init__(self, state: Array, covariance: Array, config: FusionConfig | None = None) -> None:
        super().__init__(state, covariance, config)
        expect_kernels(correct_state)

    def predict(self, dt: float, noise: Array, control_acceleration: Array | None = None) -> None:
        """Predict the state and its covariance.

        Args:
            dt: Time [s].
            noise: (15, 15) process noise per second.
            control_acceleration: (6,) accelerations by a command [m/s², rad/s²], NaN where there is none.
        """
        if control_acceleration is not None:
            has_linear = np.isfinite(control_acceleration[:3])
            self.state[12:15][has_linear] = control_acceleration[:3][has_linear]
            has_angular = np.isfinite(control_acceleration[3:])
            self.state[9:12][has_angular] += control_acceleration[3:][has_angular] * dt
        self._predict(dt, noise)
        self._check_finite()

    def correct(self, values: Array, used: NDArray[np.bool_], noise: Array, threshold: float = math.inf) -> bool:
        """Correct the state with measured states.

        Args:
            values: (15,) measured values; those in ``used`` count.
            used: (15,) which states were measured.
            noise: (15, 15) covariance of the values; variances are at least 1e-9.
            threshold: Largest Mahalanobis distance of the innovation; beyond it the measurement is rejected.

        Returns:
            Whether the measurement was accepted.
        """
        if not used.any():
            return False
        # The measurement selects states, so the correction is linear and the same in both filters.
        is_accepted = correct_state(self.state, self.covariance, values, used, noise, threshold**2, _MIN_VARIANCE)
        self._check_finite()
        return is_accepted

    def _check_finite(self) -> None:
        if not (is_finite(self.state) and is_finite(self.covariance)):
            raise RunError("the filter's state is no longer finite", location="Kalman filter", valid="smaller noise")

    @abstractmethod
    def _predict(self, dt: float, noise: Array) -> None:
        """Propagate state and covariance over ``dt`` [s], with process noise (15, 15) per second."""


class Ekf(KalmanFilter):
    """Extended Kalman filter: propagates the covariance with the derivative of the model."""

    def __init__(self, state: Array, covariance: Array, config: FusionConfig | None = None) -> None:
        super().__init__(state, covariance, config)
        expect_kernels(predict_ekf)

    def _predict(self, dt: float, noise: Array) -> None:
        predict_ekf(self.state, self.covariance, noise, dt)


class Ukf(KalmanFilter):
    """Unscented Kalman filter: propagates the covariance with sigma points (Wan, van der Merwe, 2000).

    Args:
        state: (15,) initial state.
        covariance: (15, 15) of the initial state.
        config: Configuration with ``alpha``, ``kappa`` and ``beta``, which place and weigh the sigma points.
    """

    def __init__(self, state: Array, covariance: Array, config: FusionConfig | None = None) -> None:
        super().__init__(state, covariance, config)
        alpha, kappa, beta = self.config.alpha, self.config.kappa, self.config.beta
        scale = alpha**2 * (STATE_SIZE + kappa)
        self._sigma_point_scale = math.sqrt(scale)
        self._mean_weights = np.full(2 * STATE_SIZE + 1, 0.5 / scale)
        self._covariance_weights = self._mean_weights.copy()
        self._mean_weights[0] = (scale - STATE_SIZE) / scale
        self._covariance_weights[0] = self._mean_weights[0] + 1.0 - alpha**2 + beta

    def _sigma_point_offsets(self) -> Array:
        """Return the differences (31, 15) of the sigma points from the state."""
        root = _cholesky_psd(self.covariance) * self._sigma_point_scale
        return np.concatenate([np.zeros((1, STATE_SIZE)), root.T, -root.T])

    def _predict(self, dt: float, noise: Array) -> None:
        predicted = propagate_state(self.state + self._sigma_point_offsets(), dt)
        deviations = wrap_angles(predicted - predicted[0])  # relative to the center point, so that angles may wrap
        mean = self._mean_weights @ deviations
        self.state = wrap_angles(predicted[0] + mean)
        deviations -= mean
        covariance = (deviations * self._covariance_weights[:, None]).T @ deviations + noise * dt
        self.covariance = np.ascontiguousarray(0.5 * (covariance + covariance.T))


STATE_ESTIMATORS: Registry[type[StateEstimator]] = Registry(
    "state estimator",
    group="roboyard.state_estimators",
    base=lambda: StateEstimator,
    built_in={"ekf": Ekf, "ukf": Ukf},
)
"""State estimators by the name that `SensorFusion` and the fusion nodes take."""


def _cholesky_psd(covariance: Array) -> Array:
    """Return L with L Lᵀ = covariance, also where rounding made the covariance slightly indefinite."""
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, axes = np.linalg.eigh(covariance)
        return np.asarray(axes * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)
