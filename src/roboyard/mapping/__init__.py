"""Maps: made from scans (SLAM), kept in files, and compared with the truth.

Everything here works on arrays and whole logs; the nodes that connect it to topics are in ``roboyard.mapping.nodes``.
"""

from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.scan import Scan
from roboyard.mapping.slam import Slam
from roboyard.mapping.trajectory import Trajectory

__all__ = ["PoseGraph", "Scan", "Slam", "Trajectory"]
