"""Maps: made from scans (SLAM), kept in files, and compared with the truth.

Everything here works on arrays and whole logs; the nodes that connect it to topics are in ``roboyard.mapping.nodes``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.evaluation.trajectory_error import (
        AbsoluteError,
        RelativeError,
        absolute_error,
        align,
        relative_error,
    )
    from roboyard.mapping.g2o import read_g2o, write_g2o
    from roboyard.mapping.graph_config import GraphSlamConfig
    from roboyard.mapping.graph_file import MappedPlace, read_place, write_place
    from roboyard.mapping.graph_localizer import GraphLocalizer, GraphLocalizerConfig
    from roboyard.mapping.graph_slam import GraphSlam
    from roboyard.mapping.map_files import MapInfo, MapMode, load_map, read_map_info, save_map
    from roboyard.mapping.pose_graph import PoseGraph
    from roboyard.mapping.relations import RelationErrors, Relations, read_relations, relation_errors, write_relations
    from roboyard.mapping.scan import Scan
    from roboyard.mapping.slam import Slam
    from roboyard.mapping.statistics import ErrorStatistics
    from roboyard.mapping.trajectory import Trajectory
    from roboyard.mapping.tum import read_tum, write_tum

__all__ = [
    "AbsoluteError",
    "ErrorStatistics",
    "GraphLocalizer",
    "GraphLocalizerConfig",
    "GraphSlam",
    "GraphSlamConfig",
    "MapInfo",
    "MapMode",
    "MappedPlace",
    "PoseGraph",
    "RelationErrors",
    "Relations",
    "RelativeError",
    "Scan",
    "Slam",
    "Trajectory",
    "absolute_error",
    "align",
    "load_map",
    "read_g2o",
    "read_map_info",
    "read_place",
    "read_relations",
    "read_tum",
    "relation_errors",
    "relative_error",
    "save_map",
    "write_g2o",
    "write_place",
    "write_relations",
    "write_tum",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "evaluation.trajectory_error": ("AbsoluteError", "RelativeError", "absolute_error", "align", "relative_error"),
    "g2o": ("read_g2o", "write_g2o"),
    "graph_config": ("GraphSlamConfig",),
    "graph_file": ("MappedPlace", "read_place", "write_place"),
    "graph_localizer": ("GraphLocalizer", "GraphLocalizerConfig"),
    "graph_slam": ("GraphSlam",),
    "map_files": ("MapInfo", "MapMode", "load_map", "read_map_info", "save_map"),
    "pose_graph": ("PoseGraph",),
    "relations": ("RelationErrors", "Relations", "read_relations", "relation_errors", "write_relations"),
    "scan": ("Scan",),
    "slam": ("Slam",),
    "statistics": ("ErrorStatistics",),
    "trajectory": ("Trajectory",),
    "tum": ("read_tum", "write_tum"),
})  # fmt: skip
