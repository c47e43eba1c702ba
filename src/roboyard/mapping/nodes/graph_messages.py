"""Trajectories and pose graphs as messages."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.trajectory import Trajectory
from roboyard.messages import duration, msg
from roboyard.messages.convert import header, pose_stamped

_NODE, _EDGE, _LOOP = (0.04, 0.43, 0.45, 1.0), (0.35, 0.42, 0.48, 1.0), (0.73, 0.22, 0.31, 1.0)
_WIDTH: Final = 0.03


def trajectory_to_msg(trajectory: Trajectory, frame: str, time_ns: int) -> Any:
    """nav_msgs/Path; each pose has its own time."""
    rows = zip(trajectory.times_ns.tolist(), trajectory.poses.tolist(), strict=True)
    return msg.Path(header(frame, time_ns), [pose_stamped(SE2(*pose), frame, at_ns) for at_ns, pose in rows])


def graph_to_msg(graph: PoseGraph, frame: str, time_ns: int) -> Any:
    """visualization_msgs/MarkerArray: the nodes as balls, edges between neighbours and loops as lines."""
    places = graph.poses[:, :2]
    ends = places[graph.pairs].reshape(-1, 2, 2) if len(graph.pairs) else np.zeros((0, 2, 2))
    markers = [
        _marker(0, msg.Marker.SPHERE_LIST, places, _NODE, 2.0 * _WIDTH, frame, time_ns),
        _marker(1, msg.Marker.LINE_LIST, ends[~graph.loops].reshape(-1, 2), _EDGE, _WIDTH, frame, time_ns),
        _marker(2, msg.Marker.LINE_LIST, ends[graph.loops].reshape(-1, 2), _LOOP, _WIDTH, frame, time_ns),
    ]
    return msg.MarkerArray(markers)


def _marker(
    number: int,
    kind: int,
    places: NDArray[np.float64],
    colour: tuple[float, float, float, float],
    size: float,
    frame: str,
    time_ns: int,
) -> Any:
    # what has no points is taken away: viewers complain about empty lists
    action = msg.Marker.ADD if len(places) else msg.Marker.DELETE
    return msg.Marker(
        header=header(frame, time_ns),
        ns="graph",
        id=number,
        type=kind,
        action=action,
        pose=msg.Pose(orientation=msg.Quaternion(w=1.0)),
        scale=msg.Vector3(size, size, size),
        color=msg.ColorRGBA(*colour),
        lifetime=duration(0),
        points=[msg.Point(float(x), float(y), 0.0) for x, y in places],
    )
