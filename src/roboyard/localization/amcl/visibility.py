"""Whether a pose can be: beams that end on a surface speak for it, beams that went through a wall against it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.grids import cast_scans
from roboyard.localization.amcl.sensing import Sensed, SensorModel, evenly

Array = NDArray[np.float64]
_TOLERANCE = 0.3
"""A beam that ends so much behind what the map has there went through it [m]."""
_AGAINST = 2.0


def merits(model: SensorModel, poses: Array, sensed: Sensed) -> Array:
    """Merit (n,) of poses (n, 3): share of beams explained, less twice the share that went through something solid.

    A beam that is shorter than the map says counts neither way: something may stand there that the map does not know.
    """
    chosen = evenly(len(sensed.ranges), model.config.max_beams)
    if not len(chosen) or not len(poses):
        return np.zeros(len(poses))
    high = sensed.range_max if math.isfinite(sensed.range_max) else 100.0
    measured, angles = np.minimum(sensed.ranges[chosen], high), sensed.angles[chosen]
    lasers = sensed.laser_poses(poses)
    expected = np.minimum(cast_scans(model.solid, model.grid.frame, lasers, angles, high), high)
    frame = model.field.frame
    bearing = lasers[:, 2:] + angles
    ends = np.stack([lasers[:, :1] + measured * np.cos(bearing), lasers[:, 1:2] + measured * np.sin(bearing)], axis=-1)
    cells = frame.cells(ends)
    inside = frame.contains(cells)
    cells = np.where(inside[..., None], cells, 0)
    away = np.where(inside, model.field.distances[cells[..., 0], cells[..., 1]], model.field.limit)
    near = (away < max(0.1, 1.5 * frame.resolution)) & (measured < high)
    explained = near | ((measured >= high) & (expected >= high))
    through = ~explained & (measured > expected + _TOLERANCE)
    return np.asarray(explained.mean(axis=1) - _AGAINST * through.mean(axis=1), dtype=np.float64)
