"""Obstacle layer: beams of laser scans and point clouds mark cells at their ends and clear the cells before them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import check, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.layered_costmap import (
    EMPTY_BOUNDS,
    FREE,
    LETHAL,
    UNKNOWN,
    CellBounds,
    shift_cells,
    transfer_cells,
)


class SensorLayerBase:
    """A layer with stored costs; cells are unknown at first, and where a rolling map enters new ground.

    Args:
        overwrite: Whether what it knows replaces what the layers below say; else the higher cost wins.
        name: Of the layer.
    """

    state_arrays: ClassVar[dict[str, np.generic]] = {"_cells": np.uint8(UNKNOWN), "_marked_by": np.uint8(0)}
    """Arrays (rows, columns) that it keeps in mind, and what they hold where it knows nothing."""

    def __init__(self, *, overwrite: bool, name: str) -> None:
        expect_kernels(cells_in_polygon)
        self.name = name
        self._overwrite = overwrite
        self._cells = self._marked_by = np.zeros((0, 0), dtype=np.uint8)
        self._sensor_names = [""]
        self._geometry = GridGeometry(1.0, (0, 0))
        self._changed_bounds = EMPTY_BOUNDS

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        for name, background in self.state_arrays.items():
            cells = (
                np.full(geometry.shape, background)
                if shift is None
                else shift_cells(getattr(self, name), shift, background)
            )
            setattr(self, name, cells)
        self._geometry = geometry
        self._changed_bounds = CellBounds.full(geometry.shape)

    def clear(self, bounds: CellBounds | None = None) -> None:
        """What was seen, everywhere or within bounds."""
        cleared = CellBounds.full(self._geometry.shape) if bounds is None else bounds
        for name, background in self.state_arrays.items():
            getattr(self, name)[cleared.slices] = background
        self._changed_bounds = self._changed_bounds.union(cleared)

    def save_state(self) -> dict[str, Any]:
        """All it keeps in mind, as plain data."""
        return {name: getattr(self, name).copy() for name in self.state_arrays} | {
            "sensor_names": list(self._sensor_names)
        }

    def load_state(self, saved: dict[str, Any], geometry: GridGeometry) -> None:
        """Restore the state that ``save_state`` returned.

        Args:
            saved: Of this layer, or one that was made the same way.
            geometry: Where the cells lay then; where they do not lie cell on cell with those of now, nothing is known.
        """
        for name, background in self.state_arrays.items():
            setattr(self, name, transfer_cells(saved[name], geometry, self._geometry, background))
        self._sensor_names = list(saved["sensor_names"])
        self._changed_bounds = CellBounds.full(self._geometry.shape)

    def clear_polygon(self, corners: ArrayLike) -> None:
        """Take for free the cells that lie wholly under a polygon, e.g. under the robot itself.

        What stands beside it keeps its cells: no obstacle is lost because the robot has come near to it.

        Args:
            corners: (n, 2) in the map [m].

        Raises:
            InputError: no such corners.
        """
        covered = self._covered_cells(corners)
        newly_free = covered[self._cells[covered[:, 0], covered[:, 1]] != FREE]
        self._clear_cells(covered)
        self._changed_bounds = self._changed_bounds.union(CellBounds.around(newly_free))

    def marking_sensors(self, cells: NDArray[np.int64]) -> list[str]:
        """See ``SensorLayer``: who marked a cell last."""
        return [self._sensor_names[index] for index in self._marked_by[cells[:, 0], cells[:, 1]]]

    def pop_changed_bounds(self) -> CellBounds:
        """See ``Layer``."""
        changed, self._changed_bounds = self._changed_bounds, EMPTY_BOUNDS
        return changed

    def influence_cells(self) -> int:
        """See ``Layer``."""
        return 0

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """See ``Layer``."""
        layer_costs, master = self._cells[bounds.slices], cells[bounds.slices]
        is_written = layer_costs != UNKNOWN
        if not self._overwrite:
            is_written &= (layer_costs > master) | (master == UNKNOWN)
        np.copyto(master, layer_costs, where=is_written)

    def _sensor_index(self, sensor: str) -> int:
        """Of a sensor's name, as ``_seen_by`` keeps it; 0 for those that come after the 255th."""
        if sensor not in self._sensor_names and len(self._sensor_names) <= np.iinfo(np.uint8).max:
            self._sensor_names.append(sensor)
        return self._sensor_names.index(sensor) if sensor in self._sensor_names else 0

    def _clear_cells(self, covered: NDArray[np.int64]) -> None:
        self._cells[covered[:, 0], covered[:, 1]] = FREE

    def _covered_cells(self, corners: ArrayLike) -> NDArray[np.int64]:
        """Rows and columns (n, 2) of cells that lie wholly under a polygon."""
        outline = np.asarray(corners, dtype=np.float64)
        if outline.ndim != 2 or outline.shape[1:] != (2,) or len(outline) < 3 or not np.isfinite(outline).all():
            raise InputError(f"a polygon of shape {outline.shape}", valid="(n, 2), n at least 3, finite metres")
        corners_in_cells = (self._geometry.T_map_grid.inverse() @ outline) / self._geometry.resolution
        return np.asarray(cells_in_polygon(corners_in_cells, *self._geometry.shape))


@kernel(examples=lambda: [(np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]]), 5, 5)])
def cells_in_polygon(corners: NDArray[np.float64], rows: int, columns: int) -> NDArray[np.int64]:
    """Rows and columns (n, 2) of a grid's cells all four corners of which lie in a polygon, by counting crossings.

    Args:
        corners: (n, 2) of the polygon, along columns and along rows [cells].
        rows: Of the grid.
        columns: See above.
    """
    top = max(math.floor(corners[:, 1].min()), 0)
    bottom = min(math.ceil(corners[:, 1].max()), rows)
    left = max(math.floor(corners[:, 0].min()), 0)
    right = min(math.ceil(corners[:, 0].max()), columns)
    height, width = max(bottom - top, 0), max(right - left, 0)
    inside = np.zeros((height + 1, width + 1), dtype=np.bool_)  # corners of cells
    ax, ay = corners[-1]
    for k in range(len(corners)):
        bx, by = corners[k]
        for r in range(height + 1):
            y = top + r
            if (ay > y) != (by > y):
                crossing = ax + (y - ay) * ((bx - ax) / (by - ay))
                for c in range(width + 1):
                    if left + c < crossing:
                        inside[r, c] = not inside[r, c]
        ax, ay = bx, by
    found = np.empty((height * width, 2), dtype=np.int64)
    n = 0
    for r in range(height):
        for c in range(width):
            if inside[r, c] and inside[r, c + 1] and inside[r + 1, c] and inside[r + 1, c + 1]:
                found[n, 0], found[n, 1] = top + r, left + c
                n += 1
    return found[:n]


@dataclass(frozen=True, slots=True)
class Observation:
    """Points that one sensor measured at one time.

    Attributes:
        origin: (3,) of the sensor in the map [m].
        points: (n, 3) where beams ended, in the map [m].
        hits: (n,) whether something stopped the beam there; else it was free that far.
        sensor: Name of the sensor, for explanations of obstacles.

    Raises:
        InputError: arrays that do not fit each other, or numbers that are not finite.
    """

    origin: NDArray[np.float64]
    points: NDArray[np.float64]
    hits: NDArray[np.bool_]
    sensor: str = ""

    def transformed(self, T: SE2) -> Observation:
        """The same in another frame on the same ground."""
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
    """Which points count, as in Nav2's obstacle layer.

    Raises:
        ConfigError: a number out of range.
    """

    min_height: float = parameter(-0.1, unit="m", low=-100.0, high=100.0, doc="lowest point that is an obstacle")
    max_height: float = parameter(2.0, unit="m", low=-100.0, high=100.0, doc="highest")
    obstacle_min_range: float = parameter(0.0, unit="m", low=0.0, high=1000.0, doc="nearest point that is marked")
    obstacle_max_range: float = parameter(5.0, unit="m", low=0.0, high=1000.0, doc="farthest")
    raytrace_max_range: float = parameter(6.0, unit="m", low=0.0, high=1000.0, doc="how far beams clear")

    def __post_init__(self) -> None:
        check(self, "observation_filter")
        if not (self.min_height < self.max_height and self.obstacle_min_range < self.obstacle_max_range):
            raise ConfigError(
                f"heights {self.min_height} to {self.max_height}, ranges {self.obstacle_min_range} to "
                f"{self.obstacle_max_range}",
                location="observation_filter",
                valid="ascending",
            )


class ObstacleLayer(SensorLayerBase):
    """What planar beams say about the ground.

    Args:
        config: Which points count.
        overwrite: Whether what it saw free frees cells of the layers below; else the higher cost wins.
        name: Of the layer.
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
        """Take what the sensors saw: first all beams clear, then all ends mark, so that none wipes out another's."""
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
            bounds = np.array([0, 0, -1, -1], dtype=np.int64)
            clear_beams(self._cells, start, ends, config.raytrace_max_range / self._geometry.resolution, bounds)
            if bounds[2] >= 0:
                self._changed_bounds = self._changed_bounds.union(
                    CellBounds(int(bounds[0]), int(bounds[1]), int(bounds[2]) + 1, int(bounds[3]) + 1)
                )
            is_in_range = (ranges >= config.obstacle_min_range) & (ranges <= config.obstacle_max_range)
            cells = np.floor(ends[observation.hits & is_above_min & is_below_max & is_in_range]).astype(np.int64)[
                :, ::-1
            ]
            marked_cells.append(cells[self._geometry.contains(cells)])
            self._marked_by[marked_cells[-1][:, 0], marked_cells[-1][:, 1]] = self._sensor_index(observation.sensor)
        cells = np.concatenate(marked_cells) if marked_cells else np.zeros((0, 2), dtype=np.int64)
        self._cells[cells[:, 0], cells[:, 1]] = LETHAL
        self._changed_bounds = self._changed_bounds.union(CellBounds.around(cells))


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), dtype=np.uint8), np.zeros(2), np.zeros((3, 2)), 1.0, np.zeros(4, dtype=np.int64)),
    ]
)
def clear_beams(
    cells: NDArray[np.uint8],
    start: NDArray[np.float64],
    ends: NDArray[np.float64],
    raytrace_range: float,
    bounds: NDArray[np.int64],
) -> None:
    """Free the cells that beams pass through, those of their ends left out.

    Args:
        cells: (rows, columns), written.
        start: (2,) x and y of the sensor [cells from the grid's corner].
        ends: (n, 2) of the beams.
        raytrace_range: How far a beam clears [cells].
        bounds: (4,) result: first row and column, last row and column of what changed; last is -1 for nothing.
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
    bounds[0], bounds[1], bounds[2], bounds[3] = top, left, bottom, right
