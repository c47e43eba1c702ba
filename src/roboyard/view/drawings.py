"""Messages as shapes that a page can draw: points, lines, poses, cones, boxes, surfaces, pictures, texts.

A drawing is a head and arrays (see `wire.packed`).  Its coordinates are in the frame of the message; the ``pose`` that
the caller adds to the head (x, y, z, w, x, y, z) says where that frame is in the world.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.messages.convert import scan_points
from roboyard.messages.convert.clouds import cloud_to_arrays, unpack_rgb
from roboyard.messages.convert.people import person_capsules_from_msg

MOST_POINTS = 60_000
"""Points of one cloud that are sent; of more every second, third … is."""


class Drawing(NamedTuple):
    """Head and arrays of a shape."""

    head: dict[str, Any]
    arrays: tuple[NDArray[Any] | bytes, ...] = ()


def pose_row(pose: Any) -> list[float]:
    """x, y, z, w, x, y, z of a geometry_msgs/Pose."""
    p, q = pose.position, pose.orientation
    return [p.x, p.y, p.z, q.w, q.x, q.y, q.z]


def _flat(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Points in the plane or in space as (n, 3) of 32 bits."""
    rows = np.asarray(points, dtype=np.float32).reshape(len(points), -1)
    return rows if rows.shape[1] == 3 else np.column_stack([rows, np.zeros(len(rows), np.float32)])


def _scan(message: Any) -> Drawing:
    return Drawing({"shape": "points", "style": "scan"}, (_flat(scan_points(message)),))


def _cloud(message: Any) -> Drawing:
    count = int(message.width) * int(message.height)
    columns = cloud_to_arrays(message, stride=max(1, -(-count // MOST_POINTS)))
    points = np.stack([columns[name] for name in "xyz"], axis=1).astype(np.float32)
    whole = np.isfinite(points).all(axis=1)
    arrays: tuple[NDArray[Any], ...] = (points[whole],)
    if "rgb" in columns:
        colours = unpack_rgb(columns["rgb"][whole])
        arrays += (np.ascontiguousarray(colours[:, :3]),)
    return Drawing({"shape": "points", "style": "cloud"}, arrays)


def _path(message: Any) -> Drawing:
    rows = [pose_row(item.pose)[:3] for item in message.poses]
    return Drawing({"shape": "line"}, (_flat(np.array(rows).reshape(-1, 3)),))


def _pose(message: Any) -> Drawing:
    return Drawing({"shape": "arrows", "size": 0.5}, (_rows([message.pose]),))


def _uncertain(message: Any) -> Drawing:
    covariance = np.asarray(message.pose.covariance, dtype=np.float64).reshape(6, 6)[:2, :2]
    head: dict[str, Any] = {"shape": "arrows", "size": 0.5}
    if np.isfinite(covariance).all():
        values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
        spread = np.sqrt(np.maximum(values, 0.0))
        head["ellipse"] = [float(spread[1]), float(spread[0]), float(np.arctan2(vectors[1, 1], vectors[0, 1]))]
    return Drawing(head, (_rows([message.pose.pose]),))


def _odometry(message: Any) -> Drawing:
    return Drawing({"shape": "arrows", "size": 0.35}, (_rows([message.pose.pose]),))


def _poses(message: Any) -> Drawing:
    return Drawing({"shape": "arrows", "size": 0.2}, (_rows(message.poses),))


def _particles(message: Any) -> Drawing:
    return Drawing({"shape": "arrows", "size": 0.12}, (_rows([item.pose for item in message.particles]),))


def _rows(poses: Any) -> NDArray[np.float32]:
    return np.array([pose_row(pose) for pose in poses], dtype=np.float32).reshape(-1, 7)


def _range(message: Any) -> Drawing:
    seen = message.range if np.isfinite(message.range) else message.max_range
    return Drawing({"shape": "cone", "angle": float(message.field_of_view), "range": float(seen)})


def _polygon(message: Any) -> Drawing:
    rows = [[p.x, p.y, p.z] for p in message.polygon.points]
    return Drawing({"shape": "line", "closed": True}, (_flat(np.array(rows).reshape(-1, 3)),))


def _wrench(message: Any) -> Drawing:
    force = message.wrench.force
    return Drawing({"shape": "force", "force": [force.x, force.y, force.z]})


def _contacts(message: Any) -> Drawing:
    """Where robots touch, and with what force."""
    places, forces = [], []
    for state in message.states:
        for index, place in enumerate(state.contact_positions):
            places.append([place.x, place.y, place.z])
            force = state.wrenches[index].force if index < len(state.wrenches) else None
            forces.append([force.x, force.y, force.z] if force is not None else [0.0, 0.0, 0.0])
    arrays = (_flat(np.array(places).reshape(-1, 3)), _flat(np.array(forces).reshape(-1, 3)))
    return Drawing({"shape": "forces"}, arrays)


def _people(message: Any) -> Drawing:
    ends = [person_capsules_from_msg(person)[1].reshape(-1, 3) for person in message.people]
    return Drawing({"shape": "segments"}, (_flat(np.concatenate([np.zeros((0, 3)), *ends])),))


def _body(message: Any) -> Drawing:
    return Drawing({"shape": "segments"}, (_flat(person_capsules_from_msg(message)[1].reshape(-1, 3)),))


def _detections(message: Any) -> Drawing:
    """Boxes or axes where something was recognised, with its name."""
    poses, names = [], []
    for item in message.detections:
        for found in item.results[:1]:
            poses.append(found.pose.pose)
            names.append(str(found.hypothesis.class_id))
    return Drawing({"shape": "axes", "size": 0.08, "names": names}, (_rows(poses),))


_MARKERS = {
    0: "arrow",
    1: "cube",
    2: "sphere",
    3: "cylinder",
    4: "strip",
    5: "lines",
    6: "points",
    7: "points",
    8: "points",
}
"""Kinds of visualization_msgs/Marker."""


def _markers(message: Any) -> Drawing:
    """Those of an array that are not taken away; they are taken to be in the frame of the first."""
    told: list[dict[str, Any]] = []
    arrays: list[NDArray[np.float32]] = []
    for marker in message.markers:
        kind = _MARKERS.get(int(marker.type))
        if kind is None or marker.action != marker.ADD:
            continue
        colour, scale = marker.color, marker.scale
        one: dict[str, Any] = {
            "kind": kind, "pose": pose_row(marker.pose), "scale": [scale.x, scale.y, scale.z],
            "colour": [colour.r, colour.g, colour.b, colour.a],
        }  # fmt: skip
        if len(marker.points):
            one["points"] = len(arrays)
            arrays.append(_flat(np.array([[p.x, p.y, p.z] for p in marker.points])))
        told.append(one)
    return Drawing({"shape": "markers", "markers": told}, tuple(arrays))


DRAWINGS: dict[str, Callable[[Any], Drawing]] = {
    "sensor_msgs/msg/LaserScan": _scan,
    "sensor_msgs/msg/PointCloud2": _cloud,
    "sensor_msgs/msg/Range": _range,
    "nav_msgs/msg/Path": _path,
    "nav_msgs/msg/Odometry": _odometry,
    "nav2_msgs/msg/ParticleCloud": _particles,
    "geometry_msgs/msg/PoseStamped": _pose,
    "geometry_msgs/msg/PoseArray": _poses,
    "geometry_msgs/msg/PoseWithCovarianceStamped": _uncertain,
    "geometry_msgs/msg/PolygonStamped": _polygon,
    "geometry_msgs/msg/WrenchStamped": _wrench,
    "gazebo_msgs/msg/ContactsState": _contacts,
    "vision_msgs/msg/Detection3DArray": _detections,
    "visualization_msgs/msg/MarkerArray": _markers,
    "roboyard_msgs/msg/PersonBody": _body,
    "roboyard_msgs/msg/TrackedPeople": _people,
}
"""What makes a drawing of a message, by its type; surfaces and pictures are in modules of their own."""
