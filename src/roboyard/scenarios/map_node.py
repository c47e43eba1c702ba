"""A map server whose map is the world's true floor plan."""

from __future__ import annotations

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.messages import msg
from roboyard.messages.convert import grid_to_msg
from roboyard.scenarios.true_map import true_map
from roboyard.simulation import Simulation


class WorldMapNodeConfig(Config):
    """Configuration of `WorldMapNode`."""

    map_frame: str = parameter("map", doc="Frame of the map.")
    resolution: float = parameter(0.05, unit="m", low=0.005, high=10.0, doc="Edge of a cell.")
    height: float = parameter(0.25, unit="m", low=-100.0, high=100.0, doc="Height of the cut, that of the laser.")

    also: tuple[float, ...] = parameter((), unit="m", doc="Heights of further cuts that are drawn into the same map.")


class WorldMapNode(Node[WorldMapNodeConfig]):
    """Publishes the true floor plan of the world as the map, for who has not mapped it.

    out: map (nav_msgs/OccupancyGrid, latched)

    It knows what stands still when it comes up, and says in the log that this is the truth.  The map's frame is the
    world's.
    """

    simulation: Simulation = resource(Simulation)

    def setup(self) -> None:
        """Publish."""
        world = self.simulation
        robots = [name for name, handle in world.models.items() if handle.is_robot]
        places = [(float(x), float(y)) for x, y, _ in (world.truth(name).pose.translation for name in robots)]
        try:
            grid = true_map(
                world,
                height=self.config.height,
                also=self.config.also,
                resolution=self.config.resolution,
                inside=places,
            )
        except InputError as error:
            self.log.error(f"there is no map: {error}")
            self.report_health("error", "there is no map", reason=str(error))
            return
        frame = grid.geometry
        publisher = self.publisher("map", msg.OccupancyGrid, latched=True)
        publisher.publish(
            grid_to_msg(grid.cells, frame.resolution, frame.T_map_grid, self.config.map_frame, self.now_ns)
        )
        self.log.warn("the map is the true floor plan of the world")
        rows, columns = frame.shape
        self.report_health("ok", f"true floor plan, {columns} x {rows} cells of {frame.resolution:g} m")
