"""Layers that depend on the layers below: inflation of obstacles and removal of small groups of cells."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.errors import ConfigError
from roboyard.grids import GridGeometry
from roboyard.grids.regions import label_components
from roboyard.navigation.costmap.layered_costmap import EMPTY_BOUNDS, FREE, INSCRIBED, LETHAL, UNKNOWN, CellBounds


class InflationLayer:
    """Spreads obstacles of the layers below: 253 within the inscribed radius, beyond it 252·exp(-k·(d - r)).

    Args:
        inscribed_radius: r, of the circle within the robot's outline [m].
        inflation_radius: How far costs reach [m].
        cost_scaling_factor: k [1/m].
        inflate_unknown: Whether costs are also written over unknown cells; else only what the robot would touch.
        name: Of the layer.

    Raises:
        ConfigError: a number out of range.
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
        self.name = name
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
        """Cost at a distance from an obstacle's cell [m]."""
        if distance <= 0.0:
            return LETHAL
        if distance <= self._inscribed_radius:
            return INSCRIBED
        if distance > self._inflation_radius:
            return 0
        return int((INSCRIBED - 1) * math.exp(-self._cost_scaling_factor * (distance - self._inscribed_radius)))

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        self._lethal = np.zeros(geometry.shape, dtype=np.bool_)
        if shift is not None:
            return  # the costs are those of the same cells
        max_cells = math.ceil(max(self._inflation_radius, self._inscribed_radius) / geometry.resolution)
        costs = [self.cost_at(math.sqrt(squared) * geometry.resolution) for squared in range(max_cells * max_cells + 1)]
        costs[0] = 0  # the obstacle itself stays as it is
        self._radius_cells = math.isqrt(max((squared for squared, cost in enumerate(costs) if cost), default=0))
        self._costs = np.array(costs, dtype=np.uint8)

    def pop_changed_bounds(self) -> CellBounds:
        """See ``Layer``: only what lies below changes it."""
        return EMPTY_BOUNDS

    def influence_cells(self) -> int:
        """See ``Layer``."""
        return self._radius_cells

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """See ``Layer``."""
        inside = bounds.slices
        self._lethal[inside] = cells[inside] == LETHAL
        around = bounds.expanded(self._radius_cells, cells.shape)
        write_inflated_costs(
            cells,
            self._lethal,
            self._costs,
            self._radius_cells,
            np.array(bounds),
            np.array(around),
            self._inflate_unknown,
        )


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), dtype=np.uint8), np.zeros((5, 5), dtype=np.bool_), np.zeros(5, dtype=np.uint8), 2,
         np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64), False)
    ]
)  # fmt: skip
def write_inflated_costs(
    cells: NDArray[np.uint8],
    lethal: NDArray[np.bool_],
    costs: NDArray[np.uint8],
    radius_cells: int,
    bounds: NDArray[np.int64],
    search_bounds: NDArray[np.int64],
    inflate_unknown: bool,
) -> None:
    """Write what each cell costs by its distance to the nearest obstacle, first along columns, then along rows.

    Args:
        cells: (rows, columns) of the map, written within the bounds.
        lethal: (rows, columns) where obstacles are.
        costs: (n,) by squared distances [cells²]; 0 beyond.
        radius_cells: How far costs go [cells].
        bounds: Top, left, bottom, right of what is written.
        search_bounds: The same of where obstacles are looked for.
        inflate_unknown: Whether to write all costs over unknown cells.
    """
    top, left, bottom, right = bounds
    height, width, n_columns = bottom - top, search_bounds[3] - search_bounds[1], right - left
    max_distance = np.int32(radius_cells + 1)
    # squared distance to the nearest obstacle of the same column; columns beyond the map hold none
    column_squares = np.full(
        (max(height, 0), n_columns + 2 * radius_cells), max_distance * max_distance, dtype=np.int32
    )
    column_offset = search_bounds[1] - left + radius_cells
    column_distances = np.full(width, max_distance, dtype=np.int32)
    for r in range(search_bounds[0], bottom):
        for c in range(width):
            column_distances[c] = (
                np.int32(0) if lethal[r, search_bounds[1] + c] else min(column_distances[c] + np.int32(1), max_distance)
            )
        if r >= top:
            for c in range(width):
                column_squares[r - top, column_offset + c] = column_distances[c] * column_distances[c]
    column_distances[:] = max_distance
    for r in range(search_bounds[2] - 1, top - 1, -1):
        for c in range(width):
            column_distances[c] = (
                np.int32(0) if lethal[r, search_bounds[1] + c] else min(column_distances[c] + np.int32(1), max_distance)
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


class DenoiseLayer:
    """Frees obstacles of the layers below that consist of few cells.

    Args:
        minimal_group_size: Number of cells of the smallest obstacle that stays.
        diagonal: Whether cells that touch at a corner belong together.
        name: Of the layer.

    Raises:
        ConfigError: ``minimal_group_size`` out of range.
    """

    def __init__(self, minimal_group_size: int = 2, *, diagonal: bool = True, name: str = "denoise") -> None:
        if not 1 <= minimal_group_size <= 1000:
            raise ConfigError(f"minimal_group_size = {minimal_group_size}", location=name, valid="1 to 1000")
        self.name = name
        expect_kernels(label_components)
        self._minimal_group_size = minimal_group_size
        self._diagonal = diagonal
        self._lethal = np.zeros((0, 0), dtype=np.bool_)

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        """See ``Layer``."""
        self._lethal = np.zeros(geometry.shape, dtype=np.bool_)

    def pop_changed_bounds(self) -> CellBounds:
        """See ``Layer``: only what lies below changes it."""
        return EMPTY_BOUNDS

    def influence_cells(self) -> int:
        """See ``Layer``: an obstacle too small cannot reach farther."""
        return self._minimal_group_size

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        """See ``Layer``."""
        self._lethal[bounds.slices] = cells[bounds.slices] == LETHAL
        around = bounds.expanded(self._minimal_group_size, cells.shape)
        groups, count = label_components(np.ascontiguousarray(self._lethal[around.slices]), self._diagonal)
        sizes = np.bincount(groups.ravel(), minlength=count + 1)
        is_small = (sizes < self._minimal_group_size)[groups] & (groups > 0)
        is_removed = is_small[
            bounds.top - around.top : bounds.bottom - around.top, bounds.left - around.left : bounds.right - around.left
        ]
        cells[bounds.slices][is_removed] = FREE
