"""A map of heights that is the truth: rays from above."""

from __future__ import annotations

import mujoco
import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap
from roboyard.mapping.nodes.grid_map_messages import heights_to_msg
from roboyard.messages import msg
from roboyard.simulation import Simulation
from roboyard.simulation.naming import COLLISION

_ABOVE = 10.0
"""Rays begin so high [m]."""
_UNSEEN = 5
"""A group that nothing else is in."""


class WorldHeightsNodeConfig(Config):
    """Configuration of `WorldHeightsNode`."""

    map_frame: str = parameter("map", doc="Frame of the map.")
    area: tuple[float, ...] = parameter((-1.0, -1.6, 3.2, 1.6), unit="m", doc="Smallest x and y, largest x and y.")
    cell: float = parameter(0.02, unit="m", low=0.005, high=1.0, doc="Edge of a cell.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=100.0, doc="Rate of the checks of the world.")


class WorldHeightsNode(Node[WorldHeightsNodeConfig]):
    """Publishes the true heights of the ground round the robots and a place, for who has not mapped it.

    out: elevation_map (grid_map_msgs/GridMap, latched; again whenever something stands in the world that did not, or
    is gone)

    It says in the log that this is the truth.  The map's frame is the world's; what moves is not in it.
    """

    simulation: Simulation = resource(Simulation)

    state_fields = ("_known",)

    def setup(self) -> None:
        """Look, and go on looking."""
        self._known: list[str] = []
        self._publisher = self.publisher("elevation_map", msg.GridMap, latched=True)
        self.log.warn(f"{self.resolve('elevation_map')} is the truth of the simulation, no estimate")
        self.report_health("warn", "this is the truth, no estimate")
        self.timer(rate=self.config.rate, callback=self._look, immediate=True)

    def _look(self) -> None:
        names = sorted(name for name, handle in self.simulation.models.items() if not handle.is_robot)
        if names != self._known:
            self._known = names
            x0, y0, x1, y1 = self.config.area
            columns, rows = round((x1 - x0) / self.config.cell), round((y1 - y0) / self.config.cell)
            heights = true_heights(self.simulation, (x0, y0), (rows, columns), self.config.cell)
            ground = HeightMap(heights, (x0, y0), self.config.cell)
            self._publisher.publish(heights_to_msg(ground, self.now_ns, self.frame(self.config.map_frame)))


def true_heights(simulation: Simulation, corner: tuple[float, float], shape: tuple[int, int], cell: float) -> Array:
    """(rows, columns) how high what stands still is at the middles of cells [m]; nan where nothing is.

    Args:
        simulation: The world; what moves is looked through.
        corner: Of the least x and y [m].
        shape: Rows along y, columns along x.
        cell: Edge of a cell [m].
    """
    model, data = simulation.model, simulation.data
    seen, groups = np.zeros(6, np.uint8), model.geom_group.copy()
    seen[COLLISION] = 1
    out = np.full(shape, np.nan)
    geom, down = np.zeros(1, np.int32), np.array([0.0, 0.0, -1.0])
    try:
        model.geom_group[model.body_weldid[model.geom_bodyid] != 0] = _UNSEEN
        for row in range(shape[0]):
            for column in range(shape[1]):
                place = np.array([corner[0] + (column + 0.5) * cell, corner[1] + (row + 0.5) * cell, _ABOVE])
                far = mujoco.mj_ray(model, data, place, down, seen, 1, -1, geom, None)
                if far >= 0.0:
                    out[row, column] = _ABOVE - far
    finally:
        model.geom_group[:] = groups
    return out
