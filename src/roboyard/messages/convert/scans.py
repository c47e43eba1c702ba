"""Scans of planar range finders."""

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
    """Directions and range of a planar range finder's beams, by the names of LaserScan's fields.

    Attributes:
        angle_min: Direction of the first beam in the sensor's frame [rad].
        angle_increment: From beam to beam [rad].
        range_min: Shortest valid range [m].
        range_max: Longest valid range [m].
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
    """sensor_msgs/LaserScan.

    Args:
        ranges: (n,) [m]; infinite where nothing was hit, NaN where nothing is known (REP 117).
        geometry: Of the beams.
        frame: The sensor's frame.
        time_ns: Moment of the first beam.
        scan_time: Between scans [s].
        time_increment: Between beams [s].
        intensities: (n,), or None.

    Raises:
        MessageError: arrays of wrong size.
    """
    values = as_numbers(ranges, "ranges", np.float32)
    strengths = None if intensities is None else as_numbers(intensities, "intensities", np.float32)
    if values.ndim != 1 or (strengths is not None and strengths.shape != values.shape):
        shape = None if strengths is None else strengths.shape
        raise MessageError(f"ranges of shape {values.shape}, intensities of {shape}", valid="(n,) both")
    first, step = geometry.angle_min, geometry.angle_increment
    last = first + step * max(len(values) - 1, 0)
    return message_type("sensor_msgs/msg/LaserScan")(
        make_header(frame, time_ns), float(first), float(last), float(step), float(time_increment),
        float(scan_time), float(geometry.range_min), float(geometry.range_max), values, strengths,
    )  # fmt: skip


def scan_angles(message: Any) -> NDArray[np.float64]:
    """Direction of every beam (n,) [rad] in the sensor's frame."""
    angles: NDArray[np.float64] = message.angle_min + message.angle_increment * np.arange(len(message.ranges))
    return angles


def scan_valid(message: Any) -> NDArray[np.bool_]:
    """Which beams (n,) hit something between ``range_min`` and ``range_max``."""
    ranges = np.asarray(message.ranges)
    with np.errstate(invalid="ignore"):
        # limits as the message's own 32 bits: a hit at exactly range_max counts
        low, high = np.float32(message.range_min), np.float32(message.range_max)
        valid: NDArray[np.bool_] = np.isfinite(ranges) & (ranges >= low) & (ranges <= high)
    return valid


def scan_points(message: Any) -> NDArray[np.float64]:
    """Points hit (m, 2) [m] in the sensor's frame, in the order of the beams; others are left out."""
    valid = scan_valid(message)
    ranges, angles = np.asarray(message.ranges, dtype=np.float64)[valid], scan_angles(message)[valid]
    return np.stack([ranges * np.cos(angles), ranges * np.sin(angles)], axis=-1)
