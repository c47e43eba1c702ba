"""Trajectories and pose graphs as messages."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from roboyard.geometry import SE2
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.trajectory import Trajectory
from roboyard.messages import msg
from roboyard.messages.convert import MarkerStyle, make_header, points_marker, pose_stamped_to_msg

_NODE, _EDGE, _LOOP = (0.04, 0.43, 0.45, 1.0), (0.35, 0.42, 0.48, 1.0), (0.73, 0.22, 0.31, 1.0)
_WIDTH: Final = 0.03


def trajectory_to_msg(trajectory: Trajectory, frame: str, time_ns: int) -> Any:
    """nav_msgs/Path; each pose has its own time."""
    rows = zip(trajectory.times_ns.tolist(), trajectory.poses.tolist(), strict=True)
    return msg.Path(
        make_header(frame, time_ns), [pose_stamped_to_msg(SE2(*pose), frame, at_ns) for at_ns, pose in rows]
    )


def graph_to_msg(graph: PoseGraph, frame: str, time_ns: int) -> Any:
    """visualization_msgs/MarkerArray: the nodes as balls, edges between neighbours and loops as lines."""
    places = graph.poses[:, :2]
    ends = places[graph.pairs].reshape(-1, 2, 2) if len(graph.pairs) else np.zeros((0, 2, 2))
    drawn = [
        (msg.Marker.SPHERE_LIST, places, _NODE, 2.0 * _WIDTH),
        (msg.Marker.LINE_LIST, ends[~graph.loops].reshape(-1, 2), _EDGE, _WIDTH),
        (msg.Marker.LINE_LIST, ends[graph.loops].reshape(-1, 2), _LOOP, _WIDTH),
    ]
    return msg.MarkerArray(
        [
            points_marker(
                points, MarkerStyle(kind, colour, (size, size, size)), namespace="graph", marker_id=number, frame=frame,
                time_ns=time_ns,
            )
            for number, (kind, points, colour, size) in enumerate(drawn)
        ]
    )  # fmt: skip
