"""Layers and filters over occupancy grids: static map, keepout mask, speed mask, and their resampling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import check, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import OCCUPIED_THRESHOLD, GridGeometry, OccupancyGrid
from roboyard.navigation.costmap.layer_types import LayerConfig, LayerContext
from roboyard.navigation.costmap.layered_costmap import (
    EMPTY_BOUNDS,
    FREE,
    INSCRIBED,
    LETHAL,
    UNKNOWN,
    CellBounds,
    Layer,
    shift_cells,
)


class ResampledGrid:
    """Highest known value of another grid that lies under each cell of a costmap, which may roll over that grid.

    When the costmap rolls, only the cells that come into view are resampled.  The result is the same as if all cells
    had
    been: positions are counted from where the costmap was at first, so that no rounding errors add up.

    Args:
        background: Value of cells under which nothing is known.
    """

    def __init__(self, background: int) -> None:
        expect_kernels(resample_max_kernel)
        self._background = background
        self._values = np.zeros((0, 0), dtype=np.uint8)
        self._source_geometry = self._target_geometry = GridGeometry(1.0, (0, 0))
        self._shift = (0, 0)
        self.cells = np.zeros((0, 0), dtype=np.uint8)

    def set_grid(self, values: NDArray[np.uint8], geometry: GridGeometry) -> None:
        """Replace the grid that is resampled.

        Args:
            values: (rows, columns); 255 where nothing is known.
            geometry: Geometry of the grid.
        """
        self._values, self._source_geometry = np.ascontiguousarray(values), geometry
        self._resample(CellBounds.full(self.cells.shape))

    def match_size(self, target_geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """Adapt to another place of the costmap's cells, as `Layer.match_size` does."""
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
    """Write into each cell of a target grid the highest known value of a source grid that lies under it.

    Args:
        values: (rows, columns) of the source grid; 255 where nothing is known.
        source_geometry: Geometry of the source grid.
        cells: (rows, columns) of the target grid; cells over unknown space keep their values.
        target_geometry: Geometry of the target grid before it moved.
        bounds: Cells of the target grid that are written.
        shift: Rows and columns by which the target grid moved.
    """
    # The sample points of all cells form a lattice.  It is so fine that each cell of the source grid holds one of them,
    # however that grid is rotated, and even where points lie on its lines and rounding moves them to either side.
    angle = target_geometry.T_map_grid.theta - source_geometry.T_map_grid.theta
    width = math.sqrt(2.0) if abs(math.sin(2.0 * angle)) > 1e-6 else 1.0
    samples_per_side = math.floor(target_geometry.resolution / source_geometry.resolution * width * 1.00001) + 1
    scale = target_geometry.resolution / source_geometry.resolution
    corner = (source_geometry.T_map_grid.inverse() @ target_geometry.T_map_grid.xy) / source_geometry.resolution
    steps = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]) * scale
    resample_max_kernel(values, corner, steps, samples_per_side, cells, bounds, shift)


@kernel(
    examples=lambda: [
        (np.zeros((3, 3), dtype=np.uint8), np.zeros(2), np.eye(2), 2, np.zeros((5, 5), dtype=np.uint8),
         CellBounds(0, 0, 5, 5), (0, 0)),
    ]
)  # fmt: skip
def resample_max_kernel(
    values: NDArray[np.uint8],
    corner: NDArray[np.float64],
    steps: NDArray[np.float64],
    samples_per_side: int,
    cells: NDArray[np.uint8],
    bounds: CellBounds,
    shift: tuple[int, int],
) -> None:
    """Resample a source grid at a lattice of points in each cell of a target grid.

    Args:
        values: (rows, columns) of the source grid.
        corner: (2,) x and y of the target grid's corner in the source grid [source cells].
        steps: (2, 2) growth of x and y of the source grid along the target's columns (first column) and rows.
        samples_per_side: Number of sample points along each side of a target cell.
        cells: (rows, columns) of the target grid, written.
        bounds: Cells that are written.
        shift: Rows and columns from the corner to cell (0, 0).
    """
    rows, columns = values.shape
    for r in range(bounds.top, bounds.bottom):
        for c in range(bounds.left, bounds.right):
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


class GridLayer(Layer):
    """Layer over an occupancy grid, whose cells may be smaller or larger than the costmap's, or rotated against them.

    A cell of the costmap takes the highest cost that lies under it, so that no wall is lost.  A subclass gives the
    cost of
    each occupancy.

    Args:
        name: Name of the layer.
        costs: (256,) cost of each value of the grid's cells as uint8: 0 to 100, and 255 for unknown.
        background: Cost of cells beyond the grid.
    """

    def __init__(self, name: str, costs: NDArray[np.uint8], background: int = UNKNOWN) -> None:
        super().__init__(name)
        self._costs = costs
        self._resampled = ResampledGrid(background)
        self._changed_bounds = EMPTY_BOUNDS

    def set_grid(self, grid: OccupancyGrid) -> None:
        """Replace the grid; its geometry is in the frame of the costmap."""
        self._resampled.set_grid(self._costs[grid.cells.view(np.uint8)], grid.geometry)
        self._changed_bounds = CellBounds.full(self._resampled.cells.shape)

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """Resample the grid where it comes into view."""
        self._resampled.match_size(geometry, shift)
        self._changed_bounds = CellBounds.full(geometry.shape)

    def update_bounds(self) -> CellBounds:
        """Return all cells after a new grid or a move."""
        changed, self._changed_bounds = self._changed_bounds, EMPTY_BOUNDS
        return changed

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """Write the known costs where they are higher, or where the layers below know nothing."""
        costs, master = self._resampled.cells[bounds.slices], cells[bounds.slices]
        np.copyto(master, costs, where=(costs != UNKNOWN) & ((costs > master) | (master == UNKNOWN)))


class StaticLayer(GridLayer):
    """Costs of a map (nav2_costmap_2d::StaticLayer).

    Args:
        lethal_threshold: Occupancy from which a cell is an obstacle, 1 to 100.
        trinary: Whether cells below the threshold are free; else their cost is proportional to the occupancy.
        name: Name of the layer.

    Raises:
        ConfigError: ``lethal_threshold`` is out of range.
    """

    def __init__(
        self, *, lethal_threshold: int = OCCUPIED_THRESHOLD, trinary: bool = True, name: str = "static"
    ) -> None:
        if not 1 <= lethal_threshold <= 100:
            raise ConfigError(f"lethal_threshold = {lethal_threshold}", location=name, valid="1 to 100")
        costs = np.zeros(256, dtype=np.uint8)
        fraction = np.arange(lethal_threshold) / lethal_threshold
        costs[:lethal_threshold] = FREE if trinary else np.round(fraction * (INSCRIBED - 1))
        costs[lethal_threshold:101] = LETHAL
        costs[255] = UNKNOWN
        super().__init__(name, costs)

    def set_map(self, grid: OccupancyGrid) -> None:
        """Replace the map."""
        self.set_grid(grid)


class KeepoutLayer(GridLayer):
    """Forbidden zones of a mask: cells of 100 are obstacles, the others cost in proportion (Nav2's keepout filter).

    Args:
        name: Name of the layer.
    """

    def __init__(self, *, name: str = "keepout") -> None:
        costs = np.zeros(256, dtype=np.uint8)
        costs[:100] = np.round(np.arange(100) / 100 * (INSCRIBED - 1))
        costs[100] = LETHAL
        costs[255] = UNKNOWN
        super().__init__(name, costs, FREE)

    def set_mask(self, mask: OccupancyGrid) -> None:
        """Replace the mask."""
        self.set_grid(mask)

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """Write the mask's costs where they are higher; a cell of 0 leaves unknown space unknown."""
        costs, master = self._resampled.cells[bounds.slices], cells[bounds.slices]
        np.copyto(master, costs, where=(costs > master) | ((master == UNKNOWN) & (costs != FREE)))


@dataclass(frozen=True, kw_only=True)
class GridLayerConfig(LayerConfig):
    """Configuration that all layers over an occupancy grid share."""

    topic: str = parameter(doc="Topic of the grid (nav_msgs/OccupancyGrid).")


@dataclass(frozen=True, kw_only=True)
class StaticLayerConfig(GridLayerConfig):
    """Costs of a map. A layer of this type named `static` exists without a declaration."""

    topic: str = parameter("", doc="Topic of the map (nav_msgs/OccupancyGrid); empty: the navigator's map_topic.")
    lethal_threshold: int = parameter(
        OCCUPIED_THRESHOLD, low=1, high=100, doc="Occupancy from which a cell is an obstacle [%]."
    )
    trinary: bool = parameter(True, doc="Cells below the threshold are free; false: their cost is proportional.")

    def make_layer(self, context: LayerContext) -> StaticLayer:
        """Return a static layer."""
        return StaticLayer(lethal_threshold=self.lethal_threshold, trinary=self.trinary, name=context.name)


@dataclass(frozen=True, kw_only=True)
class KeepoutLayerConfig(GridLayerConfig):
    """Zones that a mask forbids. A layer of this type named `keepout` exists without a declaration."""

    topic: str = parameter("keepout_mask", doc="Topic of the mask (nav_msgs/OccupancyGrid).")

    def make_layer(self, context: LayerContext) -> KeepoutLayer:
        """Return a keepout layer."""
        return KeepoutLayer(name=context.name)


@dataclass(frozen=True)
class SpeedFilterConfig:
    """Conversion of the values of a speed mask into speeds, as in Nav2's speed filter: base + multiplier · value."""

    base: float = parameter(0.0, low=-1e4, high=1e4, doc="Constant term of the conversion.")
    multiplier: float = parameter(1.0, low=-1e4, high=1e4, doc="Factor of the conversion.")
    percent: bool = parameter(True, doc="Speeds in percent of the largest speed; false: in m/s.")

    def __post_init__(self) -> None:
        check(self, "speed_filter")


class SpeedFilter:
    """Speed limits by a mask: base + multiplier · value, in percent of the largest speed or in m/s (Nav2's speed
    filter).

    It writes no costs; the navigator applies the limit to its commands.

    Args:
        mask: Values from 1 to 100; 0 and unknown do not limit.
        base: Constant term of the conversion.
        multiplier: Factor of the conversion.
        percent: Whether the result is in percent; else in m/s.

    Raises:
        ConfigError: The conversion is not finite, or one of the mask's values gives no speed above 0.
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
        """Return the speed limit at a pose [m/s], at most ``max_speed``."""
        cell = self._mask.geometry.cells_of_points(pose.xy)
        if not self._mask.geometry.contains(cell):
            return max_speed
        value = int(self._mask.cells[tuple(cell)])
        if value <= 0:
            return max_speed
        limit = self._base + self._multiplier * value
        return min(limit * (max_speed / 100.0 if self._percent else 1.0), max_speed)
