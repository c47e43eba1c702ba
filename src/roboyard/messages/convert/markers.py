"""Markers for viewers."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from roboyard.messages.classes import message_type
from roboyard.messages.convert.poses import make_header
from roboyard.messages.time import duration_to_msg


def points_marker(
    points: NDArray[Any],
    *,
    namespace: str,
    marker_id: int,
    marker_type: int,
    color: tuple[float, float, float, float],
    scale: tuple[float, float, float],
    frame: str,
    time_ns: int,
    height: float = 0.0,
) -> Any:
    """visualization_msgs/Marker of points in the plane; without any, the marker is taken away.

    Args:
        places: (n, 2) in the frame [m].
        namespace: With ``number`` it names the marker: a later one of the same name replaces it.
        number: See above.
        kind: ``Marker.SPHERE_LIST``, ``Marker.LINE_LIST``, ``Marker.ARROW``, …
        colour: Red, green, blue, alpha, from 0 to 1.
        scale: As the kind wants it [m].
        frame: Of the places.
        time_ns: Moment.
        height: Of all points [m].
    """
    marker, point = message_type("visualization_msgs/msg/Marker"), message_type("geometry_msgs/msg/Point")
    upright = message_type("geometry_msgs/msg/Quaternion")(w=1.0)
    return marker(
        header=make_header(frame, time_ns),
        ns=namespace,
        id=marker_id,
        type=marker_type,
        action=marker.ADD if len(points) else marker.DELETE,  # viewers complain about empty lists
        pose=message_type("geometry_msgs/msg/Pose")(orientation=upright),
        scale=message_type("geometry_msgs/msg/Vector3")(*scale),
        color=message_type("std_msgs/msg/ColorRGBA")(*color),
        lifetime=duration_to_msg(0),
        points=[point(float(x), float(y), height) for x, y in points],
    )
