"""Reachability on a grid: connected free space, the nearest reachable pose, and random reachable poses."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.geometry import SE2
from roboyard.grids import FREE, GridGeometry, OccupancyGrid, distance_transform
from roboyard.grids.regions import label_components
from roboyard.navigation.costmap.layered_costmap import INSCRIBED, UNKNOWN, Costmap


def connected_cells(passable: NDArray[np.bool_], geometry: GridGeometry, start: SE2) -> NDArray[np.bool_]:
    """Which cells (rows, columns) a way leads to from a place on a passable one.

    Ways go over four neighbors: none leads across an obstacle's corner.
    """
    labels, _ = label_components(np.ascontiguousarray(passable), False)
    row, column = geometry.cells_of_points(start.xy)
    return np.asarray(labels == labels[row, column])


def nearest_cell_pose(
    candidates: NDArray[np.bool_], geometry: GridGeometry, pose: SE2, radius: float = math.inf
) -> SE2 | None:
    """The middle of the wanted cell (rows, columns) nearest to a pose, the first of equals, with the pose's heading.

    Args:
        candidates: Where to look.
        geometry: Where the cells lie.
        pose: In the frame's map; itself the answer if it lies on a wanted cell.
        radius: How far to look [m].
    """
    cell = geometry.cells_of_points(pose.xy)
    if geometry.contains(cell) and candidates[cell[0], cell[1]]:
        return pose
    top, left, bottom, right = 0, 0, geometry.shape[0], geometry.shape[1]
    if math.isfinite(radius):
        radius_cells = math.ceil(radius / geometry.resolution) + 1
        top, left = max(int(cell[0]) - radius_cells, 0), max(int(cell[1]) - radius_cells, 0)
        bottom, right = max(int(cell[0]) + radius_cells + 1, 0), max(int(cell[1]) + radius_cells + 1, 0)
    cells = np.argwhere(candidates[top:bottom, left:right]) + np.array([top, left])
    if not len(cells):
        return None
    points = geometry.cell_centers(cells)
    distances = np.hypot(points[:, 0] - pose.x, points[:, 1] - pose.y)
    best = int(np.argmin(distances))
    if distances[best] > radius:
        return None
    return SE2(float(points[best, 0]), float(points[best, 1]), pose.theta)


def find_nearest_free_pose(costmap: Costmap, pose: SE2, radius: float) -> SE2 | None:
    """The free cell's middle that is nearest to a pose, with its heading; the pose itself if it is free.

    Args:
        costmap: Its frame in the map.
        pose: In the map.
        radius: How far to look [m].
    """
    return nearest_cell_pose(costmap.cells < INSCRIBED, costmap.geometry, pose, radius)


def find_nearest_reachable_pose(
    costmap: Costmap, start: SE2, goal: SE2, start_search_radius: float, *, allow_unknown: bool = False
) -> SE2 | None:
    """The place nearest to a goal that a way from the start leads to; None if the start is not free.

    Args:
        costmap: Its frame in the map.
        start: In the map; or the free place within ``start_search_radius`` [m] of it.
        goal: In the map.
        start_search_radius: See ``start``.
        allow_unknown: Whether ways may lead over unknown ground.
    """
    free = costmap.cells < INSCRIBED
    free_start = nearest_cell_pose(free, costmap.geometry, start, start_search_radius)
    if free_start is None:
        return None
    passable = free | (costmap.cells == UNKNOWN) if allow_unknown else free
    return nearest_cell_pose(connected_cells(passable, costmap.geometry, free_start), costmap.geometry, goal)


def find_substitute_goal_pose(
    costs: ArrayLike,
    geometry: GridGeometry,
    start: SE2,
    target: SE2,
    *,
    blocking_cost: int = 99,
    start_search_radius: float = 0.5,
    clearance: float = 0.0,
) -> SE2 | None:
    """Substitute for ``target``: the passable cell connected with the robot's that is nearest to it.

    Args:
        costs: Of the cells (rows, columns), as in nav_msgs/OccupancyGrid: -1 unknown, which is not entered.
        geometry: Where the cells lie.
        start: The robot's pose in the grid's map.
        target: The point that cannot be reached.
        blocking_cost: Cost from which the robot's middle may not be in a cell.
        start_search_radius: The robot may stand up to so far from the nearest passable place itself [m].
        clearance: What another place keeps from obstacles [m], if any does: who drives there shall be able to turn
            there.

    Returns:
        Pose in the map that looks at the target; the target itself if a way leads there; None if there is nothing
        passable near the robot.
    """
    cells = np.asarray(costs)
    passable = (cells >= 0) & (cells < blocking_cost)
    free_start = nearest_cell_pose(passable, geometry, start, start_search_radius)
    if free_start is None:
        return None
    reachable = connected_cells(passable, geometry, free_start)
    row, column = geometry.cells_of_points(target.xy)
    if geometry.contains((row, column)) and reachable[row, column]:
        return target
    clear_cells = reachable & (distance_transform(cells > blocking_cost, geometry.resolution) >= clearance)
    found = nearest_cell_pose(clear_cells if clear_cells.any() else reachable, geometry, target)
    if found is None:
        return None
    return SE2(found.x, found.y, math.atan2(target.y - found.y, target.x - found.x))


def sample_reachable_poses(
    grid: OccupancyGrid,
    start: SE2,
    count: int,
    generator: np.random.Generator,
    *,
    clearance: float,
    min_spacing: float = 1.5,
    max_distance: float = math.inf,
) -> list[SE2]:
    """Poses at random, in an order to visit them.

    Args:
        grid: The map.
        start: The robot's pose in the map.
        count: How many.
        generator: Chooses.
        clearance: What they, and the ways between them, keep from all that is not free [m].
        min_spacing: Each lies so far from the one before, if any place does [m].
        max_distance: None lies farther than that from the start, in a straight line [m].

    Returns:
        ``count`` poses in the map; none if the robot does not stand on free ground with that room about it.
    """
    is_clear = distance_transform(grid.cells != FREE, grid.geometry.resolution) > clearance
    labels, _ = label_components(is_clear, False)
    cell = grid.geometry.cells_of_points(start.xy)
    if not grid.geometry.contains(cell) or not is_clear[cell[0], cell[1]]:
        return []
    points = grid.geometry.cell_centers(np.argwhere(labels == labels[cell[0], cell[1]]))
    points = points[np.hypot(points[:, 0] - start.x, points[:, 1] - start.y) <= max_distance]
    poses, previous = [], start
    for _ in range(count):
        spaced_points = points[np.hypot(points[:, 0] - previous.x, points[:, 1] - previous.y) >= min_spacing]
        x, y = generator.choice(spaced_points if len(spaced_points) else points)
        previous = SE2(float(x), float(y), float(generator.uniform(-math.pi, math.pi)))
        poses.append(previous)
    return poses
