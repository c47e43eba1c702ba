"""Layers that depend on the layers below: inflation of obstacles and removal of small groups of cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import parameter
from roboyard.errors import ConfigError
from roboyard.grids import GridGeometry
from roboyard.grids.regions import label_components
from roboyard.navigation.costmap.layer_types import LayerConfig, LayerContext
from roboyard.navigation.costmap.layered_costmap import (
    EMPTY_BOUNDS,
    FREE,
    INSCRIBED,
    LETHAL,
    UNKNOWN,
    CellBounds,
    Layer,
)


class InflationLayer(Layer):
    """Costs around the obstacles of the layers below (nav2_costmap_2d::InflationLayer).

    The cost is 253 up to the distance r, and 252·exp(-k·(d - r)) at a larger distance d.

    Args:
        inscribed_radius: r, radius of the circle within the robot's footprint [m].
        inflation_radius: Distance up to which costs are written [m].
        cost_scaling_factor: k [1/m].
        inflate_unknown: Whether all costs are written over unknown cells; else only the cost 253.
        name: Name of the layer.

    Raises:
        ConfigError: A number is out of range.
    """

    def __init__(
        self,
        inscribed_radius: float,
        inflation_radius: float = 0.55,
        cost_scaling_factor: float = 3.0,
        *,
        inflate_unknown: bool = False,
        name: str = "inflation",
    ) -> None:
        expect_kernels(write_inflated_costs)
        if not (0.0 <= inscribed_radius < math.inf and 0.0 <= inflation_radius <= 50.0):
            raise ConfigError(f"radii {inscribed_radius} and {inflation_radius}", location=name, valid="0 to 50 m")
        if not (math.isfinite(cost_scaling_factor) and cost_scaling_factor > 0.0):
            raise ConfigError(
                f"cost_scaling_factor = {cost_scaling_factor}", location=name, valid="a positive number [1/m]"
            )
        super().__init__(name)
        self._inscribed_radius, self._inflation_radius, self._cost_scaling_factor, self._inflate_unknown = (
            inscribed_radius,
            inflation_radius,
            cost_scaling_factor,
            inflate_unknown,
        )
        self._costs = np.zeros(1, dtype=np.uint8)
        self._radius_cells = 0
        self._lethal = np.zeros((0, 0), dtype=np.bool_)

    def cost_at(self, distance: float) -> int:
        """Return the cost at a distance from an obstacle's cell [m]."""
        if distance <= 0.0:
            return LETHAL
        if distance <= self._inscribed_radius:
            return INSCRIBED
        if distance > self._inflation_radius:
            return 0
        return int((INSCRIBED - 1) * math.exp(-self._cost_scaling_factor * (distance - self._inscribed_radius)))

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """Compute the costs by distance for the resolution of the costmap."""
        self._lethal = np.zeros(geometry.shape, dtype=np.bool_)
        if shift is not None:
            return  # the costs are those of the same cells
        max_cells = math.ceil(max(self._inflation_radius, self._inscribed_radius) / geometry.resolution)
        costs = [self.cost_at(math.sqrt(squared) * geometry.resolution) for squared in range(max_cells * max_cells + 1)]
        costs[0] = 0  # the obstacle itself stays as it is
        self._radius_cells = math.isqrt(max((squared for squared, cost in enumerate(costs) if cost), default=0))
        self._costs = np.array(costs, dtype=np.uint8)

    def update_bounds(self) -> CellBounds:
        """Return empty bounds: only changes of the layers below change this layer."""
        return EMPTY_BOUNDS

    def influence_cells(self) -> int:
        """Return the inflation radius in cells."""
        return self._radius_cells

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """Write the costs around obstacles where they are higher."""
        inside = bounds.slices
        self._lethal[inside] = cells[inside] == LETHAL
        around = bounds.expanded(self._radius_cells, cells.shape)
        write_inflated_costs(
            cells, self._lethal, self._costs, self._radius_cells, bounds, around, self._inflate_unknown
        )


@dataclass(frozen=True, kw_only=True)
class InflationLayerConfig(LayerConfig):
    """Costs around the obstacles of the layers below.

    The last layer of a costmap that names no layer of this type, with the costmap's ``inflation_radius`` and
    ``cost_scaling_factor``.
    """

    inflation_radius: float = parameter(
        0.6, unit="m", low=0.0, high=20.0, doc="Distance from obstacles within which costs are raised."
    )
    cost_scaling_factor: float = parameter(
        4.0, unit="1/m", low=0.01, high=100.0, doc="Rate at which the costs fall with the distance."
    )
    inflate_unknown: bool = parameter(
        False, doc="Write all costs over unknown cells; false: only where the robot touches."
    )

    def make_layer(self, context: LayerContext) -> InflationLayer:
        """Return an inflation layer for the robot's footprint.

        Controllers check the footprint only where the cost of the center says that an obstacle may be within reach,
        so the
        costs extend beyond the circumscribed radius at least.
        """
        radius = max(self.inflation_radius, context.footprint.circumscribed_radius + context.resolution)
        return InflationLayer(
            context.footprint.inscribed_radius, radius, self.cost_scaling_factor,
            inflate_unknown=self.inflate_unknown, name=context.name,
        )  # fmt: skip


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), dtype=np.uint8), np.zeros((5, 5), dtype=np.bool_), np.zeros(5, dtype=np.uint8), 2,
         CellBounds(0, 0, 5, 5), CellBounds(0, 0, 5, 5), False)
    ]
)  # fmt: skip
def write_inflated_costs(
    cells: NDArray[np.uint8],
    lethal: NDArray[np.bool_],
    costs: NDArray[np.uint8],
    radius_cells: int,
    bounds: CellBounds,
    search_bounds: CellBounds,
    inflate_unknown: bool,
) -> None:
    """Write the cost of each cell by its distance to the nearest obstacle, found along columns, then along rows.

    Args:
        cells: (rows, columns) of the costmap, written within the bounds.
        lethal: (rows, columns) whether an obstacle is there.
        costs: (n,) cost by squared distance [cells²]; 0 beyond.
        radius_cells: Largest distance that has a cost [cells].
        bounds: Cells that are written.
        search_bounds: Cells whose obstacles count.
        inflate_unknown: Whether to write all costs over unknown cells.
    """
    top, left, bottom, right = bounds.top, bounds.left, bounds.bottom, bounds.right
    search_left = search_bounds.left
    height, width, n_columns = bottom - top, search_bounds.right - search_left, right - left
    max_distance = np.int32(radius_cells + 1)
    # squared distance to the nearest obstacle of the same column; columns beyond the costmap hold none
    column_squares = np.full(
        (max(height, 0), n_columns + 2 * radius_cells), max_distance * max_distance, dtype=np.int32
    )
    column_offset = search_left - left + radius_cells
    column_distances = np.full(width, max_distance, dtype=np.int32)
    for r in range(search_bounds.top, bottom):
        for c in range(width):
            column_distances[c] = (
                np.int32(0) if lethal[r, search_left + c] else min(column_distances[c] + np.int32(1), max_distance)
            )
        if r >= top:
            for c in range(width):
                column_squares[r - top, column_offset + c] = column_distances[c] * column_distances[c]
    column_distances[:] = max_distance
    for r in range(search_bounds.bottom - 1, top - 1, -1):
        for c in range(width):
            column_distances[c] = (
                np.int32(0) if lethal[r, search_left + c] else min(column_distances[c] + np.int32(1), max_distance)
            )
        if r < bottom:
            for c in range(width):
                column_squares[r - top, column_offset + c] = min(
                    column_squares[r - top, column_offset + c], column_distances[c] * column_distances[c]
                )
    min_squares = np.empty(max(n_columns, 0), dtype=np.int32)
    for r in range(height):
        min_squares[:] = max_distance * max_distance
        for k in range(2 * radius_cells + 1):
            shifted_squares = column_squares[r, k : k + n_columns]
            square = np.int32((k - radius_cells) * (k - radius_cells))
            for c in range(n_columns):
                min_squares[c] = min(min_squares[c], shifted_squares[c] + square)
        for c in range(n_columns):
            squared = min_squares[c]
            cost = costs[squared] if squared < len(costs) else np.uint8(0)
            if cost == 0:
                continue
            current_cost = cells[top + r, left + c]
            if current_cost == UNKNOWN:
                if inflate_unknown or cost >= INSCRIBED:
                    cells[top + r, left + c] = cost
            elif cost > current_cost:
                cells[top + r, left + c] = cost


class DenoiseLayer(Layer):
    """Frees obstacles of the layers below that consist of few cells (nav2_costmap_2d::DenoiseLayer).

    Args:
        minimal_group_size: Number of cells of the smallest obstacle that stays.
        diagonal: Whether cells that touch at a corner belong to the same obstacle.
        name: Name of the layer.

    Raises:
        ConfigError: ``minimal_group_size`` is out of range.
    """

    def __init__(self, minimal_group_size: int = 2, *, diagonal: bool = True, name: str = "denoise") -> None:
        if not 1 <= minimal_group_size <= 1000:
            raise ConfigError(f"minimal_group_size = {minimal_group_size}", location=name, valid="1 to 1000")
        super().__init__(name)
        expect_kernels(label_components)
        self.lowers_costs = True
        self._minimal_group_size = minimal_group_size
        self._diagonal = diagonal
        self._lethal = np.zeros((0, 0), dtype=np.bool_)

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """Adapt to another place of the costmap's cells."""
        self._lethal = np.zeros(geometry.shape, dtype=np.bool_)

    def update_bounds(self) -> CellBounds:
        """Return empty bounds: only changes of the layers below change this layer."""
        return EMPTY_BOUNDS

    def influence_cells(self) -> int:
        """Return the group size: an obstacle that is too small extends no farther."""
        return self._minimal_group_size

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """Free the obstacles that are too small."""
        self._lethal[bounds.slices] = cells[bounds.slices] == LETHAL
        around = bounds.expanded(self._minimal_group_size, cells.shape)
        groups, count = label_components(np.ascontiguousarray(self._lethal[around.slices]), self._diagonal)
        sizes = np.bincount(groups.ravel(), minlength=count + 1)
        is_small = (sizes < self._minimal_group_size)[groups] & (groups > 0)
        is_removed = is_small[
            bounds.top - around.top : bounds.bottom - around.top, bounds.left - around.left : bounds.right - around.left
        ]
        cells[bounds.slices][is_removed] = FREE


@dataclass(frozen=True, kw_only=True)
class DenoiseLayerConfig(LayerConfig):
    """Removal of obstacles of few cells from the layers below."""

    minimal_group_size: int = parameter(2, low=1, high=1000, doc="Number of cells of the smallest obstacle that stays.")
    diagonal: bool = parameter(True, doc="Cells that touch at a corner belong to the same obstacle.")

    def make_layer(self, context: LayerContext) -> DenoiseLayer:
        """Return a denoise layer."""
        return DenoiseLayer(self.minimal_group_size, diagonal=self.diagonal, name=context.name)
