"""Poses and scans of messages, seen from above."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2


def yaw_of(q: Any) -> float:
    """Heading [rad] of a geometry_msgs/Quaternion."""
    return math.atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z))


def tilt_of(q: Any) -> float:
    """Angle [rad] between the rotated and the true vertical."""
    return math.acos(max(-1.0, min(1.0, 1.0 - 2.0 * (q.x * q.x + q.y * q.y))))


def position_and_yaw(pose: Any) -> tuple[float, float, float]:
    """x, y [m] and heading [rad] of a geometry_msgs/Pose, as plain numbers."""
    p, q = pose.position, pose.orientation
    w, x, y, z = q.w, q.x, q.y, q.z
    return p.x, p.y, math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def planar(pose: Any) -> SE2:
    """Position and heading of a geometry_msgs/Pose."""
    return SE2(*position_and_yaw(pose))


def scan_points(scan: Any) -> NDArray[np.float64]:
    """Where the beams of a sensor_msgs/LaserScan hit something: (n, 2) [m] in the lidar's frame."""
    ranges = np.asarray(scan.ranges, dtype=float)
    angles = scan.angle_min + scan.angle_increment * np.arange(len(ranges))
    seen = np.isfinite(ranges) & (ranges >= scan.range_min) & (ranges < scan.range_max)
    ranges, angles = ranges[seen], angles[seen]
    return np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles)])
