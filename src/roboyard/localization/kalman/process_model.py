"""State vector and process model of the Kalman filters.

The state has fifteen numbers in the order of robot_localization: the pose in the world frame, and velocities and
accelerations in the base's axes.
"""

from __future__ import annotations

import math

import numpy as np

from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array

STATE_NAMES = (
    "x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz", "vroll", "vpitch", "vyaw", "ax", "ay", "az",
)  # fmt: skip
"""Pose in the world frame; velocities and accelerations in the base's own axes."""
STATE_SIZE = 15
POSE, TWIST, ACCELERATION = slice(0, 6), slice(6, 12), slice(12, 15)
ANGLE_INDICES = np.array([3, 4, 5])
OUT_OF_PLANE_INDICES = np.array([2, 3, 4, 8, 9, 10, 14])
"""States out of the plane: z, roll, pitch, their velocities, and the vertical acceleration."""


def wrap_angles(state: Array) -> Array:
    """Return states or differences (…, 15) with angles in (-pi, pi]."""
    result = state.copy()
    result[..., ANGLE_INDICES] = wrap_angle(result[..., ANGLE_INDICES])
    return result


def rotation_matrices(roll: Array, pitch: Array, yaw: Array) -> Array:
    """Return rotation matrices (…, 3, 3) from the base's axes to the world's."""
    cr, sr, cp, sp, cy, sy = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def propagate_state(states: Array, dt: float) -> Array:
    """Return states (…, 15) after ``dt`` [s] at constant acceleration and angular velocity, as in robot_localization.

    The position moves along the axes at the beginning of the step; roll, pitch and yaw change with the angular velocity
    in the base's axes.  Complex states are allowed, with which ``process_jacobian`` computes derivatives.
    """
    roll, pitch, yaw = states[..., 3], states[..., 4], states[..., 5]
    velocity, angular_velocity, acceleration = states[..., 6:9], states[..., 9:12], states[..., 12:15]
    result = states.copy()
    displacement = velocity * dt + 0.5 * acceleration * dt * dt
    result[..., 0:3] += (rotation_matrices(roll, pitch, yaw) @ displacement[..., None])[..., 0]
    sr, cr, cp = np.sin(roll), np.cos(roll), np.cos(pitch)
    is_gimbal_lock = np.abs(cp) < 1e-6  # at a pitch of 90° yaw has no rate
    cp = np.where(is_gimbal_lock, 1e-6, cp)
    across = sr * angular_velocity[..., 1] + cr * angular_velocity[..., 2]
    result[..., 3] += dt * (angular_velocity[..., 0] + np.sin(pitch) / cp * across)
    result[..., 4] += dt * (cr * angular_velocity[..., 1] - sr * angular_velocity[..., 2])
    result[..., 5] += dt * across / cp
    result[..., 6:9] += acceleration * dt
    return result


_COMPLEX_STEP = 1e-30
_COMPLEX_STEPS = 1j * _COMPLEX_STEP * np.eye(STATE_SIZE)


def process_jacobian(state: Array, dt: float) -> Array:
    """Return the derivative (15, 15) of ``propagate_state`` by the state, exact to rounding.

    It uses steps along the imaginary axis, which lose no digits (W. Squire, G. Trapp, Using Complex Variables to
    Estimate Derivatives of Real Functions, SIAM Review 40, 1998).
    """
    derivative: Array = propagate_state(state + _COMPLEX_STEPS, dt).imag.T / _COMPLEX_STEP
    return derivative


def is_finite(state: Array) -> bool:
    """Return whether all numbers of a state or a covariance are finite."""
    return bool(math.isfinite(float(np.abs(state).sum())))
