"""Path smoother: rounds the corners of a path as far as obstacles and costs permit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.path import Path, resample_polyline
from roboyard.navigation.planners.cost_grid import TraversalGrid, example_grid, line_cost
from roboyard.navigation.planners.planner import GlobalPlanner, TraversalCosts, evaluate_path

_MIN_IMPROVEMENT = 1.0 - 1e-6
_TIGHT_CURVE_PENALTY = 20.0
"""What a turn costs by which a bend is too tight, in stiffnesses: more than any detour by which it is avoided."""
_RADIUS_MARGIN = 1.02


@dataclass(frozen=True, slots=True)
class PathSmoother:
    """Bends a way like an elastic rod: what bending costs more than it saves is taken out.

    Every move keeps the lines to both neighbors free for the robot's center, so the way never gets into an obstacle;
    both ends stay.  It is for planners of the center's way; what ``HybridAStar`` finds is left as it is, since it has
    no corners.

    Attributes:
        traversal: What a metre costs.
        turning_radius: Bends are made this wide where there is room [m].
        min_radius: A car's: no bend is made tighter, and a way that cannot be bent so stays as it was [m]; 0: any
            bend will do.  It says nothing of how the robot looks at the start and the goal; ``HybridAStar`` does.
        max_iterations: Over the whole way, at most.

    Raises:
        ConfigError: a number out of range.
    """

    traversal: TraversalCosts = field(default_factory=TraversalCosts)
    turning_radius: float = 0.5
    min_radius: float = 0.0
    max_iterations: int = 60

    def __post_init__(self) -> None:
        if not 0.0 < self.turning_radius <= 100.0:
            raise ConfigError(f"turning_radius = {self.turning_radius}", location="PathSmoother", valid="0 to 100 m")
        if not 0.0 <= self.min_radius <= 100.0:
            raise ConfigError(f"min_radius = {self.min_radius}", location="PathSmoother", valid="0 to 100 m")
        if not 1 <= self.max_iterations <= 10_000:
            raise ConfigError(f"max_iterations = {self.max_iterations}", location="PathSmoother", valid="1 to 10000")

    def smooth(self, costmap: Costmap, path: Path) -> Path:
        """The way with wider bends; the way as it was where it would not bend more gently, or not gently enough."""
        if len(path) < 3 or path.length == 0.0 or _has_explicit_headings(path):
            return path
        frame = costmap.geometry
        grid_points = frame.T_map_grid.inverse() @ path.poses[:, :2]
        grid = self.traversal.make_grid(costmap.cells)
        polyline = resample_polyline(_corners(grid_points[:, ::-1] / frame.resolution + 0.5), 2.0)
        if len(polyline) < 3:
            return path
        before = polyline.copy()
        min_radius = self.min_radius / frame.resolution
        relax_path(
            grid, polyline, max(self.turning_radius / frame.resolution, min_radius), min_radius, self.max_iterations
        )
        if max_direction_change(polyline) > max_direction_change(before) or min_curve_radius(polyline) < min_radius:
            return path
        points = frame.T_map_grid @ ((polyline[:, ::-1] - 0.5) * frame.resolution)
        points[0], points[-1] = path.poses[0, :2], path.poses[-1, :2]
        steps = np.diff(points, axis=0)
        headings = np.append(np.arctan2(steps[:, 1], steps[:, 0]), path.poses[-1, 2])
        smoothed = evaluate_path(costmap, np.column_stack([points, headings]), self.traversal)
        return smoothed if math.isfinite(smoothed.cost) else path


@dataclass(frozen=True, slots=True)
class SmoothedPlanner:
    """A planner with its ways bent.

    Attributes:
        planner: Finds them.
        smoother: Bends them, at the planner's prices.
    """

    planner: GlobalPlanner
    smoother: PathSmoother

    @property
    def traversal(self) -> TraversalCosts:
        """What a metre costs."""
        return self.smoother.traversal

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """See ``GlobalPlanner``."""
        return self.smoother.smooth(costmap, self.planner.plan(costmap, start, goal))


def _corners(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of a line's points (n, 2) the first, those at which it bends, and the last."""
    points = points[np.append(True, np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-9)]
    before, after = np.diff(points[:-1], axis=0), np.diff(points[1:], axis=0)
    cross_products = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
    is_straight = (
        (cross_products <= 1e-6 * (before * after).sum(axis=1)) if len(points) > 2 else np.zeros(0, dtype=bool)
    )
    return np.asarray(points[np.concatenate([[True], ~is_straight, [True]])[: len(points)]])


def _has_explicit_headings(path: Path) -> bool:
    """Whether its first pose looks elsewhere than it goes, or it turns on the spot or back: its headings are meant."""
    steps = np.diff(path.poses[:-1], axis=0)
    is_moving = np.hypot(steps[:, 0], steps[:, 1]) > 1e-9
    heading_offsets = np.arctan2(steps[:, 1], steps[:, 0]) - path.poses[:-2, 2]
    return bool((np.abs(np.sin(0.5 * heading_offsets[is_moving])) > 1e-6).any())


@kernel(examples=lambda: [(np.ones((5, 2)),)])
def max_direction_change(points: NDArray[np.float64]) -> float:
    """The largest turn at a point of a way (n, 2) [rad]."""
    max_angle = 0.0
    for i in range(1, len(points) - 1):
        max_angle = max(max_angle, _direction_change(points, i))
    return max_angle


@kernel(examples=lambda: [(np.ones((5, 2)),)])
def min_curve_radius(points: NDArray[np.float64]) -> float:
    """The least radius of an arc that fits into the bend at a point of a way (n, 2); infinite if it is straight.

    The arc touches both lines no farther from the point than half the shorter one reaches, so that arcs in all bends
    together make a way to drive.
    """
    min_radius = np.inf
    for i in range(1, len(points) - 1):
        angle = _direction_change(points, i)
        if angle > 0.0:
            min_radius = min(min_radius, 0.5 * _shorter_side(points, i) / math.tan(0.5 * angle))
    return min_radius


@kernel
def _shorter_side(points: NDArray[np.float64], i: int) -> float:
    """Length of the shorter one of the lines to both neighbors."""
    before = math.hypot(points[i, 0] - points[i - 1, 0], points[i, 1] - points[i - 1, 1])
    after = math.hypot(points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1])
    return min(before, after)


@kernel
def _direction_change(points: NDArray[np.float64], i: int) -> float:
    """Change of direction at a point [rad]; 0 at the ends, π where it coincides with a neighbor."""
    if i <= 0 or i >= len(points) - 1:
        return 0.0
    if _shorter_side(points, i) < 1e-3:
        return math.pi
    ar, ac = points[i, 0] - points[i - 1, 0], points[i, 1] - points[i - 1, 1]
    br, bc = points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1]
    return abs(math.atan2(ar * bc - ac * br, ar * br + ac * bc))


@kernel
def _point_energy(
    grid: TraversalGrid, points: NDArray[np.float64], i: int, stiffness: float, min_radius: float
) -> float:
    """What depends on a point: the lines to both neighbors, and the turns there."""
    cost = line_cost(grid, points[i - 1, 0], points[i - 1, 1], points[i, 0], points[i, 1])
    cost += line_cost(grid, points[i, 0], points[i, 1], points[i + 1, 0], points[i + 1, 1])
    for j in range(i - 1, i + 2):
        angle = _direction_change(points, j)
        cost += stiffness * angle**2
        if angle > 0.0 and min_radius > 0.0:
            # a little more than asked for, since what is too tight only costs
            excess_angle = angle - 2.0 * math.atan(0.5 * _shorter_side(points, j) / (_RADIUS_MARGIN * min_radius))
            if excess_angle > 0.0:
                cost += _TIGHT_CURVE_PENALTY * stiffness * excess_angle
    # points keep their distance from each other
    before = math.hypot(points[i, 0] - points[i - 1, 0], points[i, 1] - points[i - 1, 1])
    after = math.hypot(points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1])
    return cost + 0.2 * (before - after) ** 2


@kernel(examples=lambda: [(example_grid(), np.ones((5, 2)), 2.0, 0.0, 5)])
def relax_path(
    grid: TraversalGrid, points: NDArray[np.float64], stiffness: float, min_radius: float, max_iterations: int
) -> None:
    """Move the points of a way (n, 2), its ends left out, to where its cost and its turns are least; see ``line_cost``.

    Args:
        grid: See there.
        points: Rows and columns, in the ground's cells; changed.
        stiffness: What a turn's square costs.
        min_radius: Arcs of a smaller radius are avoided [cells], see ``tightest``.
        max_iterations: Over all points, at most.
    """
    for _ in range(max_iterations):
        any_shifted = False
        for i in range(1, len(points) - 1):
            best = _point_energy(grid, points, i, stiffness, min_radius)
            step = 0.5
            while step > 0.03:
                is_shifted = False
                for direction in range(8):
                    row, column = points[i, 0], points[i, 1]
                    points[i, 0] = row + step * (1.0, 1.0, 0.0, -1.0, -1.0, -1.0, 0.0, 1.0)[direction]
                    points[i, 1] = column + step * (0.0, 1.0, 1.0, 1.0, 0.0, -1.0, -1.0, -1.0)[direction]
                    energy = _point_energy(grid, points, i, stiffness, min_radius)
                    if energy < best * _MIN_IMPROVEMENT:
                        best, is_shifted, any_shifted = energy, True, True
                    else:
                        points[i, 0], points[i, 1] = row, column
                if not is_shifted:
                    step *= 0.5
        if not any_shifted:
            break
