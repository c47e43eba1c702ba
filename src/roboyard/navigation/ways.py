"""How far it is from place to place over a map, for plans that choose where to go."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.navigation.costmap import InflationLayer, LayeredCostmap, StaticLayer
from roboyard.navigation.errors import NavigationError
from roboyard.navigation.planning.wave import WavePlanner

Place = tuple[float, float, float]


def ways_over(grid: OccupancyGrid, radius: float) -> Callable[[Place, Place], float]:
    """A function of two places, x, y [m] and yaw [rad], that says how long a way between them costs [m of free ground].

    It is infinite where there is none: through less room than a circle of that radius [m] needs, or over what is not
    known.  One wave is kept for each place that was asked for as the second of the two.
    """
    static, around = StaticLayer(), InflationLayer(radius, radius + grid.geometry.resolution)
    static.take(grid)
    layers = LayeredCostmap(grid.geometry, [static, around], unknown=True)
    layers.update()
    costmap = layers.costmap()
    planner = WavePlanner()
    waves: dict[Place, NDArray[np.float32] | None] = {}

    def way(a: Place, b: Place) -> float:
        if b not in waves:
            try:
                waves[b] = planner.potential(costmap, SE2(*b))
            except NavigationError:
                waves[b] = None
        wave = waves[b]
        cell = grid.geometry.cells_of_points(np.array(a[:2]))
        if wave is None or not grid.geometry.contains(cell):
            return float("inf")
        return float(wave[cell[0], cell[1]])

    return way
