"""A map held against the true floor plan: how far its walls are off, and how well free and occupied places agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import OCCUPIED_THRESHOLD, UNKNOWN, GridGeometry, OccupancyGrid

_FREE: Final = 20
_AROUND: Final = np.ones((3, 3), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class MapComparison:
    """A map against the truth.

    Attributes:
        wall_error: Mean distance of the map's occupied cells' middles from the nearest true surface [m].
        wall_error_p95: 95 of 100 are nearer [m].
        iou_occupied: Occupied cells that both have, over those that either has, within one cell; of true surfaces
            those count at which the map knows free room.
        iou_free: Free cells that both have, over those that either has where the map knows anything.
        coverage: Share of the true free room, as far as the map's free room is connected with it, that the map knows.
        cells: Number of occupied cells of the map.
    """

    wall_error: float
    wall_error_p95: float
    iou_occupied: float
    iou_free: float
    coverage: float
    cells: int


def compare(grid: OccupancyGrid, solid: NDArray[np.bool_], frame: GridGeometry, T_world_map: SE2) -> MapComparison:
    """Hold a map against the truth.

    Args:
        grid: The map.
        solid: (rows, columns) what is truly solid at the height of the lasers; finer than the map.
        frame: Where its cells lie in the world.
        T_world_map: Where the map lies in the world.

    Raises:
        InputError: the map holds no occupied or no free cell, or the plan no surface.
    """
    from scipy.ndimage import binary_dilation

    occupied, free = grid.cells >= OCCUPIED_THRESHOLD, (grid.cells != UNKNOWN) & (grid.cells <= _FREE)
    if not occupied.any() or not free.any() or not solid.any() or solid.all():
        raise InputError("a map or plan without walls or without room cannot be compared", valid="both of both")
    T_plan_cells = frame.T_map_grid.inverse() @ T_world_map
    true = _sampled(grid.geometry, solid, frame, T_world_map)
    known = (grid.cells != UNKNOWN) & _inside(grid.geometry, frame, T_world_map)
    errors = _distances(T_plan_cells @ grid.geometry.cell_centers(np.argwhere(occupied)), solid, frame)
    surface = true & binary_dilation(~true, _AROUND)
    seen = surface & binary_dilation(free, _AROUND, iterations=2)
    hit = occupied & binary_dilation(true, _AROUND)
    missed = seen & ~binary_dilation(occupied, _AROUND)
    free_true = ~true & known
    both, either = free & free_true, free | free_true
    # where the border of a wall runs through a cell, either answer is right
    unclear = binary_dilation(true, _AROUND) & binary_dilation(~true, _AROUND)
    both, either = both & ~unclear, either & ~unclear
    return MapComparison(
        wall_error=float(errors.mean()),
        wall_error_p95=float(np.percentile(errors, 95)),
        iou_occupied=float(hit.sum() / (occupied.sum() + missed.sum())),
        iou_free=float(both.sum() / max(int(either.sum()), 1)),
        coverage=_coverage(grid, solid, frame, T_world_map),
        cells=int(occupied.sum()),
    )


def _distances(points: NDArray[np.float64], solid: NDArray[np.bool_], frame: GridGeometry) -> NDArray[np.float64]:
    """How far points (n, 2) in the plan's own frame are from the nearest true surface [m]."""
    from scipy.ndimage import distance_transform_edt

    outside, inside = distance_transform_edt(~solid), distance_transform_edt(solid)
    # both count from the middles of cells: the border between them is half a cell away
    to_surface = np.maximum(np.where(solid, inside, outside) - 0.5, 0.0) * frame.resolution
    cells = np.floor(points / frame.resolution).astype(np.int64)[:, ::-1]
    clipped = np.clip(cells, 0, np.array(solid.shape) - 1)
    beyond = np.linalg.norm((cells - clipped) * frame.resolution, axis=1)
    return np.asarray(to_surface[clipped[:, 0], clipped[:, 1]] + beyond)


def _sampled(cells: GridGeometry, solid: NDArray[np.bool_], frame: GridGeometry, T_world_map: SE2) -> NDArray[np.bool_]:
    """The plan at the middles of a map's cells; what lies beyond it is free."""
    place = frame.cells_of_points(T_world_map @ cells.cell_centers(_all(cells)))
    inside = frame.contains(place)
    result = np.zeros(cells.shape, dtype=np.bool_)
    result[inside] = solid[place[inside][:, 0], place[inside][:, 1]]
    return result


def _inside(cells: GridGeometry, frame: GridGeometry, T_world_map: SE2) -> NDArray[np.bool_]:
    return frame.contains(frame.cells_of_points(T_world_map @ cells.cell_centers(_all(cells))))


def _all(cells: GridGeometry) -> NDArray[np.int64]:
    return np.stack(np.meshgrid(*map(np.arange, cells.shape), indexing="ij"), axis=-1)


def _coverage(grid: OccupancyGrid, solid: NDArray[np.bool_], frame: GridGeometry, T_world_map: SE2) -> float:
    """Share of the true room that the map knows: of the rooms in which the map has free cells."""
    from scipy.ndimage import label

    rooms, _ = label(~solid)
    free = np.argwhere((grid.cells != UNKNOWN) & (grid.cells <= _FREE))
    place = frame.cells_of_points(T_world_map @ grid.geometry.cell_centers(free))
    place = place[frame.contains(place)]
    inside = np.unique(rooms[place[:, 0], place[:, 1]], return_counts=True)
    counts = {int(room): int(count) for room, count in zip(*inside, strict=True) if room > 0}
    if not counts:
        return 0.0
    room = max(counts, key=lambda number: counts[number])
    step = max(1, round(grid.geometry.resolution / frame.resolution))
    true = np.argwhere(rooms[::step, ::step] == room) * step
    cells = grid.geometry.cells_of_points(T_world_map.inverse() @ frame.cell_centers(true))
    there = grid.geometry.contains(cells)
    known = grid.cells[cells[there][:, 0], cells[there][:, 1]] != UNKNOWN
    return float(known.sum() / max(len(true), 1))
