"""Layers that store what sensors observed, and the configuration of their sensors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import parameter
from roboyard.errors import InputError
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.layer_types import LayerConfig
from roboyard.navigation.costmap.layered_costmap import (
    EMPTY_BOUNDS,
    FREE,
    UNKNOWN,
    CellBounds,
    Layer,
    shift_cells,
    transfer_cells,
)


@dataclass(frozen=True)
class PointSourceConfig:
    """Sensor that measures points: a laser scanner or a depth camera. Its layer receives an `Observation` each time."""

    topic: str = parameter(doc="Topic of the sensor.")
    data_type: Literal["scan", "cloud"] = parameter(
        "scan", doc="Type of the messages: sensor_msgs/LaserScan or PointCloud2."
    )
    observation_persistence: float = parameter(
        0.0, unit="s", low=0.0, high=3600.0, doc="Time for which what it saw counts; 0: the newest message."
    )
    timeout: float | None = parameter(
        None,
        unit="s",
        low=0.02,
        high=3600.0,
        doc="Silence after which the robot stops; none: the node's sensor_timeout.",
    )
    voxel_size: float = parameter(
        0.05, unit="m", low=0.0, high=10.0, doc="Edge of the cube in which points of a cloud become one; 0: none."
    )
    decimation: int = parameter(1, low=1, high=64, doc="Step between the used rows and columns of an organized cloud.")


@dataclass(frozen=True)
class RangeSourceConfig:
    """Sonar, or another sensor of one distance (sensor_msgs/Range). Its layer receives a `RangeReading` each time."""

    topic: str = parameter(doc="Topic of the sensor.")
    timeout: float | None = parameter(
        None,
        unit="s",
        low=0.02,
        high=3600.0,
        doc="Silence after which the robot stops; none: the node's sensor_timeout.",
    )


SourceConfig = PointSourceConfig | RangeSourceConfig
"""Configuration of a sensor of a layer."""


@dataclass(frozen=True, kw_only=True)
class SensorLayerConfig(LayerConfig):
    """Configuration that all sensor layers share; a subclass declares the type of its sources."""

    overwrite: bool = parameter(
        False, doc="Replace the costs of the layers below by what this layer knows; false: the higher cost wins."
    )
    clear_footprint: bool = parameter(True, doc="Mark the cells under the robot as free.")
    sources: tuple[Any, ...] = parameter(doc="Sensors of the layer.")


class SensorLayer(Layer):
    """Layer that stores a cost for each cell; cells are unknown at first, and where a rolling costmap enters new space.

    A subclass implements `add_observations`, which writes into ``_cells`` and extends ``_changed_bounds``. Further
    arrays
    that it stores for each cell are named in ``state_arrays``; they then move with a rolling costmap, and are cleared,
    saved and restored.

    Args:
        overwrite: Whether what the layer knows replaces the costs of the layers below; else the higher cost wins.
        name: Name of the layer.
    """

    is_clearable = True

    state_arrays: ClassVar[dict[str, np.generic]] = {"_cells": np.uint8(UNKNOWN), "_marked_by": np.uint8(0)}
    """Attributes with an array (rows, columns), and the value of cells about which nothing is known."""

    def __init__(self, *, overwrite: bool, name: str) -> None:
        super().__init__(name)
        expect_kernels(cells_in_polygon)
        self.lowers_costs = overwrite
        self._cells = self._marked_by = np.zeros((0, 0), dtype=np.uint8)
        self._sensor_names = [""]
        self._geometry = GridGeometry(1.0, (0, 0))
        self._changed_bounds = EMPTY_BOUNDS

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """Move the stored arrays with the costmap; on another grid, nothing is known."""
        for name, background in self.state_arrays.items():
            cells = (
                np.full(geometry.shape, background)
                if shift is None
                else shift_cells(getattr(self, name), shift, background)
            )
            setattr(self, name, cells)
        self._geometry = geometry
        self._changed_bounds = CellBounds.full(geometry.shape)

    @abstractmethod
    def add_observations(self, observations: Sequence[Any]) -> object:
        """Add observations of the layer's sensors, in the frame of the costmap, in the order of their arrival."""

    def clear(self, bounds: CellBounds | None = None) -> None:
        """Forget what the sensors observed, everywhere or within bounds."""
        cleared = CellBounds.full(self._geometry.shape) if bounds is None else bounds
        for name, background in self.state_arrays.items():
            getattr(self, name)[cleared.slices] = background
        self._changed_bounds = self._changed_bounds.union(cleared)

    def save_state(self) -> dict[str, Any]:
        """Return the stored arrays and the names of the sensors, as plain data."""
        return {name: getattr(self, name).copy() for name in self.state_arrays} | {
            "sensor_names": list(self._sensor_names)
        }

    def load_state(self, saved: dict[str, Any], geometry: GridGeometry) -> None:
        """Restore the state that `save_state` returned.

        Args:
            saved: State of a layer that was made the same way.
            geometry: Where the cells lay then; if the two grids do not coincide cell by cell, nothing is known.
        """
        for name, background in self.state_arrays.items():
            setattr(self, name, transfer_cells(saved[name], geometry, self._geometry, background))
        self._sensor_names = list(saved["sensor_names"])
        self._changed_bounds = CellBounds.full(self._geometry.shape)

    def clear_polygon(self, corners: ArrayLike) -> None:
        """Mark the cells that lie wholly under a polygon as free, such as those under the robot itself.

        An obstacle beside the polygon keeps its cells, so that none is lost because the robot is near.

        Args:
            corners: (n, 2) in the frame of the costmap [m].

        Raises:
            InputError: The corners are no polygon.
        """
        covered = self._covered_cells(corners)
        newly_free = covered[self._cells[covered[:, 0], covered[:, 1]] != FREE]
        self._clear_cells(covered)
        self._changed_bounds = self._changed_bounds.union(CellBounds.around(newly_free))

    def marking_sensors(self, cells: NDArray[np.int64]) -> list[str]:
        """Return the name of the sensor that marked each of the cells (n, 2) last."""
        return [self._sensor_names[index] for index in self._marked_by[cells[:, 0], cells[:, 1]]]

    def update_bounds(self) -> CellBounds:
        """Return the cells that changed since the last call."""
        changed, self._changed_bounds = self._changed_bounds, EMPTY_BOUNDS
        return changed

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """Write the known costs where they are higher, or everywhere if the layer overwrites."""
        layer_costs, master = self._cells[bounds.slices], cells[bounds.slices]
        is_written = layer_costs != UNKNOWN
        if not self.lowers_costs:
            is_written &= (layer_costs > master) | (master == UNKNOWN)
        np.copyto(master, layer_costs, where=is_written)

    def _sensor_index(self, sensor: str) -> int:
        """Return the index of a sensor's name in ``_marked_by``; 0 for those after the 255th."""
        if sensor not in self._sensor_names and len(self._sensor_names) <= np.iinfo(np.uint8).max:
            self._sensor_names.append(sensor)
        return self._sensor_names.index(sensor) if sensor in self._sensor_names else 0

    def _clear_cells(self, covered: NDArray[np.int64]) -> None:
        self._cells[covered[:, 0], covered[:, 1]] = FREE

    def _covered_cells(self, corners: ArrayLike) -> NDArray[np.int64]:
        """Return rows and columns (n, 2) of the cells that lie wholly under a polygon."""
        outline = np.asarray(corners, dtype=np.float64)
        if outline.ndim != 2 or outline.shape[1:] != (2,) or len(outline) < 3 or not np.isfinite(outline).all():
            raise InputError(f"a polygon of shape {outline.shape}", valid="(n, 2), n at least 3, finite [m]")
        corners_in_cells = (self._geometry.T_map_grid.inverse() @ outline) / self._geometry.resolution
        return np.asarray(cells_in_polygon(corners_in_cells, *self._geometry.shape))


@kernel(examples=lambda: [(np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]]), 5, 5)])
def cells_in_polygon(corners: NDArray[np.float64], rows: int, columns: int) -> NDArray[np.int64]:
    """Return rows and columns (n, 2) of the cells whose four corners lie in a polygon, by counting crossings.

    Args:
        corners: (n, 2) of the polygon, along columns and along rows [cells].
        rows: Number of rows of the grid.
        columns: Number of columns of the grid.
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
