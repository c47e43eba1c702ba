"""Conversion of scans of planar range finders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import MessageError
from roboyard.messages.classes import message_type
from roboyard.messages.coercion import as_numbers
from roboyard.messages.convert.poses import make_header


@dataclass(frozen=True, slots=True)
class ScanGeometry:
    """Beam directions and range limits of a planar range finder, with the names of LaserScan's fields.

    Attributes:
        angle_min: Direction of the first beam in the sensor's frame [rad].
        angle_increment: Angle between beams [rad].
        range_min: Minimum valid range [m].
        range_max: Maximum valid range [m].
    """

    angle_min: float
    angle_increment: float
    range_min: float
    range_max: float


def scan_to_msg(
    ranges: ArrayLike,
    geometry: ScanGeometry,
    *,
    frame: str,
    time_ns: int,
    scan_time: float = 0.0,
    time_increment: float = 0.0,
    intensities: ArrayLike | None = None,
) -> Any:
    """Convert ranges to sensor_msgs/LaserScan.

    Args:
        ranges: (n,) ranges [m]; infinite without a hit, NaN if unknown (REP 117).
        geometry: Geometry of the beams.
        frame: Frame of the sensor.
        time_ns: Time of the first beam [ns].
        scan_time: Time between scans [s].
        time_increment: Time between beams [s].
        intensities: (n,) intensities, or None.

    Raises:
        MessageError: An array has the wrong size.
    """
    values = as_numbers(ranges, "ranges", np.float32)
    strengths = None if intensities is None else as_numbers(intensities, "intensities", np.float32)
    if values.ndim != 1 or (strengths is not None and strengths.shape != values.shape):
        shape = None if strengths is None else strengths.shape
        raise MessageError(f"ranges have the shape {values.shape}, intensities {shape}", valid="(n,) for both")
    first, step = geometry.angle_min, geometry.angle_increment
    last = first + step * max(len(values) - 1, 0)
    return message_type("sensor_msgs/msg/LaserScan")(
        make_header(frame, time_ns), float(first), float(last), float(step), float(time_increment),
        float(scan_time), float(geometry.range_min), float(geometry.range_max), values, strengths,
    )  # fmt: skip


def scan_angles(message: Any) -> NDArray[np.float64]:
    """Return the direction of every beam (n,) [rad] in the sensor's frame."""
    angles: NDArray[np.float64] = message.angle_min + message.angle_increment * np.arange(len(message.ranges))
    return angles


def scan_valid(message: Any) -> NDArray[np.bool_]:
    """Return which beams (n,) hit something between ``range_min`` and ``range_max``."""
    ranges = np.asarray(message.ranges)
    with np.errstate(invalid="ignore"):
        # limits with the message's 32 bits: a hit at exactly range_max counts
        low, high = np.float32(message.range_min), np.float32(message.range_max)
        valid: NDArray[np.bool_] = np.isfinite(ranges) & (ranges >= low) & (ranges <= high)
    return valid


def scan_points(message: Any) -> NDArray[np.float64]:
    """Return the points hit (m, 2) [m] in the sensor's frame, in the order of the beams, without invalid beams."""
    valid = scan_valid(message)
    ranges, angles = np.asarray(message.ranges, dtype=np.float64)[valid], scan_angles(message)[valid]
    return np.stack([ranges * np.cos(angles), ranges * np.sin(angles)], axis=-1)
