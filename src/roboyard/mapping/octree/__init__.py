"""Maps of space: voxels that are free, occupied or unknown, in OctoMap's trees."""

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
