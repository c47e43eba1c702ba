"""Surfel maps: for each cell and side of a surface the mean point and the mean normal; and beams that pass through
surfaces.

The mean of many points of a wall is closer to the wall than a cell's side by far, so matching is not limited by the
size of the cells. A cell has two layers, since a thin wall shows both of its sides in one cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2
from roboyard.mapping.scan import PreprocessedScan

CELL_SIZE = 0.1
"""Side of a cell [m]."""
COUNT, SUM_X, SUM_Y, SUM_NX, SUM_NY = range(5)
N_FIELDS = 5
"""Fields of a surfel: number of points, sums of their coordinates [m], sums of their normals."""


class SurfelMapArrays(NamedTuple):
    """Arrays of a surfel map, as kernels need them.

    Attributes:
        cell_index: (2, side, side) row of ``surfels`` for each layer and cell; -1: none.
        surfels: (capacity, 5) count and sums of each surfel; see ``N_FIELDS``.
        half_size: Half the side of the square that the cells cover [m].
    """

    cell_index: NDArray[np.int32]
    surfels: NDArray[np.float64]
    half_size: float


class SurfelMap:
    """Surfels in the cells of a square: for each cell and side of a surface the sums of points and normals.

    Args:
        half_size: Half the side of the square [m]; points outside are ignored.
    """

    def __init__(self, half_size: float) -> None:
        self.half_size = half_size
        side = math.ceil(2.0 * half_size / CELL_SIZE)
        self.index: NDArray[np.int32] = np.full((2, side, side), -1, dtype=np.int32)
        self._surfels: NDArray[np.float64] = np.zeros((256, N_FIELDS))
        self.n_used = 0

    def arrays(self) -> SurfelMapArrays:
        """Return the arrays of the map for kernels; they are not copied."""
        return SurfelMapArrays(self.index, self._surfels, self.half_size)

    @property
    def surfels(self) -> NDArray[np.float64]:
        """Return the surfels (n, 5): number of points, sums of their x and y [m], sums of their normals."""
        return self._surfels[: self.n_used]

    @property
    def means(self) -> NDArray[np.float64]:
        """Return the mean point (n, 2) of each surfel [m]."""
        return np.asarray(self.surfels[:, SUM_X : SUM_Y + 1] / self.surfels[:, :1])

    def insert(self, points: NDArray[np.float64], normals: NDArray[np.float64], pose: SE2) -> None:
        """Add points (n, 2) [m] and normals (n, 2), which are in a frame at ``pose`` in the frame of the map."""
        while self.n_used + len(points) > len(self._surfels):
            self._surfels = np.concatenate([self._surfels, np.zeros_like(self._surfels)])
        pose_array = np.array([pose.x, pose.y, pose.theta])
        self.n_used = insert_points(self.index, self._surfels, self.n_used, self.half_size, points, normals, pose_array)

    def set_surfels(self, surfels: NDArray[np.float64]) -> None:
        """Replace the contents by the surfels (n, 5) of another map of the same size, without a new index array."""
        clear_index(self.index, self._surfels, self.n_used, self.half_size)
        while len(surfels) > len(self._surfels):
            self._surfels = np.zeros((2 * len(self._surfels), N_FIELDS))
        self._surfels[: len(surfels)] = surfels
        self.n_used = len(surfels)
        index_surfels(self.index, self._surfels, self.n_used, self.half_size)


def _example_insert() -> Iterable[tuple[Any, ...]]:
    index = np.full((2, 4, 4), -1, dtype=np.int32)
    yield index, np.zeros((8, N_FIELDS)), 0, 0.2, np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(3)


@kernel(examples=_example_insert)
def insert_points(
    index: NDArray[np.int32],
    surfels: NDArray[np.float64],
    n_used: int,
    half_size: float,
    points: NDArray[np.float64],
    normals: NDArray[np.float64],
    pose: NDArray[np.float64],
) -> int:
    """Add points to surfels in place; return the number of surfels in use."""
    side = index.shape[1]
    c, s = math.cos(pose[2]), math.sin(pose[2])
    for i in range(len(points)):
        x = pose[0] + c * points[i, 0] - s * points[i, 1]
        y = pose[1] + s * points[i, 0] + c * points[i, 1]
        nx, ny = c * normals[i, 0] - s * normals[i, 1], s * normals[i, 0] + c * normals[i, 1]
        column, row = math.floor((x + half_size) / CELL_SIZE), math.floor((y + half_size) / CELL_SIZE)
        if not (0 <= column < side and 0 <= row < side):
            continue
        layer = 0
        surfel = index[0, row, column]
        if surfel >= 0 and nx * surfels[surfel, SUM_NX] + ny * surfels[surfel, SUM_NY] < 0.0:
            layer = 1
            surfel = index[1, row, column]
        if surfel < 0:
            surfel = n_used
            n_used += 1
            index[layer, row, column] = surfel
            for field in range(N_FIELDS):
                surfels[surfel, field] = 0.0
        surfels[surfel, COUNT] += 1.0
        surfels[surfel, SUM_X] += x
        surfels[surfel, SUM_Y] += y
        surfels[surfel, SUM_NX] += nx
        surfels[surfel, SUM_NY] += ny
    return n_used


def _example_clear() -> Iterable[tuple[Any, ...]]:
    yield np.full((2, 4, 4), -1, dtype=np.int32), np.zeros((8, N_FIELDS)), 0, 0.2


@kernel(examples=_example_clear)
def clear_index(index: NDArray[np.int32], surfels: NDArray[np.float64], n_used: int, half_size: float) -> None:
    """Remove all surfels in use from the index."""
    side = index.shape[1]
    for k in range(n_used):
        column = math.floor((surfels[k, SUM_X] / surfels[k, COUNT] + half_size) / CELL_SIZE)
        row = math.floor((surfels[k, SUM_Y] / surfels[k, COUNT] + half_size) / CELL_SIZE)
        for r in range(max(row - 1, 0), min(row + 2, side)):  # rounding may put a mean into the cell beside
            for q in range(max(column - 1, 0), min(column + 2, side)):
                for layer in range(2):
                    if index[layer, r, q] == k:
                        index[layer, r, q] = -1


@kernel(examples=_example_clear)
def index_surfels(index: NDArray[np.int32], surfels: NDArray[np.float64], n_used: int, half_size: float) -> None:
    """Enter surfels into an empty index, at the cells of their means."""
    side = index.shape[1]
    for k in range(n_used):
        column = math.floor((surfels[k, SUM_X] / surfels[k, COUNT] + half_size) / CELL_SIZE)
        row = math.floor((surfels[k, SUM_Y] / surfels[k, COUNT] + half_size) / CELL_SIZE)
        if 0 <= column < side and 0 <= row < side:
            layer = 0 if index[0, row, column] < 0 else 1
            if index[layer, row, column] < 0:
                index[layer, row, column] = k


_END_MARGIN = 0.5
"""Surfaces within this distance of a beam's end do not count [m]: they may be the surface that it hit."""


def fraction_through_surfaces(surfel_map: SurfelMap, scan: PreprocessedScan, pose: SE2) -> float:
    """Return the fraction of a scan's beams that pass through a surface which faces them, 0 to 1."""
    if not len(scan.points):
        return 0.0
    origin = pose @ scan.origin
    ends = pose @ scan.points
    return count_through_surfaces(
        surfel_map.index, surfel_map.surfels, surfel_map.half_size, origin, np.ascontiguousarray(ends)
    ) / len(ends)


def _example() -> Iterable[tuple[Any, ...]]:
    yield np.full((2, 4, 4), -1, dtype=np.int32), np.zeros((8, N_FIELDS)), 0.2, np.zeros(2), np.zeros((3, 2))


@kernel(examples=_example)
def count_through_surfaces(
    index: NDArray[np.int32],
    surfels: NDArray[np.float64],
    half_size: float,
    origin: NDArray[np.float64],
    ends: NDArray[np.float64],
) -> int:
    """Return the number of beams that pass through a surface before they end."""
    side = index.shape[1]
    count = 0
    for i in range(len(ends)):
        dx, dy = ends[i, 0] - origin[0], ends[i, 1] - origin[1]
        length = math.sqrt(dx * dx + dy * dy)
        if length < 1e-6:
            continue
        ux, uy = dx / length, dy / length
        distance = 0.3
        while distance < length - _END_MARGIN:
            column = math.floor((origin[0] + ux * distance + half_size) / CELL_SIZE)
            row = math.floor((origin[1] + uy * distance + half_size) / CELL_SIZE)
            if not (0 <= column < side and 0 <= row < side):
                break
            k = index[0, row, column]
            if k >= 0 and surfels[k, COUNT] >= 3.0:
                facing = -(ux * surfels[k, SUM_NX] + uy * surfels[k, SUM_NY]) / surfels[k, COUNT]
                if facing > 0.5:
                    count += 1
                    break
            distance += CELL_SIZE
    return count
