"""Voxel layer: beams mark and clear voxels, so that a beam does not clear obstacles above or below it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel, read_only
from roboyard.config import check, parameter
from roboyard.errors import ConfigError
from roboyard.navigation.costmap.layer_types import LayerContext
from roboyard.navigation.costmap.layered_costmap import FREE, LETHAL, UNKNOWN, CellBounds
from roboyard.navigation.costmap.obstacle_layer import Observation, ObservationFilterConfig
from roboyard.navigation.costmap.sensor_layer import PointSourceConfig, SensorLayer, SensorLayerConfig


@dataclass(frozen=True)
class VoxelConfig:
    """Costs of columns of voxels, as in Nav2's voxel layer.

    Raises:
        ConfigError: A number is out of range, or a threshold is above the number of voxels.
    """

    origin_z: float = parameter(0.0, unit="m", low=-100.0, high=100.0, doc="Height of the floor of the lowest voxel.")
    resolution_z: float = parameter(0.2, unit="m", low=0.001, high=100.0, doc="Height of a voxel.")
    z_voxels: int = parameter(10, low=1, high=32, doc="Number of voxels in a column.")
    mark_threshold: int = parameter(0, low=0, high=31, doc="Number of marked voxels up to which a column is free.")
    hit_margin: float = parameter(
        0.0, unit="m", low=0.0, high=10.0, doc="Length before its end in which a beam that hits clears nothing."
    )
    unknown_threshold: int = parameter(
        10, low=0, high=32, doc="Number of unobserved voxels above which an unmarked column is unknown."
    )

    def __post_init__(self) -> None:
        check(self, "voxels")
        if not (self.mark_threshold < self.z_voxels and self.unknown_threshold <= self.z_voxels):
            raise ConfigError(
                f"thresholds {self.mark_threshold} and {self.unknown_threshold}",
                location="voxels",
                valid=f"0 to below, and 0 to {self.z_voxels}, the number of voxels in a column",
            )


class VoxelLayer(SensorLayer):
    """Obstacles in columns of voxels, so that a beam clears no obstacle above or below it
    (nav2_costmap_2d::VoxelLayer).

    Args:
        config: Points that count, as for `ObstacleLayer`; ranges are measured along the ground.
        voxels: Costs of columns of voxels.
        overwrite: Whether free cells of this layer free those of the layers below; else the higher cost wins.
        name: Name of the layer.
    """

    state_arrays: ClassVar[dict[str, np.generic]] = {
        **SensorLayer.state_arrays,
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
        """Clear along all beams, then mark all their ends, so that no beam clears the obstacle of another."""
        config, voxels, resolution = self._config, self._voxel_config, self._geometry.resolution
        T = self._geometry.T_map_grid.inverse()
        grid = VoxelGrid(
            math.cos(T.theta), math.sin(T.theta), T.x, T.y, voxels.origin_z, resolution, voxels.resolution_z
        )
        limits = MarkingLimits(
            config.min_height,
            config.max_height,
            config.obstacle_min_range,
            config.obstacle_max_range,
            voxels.hit_margin,
        )
        changed_bounds, beams_of_sensors = CellBounds.around([]), []
        for observation in observations:
            beams = project_beams(read_only(observation.origin), observation.points, observation.hits, grid, limits)
            cleared = clear_voxels(
                self._marked, self._observed, voxels.z_voxels, beams, config.raytrace_max_range / resolution
            )
            changed_bounds = changed_bounds.union(CellBounds(*cleared))
            beams_of_sensors.append((beams, self._sensor_index(observation.sensor)))
        for beams, sensor in beams_of_sensors:
            marked = mark_voxels(self._marked, self._observed, self._marked_by, voxels.z_voxels, beams, sensor)
            changed_bounds = changed_bounds.union(CellBounds(*marked))
        self._update_cells(changed_bounds)

    def voxel_centers(self) -> NDArray[np.float64]:
        """Return the centers (n, 3) of all marked voxels in the frame of the costmap [m]."""
        levels = np.arange(self._voxel_config.z_voxels, dtype=np.uint32)
        marked = np.argwhere((self._marked[..., None] >> levels) & 1)
        heights = self._voxel_config.origin_z + (marked[:, 2] + 0.5) * self._voxel_config.resolution_z
        return np.column_stack([self._geometry.cell_centers(marked[:, :2]), heights])

    def _clear_cells(self, covered: NDArray[np.int64]) -> None:
        super()._clear_cells(covered)
        self._marked[covered[:, 0], covered[:, 1]] = 0
        self._observed[covered[:, 0], covered[:, 1]] = (1 << self._voxel_config.z_voxels) - 1

    def _update_cells(self, bounds: CellBounds) -> None:
        """Compute the costs of columns from their voxels."""
        voxels = self._voxel_config
        marked = np.bitwise_count(self._marked[bounds.slices]) > voxels.mark_threshold
        n_unobserved = voxels.z_voxels - np.bitwise_count(self._observed[bounds.slices]).astype(np.int64)
        # a column of which nothing is seen stays unknown, whatever the threshold
        is_known = (n_unobserved <= voxels.unknown_threshold) & (n_unobserved < voxels.z_voxels)
        self._cells[bounds.slices] = np.where(marked, LETHAL, np.where(is_known, FREE, UNKNOWN))
        self._changed_bounds = self._changed_bounds.union(bounds)


@dataclass(frozen=True, kw_only=True)
class VoxelLayerConfig(SensorLayerConfig):
    """Obstacles in columns of voxels, from point clouds and scans at several heights."""

    sources: tuple[PointSourceConfig, ...] = parameter(doc="Sensors of the layer.")
    observation_filter: ObservationFilterConfig = parameter(ObservationFilterConfig(), doc="Points that count.")
    voxels: VoxelConfig = parameter(VoxelConfig(), doc="Costs of columns of voxels.")

    def make_layer(self, context: LayerContext) -> VoxelLayer:
        """Return a voxel layer."""
        return VoxelLayer(self.observation_filter, self.voxels, overwrite=self.overwrite, name=context.name)


class VoxelGrid(NamedTuple):
    """Place of the voxels: pose of the costmap's frame in the grid, lowest height, edges of cells and of voxels [m]."""

    cos: float
    sin: float
    x: float
    y: float
    origin_z: float
    resolution: float
    resolution_z: float


class MarkingLimits(NamedTuple):
    """Heights and ranges of points that mark a voxel, and length before a hit that is not cleared [m]."""

    min_height: float
    max_height: float
    min_range: float
    max_range: float
    hit_margin: float


class GridBeams(NamedTuple):
    """Beams of one observation in the grid.

    Attributes:
        start: (3,) position of the sensor [voxels from the grid's corner].
        ends: (n, 3) ends of the beams, likewise.
        cleared_fractions: (n,) fraction of each beam that clears.
        is_marking: (n,) whether the beam marks the voxel in which it ends.
    """

    start: NDArray[np.float64]
    ends: NDArray[np.float64]
    cleared_fractions: NDArray[np.float64]
    is_marking: NDArray[np.bool_]


_EXAMPLE_POINTS = np.zeros((3, 3))
_EXAMPLE_VOXELS = np.zeros((5, 5), dtype=np.uint32)
_EXAMPLE_BEAMS = GridBeams(np.zeros(3), _EXAMPLE_POINTS, np.ones(3), np.zeros(3, dtype=np.bool_))


@kernel(
    examples=lambda: [
        (read_only(np.zeros(3)), _EXAMPLE_POINTS, np.ones(3, np.bool_),
         VoxelGrid(1.0, 0.0, 0.0, 0.0, 0.0, 0.05, 0.1), MarkingLimits(0.0, 2.0, 0.0, 5.0, 0.1)),
    ]
)  # fmt: skip
def project_beams(
    origin: NDArray[np.float64],
    points: NDArray[np.float64],
    hits: NDArray[np.bool_],
    grid: VoxelGrid,
    limits: MarkingLimits,
) -> GridBeams:
    """Return the beams of an observation in the grid.

    Args:
        origin: (3,) position of the sensor in the frame of the costmap [m].
        points: (n, 3) ends of the beams [m].
        hits: (n,) whether an obstacle stopped the beam there.
        grid: Place of the voxels.
        limits: Points that mark; the length before a hit that is not cleared keeps the nearer part of a flat top that
            is
            seen at a slant.
    """
    start = np.empty(3)
    ends = np.empty((len(points), 3))
    cleared_fractions = np.ones(len(points))
    is_marking = np.zeros(len(points), dtype=np.bool_)
    start[0] = (grid.x + grid.cos * origin[0] - grid.sin * origin[1]) / grid.resolution
    start[1] = (grid.y + grid.sin * origin[0] + grid.cos * origin[1]) / grid.resolution
    start[2] = (origin[2] - grid.origin_z) / grid.resolution_z
    for k in range(len(points)):
        x, y, z = points[k, 0], points[k, 1], points[k, 2]
        ends[k, 0] = (grid.x + grid.cos * x - grid.sin * y) / grid.resolution
        ends[k, 1] = (grid.y + grid.sin * x + grid.cos * y) / grid.resolution
        ends[k, 2] = (z - grid.origin_z) / grid.resolution_z
        if not hits[k]:
            continue
        planar_range = math.hypot(x - origin[0], y - origin[1])
        if limits.hit_margin > 0.0:
            length = max(math.hypot(planar_range, z - origin[2]), 1e-9)
            cleared_fractions[k] = max(1.0 - limits.hit_margin / length, 0.0)
        is_in_range = limits.min_range <= planar_range <= limits.max_range
        is_marking[k] = is_in_range and limits.min_height <= z <= limits.max_height
    return GridBeams(start, ends, cleared_fractions, is_marking)


@kernel(examples=lambda: [(_EXAMPLE_VOXELS, _EXAMPLE_VOXELS, np.zeros((5, 5), np.uint8), 4, _EXAMPLE_BEAMS, 1)])
def mark_voxels(
    marked: NDArray[np.uint32],
    observed: NDArray[np.uint32],
    marked_by: NDArray[np.uint8],
    z_voxels: int,
    beams: GridBeams,
    sensor: int,
) -> CellBounds:
    """Mark the voxels in which beams end, and return the cells that changed.

    Args:
        marked: (rows, columns) bit k for voxel k of the column, written.
        observed: (rows, columns) the same of voxels that were observed, written.
        marked_by: (rows, columns) index of the sensor that marked a column last, written.
        z_voxels: Number of voxels in a column.
        beams: Beams in the grid.
        sensor: Index of the sensor.
    """
    ends, is_marking = beams.ends, beams.is_marking
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
    return CellBounds(top, left, bottom + 1, right + 1)


@kernel(examples=lambda: [(_EXAMPLE_VOXELS, _EXAMPLE_VOXELS, 4, _EXAMPLE_BEAMS, 1.0)])
def clear_voxels(
    marked: NDArray[np.uint32],
    observed: NDArray[np.uint32],
    z_voxels: int,
    beams: GridBeams,
    raytrace_range: float,
) -> CellBounds:
    """Free the voxels that beams pass through, except those in which they end, and return the cells that changed.

    Args:
        marked: (rows, columns) bit k for voxel k of the column, written.
        observed: (rows, columns) the same of voxels that were observed, written.
        z_voxels: Number of voxels in a column.
        beams: Beams in the grid.
        raytrace_range: Length along the ground of a beam that clears [cells].
    """
    start, ends, cleared_fractions = beams.start, beams.ends, beams.cleared_fractions
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
        # Fractions of the beam at which it enters the next column, row and level, and from one of each to the next.
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
    return CellBounds(top, left, bottom + 1, right + 1)


@kernel(examples=lambda: [(0.5, 0, 1.0)], error_model="numpy")
def _crossings(start: float, cell: int, delta: float) -> tuple[float, float, int]:
    """Return the fraction of a beam at which it leaves its first cell, the fraction from cell to cell, and the sign."""
    if delta == 0.0:
        return math.inf, math.inf, 0
    return (cell + (delta > 0.0) - start) / delta, abs(1.0 / delta), 1 if delta > 0.0 else -1
