"""Octree maps of free, occupied and unknown space, with OctoMap's trees and files."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.octree.octomap_files import OctreeFile, read_octree, write_octree
    from roboyard.mapping.octree.octree import OctreeLeaves
    from roboyard.mapping.octree.octree_map import InsertionStatistics, OccupancySensorModel, OctreeMap, OctreeMapConfig

__all__ = [
    "InsertionStatistics",
    "OccupancySensorModel",
    "OctreeFile",
    "OctreeLeaves",
    "OctreeMap",
    "OctreeMapConfig",
    "read_octree",
    "write_octree",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "octomap_files": ("OctreeFile", "read_octree", "write_octree"),
    "octree": ("OctreeLeaves",),
    "octree_map": ("InsertionStatistics", "OccupancySensorModel", "OctreeMap", "OctreeMapConfig"),
})  # fmt: skip
