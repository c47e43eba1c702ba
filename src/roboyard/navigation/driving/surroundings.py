"""The two costmaps a robot drives by: a global one to plan in, a local one about the robot to drive in."""

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
    Bounds,
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
    SpeedZones,
    StaticLayer,
    VoxelLayer,
)
from roboyard.navigation.driving.costmap_settings import (
    MAP_LAYERS,
    CostmapSettings,
    LayerSettings,
    ObstacleSettings,
    RangeSettings,
)
from roboyard.navigation.footprint import Footprint

Sensed = ObstacleLayer | VoxelLayer | RangeLayer
Seen = Observation | RangeReading


class Surroundings:
    """What is known about the ground: the map, what sensors saw, where one must not go, and the room the robot needs.

    The local costmap lies in the odometry's frame, which does not jump; it is given in the map's frame of the moment.
    Without a map the global costmap moves with the robot.

    Args:
        settings: Of the costmaps.
        footprint: That is planned with.
        outline: Corners (n, 2) of the robot itself [m], under which nothing can stand; without them the footprint's.
    """

    def __init__(
        self, settings: CostmapSettings, footprint: Footprint, outline: NDArray[np.float64] | None = None
    ) -> None:
        expect_kernels(label_components)  # of the place nearest to a goal that cannot be reached
        self._settings, self._footprint = settings, footprint
        self._outline = footprint.corners if outline is None else outline
        self._map: OccupancyGrid | None = None
        self._mask: OccupancyGrid | None = None
        self._speed_mask: OccupancyGrid | None = None
        self._zones: SpeedZones | None = None
        self._static, self._keepout = StaticLayer(), KeepoutLayer()
        self._static_near, self._keepout_near = StaticLayer(), KeepoutLayer()
        self._placed: SE2 | None = None
        self._names, self._names_near = (
            settings.enabled(settings.global_layers),
            settings.enabled(settings.local_layers),
        )
        self._sensed = _sensed(settings, self._names)
        self._sensed_near = _sensed(settings, self._names_near)
        self.world = LayeredCostmap(_square(settings.rolling_size, settings.resolution), self._global_layers())
        near = {**self._sensed_near, "static": self._static_near, "keepout": self._keepout_near}
        self.near = LayeredCostmap(
            _square(settings.local_size, settings.resolution),
            [*(near[name] for name in self._names_near), *self._inflated()],
        )

    def _global_layers(self) -> list[Layer]:
        known = {**self._sensed, "static": self._static, "keepout": self._keepout}
        return [*(known[name] for name in self._names), *self._inflated()]

    def _inflated(self) -> list[Layer]:
        inscribed = self._footprint.inscribed_radius
        # controllers look at the outline where the centre's cost says that an obstacle may be within reach
        radius = max(self._settings.inflation_radius, self._footprint.circumscribed_radius + self._settings.resolution)
        inflation = InflationLayer(inscribed, radius, self._settings.inflation_scaling)
        return [DenoiseLayer(self._settings.denoise), inflation] if self._settings.denoise > 1 else [inflation]

    # -- what comes in -------------------------------------------------------------------------------------------------
    @property
    def has_map(self) -> bool:
        """Whether a map was taken."""
        return self._map is not None

    def take_map(self, grid: OccupancyGrid) -> None:
        """Plan in this map from now on; what was seen stays where the maps' cells coincide."""
        same = self._map is not None and self._map.geometry == grid.geometry
        self._map, self._placed = grid, None
        self._static.take(grid)
        if same:
            return
        before = self.world.frame
        seen = {name: layer.save_state() for name, layer in self._sensed.items()}
        self.world = LayeredCostmap(grid.geometry, self._global_layers(), unknown=True)
        for name, layer in self._sensed.items():
            layer.load_state(seen[name], before)

    def take_keepout(self, mask: OccupancyGrid) -> None:
        """Do not go where the mask says so from now on."""
        self._mask, self._placed = mask, None
        self._keepout.take(mask)

    def take_speed_mask(self, mask: OccupancyGrid) -> None:
        """Drive as slowly as the mask says from now on.

        Raises:
            ConfigError: a value of it gives no speed.
        """
        zones = self._settings.speed_zones
        self._zones = SpeedZones(mask, base=zones.base, multiplier=zones.multiplier, percent=zones.percent)
        self._speed_mask = mask

    def see(self, seen: Mapping[str, Sequence[Seen]], T_map_odom: SE2) -> None:
        """Take what sensors saw, by the layer that they tell, in the odometry's frame."""
        for name, items in seen.items():
            if name in self._sensed_near:
                _tell(self._sensed_near[name], items)
            if name in self._sensed:
                _tell(self._sensed[name], [item.moved(T_map_odom) for item in items])

    def move(self, T_odom_base: SE2, T_map_odom: SE2) -> None:
        """Follow the robot, and put together what changed near it."""
        T_map_base = T_map_odom @ T_odom_base
        self.near.centre_on(T_odom_base)
        if not self.has_map:
            self.world.centre_on(T_map_base)
        for layers, pose in ((self._sensed_near, T_odom_base), (self._sensed, T_map_base)):
            for name, layer in layers.items():
                if self._settings.layers[name].clear_footprint:
                    layer.free(pose @ self._outline)
        self._place(T_map_odom)
        self.near.update()

    def _place(self, T_map_odom: SE2) -> None:
        """Lay map and mask under the local costmap, where the odometry's frame is now."""
        if T_map_odom == self._placed:
            return
        self._placed = T_map_odom
        T_odom_map = T_map_odom.inverse()
        for name, layer, grid in (
            ("static", self._static_near, self._map), ("keepout", self._keepout_near, self._mask),
        ):  # fmt: skip
            if grid is not None and name in self._settings.local_layers:
                frame = replace(grid.geometry, T_map_grid=T_odom_map @ grid.geometry.T_map_grid)
                layer.take(OccupancyGrid(grid.cells, frame))

    # -- what is known -------------------------------------------------------------------------------------------------
    def near_costs(self, T_map_odom: SE2) -> Costmap:
        """The local costmap, in the map."""
        found = self.near.costmap()
        return Costmap(found.cells, replace(found.frame, T_map_grid=T_map_odom @ found.frame.T_map_grid))

    def world_costs(self) -> Costmap:
        """The global costmap, as it is now."""
        self.world.update()
        return self.world.costmap()

    def speed(self, pose: SE2, fastest: float) -> float:
        """How fast zones let the robot drive at a pose in the map [m/s], at most ``fastest``."""
        return fastest if self._zones is None else self._zones.limit(pose, fastest)

    def static_cost(self, pose: SE2, radius: float) -> int:
        """What the map made beforehand says about a place: lethal if an obstacle lies within the radius [m], else what
        the place itself is."""
        frame = self.world.frame
        cell = frame.cells_of_points(pose.xy)
        if not self.has_map or not frame.contains(cell):
            return UNKNOWN
        found = np.full(frame.shape, UNKNOWN, dtype=np.uint8)
        self._static.apply(found, _about(frame, pose, radius + frame.resolution))
        lethal = frame.cell_centers(np.argwhere(found == LETHAL))
        if len(lethal) and np.hypot(lethal[:, 0] - pose.x, lethal[:, 1] - pose.y).min() <= radius:
            return LETHAL
        return int(found[int(cell[0]), int(cell[1])])

    # -- forgetting ----------------------------------------------------------------------------------------------------
    def forget(self, T_odom_base: SE2, T_map_odom: SE2, half: float, *, inside: bool) -> None:
        """Forget obstacles that were seen within, or outside of, a square about the robot.

        Args:
            T_odom_base: Where the robot is.
            T_map_odom: Where the odometry's frame is.
            half: Half the square's side [m]; infinite for everything.
            inside: Within, or outside.
        """
        for layers, frame, pose in (
            (self._sensed_near, self.near.frame, T_odom_base),
            (self._sensed, self.world.frame, T_map_odom @ T_odom_base),
        ):
            square = _about(frame, pose, half)
            for part in [square] if inside else _rest(square, frame.shape):
                for layer in layers.values():
                    layer.forget(part)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "map": _saved_grid(self._map), "keepout": _saved_grid(self._mask), "speeds": _saved_grid(self._speed_mask),
            "world": _saved_frame(self.world.frame), "near": _saved_frame(self.near.frame),
            "seen": {name: layer.save_state() for name, layer in self._sensed.items()},
            "seen_near": {name: layer.save_state() for name, layer in self._sensed_near.items()},
            "placed": self._placed,
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`; costs are put together anew, which gives the same."""
        for key, take in (
            ("map", self.take_map), ("keepout", self.take_keepout), ("speeds", self.take_speed_mask),
        ):  # fmt: skip
            grid = _loaded_grid(saved[key])
            if grid is not None:
                take(grid)
        self.world.replace(_loaded_frame(saved["world"]))
        self.near.replace(_loaded_frame(saved["near"]))
        for key, layers, frame in (
            ("seen", self._sensed, self.world.frame), ("seen_near", self._sensed_near, self.near.frame),
        ):  # fmt: skip
            for name, layer in layers.items():
                layer.load_state(saved[key][name], frame)
        if saved["placed"] is not None:
            self._place(saved["placed"])
        self.world.update()
        self.near.update()


def _sensed(settings: CostmapSettings, names: Sequence[str]) -> dict[str, Sensed]:
    return {name: _made(name, settings.layers[name]) for name in names if name not in MAP_LAYERS}


def _made(name: str, layer: LayerSettings) -> Sensed:
    if isinstance(layer, RangeSettings):
        return RangeLayer(layer.echoes, overwrite=layer.overwrite, name=name)
    if isinstance(layer, ObstacleSettings):
        return ObstacleLayer(layer.points, overwrite=layer.overwrite, name=name)
    return VoxelLayer(layer.points, layer.voxels, overwrite=layer.overwrite, name=name)


def _tell(layer: Sensed, items: Sequence[Any]) -> None:
    if isinstance(layer, RangeLayer):
        layer.hear(items)
    else:
        layer.see(items)


def _square(side: float, resolution: float) -> GridGeometry:
    count = max(math.ceil(side / resolution), 1)
    return GridGeometry(resolution, (count, count), SE2(-count * resolution / 2.0, -count * resolution / 2.0, 0.0))


def _about(frame: GridGeometry, pose: SE2, half: float) -> Bounds:
    if math.isinf(half):
        return Bounds.whole(frame.shape)
    row, column = (int(value) for value in frame.cells_of_points(pose.xy))
    reach = round(half / frame.resolution)
    rows, columns = frame.shape
    return Bounds(
        min(max(row - reach, 0), rows), min(max(column - reach, 0), columns),
        min(max(row + reach + 1, 0), rows), min(max(column + reach + 1, 0), columns),
    )  # fmt: skip


def _rest(square: Bounds, shape: tuple[int, int]) -> list[Bounds]:
    """What a square leaves of a grid, in four parts."""
    if square.is_empty:
        return [Bounds.whole(shape)]
    rows, columns = shape
    return [
        Bounds(0, 0, square.top, columns),
        Bounds(square.bottom, 0, rows, columns),
        Bounds(square.top, 0, square.bottom, square.left),
        Bounds(square.top, square.right, square.bottom, columns),
    ]


def _saved_frame(frame: GridGeometry) -> tuple[Any, ...]:
    corner = frame.T_map_grid
    return frame.resolution, frame.shape, (corner.x, corner.y, corner.theta)


def _loaded_frame(saved: tuple[Any, ...]) -> GridGeometry:
    resolution, (rows, columns), corner = saved
    return GridGeometry(resolution, (int(rows), int(columns)), SE2(*corner))


def _saved_grid(grid: OccupancyGrid | None) -> tuple[Any, ...] | None:
    return None if grid is None else (grid.cells, *_saved_frame(grid.geometry))


def _loaded_grid(saved: tuple[Any, ...] | None) -> OccupancyGrid | None:
    return None if saved is None else OccupancyGrid(saved[0], _loaded_frame(saved[1:]))
