"""Maps: made from scans (SLAM), kept in files, and compared with the truth.

Everything here works on arrays and whole logs; the nodes that connect it to topics are in ``roboyard.mapping.nodes``.
"""

from roboyard.mapping.evaluation import AbsoluteError, RelativeError, absolute_error, align, relative_error
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
    "PoseGraph",
    "RelationErrors",
    "Relations",
    "RelativeError",
    "Scan",
    "Slam",
    "Trajectory",
    "absolute_error",
    "align",
    "read_relations",
    "read_tum",
    "relation_errors",
    "relative_error",
    "write_relations",
    "write_tum",
]
