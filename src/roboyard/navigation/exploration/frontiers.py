"""Frontiers between known free and unknown space (B. Yamauchi, "A frontier-based approach for autonomous exploration",
CIRA 1997), and viewpoints from which the sensors see behind them.

A frontier counts only if the robot can come near enough.  If unknown space that the robot can reach were left, one of
its cells would be next to known reachable space; so without a frontier all reachable space is known.
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
    """Return whether the line between the centers of two cells, sampled every half cell, meets no blocked cell."""
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
    """Return for each cell of a frontier the nearest cell from which the robot can observe it.

    Args:
        frontier_cells: (n, 2) rows and columns.
        path_costs: (rows, columns) costs of the path to each cell, infinite without a path.
        can_rotate: (rows, columns) cells in which the robot can rotate in place.
        blocked: (rows, columns) cells that block the line of sight.
        offsets: (m, 2) rows and columns from a cell of the frontier to candidates, the nearest first.
        n_near_offsets: Number of offsets at which cells count where the robot cannot rotate.

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
    """Return the unknown area that is visible from the center of a cell, by direction, if it is free.

    Args:
        cells: (rows, columns) of an occupancy grid; the space beyond it is unknown.
        occupied_threshold: Occupancy from which a cell blocks the view.
        row: Row of the cell.
        column: Column of the cell.
        max_distance: Range of the sensor [cells].
        n_directions: Number of directions, the first along the columns, counter-clockwise in the frame of the grid.

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
"""Distance beyond the circumscribed radius within which obstacles increase the path cost [m]."""
_NEIGHBOR_OFFSETS = ((-1, 0), (1, 0), (0, -1), (0, 1))


class FrontierConfig(Config):
    """Parameters of the search for frontiers and their viewpoints."""

    inscribed_radius: float = parameter(
        0.2,
        unit="m",
        low=0.0,
        high=50.0,
        doc="Inscribed radius of the footprint: where this circle fits, the robot can be.",
    )
    circumscribed_radius: float = parameter(
        0.3,
        unit="m",
        low=0.0,
        high=50.0,
        doc="Circumscribed radius of the footprint: where this circle fits, the robot can rotate in place.",
    )
    occupied_threshold: int = parameter(
        OCCUPIED_THRESHOLD, low=1, high=100, doc="Occupancy from which a cell is an obstacle."
    )
    min_frontier_length: float = parameter(
        0.2, unit="m", low=0.0, high=100.0, doc="Minimum length of a frontier (explore_lite: min_frontier_size)."
    )
    max_viewpoint_distance: float = parameter(
        0.8, unit="m", low=0.0, high=100.0, doc="Maximum distance of a viewpoint from its frontier."
    )
    sensor_range: float = parameter(4.0, unit="m", low=0.01, high=1000.0, doc="Range of the sensors.")
    field_of_view: float = parameter(
        2.0 * math.pi, unit="rad", low=0.01, high=2.0 * math.pi + 1e-9, doc="Horizontal field of view of the sensors."
    )
    viewpoint_spacing: float = parameter(
        1.0, unit="m", low=0.01, high=1000.0, doc="Distance between viewpoints of one frontier."
    )

    def validate(self) -> None:
        """Check that the circumscribed radius is not smaller than the inscribed one."""
        if self.circumscribed_radius < self.inscribed_radius:
            raise ConfigError(
                f"circumscribed_radius = {self.circumscribed_radius}",
                valid=f"inscribed_radius or more, {self.inscribed_radius:g}",
            )


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """A pose to observe a frontier from.

    Attributes:
        pose: Pose ``T_map_base``, with the heading at which the most unknown area is visible.
        path_cost: Cost of the path to it, in meters of free space.
        gain: Unknown area that may become visible from it [m²].
        frontier: Index of its frontier.
    """

    pose: SE2
    path_cost: float
    gain: float
    frontier: int


@dataclass(frozen=True, slots=True)
class FrontierMap:
    """Frontiers that the robot can approach, with their viewpoints.

    Attributes:
        cells: (n, 2) rows and columns of each frontier: free cells with an unknown neighbor.
        viewpoints: Viewpoints; every frontier has at least one.
        known_area: Area of the known free space [m²].
        frame: Geometry of the cells.
    """

    cells: tuple[NDArray[np.int64], ...]
    viewpoints: tuple[Viewpoint, ...]
    known_area: float
    frame: GridGeometry


def frontier_cells(grid: OccupancyGrid, occupied_threshold: int) -> NDArray[np.bool_]:
    """Return the free cells (rows, columns) with an unknown cell on one of their four sides; all is unknown beyond the
    map."""
    padded = np.pad(grid.cells, 1, constant_values=-1)
    rows, columns = grid.cells.shape
    has_unknown_neighbor = np.zeros((rows, columns), dtype=np.bool_)
    for dr, dc in _NEIGHBOR_OFFSETS:
        has_unknown_neighbor |= padded[1 + dr : rows + 1 + dr, 1 + dc : columns + 1 + dc] < 0
    return np.asarray(has_unknown_neighbor & (grid.cells >= 0) & (grid.cells < occupied_threshold))


def compute_path_costs(costmap: Costmap, start: SE2, start_search_radius: float) -> NDArray[np.float64]:
    """Return the costs (rows, columns) of the cheapest paths through known space, in meters of free space; infinite
    without a path.

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
    """Find the frontiers of a map, and viewpoints from which the sensors see behind them.

    Args:
        grid: Map; the cells under the robot may be unknown.
        pose: Present pose ``T_map_base``.
        config: Parameters of the search.
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
    viewpoint_costs = (
        known_costs if np.isfinite(known_costs).any() else costs
    )  # at first the cells around the robot may be unknown
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
    """Return the map with the unknown cells under the robot marked as free."""
    cells, frame = grid.cells.copy(), grid.geometry
    robot_cell = frame.T_map_grid.inverse() @ pose.xy / frame.resolution - 0.5
    rows, columns = np.ogrid[: frame.shape[0], : frame.shape[1]]
    is_under_robot = np.hypot(rows - robot_cell[1], columns - robot_cell[0]) <= radius / frame.resolution
    cells[is_under_robot & (cells < 0)] = 0
    return OccupancyGrid(cells, frame)


def _exploration_costmap(grid: OccupancyGrid, inflation: InflationLayer, occupied_threshold: int) -> Costmap:
    """Return the costmap for the path costs: the obstacles of the map, inflated."""
    static = StaticLayer(lethal_threshold=occupied_threshold)
    static.set_map(grid)
    layers = LayeredCostmap(grid.geometry, [static, inflation], track_unknown_space=True)
    layers.update()
    return layers.snapshot()


def _sorted_offsets(config: FrontierConfig, resolution: float) -> tuple[NDArray[np.int64], int]:
    """Return the offsets around a cell, the nearest first, and the number of those within the inscribed radius."""
    half_size = math.ceil(max(config.max_viewpoint_distance, config.inscribed_radius) / resolution) + 2
    grid = np.mgrid[-half_size : half_size + 1, -half_size : half_size + 1].reshape(2, -1).T
    distances = np.hypot(grid[:, 0], grid[:, 1])
    order = np.lexsort((grid[:, 1], grid[:, 0], distances))
    near_distance = config.inscribed_radius / resolution + 1.5
    max_distance = max(config.max_viewpoint_distance / resolution, near_distance)
    offsets = np.ascontiguousarray(grid[order][distances[order] <= max_distance], dtype=np.int64)
    return offsets, int(np.count_nonzero(distances <= near_distance))


def _space_out(cells: NDArray[np.int64], costs: NDArray[np.float64], spacing: float) -> list[NDArray[np.int64]]:
    """Select cells in the order of their path costs, none closer to another than the spacing [cells]."""
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
    if area <= 0.0:  # no unknown area is visible: head for the frontier
        row, column = frontier[np.argmin(np.hypot(*(frontier - cell).T))] - cell
        heading = math.atan2(row, column)
    x, y = frame.cell_centers(cell)
    return Viewpoint(
        SE2(float(x), float(y), frame.T_map_grid.theta + heading), path_cost, area * frame.resolution**2, frontier_index
    )


def _best_heading(areas: NDArray[np.float64], field_of_view: float) -> tuple[float, float]:
    """Return the heading at which the most unknown area is visible (of several, their middle), and the area."""
    count = len(areas)
    angles = 2.0 * math.pi / count * np.arange(count)
    width = min(max(round(field_of_view / (2.0 * math.pi) * count), 1), count)
    sums = np.array([areas[np.arange(k - width // 2, k - width // 2 + width) % count].sum() for k in range(count)])
    max_area = float(sums.max())
    weights = np.where(sums >= max_area * (1.0 - 1e-9), 1.0, 0.0) if width < count else areas
    heading = math.atan2(float((weights * np.sin(angles)).sum()), float((weights * np.cos(angles)).sum()))
    return heading, max_area
