"""Obstacles in three dimensions: marked where beams end, cleared where they pass above and below as well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import check, field
from roboyard.errors import ConfigError
from roboyard.navigation.costmap.bounds import Bounds
from roboyard.navigation.costmap.grid import FREE, LETHAL, UNKNOWN
from roboyard.navigation.costmap.obstacles import Observation, ObstacleConfig
from roboyard.navigation.costmap.own_cells import OwnCells


@dataclass(frozen=True)
class VoxelConfig:
    """How columns of voxels become costs, as in Nav2's voxel layer.

    Raises:
        ConfigError: a number out of range.
    """

    origin_z: float = field(0.0, unit="m", low=-100.0, high=100.0, doc="height of the lowest voxel's floor")
    resolution_z: float = field(0.2, unit="m", low=0.001, high=100.0, doc="height of a voxel")
    levels: int = field(10, low=1, high=32, doc="voxels in a column")
    mark_threshold: int = field(0, low=0, high=31, doc="so many marked voxels in a column are no obstacle yet")
    spare: float = field(
        0.0, unit="m", low=0.0, high=10.0, doc="beams that meet something clear up to so far before it"
    )
    unknown_threshold: int = field(10, low=0, high=32, doc="with more unseen voxels it is unknown; else free")

    def __post_init__(self) -> None:
        check(self, "voxels")
        if not (self.mark_threshold < self.levels and self.unknown_threshold <= self.levels):
            raise ConfigError(
                f"thresholds {self.mark_threshold} and {self.unknown_threshold}",
                where="voxels",
                valid=f"0 to below, and 0 to {self.levels}, the number of levels",
            )


class VoxelLayer(OwnCells):
    """What beams in space say: a chair's seat stays marked though the laser sees between its legs.

    Args:
        config: Which points count, as for ``ObstacleLayer``; ranges are measured along the ground.
        voxels: How columns become costs.
        overwrite: Whether what it saw free frees cells of the layers below; else the higher cost wins.
        name: Of the layer.
    """

    kept: ClassVar[dict[str, np.generic]] = {**OwnCells.kept, "_marked": np.uint32(0), "_seen": np.uint32(0)}

    def __init__(
        self,
        config: ObstacleConfig | None = None,
        voxels: VoxelConfig = VoxelConfig(),
        *,
        overwrite: bool = False,
        name: str = "voxels",
    ) -> None:
        super().__init__(overwrite=overwrite, name=name)
        self._config, self._voxels = config or ObstacleConfig(), voxels
        self._marked = np.zeros((0, 0), dtype=np.uint32)
        self._seen = np.zeros((0, 0), dtype=np.uint32)

    def see(self, observations: Sequence[Observation]) -> None:
        """Take what the sensors saw: first all beams clear, then all ends mark, so that none wipes out another's."""
        config, voxels = self._config, self._voxels
        scale = np.array([self._frame.resolution, self._frame.resolution, voxels.resolution_z])
        T_grid_map = self._frame.T_map_grid.inverse()
        touched = Bounds.around([])
        marks = []
        for seen in observations:
            points = np.vstack([seen.origin, seen.points])
            flat = T_grid_map @ points[:, :2]
            inside = np.column_stack([flat, points[:, 2] - voxels.origin_z]) / scale
            bounds = np.array([0, 0, -1, -1], dtype=np.int64)
            reach = config.clear_to / self._frame.resolution
            shares = self._shares(seen)
            clear_voxels(self._marked, self._seen, voxels.levels, inside[0], inside[1:], shares, reach, bounds)
            touched = touched.union(Bounds(int(bounds[0]), int(bounds[1]), int(bounds[2]) + 1, int(bounds[3]) + 1))
            away = np.hypot(*(seen.points[:, :2] - seen.origin[:2]).T)
            counts = seen.hits & (away >= config.mark_from) & (away <= config.mark_to)
            counts &= (seen.points[:, 2] >= config.min_height) & (seen.points[:, 2] <= config.max_height)
            ends = np.floor(inside[1:][counts]).astype(np.int64)[:, [1, 0, 2]]
            ends = ends[self._frame.contains(ends[:, :2]) & (ends[:, 2] >= 0) & (ends[:, 2] < voxels.levels)]
            self._seen_by[ends[:, 0], ends[:, 1]] = self._index(seen.sensor)
            marks.append(ends)
        ends = np.concatenate(marks) if marks else np.zeros((0, 3), dtype=np.int64)
        bits = np.left_shift(np.uint32(1), ends[:, 2].astype(np.uint32))
        np.bitwise_or.at(self._marked, (ends[:, 0], ends[:, 1]), bits)
        np.bitwise_or.at(self._seen, (ends[:, 0], ends[:, 1]), bits)
        self._settle(touched.union(Bounds.around(ends[:, :2])))

    def _shares(self, seen: Observation) -> NDArray[np.float64]:
        """(n,) shares of the beams that clear: a flat top seen at a slant must not lose the part nearer by."""
        if self._voxels.spare <= 0.0:
            return np.ones(len(seen.points))
        length = np.linalg.norm(seen.points - seen.origin, axis=1)
        left = 1.0 - self._voxels.spare / np.maximum(length, 1e-9)
        return np.where(seen.hits, np.maximum(left, 0.0), 1.0)

    def voxels(self) -> NDArray[np.float64]:
        """Middles (n, 3) of all marked voxels in the map [m], e.g. to look at."""
        levels = np.arange(self._voxels.levels, dtype=np.uint32)
        marked = np.argwhere((self._marked[..., None] >> levels) & 1)
        heights = self._voxels.origin_z + (marked[:, 2] + 0.5) * self._voxels.resolution_z
        return np.column_stack([self._frame.points(marked[:, :2]), heights])

    def _free(self, covered: NDArray[np.int64]) -> None:
        super()._free(covered)
        self._marked[covered[:, 0], covered[:, 1]] = 0
        self._seen[covered[:, 0], covered[:, 1]] = (1 << self._voxels.levels) - 1

    def _settle(self, part: Bounds) -> None:
        """Costs of columns anew."""
        voxels = self._voxels
        marked = np.bitwise_count(self._marked[part.slices]) > voxels.mark_threshold
        unseen = voxels.levels - np.bitwise_count(self._seen[part.slices]).astype(np.int64)
        # a column of which nothing is seen stays unknown, whatever the threshold
        known = (unseen <= voxels.unknown_threshold) & (unseen < voxels.levels)
        self._cells[part.slices] = np.where(marked, LETHAL, np.where(known, FREE, UNKNOWN))
        self._changed = self._changed.union(part)


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), dtype=np.uint32), np.zeros((5, 5), dtype=np.uint32), 4, np.zeros(3), np.zeros((3, 3)),
         np.ones(3), 1.0, np.zeros(4, dtype=np.int64)),
    ]
)  # fmt: skip
def clear_voxels(
    marked: NDArray[np.uint32],
    seen: NDArray[np.uint32],
    levels: int,
    start: NDArray[np.float64],
    ends: NDArray[np.float64],
    shares: NDArray[np.float64],
    reach: float,
    bounds: NDArray[np.int64],
) -> None:
    """Free the voxels that beams pass through, those of their ends left out.

    Args:
        marked: (rows, columns) bit k for voxel k of the column, written.
        seen: The same of voxels that were seen, written.
        levels: Voxels in a column.
        start: (3,) x, y, z of the sensor [voxels from the grid's corner].
        ends: (n, 3) of the beams.
        shares: (n,) of each beam that clears.
        reach: How far a beam clears along the ground [cells].
        bounds: (4,) result: first row and column, last row and column of what changed; last is -1 for nothing.
    """
    rows, columns = marked.shape
    top, left, bottom, right = rows, columns, -1, -1
    here, last, step = np.empty(3, np.int64), np.empty(3, np.int64), np.empty(3, np.int64)
    until, each = np.empty(3), np.empty(3)
    for k in range(len(ends)):
        length = math.hypot(ends[k, 0] - start[0], ends[k, 1] - start[1])
        share = min(reach / length, shares[k]) if length > 0.0 else shares[k]
        count = 0
        for axis in range(3):
            way = ends[k, axis] - start[axis]
            here[axis] = math.floor(start[axis])
            last[axis] = math.floor(start[axis] + share * way)
            step[axis] = 1 if way > 0.0 else -1
            until[axis] = (here[axis] + (way > 0.0) - start[axis]) / way if way != 0.0 else math.inf
            each[axis] = abs(1.0 / way) if way != 0.0 else math.inf
            count += abs(last[axis] - here[axis])
        # a beam that ends beyond its reach frees its last voxel too
        for _ in range(count + (share < 1.0)):
            c, r, z = here[0], here[1], here[2]
            if 0 <= r < rows and 0 <= c < columns and 0 <= z < levels:
                bit = np.uint32(1) << np.uint32(z)
                if (marked[r, c] & bit) or not (seen[r, c] & bit):
                    marked[r, c] &= ~bit
                    seen[r, c] |= bit
                    top, left, bottom, right = min(top, r), min(left, c), max(bottom, r), max(right, c)
            axis = 0 if until[0] < until[1] else 1
            if until[2] < until[axis]:
                axis = 2
            here[axis] += step[axis]
            until[axis] += each[axis]
    bounds[0], bounds[1], bounds[2], bounds[3] = top, left, bottom, right
