"""Errors of maps against ground truth: an occupancy map against the floor plan, and an octree map against true
surfaces voxel by voxel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import FREE_THRESHOLD, OCCUPIED_THRESHOLD, UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.mapping.octree.octree import VOXEL_FREE, VOXEL_OCCUPIED

_NEIGHBORHOOD: Final = np.ones((3, 3), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class MapError:
    """Error of an occupancy map.

    Attributes:
        wall_error: Mean distance of the centers of occupied cells from the nearest true surface [m].
        wall_error_p95: 95th percentile of these distances [m].
        iou_occupied: Occupied cells within one cell of a true surface, divided by all occupied cells and the missed
            surfaces; of true surfaces those count next to which the map has free cells.
        iou_free: Intersection over union of free cells, where the map is known.
        coverage: Fraction of the true free space, connected with the map's free cells, that the map knows.
        n_occupied_cells: Number of occupied cells of the map.
    """

    wall_error: float
    wall_error_p95: float
    iou_occupied: float
    iou_free: float
    coverage: float
    n_occupied_cells: int


def compare_with_floor_plan(
    grid: OccupancyGrid, is_solid: NDArray[np.bool_], plan_geometry: GridGeometry, T_world_map: SE2
) -> MapError:
    """Compare an occupancy map with the true floor plan.

    Args:
        grid: The map.
        is_solid: (rows, columns) whether a cell of the plan is solid at the height of the lasers; finer than the map.
        plan_geometry: Geometry of the plan in the world.
        T_world_map: Pose of the map in the world.

    Raises:
        InputError: The map has no occupied or no free cell, or the plan has no surface.
    """
    from scipy.ndimage import binary_dilation

    occupied, free = grid.cells >= OCCUPIED_THRESHOLD, (grid.cells != UNKNOWN) & (grid.cells <= FREE_THRESHOLD)
    if not occupied.any() or not free.any() or not is_solid.any() or is_solid.all():
        raise InputError("a map or plan without walls or without room cannot be compared", valid="both of both")
    T_plan_cells = plan_geometry.T_map_grid.inverse() @ T_world_map
    plan_occupied = _sample_plan(grid.geometry, is_solid, plan_geometry, T_world_map)
    is_known = (grid.cells != UNKNOWN) & _is_in_plan(grid.geometry, plan_geometry, T_world_map)
    wall_distances = _distance_to_surface(
        T_plan_cells @ grid.geometry.cell_centers(np.argwhere(occupied)), is_solid, plan_geometry
    )
    surface_cells = plan_occupied & binary_dilation(~plan_occupied, _NEIGHBORHOOD)
    observed_surface = surface_cells & binary_dilation(free, _NEIGHBORHOOD, iterations=2)
    matched = occupied & binary_dilation(plan_occupied, _NEIGHBORHOOD)
    missed = observed_surface & ~binary_dilation(occupied, _NEIGHBORHOOD)
    plan_free = ~plan_occupied & is_known
    intersection, union = free & plan_free, free | plan_free
    # where the border of a wall runs through a cell, either answer is right
    border_cells = binary_dilation(plan_occupied, _NEIGHBORHOOD) & binary_dilation(~plan_occupied, _NEIGHBORHOOD)
    intersection, union = intersection & ~border_cells, union & ~border_cells
    return MapError(
        wall_error=float(wall_distances.mean()),
        wall_error_p95=float(np.percentile(wall_distances, 95)),
        iou_occupied=float(matched.sum() / (occupied.sum() + missed.sum())),
        iou_free=float(intersection.sum() / max(int(union.sum()), 1)),
        coverage=_coverage(grid, is_solid, plan_geometry, T_world_map),
        n_occupied_cells=int(occupied.sum()),
    )


def _distance_to_surface(
    points: NDArray[np.float64], is_solid: NDArray[np.bool_], plan_geometry: GridGeometry
) -> NDArray[np.float64]:
    """Return the distance (n,) of points (n, 2) in the plan's frame from the nearest true surface [m]."""
    from scipy.ndimage import distance_transform_edt

    outside, inside = distance_transform_edt(~is_solid), distance_transform_edt(is_solid)
    # both count from the middles of cells: the border between them is half a cell away
    to_surface = np.maximum(np.where(is_solid, inside, outside) - 0.5, 0.0) * plan_geometry.resolution
    cells = np.floor(points / plan_geometry.resolution).astype(np.int64)[:, ::-1]
    clipped = np.clip(cells, 0, np.array(is_solid.shape) - 1)
    outside_distance = np.linalg.norm((cells - clipped) * plan_geometry.resolution, axis=1)
    return np.asarray(to_surface[clipped[:, 0], clipped[:, 1]] + outside_distance)


def _sample_plan(
    map_geometry: GridGeometry, is_solid: NDArray[np.bool_], plan_geometry: GridGeometry, T_world_map: SE2
) -> NDArray[np.bool_]:
    """Return the plan at the centers of a map's cells; cells outside of the plan are free."""
    plan_cells = plan_geometry.cells_of_points(T_world_map @ map_geometry.cell_centers(_all_cells(map_geometry)))
    is_inside = plan_geometry.contains(plan_cells)
    result = np.zeros(map_geometry.shape, dtype=np.bool_)
    result[is_inside] = is_solid[plan_cells[is_inside][:, 0], plan_cells[is_inside][:, 1]]
    return result


def _is_in_plan(map_geometry: GridGeometry, plan_geometry: GridGeometry, T_world_map: SE2) -> NDArray[np.bool_]:
    return plan_geometry.contains(
        plan_geometry.cells_of_points(T_world_map @ map_geometry.cell_centers(_all_cells(map_geometry)))
    )


def _all_cells(geometry: GridGeometry) -> NDArray[np.int64]:
    return np.stack(np.meshgrid(*map(np.arange, geometry.shape), indexing="ij"), axis=-1)


def _coverage(grid: OccupancyGrid, is_solid: NDArray[np.bool_], plan_geometry: GridGeometry, T_world_map: SE2) -> float:
    """Return the fraction of the true free space that the map knows, of the regions in which the map has free cells."""
    from scipy.ndimage import label

    regions, _ = label(~is_solid)
    free = np.argwhere((grid.cells != UNKNOWN) & (grid.cells <= FREE_THRESHOLD))
    plan_cells = plan_geometry.cells_of_points(T_world_map @ grid.geometry.cell_centers(free))
    plan_cells = plan_cells[plan_geometry.contains(plan_cells)]
    region_counts = np.unique(regions[plan_cells[:, 0], plan_cells[:, 1]], return_counts=True)
    counts = {int(region): int(count) for region, count in zip(*region_counts, strict=True) if region > 0}
    if not counts:
        return 0.0
    region = max(counts, key=lambda number: counts[number])
    step = max(1, round(grid.geometry.resolution / plan_geometry.resolution))
    region_cells = np.argwhere(regions[::step, ::step] == region) * step
    cells = grid.geometry.cells_of_points(T_world_map.inverse() @ plan_geometry.cell_centers(region_cells))
    is_inside = grid.geometry.contains(cells)
    is_known = grid.cells[cells[is_inside][:, 0], cells[is_inside][:, 1]] != UNKNOWN
    return float(is_known.sum() / max(len(region_cells), 1))


@dataclass(frozen=True, slots=True)
class VoxelAgreement:
    """Numbers of voxels by their state in the map and in truth.

    Attributes:
        true_occupied: Occupied in the map, and a surface touches them.
        false_occupied: Occupied in the map, and none does.
        missed_occupied: Free in the map, though a surface runs through them.
    """

    true_occupied: int
    false_occupied: int
    missed_occupied: int

    @property
    def precision(self) -> float | None:
        """Return TP / (TP + FP): the fraction of occupied voxels that are truly occupied; None without such voxels."""
        return (
            self.true_occupied / (self.true_occupied + self.false_occupied)
            if self.true_occupied + self.false_occupied
            else None
        )

    @property
    def recall(self) -> float | None:
        """Return TP / (TP + FN): the fraction of truly occupied, known voxels that are occupied; None without any."""
        return (
            self.true_occupied / (self.true_occupied + self.missed_occupied)
            if self.true_occupied + self.missed_occupied
            else None
        )

    @property
    def iou(self) -> float | None:
        """Return TP / (TP + FP + FN): the intersection over union of occupied voxels, of those that the map knows."""
        total = self.true_occupied + self.false_occupied + self.missed_occupied
        return self.true_occupied / total if total else None


def compare_voxels(state: NDArray[np.uint8], touched: NDArray[np.bool_], crossed: NDArray[np.bool_]) -> VoxelAgreement:
    """Compare an octree map with ground truth, voxel by voxel.

    Only observed voxels count: the back of a wall and the inside of a box, which no camera observes, do not.  A
        surface along the border of two voxels may be in either of them: both are right, none is missed.

    Args:
        state: (nx, ny, nz) what the map says, see `dense`.
        touched: (nx, ny, nz) voxels that a true surface touches, or nearly.
        crossed: (nx, ny, nz) those that one goes through, and not only along the border.
    """
    is_occupied = state == VOXEL_OCCUPIED
    true_occupied = int(np.count_nonzero(is_occupied & touched))
    missed_occupied = int(np.count_nonzero((state == VOXEL_FREE) & crossed))
    return VoxelAgreement(true_occupied, int(np.count_nonzero(is_occupied)) - true_occupied, missed_occupied)
