"""Grids over the plane: where their cells lie, what they hold, and the kernels that mapping, localisation and
navigation share.

A grid's array has shape (rows, columns): rows go along y, columns along x of the grid's own frame, whose origin is the
corner of cell (0, 0).
"""

from roboyard.grids.frame import GridFrame
from roboyard.grids.occupancy import FREE, OCCUPIED, UNKNOWN, OccupancyGrid

__all__ = ["FREE", "OCCUPIED", "UNKNOWN", "GridFrame", "OccupancyGrid"]
