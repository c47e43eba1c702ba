"""Nodes that publish ground truth: the map, the elevation map, object poses, and detections with a set noise."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.evaluation.topics import OBJECT_POSES_TOPIC, PLACE_POSES_TOPIC
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap
from roboyard.messages import msg
from roboyard.messages.convert import grid_to_msg, transforms_to_msg
from roboyard.messages.convert.grid_maps import heights_to_msg
from roboyard.physics.compiled_world import GeomGroup
from roboyard.scenarios.ground_truth import ground_truth_map
from roboyard.simulation import Simulation


class GroundTruthMapNodeConfig(Config):
    """Configuration of `GroundTruthMapNode`."""

    map_frame: str = parameter("map", doc="Frame of the map.")
    resolution: float = parameter(0.05, unit="m", low=0.005, high=10.0, doc="Edge of a cell.")
    height: float = parameter(0.25, unit="m", low=-100.0, high=100.0, doc="Height of the cut, that of the laser.")

    extra_heights: tuple[float, ...] = parameter(
        (), unit="m", doc="Heights of further cuts that are drawn into the same map."
    )


class GroundTruthMapNode(Node[GroundTruthMapNodeConfig]):
    """Publishes the ground truth floor plan of the world as the map, for robots that have not mapped it.

    out: map (nav_msgs/OccupancyGrid, latched)

    The map holds what is static when the node starts; the log says that it is ground truth.  Its frame is that of the
    world.
    """

    simulation: Simulation = resource(Simulation)

    def setup(self) -> None:
        """Publish the map."""
        simulation = self.simulation
        robots = [name for name, handle in simulation.models.items() if handle.is_robot]
        robot_positions = [
            (float(x), float(y)) for x, y, _ in (simulation.ground_truth(name).pose.translation for name in robots)
        ]
        try:
            grid = ground_truth_map(
                simulation,
                height=self.config.height,
                extra_heights=self.config.extra_heights,
                resolution=self.config.resolution,
                interior_points=robot_positions,
            )
        except InputError as error:
            self.log.error(f"there is no map: {error}")
            self.report_health("error", "there is no map", reason=str(error))
            return
        geometry = grid.geometry
        publisher = self.publisher("map", msg.OccupancyGrid, latched=True)
        publisher.publish(
            grid_to_msg(grid.cells, geometry.resolution, geometry.T_map_grid, self.config.map_frame, self.now_ns)
        )
        self.log.warn("the map is the true floor plan of the world")
        rows, columns = geometry.shape
        self.report_health("ok", f"true floor plan, {columns} x {rows} cells of {geometry.resolution:g} m")


_RAY_START_HEIGHT = 10.0
"""Height at which rays start [m]."""
_IGNORED_GEOM_GROUP = 5
"""Geom group that contains nothing else."""


class GroundTruthElevationNodeConfig(Config):
    """Configuration of `GroundTruthElevationNode`."""

    map_frame: str = parameter("map", doc="Frame of the map.")
    bounds: tuple[float, ...] = parameter((-1.0, -1.6, 3.2, 1.6), unit="m", doc="Smallest x and y, largest x and y.")
    cell_size: float = parameter(0.02, unit="m", low=0.005, high=1.0, doc="Edge of a cell.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=100.0, doc="Rate of the checks of the world.")


class GroundTruthElevationNode(Node[GroundTruthElevationNodeConfig]):
    """Publishes the ground truth elevation of the world within bounds, for robots that have not mapped it.

    out: elevation_map (grid_map_msgs/GridMap, latched; again when a static model is added or removed)

    The log says that it is ground truth.  Its frame is that of the world; moving models are not in it.
    """

    simulation: Simulation = resource(Simulation)

    state_fields = ("_model_names",)

    def setup(self) -> None:
        """Publish the elevation, and observe the models."""
        self._model_names: list[str] = []
        self._publisher = self.publisher("elevation_map", msg.GridMap, latched=True)
        self.log.warn(f"{self.resolve('elevation_map')} publishes the simulated ground truth, not an estimate")
        self.report_health("warn", "ground truth, not an estimate")
        self.timer(rate=self.config.rate, callback=self._update, immediate=True)

    def _update(self) -> None:
        names = sorted(name for name, handle in self.simulation.models.items() if not handle.is_robot)
        if names != self._model_names:
            self._model_names = names
            x0, y0, x1, y1 = self.config.bounds
            columns, rows = round((x1 - x0) / self.config.cell_size), round((y1 - y0) / self.config.cell_size)
            heights = ground_truth_elevation(self.simulation, (x0, y0), (rows, columns), self.config.cell_size)
            ground = HeightMap(heights, (x0, y0), self.config.cell_size)
            self._publisher.publish(heights_to_msg(ground, self.now_ns, self.frame(self.config.map_frame)))


def ground_truth_elevation(
    simulation: Simulation, corner: tuple[float, float], shape: tuple[int, int], cell: float
) -> Array:
    """Return the (rows, columns) height of static models at the middles of cells [m]; nan without any.

    Args:
        simulation: The world; rays pass through moving models.
        corner: Corner at minimum x and y [m].
        shape: Rows along y, columns along x.
        cell: Edge length of a cell [m].
    """
    model, data = simulation.world.model, simulation.world.data
    enabled_groups, groups = np.zeros(6, np.uint8), model.geom_group.copy()
    enabled_groups[GeomGroup.COLLISION] = 1
    elevation = np.full(shape, np.nan)
    geom, direction = np.zeros(1, np.int32), np.array([0.0, 0.0, -1.0])
    try:
        model.geom_group[model.body_weldid[model.geom_bodyid] != 0] = _IGNORED_GEOM_GROUP
        for row in range(shape[0]):
            for column in range(shape[1]):
                ray_start = np.array(
                    [corner[0] + (column + 0.5) * cell, corner[1] + (row + 0.5) * cell, _RAY_START_HEIGHT]
                )
                distance = mujoco.mj_ray(model, data, ray_start, direction, enabled_groups, 1, -1, geom, None)
                if distance >= 0.0:
                    elevation[row, column] = _RAY_START_HEIGHT - distance
    finally:
        model.geom_group[:] = groups
    return elevation


PLACE_PLUGIN = "roboyard-mark"
_POSE_RATE = 5.0
_PRESENCE_RATE = 50.0
"""Rate at which added and removed objects are detected [Hz], higher than any node needs."""
_MOTION_THRESHOLD = 1e-4
"""Least change of a position [m] or of an element of a rotation matrix that counts as motion."""


class ObjectGroundTruthNode(Node):
    """Publishes the ground truth poses of a scenario's objects and places in the world.

    out: /truth/objects, /truth/places (tf2_msgs/TFMessage, latched): one transform from the world per object, named
    like the object.  Published when an object has moved, at most five times a second, and when one was added or
    removed.
    """

    simulation: Simulation = resource(Simulation)
    objects: tuple[str, ...] = resource(tuple)

    state_fields = ("_last_rows",)

    def setup(self) -> None:
        """Publish all poses."""
        models = {name: self.simulation.models[name].model for name in self.objects}
        place_names = [
            name
            for name, model in models.items()
            if model.static or any(p.filename == PLACE_PLUGIN for p in model.plugins)
        ]
        self._names_by_topic = {
            OBJECT_POSES_TOPIC: tuple(name for name in self.objects if name not in place_names),
            PLACE_POSES_TOPIC: tuple(place_names),
        }
        self._publishers = {topic: self.publisher(topic, msg.TFMessage, latched=True) for topic in self._names_by_topic}
        self._last_rows: dict[str, list[list[float]]] = {topic: [] for topic in self._names_by_topic}
        self._tick()
        self.timer(rate=_POSE_RATE, callback=self._tick)
        self.timer(rate=_PRESENCE_RATE, callback=self._check_presence)

    def _pose(self, name: str) -> SE3:
        return self.simulation.ground_truth(name).T_world_base

    def _check_presence(self) -> None:
        count = sum(name in self.simulation.models for name in self.objects)
        if count != sum(map(len, self._last_rows.values())):
            self._tick()

    def _tick(self) -> None:
        found = {topic: self._present_poses(names) for topic, names in self._names_by_topic.items()}
        for topic, poses in found.items():
            rows = [[float(value) for value in (*T.translation, *T.rotation_matrix()[:, 2])] for T in poses.values()]
            last = self._last_rows[topic]
            if len(rows) != len(last) or (rows and np.abs(np.array(rows) - last).max() >= _MOTION_THRESHOLD):
                self._last_rows[topic] = rows
                self._publishers[topic].publish(self._to_message(poses))

    def _present_poses(self, names: tuple[str, ...]) -> dict[str, SE3]:
        return {name: self._pose(name) for name in names if name in self.simulation.models}

    def _to_message(self, poses: dict[str, SE3]) -> Any:
        return transforms_to_msg(((pose, "world", name) for name, pose in poses.items()), self.now_ns)


FRAME = "world"
