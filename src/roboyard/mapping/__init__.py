"""Mapping: SLAM with laser scans, elevation maps, octree maps, map files, and errors against ground truth.

Everything here works on arrays and whole logs; `roboyard.mapping.nodes` connects it to topics and recordings.
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
    from roboyard.mapping.pose_graph import PoseGraph, read_g2o, write_g2o
    from roboyard.mapping.scan import LaserScan
    from roboyard.mapping.slam import Slam
    from roboyard.mapping.trajectory import PoseTrajectory, read_tum, write_tum

__all__ = [
    "AbsoluteError",
    "ErrorStatistics",
    "GraphLocalizer",
    "GraphLocalizerConfig",
    "GraphSlam",
    "GraphSlamConfig",
    "LaserScan",
    "MapInfo",
    "MapMode",
    "PoseGraph",
    "PoseGraphMap",
    "PoseTrajectory",
    "RelationErrors",
    "Relations",
    "RelativeError",
    "Slam",
    "absolute_error",
    "align",
    "load_map",
    "load_pose_graph_map",
    "read_g2o",
    "read_map_info",
    "read_relations",
    "read_tum",
    "relation_errors",
    "relative_error",
    "save_map",
    "save_pose_graph_map",
    "write_g2o",
    "write_relations",
    "write_tum",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "evaluation.trajectory_error": (
        "AbsoluteError",
        "ErrorStatistics",
        "RelationErrors",
        "Relations",
        "RelativeError",
        "absolute_error",
        "align",
        "read_relations",
        "relation_errors",
        "relative_error",
        "write_relations",
    ),
    "graph_slam.graph_slam": ("GraphSlam", "GraphSlamConfig"),
    "graph_slam.localization": ("GraphLocalizer", "GraphLocalizerConfig"),
    "graph_slam.map_file": ("PoseGraphMap", "load_pose_graph_map", "save_pose_graph_map"),
    "map_files": ("MapInfo", "MapMode", "load_map", "read_map_info", "save_map"),
    "pose_graph": ("PoseGraph", "read_g2o", "write_g2o"),
    "scan": ("LaserScan",),
    "slam": ("Slam",),
    "trajectory": ("PoseTrajectory", "read_tum", "write_tum"),
})  # fmt: skip
