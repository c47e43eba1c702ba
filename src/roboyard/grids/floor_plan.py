"""Level cuts of a world as grids: one cut, and the map from above that reports draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError


@dataclass(frozen=True, slots=True)
class FloorPlan:
    """Occupied cells of a level cut.

    Attributes:
        occupied: (rows, columns); row 0 has the lowest y, column 0 the lowest x.
        origin: (x, y) of the outer corner of cell (0, 0) in the world [m].
        resolution: Edge of a cell [m].
        height: Height of the cut [m].
    """

    occupied: NDArray[np.bool_]
    origin: tuple[float, float]
    resolution: float
    height: float

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """(x low, x high, y low, y high) [m], as matplotlib's ``imshow(..., origin="lower")`` wants it."""
        rows, columns = self.occupied.shape
        (x, y), r = self.origin, self.resolution
        return x, x + columns * r, y, y + rows * r


@dataclass(frozen=True, slots=True)
class TopDownMap:
    """Level cuts of a world.

    Attributes:
        low_obstacles: (rows, columns) fixed obstacles at the height of a robot's base; row 0 has the lowest y.
        tall_obstacles: (rows, columns) fixed obstacles that are higher than a robot.
        origin: (x, y) of the outer corner of cell (0, 0) [m].
        resolution: Edge of a cell [m].
        movable_obstacles: (rows, columns) obstacles that can move or came during the run, at their present poses;
            None: unknown.
    """

    low_obstacles: NDArray[np.bool_]
    tall_obstacles: NDArray[np.bool_]
    origin: tuple[float, float]
    resolution: float
    movable_obstacles: NDArray[np.bool_] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is no fixed obstacle."""
        return not (self.low_obstacles.any() or self.tall_obstacles.any())

    @property
    def cell_centers(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """x of the columns' and y of the rows' centers [m]."""
        rows, columns = self.low_obstacles.shape
        x, y = self.origin
        return x + (np.arange(columns) + 0.5) * self.resolution, y + (np.arange(rows) + 0.5) * self.resolution

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Rectangle (x0, y0, x1, y1) around all obstacles [m]; None if there are none."""
        x, y = self.cell_centers
        occupied = self.low_obstacles | self.tall_obstacles
        if self.movable_obstacles is not None:
            occupied = occupied | self.movable_obstacles
        if not occupied.any():
            return None
        columns, rows = np.flatnonzero(occupied.any(axis=0)), np.flatnonzero(occupied.any(axis=1))
        half = self.resolution / 2.0
        return (
            float(x[columns[0]] - half),
            float(y[rows[0]] - half),
            float(x[columns[-1]] + half),
            float(y[rows[-1]] + half),
        )

    def find_free_position(self, radius: float) -> tuple[float, float]:
        """The place nearest to the origin with room for a disc of ``radius`` [m].

        Raises:
            InputError: there is none.
        """
        if self.is_empty:
            return 0.0, 0.0
        from scipy.ndimage import distance_transform_edt

        occupied = np.pad(self.low_obstacles | self.tall_obstacles, 1, constant_values=False)
        clearance = np.asarray(distance_transform_edt(~occupied))[1:-1, 1:-1] * self.resolution
        x, y = np.meshgrid(*self.cell_centers)
        distance = np.where(clearance - self.resolution >= radius, np.hypot(x, y), np.inf)
        best = np.unravel_index(int(np.argmin(distance)), distance.shape)
        if not np.isfinite(distance[best]):
            raise InputError(f"the world has no free place of {2 * radius:.2f} m")
        return round(float(x[best]), 3), round(float(y[best]), 3)
