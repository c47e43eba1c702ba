"""Layers and filters over occupancy grids: static map, keepout mask, speed mask, and their resampling."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import OCCUPIED_THRESHOLD, GridGeometry, OccupancyGrid
from roboyard.navigation.costmap.layered_costmap import (
    EMPTY_BOUNDS,
    FREE,
    INSCRIBED,
    LETHAL,
    UNKNOWN,
    CellBounds,
    shift_cells,
)


class ResampledGrid:
    """What of another grid lies under each cell of a map that may roll over it: the dearest known value.

    As the map rolls, only what comes into view is looked up.  It is as if all had been: places are counted from where
    the map was laid out, so that no rounding adds up.

    Args:
        background: Value where nothing known lies under a cell.
    """

    def __init__(self, background: int) -> None:
        expect_kernels(resample_max_kernel)
        self._background = background
        self._values = np.zeros((0, 0), dtype=np.uint8)
        self._source_geometry = self._target_geometry = GridGeometry(1.0, (0, 0))
        self._shift = (0, 0)
        self.cells = np.zeros((0, 0), dtype=np.uint8)

    def set_grid(self, values: NDArray[np.uint8], geometry: GridGeometry) -> None:
        """Look at another grid from now on.

        Args:
            values: (rows, columns); 255 where it knows nothing.
            geometry: Where they lie.
        """
        self._values, self._source_geometry = np.ascontiguousarray(values), geometry
        self._resample(CellBounds.full(self.cells.shape))

    def match_size(self, target_geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """The map's cells lie elsewhere now, see ``Layer.fit``."""
        rows, columns = target_geometry.shape
        full = CellBounds.full(target_geometry.shape)
        if shift is None:
            self._target_geometry, self._shift = target_geometry, (0, 0)
            self.cells = np.empty(target_geometry.shape, dtype=np.uint8)
            self._resample(full)
            return
        down, right = shift
        self._shift = (self._shift[0] + down, self._shift[1] + right)
        self.cells = shift_cells(self.cells, shift, self._background)
        if abs(down) >= rows or abs(right) >= columns:
            self._resample(full)
            return
        self._resample(full._replace(top=rows - down) if down > 0 else full._replace(bottom=-down))
        self._resample(full._replace(left=columns - right) if right > 0 else full._replace(right=-right))

    def _resample(self, bounds: CellBounds) -> None:
        self.cells[bounds.slices] = self._background
        if not bounds.is_empty and self._values.size:
            resample_max(self._values, self._source_geometry, self.cells, self._target_geometry, bounds, self._shift)


def resample_max(
    values: NDArray[np.uint8],
    source_geometry: GridGeometry,
    cells: NDArray[np.uint8],
    target_geometry: GridGeometry,
    bounds: CellBounds,
    shift: tuple[int, int],
) -> None:
    """Write into each cell of one grid the dearest known value of another grid that lies under it.

    Args:
        values: (rows, columns) of the other grid; 255 where it knows nothing.
        source_geometry: Where they lie.
        cells: (rows, columns), written within the bounds; what nothing known lies under stays.
        target_geometry: Where those lay before they were moved.
        bounds: Which of them.
        shift: By how many rows and columns.
    """
    # The looks of all cells form a lattice.  It is so fine that each cell of the other grid holds one of them, however
    # that grid is turned, and even where looks lie on its lines and rounding sends them to either side.
    angle = target_geometry.T_map_grid.theta - source_geometry.T_map_grid.theta
    width = math.sqrt(2.0) if abs(math.sin(2.0 * angle)) > 1e-6 else 1.0
    samples_per_side = math.floor(target_geometry.resolution / source_geometry.resolution * width * 1.00001) + 1
    scale = target_geometry.resolution / source_geometry.resolution
    corner = (source_geometry.T_map_grid.inverse() @ target_geometry.T_map_grid.xy) / source_geometry.resolution
    steps = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]) * scale
    resample_max_kernel(values, corner, steps, samples_per_side, cells, np.array(bounds), np.array(shift))


@kernel(
    examples=lambda: [
        (np.zeros((3, 3), dtype=np.uint8), np.zeros(2), np.eye(2), 2, np.zeros((5, 5), dtype=np.uint8),
         np.zeros(4, dtype=np.int64), np.zeros(2, dtype=np.int64)),
    ]
)  # fmt: skip
def resample_max_kernel(
    values: NDArray[np.uint8],
    corner: NDArray[np.float64],
    steps: NDArray[np.float64],
    samples_per_side: int,
    cells: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    shift: NDArray[np.int64],
) -> None:
    """Look up cells of one grid in another.

    Args:
        values: (rows, columns) of the other.
        corner: (2,) x and y of the one's corner in the other [the other's cells].
        steps: (2, 2) by which x and y of the other grow along the one's columns (first column) and rows.
        samples_per_side: Along each side of a cell.
        cells: (rows, columns) of the one, written.
        bounds: Top, left, bottom, right of what is written.
        shift: Rows and columns from the corner to cell (0, 0).
    """
    rows, columns = values.shape
    for r in range(bounds[0], bounds[2]):
        for c in range(bounds[1], bounds[3]):
            best = -1
            for i in range(samples_per_side):
                down = (r + shift[0]) + (i + 0.5) / samples_per_side
                for j in range(samples_per_side):
                    right = (c + shift[1]) + (j + 0.5) / samples_per_side
                    x = corner[0] + steps[0, 0] * right + steps[0, 1] * down
                    y = corner[1] + steps[1, 0] * right + steps[1, 1] * down
                    if x < 0.0 or y < 0.0 or x >= columns or y >= rows:
                        continue
                    value = values[int(y), int(x)]
                    if value != UNKNOWN and value > best:
                        best = int(value)
            if best >= 0:
                cells[r, c] = best


class StaticLayer:
    """Costs of an occupancy map.

    Its cells may be smaller, larger or turned against the costmap's: a cell of the costmap takes the dearest of what
    lies under it, so that no wall gets lost.

    Args:
        lethal_threshold: From which occupancy on a cell is an obstacle, 1 to 100.
        trinary: Whether what lies between is free; else it costs in proportion.
        name: Of the layer.

    Raises:
        ConfigError: ``lethal_threshold`` out of range.
    """

    def __init__(
        self, *, lethal_threshold: int = OCCUPIED_THRESHOLD, trinary: bool = True, name: str = "static"
    ) -> None:
        if not 1 <= lethal_threshold <= 100:
            raise ConfigError(f"lethal_threshold = {lethal_threshold}", location=name, valid="1 to 100")
        self.name = name
        self._lethal_threshold, self._trinary = lethal_threshold, trinary
        self._resampled_map = ResampledGrid(UNKNOWN)
        self._changed_bounds = EMPTY_BOUNDS

    def set_map(self, grid: OccupancyGrid) -> None:
        """Go by another map from now on."""
        self._resampled_map.set_grid(self._to_costs(grid), grid.geometry)
        self._changed_bounds = CellBounds.full(self._resampled_map.cells.shape)

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        self._resampled_map.match_size(geometry, shift)
        self._changed_bounds = CellBounds.full(geometry.shape)

    def _to_costs(self, grid: OccupancyGrid) -> NDArray[np.uint8]:
        table = np.zeros(256, dtype=np.uint8)
        fraction = np.arange(self._lethal_threshold) / self._lethal_threshold
        table[: self._lethal_threshold] = FREE if self._trinary else np.round(fraction * (INSCRIBED - 1))
        table[self._lethal_threshold : 101] = LETHAL
        table[255] = UNKNOWN
        return np.asarray(table[grid.cells.view(np.uint8)])

    def pop_changed_bounds(self) -> CellBounds:
        """See ``Layer``."""
        changed, self._changed_bounds = self._changed_bounds, EMPTY_BOUNDS
        return changed

    def influence_cells(self) -> int:
        """See ``Layer``."""
        return 0

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """See ``Layer``."""
        map_costs, master = self._resampled_map.cells[bounds.slices], cells[bounds.slices]
        np.copyto(master, map_costs, where=(map_costs != UNKNOWN) & ((map_costs > master) | (master == UNKNOWN)))


class KeepoutLayer:
    """Forbids what a mask marks: its cells of 100 are obstacles, those between cost in proportion.

    Args:
        name: Of the layer.
    """

    def __init__(self, *, name: str = "keepout") -> None:
        self.name = name
        self._resampled_mask = ResampledGrid(FREE)
        self._changed_bounds = EMPTY_BOUNDS

    def set_mask(self, mask: OccupancyGrid) -> None:
        """Go by another mask from now on."""
        table = np.zeros(256, dtype=np.uint8)
        table[:100] = np.round(np.arange(100) / 100 * (INSCRIBED - 1))
        table[100] = LETHAL
        table[255] = UNKNOWN
        self._resampled_mask.set_grid(table[mask.cells.view(np.uint8)], mask.geometry)
        self._changed_bounds = CellBounds.full(self._resampled_mask.cells.shape)

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        self._resampled_mask.match_size(geometry, shift)
        self._changed_bounds = CellBounds.full(geometry.shape)

    def pop_changed_bounds(self) -> CellBounds:
        """See ``Layer``."""
        changed, self._changed_bounds = self._changed_bounds, EMPTY_BOUNDS
        return changed

    def influence_cells(self) -> int:
        """See ``Layer``."""
        return 0

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """See ``Layer``."""
        mask_costs, master = self._resampled_mask.cells[bounds.slices], cells[bounds.slices]
        np.copyto(master, mask_costs, where=(mask_costs > master) | ((master == UNKNOWN) & (mask_costs != FREE)))


class SpeedFilter:
    """How fast to go where, by a mask: base + multiplier · value, in per cent of the highest speed or in m/s.

    Args:
        mask: Values from 1 to 100; 0 and unknown do not limit.
        base: Of the conversion.
        multiplier: Of the conversion.
        percent: Whether the result is per cent; else m/s.

    Raises:
        ConfigError: a conversion that is not finite, or gives one of the mask's values no speed above 0.
    """

    def __init__(
        self, mask: OccupancyGrid, *, base: float = 0.0, multiplier: float = 1.0, percent: bool = True
    ) -> None:
        if not (math.isfinite(base) and math.isfinite(multiplier)):
            raise ConfigError(
                f"base {base} and multiplier {multiplier}", location="speed filter", valid="finite numbers"
            )
        values = np.unique(mask.cells[mask.cells > 0])
        stopping_values = values[base + multiplier * values <= 0.0]
        if len(stopping_values):
            raise ConfigError(
                f"the mask's value {stopping_values[0]} allows {base + multiplier * float(stopping_values[0]):g}",
                location="speed filter",
                valid="base + multiplier · value above 0; forbid places by a keepout mask",
            )
        self._mask, self._base, self._multiplier, self._percent = mask, base, multiplier, percent

    def speed_limit_at(self, pose: SE2, max_speed: float) -> float:
        """The speed allowed at a pose [m/s], at most ``max_speed``."""
        cell = self._mask.geometry.cells_of_points(pose.xy)
        if not self._mask.geometry.contains(cell):
            return max_speed
        value = int(self._mask.cells[tuple(cell)])
        if value <= 0:
            return max_speed
        limit = self._base + self._multiplier * value
        return min(limit * (max_speed / 100.0 if self._percent else 1.0), max_speed)
