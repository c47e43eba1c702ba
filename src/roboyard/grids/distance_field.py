"""Exact Euclidean distance transform of a grid, and the likelihood field of a map, which scores the poses of a scan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids.occupancy import OCCUPIED_THRESHOLD, GridGeometry, OccupancyGrid
from roboyard.grids.regions import label_components


def _example_cells() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((2, 2), np.bool_),)


@kernel(examples=_example_cells)
def squared_distance_transform(occupied: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Compute squared distances (rows, columns) in cells to the nearest marked cell; infinite without marked cells.

    Two sweeps of lower envelopes of parabolas (P. Felzenszwalb, D. Huttenlocher, Distance Transforms of Sampled
    Functions, Theory of Computing 8, 2012); the first, along columns, needs no envelope because its heights are 0.
    """
    rows, columns = occupied.shape
    squares = np.full((rows, columns), np.inf)
    for column in range(columns):
        last = -1
        for row in range(rows):
            if occupied[row, column]:
                last = row
            if last >= 0:
                squares[row, column] = float(row - last) ** 2
        last = -1
        for row in range(rows - 1, -1, -1):
            if occupied[row, column]:
                last = row
            if last >= 0:
                squares[row, column] = min(squares[row, column], float(last - row) ** 2)
    apex = np.empty(columns, np.int64)
    start = np.empty(columns + 1)
    height = np.empty(columns)
    for row in range(rows):
        count = 0
        for column in range(columns):
            height[column] = squares[row, column]
            if not np.isfinite(height[column]):
                continue
            boundary = -np.inf
            while count:
                other = apex[count - 1]
                boundary = (height[column] - height[other] + column * column - other * other) / (2.0 * (column - other))
                if boundary > start[count - 1]:
                    break
                count -= 1
                boundary = -np.inf
            apex[count], start[count] = column, boundary
            count += 1
        if not count:
            continue
        start[count] = np.inf
        k = 0
        for column in range(columns):
            while start[k + 1] < column:
                k += 1
            squares[row, column] = height[apex[k]] + float(column - apex[k]) ** 2
    return squares


def distance_transform(occupied: ArrayLike, resolution: float = 1.0, limit: float = math.inf) -> NDArray[np.float32]:
    """Compute the distances from the center of every cell to the center of the nearest marked one.

    Args:
        occupied: (rows, columns), true for marked cells.
        resolution: Edge length of a cell [m].
        limit: Upper bound of distances, also used for a grid without marked cells [m].

    Returns:
        (rows, columns) distances [m].

    Raises:
        InputError: The array has another shape.
    """
    cells = np.ascontiguousarray(occupied, dtype=np.bool_)
    if cells.ndim != 2:
        raise InputError(f"the grid has the shape {cells.shape}", valid="(rows, columns)")
    distances = np.minimum(np.sqrt(squared_distance_transform(cells)) * resolution, limit)
    return np.asarray(distances, dtype=np.float32)


def surface_cells(occupied: ArrayLike) -> NDArray[np.bool_]:
    """Return the occupied cells with a free neighbor: those that a beam can hit.  Cells outside the grid count as
    occupied.
    """
    cells = np.asarray(occupied, dtype=np.bool_)
    padded = np.pad(cells, 1, constant_values=True)
    inside = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return np.asarray(cells & ~inside)


_BLOCK_SIZE = 256
"""Number of poses whose sums fit into the processor's first-level cache."""


def _example_scores() -> Iterable[tuple[Any, ...]]:
    values = np.zeros(1, np.float32)
    yield (values, values, values, values, values, values, values, (1, 1))


@kernel(examples=_example_scores)
def sum_scores(
    column: NDArray[np.float32],
    row: NDArray[np.float32],
    cosine: NDArray[np.float32],
    sine: NDArray[np.float32],
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    table: NDArray[np.float32],
    shape: tuple[int, int],
) -> NDArray[np.float32]:
    """Sum the table values at the cells of the points, for each pose.

    Args:
        column: (n,) columns of the poses [cells].
        row: (n,) rows of the poses [cells].
        cosine: (n,) cosines of the poses' headings.
        sine: (n,) sines of the poses' headings.
        x: (m,) x of the points in the pose's frame [cells].
        y: (m,) y of the points in the pose's frame [cells].
        table: (rows · columns,) values; the outermost cells also apply outside.
        shape: Numbers of rows and columns of the table.

    Returns:
        (n,) sums.
    """
    rows, columns = shape
    sums = np.zeros(len(column), np.float32)
    width, last_column, last_row, zero = np.int32(columns), np.int32(columns - 1), np.int32(rows - 1), np.int32(0)
    cell = np.empty(_BLOCK_SIZE, np.int32)
    # Loop order: points outside, poses inside, and cell indices before sums, so that inner loops vectorize over poses.
    for first in range(0, len(column), _BLOCK_SIZE):
        count = min(_BLOCK_SIZE, len(column) - first)
        along, across = column[first : first + count], row[first : first + count]
        c, s = cosine[first : first + count], sine[first : first + count]
        total = sums[first : first + count]
        for k in range(len(x)):
            px, py = x[k], y[k]
            for i in range(count):
                u = np.int32(along[i] + c[i] * px - s[i] * py)
                v = np.int32(across[i] + s[i] * px + c[i] * py)
                u = last_column if u > last_column else (zero if u < zero else u)
                v = last_row if v > last_row else (zero if v < zero else v)
                cell[i] = v * width + u
            for i in range(count):
                total[i] += table[np.uint32(cell[i])]
    return sums


@dataclass(frozen=True, slots=True)
class LikelihoodField:
    """Likelihood field of a map: distance of every cell to the nearest surface.

    Distances grow inside solid objects too, so that a point behind a wall counts as much as one in front of it.  The
    far side of a wall next to unknown cells is not a surface: points would be attracted to it through the wall.

    Attributes:
        distances: (rows, columns) distances from the center of each cell to the center of the nearest surface cell [m],
            with a margin of one cell around the map.
        geometry: Geometry of these cells.
        limit: Upper bound of the distances [m].
    """

    distances: NDArray[np.float32]
    geometry: GridGeometry
    limit: float

    @classmethod
    def from_grid(
        cls, grid: OccupancyGrid, *, occupied_threshold: int = OCCUPIED_THRESHOLD, limit: float = 2.0
    ) -> LikelihoodField:
        """Make the likelihood field of an occupancy map.

        Args:
            grid: The map.
            occupied_threshold: Minimum value of an occupied cell.
            limit: Upper bound of the distances [m].

        Raises:
            InputError: The map has no occupied cell.
        """
        is_occupied = grid.cells >= occupied_threshold
        if not is_occupied.any():
            raise InputError(
                "the map has no occupied cells, so its likelihood field is empty",
                valid=f"values ≥ {occupied_threshold}",
            )
        r, geometry = grid.geometry.resolution, grid.geometry
        padded_surface = np.pad(_observable_surface(is_occupied, (grid.cells >= 0) & ~is_occupied), 1)
        padded_geometry = GridGeometry(
            r, (padded_surface.shape[0], padded_surface.shape[1]), geometry.T_map_grid @ SE2(-r, -r, 0.0)
        )
        distances = distance_transform(padded_surface, r, limit)
        distances.flags.writeable = False
        return cls(distances, padded_geometry, limit)

    def score_table(self, value: Callable[[NDArray[np.float64]], ArrayLike]) -> NDArray[np.float32]:
        """Apply `value` to each cell's distance [m], outside the map to the limit; a flat table for `score_poses`."""
        distances = self.distances.astype(np.float64)
        distances[[0, -1]], distances[:, [0, -1]] = self.limit, self.limit
        return np.ascontiguousarray(value(distances), dtype=np.float32).ravel()

    def score_poses(
        self, table: NDArray[np.float32], poses: NDArray[np.float64], points: ArrayLike
    ) -> NDArray[np.float32]:
        """Sum a table (n,) over points (m, 2) [m] in the frame of each pose (n, 3) in the map."""
        geometry = self.geometry
        T_grid_map = geometry.T_map_grid.inverse()
        r = 1.0 / geometry.resolution
        positions = (T_grid_map @ poses[:, :2]) * r
        heading = (poses[:, 2] + T_grid_map.theta).astype(np.float32)
        scaled_points = (np.asarray(points, dtype=np.float64).reshape(-1, 2) * r).astype(np.float32)
        return sum_scores(
            positions[:, 0].astype(np.float32), positions[:, 1].astype(np.float32), np.cos(heading), np.sin(heading),
            np.ascontiguousarray(scaled_points[:, 0]), np.ascontiguousarray(scaled_points[:, 1]), table,
            geometry.shape,
        )  # fmt: skip


def _observable_surface(occupied: NDArray[np.bool_], free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return occupied cells with a free neighbor; of objects surrounded by unknown cells, their complete surface."""
    padded = np.pad(free, 1)
    has_free_side = padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
    visible = occupied & has_free_side
    labels, count = label_components(occupied, True)
    has_visible_cell = np.zeros(count + 1, dtype=np.bool_)
    has_visible_cell[labels[visible]] = True
    return np.asarray(visible | (surface_cells(occupied) & ~has_visible_cell[labels]))
