"""A world seen from above: the obstacles at two heights, and where a robot has free space."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from roboyard.description import World
from roboyard.grids.floor_plan import TopDownMap
from roboyard.simulation import Simulation
from roboyard.simulation.ground_truth_maps import make_floor_plan

_LOW_CUTS, _TALL_CUTS = (0.05, 0.15), (0.3, 0.6)
"""Heights of the cuts: what a robot would touch, and what its sensors cannot see over [m]."""
_RESOLUTION = 0.05
_MAX_CELLS = 600_000
"""Worlds with more cells are cut with larger ones, so that pages and searches stay quick."""
_MARGIN = 0.5


def top_down_map(world: World | Simulation, *, excluded_actors: Collection[str] | None = None) -> TopDownMap:
    """Return the fixed obstacles of a world, seen from above, and on request those that can move.

    Args:
        world: As described, or as simulated already (which is quicker).
        actors: Names of robots and people of a simulation; then the map has everything else that can move or came
            during the run, where it is now.  None: only fixed obstacles.

    Raises:
        DescriptionError: The world cannot be built.
    """
    simulation = world if isinstance(world, Simulation) else Simulation(world)
    model, data = simulation.world.model, simulation.world.data
    heights = (*_LOW_CUTS, *_TALL_CUTS)
    extents = [make_floor_plan(model, height=height, resolution=0.5, margin=_MARGIN).extent for height in heights]
    if excluded_actors is not None:
        extents += [
            make_floor_plan(
                model,
                data,
                height=height,
                resolution=0.5,
                margin=_MARGIN,
                include_moving=True,
                excluded_models=tuple(excluded_actors),
            ).extent
            for height in heights
        ]
    low_x, high_x = min(e[0] for e in extents), max(e[1] for e in extents)
    low_y, high_y = min(e[2] for e in extents), max(e[3] for e in extents)
    area = (high_x - low_x) * (high_y - low_y)
    resolution = max(_RESOLUTION, float(np.sqrt(area / _MAX_CELLS)))
    bounds = (low_x, high_x, low_y, high_y)

    def cut_at(heights: tuple[float, ...]) -> NDArray[np.bool_]:
        plans = [
            make_floor_plan(model, height=height, resolution=resolution, bounds=bounds).occupied for height in heights
        ]
        return reduce(np.logical_or, plans)

    low_obstacles, tall_obstacles = cut_at(_LOW_CUTS), cut_at(_TALL_CUTS)
    movable_obstacles = None
    if excluded_actors is not None:
        cuts = (
            make_floor_plan(
                model,
                data,
                height=height,
                resolution=resolution,
                bounds=bounds,
                include_moving=True,
                excluded_models=tuple(excluded_actors),
            ).occupied
            for height in heights
        )
        movable_obstacles = reduce(np.logical_or, cuts) & ~(low_obstacles | tall_obstacles)
    return TopDownMap(low_obstacles, tall_obstacles, (low_x, low_y), resolution, movable_obstacles)
