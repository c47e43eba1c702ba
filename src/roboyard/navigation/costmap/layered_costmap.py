"""Layered costmap: layers write costs into one grid, and only the cells that changed are computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry

FREE, INSCRIBED, LETHAL, UNKNOWN = 0, 253, 254, 255
"""Values of cells, as in Nav2: between 0 and 253 the robot's center may be there at that cost; from 253 on the robot
touches an obstacle whichever way it looks; 254 is the obstacle itself; 255 nobody has seen."""


@dataclass(frozen=True, slots=True)
class Costmap:
    """What it costs the robot's center to be at a place.

    Attributes:
        cells: (rows, columns) uint8, see ``FREE`` to ``UNKNOWN``.
        geometry: Where the cells lie.

    Raises:
        InputError: cells of another shape than the frame's, or of another type.
    """

    cells: NDArray[np.uint8]
    geometry: GridGeometry

    def __post_init__(self) -> None:
        if self.cells.shape != self.geometry.shape or self.cells.dtype != np.uint8:
            raise InputError(
                f"costs of {self.cells.dtype} and shape {self.cells.shape}",
                valid=f"uint8 of shape {self.geometry.shape}",
            )


class CellBounds(NamedTuple):
    """Rows from ``top`` to below ``bottom``, columns from ``left`` to below ``right``."""

    top: int
    left: int
    bottom: int
    right: int

    @classmethod
    def full(cls, shape: tuple[int, int]) -> CellBounds:
        """All cells."""
        return cls(0, 0, shape[0], shape[1])

    @classmethod
    def around(cls, cells: ArrayLike) -> CellBounds:
        """The smallest that holds cells (n, 2), each row and column; empty for none."""
        rows_columns = np.asarray(cells)
        if not len(rows_columns):
            return EMPTY_BOUNDS
        (top, left), (bottom, right) = rows_columns.min(axis=0), rows_columns.max(axis=0)
        return cls(int(top), int(left), int(bottom) + 1, int(right) + 1)

    @property
    def is_empty(self) -> bool:
        """Whether no cell belongs to it."""
        return self.top >= self.bottom or self.left >= self.right

    def union(self, other: CellBounds) -> CellBounds:
        """The smallest that holds both."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        return CellBounds(
            min(self.top, other.top), min(self.left, other.left),
            max(self.bottom, other.bottom), max(self.right, other.right),
        )  # fmt: skip

    def expanded(self, margin: int, shape: tuple[int, int]) -> CellBounds:
        """So many cells more on each side, within a grid of that shape."""
        if self.is_empty:
            return self
        return CellBounds(
            max(self.top - margin, 0), max(self.left - margin, 0),
            min(self.bottom + margin, shape[0]), min(self.right + margin, shape[1]),
        )  # fmt: skip

    @property
    def slices(self) -> tuple[slice, slice]:
        """To index an array with."""
        return slice(self.top, self.bottom), slice(self.left, self.right)


EMPTY_BOUNDS = CellBounds(0, 0, 0, 0)


class Layer(Protocol):
    """A source of traversal costs (nav2_costmap_2d::Layer)."""

    name: str

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """The map's cells lie elsewhere now.

        Args:
            geometry: Where.
            shift: By how many rows and columns the same cells lie further, or None for other cells altogether.
        """
        ...

    def pop_changed_bounds(self) -> CellBounds:
        """Which cells this layer would set differently than when last asked."""
        ...

    def influence_cells(self) -> int:
        """How many cells beyond a change of the layers below this layer's own values change."""
        ...

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """Write the layer's costs into the costmap's cells (rows, columns), within the bounds only."""
        ...


@runtime_checkable
class SensorLayer(Protocol):
    """A layer that stores which sensor marked each cell."""

    def marking_sensors(self, cells: NDArray[np.int64]) -> Sequence[str]:
        """Name of the sensor that marked each of the cells (n, 2), rows and columns; empty where it is not known."""
        ...


@dataclass(frozen=True, slots=True)
class CellSource:
    """The layer and the sensor that gave a cell its cost.

    Attributes:
        layer: Its name; empty for cells that no layer knows.
        sensor: Name of the sensor, where the layer remembers it.
    """

    layer: str
    sensor: str = ""

    def __str__(self) -> str:
        if not self.layer:
            return "ground that nobody has seen"
        return f"layer '{self.layer}'" + (f" (sensor '{self.sensor}')" if self.sensor else "")


class LayeredCostmap:
    """The map and its layers, the lowest first.

    Args:
        geometry: Where the cells lie.
        layers: Each written over those before it, as it sees fit.
        track_unknown_space: Whether cells that no layer knows count as unknown; else as free.

    Raises:
        InputError: two layers of one name.
    """

    def __init__(self, geometry: GridGeometry, layers: Sequence[Layer], *, track_unknown_space: bool = False) -> None:
        names = [layer.name for layer in layers]
        if len(set(names)) != len(names):
            raise InputError(f"layers named {', '.join(names)}", valid="each name once")
        self._layers = tuple(layers)
        self._background = UNKNOWN if track_unknown_space else FREE
        self._geometry = geometry
        self._cells = np.full(geometry.shape, self._background, dtype=np.uint8)
        self._pending_bounds = CellBounds.full(geometry.shape)
        for layer in self._layers:
            layer.match_size(geometry, None)

    @property
    def geometry(self) -> GridGeometry:
        """Where the cells lie now."""
        return self._geometry

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The lowest first."""
        return self._layers

    def resize(self, geometry: GridGeometry) -> None:
        """Continue with a grid of another geometry; all cells are computed anew."""
        self._geometry = geometry
        self._cells = np.full(geometry.shape, self._background, dtype=np.uint8)
        self._pending_bounds = CellBounds.full(geometry.shape)
        for layer in self._layers:
            layer.match_size(geometry, None)

    def center_on(self, pose: SE2) -> None:
        """Shift the map by whole cells, so that the pose lies in its middle; what is kept in view is kept in mind."""
        row, column = (int(i) for i in self._geometry.cells_of_points(pose.xy))
        rows, columns = self._geometry.shape
        shift = (row - rows // 2, column - columns // 2)
        if shift == (0, 0):
            return
        origin = self._geometry.T_map_grid @ SE2(
            shift[1] * self._geometry.resolution, shift[0] * self._geometry.resolution, 0.0
        )
        self._geometry = GridGeometry(self._geometry.resolution, self._geometry.shape, origin)
        for layer in self._layers:
            layer.match_size(self._geometry, shift)
        self._pending_bounds = CellBounds.full(self._geometry.shape)

    def update(self) -> CellBounds:
        """Compute the cells that changed.

        Returns:
            Which cells may differ from before.
        """
        shape = self._geometry.shape
        bounds, self._pending_bounds = self._pending_bounds, EMPTY_BOUNDS
        for layer in self._layers:
            bounds = bounds.union(layer.pop_changed_bounds()).expanded(layer.influence_cells(), shape)
        if bounds.is_empty:
            return bounds
        # layers that spread costs see what lies that far outside of the bounds, as it was put together before
        self._cells[bounds.slices] = self._background
        for layer in self._layers:
            layer.update_costs(self._cells, bounds)
        return bounds

    def snapshot(self) -> Costmap:
        """A copy of the costmap as of the last update."""
        return Costmap(self._cells.copy(), self._geometry)

    def find_cell_sources(self, cells: NDArray[np.int64]) -> tuple[CellSource, ...]:
        """Who gave cells (n, 2), rows and columns, their costs: each once, in the cells' order."""
        bounds = CellBounds.around(cells)
        if bounds.is_empty:
            return ()
        rows, columns = np.asarray(cells).T
        recomputed = np.full(self._geometry.shape, self._background, dtype=np.uint8)
        sources = np.full(len(rows), CellSource(""), dtype=object)
        for layer in self._layers:
            before = recomputed[rows, columns]
            layer.update_costs(recomputed, bounds)
            was_written = recomputed[rows, columns] != before
            sensors = (
                layer.marking_sensors(np.asarray(cells)[was_written])
                if isinstance(layer, SensorLayer)
                else [""] * was_written.sum()
            )
            sources[was_written] = [CellSource(layer.name, sensor) for sensor in sensors]
        return tuple(dict.fromkeys(sources))


def shift_cells(cells: NDArray[Any], shift: tuple[int, int], background: float | np.generic) -> NDArray[Any]:
    """The cells as a map that has moved by so many rows and columns sees them."""
    result = np.full_like(cells, background)
    rows, columns = cells.shape
    down, right = shift
    if abs(down) < rows and abs(right) < columns:
        source = cells[max(down, 0) : rows + min(down, 0), max(right, 0) : columns + min(right, 0)]
        result[max(-down, 0) : rows + min(-down, 0), max(-right, 0) : columns + min(-right, 0)] = source
    return result


def transfer_cells(
    cells: NDArray[Any], before: GridGeometry, after: GridGeometry, background: float | np.generic
) -> NDArray[Any]:
    """The cells of one grid as another sees them, where the two lie cell on cell; else the background everywhere."""
    result = np.full(after.shape, background, dtype=cells.dtype)
    offset = (before.T_map_grid.inverse() @ after.T_map_grid.xy) / before.resolution
    is_rotated = abs(before.T_map_grid.theta - after.T_map_grid.theta) > 1e-9
    if is_rotated or before.resolution != after.resolution or np.abs(offset - np.round(offset)).max() > 1e-3:
        return result
    down, right = round(float(offset[1])), round(float(offset[0]))
    top, left = max(down, 0), max(right, 0)
    bottom = min(down + after.shape[0], before.shape[0])
    last = min(right + after.shape[1], before.shape[1])
    if top < bottom and left < last:
        result[top - down : bottom - down, left - right : last - right] = cells[top:bottom, left:last]
    return result
