"""What connects mapping to recordings and topics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.mapping.nodes.elevation import ElevationNode
    from roboyard.mapping.nodes.log_topics import LogTopics
    from roboyard.mapping.nodes.logs import ScanLog, read_log
    from roboyard.mapping.nodes.map_server import MapSaverNode, MapServerNode
    from roboyard.mapping.nodes.octree import OctreeNode
    from roboyard.mapping.nodes.slam import SlamNode

_HOMES = {
    "ElevationNode": "elevation",
    "LogTopics": "log_topics",
    "MapSaverNode": "map_server",
    "MapServerNode": "map_server",
    "OctreeNode": "octree",
    "ScanLog": "logs",
    "SlamNode": "slam",
    "read_log": "logs",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'roboyard.mapping.nodes' has no attribute '{name}'")
    value = getattr(import_module(f"roboyard.mapping.nodes.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
