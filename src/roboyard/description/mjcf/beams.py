"""Range finders that start at one point and fan out evenly in a plane are one lidar; each other is one of one ray."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3

_CLOSE = 1e-6
Beam = tuple[str, SE3, tuple[float, float, float]]
"""Link, pose in it (the ray runs along z), and what else must agree: cut-off, noise, interval."""


@dataclass(frozen=True, slots=True)
class Fan:
    """Rays at even angles about the lidar's z, the angle 0 along its x [rad]."""

    T_link_lidar: SE3
    angle_min: float
    angle_max: float


def fans(beams: Sequence[Beam]) -> list[tuple[list[int], Fan]]:
    """Numbers of the beams that belong together, in the order of their angles, and the fan that they are."""
    groups: dict[object, list[int]] = {}
    for number, (link, T, rest) in enumerate(beams):
        place = tuple(np.round(T.translation / _CLOSE).astype(np.int64).tolist())
        groups.setdefault((link, place, rest), []).append(number)
    found: list[tuple[list[int], Fan]] = []
    for group in groups.values():
        rays = np.array([beams[number][1].rotation_matrix()[:, 2] for number in group])
        fan = _fan(rays, beams[group[0]][1].translation) if len(group) > 1 else None
        if fan is None:
            found += [([number], _single(beams[number][1])) for number in group]
        else:
            order, one = fan
            found.append(([group[index] for index in order], one))
    return found


def _single(T_link_beam: SE3) -> Fan:
    return Fan(T_link_beam @ SE3.from_xyz_rpy(rpy=(0.0, -math.pi / 2, 0.0)), 0.0, 0.0)


def _fan(rays: NDArray[np.float64], origin: NDArray[np.float64]) -> tuple[list[int], Fan] | None:
    """The order of the rays and their fan; None where they do not lie in a plane or not evenly."""
    _, _, axes = np.linalg.svd(rays, full_matrices=True)
    normal = axes[2]
    if np.abs(rays @ normal).max() > _CLOSE:
        return None
    if normal[int(np.argmax(np.abs(normal)))] < 0.0:
        normal = -normal  # upwards, where it is upright
    ahead = np.array([1.0, 0.0, 0.0]) - normal[0] * normal
    ahead = ahead / np.linalg.norm(ahead) if np.linalg.norm(ahead) > 0.1 else rays[0]
    angles = np.arctan2(rays @ np.cross(normal, ahead), rays @ ahead)
    order = np.argsort(angles, kind="stable")
    gaps = np.diff(angles[order], append=angles[order[0]] + 2.0 * math.pi)
    ends = (int(np.argmax(gaps)), int(np.argmin(gaps)))  # a turn a little short of full ends where two are nearest
    if gaps[ends[0]] <= gaps[ends[1]] + _CLOSE:
        ends = (-1, -1)  # a full turn: begins behind
    for end in ends:
        turned = np.roll(order, -(end + 1))
        spread = np.unwrap(angles[turned])
        steps = np.diff(spread)
        if steps.min() >= _CLOSE and np.ptp(steps) <= _CLOSE:
            order = turned
            break
    else:
        return None
    if spread[0] > math.pi or spread[0] < -math.pi - _CLOSE:
        spread -= 2.0 * math.pi * round(float(spread[0]) / (2.0 * math.pi))
    R = np.column_stack([ahead, np.cross(normal, ahead), normal])
    T_link_lidar = SE3.from_rotation_matrix(R, origin)
    return order.tolist(), Fan(T_link_lidar, float(spread[0]), float(spread[-1]))
