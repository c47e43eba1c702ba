"""Kernels of walking's metrics: what one sample of all joints says."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.geometry.arrays import Array
from roboyard.walking.leg_kernels import LegRows, place_feet, sample_rows

Mask = NDArray[np.bool_]

SATURATED = 0.99
"""A motor that gives this share of what it has is at its limit."""


class MotorRows(NamedTuple):
    """Motors as kernels take them.

    Attributes:
        stall: (n) efforts at rest [N m].
        no_load: (n) speeds at which they have none left [rad/s].
        warmth: (n) heat by the square of the effort [W/(N m)²].
    """

    stall: Array
    no_load: Array
    warmth: Array


class Footing(NamedTuple):
    """Feet that stand, changed in place.

    Attributes:
        touching: (l) which touch something.
        standing: (l) which did at the sample before.
        slipped: (l) which have gone too far since they came down.
        start: (l, 2) where they came down in the world [m].
    """

    touching: Mask
    standing: Mask
    slipped: Mask
    start: Array


def footing(legs: int) -> Footing:
    """Of so many feet in the air."""
    no = np.zeros(legs, np.bool_)
    return Footing(no, no.copy(), no.copy(), np.zeros((legs, 2)))


def _motors() -> list[tuple[object, ...]]:
    one = np.ones(1)
    return [(MotorRows(one, one, one), np.zeros(1, np.int64), read_only(one), read_only(one))]


@kernel(examples=_motors)
def power_and_saturated(motors: MotorRows, where: NDArray[np.int64], effort: Array, speed: Array) -> tuple[float, int]:
    """Work and heat of all motors [W], of which nothing is given back, and how many give all that they have.

    Args:
        motors: All.
        where: (n) their places in what follows.
        effort: Of joints [N m].
        speed: Of joints [rad/s].
    """
    power, full = 0.0, 0
    for i in range(len(where)):
        f, v = effort[where[i]], speed[where[i]]
        power += max(f * v + f * f * motors.warmth[i], 0.0)
        along = max(v * np.sign(f), 0.0)
        full += abs(f) >= SATURATED * motors.stall[i] * max(1.0 - along / motors.no_load[i], 0.0)
    return power, full


def _feet() -> list[tuple[object, ...]]:
    pose = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    return [(sample_rows(), np.zeros(3, np.int64), read_only(np.zeros(3)), pose, footing(1), 0.01)]


@kernel(examples=_feet)
def follow_feet(
    legs: LegRows,
    where: NDArray[np.int64],
    position: Array,
    pose: tuple[float, float, float, float, float, float, float],
    feet: Footing,
    most: float,
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
    count = len(feet.touching)
    q, places = np.empty((count, 3)), np.empty((count, 3))
    for i in range(count):
        for k in range(3):
            q[i, k] = position[where[3 * i + k]]
    place_feet(legs, np.arange(count), q, places)
    x, y, _, qw, qx, qy, qz = pose
    slips, below, touching = 0, 0.0, 0
    for i in range(count):
        if not feet.touching[i]:
            feet.standing[i] = False
            continue
        px, py, pz = places[i]
        fx = (
            x + (1.0 - 2.0 * (qy * qy + qz * qz)) * px + 2.0 * (qx * qy - qw * qz) * py + 2.0 * (qx * qz + qw * qy) * pz
        )
        fy = (
            y + 2.0 * (qx * qy + qw * qz) * px + (1.0 - 2.0 * (qx * qx + qz * qz)) * py + 2.0 * (qy * qz - qw * qx) * pz
        )
        below += (
            2.0 * (qx * qz - qw * qy) * px + 2.0 * (qy * qz + qw * qx) * py + (1.0 - 2.0 * (qx * qx + qy * qy)) * pz
        )
        touching += 1
        if not feet.standing[i]:
            feet.standing[i], feet.slipped[i] = True, False
            feet.start[i, 0], feet.start[i, 1] = fx, fy
        elif not feet.slipped[i] and math.hypot(fx - feet.start[i, 0], fy - feet.start[i, 1]) > most:
            feet.slipped[i] = True
            slips += 1
    return slips, -below / touching if touching > 0 else math.nan
