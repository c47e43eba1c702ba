"""The true shape of a run's world, robots left out: what their maps are judged against."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.simulation import Simulation
from roboyard.simulation.floor_plan import FloorPlan, floor_plan
from roboyard.simulation.surface_voxels import surface_voxels, voxelise


class TrueShapes:
    """Looks at a world as it stands at the moment.

    Args:
        simulation: The world.
        robots: Names of what is left out, as they are then.
    """

    def __init__(self, simulation: Simulation, robots: Collection[str]) -> None:
        self._simulation, self._robots = simulation, robots

    def plan(self, height: float, resolution: float) -> FloorPlan:
        """A level cut at a height [m], with cells of a side [m]."""
        model, data = self._simulation.model, self._simulation.data
        return floor_plan(model, data, height=height, resolution=resolution, moving=True, without=tuple(self._robots))

    def surfaces(
        self, low: NDArray[np.float64], shape: tuple[int, int, int], resolution: float, tolerance: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Voxels that surfaces touch and cross, see `surface_voxels`."""
        expect_kernels(voxelise)
        scene = self._simulation.scene()
        return surface_voxels(
            scene.model, scene.data, low, shape, resolution, tolerance=tolerance, without=tuple(self._robots)
        )
