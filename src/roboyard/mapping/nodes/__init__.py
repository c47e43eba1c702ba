"""What connects mapping to recordings and topics."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.nodes.elevation import ElevationNode
    from roboyard.mapping.nodes.log_topics import LogTopics
    from roboyard.mapping.nodes.logs import ScanLog, read_log
    from roboyard.mapping.nodes.map_server import MapSaverNode, MapServerNode
    from roboyard.mapping.nodes.octree import OctreeNode
    from roboyard.mapping.nodes.slam import SlamNode

__all__ = [
    "ElevationNode",
    "LogTopics",
    "MapSaverNode",
    "MapServerNode",
    "OctreeNode",
    "ScanLog",
    "SlamNode",
    "read_log",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "elevation": ("ElevationNode",),
    "log_topics": ("LogTopics",),
    "logs": ("ScanLog", "read_log"),
    "map_server": ("MapSaverNode", "MapServerNode"),
    "octree": ("OctreeNode",),
    "slam": ("SlamNode",),
})  # fmt: skip
