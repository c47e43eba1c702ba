"""The two costmaps a robot drives by: a global one to plan in, a local one about the robot to drive in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.grids import GridFrame, OccupancyGrid
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
    ObstacleConfig,
    ObstacleLayer,
    StaticLayer,
)
from roboyard.navigation.driving.config import CostmapSettings
from roboyard.navigation.footprint import Footprint


class Surroundings:
    """What is known about the ground: the map, what sensors saw, where one must not go, and the room the robot needs.

    The local costmap lies in the odometry's frame, which does not jump; it is given in the map's frame of the moment.
    Without a map the global costmap moves with the robot.

    Args:
        settings: Of the costmaps.
        footprint: Of the robot.
    """

    def __init__(self, settings: CostmapSettings, footprint: Footprint) -> None:
        self._settings, self._footprint = settings, footprint
        self._map: OccupancyGrid | None = None
        self._keepout_mask: OccupancyGrid | None = None
        self._static, self._keepout = StaticLayer(), KeepoutLayer()
        self._seen, self._seen_near = _obstacles(settings), _obstacles(settings)
        self.world = LayeredCostmap(_square(settings.rolling_size, settings.resolution), self._over(self._seen))
        self.near = LayeredCostmap(
            _square(settings.local_size, settings.resolution), [self._seen_near, *self._inflated()]
        )

    def _over(self, seen: ObstacleLayer) -> list[Layer]:
        return [self._static, seen, self._keepout, *self._inflated()]

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
        same = self._map is not None and self._map.frame == grid.frame
        self._map = grid
        self._static.take(grid)
        if same:
            return
        before = self.world.frame
        seen = self._seen.save()
        self.world = LayeredCostmap(grid.frame, self._over(self._seen), unknown=True)
        self._seen.load(_carried(seen, before, grid.frame))

    def take_keepout(self, mask: OccupancyGrid) -> None:
        """Do not go where the mask says so from now on."""
        self._keepout_mask = mask
        self._keepout.take(mask)

    def see(self, observations: Sequence[Observation], T_map_odom: SE2) -> None:
        """Take what sensors saw, in the odometry's frame."""
        self._seen_near.see(observations)
        self._seen.see([_moved(seen, T_map_odom) for seen in observations])

    def move(self, T_odom_base: SE2, T_map_odom: SE2) -> None:
        """Follow the robot, and put together what changed near it."""
        self.near.centre_on(T_odom_base)
        self.near.update()
        if not self.has_map:
            self.world.centre_on(T_map_odom @ T_odom_base)

    # -- what is known -------------------------------------------------------------------------------------------------
    def near_costs(self, T_map_odom: SE2) -> Costmap:
        """The local costmap, in the map."""
        found = self.near.costmap()
        return Costmap(found.cells, replace(found.frame, T_map_grid=T_map_odom @ found.frame.T_map_grid))

    def world_costs(self) -> Costmap:
        """The global costmap, as it is now."""
        self.world.update()
        return self.world.costmap()

    def static_cost(self, pose: SE2, radius: float) -> int:
        """What the map made beforehand says about a place: lethal if an obstacle lies within the radius [m], else what
        the place itself is."""
        frame = self.world.frame
        cell = frame.cells(pose.xy)
        if not self.has_map or not frame.contains(cell):
            return UNKNOWN
        found = np.full(frame.shape, UNKNOWN, dtype=np.uint8)
        self._static.apply(found, _about(frame, pose, radius + frame.resolution))
        lethal = frame.points(np.argwhere(found == LETHAL))
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
        for layer, frame, pose in (
            (self._seen_near, self.near.frame, T_odom_base),
            (self._seen, self.world.frame, T_map_odom @ T_odom_base),
        ):
            square = _about(frame, pose, half)
            for part in [square] if inside else _rest(square, frame.shape):
                layer.forget(part)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "map": _saved_grid(self._map), "keepout": _saved_grid(self._keepout_mask),
            "world": _saved_frame(self.world.frame), "near": _saved_frame(self.near.frame),
            "seen": self._seen.save(), "seen_near": self._seen_near.save(),
        }  # fmt: skip

    def load(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`; costs are put together anew, which gives the same."""
        grid, mask = _loaded_grid(saved["map"]), _loaded_grid(saved["keepout"])
        if grid is not None:
            self.take_map(grid)
        if mask is not None:
            self.take_keepout(mask)
        self.world.replace(_loaded_frame(saved["world"]))
        self.near.replace(_loaded_frame(saved["near"]))
        self._seen.load(saved["seen"])
        self._seen_near.load(saved["seen_near"])
        self.world.update()
        self.near.update()


def _obstacles(settings: CostmapSettings) -> ObstacleLayer:
    return ObstacleLayer(
        ObstacleConfig(
            min_height=settings.min_height, max_height=settings.max_height, mark_to=settings.mark_to,
            clear_to=settings.clear_to,
        )
    )  # fmt: skip


def _square(side: float, resolution: float) -> GridFrame:
    count = max(math.ceil(side / resolution), 1)
    return GridFrame(resolution, (count, count), SE2(-count * resolution / 2.0, -count * resolution / 2.0, 0.0))


def _moved(seen: Observation, T: SE2) -> Observation:
    origin = np.array([*(T @ seen.origin[:2]), seen.origin[2]])
    points = np.column_stack([T @ seen.points[:, :2], seen.points[:, 2]])
    return replace(seen, origin=origin, points=points)


def _about(frame: GridFrame, pose: SE2, half: float) -> Bounds:
    if math.isinf(half):
        return Bounds.whole(frame.shape)
    row, column = (int(value) for value in frame.cells(pose.xy))
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


def _carried(cells: NDArray[np.uint8], before: GridFrame, after: GridFrame) -> NDArray[np.uint8]:
    """The cells of one grid as another sees them, where the two lie cell on cell; else nothing is known."""
    result = np.full(after.shape, UNKNOWN, dtype=np.uint8)
    offset = (before.T_map_grid.inverse() @ after.T_map_grid.xy) / before.resolution
    turned = abs(before.T_map_grid.theta - after.T_map_grid.theta) > 1e-9
    if turned or before.resolution != after.resolution or np.abs(offset - np.round(offset)).max() > 1e-3:
        return result
    down, right = round(float(offset[1])), round(float(offset[0]))
    top, left = max(down, 0), max(right, 0)
    bottom = min(down + after.shape[0], before.shape[0])
    last = min(right + after.shape[1], before.shape[1])
    if top < bottom and left < last:
        result[top - down : bottom - down, left - right : last - right] = cells[top:bottom, left:last]
    return result


def _saved_frame(frame: GridFrame) -> tuple[Any, ...]:
    corner = frame.T_map_grid
    return frame.resolution, frame.shape, (corner.x, corner.y, corner.theta)


def _loaded_frame(saved: tuple[Any, ...]) -> GridFrame:
    resolution, (rows, columns), corner = saved
    return GridFrame(resolution, (int(rows), int(columns)), SE2(*corner))


def _saved_grid(grid: OccupancyGrid | None) -> tuple[Any, ...] | None:
    return None if grid is None else (grid.cells, *_saved_frame(grid.frame))


def _loaded_grid(saved: tuple[Any, ...] | None) -> OccupancyGrid | None:
    return None if saved is None else OccupancyGrid(saved[0], _loaded_frame(saved[1:]))
