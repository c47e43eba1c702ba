"""Path smoother: rounds the corners of a path as far as obstacles and costs permit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import check, parameter
from roboyard.geometry import SE2
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.path import Path, resample_polyline
from roboyard.navigation.planners.cost_grid import TraversalGrid, example_grid, line_cost
from roboyard.navigation.planners.planner import GlobalPlanner, TraversalCosts, evaluate_path

_MIN_IMPROVEMENT = 1.0 - 1e-6
_TIGHT_CURVE_PENALTY = 20.0
"""Cost of the angle by which a curve is too tight, as a multiple of the stiffness: more than any detour costs."""
_RADIUS_MARGIN = 1.02


@dataclass(frozen=True, slots=True)
class PathSmoother:
    """Smoother that treats the path as an elastic rod: it minimizes traversal cost and squared curvature together.

    Every move keeps the lines to both neighbors free for the origin of the base, so the path never enters an obstacle;
    both ends stay.  It leaves paths with headings of their own, as those of `HybridAStarPlanner`, as they are.

    Attributes:
        traversal: Traversal costs.
        turning_radius: Radius of curves where there is room [m].
        min_radius: Smallest radius that a curve may have [m]; a path that cannot be smoothed so stays as it was; 0: any
            radius.  Headings at the start and the goal do not count; `HybridAStarPlanner` keeps to those.
        max_iterations: Largest number of iterations over the whole path.

    Raises:
        ConfigError: A number is out of its bounds.
    """

    traversal: TraversalCosts = parameter(factory=TraversalCosts, doc="Traversal costs.")
    turning_radius: float = parameter(0.5, unit="m", low=1e-3, high=100.0, doc="Radius of curves where there is room.")
    min_radius: float = parameter(
        0.0, unit="m", low=0.0, high=100.0, doc="Radius below which a curve is refused; the path then stays as it was."
    )
    max_iterations: int = parameter(60, low=1, high=10_000, doc="Largest number of iterations over the path.")

    def __post_init__(self) -> None:
        check(self, "PathSmoother")

    def smooth(self, costmap: Costmap, path: Path) -> Path:
        """Return the path with wider curves, or as it was if it has no wider curves, or too tight ones, afterwards."""
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
    """A planner whose paths are smoothed.

    Attributes:
        planner: Planner of the paths.
        smoother: Smoother with the traversal costs of the planner.
    """

    planner: GlobalPlanner
    smoother: PathSmoother

    @property
    def traversal(self) -> TraversalCosts:
        """Traversal costs of the planner."""
        return self.smoother.traversal

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """Plan a path and smooth it; see the contract in `GlobalPlanner.plan`."""
        return self.smoother.smooth(costmap, self.planner.plan(costmap, start, goal))


def _corners(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first and the last of a polyline's points (n, 2), and those at which its direction changes."""
    points = points[np.append(True, np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-9)]
    before, after = np.diff(points[:-1], axis=0), np.diff(points[1:], axis=0)
    cross_products = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
    is_straight = (
        (cross_products <= 1e-6 * (before * after).sum(axis=1)) if len(points) > 2 else np.zeros(0, dtype=bool)
    )
    return np.asarray(points[np.concatenate([[True], ~is_straight, [True]])[: len(points)]])


def _has_explicit_headings(path: Path) -> bool:
    """Return whether headings differ from the direction of motion: the planner has chosen them."""
    steps = np.diff(path.poses[:-1], axis=0)
    is_moving = np.hypot(steps[:, 0], steps[:, 1]) > 1e-9
    heading_offsets = np.arctan2(steps[:, 1], steps[:, 0]) - path.poses[:-2, 2]
    return bool((np.abs(np.sin(0.5 * heading_offsets[is_moving])) > 1e-6).any())


@kernel(examples=lambda: [(np.ones((5, 2)),)])
def max_direction_change(points: NDArray[np.float64]) -> float:
    """Return the largest change of direction at a point of a path (n, 2) [rad]."""
    max_angle = 0.0
    for i in range(1, len(points) - 1):
        max_angle = max(max_angle, _direction_change(points, i))
    return max_angle


@kernel(examples=lambda: [(np.ones((5, 2)),)])
def min_curve_radius(points: NDArray[np.float64]) -> float:
    """Return the smallest radius of the arcs that fit into the corners of a path (n, 2); infinite if it is straight.

    An arc touches both lines within half the length of the shorter one, so that the arcs of all corners do not overlap.
    """
    min_radius = np.inf
    for i in range(1, len(points) - 1):
        angle = _direction_change(points, i)
        if angle > 0.0:
            min_radius = min(min_radius, 0.5 * _shorter_side(points, i) / math.tan(0.5 * angle))
    return min_radius


@kernel
def _shorter_side(points: NDArray[np.float64], i: int) -> float:
    """Return the length of the shorter one of the lines to both neighbors."""
    before = math.hypot(points[i, 0] - points[i - 1, 0], points[i, 1] - points[i - 1, 1])
    after = math.hypot(points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1])
    return min(before, after)


@kernel
def _direction_change(points: NDArray[np.float64], i: int) -> float:
    """Return the change of direction at a point [rad]; 0 at the ends, π if the point coincides with a neighbor."""
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
    """Return the part of the energy that depends on a point: lines to both neighbors, and changes of direction."""
    cost = line_cost(grid, points[i - 1, 0], points[i - 1, 1], points[i, 0], points[i, 1])
    cost += line_cost(grid, points[i, 0], points[i, 1], points[i + 1, 0], points[i + 1, 1])
    for j in range(i - 1, i + 2):
        angle = _direction_change(points, j)
        cost += stiffness * angle**2
        if angle > 0.0 and min_radius > 0.0:
            # with a margin, since a curve that is too tight is only penalized
            excess_angle = angle - 2.0 * math.atan(0.5 * _shorter_side(points, j) / (_RADIUS_MARGIN * min_radius))
            if excess_angle > 0.0:
                cost += _TIGHT_CURVE_PENALTY * stiffness * excess_angle
    # this term keeps the points equally spaced
    before = math.hypot(points[i, 0] - points[i - 1, 0], points[i, 1] - points[i - 1, 1])
    after = math.hypot(points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1])
    return cost + 0.2 * (before - after) ** 2


@kernel(examples=lambda: [(example_grid(), np.ones((5, 2)), 2.0, 0.0, 5)])
def relax_path(
    grid: TraversalGrid, points: NDArray[np.float64], stiffness: float, min_radius: float, max_iterations: int
) -> None:
    """Move the inner points of a path to where its cost and its squared changes of direction are smallest.

    Args:
        grid: Traversal costs of the cells.
        points: (n, 2) rows and columns of the bordered grid; the function changes them.
        stiffness: Cost of the square of a change of direction.
        min_radius: Radius below which arcs are penalized [cells], see `min_curve_radius`.
        max_iterations: Largest number of iterations over all points.
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
