"""The two steps of a Kalman filter over fifteen states, compiled: they run with every reading of every source."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.planar_kernels import wrap_angle


def _predict_examples() -> Iterable[tuple[Any, ...]]:
    yield np.zeros(15), np.eye(15), np.eye(15), 0.1


@kernel(examples=_predict_examples)
def predict(state: NDArray[np.float64], covariance: NDArray[np.float64], noise: NDArray[np.float64], dt: float) -> None:
    """Move state and covariance on in place: as ``moved`` and its derivative, with ``noise`` (15, 15) for a second."""
    sr, cr, sp, cp = math.sin(state[3]), math.cos(state[3]), math.sin(state[4]), math.cos(state[4])
    sy, cy = math.sin(state[5]), math.cos(state[5])
    steep = cp
    if abs(cp) < 1e-6:  # straight up or down yaw has no rate
        steep = 1e-6
    F = np.eye(15)
    half = 0.5 * dt * dt
    R = np.array(
        (
            (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
            (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
            (-sp, cp * sr, cp * cr),
        )
    )
    by_pitch = np.array(
        ((-cy * sp, cy * cp * sr, cy * cp * cr), (-sy * sp, sy * cp * sr, sy * cp * cr), (-cp, -sp * sr, -sp * cr))
    )
    way = np.empty(3)
    for i in range(3):
        way[i] = state[6 + i] * dt + state[12 + i] * half
    shift = np.zeros(3)
    for i in range(3):
        for k in range(3):
            shift[i] += R[i, k] * way[k]
            F[i, 6 + k] = R[i, k] * dt
            F[i, 12 + k] = R[i, k] * half
            F[i, 4] += by_pitch[i, k] * way[k]
        F[i, 3] = R[i, 2] * way[1] - R[i, 1] * way[2]
    F[0, 5], F[1, 5] = -shift[1], shift[0]
    q, r = state[10], state[11]
    across, along = sr * q + cr * r, cr * q - sr * r
    tangent = sp / steep
    F[3, 3] += dt * tangent * along
    F[3, 4] = dt * across / (steep * steep)
    F[3, 9], F[3, 10], F[3, 11] = dt, dt * tangent * sr, dt * tangent * cr
    F[4, 3], F[4, 10], F[4, 11] = -dt * across, dt * cr, -dt * sr
    F[5, 3], F[5, 4] = dt * along / steep, dt * across * sp / (steep * steep)
    F[5, 10], F[5, 11] = dt * sr / steep, dt * cr / steep
    for i in range(3):
        F[6 + i, 12 + i] = dt
        state[i] += shift[i]
        state[6 + i] += state[12 + i] * dt
    state[3] += dt * (state[9] + tangent * across)
    state[4] += dt * along
    state[5] += dt * across / steep
    wrap(state)
    moved = np.zeros((15, 15))
    for i in range(15):
        for k in range(15):
            if F[i, k] != 0.0:
                for j in range(15):
                    moved[i, j] += F[i, k] * covariance[k, j]
    covariance[:] = noise * dt
    for i in range(15):
        for k in range(15):
            if F[i, k] != 0.0:
                for j in range(15):
                    covariance[j, i] += moved[j, k] * F[i, k]
    symmetric(covariance)


def _correct_examples() -> Iterable[tuple[Any, ...]]:
    yield np.zeros(15), np.eye(15), np.zeros(15), np.zeros(15, np.bool_), np.eye(15), math.inf, 1e-9


@kernel(examples=_correct_examples)
def correct(
    state: NDArray[np.float64],
    covariance: NDArray[np.float64],
    values: NDArray[np.float64],
    used: NDArray[np.bool_],
    noise: NDArray[np.float64],
    gate: float,
    least: float,
) -> bool:
    """Take measured states in place, unless their squared Mahalanobis distance is beyond ``gate``; says whether it did.

    Variances of ``noise`` below ``least`` are taken for that.  The covariance shrinks in Joseph's form.
    """
    index = np.flatnonzero(used)
    m = len(index)
    S, apart = np.empty((m, m)), np.empty(m)
    for a in range(m):
        apart[a] = values[index[a]] - state[index[a]]
        if 3 <= index[a] <= 5:
            apart[a] = wrap_angle(apart[a])
        for b in range(m):
            own = noise[index[a], index[b]]
            S[a, b] = covariance[index[a], index[b]] + (max(abs(own), least) if a == b else own)
    inverse = inverted(S)
    distance = 0.0
    for a in range(m):
        for b in range(m):
            distance += apart[a] * inverse[a, b] * apart[b]
    if not distance <= gate:
        return False
    gain = np.zeros((15, m))
    for i in range(15):
        for a in range(m):
            for b in range(m):
                gain[i, a] += covariance[i, index[b]] * inverse[b, a]
    for i in range(15):
        for a in range(m):
            state[i] += gain[i, a] * apart[a]
    wrap(state)
    # (1 - K H) P (1 - K H)ᵀ + K R Kᵀ, where H picks rows
    left = np.eye(15)
    for i in range(15):
        for a in range(m):
            left[i, index[a]] -= gain[i, a]
    middle = np.zeros((15, 15))
    for i in range(15):
        for k in range(15):
            if left[i, k] != 0.0:
                for j in range(15):
                    middle[i, j] += left[i, k] * covariance[k, j]
    covariance[:] = 0.0
    for i in range(15):
        for k in range(15):
            if left[i, k] != 0.0:
                for j in range(15):
                    covariance[j, i] += middle[j, k] * left[i, k]
    for a in range(m):
        for b in range(m):
            own = noise[index[a], index[b]]
            own = max(abs(own), least) if a == b else own
            if own != 0.0:
                for i in range(15):
                    for j in range(15):
                        covariance[i, j] += gain[i, a] * own * gain[j, b]
    symmetric(covariance)
    return True


@kernel
def wrap(state: NDArray[np.float64]) -> None:
    """Roll, pitch and yaw of a state, in place; what is in range stays as it is."""
    for i in range(3, 6):
        if not -math.pi <= state[i] <= math.pi:
            state[i] = wrap_angle(state[i])


@kernel
def symmetric(matrix: NDArray[np.float64]) -> None:
    """Mean of a matrix and its transpose, in place."""
    for i in range(len(matrix)):
        for j in range(i):
            mean = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = matrix[j, i] = mean


@kernel
def inverted(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inverse of a positive definite matrix (Gauss and Jordan, no pivots needed); NaN where it is none."""
    m = len(matrix)
    left, right = matrix.copy(), np.eye(m)
    for k in range(m):
        pivot = left[k, k]
        if not pivot > 0.0:
            right[:] = np.nan
            return right
        for j in range(m):
            left[k, j] /= pivot
            right[k, j] /= pivot
        for i in range(m):
            factor = left[i, k]
            if i != k and factor != 0.0:
                for j in range(m):
                    left[i, j] -= factor * left[k, j]
                    right[i, j] -= factor * right[k, j]
    return right
