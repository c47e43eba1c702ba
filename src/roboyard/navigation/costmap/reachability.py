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
    """Return which cells (rows, columns) a path over passable cells connects with the cell of a pose.

    Paths lead over four neighbors, so that none crosses the corner of an obstacle.
    """
    labels, _ = label_components(np.ascontiguousarray(passable), False)
    row, column = geometry.cells_of_points(start.xy)
    return np.asarray(labels == labels[row, column])


def nearest_cell_pose(
    candidates: NDArray[np.bool_], geometry: GridGeometry, pose: SE2, radius: float = math.inf
) -> SE2 | None:
    """Return the center of the candidate cell nearest to a pose, with the pose's heading; the first of equal ones.

    A pose in a candidate cell is returned as it is; None if there is no candidate within the radius.

    Args:
        candidates: (rows, columns) cells that may be chosen.
        geometry: Geometry of the cells.
        pose: Pose in the frame of the grid's map.
        radius: Largest distance [m].
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
    """Return the center of the free cell nearest to a pose, with its heading; the pose itself if it is free.

    Args:
        costmap: Costmap with its geometry in the map.
        pose: Pose in the map.
        radius: Largest distance [m].
    """
    return nearest_cell_pose(costmap.cells < INSCRIBED, costmap.geometry, pose, radius)


def reachable_cells(
    free: NDArray[np.bool_],
    geometry: GridGeometry,
    start: SE2,
    start_search_radius: float,
    passable: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_] | None:
    """Return the cells (rows, columns) that can be reached from a pose; None if no cell near the pose is free.

    Args:
        free: Cells in which a path may begin.
        geometry: Geometry of the cells.
        start: Pose of the robot in the map; a path begins at the nearest free cell.
        start_search_radius: Largest distance of that cell [m].
        passable: Cells over which a path may lead; None: the free ones.
    """
    free_start = nearest_cell_pose(free, geometry, start, start_search_radius)
    return None if free_start is None else connected_cells(free if passable is None else passable, geometry, free_start)


def find_nearest_reachable_pose(
    costmap: Costmap, start: SE2, goal: SE2, start_search_radius: float, *, allow_unknown: bool = False
) -> SE2 | None:
    """Return the reachable pose nearest to a goal, with its heading; None if no cell near the start is free.

    Args:
        costmap: Costmap with its geometry in the map.
        start: Pose of the robot in the map.
        goal: Goal in the map.
        start_search_radius: Largest distance from the start to the free cell where a path begins [m].
        allow_unknown: Whether paths may lead over unknown space.
    """
    free = costmap.cells < INSCRIBED
    passable = free | (costmap.cells == UNKNOWN) if allow_unknown else free
    reachable = reachable_cells(free, costmap.geometry, start, start_search_radius, passable)
    return None if reachable is None else nearest_cell_pose(reachable, costmap.geometry, goal)


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
    """Return a reachable pose near a target that cannot be reached, by a published costmap.

    Args:
        costs: (rows, columns) costs as in nav_msgs/OccupancyGrid; -1 is unknown and not entered.
        geometry: Geometry of the cells.
        start: Pose of the robot in the map of the grid.
        target: Target in the map of the grid.
        blocking_cost: Cost from which the robot's center may not be in a cell.
        start_search_radius: Largest distance from the start to the free cell where a path begins [m].
        clearance: Distance of the substitute from obstacles, if a reachable cell has it, so that the robot can rotate
            there [m].

    Returns:
        Pose that faces the target; the target itself if it can be reached; None if no cell near the start is free.
    """
    cells = np.asarray(costs)
    reachable = reachable_cells((cells >= 0) & (cells < blocking_cost), geometry, start, start_search_radius)
    if reachable is None:
        return None
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
    """Return random poses in the order in which the robot is to visit them.

    Args:
        grid: The map.
        start: Pose of the robot in the map.
        count: Number of poses.
        generator: Random generator.
        clearance: Distance of the poses, and of the paths between them, from all cells that are not free [m].
        min_spacing: Distance of each pose from the one before, if any pose has it [m].
        max_distance: Largest straight distance from the start [m].

    Returns:
        ``count`` poses in the map; none if the start does not have the clearance.
    """
    is_clear = distance_transform(grid.cells != FREE, grid.geometry.resolution) > clearance
    cell = grid.geometry.cells_of_points(start.xy)
    if not grid.geometry.contains(cell) or not is_clear[cell[0], cell[1]]:
        return []
    points = grid.geometry.cell_centers(np.argwhere(connected_cells(is_clear, grid.geometry, start)))
    points = points[np.hypot(points[:, 0] - start.x, points[:, 1] - start.y) <= max_distance]
    poses, previous = [], start
    for _ in range(count):
        spaced_points = points[np.hypot(points[:, 0] - previous.x, points[:, 1] - previous.y) >= min_spacing]
        x, y = generator.choice(spaced_points if len(spaced_points) else points)
        previous = SE2(float(x), float(y), float(generator.uniform(-math.pi, math.pi)))
        poses.append(previous)
    return poses
