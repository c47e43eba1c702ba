"""Nodes of mapping."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.nodes.elevation import ElevationNode
    from roboyard.mapping.nodes.map_server import MapSaverNode, MapServerNode
    from roboyard.mapping.nodes.octree import OctreeNode
    from roboyard.mapping.nodes.slam import SlamNode

__all__ = [
    "ElevationNode",
    "MapSaverNode",
    "MapServerNode",
    "OctreeNode",
    "SlamNode",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "elevation": ("ElevationNode",),
    "map_server": ("MapSaverNode", "MapServerNode"),
    "octree": ("OctreeNode",),
    "slam": ("SlamNode",),
})  # fmt: skip
