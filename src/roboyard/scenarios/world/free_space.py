"""A world seen from above: the obstacles at two heights, and where a robot has free space."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from roboyard.description import World
from roboyard.grids.floor_plan import TopDownMap
from roboyard.simulation import Simulation
from roboyard.simulation.floor_plan import floor_plan

_LOW_CUTS, _TALL_CUTS = (0.05, 0.15), (0.3, 0.6)
"""Heights of the cuts [m]: what a robot would touch, and what it cannot look over."""
_RESOLUTION = 0.05
_MAX_CELLS = 600_000
"""Larger worlds are cut more coarsely, so that no page and no search gets slow."""
_MARGIN = 0.5


def top_down_map(world: World | Simulation) -> TopDownMap:
    """What stands still in a world, seen from above.

    Args:
        world: As described, or as simulated already (which is quicker).

    Raises:
        DescriptionError: it cannot be built.
    """
    model = (world if isinstance(world, Simulation) else Simulation(world)).model
    extents = [
        floor_plan(model, height=height, resolution=0.5, margin=_MARGIN).extent for height in (*_LOW_CUTS, *_TALL_CUTS)
    ]
    low_x, high_x = min(e[0] for e in extents), max(e[1] for e in extents)
    low_y, high_y = min(e[2] for e in extents), max(e[3] for e in extents)
    area = (high_x - low_x) * (high_y - low_y)
    resolution = max(_RESOLUTION, float(np.sqrt(area / _MAX_CELLS)))
    bounds = (low_x, high_x, low_y, high_y)

    def cut_at(heights: tuple[float, ...]) -> NDArray[np.bool_]:
        plans = [floor_plan(model, height=height, resolution=resolution, bounds=bounds).occupied for height in heights]
        return reduce(np.logical_or, plans)

    return TopDownMap(cut_at(_LOW_CUTS), cut_at(_TALL_CUTS), (low_x, low_y), resolution)
