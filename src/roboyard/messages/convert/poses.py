"""Conversion of poses, transforms, paths and odometry."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError, MessageError
from roboyard.geometry import SE2, SE3
from roboyard.messages import msg
from roboyard.messages.coercion import as_numbers
from roboyard.messages.time import time_to_msg

_UNMEASURED_VARIANCE = 1e6
"""Variance of coordinates that wheels cannot measure (z, roll, pitch), as in drives of ROS."""
_UNMEASURED_COVARIANCE = np.diag(
    [0.0, 0.0, _UNMEASURED_VARIANCE, _UNMEASURED_VARIANCE, _UNMEASURED_VARIANCE, 0.0]
).reshape(36)
PLANAR_COVARIANCE_INDICES = np.array([6 * row + column for row in (0, 1, 5) for column in (0, 1, 5)])
"""Indices of x, y, yaw in the (36,) covariance of ROS messages."""


def make_header(frame: str, time_ns: int) -> Any:
    """Make a std_msgs/Header."""
    return msg.Header(time_to_msg(time_ns), frame)


def point_to_msg(point: ArrayLike) -> Any:
    """Convert (3,) or, in the plane, (2,) [m] to geometry_msgs/Point."""
    return msg.Point(*_number_list(point, "point", 2, 3))


def vector_to_msg(vector: ArrayLike) -> Any:
    """Convert (3,) to geometry_msgs/Vector3."""
    return msg.Vector3(*_number_list(vector, "vector", 3))


def vector_to_array(message: Any) -> NDArray[np.float64]:
    """Return (3,) of a geometry_msgs/Vector3 or Point."""
    return np.array([message.x, message.y, message.z])


def quaternion_to_msg(quaternion: ArrayLike) -> Any:
    """Convert (4,) w, x, y, z to geometry_msgs/Quaternion."""
    w, x, y, z = _number_list(quaternion, "quaternion", 4)
    return msg.Quaternion(x, y, z, w)


def quaternion_to_array(message: Any) -> NDArray[np.float64]:
    """Return (4,) w, x, y, z of a geometry_msgs/Quaternion, not normalized."""
    return np.array([message.w, message.x, message.y, message.z])


def pose_to_msg(pose: SE3 | SE2) -> Any:
    """Convert a pose to geometry_msgs/Pose; a planar pose gets height 0."""
    if isinstance(pose, SE2):
        half = 0.5 * pose.theta
        return msg.Pose(msg.Point(pose.x, pose.y, 0.0), msg.Quaternion(0.0, 0.0, math.sin(half), math.cos(half)))
    if not isinstance(pose, SE3):
        raise MessageError(f"a pose is required, got {type(pose).__name__}", valid="SE3 or SE2")
    w, x, y, z = pose.quaternion
    return msg.Pose(msg.Point(pose.x, pose.y, pose.z), msg.Quaternion(x, y, z, w))


def pose_to_se3(message: Any) -> SE3:
    """Convert a geometry_msgs/Pose to SE3.

    Raises:
        MessageError: The quaternion is zero, or a number is not finite.
    """
    return _se3(message.orientation, message.position)


def pose_to_se2(message: Any) -> SE2:
    """Convert the planar part of a geometry_msgs/Pose to SE2.

    Raises:
        MessageError: As `pose_to_se3`.
    """
    return SE2.from_se3(pose_to_se3(message))


def pose_stamped_to_msg(pose: SE3 | SE2, frame: str, time_ns: int) -> Any:
    """Convert a pose to geometry_msgs/PoseStamped."""
    return msg.PoseStamped(make_header(frame, time_ns), pose_to_msg(pose))


def is_finite_twist(message: Any) -> bool:
    """Return whether all six numbers of a geometry_msgs/Twist are finite, and also their sum."""
    linear, angular = message.linear, message.angular
    # A sum is infinite or NaN if a part is; where the sum of finite parts overflows, nothing can be driven by them.
    return math.isfinite(linear.x + linear.y + linear.z + angular.x + angular.y + angular.z)


def transform_to_msg(T_parent_child: SE3) -> Any:
    """Convert a transform to geometry_msgs/Transform."""
    w, x, y, z = T_parent_child.quaternion
    return msg.Transform(
        msg.Vector3(T_parent_child.x, T_parent_child.y, T_parent_child.z),
        msg.Quaternion(x, y, z, w),
    )


def transform_to_se3(message: Any) -> SE3:
    """Convert a geometry_msgs/Transform to SE3.

    Raises:
        MessageError: The quaternion is zero, or a number is not finite.
    """
    return _se3(message.rotation, message.translation)


def transforms_to_msg(transforms: Iterable[tuple[SE3, str, str]], time_ns: int) -> Any:
    """Convert (T_parent_child, parent, child) of one time to tf2_msgs/TFMessage."""
    moment, stamped = time_to_msg(time_ns), msg.TransformStamped
    items = [stamped(msg.Header(moment, parent), child, transform_to_msg(pose)) for pose, parent, child in transforms]
    return msg.TFMessage(items)


def path_to_msg(poses: Sequence[SE3] | Sequence[SE2] | ArrayLike, frame: str, time_ns: int) -> Any:
    """Convert poses to nav_msgs/Path.

    Args:
        poses: Poses in `frame`, or an array (n, 3) of x, y, theta [m, rad].
        frame: Frame of the poses.
        time_ns: Time stamp of all poses [ns].
    """
    items = [p if isinstance(p, SE3 | SE2) else SE2(*_number_list(p, "path", 3)) for p in poses]  # type: ignore[union-attr]
    stamped = msg.PoseStamped
    return msg.Path(
        make_header(frame, time_ns), [stamped(make_header(frame, time_ns), pose_to_msg(pose)) for pose in items]
    )


def path_to_poses(message: Any) -> list[SE3]:
    """Return the poses of a nav_msgs/Path.

    Raises:
        MessageError: As `pose_to_se3`.
    """
    return [pose_to_se3(item.pose) for item in message.poses]


def path_to_array(message: Any) -> NDArray[np.float64]:
    """Return (n, 3) x, y, theta [m, rad] of a nav_msgs/Path.

    Raises:
        MessageError: As `pose_to_se3`.
    """
    rows = [(p.x, p.y, p.yaw) for p in path_to_poses(message)]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def twist_to_msg(linear: ArrayLike, angular: ArrayLike) -> Any:
    """Convert two vectors (3,) [m/s, rad/s] to geometry_msgs/Twist."""
    return msg.Twist(vector_to_msg(linear), vector_to_msg(angular))


def twist_to_arrays(message: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return linear and angular velocity (3,) of a geometry_msgs/Twist."""
    return vector_to_array(message.linear), vector_to_array(message.angular)


def odometry_to_msg(
    T_frame_base: SE3 | SE2,
    linear: ArrayLike,
    angular: ArrayLike,
    *,
    frame: str,
    child_frame: str,
    time_ns: int,
    pose_covariance: ArrayLike | None = None,
    twist_covariance: ArrayLike | None = None,
) -> Any:
    """Make a nav_msgs/Odometry.

    Args:
        T_frame_base: Pose of the robot.
        linear: Linear velocity (3,) in the robot's frame [m/s].
        angular: Angular velocity (3,) in the robot's frame [rad/s].
        frame: Frame of the pose, e.g. ``odom``.
        child_frame: Frame of the robot.
        time_ns: Time stamp [ns].
        pose_covariance: (6, 6) or (36,), order x, y, z, then rotations about them; None = zero.
        twist_covariance: Covariance of the velocity, in the same order.

    Raises:
        MessageError: An argument has the wrong size.
    """
    pose: Any = msg.PoseWithCovariance
    twist: Any = msg.TwistWithCovariance
    return msg.Odometry(
        make_header(frame, time_ns),
        child_frame,
        pose(pose_to_msg(T_frame_base), covariance_to_msg(pose_covariance)),
        twist(twist_to_msg(linear, angular), covariance_to_msg(twist_covariance)),
    )


def odometry_to_arrays(message: Any) -> tuple[SE3, NDArray[np.float64], NDArray[np.float64]]:
    """Return pose, linear and angular velocity (3,) of a nav_msgs/Odometry.

    Raises:
        MessageError: As `pose_to_se3`.
    """
    return pose_to_se3(message.pose.pose), *twist_to_arrays(message.twist.twist)


def covariance_to_msg(covariance: ArrayLike | None) -> NDArray[np.float64] | None:
    """Convert a covariance (6, 6) or (36,) to (36,); None remains None, which means zero in messages.

    Raises:
        MessageError: The size is wrong.
    """
    if covariance is None:
        return None
    array = as_numbers(covariance, "covariance")
    if array.shape not in ((6, 6), (36,)):
        raise MessageError(f"covariance has the shape {array.shape}", valid="(6, 6) or (36,)")
    return array.ravel()


def covariance_to_array(values: ArrayLike) -> NDArray[np.float64]:
    """Convert a message's covariance to (6, 6), for reading.

    Raises:
        MessageError: There are not 36 numbers.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size != 36:
        raise MessageError(f"covariance has the shape {array.shape}", valid="(36,)")
    return array.reshape(6, 6)


def _se3(q: Any, t: Any) -> SE3:
    try:
        return SE3((q.w, q.x, q.y, q.z), (t.x, t.y, t.z))
    except InputError as error:
        raise MessageError(str(error)) from error


def _number_list(values: ArrayLike, name: str, *counts: int) -> list[float]:
    array = as_numbers(values, name)
    if array.ndim != 1 or len(array) not in counts:
        raise MessageError(f"{name} has the shape {array.shape}", valid=f"({' or '.join(map(str, counts))},)")
    plain: list[float] = array.tolist()
    return plain


def quaternion_to_yaw(q: Any) -> float:
    """Heading [rad] of a geometry_msgs/Quaternion."""
    return math.atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z))


def pose_to_xy_yaw(pose: Any) -> tuple[float, float, float]:
    """x, y [m] and heading [rad] of a geometry_msgs/Pose, as plain numbers."""
    p, q = pose.position, pose.orientation
    w, x, y, z = q.w, q.x, q.y, q.z
    return p.x, p.y, math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def pose_to_se2_unchecked(pose: Any) -> SE2:
    """Position and heading of a geometry_msgs/Pose."""
    return SE2(*pose_to_xy_yaw(pose))


def planar_covariance_to_msg(planar: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (36,) covariance of x, y, z, roll, pitch, yaw from a (3, 3) one of x, y, yaw."""
    full = _UNMEASURED_COVARIANCE.copy()
    full[PLANAR_COVARIANCE_INDICES] = planar.reshape(9)
    return full
