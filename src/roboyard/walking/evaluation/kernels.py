"""Kernels of the gait's metrics: one sample of all joints."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.geometry.arrays import Array
from roboyard.walking.leg_kernels import LegRows, place_feet, sample_rows

Mask = NDArray[np.bool_]

SATURATION_RATIO = 0.99
"""A motor that gives this share of what it has is at its limit."""


class MotorParameters(NamedTuple):
    """Motors as kernels take them.

    Attributes:
        stall: (n) efforts at rest [N m].
        no_load: (n) speeds at which they have none left [rad/s].
        warmth: (n) heat by the square of the effort [W/(N m)²].
    """

    stall_torque: Array
    no_load_speed: Array
    heat_coefficient: Array


class FootContactState(NamedTuple):
    """Feet that stand, changed in place.

    Attributes:
        touching: (l) which touch something.
        standing: (l) which did at the sample before.
        slipped: (l) which have gone too far since they came down.
        start: (l, 2) where they came down in the world [m].
    """

    in_contact: Mask
    was_in_contact: Mask
    has_slipped: Mask
    touchdown: Array


def feet_in_air(n_legs: int) -> FootContactState:
    """Of so many feet in the air."""
    none = np.zeros(n_legs, np.bool_)
    return FootContactState(none, none.copy(), none.copy(), np.zeros((n_legs, 2)))


def _motor_examples() -> list[tuple[object, ...]]:
    ones = np.ones(1)
    return [(MotorParameters(ones, ones, ones), np.zeros(1, np.int64), read_only(ones), read_only(ones))]


@kernel(examples=_motor_examples)
def motor_power_and_saturation(
    motors: MotorParameters, indices: NDArray[np.int64], effort: Array, speed: Array
) -> tuple[float, int]:
    """Work and heat of all motors [W], of which nothing is given back, and how many give all that they have.

    Args:
        motors: All.
        where: (n) their places in what follows.
        effort: Of joints [N m].
        speed: Of joints [rad/s].
    """
    power, n_saturated = 0.0, 0
    for i in range(len(indices)):
        f, v = effort[indices[i]], speed[indices[i]]
        power += max(f * v + f * f * motors.heat_coefficient[i], 0.0)
        speed_along_effort = max(v * np.sign(f), 0.0)
        n_saturated += abs(f) >= SATURATION_RATIO * motors.stall_torque[i] * max(
            1.0 - speed_along_effort / motors.no_load_speed[i], 0.0
        )
    return power, n_saturated


def _feet_examples() -> list[tuple[object, ...]]:
    pose = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    return [(sample_rows(), np.zeros(3, np.int64), read_only(np.zeros(3)), pose, feet_in_air(1), 0.01)]


@kernel(examples=_feet_examples)
def detect_foot_slips(
    legs: LegRows,
    indices: NDArray[np.int64],
    position: Array,
    pose: tuple[float, float, float, float, float, float, float],
    feet: FootContactState,
    max_slip: float,
) -> tuple[int, float]:
    """Watch how far feet go while they stand.

    Args:
        legs: All.
        where: (3 l) places of their joints.
        position: Of joints [rad].
        pose: Of the body in the world: x, y, z [m], quaternion w, x, y, z.
        feet: Which touch, and what is known of them; changed.
        most: How far one may go [m].

    Returns:
        How many have just gone further; how high the body is above those that touch [m], nan without.
    """
    n_feet = len(feet.in_contact)
    q, positions = np.empty((n_feet, 3)), np.empty((n_feet, 3))
    for i in range(n_feet):
        for k in range(3):
            q[i, k] = position[indices[3 * i + k]]
    place_feet(legs, np.arange(n_feet), q, positions)
    x, y, _, qw, qx, qy, qz = pose
    n_slips, depth_sum, n_contacts = 0, 0.0, 0
    for i in range(n_feet):
        if not feet.in_contact[i]:
            feet.was_in_contact[i] = False
            continue
        px, py, pz = positions[i]
        fx = (
            x + (1.0 - 2.0 * (qy * qy + qz * qz)) * px + 2.0 * (qx * qy - qw * qz) * py + 2.0 * (qx * qz + qw * qy) * pz
        )
        fy = (
            y + 2.0 * (qx * qy + qw * qz) * px + (1.0 - 2.0 * (qx * qx + qz * qz)) * py + 2.0 * (qy * qz - qw * qx) * pz
        )
        depth_sum += (
            2.0 * (qx * qz - qw * qy) * px + 2.0 * (qy * qz + qw * qx) * py + (1.0 - 2.0 * (qx * qx + qy * qy)) * pz
        )
        n_contacts += 1
        if not feet.was_in_contact[i]:
            feet.was_in_contact[i], feet.has_slipped[i] = True, False
            feet.touchdown[i, 0], feet.touchdown[i, 1] = fx, fy
        elif not feet.has_slipped[i] and math.hypot(fx - feet.touchdown[i, 0], fy - feet.touchdown[i, 1]) > max_slip:
            feet.has_slipped[i] = True
            n_slips += 1
    return n_slips, -depth_sum / n_contacts if n_contacts > 0 else math.nan
