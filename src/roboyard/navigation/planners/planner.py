"""Contract of global planners, and what they share: traversal costs, checks of start and goal, rating of paths."""

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
    """Contract of a planner of paths on a costmap, as nav2_core::GlobalPlanner.

    The navigator calls `plan` for each goal, and again every ``replan_period`` and when the path is blocked.  It also
    calls it from a thread, but never twice at the same time.

    A planner computes each path from the arguments alone: it keeps no state between calls that changes a result, so
    runs can be saved and resumed without it, and the same arguments give the same path to the last bit.  It changes
    neither the costmap nor the poses.

    A planner that is a frozen dataclass takes its fields as settings of the navigator.  A field ``traversal`` of type
    `TraversalCosts` is set to ``allow_unknown: false`` unless the settings state otherwise; such a planner must keep to
    it.  A field ``turning_radius`` [m] is set to the minimum turning radius of the robot's drive, if its file states
    one.  `roboyard.navigation.check_planner` tests a planner against this contract.
    """

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """Plan a path for the origin of the base.

        Args:
            costmap: Costs of the cells: below ``INSCRIBED`` (253) the origin of the base may be there, at a cost that
                grows with the value; ``INSCRIBED`` and ``LETHAL`` (254) it may not; ``UNKNOWN`` (255) is unknown space.
                ``costmap.geometry`` places the cells in the map, perhaps rotated.
            start: Pose of the base in the map, finite.
            goal: Pose in the map, finite.

        Returns:
            Poses in the map from the start to the goal, both included to within 1e-6 m, no farther apart than a few
            cells.  The last pose has the goal's heading, unless the planner has a field ``heading_tolerance`` [rad].
            The path stays inside the map and on cells where the origin may be; that of a planner with a field
            ``footprint`` keeps the outline of the robot free at every pose instead.  ``cost`` is the traversal cost in
            meters of free space, at least the length; ``clearance`` the distance from the nearest obstacle [m], at most
            one cell off.

        Raises:
            StartOutsideMapError: The start lies outside of the map (cause ``start_outside_map``).
            GoalOutsideMapError: The goal lies outside of the map (``goal_outside_map``).
            StartOccupiedError: The robot collides at the start, or the start lies in unknown space and the planner does
                not plan through that (``start_occupied``).
            GoalOccupiedError: The robot would collide at the goal (``goal_occupied``).
            GoalUnknownError: The goal lies in unknown space and the planner does not plan through that
                (``goal_unknown``).
            NoPathError: Start and goal are free, but no path connects them (``no_path``).
            SearchBudgetExceededError: The planner gave up before it was sure (``budget_spent``).
        """
        ...


class TraversalCosts(Config):
    """Traversal cost of a distance, by the cost of the cell.

    A meter of free space costs 1, a meter on the most costly free cells ``1 + cost_weight``.
    """

    cost_weight: float = parameter(
        3.0,
        low=0.0,
        high=1000.0,
        aliases=("cost_travel_multiplier", "cost_penalty"),
        doc="Additional cost of a distance on the most costly free cells, as a multiple of that on free space.",
    )
    allow_unknown: bool = parameter(
        True, aliases=("allow_unknown",), doc="Plan through unknown space; in the navigator false unless it is set."
    )
    unknown_cost: int = parameter(50, low=0, high=INSCRIBED - 1, doc="Cost of an unknown cell.")

    def make_grid(self, cells: NDArray[np.uint8]) -> TraversalGrid:
        """Return the traversal costs of cells (rows, columns) with a border; 0 where the robot cannot be."""
        table = (1.0 + self.cost_weight * np.arange(256) / (INSCRIBED - 1)).astype(np.float32)
        table[INSCRIBED:] = 0.0
        if self.allow_unknown:
            table[UNKNOWN] = table[self.unknown_cost]
        return TraversalGrid.with_border(cells, table)


def traversal_costs_of(planner: GlobalPlanner) -> TraversalCosts:
    """Return the traversal costs of a planner; the defaults if it has none."""
    found = getattr(planner, "traversal", None)
    return found if isinstance(found, TraversalCosts) else TraversalCosts()


def validate_start_and_goal(
    costmap: Costmap, traversal: TraversalCosts, start: SE2, goal: SE2
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the cells (row, column) of the start and the goal.

    Raises:
        NavigationError: One of them lies outside of the map, on a cell where the robot collides, or in unknown space
            that the robot must not enter; the class is the one that `GlobalPlanner.plan` names.
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
    """Return a clause that states where a map lies, and its rotation if it is rotated."""
    width, height = geometry.extent
    corners = geometry.T_map_grid @ np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])
    (x0, y0), (x1, y1) = corners.min(axis=0), corners.max(axis=0)
    is_rotated = abs(math.sin(2.0 * geometry.T_map_grid.theta)) > 1e-6
    rotation = f", turned by {geometry.T_map_grid.theta:.2f} rad in there" if is_rotated else ""
    return f"the map reaches from ({x0:.2f}, {y0:.2f}) to ({x1:.2f}, {y1:.2f}){rotation}"


def to_grid(costmap: Costmap, pose: SE2) -> NDArray[np.float64]:
    """Return the fractional row and column (2,) of a position; the center of cell (0, 0) is (0, 0)."""
    grid_point = costmap.geometry.T_map_grid.inverse() @ pose.xy
    return np.asarray(grid_point[::-1] / costmap.geometry.resolution - 0.5)


def path_from_grid(costmap: Costmap, grid_points: NDArray[np.float64], start: SE2, goal: SE2, cost: float) -> Path:
    """Make the path along points of the grid; each pose points to the next one, the last has the goal's heading.

    Args:
        costmap: The costmap, which places the grid and gives the clearance.
        grid_points: (n, 2) fractional rows and columns from the start to the goal, see `to_grid`.
        start: Position of the first pose.
        goal: The last pose.
        cost: Traversal cost [cells of free space].
    """
    points = costmap.geometry.T_map_grid @ ((grid_points[:, ::-1] + 0.5) * costmap.geometry.resolution)
    # the conversion to the grid and back rounds the start and the goal
    points[0], points[-1] = (start.x, start.y), (goal.x, goal.y)
    steps = np.diff(points, axis=0)
    headings = np.arctan2(steps[:, 1], steps[:, 0])
    if not steps.any():
        headings[:] = start.theta
    poses = np.column_stack([points, np.append(headings, goal.theta)])
    clearance = distance_to_nearest_obstacle(costmap.cells, grid_points) * costmap.geometry.resolution
    return Path(poses, cost * costmap.geometry.resolution, clearance)


def polygon_clearance(costmap: Costmap, polygon: NDArray[np.float64]) -> float:
    """Return the distance of an outline (n, 2) from the center of the nearest lethal cell [m].

    The result is 0 if the outline contains such a center or reaches beyond the map.
    """
    low = costmap.geometry.cells_of_points(polygon).min(axis=0)
    high = costmap.geometry.cells_of_points(polygon).max(axis=0)
    if not costmap.geometry.contains(np.stack([low, high])).all():
        return 0.0
    obstacles = np.argwhere(costmap.cells[low[0] : high[0] + 1, low[1] : high[1] + 1] == LETHAL) + low
    return float(polygons.distance(polygon, costmap.geometry.cell_centers(obstacles)).min(initial=math.inf))


_BLOCK = 8
_EMPTY, _OCCUPIED = 1, 2
"""State of a block of cells; 0 before the search has visited it."""


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), np.ones((2, 2)))])
def distance_to_nearest_obstacle(cells: NDArray[np.uint8], points: NDArray[np.float64]) -> float:
    """Return the distance from the points of a path to the nearest lethal cell [cells]; infinite if there is none.

    The distance to a cell is that to its square.  The search from a point reaches beyond the nearest obstacle found so
    far, so that it can skip the following points that cannot be nearer; it visits blocks without an obstacle once.
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
    """Return the distance from a point to the nearest lethal cell, or ``max_distance`` if none is nearer.

    The search visits rings of blocks around the point's block, or around the nearest block if it lies outside the map.
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
    """Return the distance from a point to the nearest lethal cell of a block, or ``best`` if none is nearer."""
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
    """Make the path through poses (n, 3), with its cost and clearance.

    The cost is the line integral of the traversal cost from pose to pose [m of free space], infinite where the origin
    of the base cannot be; outside of the map, a distance costs as much as in unknown space.  The clearance is the
    distance of the nearest pose from a lethal cell [m].

    Raises:
        InputError: The poses have another shape, or are not finite.
    """
    poses = Path(poses).poses
    resolution = costmap.geometry.resolution
    grid_points = costmap.geometry.T_map_grid.inverse() @ poses[:, :2]
    rows_columns = grid_points[:, ::-1] / resolution - 0.5
    # a border of two cells: an unknown one at which lines to the outside are cut, and that of the grid itself
    grid = traversal.make_grid(np.pad(costmap.cells, 1, constant_values=UNKNOWN))
    cost = polyline_cost(grid, rows_columns + 2.0, 1)
    return Path(poses, cost * resolution, distance_to_nearest_obstacle(costmap.cells, rows_columns) * resolution)
