"""Layered costmap: layers write costs into one grid, and only the cells that changed are computed again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry

FREE, INSCRIBED, LETHAL, UNKNOWN = 0, 253, 254, 255
"""Values of cells, as in Nav2: between 0 and 253 the robot's center may be there at that cost; from 253 on the robot
touches an obstacle at any heading; 254 is the obstacle itself; 255 is unknown."""


@dataclass(frozen=True, slots=True)
class Costmap:
    """Cost of each position of the robot's center.

    Attributes:
        cells: (rows, columns) uint8, `FREE` to `UNKNOWN`.
        geometry: Geometry of the cells.

    Raises:
        InputError: The cells have another shape than the geometry, or another type.
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
        """Return bounds that hold all cells."""
        return cls(0, 0, shape[0], shape[1])

    @classmethod
    def around(cls, cells: ArrayLike) -> CellBounds:
        """Return the smallest bounds that hold cells (n, 2), each row and column; empty for none."""
        rows_columns = np.asarray(cells)
        if not len(rows_columns):
            return EMPTY_BOUNDS
        (top, left), (bottom, right) = rows_columns.min(axis=0), rows_columns.max(axis=0)
        return cls(int(top), int(left), int(bottom) + 1, int(right) + 1)

    @property
    def is_empty(self) -> bool:
        """Whether the bounds hold no cell."""
        return self.top >= self.bottom or self.left >= self.right

    def union(self, other: CellBounds) -> CellBounds:
        """Return the smallest bounds that hold both."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        return CellBounds(
            min(self.top, other.top), min(self.left, other.left),
            max(self.bottom, other.bottom), max(self.right, other.right),
        )  # fmt: skip

    def expanded(self, margin: int, shape: tuple[int, int]) -> CellBounds:
        """Return bounds with a margin of cells on each side, within a grid of that shape."""
        if self.is_empty:
            return self
        return CellBounds(
            max(self.top - margin, 0), max(self.left - margin, 0),
            min(self.bottom + margin, shape[0]), min(self.right + margin, shape[1]),
        )  # fmt: skip

    @property
    def slices(self) -> tuple[slice, slice]:
        """Slices of rows and columns that index an array."""
        return slice(self.top, self.bottom), slice(self.left, self.right)


EMPTY_BOUNDS = CellBounds(0, 0, 0, 0)


class Layer(ABC):
    """A source of traversal costs in a `LayeredCostmap` (nav2_costmap_2d::Layer).

    A costmap calls `match_size` when its cells lie elsewhere, and in each update `update_bounds` of all layers, the
    lowest
    first, and then `update_costs` of all layers with the bounds that all of them need. `check_layer` tests these
    promises:

    - A layer writes only within the bounds that `update_costs` is given, and deterministically.
    - The bounds that `update_bounds` returns, extended by `influence_cells` where layers below changed, hold every cell
      whose cost changed.
    - It raises costs, and writes known costs over unknown cells. Only a layer whose ``lowers_costs`` is true may
    lower the
      costs of the layers below. It writes `UNKNOWN` over no known cell.
    - When a rolling costmap moves by whole cells, what the layer wrote into the cells that stay in view stays equal.
    - After `clear` a layer with ``is_clearable`` writes what it wrote before its first observation.
    - A layer that was made the same way, and loaded the state of another, writes the same costs.

    Args:
        name: Name of the layer in its costmap.

    Attributes:
        name: Name of the layer in its costmap.
        is_clearable: Whether `clear` removes what the layer observed (nav2_costmap_2d::Layer::isClearable).
        lowers_costs: Whether the layer may lower costs of the layers below.
    """

    is_clearable: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.lowers_costs = False

    @abstractmethod
    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """Adapt to another place of the costmap's cells (nav2_costmap_2d::Layer::matchSize).

        Args:
            geometry: Where the cells lie from now on.
            shift: Rows and columns by which the same grid moved; None: the grid is another one.
        """

    @abstractmethod
    def update_bounds(self) -> CellBounds:
        """Return the cells that this layer would write otherwise than when it was asked last.

        Nav2's updateBounds extends a rectangle in metres by the same; the second of two calls without a change between
        them returns empty bounds.
        """

    def influence_cells(self) -> int:
        """Return how many cells beyond a change of the layers below this layer's own costs change."""
        return 0

    @abstractmethod
    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """Write the costs of this layer into the costmap (nav2_costmap_2d::Layer::updateCosts).

        Args:
            cells: (rows, columns) of the costmap, with what the layers below wrote.
            bounds: Cells that may be written.
        """

    def clear(self, bounds: CellBounds | None = None) -> None:  # noqa: B027 - most layers observe nothing
        """Forget what was observed, everywhere or within bounds (nav2_costmap_2d::Layer::reset and clearArea)."""

    def marking_sensors(self, cells: NDArray[np.int64]) -> Sequence[str]:
        """Return the name of the sensor that marked each of the cells (n, 2); empty where it is unknown."""
        return [""] * len(cells)

    def save_state(self) -> dict[str, Any]:
        """Return what the layer observed, as plain data; grids that it was given belong to whoever gave them."""
        return {}

    def load_state(self, saved: dict[str, Any], geometry: GridGeometry) -> None:  # noqa: B027 - most have no state
        """Restore the state that `save_state` returned.

        Args:
            saved: State of a layer that was made the same way.
            geometry: Where the costmap's cells lay when it was saved.
        """


@dataclass(frozen=True, slots=True)
class CellCostOrigin:
    """The layer and the sensor that gave a cell its cost.

    Attributes:
        layer: Name of the layer; empty for cells that no layer knows.
        sensor: Name of the sensor, if the layer stores it.
    """

    layer: str
    sensor: str = ""

    def __str__(self) -> str:
        if not self.layer:
            return "unknown space"
        return f"layer '{self.layer}'" + (f" (sensor '{self.sensor}')" if self.sensor else "")


class LayeredCostmap:
    """Costmap that is composed of layers, the lowest first (nav2_costmap_2d::LayeredCostmap).

    Args:
        geometry: Geometry of the cells.
        layers: Layers; each writes over what the layers before it wrote.
        track_unknown_space: Whether cells that no layer knows count as unknown; else as free.

    Raises:
        InputError: Two layers have the same name.
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
        """Present geometry of the cells."""
        return self._geometry

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, the lowest first."""
        return self._layers

    def resize(self, geometry: GridGeometry) -> None:
        """Continue with a grid of another geometry; all cells are computed anew."""
        self._geometry = geometry
        self._cells = np.full(geometry.shape, self._background, dtype=np.uint8)
        self._pending_bounds = CellBounds.full(geometry.shape)
        for layer in self._layers:
            layer.match_size(geometry, None)

    def center_on(self, pose: SE2) -> None:
        """Shift the costmap by whole cells, so that the pose lies in its middle; layers keep what stays in view."""
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
            Bounds of the cells that may differ from before.
        """
        shape = self._geometry.shape
        bounds, self._pending_bounds = self._pending_bounds, EMPTY_BOUNDS
        for layer in self._layers:
            bounds = bounds.union(layer.update_bounds()).expanded(layer.influence_cells(), shape)
        if bounds.is_empty:
            return bounds
        # layers that spread costs use the cells outside of the bounds as the last update left them
        self._cells[bounds.slices] = self._background
        for layer in self._layers:
            layer.update_costs(self._cells, bounds)
        return bounds

    def snapshot(self) -> Costmap:
        """Return a copy of the costmap as of the last update."""
        return Costmap(self._cells.copy(), self._geometry)

    def find_cost_origins(self, cells: NDArray[np.int64]) -> tuple[CellCostOrigin, ...]:
        """Return the sources of the costs of cells (n, 2), rows and columns: each once, in the order of the cells."""
        bounds = CellBounds.around(cells)
        if bounds.is_empty:
            return ()
        rows, columns = np.asarray(cells).T
        recomputed = np.full(self._geometry.shape, self._background, dtype=np.uint8)
        sources = np.full(len(rows), CellCostOrigin(""), dtype=object)
        for layer in self._layers:
            before = recomputed[rows, columns]
            layer.update_costs(recomputed, bounds)
            was_written = recomputed[rows, columns] != before
            sensors = layer.marking_sensors(np.asarray(cells)[was_written])
            sources[was_written] = [CellCostOrigin(layer.name, sensor) for sensor in sensors]
        return tuple(dict.fromkeys(sources))


def shift_cells(cells: NDArray[Any], grid_shift: tuple[int, int], background: float | np.generic) -> NDArray[Any]:
    """Return the cells (rows, columns) of a grid that moved by a number of rows and columns over the same space."""
    result = np.full_like(cells, background)
    rows, columns = cells.shape
    down, right = grid_shift
    if abs(down) < rows and abs(right) < columns:
        source = cells[max(down, 0) : rows + min(down, 0), max(right, 0) : columns + min(right, 0)]
        result[max(-down, 0) : rows + min(-down, 0), max(-right, 0) : columns + min(-right, 0)] = source
    return result


def transfer_cells(
    cells: NDArray[Any], before: GridGeometry, after: GridGeometry, background: float | np.generic
) -> NDArray[Any]:
    """Return the cells of another grid over the same space if the two coincide cell by cell; else the background."""
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
