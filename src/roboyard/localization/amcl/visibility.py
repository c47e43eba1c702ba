"""Whether a pose can be: beams that end on a surface speak for it, beams that went through a wall against it."""

from __future__ import annotations

import math

import numpy as np

from roboyard.geometry import SE2
from roboyard.geometry.arrays import Array
from roboyard.grids import simulate_scans
from roboyard.localization.amcl.sensing import Sensed, SensorModel, evenly

_TOLERANCE = 0.3
"""A beam that ends so much behind what the map has there went through it [m]."""
_AGAINST, _SHORT = 2.0, 0.15
_LEAST_KEPT = 0.2


def merits(model: SensorModel, poses: Array, sensed: Sensed) -> Array:
    """Merit (n,) of poses (n, 3): share of beams explained, less twice the share that went through something solid.

    A beam that is shorter than the map says counts neither way: something may stand there that the map does not know.
    """
    explained, through = seen(model, poses, sensed)
    return np.asarray(explained - _AGAINST * through)


def without_strangers(model: SensorModel, pose: SE2, sensed: Sensed, nearer: float) -> Sensed:
    """A scan without beams that end before what the map has there by more than ``nearer`` [m], seen from a pose.

    People and boxes would pull the estimate to walls that are not theirs (the distance filter of D. Fox, W. Burgard,
    S. Thrun, Markov Localization for Mobile Robots in Dynamic Environments, JAIR 11, 1999).  Where hardly anything
    would be left, all beams stay.
    """
    laser = sensed.laser_poses(np.array([[pose.x, pose.y, pose.theta]]))
    high = sensed.range_max if math.isfinite(sensed.range_max) else 100.0
    expected = simulate_scans(model.solid, model.grid.geometry, laser, sensed.angles, high)[0]
    kept = ~(sensed.ranges < expected - nearer) | (~np.isfinite(expected))
    return sensed.only(kept) if kept.mean() >= _LEAST_KEPT else sensed


def belief(explained: float, through: float) -> float:
    """How far a scan leaves a pose possible: 1, less twice the share through walls, less a little for the rest.

    What stands about a robot shortens its beams and says next to nothing of where it is; but where everything is nearer
    than it should be for long, something is wrong.
    """
    return 1.0 - _AGAINST * through - _SHORT * (1.0 - explained - through)


def seen(model: SensorModel, poses: Array, sensed: Sensed) -> tuple[Array, Array]:
    """Shares (n,) of the beams that end on a surface, and that went through something solid, at poses (n, 3)."""
    chosen = evenly(len(sensed.ranges), model.config.max_beams)
    if not len(chosen) or not len(poses):
        return np.zeros(len(poses)), np.zeros(len(poses))
    high = sensed.range_max if math.isfinite(sensed.range_max) else 100.0
    measured, angles = np.minimum(sensed.ranges[chosen], high), sensed.angles[chosen]
    lasers = sensed.laser_poses(poses)
    expected = np.minimum(simulate_scans(model.solid, model.grid.geometry, lasers, angles, high), high)
    frame = model.field.geometry
    bearing = lasers[:, 2:] + angles
    ends = np.stack([lasers[:, :1] + measured * np.cos(bearing), lasers[:, 1:2] + measured * np.sin(bearing)], axis=-1)
    cells = frame.cells_of_points(ends)
    inside = frame.contains(cells)
    cells = np.where(inside[..., None], cells, 0)
    away = np.where(inside, model.field.distances[cells[..., 0], cells[..., 1]], model.field.limit)
    near = (away < max(0.1, 1.5 * frame.resolution)) & (measured < high)
    explained = near | ((measured >= high) & (expected >= high))
    through = ~explained & (measured > expected + _TOLERANCE)
    return explained.mean(axis=1), through.mean(axis=1)
