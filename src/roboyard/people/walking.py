"""Walking paths: position, heading and maximum speed along a path; `WalkingMap`: plans paths around obstacles by a
search on a grid of costs.

The search is A* (P. E. Hart, N. J. Nilsson, B. Raphael, "A formal basis for the heuristic determination of minimum
cost paths", IEEE Transactions on Systems Science and Cybernetics 4(2), 1968), followed by shortcuts. The grids are
small and searched rarely, so this is simpler than the planners of robots.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import RoboyardError
from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array

WALKING_ACCELERATION = 1.6
"""Acceleration and deceleration of walking [m/s²]."""


_SPEED_SAMPLE_SPACING = 0.05
"""Distance of the points at which the curvature of a path is evaluated [m]."""
_HEADING_DISTANCE = 0.15
"""The heading is the direction from a point this far behind to a point this far ahead [m]."""
_MAX_ANGULAR_SPEED, _MAX_LATERAL_ACCELERATION = 1.8, 1.2
"""Maximum angular speed and lateral acceleration while walking [rad/s, m/s²]."""
_MAX_SPEED = 10.0
"""Speed on a straight path, above that of any person [m/s]."""
_MAX_CORNER_CUT = 0.6
"""Distance before a corner at which its rounding starts, if there is space [m]."""
_MIN_CORNER_CUT = 0.08


class WalkingPath:
    """A polyline that a person walks along.

    Args:
        points: Points (n, 2), at least two [m].
        deceleration: Deceleration before a bend [m/s²].

    Attributes:
        points: Points of the polyline.
        length: Length of the path [m].
    """

    def __init__(self, points: Array, deceleration: float) -> None:
        self.points = points
        self._positions: list[list[float]] = points.tolist()
        segment_lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
        self._distances: list[float] = [0.0, *np.cumsum(segment_lengths).tolist()]
        self.length = self._distances[-1]
        self._max_squared_speeds = (
            self._compute_max_squared_speeds(deceleration) if len(points) > 2 else [_MAX_SPEED**2]
        )

    @classmethod
    def with_rounded_corners(cls, corners: Array, deceleration: float, is_free: Callable[[Array], bool]) -> WalkingPath:
        """Return a path with rounded corners, as wide as there is space.

        Args:
            corners: Corners (n, 2) [m].
            deceleration: Deceleration before a bend [m/s²].
            is_free: Returns whether a polyline (k, 2) is free of obstacles.
        """
        pieces = [corners[:1]]
        for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
            to_previous, to_next = before - corner, after - corner
            previous_length, next_length = float(np.linalg.norm(to_previous)), float(np.linalg.norm(to_next))
            corner_cut = min(_MAX_CORNER_CUT, 0.5 * previous_length, 0.5 * next_length)
            corner_points = corner[None]
            while corner_cut >= _MIN_CORNER_CUT:
                s = np.linspace(0.0, 1.0, 9)[:, None]
                first, last = (
                    corner + to_previous * (corner_cut / previous_length),
                    corner + to_next * (corner_cut / next_length),
                )
                curve = (1.0 - s) ** 2 * first + 2.0 * s * (1.0 - s) * corner + s**2 * last
                if is_free(curve):
                    corner_points = curve
                    break
                corner_cut *= 0.5
            pieces.append(corner_points)
        return cls(np.concatenate([*pieces, corners[-1:]]), deceleration)

    def position_at(self, distance: float) -> tuple[float, float]:
        """Position after a distance along the path [m]."""
        k = min(max(bisect_right(self._distances, distance), 1), len(self._distances) - 1)
        segment_length = self._distances[k] - self._distances[k - 1]
        fraction = (
            min(max((distance - self._distances[k - 1]) / segment_length, 0.0), 1.0) if segment_length > 0.0 else 1.0
        )
        (x, y), (to_x, to_y) = self._positions[k - 1], self._positions[k]
        return x + fraction * (to_x - x), y + fraction * (to_y - y)

    def heading_at(self, distance: float) -> float:
        """Return the heading after a distance along the path [rad]."""
        is_straight = len(self._positions) == 2
        start, end = (0.0, self.length) if is_straight else (distance - _HEADING_DISTANCE, distance + _HEADING_DISTANCE)
        (x, y), (to_x, to_y) = self.position_at(start), self.position_at(end)
        return math.atan2(to_y - y, to_x - x)

    def max_speed_at(self, distance: float) -> float:
        """Return the maximum speed after a distance along the path, limited by bends [m/s]."""
        if len(self._max_squared_speeds) == 1:
            return _MAX_SPEED
        sample_index = min(max(distance / self.length, 0.0), 1.0) * (len(self._max_squared_speeds) - 1)
        k = min(int(sample_index), len(self._max_squared_speeds) - 2)
        return math.sqrt(
            self._max_squared_speeds[k]
            + (sample_index - k) * (self._max_squared_speeds[k + 1] - self._max_squared_speeds[k])
        )

    def _compute_max_squared_speeds(self, deceleration: float) -> list[float]:
        """Return maximum squared speeds at even distances; each can be reached by braking from the last [m²/s²]."""
        distances = np.linspace(0.0, self.length, max(math.ceil(self.length / _SPEED_SAMPLE_SPACING), 1) + 1)
        headings = np.array([self.heading_at(s) for s in distances.tolist()])
        curvature = np.abs(wrap_angle(np.diff(headings))) / max(float(distances[1]), 1e-9)
        curvature = np.maximum(np.maximum(np.append(curvature, 0.0), np.append(0.0, curvature)), 1e-3)
        squared_speeds = np.minimum(
            np.minimum((_MAX_ANGULAR_SPEED / curvature) ** 2, _MAX_LATERAL_ACCELERATION / curvature), _MAX_SPEED**2
        ).tolist()
        for k in range(len(squared_speeds) - 2, -1, -1):
            squared_speeds[k] = min(squared_speeds[k], squared_speeds[k + 1] + 2.0 * deceleration * float(distances[1]))
        found: list[float] = squared_speeds
        return found

    def save_state(self) -> list[list[float]]:
        """Return the state as plain data: the points."""
        found: list[Any] = self.points.tolist()
        return found


Cells = NDArray[np.int64]


def find_path(costs: Array, start: tuple[int, int], end: tuple[int, int]) -> Array:
    """Find the cheapest path; return its corners (n, 2) as rows and columns, with both ends; none if there is no path.

    Args:
        costs: Costs (rows, columns) per cell length, at least 1; infinite in obstacles.
        start: Row and column of the start.
        end: Row and column of the end.
    """
    path = search_grid(costs, start[0], start[1], end[0], end[1])
    return shortcut_path(costs, path).astype(np.float64) if len(path) else np.zeros((0, 2))


def _example_search_grid() -> Iterable[tuple[Any, ...]]:
    yield np.ones((2, 2)), 0, 0, 1, 1


@kernel(examples=_example_search_grid)
def search_grid(costs: Array, row: int, column: int, to_row: int, to_column: int) -> Cells:
    """Search a path with A*; return its cells (n, 2), each a neighbor of the previous one, or none if there is no path.

    A step costs its length times the mean cost of its cells. No path passes between two diagonal obstacles.
    """
    rows, columns = costs.shape
    path_costs = np.full((rows, columns), np.inf)
    parents = np.full((rows, columns), -1, np.int64)
    path_costs[row, column] = 0.0
    heap = [(0.0, row * columns + column)]
    while len(heap) > 0:
        estimate, cell = heapq.heappop(heap)
        r, c = cell // columns, cell % columns
        if r == to_row and c == to_column:
            break
        dr, dc = abs(r - to_row), abs(c - to_column)
        if estimate > path_costs[r, c] + max(dr, dc) + 0.41421356237 * min(dr, dc) + 1e-9:
            continue  # a cheaper path to this cell was found since
        for i in range(-1, 2):
            for j in range(-1, 2):
                nr, nc = r + i, c + j
                if (i == 0 and j == 0) or not (0 <= nr < rows and 0 <= nc < columns):
                    continue
                if math.isinf(costs[nr, nc]) or math.isinf(costs[r, nc]) or math.isinf(costs[nr, c]):
                    continue
                length = 1.0 if i == 0 or j == 0 else 1.41421356237
                cost = path_costs[r, c] + 0.5 * length * (costs[r, c] + costs[nr, nc])
                if cost < path_costs[nr, nc] - 1e-12:
                    path_costs[nr, nc] = cost
                    parents[nr, nc] = cell
                    dr, dc = abs(nr - to_row), abs(nc - to_column)
                    heapq.heappush(
                        heap, (cost + max(dr, dc) + 0.41421356237 * min(dr, dc), np.int64(nr * columns + nc))
                    )
    if math.isinf(path_costs[to_row, to_column]):
        return np.zeros((0, 2), np.int64)
    count, cell = 1, to_row * columns + to_column
    while parents[cell // columns, cell % columns] >= 0:
        cell = parents[cell // columns, cell % columns]
        count += 1
    path = np.empty((count, 2), np.int64)
    cell = to_row * columns + to_column
    for k in range(count):
        path[count - 1 - k, 0], path[count - 1 - k, 1] = cell // columns, cell % columns
        cell = parents[cell // columns, cell % columns]
    return path


@kernel(examples=lambda: [(np.ones((2, 2)), 0.0, 0.0, 1.0, 1.0)])
def compute_line_cost(costs: Array, row: float, column: float, to_row: float, to_column: float) -> float:
    """Compute the cost of a straight line between two positions in cells; centers of cells are whole numbers."""
    length = math.hypot(to_row - row, to_column - column)
    steps = max(math.ceil(4.0 * length), 1)
    total = 0.0
    for k in range(steps):
        fraction = (k + 0.5) / steps
        r = math.floor(row + fraction * (to_row - row) + 0.5)
        c = math.floor(column + fraction * (to_column - column) + 0.5)
        if not (0 <= r < costs.shape[0] and 0 <= c < costs.shape[1]):
            return np.inf
        total += costs[r, c]
    return total * length / steps


@kernel(examples=lambda: [(np.ones((2, 2)), np.array([[0, 0], [1, 1]]))])
def shortcut_path(costs: Array, path: Cells) -> Cells:
    """Return the corners of a path after shortcuts: no straight line costs more than the cells that it replaces."""
    n = len(path)
    corners = np.empty((n, 2), np.int64)
    corners[0] = path[0]
    count, corner = 1, 0
    while corner < n - 1:
        candidate, cost, next_corner = corner + 1, 0.0, corner + 1
        while candidate < n:
            r0, c0, r1, c1 = path[candidate - 1, 0], path[candidate - 1, 1], path[candidate, 0], path[candidate, 1]
            cost += 0.5 * math.hypot(float(r1 - r0), float(c1 - c0)) * (costs[r0, c0] + costs[r1, c1])
            line_cost = compute_line_cost(costs, float(path[corner, 0]), float(path[corner, 1]), float(r1), float(c1))
            if line_cost <= 1.001 * cost:
                next_corner = candidate
            candidate += 1
        corner = next_corner
        corners[count] = path[corner]
        count += 1
    return corners[:count]


class PersonGoalError(RoboyardError):
    """A person rejects a goal; ``error_code`` is busy, unknown, unreachable or invalid."""

    def __init__(self, message: str, error_code: str, valid: str | None = None) -> None:
        super().__init__(message, valid=valid)
        self.error_code = error_code


Position2 = tuple[float, float]
WALKING_CLEARANCE = 0.20
"""Half of the width that a person needs [m]."""
GRID_RESOLUTION = 0.05
"""Edge of a cell of the grids on which paths are planned [m]."""
MAP_MARGIN = 2.0
"""Width of the free space around everything that a walking map covers [m]."""
_START_RADIUS = 0.5
"""Radius around the start in which obstacles closer than `WALKING_CLEARANCE` are accepted [m]."""
_COMFORTABLE_CLEARANCE = 0.5
"""Clearance beyond which obstacles cost nothing [m]."""
_NARROW_COST = 3.0
"""Cost of a cell with no more than `WALKING_CLEARANCE`; a cell far from obstacles costs 1."""
_LEAVING_COST = 20.0
"""Cost of a cell near the start with less than `WALKING_CLEARANCE`."""
_CROSSING_COST = 8.0
"""Additional cost of a cell that a `WalkingObstacle` covers."""
_MAX_CELLS = 25_000_000


class WalkingObstacle(NamedTuple):
    """A disc that people walk around where there is room.

    Attributes:
        center: Its center in the world [m].
        radius: Distance that people keep from the center [m].
    """

    center: Position2
    radius: float


class WalkingMap:
    """Plans paths of people that keep `WALKING_CLEARANCE` from all static obstacles.

    Args:
        clearance: (rows, columns) distance of each cell's center to the nearest static obstacle [m].
        origin: Corner of the first cell in the world [m]; cells have the edge `GRID_RESOLUTION`.
    """

    def __init__(self, clearance: NDArray[np.floating], origin: Position2) -> None:
        self._clearance, self._origin = clearance, origin

    def plan_path(self, start: Position2, end: Position2, obstacles: Iterable[WalkingObstacle] = ()) -> WalkingPath:
        """Plan a path between two positions [m]: straight where it is free, else around the obstacles.

        Args:
            start: Start of the path.
            end: End of the path.
            obstacles: Standing people and robots.  The path leads around them where there is room; they block no path,
                since they may move on.

        Raises:
            PersonGoalError: The end is occupied, or there is no path.
        """
        blockage, obstacles = self.explain_blockage(start, end), tuple(obstacles)
        straight = np.array([start, end], dtype=np.float64)
        if not blockage and not any(_passes_near(straight, position, radius) for position, radius in obstacles):
            return WalkingPath(straight, WALKING_ACCELERATION)
        if blockage and self.explain_blockage(end, end):
            raise PersonGoalError(f"({end[0]:.2f}, {end[1]:.2f}) cannot be reached: {blockage}", "unreachable")
        costs, origin = self._compute_costs(start, end, obstacles)
        cells = find_path(costs, _cell_of(start, origin), _cell_of(end, origin))
        if not len(cells):
            raise PersonGoalError(
                f"({end[0]:.2f}, {end[1]:.2f}) cannot be reached: {blockage}, and no path leads around it",
                "unreachable",
            )
        corners = np.array(origin) + GRID_RESOLUTION * (cells[:, ::-1] + 0.5)
        corners[0], corners[-1] = start, end

        def is_free(positions: Array) -> bool:
            rows = (positions - origin) / GRID_RESOLUTION - 0.5
            return all(
                math.isfinite(compute_line_cost(costs, a[1], a[0], b[1], b[0]))
                for a, b in zip(rows.tolist(), rows[1:].tolist(), strict=False)
            )

        return WalkingPath.with_rounded_corners(corners, WALKING_ACCELERATION, is_free)

    def explain_blockage(self, start: Position2, end: Position2) -> str:
        """Explain why there is no straight path between two positions [m]; empty: there is one."""
        clearance, origin = self._clearance, self._origin
        rows, columns = clearance.shape
        length = math.dist(start, end)
        for s in np.linspace(0.0, length, max(math.ceil(length / (0.5 * GRID_RESOLUTION)), 1) + 1)[::-1].tolist():
            fraction = s / length if length else 0.0
            x, y = (a + fraction * (b - a) for a, b in zip(start, end, strict=True))
            row, column = _cell_of((x, y), origin)
            if not (0 <= row < rows and 0 <= column < columns) or clearance[row, column] >= WALKING_CLEARANCE:
                continue
            if s < length and s < _START_RADIUS:
                continue
            return f"an obstacle is at ({x:.2f}, {y:.2f})"
        return ""

    def nearest_obstacle(self, position: Position2) -> Position2 | None:
        """Return the approximate position of the nearest static obstacle within `MAP_MARGIN` [m], or None."""
        clearance, origin = self._clearance, self._origin
        k, n = _cell_of(position, origin)
        if (
            not (1 <= k < clearance.shape[0] - 1 and 1 <= n < clearance.shape[1] - 1)
            or not clearance[k, n] < MAP_MARGIN
        ):
            return None
        y = float(clearance[k + 1, n] - clearance[k - 1, n])
        x = float(clearance[k, n + 1] - clearance[k, n - 1])
        length = math.hypot(x, y)
        if length < 1e-9:
            return None
        scale = float(clearance[k, n]) / length
        return position[0] - scale * x, position[1] - scale * y

    def _compute_costs(
        self, start: Position2, end: Position2, obstacles: Iterable[WalkingObstacle]
    ) -> tuple[Array, Position2]:
        """Return the costs of the cells of a grid that contains both ends of a path, and the grid's origin.

        Raises PersonGoalError if the grid would have more than `_MAX_CELLS` cells.
        """
        rows, columns = self._clearance.shape
        low = [
            math.floor((min(a, b, o + MAP_MARGIN) - MAP_MARGIN - o) / GRID_RESOLUTION)
            for a, b, o in zip(start, end, self._origin, strict=True)
        ]
        high = [
            max(size, math.ceil((max(a, b) + MAP_MARGIN - o) / GRID_RESOLUTION))
            for a, b, o, size in zip(start, end, self._origin, (columns, rows), strict=True)
        ]
        width, height = high[0] - low[0], high[1] - low[1]
        if width * height > _MAX_CELLS:
            raise PersonGoalError(f"({end[0]:g}, {end[1]:g}) is too far away to plan a path", "unreachable")
        clearance = np.full((height, width), math.inf)
        clearance[-low[1] : rows - low[1], -low[0] : columns - low[0]] = self._clearance
        origin = self._origin[0] + GRID_RESOLUTION * low[0], self._origin[1] + GRID_RESOLUTION * low[1]
        narrowness = np.clip(
            (_COMFORTABLE_CLEARANCE - clearance) / (_COMFORTABLE_CLEARANCE - WALKING_CLEARANCE), 0.0, 1.0
        )
        costs = 1.0 + (_NARROW_COST - 1.0) * narrowness**2
        x, y = (o + GRID_RESOLUTION * (np.arange(n) + 0.5) for o, n in zip(origin, (width, height), strict=True))
        for (center_x, center_y), radius in obstacles:
            costs[np.hypot(x[None] - center_x, y[:, None] - center_y) < radius] += _CROSSING_COST
        is_near_start = np.hypot(x[None] - start[0], y[:, None] - start[1]) < _START_RADIUS
        costs[clearance < WALKING_CLEARANCE] = math.inf
        costs[is_near_start & (clearance < WALKING_CLEARANCE) & (clearance > 0.0)] = _LEAVING_COST
        row, column = _cell_of(start, origin)
        costs[row, column] = min(costs[row, column], _LEAVING_COST)
        return costs, origin


def _cell_of(position: Position2, origin: Position2) -> tuple[int, int]:
    """Return row and column of the cell at a position."""
    return math.floor((position[1] - origin[1]) / GRID_RESOLUTION), math.floor(
        (position[0] - origin[0]) / GRID_RESOLUTION
    )


def _passes_near(line: Array, position: Position2, radius: float) -> bool:
    """Return whether a segment (2, 2) passes within ``radius`` of a position, nearer than its ends are."""
    displacement, center = line[1] - line[0], np.asarray(position)
    fraction = float(
        np.clip(np.dot(center - line[0], displacement) / max(float(displacement @ displacement), 1e-12), 0.0, 1.0)
    )
    distance = float(np.linalg.norm(line[0] + fraction * displacement - center))
    return distance < radius and min(float(np.linalg.norm(end - center)) for end in line) > distance + 1e-9
