"""What range finders would measure in a grid."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.grids.frame import GridFrame
from roboyard.grids.rays import cast_rays


def cast_scans(
    solid: ArrayLike, frame: GridFrame, poses: ArrayLike, angles: ArrayLike, range_max: float
) -> NDArray[np.float64]:
    """Ranges of beams from some poses.

    Args:
        solid: (rows, columns) cells that stop a beam.
        frame: Where the cells lie.
        poses: (n, 3) of the range finder in the map: x, y [m], heading [rad].
        angles: (m,) of the beams from the heading [rad].
        range_max: Longest range [m].

    Returns:
        (n, m) ranges [m] to where the beams enter a solid cell; infinite where there is none within ``range_max``.
    """
    where = np.asarray(poses, dtype=np.float64).reshape(-1, 3)
    beams = np.asarray(angles, dtype=np.float64).reshape(-1)
    rays = np.empty((len(where), len(beams), 3))
    rays[..., :2] = ((frame.T_map_grid.inverse() @ where[:, :2]) / frame.resolution)[:, None]
    rays[..., 2] = where[:, 2:] - frame.T_map_grid.theta + beams
    reach = range_max / frame.resolution
    lengths = cast_rays(np.ascontiguousarray(solid, dtype=np.bool_), rays.reshape(-1, 3), reach)
    return np.where(lengths < reach, lengths * frame.resolution, math.inf).reshape(len(where), len(beams))
