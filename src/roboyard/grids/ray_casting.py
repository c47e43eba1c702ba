"""Ray traversal of a grid: counting hits and misses, ray casting, and simulated range scans.

A ray visits every cell it touches, in order (Amanatides and Woo 1987, "A fast voxel traversal algorithm").  Coordinates
are in cells of the grid: x along columns, y along rows, (0, 0) the outer corner of cell (0, 0).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.grids.occupancy import GridGeometry


def _example_beams() -> Iterable[tuple[Any, ...]]:
    grid = np.zeros((4, 4), dtype=np.int32)
    yield grid, grid.copy(), np.zeros((2, 2)), np.ones((2, 2)), np.ones(2, dtype=np.bool_)


@kernel(examples=_example_beams)
def count_hits_and_misses(
    hits: NDArray[np.int32],
    misses: NDArray[np.int32],
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    hit: NDArray[np.bool_],
) -> None:
    """Count for each cell the beams that ended in it and those that passed through it.

    Args:
        hits: (rows, columns) counts, updated in place.
        misses: (rows, columns) counts, updated in place.
        starts: (n, 2) start points of the beams, x and y in cells.
        ends: (n, 2) end points.
        hit: (n,) whether an obstacle ended the beam; otherwise it only proves free cells.
    """
    rows, columns = hits.shape
    for k in range(len(starts)):
        x0, y0, x1, y1 = starts[k, 0], starts[k, 1], ends[k, 0], ends[k, 1]
        dx, dy = x1 - x0, y1 - y0
        column, row = math.floor(x0), math.floor(y0)
        last_column, last_row = math.floor(x1), math.floor(y1)
        step_column = 1 if dx > 0.0 else -1
        step_row = 1 if dy > 0.0 else -1
        t_column = ((column + (dx > 0.0)) - x0) / dx if dx != 0.0 else math.inf
        t_row = ((row + (dy > 0.0)) - y0) / dy if dy != 0.0 else math.inf
        t_per_column = abs(1.0 / dx) if dx != 0.0 else math.inf
        t_per_row = abs(1.0 / dy) if dy != 0.0 else math.inf
        for _ in range(abs(last_column - column) + abs(last_row - row)):
            if 0 <= row < rows and 0 <= column < columns:
                misses[row, column] += 1
            if t_column < t_row:
                column += step_column
                t_column += t_per_column
            else:
                row += step_row
                t_row += t_per_row
        if 0 <= last_row < rows and 0 <= last_column < columns:
            if hit[k]:
                hits[last_row, last_column] += 1
            else:
                misses[last_row, last_column] += 1


def _example_rays() -> Iterable[tuple[Any, ...]]:
    yield np.zeros((4, 4), dtype=np.bool_), np.zeros((2, 3)), 5.0


@kernel(examples=_example_rays)
def cast_rays(blocked: NDArray[np.bool_], rays: NDArray[np.float64], max_range: float) -> NDArray[np.float64]:
    """Compute the distance of each ray to the first blocked cell.

    Args:
        blocked: (rows, columns).
        rays: (n, 3) start points, x and y in cells, and directions [rad].
        max_range: Maximum length [cells].

    Returns:
        (n,) lengths [cells], `max_range` without a hit; 0 for a ray that starts in a blocked cell.
    """
    rows, columns = blocked.shape
    lengths = np.full(len(rays), max_range)
    for k in range(len(rays)):
        x, y = rays[k, 0], rays[k, 1]
        c, s = math.cos(rays[k, 2]), math.sin(rays[k, 2])
        column, row = math.floor(x), math.floor(y)
        step_column = 1 if c > 0.0 else -1
        step_row = 1 if s > 0.0 else -1
        t_column = ((column + (c > 0.0)) - x) / c if c != 0.0 else math.inf
        t_row = ((row + (s > 0.0)) - y) / s if s != 0.0 else math.inf
        t_per_column = abs(1.0 / c) if c != 0.0 else math.inf
        t_per_row = abs(1.0 / s) if s != 0.0 else math.inf
        length = 0.0
        while length < max_range:
            if 0 <= row < rows and 0 <= column < columns:
                if blocked[row, column]:
                    lengths[k] = length
                    break
            elif (
                (column < 0 and step_column < 0) or (column >= columns and step_column > 0)
                or (row < 0 and step_row < 0) or (row >= rows and step_row > 0)
            ):  # fmt: skip
                break  # outside, and moving away
            if t_column < t_row:
                length = t_column
                column += step_column
                t_column += t_per_column
            else:
                length = t_row
                row += step_row
                t_row += t_per_row
    return lengths


def simulate_scans(
    occupied: ArrayLike, geometry: GridGeometry, poses: ArrayLike, angles: ArrayLike, range_max: float
) -> NDArray[np.float64]:
    """Simulate the ranges of beams from several poses.

    Args:
        occupied: (rows, columns) cells that stop a beam.
        geometry: Geometry of the cells.
        poses: (n, 3) poses of the range finder in the map: x, y [m], heading [rad].
        angles: (m,) angles of the beams relative to the heading [rad].
        range_max: Maximum range [m].

    Returns:
        (n, m) ranges [m] to the first occupied cell; infinite if there is none within `range_max`.
    """
    sensor_poses = np.asarray(poses, dtype=np.float64).reshape(-1, 3)
    beams = np.asarray(angles, dtype=np.float64).reshape(-1)
    rays = np.empty((len(sensor_poses), len(beams), 3))
    rays[..., :2] = ((geometry.T_map_grid.inverse() @ sensor_poses[:, :2]) / geometry.resolution)[:, None]
    rays[..., 2] = sensor_poses[:, 2:] - geometry.T_map_grid.theta + beams
    max_cells = range_max / geometry.resolution
    lengths = cast_rays(np.ascontiguousarray(occupied, dtype=np.bool_), rays.reshape(-1, 3), max_cells)
    return np.where(lengths < max_cells, lengths * geometry.resolution, math.inf).reshape(len(sensor_poses), len(beams))
