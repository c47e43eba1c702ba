"""How much of the ground that a robot can come to has been seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.grids import GridGeometry, OccupancyGrid, distance_transform
from roboyard.grids.regions import label_components


def reachable_floor(solid: ArrayLike, frame: GridGeometry, start: ArrayLike, radius: float) -> NDArray[np.bool_]:
    """What a round robot can come to stand on.

    Args:
        solid: (rows, columns) what truly stands there; beyond the grid there is nothing to stand on.
        frame: Where the cells lie.
        start: (2,) where the robot is [m]; or where it is nearest to, if it does not fit there.
        radius: Of the robot [m].

    Returns:
        (rows, columns): all cells under the robot wherever it can get.

    Raises:
        InputError: it fits nowhere near.
    """
    blocked = np.asarray(solid, dtype=np.bool_)
    clearance = distance_transform(np.pad(blocked, 1, constant_values=True), frame.resolution)[1:-1, 1:-1]
    fits = clearance > radius
    row, column = frame.cells_of_points(start)
    places = np.argwhere(fits)
    away = np.hypot(places[:, 0] - row, places[:, 1] - column)
    if not len(places) or away.min() * frame.resolution > 2.0 * radius + 2.0 * frame.resolution:
        raise InputError(f"a robot of radius {radius} m does not fit at {np.asarray(start)}", valid="a free place")
    labels, _ = label_components(fits, False)  # over the four sides: no planner goes between two obstacles' corners
    first = places[np.argmin(away)]
    centres = labels == labels[first[0], first[1]]
    return np.asarray((distance_transform(centres, frame.resolution) <= radius) & ~blocked)


def coverage(grid: OccupancyGrid, floor: NDArray[np.bool_], frame: GridGeometry) -> float:
    """Share of the floor that the map knows.

    Args:
        grid: The map.
        floor: (rows, columns) as `reachable_floor` gives it.
        frame: Where the floor's cells lie, in the map.
    """
    points = frame.cell_centers(np.argwhere(floor))
    cells = grid.geometry.cells_of_points(points)
    inside = grid.geometry.contains(cells)
    known = grid.cells[cells[inside, 0], cells[inside, 1]] >= 0
    return float(np.count_nonzero(known)) / max(len(points), 1)
