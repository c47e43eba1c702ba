"""Obstacles that sensors see: marked where beams end, cleared where they pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import check, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.navigation.costmap.bounds import Bounds
from roboyard.navigation.costmap.grid import FREE, LETHAL
from roboyard.navigation.costmap.own_cells import OwnCells


@dataclass(frozen=True, slots=True)
class Observation:
    """What one sensor saw at one moment.

    Attributes:
        origin: (3,) of the sensor in the map [m].
        points: (n, 3) where beams ended, in the map [m].
        hits: (n,) whether something stopped the beam there; else it was free that far.
        sensor: Its name, so that it can be told who saw an obstacle.

    Raises:
        InputError: arrays that do not fit each other, or numbers that are not finite.
    """

    origin: NDArray[np.float64]
    points: NDArray[np.float64]
    hits: NDArray[np.bool_]
    sensor: str = ""

    def moved(self, T: SE2) -> Observation:
        """The same in another frame on the same ground."""
        origin = np.array([*(T @ self.origin[:2]), self.origin[2]])
        return replace(self, origin=origin, points=np.column_stack([T @ self.points[:, :2], self.points[:, 2]]))

    def __post_init__(self) -> None:
        origin, points, hits = (
            np.asarray(self.origin, float),
            np.asarray(self.points, float),
            np.asarray(self.hits, bool),
        )
        if origin.shape != (3,) or points.ndim != 2 or points.shape[1:] != (3,) or hits.shape != (len(points),):
            raise InputError(
                f"an observation of shapes {origin.shape}, {points.shape}, {hits.shape}", valid="(3,), (n, 3), (n,)"
            )
        if not (np.isfinite(origin).all() and np.isfinite(points).all()):
            raise InputError("an observation with points that are not finite", valid="metres; leave such beams out")
        for name, value in (("origin", origin), ("points", points), ("hits", hits)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class ObstacleConfig:
    """Which points count, as in Nav2's obstacle layer.

    Raises:
        ConfigError: a number out of range.
    """

    min_height: float = parameter(-0.1, unit="m", low=-100.0, high=100.0, doc="lowest point that is an obstacle")
    max_height: float = parameter(2.0, unit="m", low=-100.0, high=100.0, doc="highest")
    mark_from: float = parameter(0.0, unit="m", low=0.0, high=1000.0, doc="nearest point that is marked")
    mark_to: float = parameter(5.0, unit="m", low=0.0, high=1000.0, doc="farthest")
    clear_to: float = parameter(6.0, unit="m", low=0.0, high=1000.0, doc="how far beams clear")

    def __post_init__(self) -> None:
        check(self, "points")
        if not (self.min_height < self.max_height and self.mark_from < self.mark_to):
            raise ConfigError(
                f"heights {self.min_height} to {self.max_height}, ranges {self.mark_from} to {self.mark_to}",
                location="points",
                valid="ascending",
            )


class ObstacleLayer(OwnCells):
    """What planar beams say about the ground.

    Args:
        config: Which points count.
        overwrite: Whether what it saw free frees cells of the layers below; else the higher cost wins.
        name: Of the layer.
    """

    def __init__(
        self,
        config: ObstacleConfig = ObstacleConfig(),
        *,
        overwrite: bool = False,
        name: str = "obstacles",
    ) -> None:
        super().__init__(overwrite=overwrite, name=name)
        expect_kernels(clear)
        self._config = config

    def see(self, observations: Sequence[Observation]) -> None:
        """Take what the sensors saw: first all beams clear, then all ends mark, so that none wipes out another's."""
        config = self._config
        T_grid_map = self._frame.T_map_grid.inverse()
        marks = []
        for seen in observations:
            start = (T_grid_map @ seen.origin[:2]) / self._frame.resolution
            ends = (T_grid_map @ seen.points[:, :2]) / self._frame.resolution
            reach = np.hypot(*(seen.points[:, :2] - seen.origin[:2]).T)
            low, high = seen.points[:, 2] >= config.min_height, seen.points[:, 2] <= config.max_height
            bounds = np.array([0, 0, -1, -1], dtype=np.int64)
            clear(self._cells, start, ends, config.clear_to / self._frame.resolution, bounds)
            if bounds[2] >= 0:
                self._changed = self._changed.union(
                    Bounds(int(bounds[0]), int(bounds[1]), int(bounds[2]) + 1, int(bounds[3]) + 1)
                )
            near = (reach >= config.mark_from) & (reach <= config.mark_to)
            cells = np.floor(ends[seen.hits & low & high & near]).astype(np.int64)[:, ::-1]
            marks.append(cells[self._frame.contains(cells)])
            self._seen_by[marks[-1][:, 0], marks[-1][:, 1]] = self._index(seen.sensor)
        cells = np.concatenate(marks) if marks else np.zeros((0, 2), dtype=np.int64)
        self._cells[cells[:, 0], cells[:, 1]] = LETHAL
        self._changed = self._changed.union(Bounds.around(cells))


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), dtype=np.uint8), np.zeros(2), np.zeros((3, 2)), 1.0, np.zeros(4, dtype=np.int64)),
    ]
)
def clear(
    cells: NDArray[np.uint8],
    start: NDArray[np.float64],
    ends: NDArray[np.float64],
    reach: float,
    bounds: NDArray[np.int64],
) -> None:
    """Free the cells that beams pass through, those of their ends left out.

    Args:
        cells: (rows, columns), written.
        start: (2,) x and y of the sensor [cells from the grid's corner].
        ends: (n, 2) of the beams.
        reach: How far a beam clears [cells].
        bounds: (4,) result: first row and column, last row and column of what changed; last is -1 for nothing.
    """
    rows, columns = cells.shape
    top, left, bottom, right = rows, columns, -1, -1
    for k in range(len(ends)):
        dx, dy = ends[k, 0] - start[0], ends[k, 1] - start[1]
        length = math.hypot(dx, dy)
        share = min(reach / length, 1.0) if length > 0.0 else 0.0
        column, row = math.floor(start[0]), math.floor(start[1])
        last_column, last_row = math.floor(start[0] + share * dx), math.floor(start[1] + share * dy)
        step_column, step_row = (1 if dx > 0.0 else -1), (1 if dy > 0.0 else -1)
        t_column = ((column + (dx > 0.0)) - start[0]) / dx if dx != 0.0 else math.inf
        t_row = ((row + (dy > 0.0)) - start[1]) / dy if dy != 0.0 else math.inf
        each_column = abs(1.0 / dx) if dx != 0.0 else math.inf
        each_row = abs(1.0 / dy) if dy != 0.0 else math.inf
        # a beam that ends beyond its reach frees its last cell too
        for _ in range(abs(last_column - column) + abs(last_row - row) + (share < 1.0)):
            if 0 <= row < rows and 0 <= column < columns and cells[row, column] != FREE:
                cells[row, column] = FREE
                top, left, bottom, right = min(top, row), min(left, column), max(bottom, row), max(right, column)
            if t_column < t_row:
                column += step_column
                t_column += each_column
            else:
                row += step_row
                t_row += each_row
    bounds[0], bounds[1], bounds[2], bounds[3] = top, left, bottom, right
