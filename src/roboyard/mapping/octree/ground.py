"""Which points of a cloud are ground, as octomap_server's filter finds it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.config import check, parameter

_TRIES: Final = 100
_FEWEST: Final = 10


@dataclass(frozen=True)
class GroundFilter:
    """What passes for ground; names and defaults as octomap_server has them.

    Raises:
        ConfigError: a number out of range.
    """

    distance: float = parameter(
        0.04, unit="m", low=1e-4, high=10.0, doc="Largest distance of a point of the ground from its plane."
    )
    angle: float = parameter(
        0.15, unit="rad", low=0.0, high=1.5, doc="Largest angle between that plane and the robot's."
    )
    plane_distance: float = parameter(
        0.07, unit="m", low=0.0, high=10.0, doc="Largest distance of that plane from the robot's base."
    )

    def __post_init__(self) -> None:
        check(self, "ground_filter")


def ground_points(
    points: NDArray[np.float64], settings: GroundFilter, random: np.random.Generator
) -> NDArray[np.bool_]:
    """(n,) which points belong to the ground.

    The plane that most points lie on is looked for among those that could be ground (RANSAC, Fischler and Bolles 1981,
    with a hundred draws), and fitted to them.  Where there is none, what lies as high as the base, within
    ``plane_distance``, is ground.

    Args:
        points: (n, 3) in the robot's base frame, z up [m]; not finite: no ground.
        settings: What passes for ground.
        random: Draws the points.
    """
    slope = math.tan(settings.angle)
    away = np.hypot(points[:, 0], points[:, 1])
    with np.errstate(invalid="ignore"):
        could = np.flatnonzero(np.abs(points[:, 2]) <= settings.plane_distance + settings.distance + slope * away)
        level = np.abs(points[:, 2]) <= settings.plane_distance
    candidates = points[could]
    best: NDArray[np.bool_] | None = None
    for _ in range(_TRIES if len(candidates) >= _FEWEST else 0):
        a, b, c = candidates[random.integers(0, len(candidates), 3)]
        plane = _plane(np.cross(b - a, c - a), a, settings, slope)
        if plane is None:
            continue
        near = np.abs(candidates @ plane[:3] + plane[3]) <= settings.distance
        if best is None or near.sum() > best.sum():
            best = near
    if best is None or best.sum() < _FEWEST:
        return np.asarray(level)
    middle = candidates[best].mean(axis=0)
    normal = np.linalg.svd(candidates[best] - middle, full_matrices=False)[2][2]
    plane = _plane(normal, middle, settings, slope)
    found = np.zeros(len(points), np.bool_)
    found[could] = best if plane is None else np.abs(candidates @ plane[:3] + plane[3]) <= settings.distance
    return found


def _plane(
    normal: NDArray[np.float64], point: NDArray[np.float64], settings: GroundFilter, slope: float
) -> NDArray[np.float64] | None:
    """Normal and offset (4,) of a plane through a point; None if it cannot be ground."""
    length = float(np.linalg.norm(normal))
    if length < 1e-9:
        return None
    upright = normal / length
    if math.hypot(upright[0], upright[1]) > slope * abs(upright[2]):
        return None
    offset = -float(upright @ point)
    return np.array([*upright, offset]) if abs(offset) <= settings.plane_distance else None
