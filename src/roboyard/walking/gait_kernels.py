"""Kernels of gaits: how feet move on the ground and in the air, and how firmly they hold a body."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array

RAMP: Final = 0.1
"""Share of a swing in which a foot gets under way, and comes to rest on the ground's motion."""
FEWEST: Final = 3
"""So many feet have to be down for a polygon."""


@kernel(examples=lambda: [(0.1, 0.1, np.zeros(3), 0.1)])
def moved_place(x: float, y: float, twist: Array, time: float) -> tuple[float, float]:
    """A place on the ground as the body sees it when it has moved at a twist (3,) for a time [s]."""
    vx, vy, angle = twist[0], twist[1], twist[2] * time
    c, s = math.cos(angle), math.sin(angle)
    sinc = math.sin(angle) / angle if abs(angle) > 1e-9 else 1.0
    cosc = 2.0 * math.sin(0.5 * angle) ** 2 / angle if abs(angle) > 1e-9 else 0.5 * angle
    px, py = x - time * (sinc * vx - cosc * vy), y - time * (cosc * vx + sinc * vy)
    return c * px + s * py, c * py - s * px


@kernel(examples=lambda: [(0.1, 0.1, np.zeros(3))])
def ground_speed(x: float, y: float, twist: Array) -> tuple[float, float]:
    """Velocity of a place on the ground as the body sees it [m/s]."""
    return twist[2] * y - twist[0], -twist[2] * x - twist[1]


@kernel(examples=lambda: [(0.5, RAMP)])
def eased_share(share: float, ramp: float) -> float:
    """0 to 1 as a share goes from 0 to 1: at rest at both ends, evenly accelerated for ``ramp`` of it."""
    s = min(max(share, 0.0), 1.0)
    top = 1.0 / (1.0 - ramp)
    if s < ramp:
        return 0.5 * top * s * s / ramp
    if s > 1.0 - ramp:
        return 1.0 - 0.5 * top * (1.0 - s) ** 2 / ramp
    return top * (s - 0.5 * ramp)


@kernel(examples=lambda: [(0.5,)])
def arch_share(share: float) -> float:
    """Height of a foot in the air as a share of its lift: 0, 1 in the middle of the swing, 0; smooth."""
    return float(eased_share(1.0 - abs(2.0 * min(max(share, 0.0), 1.0) - 1.0), RAMP))


@kernel(examples=lambda: [(np.zeros((6, 3)), np.ones(6, np.bool_), 0.0, 0.0)])
def held_by(feet: Array, down: NDArray[np.bool_], x: float, y: float) -> float:
    """How far a place is inside of the polygon of the feet (l, 3) that are down (l) [m]; -inf where they span none.

    A line through two feet that has no other foot on its right is an edge.
    """
    l, margin, wide, count = feet.shape[0], math.inf, False, 0  # noqa: E741
    for i in range(l):
        count += down[i]
    if count < FEWEST:
        return -math.inf
    for i in range(l):
        for j in range(l):
            if i == j or not down[i] or not down[j]:
                continue
            ex, ey = feet[j, 0] - feet[i, 0], feet[j, 1] - feet[i, 1]
            length = math.hypot(ex, ey)
            if length < 1e-9:
                continue
            edge = True
            for k in range(l):
                if down[k] and k != i and k != j:
                    side = ex * (feet[k, 1] - feet[i, 1]) - ey * (feet[k, 0] - feet[i, 0])
                    wide = wide or abs(side) > 1e-12
                    if side < -1e-12:
                        edge = False
                        break
            if edge:
                margin = min(margin, (ex * (y - feet[i, 1]) - ey * (x - feet[i, 0])) / length)
    return margin if wide else -math.inf


@kernel(examples=lambda: [(np.zeros((6, 3)), np.ones(6, np.bool_), 0.0, 0.0)])
def tips_at(feet: Array, down: NDArray[np.bool_], roll: float, pitch: float) -> float:
    """By how much a body turns about an edge of its feet (l, 3), in space, until its middle is above it [rad].

    As `tip_over`, of those that are down (l), for a body that leans; below zero outside, -inf where they span none.
    """
    if held_by(feet, down, 0.0, 0.0) == -math.inf:
        return -math.inf
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    level, least = np.empty_like(feet), math.inf
    for k in range(feet.shape[0]):
        x, y, z = feet[k, 0], cr * feet[k, 1] - sr * feet[k, 2], sr * feet[k, 1] + cr * feet[k, 2]
        level[k, 0], level[k, 1], level[k, 2] = cp * x + sp * z, y, cp * z - sp * x
    for i in range(feet.shape[0]):
        for j in range(feet.shape[0]):
            ax, ay, az = level[i, 0], level[i, 1], level[i, 2]
            ex, ey, ez = level[j, 0] - ax, level[j, 1] - ay, level[j, 2] - az
            length = math.hypot(ex, ey)
            if not down[i] or not down[j] or length < 1e-9:
                continue
            edge = True
            for k in range(feet.shape[0]):
                edge = edge and (not down[k] or ex * (level[k, 1] - ay) - ey * (level[k, 0] - ax) >= -1e-12)
            if edge:
                slope = ez / length
                away, along = (ey * ax - ex * ay) / length, -(ax * ex + ay * ey) / length
                high = -(az + slope * along) / math.hypot(1.0, slope)
                least = min(least, math.atan2(away, high))
    return least
