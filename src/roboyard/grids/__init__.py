"""Grids over the plane: where their cells lie, what they hold, and the kernels that mapping, localisation and
navigation share.

A grid's array has shape (rows, columns): rows go along y, columns along x of the grid's own frame, whose origin is the
corner of cell (0, 0).
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.grids.casting import simulate_scans
    from roboyard.grids.distance import distance_transform, surface_cells
    from roboyard.grids.evidence import InverseSensorModel, OccupancyMapBuilder
    from roboyard.grids.frame import GridGeometry
    from roboyard.grids.likelihood import LikelihoodField
    from roboyard.grids.occupancy import FREE, OCCUPIED, UNKNOWN, OccupancyGrid
    from roboyard.grids.rays import cast_rays, count_hits_and_misses
    from roboyard.grids.thinning import VoxelPoints, voxel_downsample

__all__ = [
    "FREE",
    "OCCUPIED",
    "UNKNOWN",
    "GridGeometry",
    "InverseSensorModel",
    "LikelihoodField",
    "OccupancyGrid",
    "OccupancyMapBuilder",
    "VoxelPoints",
    "cast_rays",
    "count_hits_and_misses",
    "distance_transform",
    "simulate_scans",
    "surface_cells",
    "voxel_downsample",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "casting": ("simulate_scans",),
    "distance": ("distance_transform", "surface_cells"),
    "evidence": ("InverseSensorModel", "OccupancyMapBuilder"),
    "frame": ("GridGeometry",),
    "likelihood": ("LikelihoodField",),
    "occupancy": ("FREE", "OCCUPIED", "UNKNOWN", "OccupancyGrid"),
    "rays": ("count_hits_and_misses", "cast_rays"),
    "thinning": ("VoxelPoints", "voxel_downsample"),
})  # fmt: skip
