"""What of a map stands in the way of somebody of a certain height: a map of the plane."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.mapping.octree.blocks import ORIGIN
from roboyard.mapping.octree.leaves import Leaves

MOST_CELLS: Final = 100_000_000


def project(leaves: Leaves, low: float, high: float) -> OccupancyGrid:
    """The plane below a map: occupied where anything in a band of heights is, free where something there is free.

    Args:
        leaves: Of the map.
        low: Lowest middle of a voxel that counts [m].
        high: Highest [m].

    Raises:
        InputError: it would be too large.
    """
    keys, edges, resolution = leaves.keys, leaves.voxels, leaves.resolution
    # numbers of the lowest and highest voxels whose middles are in the band
    bottom = math.ceil(max(low / resolution - 0.5, -ORIGIN) - 1e-9) + ORIGIN
    top = math.floor(min(high / resolution - 0.5, ORIGIN) + 1e-9) + ORIGIN
    counts = (keys[:, 2] <= top) & (keys[:, 2] + edges > bottom)
    keys, edges, occupied = keys[counts], edges[counts], leaves.occupied[counts]
    if not len(keys):
        return OccupancyGrid(np.zeros((0, 0), np.int8), GridGeometry(resolution, (0, 0)))
    corner, end = keys[:, :2].min(axis=0), (keys[:, :2] + edges[:, None]).max(axis=0)
    columns, rows = (int(n) for n in end - corner)
    if rows * columns > MOST_CELLS:
        raise InputError(f"a projection of {rows} × {columns} cells", valid=f"at most {MOST_CELLS}")
    cells = np.full((rows, columns), UNKNOWN, dtype=np.int8)
    shade(cells, keys[:, :2] - corner, edges, occupied)
    x, y = (float(value) for value in (corner - ORIGIN) * resolution)
    return OccupancyGrid(cells, GridGeometry(resolution, cells.shape, SE2(x, y, 0.0)))


@kernel(
    examples=lambda: [
        (np.zeros((1, 1), np.int8), np.zeros((1, 2), np.int64), np.ones(1, np.int64), np.zeros(1, np.bool_)),
    ]
)
def shade(
    cells: NDArray[np.int8], places: NDArray[np.int64], edges: NDArray[np.int64], occupied: NDArray[np.bool_]
) -> None:
    """Write squares into cells; what is occupied wins.

    Args:
        cells: (rows, columns), written.
        places: (n, 2) lowest column and row of each.
        edges: (n,) in cells.
        occupied: (n,) else they are free.
    """
    for k in range(len(places)):
        value = OCCUPIED if occupied[k] else FREE
        for row in range(places[k, 1], places[k, 1] + edges[k]):
            for column in range(places[k, 0], places[k, 0] + edges[k]):
                cells[row, column] = max(cells[row, column], value)
