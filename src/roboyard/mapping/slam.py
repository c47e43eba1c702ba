"""The interface of all SLAM algorithms, and the occupancy map of a trajectory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, InverseSensorModel, OccupancyGrid, OccupancyMapBuilder
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.scan import LaserScan, PreprocessedScan
from roboyard.mapping.trajectory import PoseTrajectory


class Slam(Protocol):
    """Simultaneous localisation and mapping, one scan at a time.

    Deterministic: the same scans in the same order give the same bits; randomness comes from a seed in the
    configuration.
    """

    def process(self, scan: LaserScan) -> SE2:
        """Take the next scan; scans come in the order of their times.

        Returns:
            ``T_map_base`` at the scan's time, as it is believed now; later scans may correct it, see ``trajectory``.
        """
        ...

    def finish(self) -> None:
        """Do what was put off: last loop search and optimisation. More scans may follow."""
        ...

    def trajectory(self) -> PoseTrajectory:
        """``T_map_base`` of all scans so far, as they are believed now."""
        ...

    def graph(self) -> PoseGraph:
        """Nodes and edges as they are believed now."""
        ...

    def occupancy(self, resolution: float) -> OccupancyGrid:
        """The map as it is believed now, with cells of that side [m]."""
        ...


MAX_CELLS = 100_000_000
"""Cells of a map, at most: beyond, memory runs out."""
_MARGIN = 1.0


def draw_occupancy_map(
    poses: Sequence[SE2], scans: Sequence[PreprocessedScan], resolution: float, model: InverseSensorModel | None = None
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
    builder = OccupancyMapBuilder(GridGeometry.covering(low - _MARGIN, high + _MARGIN, resolution), model)
    for pose, scan in zip(poses, scans, strict=True):
        if len(scan.ends):
            builder.add_beams(pose @ scan.origin, pose @ scan.ends)
    return builder.to_grid()
