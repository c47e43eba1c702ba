"""The occupancy map of a trajectory: every scan drawn from where it was taken."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, InverseSensorModel, OccupancyGrid, OccupancyMapBuilder
from roboyard.mapping.preparation import Prepared

MAX_CELLS = 100_000_000
"""Cells of a map, at most: beyond, memory runs out."""
_MARGIN = 1.0


def draw(
    poses: Sequence[SE2], scans: Sequence[Prepared], resolution: float, model: InverseSensorModel | None = None
) -> OccupancyGrid:
    """Draw scans into a map that just holds them.

    Args:
        poses: ``T_map_base`` of each scan.
        scans: What was seen.
        resolution: Side of a cell [m].
        model: What beams prove.

    Raises:
        InputError: a resolution that is not positive, or so fine that the map would not fit into memory.
    """
    if not (math.isfinite(resolution) and resolution > 0.0):
        raise InputError(f"a map with a resolution of {resolution}", valid="metres, more than 0")
    low, high = np.zeros(2), np.zeros(2)
    for pose, scan in zip(poses, scans, strict=True):
        ends = pose @ scan.ends if len(scan.ends) else pose.xy[None]
        low, high = np.minimum(low, ends.min(axis=0)), np.maximum(high, ends.max(axis=0))
    size = (high - low + 2.0 * _MARGIN) / resolution
    if not size[0] * size[1] <= MAX_CELLS:
        raise InputError(f"a map of {size[0]:.0f} × {size[1]:.0f} cells", valid=f"at most {MAX_CELLS} cells")
    evidence = OccupancyMapBuilder(GridGeometry.covering(low - _MARGIN, high + _MARGIN, resolution), model)
    for pose, scan in zip(poses, scans, strict=True):
        if len(scan.ends):
            evidence.add_beams(pose @ scan.origin, pose @ scan.ends)
    return evidence.to_grid()
