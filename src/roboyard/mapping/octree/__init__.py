"""Maps of space: voxels that are free, occupied or unknown, in OctoMap's trees."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.octree.config import OctreeConfig, SensorModel
    from roboyard.mapping.octree.files import OctreeFile, read_octree, write_octree
    from roboyard.mapping.octree.leaves import Leaves
    from roboyard.mapping.octree.octree_map import Inserted, OctreeMap

__all__ = [
    "Inserted",
    "Leaves",
    "OctreeConfig",
    "OctreeFile",
    "OctreeMap",
    "SensorModel",
    "read_octree",
    "write_octree",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "config": ("OctreeConfig", "SensorModel"),
    "files": ("OctreeFile", "read_octree", "write_octree"),
    "leaves": ("Leaves",),
    "octree_map": ("Inserted", "OctreeMap"),
})  # fmt: skip
