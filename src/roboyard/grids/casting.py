"""What range finders would measure in a grid."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.grids.frame import GridGeometry
from roboyard.grids.rays import cast_rays


def simulate_scans(
    occupied: ArrayLike, geometry: GridGeometry, poses: ArrayLike, angles: ArrayLike, range_max: float
) -> NDArray[np.float64]:
    """Ranges of beams from some poses.

    Args:
        occupied: (rows, columns) cells that stop a beam.
        geometry: Where the cells lie.
        poses: (n, 3) of the range finder in the map: x, y [m], heading [rad].
        angles: (m,) of the beams from the heading [rad].
        range_max: Longest range [m].

    Returns:
        (n, m) ranges [m] to where the beams enter a solid cell; infinite where there is none within ``range_max``.
    """
    sensor_poses = np.asarray(poses, dtype=np.float64).reshape(-1, 3)
    beams = np.asarray(angles, dtype=np.float64).reshape(-1)
    rays = np.empty((len(sensor_poses), len(beams), 3))
    rays[..., :2] = ((geometry.T_map_grid.inverse() @ sensor_poses[:, :2]) / geometry.resolution)[:, None]
    rays[..., 2] = sensor_poses[:, 2:] - geometry.T_map_grid.theta + beams
    max_cells = range_max / geometry.resolution
    lengths = cast_rays(np.ascontiguousarray(occupied, dtype=np.bool_), rays.reshape(-1, 3), max_cells)
    return np.where(lengths < max_cells, lengths * geometry.resolution, math.inf).reshape(len(sensor_poses), len(beams))
