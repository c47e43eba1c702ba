"""Geometry of planar grids, and occupancy grids with free, occupied and unknown cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.geometry.arrays import as_points


@dataclass(frozen=True, slots=True)
class GridGeometry:
    """Geometry of a grid in the plane of a map.

    Attributes:
        resolution: Edge length of a cell [m].
        shape: Number of rows (along y) and columns (along x of the grid's frame).
        T_map_grid: Pose of the outer corner of cell (0, 0) in the map.

    Raises:
        InputError: The resolution is not positive, or a number of cells is negative.
    """

    resolution: float
    shape: tuple[int, int]
    T_map_grid: SE2 = field(default_factory=SE2.identity)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.resolution) and self.resolution > 0.0):
            raise InputError(f"grid resolution must be positive, got {self.resolution}", valid="meters, more than 0")
        if len(self.shape) != 2 or min(self.shape) < 0:
            raise InputError(f"invalid grid shape {self.shape}", valid="(rows, columns)")

    @classmethod
    def covering(cls, low: ArrayLike, high: ArrayLike, resolution: float) -> GridGeometry:
        """Make the smallest grid along the map's axes that contains the box from `low` to `high` (2,) [m].

        Its corners are multiples of the resolution, so that the cells of grids of one map coincide.
        """
        first = np.floor(np.asarray(low, dtype=np.float64) / resolution - 1e-9)
        last = np.ceil(np.asarray(high, dtype=np.float64) / resolution + 1e-9)
        columns, rows = (int(count) for count in last - first)
        return cls(resolution, (rows, columns), SE2(first[0] * resolution, first[1] * resolution, 0.0))

    @property
    def extent(self) -> tuple[float, float]:
        """Extent along x and y of the grid's frame [m]."""
        return self.shape[1] * self.resolution, self.shape[0] * self.resolution

    def cells_of_points(self, points: ArrayLike) -> NDArray[np.int64]:
        """Return row and column (..., 2) of points (..., 2) in the map [m]; outside the shape for points outside."""
        inside = self.T_map_grid.inverse() @ as_points(points, 2)
        return np.floor(inside / self.resolution).astype(np.int64)[..., ::-1]

    def cell_centers(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the centers (..., 2) in the map [m] of cells (..., 2), given as row and column."""
        centers = (np.asarray(cells, dtype=np.float64)[..., ::-1] + 0.5) * self.resolution
        return self.T_map_grid @ centers

    def contains(self, cells: ArrayLike) -> NDArray[np.bool_]:
        """Return whether cells (..., 2) belong to the grid."""
        rows_columns = np.asarray(cells)
        return np.asarray(((rows_columns >= 0) & (rows_columns < np.asarray(self.shape))).all(axis=-1))

    def to_state(self) -> tuple[float, tuple[int, int], tuple[float, float, float]]:
        """Return the geometry as plain data: resolution [m], shape, and x [m], y [m] and angle [rad] of the corner."""
        corner = self.T_map_grid
        return self.resolution, self.shape, (corner.x, corner.y, corner.theta)

    @classmethod
    def from_state(cls, saved: tuple[Any, ...]) -> GridGeometry:
        """Return the geometry of which `to_state` returned the data."""
        resolution, (rows, columns), corner = saved
        return cls(resolution, (int(rows), int(columns)), SE2(*corner))


UNKNOWN, FREE, OCCUPIED = -1, 0, 100
"""Cell values as in nav_msgs/OccupancyGrid."""

OCCUPIED_THRESHOLD = 65
"""Minimum value of an occupied cell, as in ROS's map_server (``occupied_thresh: 0.65``)."""
FREE_THRESHOLD = 19.6
"""Maximum value of a free cell, as in ROS's map_server (``free_thresh: 0.196``)."""


@dataclass(frozen=True, slots=True)
class OccupancyGrid:
    """Occupancy grid map.

    Attributes:
        cells: (rows, columns) int8: -1 unknown, else the probability of an obstacle from 0 to 100.
        geometry: Geometry of the cells.

    Raises:
        InputError: The shape of the cells differs from the geometry's, or a value is out of range.
    """

    cells: NDArray[np.int8]
    geometry: GridGeometry

    def __post_init__(self) -> None:
        cells = np.asarray(self.cells)
        if cells.shape != self.geometry.shape:
            raise InputError(
                f"cells have the shape {cells.shape}, but the grid geometry has {self.geometry.shape}",
                valid="equal shapes",
            )
        if cells.size and (cells.dtype.kind not in "iu" or cells.min() < UNKNOWN or cells.max() > OCCUPIED):
            raise InputError(
                f"cells have the type {cells.dtype} and values from {cells.min()} to {cells.max()}",
                valid="integers from -1 to 100",
            )
        cells = np.array(cells, dtype=np.int8)
        cells.flags.writeable = False
        object.__setattr__(self, "cells", cells)

    def to_state(self) -> tuple[Any, ...]:
        """Return the cells, and the geometry as `GridGeometry.to_state` does, as plain data."""
        return (self.cells, *self.geometry.to_state())

    @classmethod
    def from_state(cls, saved: tuple[Any, ...]) -> OccupancyGrid:
        """Return the grid of which `to_state` returned the data."""
        return cls(saved[0], GridGeometry.from_state(saved[1:]))
