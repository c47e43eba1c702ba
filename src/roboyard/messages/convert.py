"""Messages ↔ poses and arrays.  Quaternions are (w, x, y, z) inside and are turned round here, and only here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3
from roboyard.messages.time import stamp
from roboyard.messages.types import message_type


def pose_to_msg(pose: SE3) -> Any:
    """geometry_msgs/Pose."""
    make = message_type("geometry_msgs/msg/Pose")
    point, quaternion = message_type("geometry_msgs/msg/Point"), message_type("geometry_msgs/msg/Quaternion")
    w, x, y, z = pose.quaternion
    return make(point(pose.x, pose.y, pose.z), quaternion(x, y, z, w))


def pose_to_se3(message: Any) -> SE3:
    """SE3 of a geometry_msgs/Pose."""
    q, p = message.orientation, message.position
    return SE3((q.w, q.x, q.y, q.z), (p.x, p.y, p.z))


def transform_to_msg(pose: SE3) -> Any:
    """geometry_msgs/Transform."""
    make = message_type("geometry_msgs/msg/Transform")
    vector, quaternion = message_type("geometry_msgs/msg/Vector3"), message_type("geometry_msgs/msg/Quaternion")
    w, x, y, z = pose.quaternion
    return make(vector(pose.x, pose.y, pose.z), quaternion(x, y, z, w))


def transform_to_se3(message: Any) -> SE3:
    """SE3 of a geometry_msgs/Transform."""
    q, t = message.rotation, message.translation
    return SE3((q.w, q.x, q.y, q.z), (t.x, t.y, t.z))


def header(frame: str, time_ns: int) -> Any:
    """std_msgs/Header."""
    return message_type("std_msgs/msg/Header")(stamp(time_ns), frame)


def tf_message(transforms: list[tuple[SE3, str, str]], time_ns: int) -> Any:
    """tf2_msgs/TFMessage of (T_parent_child, parent, child) at one moment."""
    stamped = message_type("geometry_msgs/msg/TransformStamped")
    items = [stamped(header(parent, time_ns), child, transform_to_msg(pose)) for pose, parent, child in transforms]
    return message_type("tf2_msgs/msg/TFMessage")(items)


def pose_stamped(pose: SE3, frame: str, time_ns: int) -> Any:
    """geometry_msgs/PoseStamped."""
    return message_type("geometry_msgs/msg/PoseStamped")(header(frame, time_ns), pose_to_msg(pose))


def twist_to_msg(linear: NDArray[np.float64], angular: NDArray[np.float64]) -> Any:
    """geometry_msgs/Twist of two vectors (3,) [m/s, rad/s]."""
    vector = message_type("geometry_msgs/msg/Vector3")
    return message_type("geometry_msgs/msg/Twist")(
        vector(*(float(v) for v in linear)), vector(*(float(v) for v in angular))
    )


def twist_to_arrays(message: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Linear and angular velocity (3,) of a geometry_msgs/Twist."""
    v, w = message.linear, message.angular
    return np.array([v.x, v.y, v.z]), np.array([w.x, w.y, w.z])
