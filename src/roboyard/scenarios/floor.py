"""A world seen from above: what tracks are drawn on, and where there is room for a robot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from roboyard.description import World
from roboyard.errors import InputError
from roboyard.simulation import Simulation
from roboyard.simulation.floor_plan import floor_plan

_LOW, _TALL = (0.05, 0.15), (0.3, 0.6)
"""Heights of the cuts [m]: what a robot would touch, and what it cannot look over."""
_RESOLUTION = 0.05
_MOST_CELLS = 600_000
"""Larger worlds are cut more coarsely, so that no page and no search gets slow."""
_MARGIN = 0.5


@dataclass(frozen=True, slots=True)
class Floor:
    """Level cuts of a world.

    Attributes:
        low: (rows, columns) what stands on the ground; row 0 has the lowest y.
        tall: (rows, columns) what is higher than a robot.
        origin: (x, y) of the outer corner of cell (0, 0) [m].
        resolution: Edge of a cell [m].
    """

    low: NDArray[np.bool_]
    tall: NDArray[np.bool_]
    origin: tuple[float, float]
    resolution: float

    @property
    def empty(self) -> bool:
        """Whether nothing stands there."""
        return not (self.low.any() or self.tall.any())

    @property
    def centres(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """x of the columns' and y of the rows' middles [m]."""
        rows, columns = self.low.shape
        x, y = self.origin
        return x + (np.arange(columns) + 0.5) * self.resolution, y + (np.arange(rows) + 0.5) * self.resolution

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Rectangle (x0, y0, x1, y1) [m] that holds everything; None if nothing stands there."""
        if self.empty:
            return None
        x, y = self.centres
        solid = self.low | self.tall
        columns, rows = np.flatnonzero(solid.any(axis=0)), np.flatnonzero(solid.any(axis=1))
        half = self.resolution / 2.0
        return (
            float(x[columns[0]] - half),
            float(y[rows[0]] - half),
            float(x[columns[-1]] + half),
            float(y[rows[-1]] + half),
        )

    def free_place(self, radius: float) -> tuple[float, float]:
        """The place nearest to the origin with room for a disc of ``radius`` [m].

        Raises:
            InputError: there is none.
        """
        if self.empty:
            return 0.0, 0.0
        from scipy.ndimage import distance_transform_edt

        solid = np.pad(self.low | self.tall, 1, constant_values=False)
        clearance = np.asarray(distance_transform_edt(~solid))[1:-1, 1:-1] * self.resolution
        x, y = np.meshgrid(*self.centres)
        away = np.where(clearance - self.resolution >= radius, np.hypot(x, y), np.inf)
        best = np.unravel_index(int(np.argmin(away)), away.shape)
        if not np.isfinite(away[best]):
            raise InputError(f"the world has no free place of {2 * radius:.2f} m")
        return round(float(x[best]), 3), round(float(y[best]), 3)


def floor_of(world: World | Simulation) -> Floor:
    """What stands still in a world, seen from above.

    Args:
        world: As described, or as simulated already (which is quicker).

    Raises:
        DescriptionError: it cannot be built.
    """
    model = (world if isinstance(world, Simulation) else Simulation(world)).model
    frame = [floor_plan(model, height=height, resolution=0.5, margin=_MARGIN).extent for height in (*_LOW, *_TALL)]
    low_x, high_x = min(e[0] for e in frame), max(e[1] for e in frame)
    low_y, high_y = min(e[2] for e in frame), max(e[3] for e in frame)
    area = (high_x - low_x) * (high_y - low_y)
    resolution = max(_RESOLUTION, float(np.sqrt(area / _MOST_CELLS)))
    bounds = (low_x, high_x, low_y, high_y)

    def cut(heights: tuple[float, ...]) -> NDArray[np.bool_]:
        plans = [floor_plan(model, height=height, resolution=resolution, bounds=bounds).occupied for height in heights]
        return reduce(np.logical_or, plans)

    return Floor(cut(_LOW), cut(_TALL), (low_x, low_y), resolution)
