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
    DenoiseLayer,
    InflationLayer,
    KeepoutLayer,
    Layer,
    LayeredCostmap,
    Observation,
    ObstacleLayer,
    RangeLayer,
    RangeReading,
    SpeedFilter,
    StaticLayer,
    VoxelLayer,
)
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.navigator.config import (
    MAP_LAYERS,
    CostmapConfig,
    LayerConfig,
    ObstacleLayerConfig,
    RangeLayerConfig,
)

SensorLayerType = ObstacleLayer | VoxelLayer | RangeLayer
SensorObservation = Observation | RangeReading


class NavigationCostmaps:
    """Global and local costmap from the map, sensor observations, the keepout mask and inflation.

    The local costmap lies in the odometry's frame, which does not jump; it is given in the map's frame of the moment.
    Without a map the global costmap moves with the robot.

    Args:
        config: Of the costmaps.
        footprint: That is planned with.
        unpadded_corners: Corners (n, 2) of the robot itself [m], under which nothing can stand; without them the
            footprint's.
    """

    def __init__(
        self, config: CostmapConfig, footprint: Footprint, unpadded_corners: NDArray[np.float64] | None = None
    ) -> None:
        expect_kernels(label_components)  # of the place nearest to a goal that cannot be reached
        self._config, self._footprint = config, footprint
        self._unpadded_corners = footprint.corners if unpadded_corners is None else unpadded_corners
        self._map: OccupancyGrid | None = None
        self._keepout_mask: OccupancyGrid | None = None
        self._speed_mask: OccupancyGrid | None = None
        self._speed_filter: SpeedFilter | None = None
        self._global_static_layer, self._global_keepout_layer = StaticLayer(), KeepoutLayer()
        self._local_static_layer, self._local_keepout_layer = StaticLayer(), KeepoutLayer()
        self._aligned_T_map_odom: SE2 | None = None
        self._global_layer_names, self._local_layer_names = (
            config.enabled_names(config.global_layers),
            config.enabled_names(config.local_layers),
        )
        self._global_sensor_layers = _make_sensor_layers(config, self._global_layer_names)
        self._local_sensor_layers = _make_sensor_layers(config, self._local_layer_names)
        self.global_costmap = LayeredCostmap(
            _square_geometry(config.global_rolling_size, config.resolution), self._make_global_layers()
        )
        local_layers = {
            **self._local_sensor_layers,
            "static": self._local_static_layer,
            "keepout": self._local_keepout_layer,
        }
        self.local_costmap = LayeredCostmap(
            _square_geometry(config.local_size, config.resolution),
            [*(local_layers[name] for name in self._local_layer_names), *self._make_inflation_layers()],
        )

    def _make_global_layers(self) -> list[Layer]:
        layers = {
            **self._global_sensor_layers,
            "static": self._global_static_layer,
            "keepout": self._global_keepout_layer,
        }
        return [*(layers[name] for name in self._global_layer_names), *self._make_inflation_layers()]

    def _make_inflation_layers(self) -> list[Layer]:
        inscribed = self._footprint.inscribed_radius
        # controllers look at the outline where the centre's cost says that an obstacle may be within reach
        radius = max(self._config.inflation_radius, self._footprint.circumscribed_radius + self._config.resolution)
        inflation = InflationLayer(inscribed, radius, self._config.cost_scaling_factor)
        return (
            [DenoiseLayer(self._config.denoise_min_cells), inflation]
            if self._config.denoise_min_cells > 1
            else [inflation]
        )

    # -- what comes in -------------------------------------------------------------------------------------------------
    @property
    def has_map(self) -> bool:
        """Whether a map was taken."""
        return self._map is not None

    def set_map(self, grid: OccupancyGrid) -> None:
        """Set the map; observations stay where the cells of both maps coincide."""
        has_same_geometry = self._map is not None and self._map.geometry == grid.geometry
        self._map, self._aligned_T_map_odom = grid, None
        self._global_static_layer.set_map(grid)
        if has_same_geometry:
            return
        previous_geometry = self.global_costmap.geometry
        layer_states = {name: layer.save_state() for name, layer in self._global_sensor_layers.items()}
        self.global_costmap = LayeredCostmap(grid.geometry, self._make_global_layers(), track_unknown_space=True)
        for name, layer in self._global_sensor_layers.items():
            layer.load_state(layer_states[name], previous_geometry)

    def set_keepout_mask(self, mask: OccupancyGrid) -> None:
        """Set the keepout mask."""
        self._keepout_mask, self._aligned_T_map_odom = mask, None
        self._global_keepout_layer.set_mask(mask)

    def set_speed_mask(self, mask: OccupancyGrid) -> None:
        """Set the speed mask.

        Raises:
            ConfigError: a value of it gives no speed.
        """
        config = self._config.speed_filter
        self._speed_filter = SpeedFilter(mask, base=config.base, multiplier=config.multiplier, percent=config.percent)
        self._speed_mask = mask

    def add_observations(self, observations: Mapping[str, Sequence[SensorObservation]], T_map_odom: SE2) -> None:
        """Add observations, by layer, in the odometry frame."""
        for name, items in observations.items():
            if name in self._local_sensor_layers:
                _add_to_layer(self._local_sensor_layers[name], items)
            if name in self._global_sensor_layers:
                _add_to_layer(self._global_sensor_layers[name], [item.transformed(T_map_odom) for item in items])

    def update(self, T_odom_base: SE2, T_map_odom: SE2) -> None:
        """Center the rolling costmaps on the robot and update the local costmap."""
        T_map_base = T_map_odom @ T_odom_base
        self.local_costmap.center_on(T_odom_base)
        if not self.has_map:
            self.global_costmap.center_on(T_map_base)
        for layers, pose in ((self._local_sensor_layers, T_odom_base), (self._global_sensor_layers, T_map_base)):
            for name, layer in layers.items():
                if self._config.layers[name].clear_footprint:
                    layer.clear_polygon(pose @ self._unpadded_corners)
        self._align_map_layers(T_map_odom)
        self.local_costmap.update()

    def _align_map_layers(self, T_map_odom: SE2) -> None:
        """Lay map and mask under the local costmap, where the odometry's frame is now."""
        if T_map_odom == self._aligned_T_map_odom:
            return
        self._aligned_T_map_odom = T_map_odom
        T_odom_map = T_map_odom.inverse()
        for name, set_grid, grid in (
            ("static", self._local_static_layer.set_map, self._map),
            ("keepout", self._local_keepout_layer.set_mask, self._keepout_mask),
        ):
            if grid is not None and name in self._config.local_layers:
                frame = replace(grid.geometry, T_map_grid=T_odom_map @ grid.geometry.T_map_grid)
                set_grid(OccupancyGrid(grid.cells, frame))

    # -- what is known -------------------------------------------------------------------------------------------------
    def local_costmap_in_map(self, T_map_odom: SE2) -> Costmap:
        """The local costmap, in the map."""
        costmap = self.local_costmap.snapshot()
        return Costmap(costmap.cells, replace(costmap.geometry, T_map_grid=T_map_odom @ costmap.geometry.T_map_grid))

    def get_global_costmap(self) -> Costmap:
        """The global costmap, as it is now."""
        self.global_costmap.update()
        return self.global_costmap.snapshot()

    def speed_limit_at(self, pose: SE2, max_speed: float) -> float:
        """How fast zones let the robot drive at a pose in the map [m/s], at most ``max_speed``."""
        return max_speed if self._speed_filter is None else self._speed_filter.speed_limit_at(pose, max_speed)

    def static_cost(self, pose: SE2, radius: float) -> int:
        """What the map made beforehand says about a place: lethal if an obstacle lies within the radius [m], else what
        the place itself is."""
        frame = self.global_costmap.geometry
        cell = frame.cells_of_points(pose.xy)
        if not self.has_map or not frame.contains(cell):
            return UNKNOWN
        costs = np.full(frame.shape, UNKNOWN, dtype=np.uint8)
        self._global_static_layer.update_costs(costs, _bounds_around(frame, pose, radius + frame.resolution))
        obstacles = frame.cell_centers(np.argwhere(costs == LETHAL))
        if len(obstacles) and np.hypot(obstacles[:, 0] - pose.x, obstacles[:, 1] - pose.y).min() <= radius:
            return LETHAL
        return int(costs[int(cell[0]), int(cell[1])])

    # -- forgetting ----------------------------------------------------------------------------------------------------
    def clear_area(self, T_odom_base: SE2, T_map_odom: SE2, half_side: float, *, inside: bool) -> None:
        """Clear observed obstacles inside or outside of a square around the robot.

        Args:
            T_odom_base: Where the robot is.
            T_map_odom: Where the odometry's frame is.
            half_side: Half the square's side [m]; infinite for everything.
            inside: Within, or outside.
        """
        for layers, frame, pose in (
            (self._local_sensor_layers, self.local_costmap.geometry, T_odom_base),
            (self._global_sensor_layers, self.global_costmap.geometry, T_map_odom @ T_odom_base),
        ):
            area = _bounds_around(frame, pose, half_side)
            for bounds in [area] if inside else _bounds_outside(area, frame.shape):
                for layer in layers.values():
                    layer.clear(bounds)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "map": _grid_to_state(self._map),
            "keepout": _grid_to_state(self._keepout_mask),
            "speeds": _grid_to_state(self._speed_mask),
            "world": _geometry_to_state(self.global_costmap.geometry),
            "near": _geometry_to_state(self.local_costmap.geometry),
            "seen": {name: layer.save_state() for name, layer in self._global_sensor_layers.items()},
            "seen_near": {name: layer.save_state() for name, layer in self._local_sensor_layers.items()},
            "placed": self._aligned_T_map_odom,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`; costs are put together anew, which gives the same."""
        for key, set_grid in (
            ("map", self.set_map),
            ("keepout", self.set_keepout_mask),
            ("speeds", self.set_speed_mask),
        ):
            grid = _grid_from_state(saved[key])
            if grid is not None:
                set_grid(grid)
        self.global_costmap.resize(_geometry_from_state(saved["world"]))
        self.local_costmap.resize(_geometry_from_state(saved["near"]))
        for key, layers, frame in (
            ("seen", self._global_sensor_layers, self.global_costmap.geometry),
            ("seen_near", self._local_sensor_layers, self.local_costmap.geometry),
        ):
            for name, layer in layers.items():
                layer.load_state(saved[key][name], frame)
        if saved["placed"] is not None:
            self._align_map_layers(saved["placed"])
        self.global_costmap.update()
        self.local_costmap.update()


def _make_sensor_layers(config: CostmapConfig, names: Sequence[str]) -> dict[str, SensorLayerType]:
    return {name: _make_sensor_layer(name, config.layers[name]) for name in names if name not in MAP_LAYERS}


def _make_sensor_layer(name: str, config: LayerConfig) -> SensorLayerType:
    if isinstance(config, RangeLayerConfig):
        return RangeLayer(config.range_model, overwrite=config.overwrite, name=name)
    if isinstance(config, ObstacleLayerConfig):
        return ObstacleLayer(config.observation_filter, overwrite=config.overwrite, name=name)
    return VoxelLayer(config.observation_filter, config.voxels, overwrite=config.overwrite, name=name)


def _add_to_layer(layer: SensorLayerType, observations: Sequence[Any]) -> None:
    if isinstance(layer, RangeLayer):
        layer.add_observations(observations)
    else:
        layer.add_observations(observations)


def _square_geometry(side: float, resolution: float) -> GridGeometry:
    count = max(math.ceil(side / resolution), 1)
    return GridGeometry(resolution, (count, count), SE2(-count * resolution / 2.0, -count * resolution / 2.0, 0.0))


def _bounds_around(frame: GridGeometry, pose: SE2, half_side: float) -> CellBounds:
    if math.isinf(half_side):
        return CellBounds.full(frame.shape)
    row, column = (int(value) for value in frame.cells_of_points(pose.xy))
    half_cells = round(half_side / frame.resolution)
    rows, columns = frame.shape
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


def _geometry_to_state(geometry: GridGeometry) -> tuple[Any, ...]:
    corner = geometry.T_map_grid
    return geometry.resolution, geometry.shape, (corner.x, corner.y, corner.theta)


def _geometry_from_state(saved: tuple[Any, ...]) -> GridGeometry:
    resolution, (rows, columns), corner = saved
    return GridGeometry(resolution, (int(rows), int(columns)), SE2(*corner))


def _grid_to_state(grid: OccupancyGrid | None) -> tuple[Any, ...] | None:
    return None if grid is None else (grid.cells, *_geometry_to_state(grid.geometry))


def _grid_from_state(saved: tuple[Any, ...] | None) -> OccupancyGrid | None:
    return None if saved is None else OccupancyGrid(saved[0], _geometry_from_state(saved[1:]))
