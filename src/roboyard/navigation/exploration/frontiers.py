"""Frontiers: where known free ground ends at the unknown (Yamauchi 1997), and from where to look beyond them.

A frontier counts only where the robot comes near enough.  If the unknown began anywhere on ground that the robot could
come to stand on, some cell there would border on what it stands on when it gets as far as it knows; so when no frontier
is left, all such ground is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import OCCUPIED_THRESHOLD, GridGeometry, OccupancyGrid
from roboyard.grids.regions import label_components
from roboyard.navigation.costmap import LETHAL, Costmap, InflationLayer, LayeredCostmap, StaticLayer
from roboyard.navigation.exploration.frontier_kernels import standing_places, unseen_by_direction
from roboyard.navigation.planning import Traversal, octile

_DIRECTIONS = 72
_BEYOND = 0.3
"""So far beyond where the robot can turn, ways near obstacles cost more [m]."""
_SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))


class FrontierConfig(Config):
    """What counts as a frontier, and how the robot looks at it."""

    radius: float = parameter(
        0.2,
        unit="m",
        low=0.0,
        high=50.0,
        doc="Radius of the circle within the robot's outline: where it fits, the robot can be.",
    )
    turning_radius: float = parameter(
        0.3,
        unit="m",
        low=0.0,
        high=50.0,
        doc="Radius of the circle around the robot's outline: where it fits, the robot can turn.",
    )
    occupied: int = parameter(OCCUPIED_THRESHOLD, low=1, high=100, doc="Occupancy from which a cell is an obstacle.")
    least: float = parameter(0.2, unit="m", low=0.0, high=100.0, doc="Length below which a frontier is noise.")
    aside: float = parameter(
        0.8, unit="m", low=0.0, high=100.0, doc="Largest distance from a frontier at which the robot looks beyond it."
    )
    sight: float = parameter(4.0, unit="m", low=0.01, high=1000.0, doc="Range of the sensors.")
    field_of_view: float = parameter(
        2.0 * math.pi, unit="rad", low=0.01, high=2.0 * math.pi + 1e-9, doc="Angle that the sensors see at once."
    )
    spacing: float = parameter(1.0, unit="m", low=0.01, high=1000.0, doc="Distance between viewpoints of one frontier.")

    def validate(self) -> None:
        """Check the order of the radii."""
        if self.turning_radius < self.radius:
            raise ConfigError(f"turning_radius = {self.turning_radius}", valid=f"radius or more, {self.radius:g}")


@dataclass(frozen=True, slots=True)
class View:
    """A place to look from.

    Attributes:
        pose: ``T_map_base`` there, looking where most is unknown.
        way: What the way there costs, in metres of free ground.
        gain: Unknown area that may come into sight there [m²].
        frontier: Number of the frontier it looks at.
    """

    pose: SE2
    way: float
    gain: float
    frontier: int


@dataclass(frozen=True, slots=True)
class Frontiers:
    """All frontiers that the robot can come near.

    Attributes:
        cells: (n, 2) rows and columns of each: free cells with unknown ones beside them.
        views: Where to look from; every frontier has at least one.
        known: How much free ground is known [m²].
        frame: Where the cells lie.
    """

    cells: tuple[NDArray[np.int64], ...]
    views: tuple[View, ...]
    known: float
    frame: GridGeometry


def border_cells(grid: OccupancyGrid, occupied: int) -> NDArray[np.bool_]:
    """(rows, columns) free cells with an unknown one on one of their four sides; beyond the map all is unknown."""
    framed = np.pad(grid.cells, 1, constant_values=-1)
    rows, columns = grid.cells.shape
    beside = np.zeros((rows, columns), dtype=np.bool_)
    for dr, dc in _SIDES:
        beside |= framed[1 + dr : rows + 1 + dr, 1 + dc : columns + 1 + dc] < 0
    return np.asarray(beside & (grid.cells >= 0) & (grid.cells < occupied))


def way_costs(costmap: Costmap, start: SE2, escape: float) -> NDArray[np.float64]:
    """Costs (rows, columns) of the cheapest ways over known ground, in metres of free ground; infinite without a way.

    Where the robot stands too near to an obstacle, they begin at all free places within ``escape`` [m].
    """
    ground = Traversal(allow_unknown=False).ground(costmap.cells)
    enterable = ground.weights[ground.cells] > 0.0
    rows, columns = enterable.shape
    start_row, start_column = (int(index) + 1 for index in costmap.frame.cells_of_points(start.xy))
    inside = 0 < start_row < rows - 1 and 0 < start_column < columns - 1
    if inside and enterable[start_row, start_column]:
        sources = np.array([start_row * columns + start_column])
    else:
        free = np.argwhere(enterable)
        away = np.hypot(free[:, 0] - start_row, free[:, 1] - start_column) * costmap.frame.resolution
        near = free[away <= escape]
        sources = near[:, 0] * columns + near[:, 1]
    costs = np.full(enterable.size, np.inf)
    if len(sources):
        octile.search(ground, costs, sources, -1, 0.0, False)
    return costs.reshape(rows, columns)[1:-1, 1:-1] * costmap.frame.resolution


def find_frontiers(grid: OccupancyGrid, pose: SE2, config: FrontierConfig | None = None) -> Frontiers:
    """Frontiers and the places to look beyond them from.

    Args:
        grid: What is known; what the robot stands on need not be.
        pose: ``T_map_base`` now.
        config: What counts.
    """
    config = config or FrontierConfig()
    frame, unseen = grid.geometry, grid.cells < 0
    grid = _stood_on(grid, pose, config.radius)
    around = InflationLayer(config.radius, config.turning_radius + _BEYOND)
    costmap = _ground(grid, around, config.occupied)
    costs = way_costs(costmap, pose, config.turning_radius + 2.0 * frame.resolution)
    border = np.argwhere(border_cells(grid, config.occupied))
    roomy = costmap.cells < around.cost_at(config.turning_radius)
    known = np.where(unseen, np.inf, costs)
    standable = known if np.isfinite(known).any() else costs  # at first it may stand in the dark
    places = standing_places(border, standable, roomy, costmap.cells == LETHAL, *_offsets(config, frame.resolution))
    near = places[:, 0] >= 0
    border, places = border[near], places[near]
    marked = np.zeros(frame.shape, dtype=np.bool_)
    marked[border[:, 0], border[:, 1]] = True
    labels, count = label_components(marked, True)
    numbers = labels[border[:, 0], border[:, 1]]
    cells: list[NDArray[np.int64]] = []
    views: list[View] = []
    for number in range(1, count + 1):
        own = numbers == number
        if np.count_nonzero(own) * frame.resolution < config.least - 1e-9:
            continue
        views.extend(
            _view(grid, border[own], place, float(costs[tuple(place)]), len(cells), config)
            for place in _spread(places[own], costs, config.spacing / frame.resolution)
        )
        cells.append(border[own])
    free = (grid.cells >= 0) & (grid.cells < config.occupied)
    return Frontiers(tuple(cells), tuple(views), float(np.count_nonzero(free)) * frame.resolution**2, frame)


def _stood_on(grid: OccupancyGrid, pose: SE2, radius: float) -> OccupancyGrid:
    """The map with what is unknown under the robot taken for free, since it stands there."""
    cells, frame = grid.cells.copy(), grid.geometry
    here = frame.T_map_grid.inverse() @ pose.xy / frame.resolution - 0.5
    rows, columns = np.ogrid[: frame.shape[0], : frame.shape[1]]
    under = np.hypot(rows - here[1], columns - here[0]) <= radius / frame.resolution
    cells[under & (cells < 0)] = 0
    return OccupancyGrid(cells, frame)


def _ground(grid: OccupancyGrid, around: InflationLayer, occupied: int) -> Costmap:
    """The costmap that ways are looked for in: the map's obstacles and their surroundings."""
    static = StaticLayer(lethal=occupied)
    static.take(grid)
    layers = LayeredCostmap(grid.geometry, [static, around], unknown=True)
    layers.update()
    return layers.costmap()


def _offsets(config: FrontierConfig, resolution: float) -> tuple[NDArray[np.int64], int]:
    """Rows and columns about a cell, the nearest first, and how many of them lie under a robot beside it."""
    reach = math.ceil(max(config.aside, config.radius) / resolution) + 2
    grid = np.mgrid[-reach : reach + 1, -reach : reach + 1].reshape(2, -1).T
    away = np.hypot(grid[:, 0], grid[:, 1])
    order = np.lexsort((grid[:, 1], grid[:, 0], away))
    near = config.radius / resolution + 1.5
    far = max(config.aside / resolution, near)
    offsets = np.ascontiguousarray(grid[order][away[order] <= far], dtype=np.int64)
    return offsets, int(np.count_nonzero(away <= near))


def _spread(places: NDArray[np.int64], costs: NDArray[np.float64], spacing: float) -> list[NDArray[np.int64]]:
    """Some of the places, the cheapest to come to first, none nearer to another than the spacing [cells]."""
    kept: list[NDArray[np.int64]] = []
    for place in places[np.argsort(costs[places[:, 0], places[:, 1]], kind="stable")]:
        if all(np.hypot(*(place - other)) >= spacing for other in kept):
            kept.append(place)
    return kept


def _view(
    grid: OccupancyGrid,
    border: NDArray[np.int64],
    place: NDArray[np.int64],
    way: float,
    frontier: int,
    config: FrontierConfig,
) -> View:
    frame = grid.geometry
    reach = config.sight / frame.resolution
    areas = unseen_by_direction(grid.cells, config.occupied, int(place[0]), int(place[1]), reach, _DIRECTIONS)
    heading, area = _best_heading(areas, config.field_of_view)
    if area <= 0.0:  # nothing beyond is in sight: look at the frontier itself
        row, column = border[np.argmin(np.hypot(*(border - place).T))] - place
        heading = math.atan2(row, column)
    x, y = frame.cell_centers(place)
    return View(SE2(float(x), float(y), frame.T_map_grid.theta + heading), way, area * frame.resolution**2, frontier)


def _best_heading(areas: NDArray[np.float64], field_of_view: float) -> tuple[float, float]:
    """The heading at which most comes into sight, the middle of such, and how much."""
    count = len(areas)
    angles = 2.0 * math.pi / count * np.arange(count)
    width = min(max(round(field_of_view / (2.0 * math.pi) * count), 1), count)
    sums = np.array([areas[np.arange(k - width // 2, k - width // 2 + width) % count].sum() for k in range(count)])
    most = float(sums.max())
    weights = np.where(sums >= most * (1.0 - 1e-9), 1.0, 0.0) if width < count else areas
    heading = math.atan2(float((weights * np.sin(angles)).sum()), float((weights * np.cos(angles)).sum()))
    return heading, most
