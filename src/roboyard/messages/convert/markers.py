"""Markers for viewers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from roboyard.messages.classes import message_type
from roboyard.messages.convert.poses import make_header
from roboyard.messages.time import duration_to_msg


@dataclass(frozen=True, slots=True)
class MarkerStyle:
    """Appearance of a marker.

    Attributes:
        type: ``Marker.SPHERE_LIST``, ``Marker.LINE_LIST``, ``Marker.ARROW``, …
        color: Red, green, blue, alpha, from 0 to 1.
        scale: Size along x, y and z, with the meaning that the type gives them [m].
    """

    type: int
    color: tuple[float, float, float, float]
    scale: tuple[float, float, float]


def points_marker(
    points: NDArray[Any],
    style: MarkerStyle,
    *,
    namespace: str,
    marker_id: int,
    frame: str,
    time_ns: int,
    height: float = 0.0,
) -> Any:
    """Make a visualization_msgs/Marker for planar points; without points it deletes the marker.

    Args:
        points: (n, 2) points in the frame [m].
        style: Appearance of the marker.
        namespace: Namespace; a marker replaces an earlier one with equal namespace and id.
        marker_id: Id within the namespace.
        frame: Frame of the points.
        time_ns: Time stamp [ns].
        height: Height of all points [m].
    """
    marker, point = message_type("visualization_msgs/msg/Marker"), message_type("geometry_msgs/msg/Point")
    upright = message_type("geometry_msgs/msg/Quaternion")(w=1.0)
    return marker(
        header=make_header(frame, time_ns),
        ns=namespace,
        id=marker_id,
        type=style.type,
        action=marker.ADD if len(points) else marker.DELETE,  # viewers reject empty lists
        pose=message_type("geometry_msgs/msg/Pose")(orientation=upright),
        scale=message_type("geometry_msgs/msg/Vector3")(*style.scale),
        color=message_type("std_msgs/msg/ColorRGBA")(*style.color),
        lifetime=duration_to_msg(0),
        points=[point(float(x), float(y), height) for x, y in points],
    )
