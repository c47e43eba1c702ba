"""Places of a map that a robot can get to, for goals that nobody chose."""

from __future__ import annotations

import math

import numpy as np

from roboyard.geometry import SE2
from roboyard.grids import FREE, OccupancyGrid, distance_transform
from roboyard.grids.regions import label_components


def reachable_places(
    grid: OccupancyGrid, start: SE2, count: int, random: np.random.Generator, *, room: float, apart: float = 1.5,
    within: float = math.inf,
) -> list[SE2]:  # fmt: skip
    """Poses at random, in an order to visit them.

    Args:
        grid: The map.
        start: The robot's pose in the map.
        count: How many.
        random: Chooses.
        room: What they, and the ways between them, keep from all that is not free [m].
        apart: Each lies so far from the one before, if any place does [m].
        within: None lies farther than that from the start, in a straight line [m].

    Returns:
        ``count`` poses in the map; none if the robot does not stand on free ground with that room about it.
    """
    clear = distance_transform(grid.cells != FREE, grid.geometry.resolution) > room
    parts, _ = label_components(clear, False)
    cell = grid.geometry.cells_of_points(start.xy)
    if not grid.geometry.contains(cell) or not clear[cell[0], cell[1]]:
        return []
    points = grid.geometry.cell_centers(np.argwhere(parts == parts[cell[0], cell[1]]))
    points = points[np.hypot(points[:, 0] - start.x, points[:, 1] - start.y) <= within]
    chosen, last = [], start
    for _ in range(count):
        far = points[np.hypot(points[:, 0] - last.x, points[:, 1] - last.y) >= apart]
        x, y = random.choice(far if len(far) else points)
        last = SE2(float(x), float(y), float(random.uniform(-math.pi, math.pi)))
        chosen.append(last)
    return chosen
