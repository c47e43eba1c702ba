"""Voxel layer: beams mark and clear voxels, so that a beam does not clear obstacles above or below it."""

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
from roboyard.navigation.costmap.layered_costmap import FREE, LETHAL, UNKNOWN, CellBounds
from roboyard.navigation.costmap.obstacle_layer import Observation, ObservationFilterConfig, SensorLayerBase


@dataclass(frozen=True)
class VoxelConfig:
    """How columns of voxels become costs, as in Nav2's voxel layer.

    Raises:
        ConfigError: a number out of range.
    """

    origin_z: float = parameter(0.0, unit="m", low=-100.0, high=100.0, doc="height of the lowest voxel's floor")
    resolution_z: float = parameter(0.2, unit="m", low=0.001, high=100.0, doc="height of a voxel")
    z_voxels: int = parameter(10, low=1, high=32, doc="voxels in a column")
    mark_threshold: int = parameter(0, low=0, high=31, doc="so many marked voxels in a column are no obstacle yet")
    hit_margin: float = parameter(
        0.0, unit="m", low=0.0, high=10.0, doc="beams that meet something clear up to so far before it"
    )
    unknown_threshold: int = parameter(10, low=0, high=32, doc="with more unseen voxels it is unknown; else free")

    def __post_init__(self) -> None:
        check(self, "voxels")
        if not (self.mark_threshold < self.z_voxels and self.unknown_threshold <= self.z_voxels):
            raise ConfigError(
                f"thresholds {self.mark_threshold} and {self.unknown_threshold}",
                location="voxels",
                valid=f"0 to below, and 0 to {self.z_voxels}, the number of voxels in a column",
            )


class VoxelLayer(SensorLayerBase):
    """What beams in space say: a chair's seat stays marked though the laser sees between its legs.

    Args:
        config: Which points count, as for ``ObstacleLayer``; ranges are measured along the ground.
        voxel_centers: How columns become costs.
        overwrite: Whether what it saw free frees cells of the layers below; else the higher cost wins.
        name: Of the layer.
    """

    state_arrays: ClassVar[dict[str, np.generic]] = {
        **SensorLayerBase.state_arrays,
        "_marked": np.uint32(0),
        "_observed": np.uint32(0),
    }

    def __init__(
        self,
        config: ObservationFilterConfig | None = None,
        voxels: VoxelConfig = VoxelConfig(),
        *,
        overwrite: bool = False,
        name: str = "voxels",
    ) -> None:
        super().__init__(overwrite=overwrite, name=name)
        expect_kernels(project_beams, clear_voxels, mark_voxels)
        self._config, self._voxel_config = config or ObservationFilterConfig(), voxels
        self._marked = np.zeros((0, 0), dtype=np.uint32)
        self._observed = np.zeros((0, 0), dtype=np.uint32)

    def add_observations(self, observations: Sequence[Observation]) -> None:
        """Take what the sensors saw: first all beams clear, then all ends mark, so that none wipes out another's."""
        config, voxels = self._config, self._voxel_config
        T_grid_map = self._geometry.T_map_grid.inverse()
        pose = np.array(
            [math.cos(T_grid_map.theta), math.sin(T_grid_map.theta), T_grid_map.x, T_grid_map.y, voxels.origin_z]
        )
        heights = np.array([config.min_height, config.max_height])
        range_limits = np.array([config.obstacle_min_range, config.obstacle_max_range])
        changed_bounds, beams = CellBounds.around([]), []
        for observation in observations:
            start, ends = np.empty((1, 3)), np.empty((len(observation.points), 3))
            cleared_fractions, is_marking = (
                np.ones(len(observation.points)),
                np.zeros(len(observation.points), np.bool_),
            )
            size = self._geometry.resolution, voxels.resolution_z
            project_beams(
                read_only(observation.origin),
                observation.points,
                observation.hits,
                pose,
                *size,
                heights,
                range_limits,
                voxels.hit_margin,
                start,
                ends,
                cleared_fractions,
                is_marking,
            )
            bounds = np.array([0, 0, -1, -1], dtype=np.int64)
            raytrace_range = config.raytrace_max_range / self._geometry.resolution
            clear_voxels(
                self._marked, self._observed, voxels.z_voxels, start[0], ends, cleared_fractions, raytrace_range, bounds
            )
            changed_bounds = changed_bounds.union(
                CellBounds(int(bounds[0]), int(bounds[1]), int(bounds[2]) + 1, int(bounds[3]) + 1)
            )
            beams.append((ends, is_marking, self._sensor_index(observation.sensor)))
        for ends, is_marking, sensor in beams:
            bounds = np.array([0, 0, -1, -1], dtype=np.int64)
            mark_voxels(
                self._marked, self._observed, self._marked_by, voxels.z_voxels, ends, is_marking, sensor, bounds
            )
            changed_bounds = changed_bounds.union(
                CellBounds(int(bounds[0]), int(bounds[1]), int(bounds[2]) + 1, int(bounds[3]) + 1)
            )
        self._update_cells(changed_bounds)

    def voxel_centers(self) -> NDArray[np.float64]:
        """Middles (n, 3) of all marked voxels in the map [m], e.g. to look at."""
        levels = np.arange(self._voxel_config.z_voxels, dtype=np.uint32)
        marked = np.argwhere((self._marked[..., None] >> levels) & 1)
        heights = self._voxel_config.origin_z + (marked[:, 2] + 0.5) * self._voxel_config.resolution_z
        return np.column_stack([self._geometry.cell_centers(marked[:, :2]), heights])

    def _clear_cells(self, covered: NDArray[np.int64]) -> None:
        super()._clear_cells(covered)
        self._marked[covered[:, 0], covered[:, 1]] = 0
        self._observed[covered[:, 0], covered[:, 1]] = (1 << self._voxel_config.z_voxels) - 1

    def _update_cells(self, bounds: CellBounds) -> None:
        """Costs of columns anew."""
        voxels = self._voxel_config
        marked = np.bitwise_count(self._marked[bounds.slices]) > voxels.mark_threshold
        n_unobserved = voxels.z_voxels - np.bitwise_count(self._observed[bounds.slices]).astype(np.int64)
        # a column of which nothing is seen stays unknown, whatever the threshold
        is_known = (n_unobserved <= voxels.unknown_threshold) & (n_unobserved < voxels.z_voxels)
        self._cells[bounds.slices] = np.where(marked, LETHAL, np.where(is_known, FREE, UNKNOWN))
        self._changed_bounds = self._changed_bounds.union(bounds)


_EXAMPLE_POINTS = np.zeros((3, 3))


@kernel(
    examples=lambda: [
        (
            read_only(np.zeros(3)),
            _EXAMPLE_POINTS,
            np.ones(3, np.bool_),
            np.zeros(5),
            0.05,
            0.1,
            np.zeros(2),
            np.zeros(2),
            0.1,
            np.zeros((1, 3)),
            _EXAMPLE_POINTS.copy(),
            np.ones(3),
            np.zeros(3, np.bool_),
        ),
    ]
)
def project_beams(
    origin: NDArray[np.float64],
    points: NDArray[np.float64],
    hits: NDArray[np.bool_],
    pose: NDArray[np.float64],
    resolution: float,
    resolution_z: float,
    heights: NDArray[np.float64],
    range_limits: NDArray[np.float64],
    hit_margin: float,
    start: NDArray[np.float64],
    ends: NDArray[np.float64],
    cleared_fractions: NDArray[np.float64],
    is_marking: NDArray[np.bool_],
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
        range_limits: Nearest and farthest along the ground [m].
        hit_margin: What met something clears up to so far before it [m].
        start: (1, 3) result: the sensor [voxels from the grid's corner].
        ends: (n, 3) result: the same of the points.
        cleared_fractions: (n,) result: of each beam that clears; a flat top seen at a slant must not lose the part
            nearer by.
        is_marking: (n,) result: whether it marks its end.
    """
    cos, sin, tx, ty, origin_z = pose
    start[0, 0] = (tx + cos * origin[0] - sin * origin[1]) / resolution
    start[0, 1] = (ty + sin * origin[0] + cos * origin[1]) / resolution
    start[0, 2] = (origin[2] - origin_z) / resolution_z
    for k in range(len(points)):
        x, y, z = points[k, 0], points[k, 1], points[k, 2]
        ends[k, 0] = (tx + cos * x - sin * y) / resolution
        ends[k, 1] = (ty + sin * x + cos * y) / resolution
        ends[k, 2] = (z - origin_z) / resolution_z
        cleared_fractions[k] = 1.0
        if not hits[k]:
            continue
        planar_range = math.hypot(x - origin[0], y - origin[1])
        if hit_margin > 0.0:
            cleared_fractions[k] = max(1.0 - hit_margin / max(math.hypot(planar_range, z - origin[2]), 1e-9), 0.0)
        is_marking[k] = range_limits[0] <= planar_range <= range_limits[1] and heights[0] <= z <= heights[1]


@kernel(
    examples=lambda: [
        (np.zeros((5, 5), np.uint32), np.zeros((5, 5), np.uint32), np.zeros((5, 5), np.uint8), 4, _EXAMPLE_POINTS,
         np.zeros(3, np.bool_), 1, np.zeros(4, np.int64)),
    ]
)  # fmt: skip
def mark_voxels(
    marked: NDArray[np.uint32],
    observed: NDArray[np.uint32],
    marked_by: NDArray[np.uint8],
    z_voxels: int,
    ends: NDArray[np.float64],
    is_marking: NDArray[np.bool_],
    sensor: int,
    bounds: NDArray[np.int64],
) -> None:
    """Mark the voxels in which beams end.

    Args:
        marked: As for `clear_voxels`.
        observed: As for `clear_voxels`.
        marked_by: (rows, columns) who marked a column last, written.
        z_voxels: Voxels in a column.
        ends: (n, 3) of the beams [voxels from the grid's corner].
        is_marking: (n,) which.
        sensor: Index of the sensor.
        bounds: As for `clear_voxels`.
    """
    rows, columns = marked.shape
    top, left, bottom, right = rows, columns, -1, -1
    for k in range(len(ends)):
        if not is_marking[k]:
            continue
        c, r, z = math.floor(ends[k, 0]), math.floor(ends[k, 1]), math.floor(ends[k, 2])
        if 0 <= r < rows and 0 <= c < columns and 0 <= z < z_voxels:
            bit = np.uint32(1) << np.uint32(z)
            marked[r, c] |= bit
            observed[r, c] |= bit
            marked_by[r, c] = sensor
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
    observed: NDArray[np.uint32],
    z_voxels: int,
    start: NDArray[np.float64],
    ends: NDArray[np.float64],
    cleared_fractions: NDArray[np.float64],
    raytrace_range: float,
    bounds: NDArray[np.int64],
) -> None:
    """Free the voxels that beams pass through, those of their ends left out.

    Args:
        marked: (rows, columns) bit k for voxel k of the column, written.
        observed: The same of voxels that were seen, written.
        z_voxels: Voxels in a column.
        start: (3,) x, y, z of the sensor [voxels from the grid's corner].
        ends: (n, 3) of the beams.
        cleared_fractions: (n,) of each beam that clears.
        raytrace_range: How far a beam clears along the ground [cells].
        bounds: (4,) result: first row and column, last row and column of what changed; last is -1 for nothing.
    """
    rows, columns = marked.shape
    top, left, bottom, right = rows, columns, -1, -1
    x0, y0, z0 = start[0], start[1], start[2]
    for k in range(len(ends)):
        dx, dy, dz = ends[k, 0] - x0, ends[k, 1] - y0, ends[k, 2] - z0
        length = math.hypot(dx, dy)
        fraction = min(raytrace_range / length, cleared_fractions[k]) if length > 0.0 else cleared_fractions[k]
        c, r, z = math.floor(x0), math.floor(y0), math.floor(z0)
        count = abs(math.floor(x0 + fraction * dx) - c) + abs(math.floor(y0 + fraction * dy) - r)
        count += abs(math.floor(z0 + fraction * dz) - z)
        # Shares of the beam at which it comes to the next column, row and level, and what lies between two of each.
        until_c, each_c, step_c = _crossings(x0, c, dx)
        until_r, each_r, step_r = _crossings(y0, r, dy)
        until_z, each_z, step_z = _crossings(z0, z, dz)
        # a beam that ends beyond its reach frees its last voxel too
        for _ in range(count + (fraction < 1.0)):
            if 0 <= r < rows and 0 <= c < columns and 0 <= z < z_voxels:
                bit = np.uint32(1) << np.uint32(z)
                if (marked[r, c] & bit) or not (observed[r, c] & bit):
                    marked[r, c] &= ~bit
                    observed[r, c] |= bit
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
def _crossings(start: float, cell: int, delta: float) -> tuple[float, float, int]:
    """Share of a way at which it leaves its first cell, the share from cell to cell, and the direction."""
    if delta == 0.0:
        return math.inf, math.inf, 0
    return (cell + (delta > 0.0) - start) / delta, abs(1.0 / delta), 1 if delta > 0.0 else -1
