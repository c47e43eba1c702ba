"""Planar grids: geometry, occupancy, distance fields, ray casting, and terrain.

A grid's array has shape (rows, columns): rows along y, columns along x of the grid's own frame, whose origin is the
corner of cell (0, 0).
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.grids.distance_field import LikelihoodField, distance_transform, surface_cells
    from roboyard.grids.occupancy import (
        FREE,
        FREE_THRESHOLD,
        OCCUPIED,
        OCCUPIED_THRESHOLD,
        UNKNOWN,
        GridGeometry,
        OccupancyGrid,
    )
    from roboyard.grids.occupancy_mapping import InverseSensorModel, OccupancyMapBuilder
    from roboyard.grids.ray_casting import cast_rays, count_hits_and_misses, simulate_scans
    from roboyard.grids.regions import label_components
    from roboyard.grids.voxel_filter import VoxelPoints, voxel_downsample

__all__ = [
    "FREE",
    "FREE_THRESHOLD",
    "OCCUPIED",
    "OCCUPIED_THRESHOLD",
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
    "label_components",
    "simulate_scans",
    "surface_cells",
    "voxel_downsample",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "distance_field": ("LikelihoodField", "distance_transform", "surface_cells"),
    "occupancy": (
        "FREE", "FREE_THRESHOLD", "GridGeometry", "OCCUPIED", "OCCUPIED_THRESHOLD", "OccupancyGrid", "UNKNOWN",
    ),
    "occupancy_mapping": ("InverseSensorModel", "OccupancyMapBuilder"),
    "ray_casting": ("cast_rays", "count_hits_and_misses", "simulate_scans"),
    "regions": ("label_components",),
    "voxel_filter": ("VoxelPoints", "voxel_downsample"),
})  # fmt: skip
