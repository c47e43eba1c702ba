"""The global costmap, in which paths are planned, and the local costmap around the robot, in which it drives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.grids.regions import label_components
from roboyard.navigation.costmap import (
    LETHAL,
    UNKNOWN,
    CellBounds,
    Costmap,
    CostmapConfig,
    Layer,
    LayerConfig,
    LayerContext,
    LayeredCostmap,
    SensorLayer,
    SensorLayerConfig,
    SpeedFilter,
)
from roboyard.navigation.costmap.map_layers import GridLayer, GridLayerConfig
from roboyard.navigation.costmap.obstacle_layer import Observation
from roboyard.navigation.costmap.range_layer import RangeReading
from roboyard.navigation.footprint import Footprint

SensorObservation = Observation | RangeReading


class _LayerSet:
    """Layers of one of the two costmaps, by name, with their configurations."""

    def __init__(self, config: CostmapConfig, names: tuple[str, ...], footprint: Footprint) -> None:
        self.configs: dict[str, LayerConfig] = config.layers_of(names)
        self.layers: dict[str, Layer] = {
            name: layer_config.make_layer(LayerContext(name, footprint, config.resolution))
            for name, layer_config in self.configs.items()
        }
        self.sensor_layers = {name: layer for name, layer in self.layers.items() if isinstance(layer, SensorLayer)}
        self.clearing_layers = [
            layer
            for name, layer in self.sensor_layers.items()
            if isinstance(layer_config := self.configs[name], SensorLayerConfig) and layer_config.clear_footprint
        ]

    def grid_layers(self, topic: str) -> list[GridLayer]:
        """Return the layers over the grid of a topic; the map's topic is empty."""
        return [
            layer
            for name, layer in self.layers.items()
            if isinstance(layer, GridLayer)
            and isinstance(layer_config := self.configs[name], GridLayerConfig)
            and layer_config.topic == topic
        ]

    def save_state(self) -> dict[str, Any]:
        return {name: layer.save_state() for name, layer in self.layers.items()}

    def load_state(self, saved: Mapping[str, Any], geometry: GridGeometry) -> None:
        for name, layer in self.layers.items():
            if saved[name]:
                layer.load_state(saved[name], geometry)


class NavigationCostmaps:
    """Global and local costmap of the navigator (Nav2's global_costmap and local_costmap).

    The local costmap lies in the odometry frame, in which the robot's pose does not jump.  Without a map the global
    costmap moves with the robot.

    Args:
        config: Configuration of the costmaps.
        footprint: Padded footprint of the robot.
        unpadded_corners: Corners (n, 2) of the robot itself [m], under which there can be no obstacle; None: those of
            the
            footprint.
    """

    def __init__(
        self, config: CostmapConfig, footprint: Footprint, unpadded_corners: NDArray[np.float64] | None = None
    ) -> None:
        expect_kernels(label_components)  # of the nearest reachable pose
        self._config = config
        self._unpadded_corners = footprint.corners if unpadded_corners is None else unpadded_corners
        self._map: OccupancyGrid | None = None
        self._grids: dict[str, OccupancyGrid] = {}
        self._speed_mask: OccupancyGrid | None = None
        self._speed_filter: SpeedFilter | None = None
        self._aligned_T_map_odom: SE2 | None = None
        self._global_layers = _LayerSet(config, config.global_layers, footprint)
        self._local_layers = _LayerSet(config, config.local_layers, footprint)
        self.global_costmap = LayeredCostmap(
            _square_geometry(config.global_rolling_size, config.resolution), list(self._global_layers.layers.values())
        )
        self.local_costmap = LayeredCostmap(
            _square_geometry(config.local_size, config.resolution), list(self._local_layers.layers.values())
        )

    # -- inputs --------------------------------------------------------------------------------------------------------
    @property
    def has_map(self) -> bool:
        """Whether there is a map."""
        return self._map is not None

    def set_map(self, grid: OccupancyGrid) -> None:
        """Replace the map; observations stay where the cells of both maps coincide."""
        has_same_geometry = self._map is not None and self._map.geometry == grid.geometry
        self._map, self._aligned_T_map_odom = grid, None
        for layer in self._global_layers.grid_layers(""):
            layer.set_grid(grid)
        if has_same_geometry:
            return
        previous_geometry, layer_states = self.global_costmap.geometry, self._global_layers.save_state()
        layers = list(self._global_layers.layers.values())
        self.global_costmap = LayeredCostmap(grid.geometry, layers, track_unknown_space=True)
        self._global_layers.load_state(layer_states, previous_geometry)

    def set_grid(self, topic: str, grid: OccupancyGrid) -> None:
        """Replace the grid of the layers over a topic, such as the keepout mask; its geometry is in the map."""
        self._grids[topic], self._aligned_T_map_odom = grid, None
        for layer in self._global_layers.grid_layers(topic):
            layer.set_grid(grid)

    def set_speed_mask(self, mask: OccupancyGrid) -> None:
        """Replace the speed mask.

        Raises:
            ConfigError: A value of the mask gives no speed.
        """
        config = self._config.speed_filter
        self._speed_filter = SpeedFilter(mask, base=config.base, multiplier=config.multiplier, percent=config.percent)
        self._speed_mask = mask

    def add_observations(self, observations: Mapping[str, Sequence[SensorObservation]], T_map_odom: SE2) -> None:
        """Add observations, by layer, in the odometry frame."""
        for name, items in observations.items():
            if name in self._local_layers.sensor_layers:
                self._local_layers.sensor_layers[name].add_observations(items)
            if name in self._global_layers.sensor_layers:
                items_in_map = [item.transformed(T_map_odom) for item in items]
                self._global_layers.sensor_layers[name].add_observations(items_in_map)

    def update(self, T_odom_base: SE2, T_map_odom: SE2) -> None:
        """Center the rolling costmaps on the robot and update the local costmap."""
        T_map_base = T_map_odom @ T_odom_base
        self.local_costmap.center_on(T_odom_base)
        if not self.has_map:
            self.global_costmap.center_on(T_map_base)
        for layers, pose in ((self._local_layers, T_odom_base), (self._global_layers, T_map_base)):
            for layer in layers.clearing_layers:
                layer.clear_polygon(pose @ self._unpadded_corners)
        self._align_grids(T_map_odom)
        self.local_costmap.update()

    def _align_grids(self, T_map_odom: SE2) -> None:
        """Give the local costmap the map and the masks in the present odometry frame."""
        if T_map_odom == self._aligned_T_map_odom:
            return
        self._aligned_T_map_odom = T_map_odom
        T_odom_map = T_map_odom.inverse()
        grids = {**self._grids} if self._map is None else {"": self._map, **self._grids}
        for topic, grid in grids.items():
            for layer in self._local_layers.grid_layers(topic):
                geometry = replace(grid.geometry, T_map_grid=T_odom_map @ grid.geometry.T_map_grid)
                layer.set_grid(OccupancyGrid(grid.cells, geometry))

    # -- results -------------------------------------------------------------------------------------------------------
    def local_costmap_in_map(self, T_map_odom: SE2) -> Costmap:
        """Return the local costmap with its geometry in the map."""
        costmap = self.local_costmap.snapshot()
        return Costmap(costmap.cells, replace(costmap.geometry, T_map_grid=T_map_odom @ costmap.geometry.T_map_grid))

    def get_global_costmap(self) -> Costmap:
        """Return the updated global costmap."""
        self.global_costmap.update()
        return self.global_costmap.snapshot()

    def speed_limit_at(self, pose: SE2, max_speed: float) -> float:
        """Return the limit of the speed mask at a pose in the map [m/s], at most ``max_speed``."""
        return max_speed if self._speed_filter is None else self._speed_filter.speed_limit_at(pose, max_speed)

    def static_cost(self, pose: SE2, radius: float) -> int:
        """Return the cost of a pose by the map alone: lethal if an obstacle lies within the radius [m], else the
        cell's.

        It is `UNKNOWN` without a map, outside of it, and if the global costmap has no layer over the map.
        """
        geometry, layers = self.global_costmap.geometry, self._global_layers.grid_layers("")
        cell = geometry.cells_of_points(pose.xy)
        if not self.has_map or not layers or not geometry.contains(cell):
            return UNKNOWN
        costs = np.full(geometry.shape, UNKNOWN, dtype=np.uint8)
        for layer in layers:
            layer.update_costs(costs, _bounds_around(geometry, pose, radius + geometry.resolution))
        obstacles = geometry.cell_centers(np.argwhere(costs == LETHAL))
        if len(obstacles) and np.hypot(obstacles[:, 0] - pose.x, obstacles[:, 1] - pose.y).min() <= radius:
            return LETHAL
        return int(costs[int(cell[0]), int(cell[1])])

    # -- clearing ------------------------------------------------------------------------------------------------------
    def clear_area(self, T_odom_base: SE2, T_map_odom: SE2, half_side: float, *, inside: bool) -> None:
        """Clear observed obstacles inside or outside of a square around the robot, in all layers that are clearable.

        Args:
            T_odom_base: Pose of the robot in the odometry frame.
            T_map_odom: Pose of the odometry frame in the map.
            half_side: Half the side of the square [m]; infinite for everything.
            inside: Whether to clear inside; else outside.
        """
        for layers, geometry, pose in (
            (self._local_layers, self.local_costmap.geometry, T_odom_base),
            (self._global_layers, self.global_costmap.geometry, T_map_odom @ T_odom_base),
        ):
            area = _bounds_around(geometry, pose, half_side)
            for bounds in [area] if inside else _bounds_outside(area, geometry.shape):
                for layer in layers.layers.values():
                    if layer.is_clearable:
                        layer.clear(bounds)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return maps, masks, geometries and the states of all layers as plain data."""
        return {
            "map": None if self._map is None else self._map.to_state(),
            "grids": {topic: grid.to_state() for topic, grid in self._grids.items()},
            "speed_mask": None if self._speed_mask is None else self._speed_mask.to_state(),
            "global_geometry": self.global_costmap.geometry.to_state(),
            "local_geometry": self.local_costmap.geometry.to_state(),
            "global_layers": self._global_layers.save_state(),
            "local_layers": self._local_layers.save_state(),
            "aligned_T_map_odom": self._aligned_T_map_odom,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned; the costs are computed anew, which gives the same."""
        if saved["map"] is not None:
            self.set_map(OccupancyGrid.from_state(saved["map"]))
        for topic, grid in saved["grids"].items():
            self.set_grid(topic, OccupancyGrid.from_state(grid))
        if saved["speed_mask"] is not None:
            self.set_speed_mask(OccupancyGrid.from_state(saved["speed_mask"]))
        self.global_costmap.resize(GridGeometry.from_state(saved["global_geometry"]))
        self.local_costmap.resize(GridGeometry.from_state(saved["local_geometry"]))
        self._global_layers.load_state(saved["global_layers"], self.global_costmap.geometry)
        self._local_layers.load_state(saved["local_layers"], self.local_costmap.geometry)
        if saved["aligned_T_map_odom"] is not None:
            self._align_grids(saved["aligned_T_map_odom"])
        self.global_costmap.update()
        self.local_costmap.update()


def _square_geometry(side: float, resolution: float) -> GridGeometry:
    count = max(math.ceil(side / resolution), 1)
    return GridGeometry(resolution, (count, count), SE2(-count * resolution / 2.0, -count * resolution / 2.0, 0.0))


def _bounds_around(geometry: GridGeometry, pose: SE2, half_side: float) -> CellBounds:
    if math.isinf(half_side):
        return CellBounds.full(geometry.shape)
    row, column = (int(value) for value in geometry.cells_of_points(pose.xy))
    half_cells = round(half_side / geometry.resolution)
    rows, columns = geometry.shape
    return CellBounds(
        min(max(row - half_cells, 0), rows), min(max(column - half_cells, 0), columns),
        min(max(row + half_cells + 1, 0), rows), min(max(column + half_cells + 1, 0), columns),
    )  # fmt: skip


def _bounds_outside(square: CellBounds, shape: tuple[int, int]) -> list[CellBounds]:
    """Return the four parts of a grid outside of a square."""
    if square.is_empty:
        return [CellBounds.full(shape)]
    rows, columns = shape
    return [
        CellBounds(0, 0, square.top, columns),
        CellBounds(square.bottom, 0, rows, columns),
        CellBounds(square.top, 0, square.bottom, square.left),
        CellBounds(square.top, square.right, square.bottom, columns),
    ]
