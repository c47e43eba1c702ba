"""Obstacles in three dimensions: marked where beams end, cleared where they pass above and below as well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel, read_only
from roboyard.config import check, parameter
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

    origin_z: float = parameter(0.0, unit="m", low=-100.0, high=100.0, doc="height of the lowest voxel's floor")
    resolution_z: float = parameter(0.2, unit="m", low=0.001, high=100.0, doc="height of a voxel")
    levels: int = parameter(10, low=1, high=32, doc="voxels in a column")
    mark_threshold: int = parameter(0, low=0, high=31, doc="so many marked voxels in a column are no obstacle yet")
    spare: float = parameter(
        0.0, unit="m", low=0.0, high=10.0, doc="beams that meet something clear up to so far before it"
    )
    unknown_threshold: int = parameter(10, low=0, high=32, doc="with more unseen voxels it is unknown; else free")

    def __post_init__(self) -> None:
        check(self, "voxels")
        if not (self.mark_threshold < self.levels and self.unknown_threshold <= self.levels):
            raise ConfigError(
                f"thresholds {self.mark_threshold} and {self.unknown_threshold}",
                location="voxels",
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
        expect_kernels(beams_in_grid, clear_voxels, mark_voxels)
        self._config, self._voxels = config or ObstacleConfig(), voxels
        self._marked = np.zeros((0, 0), dtype=np.uint32)
        self._seen = np.zeros((0, 0), dtype=np.uint32)

    def see(self, observations: Sequence[Observation]) -> None:
        """Take what the sensors saw: first all beams clear, then all ends mark, so that none wipes out another's."""
        config, voxels = self._config, self._voxels
        T = self._frame.T_map_grid.inverse()
        pose = np.array([math.cos(T.theta), math.sin(T.theta), T.x, T.y, voxels.origin_z])
        heights = np.array([config.min_height, config.max_height])
        ring = np.array([config.mark_from, config.mark_to])
        touched, beams = Bounds.around([]), []
        for seen in observations:
            start, ends = np.empty((1, 3)), np.empty((len(seen.points), 3))
            shares, counts = np.ones(len(seen.points)), np.zeros(len(seen.points), np.bool_)
            size = self._frame.resolution, voxels.resolution_z
            beams_in_grid(
                read_only(seen.origin),
                seen.points,
                seen.hits,
                pose,
                *size,
                heights,
                ring,
                voxels.spare,
                start,
                ends,
                shares,
                counts,
            )
            bounds = np.array([0, 0, -1, -1], dtype=np.int64)
            reach = config.clear_to / self._frame.resolution
            clear_voxels(self._marked, self._seen, voxels.levels, start[0], ends, shares, reach, bounds)
            touched = touched.union(Bounds(int(bounds[0]), int(bounds[1]), int(bounds[2]) + 1, int(bounds[3]) + 1))
            beams.append((ends, counts, self._index(seen.sensor)))
        for ends, counts, sensor in beams:
            bounds = np.array([0, 0, -1, -1], dtype=np.int64)
            mark_voxels(self._marked, self._seen, self._seen_by, voxels.levels, ends, counts, sensor, bounds)
            touched = touched.union(Bounds(int(bounds[0]), int(bounds[1]), int(bounds[2]) + 1, int(bounds[3]) + 1))
        self._settle(touched)

    def voxels(self) -> NDArray[np.float64]:
        """Middles (n, 3) of all marked voxels in the map [m], e.g. to look at."""
        levels = np.arange(self._voxels.levels, dtype=np.uint32)
        marked = np.argwhere((self._marked[..., None] >> levels) & 1)
        heights = self._voxels.origin_z + (marked[:, 2] + 0.5) * self._voxels.resolution_z
        return np.column_stack([self._frame.cell_centers(marked[:, :2]), heights])

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


_MANY = np.zeros((3, 3))


@kernel(
    examples=lambda: [
        (read_only(np.zeros(3)), _MANY, np.ones(3, np.bool_), np.zeros(5), 0.05, 0.1, np.zeros(2), np.zeros(2), 0.1,
         np.zeros((1, 3)), _MANY.copy(), np.ones(3), np.zeros(3, np.bool_)),
    ]
)  # fmt: skip
def beams_in_grid(
    origin: NDArray[np.float64],
    points: NDArray[np.float64],
    hits: NDArray[np.bool_],
    pose: NDArray[np.float64],
    resolution: float,
    resolution_z: float,
    heights: NDArray[np.float64],
    ring: NDArray[np.float64],
    spare: float,
    start: NDArray[np.float64],
    ends: NDArray[np.float64],
    shares: NDArray[np.float64],
    counts: NDArray[np.bool_],
) -> None:
    """Beams as they lie in the grid.

    Args:
        origin: (3,) of the sensor in the map [m].
        points: (n, 3) where beams ended [m].
        hits: (n,) whether something stopped them there.
        pose: Cosine, sine, x and y of the map in the grid, and height of the lowest voxel's floor [m].
        resolution: Of the grid [m].
        resolution_z: Height of a voxel [m].
        heights: Lowest and highest point that is an obstacle [m].
        ring: Nearest and farthest along the ground [m].
        spare: What met something clears up to so far before it [m].
        start: (1, 3) result: the sensor [voxels from the grid's corner].
        ends: (n, 3) result: the same of the points.
        shares: (n,) result: of each beam that clears; a flat top seen at a slant must not lose the part nearer by.
        counts: (n,) result: whether it marks its end.
    """
    cos, sin, tx, ty, floor = pose
    start[0, 0] = (tx + cos * origin[0] - sin * origin[1]) / resolution
    start[0, 1] = (ty + sin * origin[0] + cos * origin[1]) / resolution
    start[0, 2] = (origin[2] - floor) / resolution_z
    for k in range(len(points)):
        x, y, z = points[k, 0], points[k, 1], points[k, 2]
        ends[k, 0] = (tx + cos * x - sin * y) / resolution
        ends[k, 1] = (ty + sin * x + cos * y) / resolution
        ends[k, 2] = (z - floor) / resolution_z
        shares[k] = 1.0
        if not hits[k]:
            continue
        away = math.hypot(x - origin[0], y - origin[1])
        if spare > 0.0:
            shares[k] = max(1.0 - spare / max(math.hypot(away, z - origin[2]), 1e-9), 0.0)
        counts[k] = ring[0] <= away <= ring[1] and heights[0] <= z <= heights[1]


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), np.uint32), np.zeros((5, 5), np.uint32), np.zeros((5, 5), np.uint8), 4, _MANY,
         np.zeros(3, np.bool_), 1, np.zeros(4, np.int64)),
    ]
)  # fmt: skip
def mark_voxels(
    marked: NDArray[np.uint32],
    seen: NDArray[np.uint32],
    seen_by: NDArray[np.uint8],
    levels: int,
    ends: NDArray[np.float64],
    counts: NDArray[np.bool_],
    sensor: int,
    bounds: NDArray[np.int64],
) -> None:
    """Mark the voxels in which beams end.

    Args:
        marked: As for `clear_voxels`.
        seen: As for `clear_voxels`.
        seen_by: (rows, columns) who marked a column last, written.
        levels: Voxels in a column.
        ends: (n, 3) of the beams [voxels from the grid's corner].
        counts: (n,) which.
        sensor: Who.
        bounds: As for `clear_voxels`.
    """
    rows, columns = marked.shape
    top, left, bottom, right = rows, columns, -1, -1
    for k in range(len(ends)):
        if not counts[k]:
            continue
        c, r, z = math.floor(ends[k, 0]), math.floor(ends[k, 1]), math.floor(ends[k, 2])
        if 0 <= r < rows and 0 <= c < columns and 0 <= z < levels:
            bit = np.uint32(1) << np.uint32(z)
            marked[r, c] |= bit
            seen[r, c] |= bit
            seen_by[r, c] = sensor
            top, left, bottom, right = min(top, r), min(left, c), max(bottom, r), max(right, c)
    bounds[0], bounds[1], bounds[2], bounds[3] = top, left, bottom, right


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
    x0, y0, z0 = start[0], start[1], start[2]
    for k in range(len(ends)):
        dx, dy, dz = ends[k, 0] - x0, ends[k, 1] - y0, ends[k, 2] - z0
        length = math.hypot(dx, dy)
        share = min(reach / length, shares[k]) if length > 0.0 else shares[k]
        c, r, z = math.floor(x0), math.floor(y0), math.floor(z0)
        count = abs(math.floor(x0 + share * dx) - c) + abs(math.floor(y0 + share * dy) - r)
        count += abs(math.floor(z0 + share * dz) - z)
        # Shares of the beam at which it comes to the next column, row and level, and what lies between two of each.
        until_c, each_c, step_c = _crossings(x0, c, dx)
        until_r, each_r, step_r = _crossings(y0, r, dy)
        until_z, each_z, step_z = _crossings(z0, z, dz)
        # a beam that ends beyond its reach frees its last voxel too
        for _ in range(count + (share < 1.0)):
            if 0 <= r < rows and 0 <= c < columns and 0 <= z < levels:
                bit = np.uint32(1) << np.uint32(z)
                if (marked[r, c] & bit) or not (seen[r, c] & bit):
                    marked[r, c] &= ~bit
                    seen[r, c] |= bit
                    top, left, bottom, right = min(top, r), min(left, c), max(bottom, r), max(right, c)
            if until_z < until_c and until_z < until_r:
                z += step_z
                until_z += each_z
            elif until_c < until_r:
                c += step_c
                until_c += each_c
            else:
                r += step_r
                until_r += each_r
    bounds[0], bounds[1], bounds[2], bounds[3] = top, left, bottom, right


@kernel(examples=lambda: [(0.5, 0, 1.0)], error_model="numpy")
def _crossings(start: float, cell: int, way: float) -> tuple[float, float, int]:
    """Share of a way at which it leaves its first cell, the share from cell to cell, and the direction."""
    if way == 0.0:
        return math.inf, math.inf, 0
    return (cell + (way > 0.0) - start) / way, abs(1.0 / way), 1 if way > 0.0 else -1
