"""Kalman filters over the fifteen states: extended and unscented, with the same two steps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.errors import RunError
from roboyard.geometry.arrays import Array
from roboyard.localization.kalman import kernels
from roboyard.localization.kalman.state import SIZE, finite, moved, wrapped

_LEAST_VARIANCE = 1e-9


class KalmanFilter(ABC):
    """State and covariance, and the steps of a filter.

    Args:
        state: (15,) to begin with.
        covariance: (15, 15) of it.

    Attributes:
        state: (15,), see ``NAMES``.
        covariance: (15, 15).
    """

    def __init__(self, state: Array, covariance: Array) -> None:
        expect_kernels(kernels.correct)
        self.state: Array = np.array(state, dtype=np.float64)
        self.covariance: Array = np.array(covariance, dtype=np.float64)

    def predict(self, dt: float, noise: Array, push: Array | None = None) -> None:
        """Move on by ``dt`` [s].

        Args:
            dt: Time [s].
            noise: (15, 15) process noise for one second; grows with time.
            push: (6,) accelerations by a command [m/s², rad/s²], NaN where there is none.
        """
        if push is not None:
            linear = np.isfinite(push[:3])
            self.state[12:15][linear] = push[:3][linear]
            turning = np.isfinite(push[3:])
            self.state[9:12][turning] += push[3:][turning] * dt
        self._predict(dt, noise)
        self._check()

    def correct(self, values: Array, used: NDArray[np.bool_], noise: Array, threshold: float = math.inf) -> bool:
        """Take measured states.

        Args:
            values: (15,) of which those in ``used`` count.
            used: (15,) which states were measured.
            noise: (15, 15) covariance of the values; variances below 1e-9 are taken for that.
            threshold: Largest Mahalanobis distance of the innovation; beyond it nothing is taken.

        Returns:
            Whether it was taken.
        """
        if not used.any():
            return False
        # The measurement picks states, so that both kinds of filter take it alike: exactly.
        taken = kernels.correct(self.state, self.covariance, values, used, noise, threshold**2, _LEAST_VARIANCE)
        self._check()
        return taken

    def _check(self) -> None:
        if not (finite(self.state) and finite(self.covariance)):
            raise RunError("the filter's state is no longer finite", location="Kalman filter", valid="smaller noise")

    @abstractmethod
    def _predict(self, dt: float, noise: Array) -> None: ...

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {"state": self.state.copy(), "covariance": self.covariance.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.state, self.covariance = np.array(state["state"]), np.array(state["covariance"])


class Ekf(KalmanFilter):
    """The extended filter: covariances by the model's derivative."""

    def __init__(self, state: Array, covariance: Array) -> None:
        super().__init__(state, covariance)
        expect_kernels(kernels.predict)

    def _predict(self, dt: float, noise: Array) -> None:
        kernels.predict(self.state, self.covariance, noise, dt)


class Ukf(KalmanFilter):
    """The unscented filter: covariances by points about the state (E. Wan, R. van der Merwe, 2000).

    Args:
        state: (15,) to begin with.
        covariance: (15, 15) of it.
        alpha: How far the points lie from the state.
        kappa: Second scale of the points.
        beta: Knowledge of the distribution; 2 for a normal one.
    """

    def __init__(
        self, state: Array, covariance: Array, *, alpha: float = 1e-3, kappa: float = 0.0, beta: float = 2.0
    ) -> None:
        super().__init__(state, covariance)
        scale = alpha**2 * (SIZE + kappa)
        self._spread = math.sqrt(scale)
        self._mean = np.full(2 * SIZE + 1, 0.5 / scale)
        self._cov = self._mean.copy()
        self._mean[0] = (scale - SIZE) / scale
        self._cov[0] = self._mean[0] + 1.0 - alpha**2 + beta

    def _points(self) -> Array:
        """Differences (31, 15) of the points from the state."""
        root = _root(self.covariance) * self._spread
        return np.concatenate([np.zeros((1, SIZE)), root.T, -root.T])

    def _predict(self, dt: float, noise: Array) -> None:
        ended = moved(self.state + self._points(), dt)
        apart = wrapped(ended - ended[0])  # about the middle point, so that headings may go round
        mean = self._mean @ apart
        self.state = wrapped(ended[0] + mean)
        apart -= mean
        covariance = (apart * self._cov[:, None]).T @ apart + noise * dt
        self.covariance = np.ascontiguousarray(0.5 * (covariance + covariance.T))


def _root(covariance: Array) -> Array:
    """L with L Lᵀ = covariance, also where rounding made it a little indefinite."""
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, axes = np.linalg.eigh(covariance)
        return np.asarray(axes * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)
