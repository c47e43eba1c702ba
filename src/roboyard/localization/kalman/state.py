"""The fifteen numbers of the state, as robot_localization orders them, and how they move."""

from __future__ import annotations

import math

import numpy as np

from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array

NAMES = (
    "x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz", "vroll", "vpitch", "vyaw", "ax", "ay", "az",
)  # fmt: skip
"""Pose in the world frame; velocities and accelerations in the base's own axes."""
SIZE = 15
POSE, TWIST, ACCELERATION = slice(0, 6), slice(6, 12), slice(12, 15)
ANGLES = np.array([3, 4, 5])
OUT_OF_PLANE = np.array([2, 3, 4, 8, 9, 10, 14])
"""What does not exist in the plane: z, roll, pitch, their velocities, and the vertical acceleration."""


def wrapped(state: Array) -> Array:
    """States or differences (…, 15) with angles in (-pi, pi]."""
    result = state.copy()
    result[..., ANGLES] = wrap_angle(result[..., ANGLES])
    return result


def rotation(roll: Array, pitch: Array, yaw: Array) -> Array:
    """Matrices (…, 3, 3) from the base's axes to the world's."""
    cr, sr, cp, sp, cy, sy = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def moved(states: Array, dt: float) -> Array:
    """States (…, 15) after ``dt`` [s] at constant acceleration and turn rate, as robot_localization's model has it.

    The position moves along the axes at the beginning of the step; roll, pitch and yaw by the rates that the turn rates
    in the base's axes make.  Complex states are allowed: ``jacobian`` takes the derivative by them.
    """
    roll, pitch, yaw = states[..., 3], states[..., 4], states[..., 5]
    velocity, turn, acceleration = states[..., 6:9], states[..., 9:12], states[..., 12:15]
    result = states.copy()
    way = velocity * dt + 0.5 * acceleration * dt * dt
    result[..., 0:3] += (rotation(roll, pitch, yaw) @ way[..., None])[..., 0]
    sr, cr, cp = np.sin(roll), np.cos(roll), np.cos(pitch)
    small = np.abs(cp) < 1e-6  # straight up or down yaw has no rate
    cp = np.where(small, 1e-6, cp)
    across = sr * turn[..., 1] + cr * turn[..., 2]
    result[..., 3] += dt * (turn[..., 0] + np.sin(pitch) / cp * across)
    result[..., 4] += dt * (cr * turn[..., 1] - sr * turn[..., 2])
    result[..., 5] += dt * across / cp
    result[..., 6:9] += acceleration * dt
    return result


_STEP = 1e-30
_IMAGINARY = 1j * _STEP * np.eye(SIZE)


def jacobian(state: Array, dt: float) -> Array:
    """Derivative (15, 15) of ``moved`` by the state, exact to rounding.

    By steps along the imaginary axis, which lose no digits (W. Squire, G. Trapp, Using Complex Variables to Estimate
    Derivatives of Real Functions, SIAM Review 40, 1998).
    """
    slopes: Array = moved(state + _IMAGINARY, dt).imag.T / _STEP
    return slopes


def finite(state: Array) -> bool:
    """Whether no number of a state or covariance went astray."""
    return bool(math.isfinite(float(np.abs(state).sum())))
