"""Planner interface, the start and goal checks that all planners share, and conversion between grid and map."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import Config, parameter
from roboyard.geometry import SE2, polygons
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap import INSCRIBED, LETHAL, UNKNOWN, Costmap
from roboyard.navigation.errors import (
    GoalOccupiedError,
    GoalOutsideMapError,
    GoalUnknownError,
    StartOccupiedError,
    StartOutsideMapError,
)
from roboyard.navigation.path import Path
from roboyard.navigation.planners.cost_grid import TraversalGrid, polyline_cost


class GlobalPlanner(Protocol):
    """Plans paths on a costmap (nav2_core::GlobalPlanner)."""

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """A way from ``start`` to ``goal``, poses in the costmap's map; the same input gives the same bits.

        Raises:
            NavigationError: there is none; its class says why.
        """
        ...


class TraversalCosts(Config):
    """Cost per metre, by the value of the cell.

    A metre of free ground costs 1, one at the highest cost that is still free ``1 + cost_weight``.
    """

    cost_weight: float = parameter(
        3.0,
        low=0.0,
        high=1000.0,
        doc="Additional cost of a distance on the most costly free cell, per cost on the cheapest.",
    )
    allow_unknown: bool = parameter(True, doc="Plan through unknown space.")
    unknown_cost: int = parameter(50, low=0, high=INSCRIBED - 1, doc="Cost of an unknown cell.")

    def make_grid(self, cells: NDArray[np.uint8]) -> TraversalGrid:
        """What a metre costs on cells (rows, columns), 0 where the robot cannot be; a rim of such cells is added."""
        table = (1.0 + self.cost_weight * np.arange(256) / (INSCRIBED - 1)).astype(np.float32)
        table[INSCRIBED:] = 0.0
        if self.allow_unknown:
            table[UNKNOWN] = table[self.unknown_cost]
        return TraversalGrid.with_border(cells, table)


def traversal_costs_of(planner: GlobalPlanner) -> TraversalCosts:
    """Traversal costs of a planner; the defaults if it has none."""
    found = getattr(planner, "traversal", None)
    return found if isinstance(found, TraversalCosts) else TraversalCosts()


def validate_start_and_goal(
    costmap: Costmap, traversal: TraversalCosts, start: SE2, goal: SE2
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Their cells (row, column).

    Raises:
        NavigationError: one of them lies outside of the map, in an obstacle, or in unknown space that must not be
            entered.
    """
    cells = costmap.geometry.cells_of_points(np.array([[start.x, start.y], [goal.x, goal.y]]))
    inside = costmap.geometry.contains(cells)
    for is_inside, error, name, pose in (
        (inside[0], StartOutsideMapError, "start", start),
        (inside[1], GoalOutsideMapError, "goal", goal),
    ):
        if not is_inside:
            raise error(
                f"the {name} ({pose.x:.2f}, {pose.y:.2f}) lies outside of the map",
                valid=describe_extent(costmap.geometry),
            )
    first, last = (int(cells[0, 0]), int(cells[0, 1])), (int(cells[1, 0]), int(cells[1, 1]))
    for name, cell, pose in (("start", first, start), ("goal", last, goal)):
        value = int(costmap.cells[cell])
        if value in (LETHAL, INSCRIBED):
            reason = "in an obstacle" if value == LETHAL else "so near to an obstacle that the robot does not fit"
            error_type = StartOccupiedError if name == "start" else GoalOccupiedError
            raise error_type(f"the {name} ({pose.x:.2f}, {pose.y:.2f}) lies {reason}", valid="a free place")
    if costmap.cells[last] == UNKNOWN and not traversal.allow_unknown:
        raise GoalUnknownError(
            f"the goal ({goal.x:.2f}, {goal.y:.2f}) lies in unknown space",
            valid="a known place, or allow_unknown",
        )
    if costmap.cells[first] == UNKNOWN and not traversal.allow_unknown:
        raise StartOccupiedError(
            f"the start ({start.x:.2f}, {start.y:.2f}) lies in unknown space",
            valid="a known place, or allow_unknown",
        )
    return first, last


def describe_extent(geometry: GridGeometry) -> str:
    """Where a map lies, for people; of one that lies askew, how."""
    width, height = geometry.extent
    corners = geometry.T_map_grid @ np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])
    (x0, y0), (x1, y1) = corners.min(axis=0), corners.max(axis=0)
    is_rotated = abs(math.sin(2.0 * geometry.T_map_grid.theta)) > 1e-6
    rotation = f", turned by {geometry.T_map_grid.theta:.2f} rad in there" if is_rotated else ""
    return f"the map reaches from ({x0:.2f}, {y0:.2f}) to ({x1:.2f}, {y1:.2f}){rotation}"


def to_grid(costmap: Costmap, pose: SE2) -> NDArray[np.float64]:
    """Row and column (2,) of a position; the middle of the costmap's cell (0, 0) is (0, 0)."""
    grid_point = costmap.geometry.T_map_grid.inverse() @ pose.xy
    return np.asarray(grid_point[::-1] / costmap.geometry.resolution - 0.5)


def path_from_grid(costmap: Costmap, grid_points: NDArray[np.float64], start: SE2, goal: SE2, cost: float) -> Path:
    """A path along ``grid_points``, looking where it goes.

    Args:
        costmap: The map.
        grid_points: (n, 2) rows and columns from the start to the goal, see ``place``.
        start: Where it begins.
        goal: Where it ends, and how the robot looks there.
        cost: In cells.
    """
    points = costmap.geometry.T_map_grid @ ((grid_points[:, ::-1] + 0.5) * costmap.geometry.resolution)
    # what was computed forth and back is the start and the goal but for rounding
    points[0], points[-1] = (start.x, start.y), (goal.x, goal.y)
    steps = np.diff(points, axis=0)
    headings = np.arctan2(steps[:, 1], steps[:, 0])
    if not steps.any():
        headings[:] = start.theta
    poses = np.column_stack([points, np.append(headings, goal.theta)])
    clearance = distance_to_nearest_obstacle(costmap.cells, grid_points) * costmap.geometry.resolution
    return Path(poses, cost * costmap.geometry.resolution, clearance)


def polygon_clearance(costmap: Costmap, polygon: NDArray[np.float64]) -> float:
    """How far an outline (n, 2) in the map is from the nearest obstacle's middle [m]; 0 where it holds one."""
    low = costmap.geometry.cells_of_points(polygon).min(axis=0)
    high = costmap.geometry.cells_of_points(polygon).max(axis=0)
    if not costmap.geometry.contains(np.stack([low, high])).all():
        return 0.0
    obstacles = np.argwhere(costmap.cells[low[0] : high[0] + 1, low[1] : high[1] + 1] == LETHAL) + low
    return float(polygons.distance(polygon, costmap.geometry.cell_centers(obstacles)).min(initial=math.inf))


_BLOCK = 8
_EMPTY, _OCCUPIED = 1, 2
"""What a block is known to be; 0 before it was looked through."""


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), np.ones((2, 2)))])
def distance_to_nearest_obstacle(cells: NDArray[np.uint8], points: NDArray[np.float64]) -> float:
    """Distance from the points of a way to the nearest lethal cell's square [cells]; infinite if there is none.

    A search from one point also looks somewhat beyond the nearest obstacle so far, which spares those points after it
    that cannot have come nearer than that; and blocks of cells without an obstacle are looked through once.
    """
    rows, columns = cells.shape
    blocks = np.zeros((rows // _BLOCK + 1, columns // _BLOCK + 1), dtype=np.uint8)
    best = np.inf
    k = 0
    while k < len(points):
        distance = _point_to_obstacle(cells, blocks, points[k, 0], points[k, 1], best + max(0.5 * best, 2.0))
        if distance == np.inf:
            return np.inf
        best = min(best, distance)
        measured = k
        k += 1
        while (
            k < len(points)
            and math.hypot(points[k, 0] - points[measured, 0], points[k, 1] - points[measured, 1]) <= distance - best
        ):
            k += 1
    return best


@kernel
def _point_to_obstacle(
    cells: NDArray[np.uint8], blocks: NDArray[np.uint8], y: float, x: float, max_distance: float
) -> float:
    """Distance from a point to the nearest lethal cell's square, or ``max_distance`` where none is as near.

    Blocks are looked at in rings about that of the point, or about the nearest where it lies beyond the map.
    """
    rows, columns = cells.shape
    block_rows, block_columns = blocks.shape
    center_row = int(min(max(y + 0.5, 0.0), rows - 1.0)) // _BLOCK
    center_column = int(min(max(x + 0.5, 0.0), columns - 1.0)) // _BLOCK
    best = max_distance
    for ring in range(max(block_rows, block_columns)):
        if (ring - 1) * _BLOCK >= best:
            break
        for r in range(max(center_row - ring, 0), min(center_row + ring + 1, block_rows)):
            column_step = 1 if abs(r - center_row) == ring else max(2 * ring, 1)
            for c in range(center_column - ring, center_column + ring + 1, column_step):
                if c < 0 or c >= block_columns or blocks[r, c] == _EMPTY:
                    continue
                best = _point_to_block(cells, blocks, r, c, y, x, best)
    return best


@kernel
def _point_to_block(
    cells: NDArray[np.uint8], blocks: NDArray[np.uint8], block_r: int, block_c: int, y: float, x: float, best: float
) -> float:
    """Distance from a point to the nearest lethal cell's square of a block, or ``best`` where none is nearer."""
    r0, c0 = block_r * _BLOCK, block_c * _BLOCK
    r1, c1 = min(r0 + _BLOCK, cells.shape[0]), min(c0 + _BLOCK, cells.shape[1])
    block_offset = max(r0 - 0.5 - y, y - (r1 - 0.5), 0.0), max(c0 - 0.5 - x, x - (c1 - 0.5), 0.0)
    if math.hypot(block_offset[0], block_offset[1]) >= best:
        return best
    state = _EMPTY
    for r in range(r0, r1):
        dy = max(abs(r - y) - 0.5, 0.0)
        for c in range(c0, c1):
            if cells[r, c] == LETHAL:
                state = _OCCUPIED
                best = min(best, math.hypot(dy, max(abs(c - x) - 0.5, 0.0)))
    blocks[block_r, block_c] = state
    return best


def evaluate_path(costmap: Costmap, poses: NDArray[np.float64], traversal: TraversalCosts) -> Path:
    """A path through poses (n, 3), with what it costs and its clearance.

    The cost is the integral of the traversal's weight over the way from pose to pose [metres of free ground], infinite
    where the robot's center cannot be; beyond the map a metre costs what it does on unknown ground.  The clearance is
    the distance of its nearest pose to an obstacle's cell [m].

    Raises:
        InputError: poses of another shape, or not finite.
    """
    poses = Path(poses).poses
    resolution = costmap.geometry.resolution
    grid_points = costmap.geometry.T_map_grid.inverse() @ poses[:, :2]
    rows_columns = grid_points[:, ::-1] / resolution - 0.5
    # two cells of a rim: unknown ones, which lines beyond are cut off at, and the ground's own
    grid = traversal.make_grid(np.pad(costmap.cells, 1, constant_values=UNKNOWN))
    cost = polyline_cost(grid, rows_columns + 2.0, 1)
    return Path(poses, cost * resolution, distance_to_nearest_obstacle(costmap.cells, rows_columns) * resolution)
