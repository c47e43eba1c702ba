"""Obstacle layer: beams of laser scans and point clouds mark cells at their ends and clear the cells before them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import check, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.navigation.costmap.layer_types import LayerContext
from roboyard.navigation.costmap.layered_costmap import FREE, LETHAL, CellBounds
from roboyard.navigation.costmap.sensor_layer import PointSourceConfig, SensorLayer, SensorLayerConfig


@dataclass(frozen=True, slots=True)
class Observation:
    """Points that one sensor measured at one time.

    Attributes:
        origin: (3,) position of the sensor in the frame of the costmap [m].
        points: (n, 3) ends of the beams, in the same frame [m].
        hits: (n,) whether an obstacle stopped the beam there; else the space is free up to the point.
        sensor: Name of the sensor, for explanations of obstacles.

    Raises:
        InputError: The shapes do not match, or a number is not finite.
    """

    origin: NDArray[np.float64]
    points: NDArray[np.float64]
    hits: NDArray[np.bool_]
    sensor: str = ""

    def transformed(self, T: SE2) -> Observation:
        """Return the observation in another frame, of which ``T`` is the planar pose of the present one."""
        origin = np.array([*(T @ self.origin[:2]), self.origin[2]])
        return replace(self, origin=origin, points=np.column_stack([T @ self.points[:, :2], self.points[:, 2]]))

    def __post_init__(self) -> None:
        origin, points, hits = (
            np.asarray(self.origin, float),
            np.asarray(self.points, float),
            np.asarray(self.hits, bool),
        )
        if origin.shape != (3,) or points.ndim != 2 or points.shape[1:] != (3,) or hits.shape != (len(points),):
            raise InputError(
                f"an observation of shapes {origin.shape}, {points.shape}, {hits.shape}", valid="(3,), (n, 3), (n,)"
            )
        if not (np.isfinite(origin).all() and np.isfinite(points).all()):
            raise InputError("an observation with points that are not finite", valid="metres; leave such beams out")
        for name, value in (("origin", origin), ("points", points), ("hits", hits)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class ObservationFilterConfig:
    """Points of a sensor that count, as in Nav2's obstacle layer.

    Raises:
        ConfigError: A number is out of range, or a pair of limits does not ascend.
    """

    min_height: float = parameter(-0.1, unit="m", low=-100.0, high=100.0, doc="Lowest point that is an obstacle.")
    max_height: float = parameter(2.0, unit="m", low=-100.0, high=100.0, doc="Highest point that is an obstacle.")
    obstacle_min_range: float = parameter(0.0, unit="m", low=0.0, high=1000.0, doc="Nearest point that is marked.")
    obstacle_max_range: float = parameter(5.0, unit="m", low=0.0, high=1000.0, doc="Farthest point that is marked.")
    raytrace_max_range: float = parameter(
        6.0, unit="m", low=0.0, high=1000.0, doc="Length of a beam along which cells are cleared."
    )

    def __post_init__(self) -> None:
        check(self, "observation_filter")
        if not (self.min_height < self.max_height and self.obstacle_min_range < self.obstacle_max_range):
            raise ConfigError(
                f"heights {self.min_height} to {self.max_height}, ranges {self.obstacle_min_range} to "
                f"{self.obstacle_max_range}",
                location="observation_filter",
                valid="ascending",
            )


class ObstacleLayer(SensorLayer):
    """Planar obstacles from laser scans and point clouds (nav2_costmap_2d::ObstacleLayer).

    Args:
        config: Points that count.
        overwrite: Whether free cells of this layer free those of the layers below; else the higher cost wins.
        name: Name of the layer.
    """

    def __init__(
        self,
        config: ObservationFilterConfig = ObservationFilterConfig(),
        *,
        overwrite: bool = False,
        name: str = "obstacles",
    ) -> None:
        super().__init__(overwrite=overwrite, name=name)
        expect_kernels(clear_beams)
        self._config = config

    def add_observations(self, observations: Sequence[Observation]) -> None:
        """Clear along all beams, then mark all their ends, so that no beam clears the obstacle of another."""
        config = self._config
        T_grid_map = self._geometry.T_map_grid.inverse()
        marked_cells = []
        for observation in observations:
            start = (T_grid_map @ observation.origin[:2]) / self._geometry.resolution
            ends = (T_grid_map @ observation.points[:, :2]) / self._geometry.resolution
            ranges = np.hypot(*(observation.points[:, :2] - observation.origin[:2]).T)
            is_above_min, is_below_max = (
                observation.points[:, 2] >= config.min_height,
                observation.points[:, 2] <= config.max_height,
            )
            cleared = clear_beams(self._cells, start, ends, config.raytrace_max_range / self._geometry.resolution)
            self._changed_bounds = self._changed_bounds.union(CellBounds(*cleared))
            is_in_range = (ranges >= config.obstacle_min_range) & (ranges <= config.obstacle_max_range)
            cells = np.floor(ends[observation.hits & is_above_min & is_below_max & is_in_range]).astype(np.int64)[
                :, ::-1
            ]
            marked_cells.append(cells[self._geometry.contains(cells)])
            self._marked_by[marked_cells[-1][:, 0], marked_cells[-1][:, 1]] = self._sensor_index(observation.sensor)
        cells = np.concatenate(marked_cells) if marked_cells else np.zeros((0, 2), dtype=np.int64)
        self._cells[cells[:, 0], cells[:, 1]] = LETHAL
        self._changed_bounds = self._changed_bounds.union(CellBounds.around(cells))


@dataclass(frozen=True, kw_only=True)
class ObstacleLayerConfig(SensorLayerConfig):
    """Obstacles in the plane, from laser scans and point clouds: marked at the ends of beams, cleared along them."""

    sources: tuple[PointSourceConfig, ...] = parameter(doc="Sensors of the layer.")
    observation_filter: ObservationFilterConfig = parameter(ObservationFilterConfig(), doc="Points that count.")

    def make_layer(self, context: LayerContext) -> ObstacleLayer:
        """Return an obstacle layer."""
        return ObstacleLayer(self.observation_filter, overwrite=self.overwrite, name=context.name)


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), dtype=np.uint8), np.zeros(2), np.zeros((3, 2)), 1.0),
    ]
)
def clear_beams(
    cells: NDArray[np.uint8],
    start: NDArray[np.float64],
    ends: NDArray[np.float64],
    raytrace_range: float,
) -> CellBounds:
    """Mark the cells that beams pass through as free, except those in which they end.

    Args:
        cells: (rows, columns), written.
        start: (2,) x and y of the sensor [cells from the grid's corner].
        ends: (n, 2) x and y of the beams' ends, likewise.
        raytrace_range: Length of a beam that clears [cells].

    Returns:
        Cells that changed.
    """
    rows, columns = cells.shape
    top, left, bottom, right = rows, columns, -1, -1
    for k in range(len(ends)):
        dx, dy = ends[k, 0] - start[0], ends[k, 1] - start[1]
        length = math.hypot(dx, dy)
        fraction = min(raytrace_range / length, 1.0) if length > 0.0 else 0.0
        column, row = math.floor(start[0]), math.floor(start[1])
        last_column, last_row = math.floor(start[0] + fraction * dx), math.floor(start[1] + fraction * dy)
        step_column, step_row = (1 if dx > 0.0 else -1), (1 if dy > 0.0 else -1)
        t_column = ((column + (dx > 0.0)) - start[0]) / dx if dx != 0.0 else math.inf
        t_row = ((row + (dy > 0.0)) - start[1]) / dy if dy != 0.0 else math.inf
        each_column = abs(1.0 / dx) if dx != 0.0 else math.inf
        each_row = abs(1.0 / dy) if dy != 0.0 else math.inf
        # a beam that ends beyond its reach frees its last cell too
        for _ in range(abs(last_column - column) + abs(last_row - row) + (fraction < 1.0)):
            if 0 <= row < rows and 0 <= column < columns and cells[row, column] != FREE:
                cells[row, column] = FREE
                top, left, bottom, right = min(top, row), min(left, column), max(bottom, row), max(right, column)
            if t_column < t_row:
                column += step_column
                t_column += each_column
            else:
                row += step_row
                t_row += each_row
    return CellBounds(top, left, bottom + 1, right + 1)
