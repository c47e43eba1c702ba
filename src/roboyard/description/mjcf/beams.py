"""Range finders that start at one point and fan out evenly in a plane are one lidar; each other is one of one ray."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3

_TOLERANCE = 1e-6
Rangefinder = tuple[str, SE3, tuple[float, float, float]]
"""Link, pose in it (the ray runs along z), and what else must agree: cut-off, noise, interval."""


@dataclass(frozen=True, slots=True)
class RayFan:
    """Rays at even angles about the lidar's z, the angle 0 along its x [rad]."""

    T_link_lidar: SE3
    angle_min: float
    angle_max: float


def group_rangefinders(rangefinders: Sequence[Rangefinder]) -> list[tuple[list[int], RayFan]]:
    """Numbers of the beams that belong together, in the order of their angles, and the fan that they are."""
    groups: dict[object, list[int]] = {}
    for number, (link, T, settings) in enumerate(rangefinders):
        origin_key = tuple(np.round(T.translation / _TOLERANCE).astype(np.int64).tolist())
        groups.setdefault((link, origin_key, settings), []).append(number)
    ray_fans: list[tuple[list[int], RayFan]] = []
    for group in groups.values():
        rays = np.array([rangefinders[number][1].rotation_matrix()[:, 2] for number in group])
        fan = _fit_ray_fan(rays, rangefinders[group[0]][1].translation) if len(group) > 1 else None
        if fan is None:
            ray_fans += [([number], _single_ray(rangefinders[number][1])) for number in group]
        else:
            order, one = fan
            ray_fans.append(([group[index] for index in order], one))
    return ray_fans


def _single_ray(T_link_ray: SE3) -> RayFan:
    return RayFan(T_link_ray @ SE3.from_xyz_rpy(rpy=(0.0, -math.pi / 2, 0.0)), 0.0, 0.0)


def _fit_ray_fan(rays: NDArray[np.float64], origin: NDArray[np.float64]) -> tuple[list[int], RayFan] | None:
    """The order of the rays and their fan; None where they do not lie in a plane or not evenly."""
    _, _, axes = np.linalg.svd(rays, full_matrices=True)
    normal = axes[2]
    if np.abs(rays @ normal).max() > _TOLERANCE:
        return None
    if normal[int(np.argmax(np.abs(normal)))] < 0.0:
        normal = -normal  # upwards, where it is upright
    forward = np.array([1.0, 0.0, 0.0]) - normal[0] * normal
    forward = forward / np.linalg.norm(forward) if np.linalg.norm(forward) > 0.1 else rays[0]
    angles = np.arctan2(rays @ np.cross(normal, forward), rays @ forward)
    order = np.argsort(angles, kind="stable")
    gaps = np.diff(angles[order], append=angles[order[0]] + 2.0 * math.pi)
    last_rays = (int(np.argmax(gaps)), int(np.argmin(gaps)))  # a turn a little short of full ends where two are nearest
    if gaps[last_rays[0]] <= gaps[last_rays[1]] + _TOLERANCE:
        last_rays = (-1, -1)  # a full turn: begins behind
    for last_ray in last_rays:
        shifted = np.roll(order, -(last_ray + 1))
        sorted_angles = np.unwrap(angles[shifted])
        steps = np.diff(sorted_angles)
        if steps.min() >= _TOLERANCE and np.ptp(steps) <= _TOLERANCE:
            order = shifted
            break
    else:
        return None
    if sorted_angles[0] > math.pi or sorted_angles[0] < -math.pi - _TOLERANCE:
        sorted_angles -= 2.0 * math.pi * round(float(sorted_angles[0]) / (2.0 * math.pi))
    R = np.column_stack([forward, np.cross(normal, forward), normal])
    T_link_lidar = SE3.from_rotation_matrix(R, origin)
    return order.tolist(), RayFan(T_link_lidar, float(sorted_angles[0]), float(sorted_angles[-1]))
