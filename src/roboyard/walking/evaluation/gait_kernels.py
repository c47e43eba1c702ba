"""Kernels of the metrics of gaits: one sample of all joints."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.geometry.arrays import Array
from roboyard.walking.leg import LegKinematicsArrays, example_legs, foot_forward_kinematics

Mask = NDArray[np.bool_]

SATURATION_RATIO = 0.99
"""A motor whose torque is this share of the largest possible one is saturated."""


class MotorParameters(NamedTuple):
    """Motors as kernels take them.

    Attributes:
        stall_torque: (n) torques at rest [N m].
        no_load_speed: (n) speeds at which no torque is left [rad/s].
        heat_coefficient: (n) heat divided by the square of the torque [W/(N m)²].
    """

    stall_torque: Array
    no_load_speed: Array
    heat_coefficient: Array


class FootContactState(NamedTuple):
    """State of all feet, changed in place.

    Attributes:
        in_contact: (l) which are in contact.
        was_in_contact: (l) which were at the previous sample.
        has_slipped: (l) which have slipped since their touchdown.
        touchdown: (l, 2) positions of their touchdowns in the world [m].
    """

    in_contact: Mask
    was_in_contact: Mask
    has_slipped: Mask
    touchdown: Array


def feet_in_air(n_legs: int) -> FootContactState:
    """Return the state of feet without contact."""
    no_contacts = np.zeros(n_legs, np.bool_)
    return FootContactState(no_contacts, no_contacts.copy(), no_contacts.copy(), np.zeros((n_legs, 2)))


def _motor_examples() -> list[tuple[object, ...]]:
    ones = np.ones(1)
    return [(MotorParameters(ones, ones, ones), np.zeros(1, np.int64), read_only(ones), read_only(ones))]


@kernel(examples=_motor_examples)
def motor_power_and_saturation(
    motors: MotorParameters, indices: NDArray[np.int64], effort: Array, speed: Array
) -> tuple[float, int]:
    """Return work and heat of all motors without recovery [W], and how many of them are saturated.

    Args:
        motors: Their parameters.
        indices: (n) of their joints in the arrays that follow.
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
    return [(example_legs(), np.zeros(3, np.int64), read_only(np.zeros(3)), pose, feet_in_air(1), 0.01)]


@kernel(examples=_feet_examples)
def detect_foot_slips(
    legs: LegKinematicsArrays,
    indices: NDArray[np.int64],
    position: Array,
    pose: tuple[float, float, float, float, float, float, float],
    feet: FootContactState,
    max_slip: float,
) -> tuple[int, float]:
    """Detect feet that move while they are in contact.

    Args:
        legs: Kinematics of all legs.
        indices: (3 l) of their joints in ``position``.
        position: Of joints [rad].
        pose: Of the body in the world: x, y, z [m], quaternion w, x, y, z.
        feet: State of the feet; changed.
        max_slip: Largest displacement in contact [m].

    Returns:
        Number of feet that have just exceeded it, and height of the body above the feet in contact [m]; nan without.
    """
    n_feet = len(feet.in_contact)
    q, positions = np.empty((n_feet, 3)), np.empty((n_feet, 3))
    for i in range(n_feet):
        for k in range(3):
            q[i, k] = position[indices[3 * i + k]]
    foot_forward_kinematics(legs, np.arange(n_feet), q, positions)
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
