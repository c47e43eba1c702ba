"""Where in the whole map a scan could have been taken: many poses tried, the best aligned."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.grids import OCCUPIED_THRESHOLD, OccupancyGrid
from roboyard.localization.amcl.alignment import align
from roboyard.localization.amcl.sensing import Sensed, SensorModel
from roboyard.localization.amcl.visibility import merits

_MOST_ALIGNED = 300
_APART = (0.3, math.radians(12.0))
"""Hypotheses nearer than this [m], [rad] are one."""
WORTH = 30.0
"""What the merit counts beside log-likelihoods: a beam through a wall tells more than one that is off."""


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """Poses that explain a scan, the best first.

    Attributes:
        poses: (k, 3) in the map.
        scores: (k,) log-likelihoods, as the sensor model gives them.
        merits: (k,) how little each is contradicted, see ``merits``.
        information: (k, 3, 3) inverse covariance by the scan.
    """

    poses: Array
    scores: Array
    merits: Array
    information: Array


class FreeSpace:
    """The free cells of a map, to draw poses from.

    Args:
        grid: The map; without one free cell, all that are not occupied count.
    """

    def __init__(self, grid: OccupancyGrid) -> None:
        free = (grid.cells >= 0) & (grid.cells < OCCUPIED_THRESHOLD)
        self._cells = np.argwhere(free if free.any() else grid.cells < OCCUPIED_THRESHOLD)
        self._frame = grid.geometry

    @property
    def area(self) -> float:
        """Of all free cells [m²]."""
        return len(self._cells) * self._frame.resolution**2

    def poses(self, count: int, rng: np.random.Generator) -> Array:
        """Random poses (count, 3): places evenly in free space, one in each of ``count`` equal lots; any heading."""
        if not len(self._cells):
            return np.zeros((0, 3))
        lots = (np.arange(count) + rng.random(count)) * (len(self._cells) / count)
        cells = self._cells[np.minimum(lots.astype(np.int64), len(self._cells) - 1)] + rng.random((count, 2)) - 0.5
        return np.column_stack([self._frame.cell_centers(cells), rng.uniform(-math.pi, math.pi, count)])


def search(model: SensorModel, space: FreeSpace, sensed: Sensed, rng: np.random.Generator) -> Hypotheses:
    """Try ``search_density`` poses a square metre, at most ``search_limit``; align the best, keep what differs."""
    config = model.config
    count = max(1, min(config.search_limit, math.ceil(space.area * config.search_density)))
    candidates, points = space.poses(count, rng), sensed.some(config.max_beams)
    if not len(candidates) or len(points) < 3:
        return Hypotheses(np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.zeros((0, 3, 3)))
    first = model.field.score_poses(model.log_field(sensed.range_max), candidates, points)
    best = np.argsort(-first, kind="stable")[: 20 * _MOST_ALIGNED]
    chosen = _apart(candidates[best], _MOST_ALIGNED)
    started = candidates[best[chosen]]
    aligned = align(model.field, started, points, sigma=config.refine_sigma)
    scores, _ = model.log_weights(aligned.poses, sensed)
    merit = merits(model, aligned.poses, sensed)
    order = np.argsort(-(scores + WORTH * merit), kind="stable")
    order = order[_apart(aligned.poses[order], _MOST_ALIGNED)]
    return Hypotheses(aligned.poses[order], scores[order], merit[order], aligned.information[order])


def _apart(poses: Array, most: int) -> NDArray[np.int64]:
    """Indices of poses (in order of preference) that are not near to a preferred one."""
    left, chosen = np.ones(len(poses), dtype=np.bool_), []
    reach, turn = _APART
    for index in range(len(poses)):
        if not left[index]:
            continue
        chosen.append(index)
        if len(chosen) >= most:
            break
        near = np.abs(poses[:, 0] - poses[index, 0]) < reach
        near &= np.abs(poses[:, 1] - poses[index, 1]) < reach
        near &= np.abs(wrap_angle(poses[:, 2] - poses[index, 2])) < turn
        left &= ~near
    return np.array(chosen, dtype=np.int64)
