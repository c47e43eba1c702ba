"""From messages of sensors to what the collision monitor may take for seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3
from roboyard.messages.convert.clouds import cloud_points
from roboyard.messages.convert.scans import scan_angles, scan_points
from roboyard.safety.surroundings import View

_SPACING = 0.05
"""Between the points that stand for the arc of an echo [m]."""


def view_of_scan(scan: Any, T_odom_base: SE2, T_base_sensor: SE3) -> View:
    """Of a sensor_msgs/LaserScan.

    Raises:
        InputError: none of its beams measured anything, or its angles make no sense.
    """
    ranges = np.asarray(scan.ranges, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        measured = ((ranges >= scan.range_min) & (ranges <= scan.range_max)) | np.isposinf(ranges)
    if not measured.any():
        raise InputError(f"a scan of {len(ranges)} beams, none of which measured anything", valid="ranges, or infinite")
    step = float(scan.angle_increment)
    if not (math.isfinite(step) and step != 0.0 and math.isfinite(scan.angle_min)):
        raise InputError(f"beams from {scan.angle_min} in steps of {step} rad", valid="finite angles")
    pose = T_odom_base @ SE2.from_se3(T_base_sensor)
    flat = T_base_sensor @ np.column_stack([scan_points(scan), np.zeros(len(scan_points(scan)))])
    ends = scan_angles(scan)[[0, -1]]
    # of a laser that hangs upside down the beams run the other way
    upright = float(T_base_sensor.matrix()[2, 2]) > 0.0
    first, last = sorted(ends.tolist()) if upright else sorted((-ends).tolist())
    return View(pose, T_odom_base @ flat[:, :2], first, last, float(scan.range_max))


def view_of_cloud(cloud: Any, T_odom_base: SE2, T_base_sensor: SE3, low: float, high: float) -> View:
    """Of a sensor_msgs/PointCloud2: its points between two heights over the base's ground [m].

    Raises:
        MessageError: no such cloud.
    """
    points = T_base_sensor @ cloud_points(cloud)
    kept = points[(points[:, 2] >= low) & (points[:, 2] <= high)]
    return View(T_odom_base @ SE2.from_se3(T_base_sensor), T_odom_base @ kept[:, :2], 0.0, 2.0 * math.pi)


def view_of_range(echo: Any, T_odom_base: SE2, T_base_sensor: SE3) -> View:
    """Of a sensor_msgs/Range: points on the arc where something is.

    Raises:
        InputError: it is no measurement.
    """
    distance, half = float(echo.range), 0.5 * float(echo.field_of_view)
    if distance == -math.inf:
        distance = float(echo.min_range)
    if math.isnan(distance) or not (math.isfinite(half) and half > 0.0):
        raise InputError(f"an echo at {distance} m in a cone of {2.0 * half} rad", valid="metres and radians")
    pose = T_odom_base @ SE2.from_se3(T_base_sensor)
    points = np.zeros((0, 2))
    if distance < echo.max_range:
        angles = np.linspace(-half, half, max(math.ceil(2.0 * half * distance / _SPACING) + 1, 4))
        points = distance * np.column_stack([np.cos(angles), np.sin(angles)])
    return View(pose, pose @ points, -half, half, float(echo.max_range))
