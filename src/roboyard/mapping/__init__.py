"""Mapping: SLAM with laser scans, occupancy map files, elevation maps, octree maps, and errors against ground truth.

The names that most users need: `slam`, `read_log`, `load_map`, `save_map`, `LaserScan`, `PoseTrajectory`,
`absolute_error`, `relative_error`, `GraphSlam`, `GraphLocalizer`.

    result = ry.mapping.slam("robot.bag")
    result.save("maps/office")

The modules work on arrays and whole logs; `roboyard.mapping.nodes` connects them to topics and recordings.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.evaluation.trajectory_error import (
        AbsoluteError,
        ErrorStatistics,
        RelationErrors,
        Relations,
        RelativeError,
        absolute_error,
        align,
        read_relations,
        relation_errors,
        relative_error,
        write_relations,
    )
    from roboyard.mapping.graph_slam.graph_slam import GraphSlam, GraphSlamConfig
    from roboyard.mapping.graph_slam.localization import GraphLocalizer, GraphLocalizerConfig
    from roboyard.mapping.graph_slam.map_file import PoseGraphMap, load_pose_graph_map, save_pose_graph_map
    from roboyard.mapping.map_files import MapInfo, MapMode, load_map, read_map_info, save_map
    from roboyard.mapping.mapping_report import MappingResult
    from roboyard.mapping.nodes.map_recording import slam
    from roboyard.mapping.nodes.scan_log import ScanLog, ScanLogTopics, read_log
    from roboyard.mapping.pose_graph import PoseGraph, read_g2o, write_g2o
    from roboyard.mapping.scan import LaserScan
    from roboyard.mapping.slam import Slam
    from roboyard.mapping.trajectory import PoseTrajectory, read_tum, write_tum

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "slam",
    "read_log",
    "load_map",
    "save_map",
    "LaserScan",
    "PoseTrajectory",
    "absolute_error",
    "relative_error",
    "GraphSlam",
    "GraphLocalizer",
    "AbsoluteError",
    "ErrorStatistics",
    "GraphLocalizerConfig",
    "GraphSlamConfig",
    "MapInfo",
    "MapMode",
    "MappingResult",
    "PoseGraph",
    "PoseGraphMap",
    "RelationErrors",
    "Relations",
    "RelativeError",
    "ScanLog",
    "ScanLogTopics",
    "Slam",
    "align",
    "load_pose_graph_map",
    "read_g2o",
    "read_map_info",
    "read_relations",
    "read_tum",
    "relation_errors",
    "save_pose_graph_map",
    "write_g2o",
    "write_relations",
    "write_tum",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "evaluation.trajectory_error": ("AbsoluteError", "ErrorStatistics", "RelationErrors", "Relations",
        "RelativeError", "absolute_error", "align", "read_relations", "relation_errors", "relative_error",
        "write_relations"),
    "graph_slam.graph_slam": ("GraphSlam", "GraphSlamConfig"),
    "graph_slam.localization": ("GraphLocalizer", "GraphLocalizerConfig"),
    "graph_slam.map_file": ("PoseGraphMap", "load_pose_graph_map", "save_pose_graph_map"),
    "map_files": ("MapInfo", "MapMode", "load_map", "read_map_info", "save_map"),
    "mapping_report": ("MappingResult",),
    "nodes.map_recording": ("slam",),
    "nodes.scan_log": ("ScanLog", "ScanLogTopics", "read_log"),
    "pose_graph": ("PoseGraph", "read_g2o", "write_g2o"),
    "scan": ("LaserScan",),
    "slam": ("Slam",),
    "trajectory": ("PoseTrajectory", "read_tum", "write_tum"),
})  # fmt: skip
