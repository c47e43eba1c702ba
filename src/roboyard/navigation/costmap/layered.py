"""A costmap made of layers, of which each knows one thing; only what changed is put together anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.bounds import NOTHING, Bounds
from roboyard.navigation.costmap.grid import FREE, UNKNOWN, Costmap


class Layer(Protocol):
    """What one source knows about the ground."""

    name: str

    def fit(self, frame: GridGeometry, moved: tuple[int, int] | None) -> None:
        """The map's cells lie elsewhere now.

        Args:
            frame: Where.
            moved: By how many rows and columns the same cells lie further, or None for other cells altogether.
        """
        ...

    def changed(self) -> Bounds:
        """Which cells this layer would set differently than when last asked."""
        ...

    def reach(self) -> int:
        """How many cells beyond a change of the layers below this layer's own values change."""
        ...

    def apply(self, cells: NDArray[np.uint8], bounds: Bounds) -> None:
        """Write what it knows into the map's cells (rows, columns), within the bounds only."""
        ...


@runtime_checkable
class SensorLayer(Protocol):
    """A layer that remembers which sensor marked what."""

    def sources(self, cells: NDArray[np.int64]) -> Sequence[str]:
        """Name of the sensor that marked each of the cells (n, 2), rows and columns; empty where it is not known."""
        ...


@dataclass(frozen=True, slots=True)
class Origin:
    """Who gave a cell its cost.

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
        frame: Where the cells lie.
        layers: Each written over those before it, as it sees fit.
        unknown: Whether cells that no layer knows count as unknown; else as free.

    Raises:
        InputError: two layers of one name.
    """

    def __init__(self, frame: GridGeometry, layers: Sequence[Layer], *, unknown: bool = False) -> None:
        names = [layer.name for layer in layers]
        if len(set(names)) != len(names):
            raise InputError(f"layers named {', '.join(names)}", valid="each name once")
        self._layers = tuple(layers)
        self._background = UNKNOWN if unknown else FREE
        self._frame = frame
        self._cells = np.full(frame.shape, self._background, dtype=np.uint8)
        self._pending = Bounds.whole(frame.shape)
        for layer in self._layers:
            layer.fit(frame, None)

    @property
    def frame(self) -> GridGeometry:
        """Where the cells lie now."""
        return self._frame

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The lowest first."""
        return self._layers

    def replace(self, frame: GridGeometry) -> None:
        """Go on with other cells altogether."""
        self._frame = frame
        self._cells = np.full(frame.shape, self._background, dtype=np.uint8)
        self._pending = Bounds.whole(frame.shape)
        for layer in self._layers:
            layer.fit(frame, None)

    def centre_on(self, pose: SE2) -> None:
        """Shift the map by whole cells, so that the pose lies in its middle; what is kept in view is kept in mind."""
        row, column = (int(i) for i in self._frame.cells_of_points(pose.xy))
        rows, columns = self._frame.shape
        moved = (row - rows // 2, column - columns // 2)
        if moved == (0, 0):
            return
        origin = self._frame.T_map_grid @ SE2(moved[1] * self._frame.resolution, moved[0] * self._frame.resolution, 0.0)
        self._frame = GridGeometry(self._frame.resolution, self._frame.shape, origin)
        for layer in self._layers:
            layer.fit(self._frame, moved)
        self._pending = Bounds.whole(self._frame.shape)

    def update(self) -> Bounds:
        """Put together what changed.

        Returns:
            Which cells may differ from before.
        """
        shape = self._frame.shape
        bounds, self._pending = self._pending, NOTHING
        for layer in self._layers:
            bounds = bounds.union(layer.changed()).grown(layer.reach(), shape)
        if bounds.is_empty:
            return bounds
        # layers that spread costs see what lies that far outside of the bounds, as it was put together before
        self._cells[bounds.slices] = self._background
        for layer in self._layers:
            layer.apply(self._cells, bounds)
        return bounds

    def costmap(self) -> Costmap:
        """A copy of the map as last put together."""
        return Costmap(self._cells.copy(), self._frame)

    def origins(self, cells: NDArray[np.int64]) -> tuple[Origin, ...]:
        """Who gave cells (n, 2), rows and columns, their costs: each once, in the cells' order."""
        bounds = Bounds.around(cells)
        if bounds.is_empty:
            return ()
        rows, columns = np.asarray(cells).T
        again = np.full(self._frame.shape, self._background, dtype=np.uint8)
        found = np.full(len(rows), Origin(""), dtype=object)
        for layer in self._layers:
            before = again[rows, columns]
            layer.apply(again, bounds)
            wrote = again[rows, columns] != before
            sensors = layer.sources(np.asarray(cells)[wrote]) if isinstance(layer, SensorLayer) else [""] * wrote.sum()
            found[wrote] = [Origin(layer.name, sensor) for sensor in sensors]
        return tuple(dict.fromkeys(found))


def shifted(cells: NDArray[Any], moved: tuple[int, int], background: float | np.generic) -> NDArray[Any]:
    """The cells as a map that has moved by so many rows and columns sees them."""
    result = np.full_like(cells, background)
    rows, columns = cells.shape
    down, right = moved
    if abs(down) < rows and abs(right) < columns:
        source = cells[max(down, 0) : rows + min(down, 0), max(right, 0) : columns + min(right, 0)]
        result[max(-down, 0) : rows + min(-down, 0), max(-right, 0) : columns + min(-right, 0)] = source
    return result


def carried(
    cells: NDArray[Any], before: GridGeometry, after: GridGeometry, background: float | np.generic
) -> NDArray[Any]:
    """The cells of one grid as another sees them, where the two lie cell on cell; else the background everywhere."""
    result = np.full(after.shape, background, dtype=cells.dtype)
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
