"""What of a map stands in the way of somebody of a certain height: a map of the plane."""

from __future__ import annotations

import numpy as np

from roboyard.geometry import SE2
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridFrame, OccupancyGrid
from roboyard.mapping.octree.blocks import ORIGIN
from roboyard.mapping.octree.leaves import Leaves


def project(leaves: Leaves, low: float, high: float) -> OccupancyGrid:
    """The plane below a map: occupied where anything in a band of heights is, free where something there is free.

    Args:
        leaves: Of the map.
        low: Lowest middle of a voxel that counts [m].
        high: Highest [m].
    """
    keys, edges, resolution = leaves.keys, leaves.voxels, leaves.resolution
    middles = (keys[:, 2] - ORIGIN + 0.5) * resolution
    highest = middles + (edges - 1) * resolution
    # a large leaf counts if one of its voxels does
    first = np.ceil((low - middles) / resolution - 1e-9)
    counts = (highest >= low) & (middles + np.maximum(first, 0) * resolution <= min(high, 1e9) + 1e-9)
    keys, edges, occupied = keys[counts], edges[counts], leaves.occupied[counts]
    if not len(keys):
        return OccupancyGrid(np.zeros((0, 0), np.int8), GridFrame(resolution, (0, 0)))
    corner, end = keys[:, :2].min(axis=0), (keys[:, :2] + edges[:, None]).max(axis=0)
    columns, rows = (int(n) for n in end - corner)
    cells = np.full((rows, columns), UNKNOWN, dtype=np.int8)
    for value, chosen in ((FREE, ~occupied), (OCCUPIED, occupied)):
        for edge in np.unique(edges[chosen]):
            inside = np.indices((int(edge),) * 2).reshape(2, -1).T
            places = keys[chosen & (edges == edge), None, :2] - corner + inside[None]
            cells[places[..., 1], places[..., 0]] = value
    x, y = (float(value) for value in (corner - ORIGIN) * resolution)
    return OccupancyGrid(cells, GridFrame(resolution, cells.shape, SE2(x, y, 0.0)))
