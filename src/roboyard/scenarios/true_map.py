"""The occupancy map that a perfect mapper would make of a world: its true floor plan."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from roboyard.compute import expect_kernels
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.grids.regions import label_components
from roboyard.simulation import Simulation
from roboyard.simulation.floor_plan import floor_plan


def true_map(
    simulation: Simulation,
    *,
    height: float = 0.25,
    also: Iterable[float] = (),
    resolution: float = 0.05,
    margin: float = 0.5,
    inside: Iterable[tuple[float, float]] = (),
) -> OccupancyGrid:
    """What stands still in a world, cut at a height, in the world's frame.

    Args:
        simulation: The world; what can move is left out.
        height: Of the cut [m]; that of the laser.
        also: Heights of further cuts within the first one's bounds [m]: what a robot would bump into that lies between.
        resolution: Side of a cell [m].
        margin: Free space around everything [m].
        inside: Places (x, y) [m]; what they are connected with is free, the rest unknown. Without any of them in
            a free cell, all that is not solid is free.

    Raises:
        ConfigError: a resolution that is not positive, or too many cells.
        InputError: nothing stands there at that height.
    """
    expect_kernels(label_components)
    plan = floor_plan(simulation.model, height=height, resolution=resolution, margin=margin)
    if not plan.occupied.any():
        raise InputError(f"nothing stands in the world at a height of {height} m", valid="a height that a wall has")
    occupied = plan.occupied
    for other in also:
        occupied = occupied | floor_plan(
            simulation.model, height=other, resolution=resolution, bounds=plan.extent
        ).occupied  # fmt: skip
    frame = GridGeometry(resolution, occupied.shape, SE2(*plan.origin, 0.0))
    regions, _ = label_components(~occupied, False)
    places = frame.cells_of_points(np.array(list(inside), dtype=np.float64).reshape(-1, 2))
    numbers = {int(regions[row, column]) for row, column in places[frame.contains(places)]} - {0}
    free = np.isin(regions, sorted(numbers)) if numbers else ~occupied
    cells = np.where(occupied, OCCUPIED, np.where(free, FREE, UNKNOWN))
    return OccupancyGrid(cells.astype(np.int8), frame)
