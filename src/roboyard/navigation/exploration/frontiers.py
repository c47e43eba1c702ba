"""Frontiers between known free and unknown space (Yamauchi 1997), and viewpoints that show what lies behind them.

A frontier counts only if the robot can come near enough.  If unknown ground remained that the robot could reach, a
cell of
it would border on known reachable ground; so when no frontier is left, all reachable ground is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import OCCUPIED_THRESHOLD, GridGeometry, OccupancyGrid
from roboyard.grids.regions import label_components
from roboyard.navigation.costmap import LETHAL, Costmap, InflationLayer, LayeredCostmap, StaticLayer
from roboyard.navigation.planners import TraversalCosts, grid_search


@kernel(examples=lambda: [(np.zeros((4, 4), dtype=np.bool_), 0, 0, 3, 2)])
def has_line_of_sight(blocked: NDArray[np.bool_], row: int, column: int, to_row: int, to_column: int) -> bool:
    """Whether the line between the middles of two cells meets no blocked cell; looked at every half cell."""
    dr, dc = to_row - row, to_column - column
    steps = 2 * max(abs(dr), abs(dc))
    for k in range(1, steps):
        if blocked[math.floor(row + dr * k / steps + 0.5), math.floor(column + dc * k / steps + 0.5)]:
            return False
    return True


@kernel(
    examples=lambda: [
        (np.zeros((2, 2), dtype=np.int64, order="F"), np.zeros((4, 4)), np.ones((4, 4), dtype=np.bool_),
         np.zeros((4, 4), dtype=np.bool_), np.zeros((1, 2), dtype=np.int64), 1)
    ]
)  # fmt: skip
def viewpoint_candidates(
    frontier_cells: NDArray[np.int64],
    path_costs: NDArray[np.float64],
    can_rotate: NDArray[np.bool_],
    blocked: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    n_near_offsets: int,
) -> NDArray[np.int64]:
    """For each cell of a border, the nearest cell to look from.

    Args:
        frontier_cells: (n, 2) rows and columns.
        path_costs: (rows, columns) of the way to each cell, infinite where none leads.
        can_rotate: (rows, columns) where the robot can also turn.
        blocked: (rows, columns) cells that block the line of sight.
        offsets: (m, 2) rows and columns, the nearest first, how far from the border to look for a roomy cell.
        n_near_offsets: So many of them for cells that are not roomy.

    Returns:
        (n, 2) rows and columns; -1 where there is none.
    """
    rows, columns = path_costs.shape
    viewpoint_cells = np.full((len(frontier_cells), 2), -1, dtype=np.int64)
    for i in range(len(frontier_cells)):
        row, column = frontier_cells[i, 0], frontier_cells[i, 1]
        for k in range(len(offsets)):
            r, c = row + offsets[k, 0], column + offsets[k, 1]
            if not (0 <= r < rows and 0 <= c < columns) or math.isinf(path_costs[r, c]):
                continue
            if can_rotate[r, c] and has_line_of_sight(blocked, row, column, r, c):
                viewpoint_cells[i, 0], viewpoint_cells[i, 1] = r, c
                break
            if viewpoint_cells[i, 0] < 0 and k < n_near_offsets:
                viewpoint_cells[i, 0], viewpoint_cells[i, 1] = r, c
    return viewpoint_cells


# the example's cells are read only, as those of grids are
@kernel(examples=lambda: [(np.frombuffer(bytes(16), dtype=np.int8).reshape(4, 4), 65, 1, 1, 3.0, 8)])
def unknown_area_by_direction(
    cells: NDArray[np.int8], occupied_threshold: int, row: int, column: int, max_distance: float, n_directions: int
) -> NDArray[np.float64]:
    """Unknown area in sight from the middle of a cell, if nothing stands in it, by direction.

    Args:
        cells: (rows, columns) of an occupancy grid; what lies beyond it is unknown.
        occupied_threshold: From which value on a cell cannot be seen through.
        row: Of the cell to look from.
        column: The same.
        max_distance: How far to look [cells].
        n_directions: How many, the first along the columns, counter-clockwise in the grid's frame.

    Returns:
        (directions,) [cells²].
    """
    rows, columns = cells.shape
    areas = np.zeros(n_directions)
    width = 2.0 * math.pi / n_directions
    for k in range(n_directions):
        dc, dr = math.cos(k * width), math.sin(k * width)
        for step in range(1, int(max_distance) + 1):
            r, c = math.floor(row + step * dr + 0.5), math.floor(column + step * dc + 0.5)
            if not (0 <= r < rows and 0 <= c < columns) or cells[r, c] < 0:
                areas[k] += step * width
            elif cells[r, c] >= occupied_threshold:
                break
    return areas


_N_DIRECTIONS = 72
_INFLATION_MARGIN = 0.3
"""So far beyond where the robot can turn, ways near obstacles cost more [m]."""
_NEIGHBOR_OFFSETS = ((-1, 0), (1, 0), (0, -1), (0, 1))


class FrontierConfig(Config):
    """What counts as a frontier, and how the robot looks at it."""

    inscribed_radius: float = parameter(
        0.2,
        unit="m",
        low=0.0,
        high=50.0,
        doc="Radius of the circle within the robot's outline: where it fits, the robot can be.",
    )
    circumscribed_radius: float = parameter(
        0.3,
        unit="m",
        low=0.0,
        high=50.0,
        doc="Radius of the circle around the robot's outline: where it fits, the robot can turn.",
    )
    occupied_threshold: int = parameter(
        OCCUPIED_THRESHOLD, low=1, high=100, doc="Occupancy from which a cell is an obstacle."
    )
    min_frontier_length: float = parameter(
        0.2, unit="m", low=0.0, high=100.0, doc="Length below which a frontier is noise."
    )
    max_viewpoint_distance: float = parameter(
        0.8, unit="m", low=0.0, high=100.0, doc="Largest distance from a frontier at which the robot looks beyond it."
    )
    sensor_range: float = parameter(4.0, unit="m", low=0.01, high=1000.0, doc="Range of the sensors.")
    field_of_view: float = parameter(
        2.0 * math.pi, unit="rad", low=0.01, high=2.0 * math.pi + 1e-9, doc="Angle that the sensors see at once."
    )
    viewpoint_spacing: float = parameter(
        1.0, unit="m", low=0.01, high=1000.0, doc="Distance between viewpoints of one frontier."
    )

    def validate(self) -> None:
        """Check the order of the radii."""
        if self.circumscribed_radius < self.inscribed_radius:
            raise ConfigError(
                f"circumscribed_radius = {self.circumscribed_radius}",
                valid=f"inscribed_radius or more, {self.inscribed_radius:g}",
            )


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """A pose to observe a frontier from.

    Attributes:
        pose: ``T_map_base`` there, looking where most is unknown.
        path_cost: What the way there costs, in metres of free ground.
        gain: Unknown area that may come into sight there [m²].
        frontier: Number of the frontier it looks at.
    """

    pose: SE2
    path_cost: float
    gain: float
    frontier: int


@dataclass(frozen=True, slots=True)
class FrontierMap:
    """Frontiers within reach of the robot, with viewpoints.

    Attributes:
        cells: (n, 2) rows and columns of each: free cells with unknown ones beside them.
        viewpoints: Where to look from; every frontier has at least one.
        known_area: How much free ground is known [m²].
        frame: Where the cells lie.
    """

    cells: tuple[NDArray[np.int64], ...]
    viewpoints: tuple[Viewpoint, ...]
    known_area: float
    frame: GridGeometry


def frontier_cells(grid: OccupancyGrid, occupied_threshold: int) -> NDArray[np.bool_]:
    """(rows, columns) free cells with an unknown one on one of their four sides; beyond the map all is unknown."""
    padded = np.pad(grid.cells, 1, constant_values=-1)
    rows, columns = grid.cells.shape
    has_unknown_neighbor = np.zeros((rows, columns), dtype=np.bool_)
    for dr, dc in _NEIGHBOR_OFFSETS:
        has_unknown_neighbor |= padded[1 + dr : rows + 1 + dr, 1 + dc : columns + 1 + dc] < 0
    return np.asarray(has_unknown_neighbor & (grid.cells >= 0) & (grid.cells < occupied_threshold))


def compute_path_costs(costmap: Costmap, start: SE2, start_search_radius: float) -> NDArray[np.float64]:
    """Costs (rows, columns) of the cheapest ways over known ground, in metres of free ground; infinite without a way.

    If the robot's pose is too near to an obstacle, the paths begin at all free cells within ``start_search_radius``
    [m].
    """
    traversal_grid = TraversalCosts(allow_unknown=False).make_grid(costmap.cells)
    enterable = traversal_grid.weights[traversal_grid.cells] > 0.0
    rows, columns = enterable.shape
    start_row, start_column = (int(index) + 1 for index in costmap.geometry.cells_of_points(start.xy))
    is_inside = 0 < start_row < rows - 1 and 0 < start_column < columns - 1
    if is_inside and enterable[start_row, start_column]:
        sources = np.array([start_row * columns + start_column])
    else:
        free_cells = np.argwhere(enterable)
        distances = (
            np.hypot(free_cells[:, 0] - start_row, free_cells[:, 1] - start_column) * costmap.geometry.resolution
        )
        nearby_cells = free_cells[distances <= start_search_radius]
        sources = nearby_cells[:, 0] * columns + nearby_cells[:, 1]
    costs = np.full(enterable.size, np.inf)
    if len(sources):
        grid_search.search_grid(traversal_grid, costs, sources, -1, 0.0, False)
    return costs.reshape(rows, columns)[1:-1, 1:-1] * costmap.geometry.resolution


def find_frontiers(grid: OccupancyGrid, pose: SE2, config: FrontierConfig | None = None) -> FrontierMap:
    """Frontiers and the places to look beyond them from.

    Args:
        grid: What is known; what the robot stands on need not be.
        pose: ``T_map_base`` now.
        config: What counts.
    """
    config = config or FrontierConfig()
    frame, is_unknown = grid.geometry, grid.cells < 0
    grid = _mark_robot_cells_free(grid, pose, config.inscribed_radius)
    inflation = InflationLayer(config.inscribed_radius, config.circumscribed_radius + _INFLATION_MARGIN)
    costmap = _exploration_costmap(grid, inflation, config.occupied_threshold)
    costs = compute_path_costs(costmap, pose, config.circumscribed_radius + 2.0 * frame.resolution)
    frontier_indices = np.argwhere(frontier_cells(grid, config.occupied_threshold))
    can_rotate = costmap.cells < inflation.cost_at(config.circumscribed_radius)
    known_costs = np.where(is_unknown, np.inf, costs)
    viewpoint_costs = known_costs if np.isfinite(known_costs).any() else costs  # at first it may stand in the dark
    viewpoint_cells = viewpoint_candidates(
        frontier_indices,
        viewpoint_costs,
        can_rotate,
        costmap.cells == LETHAL,
        *_sorted_offsets(config, frame.resolution),
    )
    has_viewpoint = viewpoint_cells[:, 0] >= 0
    frontier_indices, viewpoint_cells = frontier_indices[has_viewpoint], viewpoint_cells[has_viewpoint]
    is_frontier = np.zeros(frame.shape, dtype=np.bool_)
    is_frontier[frontier_indices[:, 0], frontier_indices[:, 1]] = True
    labels, count = label_components(is_frontier, True)
    frontier_labels = labels[frontier_indices[:, 0], frontier_indices[:, 1]]
    cells: list[NDArray[np.int64]] = []
    viewpoints: list[Viewpoint] = []
    for number in range(1, count + 1):
        is_in_frontier = frontier_labels == number
        if np.count_nonzero(is_in_frontier) * frame.resolution < config.min_frontier_length - 1e-9:
            continue
        viewpoints.extend(
            _make_viewpoint(
                grid,
                frontier_indices[is_in_frontier],
                viewpoint_cell,
                float(costs[tuple(viewpoint_cell)]),
                len(cells),
                config,
            )
            for viewpoint_cell in _space_out(
                viewpoint_cells[is_in_frontier], costs, config.viewpoint_spacing / frame.resolution
            )
        )
        cells.append(frontier_indices[is_in_frontier])
    is_free = (grid.cells >= 0) & (grid.cells < config.occupied_threshold)
    return FrontierMap(tuple(cells), tuple(viewpoints), float(np.count_nonzero(is_free)) * frame.resolution**2, frame)


def _mark_robot_cells_free(grid: OccupancyGrid, pose: SE2, radius: float) -> OccupancyGrid:
    """The map with what is unknown under the robot taken for free, since it stands there."""
    cells, frame = grid.cells.copy(), grid.geometry
    robot_cell = frame.T_map_grid.inverse() @ pose.xy / frame.resolution - 0.5
    rows, columns = np.ogrid[: frame.shape[0], : frame.shape[1]]
    is_under_robot = np.hypot(rows - robot_cell[1], columns - robot_cell[0]) <= radius / frame.resolution
    cells[is_under_robot & (cells < 0)] = 0
    return OccupancyGrid(cells, frame)


def _exploration_costmap(grid: OccupancyGrid, inflation: InflationLayer, occupied_threshold: int) -> Costmap:
    """The costmap that ways are looked for in: the map's obstacles and their surroundings."""
    static = StaticLayer(lethal_threshold=occupied_threshold)
    static.set_map(grid)
    layers = LayeredCostmap(grid.geometry, [static, inflation], track_unknown_space=True)
    layers.update()
    return layers.snapshot()


def _sorted_offsets(config: FrontierConfig, resolution: float) -> tuple[NDArray[np.int64], int]:
    """Rows and columns about a cell, the nearest first, and how many of them lie under a robot beside it."""
    half_size = math.ceil(max(config.max_viewpoint_distance, config.inscribed_radius) / resolution) + 2
    grid = np.mgrid[-half_size : half_size + 1, -half_size : half_size + 1].reshape(2, -1).T
    distances = np.hypot(grid[:, 0], grid[:, 1])
    order = np.lexsort((grid[:, 1], grid[:, 0], distances))
    near_distance = config.inscribed_radius / resolution + 1.5
    max_distance = max(config.max_viewpoint_distance / resolution, near_distance)
    offsets = np.ascontiguousarray(grid[order][distances[order] <= max_distance], dtype=np.int64)
    return offsets, int(np.count_nonzero(distances <= near_distance))


def _space_out(cells: NDArray[np.int64], costs: NDArray[np.float64], spacing: float) -> list[NDArray[np.int64]]:
    """Some of the places, the cheapest to come to first, none nearer to another than the spacing [cells]."""
    selected: list[NDArray[np.int64]] = []
    for cell in cells[np.argsort(costs[cells[:, 0], cells[:, 1]], kind="stable")]:
        if all(np.hypot(*(cell - other)) >= spacing for other in selected):
            selected.append(cell)
    return selected


def _make_viewpoint(
    grid: OccupancyGrid,
    frontier: NDArray[np.int64],
    cell: NDArray[np.int64],
    path_cost: float,
    frontier_index: int,
    config: FrontierConfig,
) -> Viewpoint:
    frame = grid.geometry
    sensor_range_cells = config.sensor_range / frame.resolution
    areas = unknown_area_by_direction(
        grid.cells, config.occupied_threshold, int(cell[0]), int(cell[1]), sensor_range_cells, _N_DIRECTIONS
    )
    heading, area = _best_heading(areas, config.field_of_view)
    if area <= 0.0:  # nothing beyond is in sight: look at the frontier itself
        row, column = frontier[np.argmin(np.hypot(*(frontier - cell).T))] - cell
        heading = math.atan2(row, column)
    x, y = frame.cell_centers(cell)
    return Viewpoint(
        SE2(float(x), float(y), frame.T_map_grid.theta + heading), path_cost, area * frame.resolution**2, frontier_index
    )


def _best_heading(areas: NDArray[np.float64], field_of_view: float) -> tuple[float, float]:
    """The heading at which most comes into sight, the middle of such, and how much."""
    count = len(areas)
    angles = 2.0 * math.pi / count * np.arange(count)
    width = min(max(round(field_of_view / (2.0 * math.pi) * count), 1), count)
    sums = np.array([areas[np.arange(k - width // 2, k - width // 2 + width) % count].sum() for k in range(count)])
    max_area = float(sums.max())
    weights = np.where(sums >= max_area * (1.0 - 1e-9), 1.0, 0.0) if width < count else areas
    heading = math.atan2(float((weights * np.sin(angles)).sum()), float((weights * np.cos(angles)).sum()))
    return heading, max_area
