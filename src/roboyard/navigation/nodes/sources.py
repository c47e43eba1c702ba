"""From what sensors publish to observations in the odometry's frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus.transforms import TransformBuffer, TransformError
from roboyard.messages.convert import scan_angles
from roboyard.messages.time import nanoseconds
from roboyard.navigation.costmap import Observation

_MOST_WAITING = 4


class ScanSource:
    """Scans of one topic that wait for the transforms of their moment.

    Attributes:
        topic: Absolute name.
        last_ns: When the last scan came, None before the first.
        refused: Why the last scan was left out, empty if it was not.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.last_ns: int | None = None
        self.refused = ""
        self._waiting: list[Any] = []

    def take(self, scan: Any, now_ns: int) -> None:
        """Keep a scan until it is asked for."""
        self.last_ns = now_ns
        self._waiting.append(scan)
        del self._waiting[:-_MOST_WAITING]

    def observations(
        self, transforms: TransformBuffer, odom_frame: str, now_ns: int, patience_ns: int
    ) -> list[Observation]:
        """What the scans saw whose transforms are known; those that are too old for theirs to come are left out."""
        found = []
        while self._waiting:
            scan = self._waiting[0]
            time_ns = nanoseconds(scan.header.stamp)
            try:
                T_odom_laser = transforms.lookup(odom_frame, scan.header.frame_id, time_ns)
            except TransformError as error:
                if now_ns - time_ns <= patience_ns:
                    break
                self.refused = str(error)
                self._waiting.pop(0)
                continue
            self._waiting.pop(0)
            self.refused = ""
            found.append(observation(scan, T_odom_laser, self.topic))
        return found

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"last_ns": self.last_ns, "refused": self.refused, "waiting": list(self._waiting)}

    def load(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self.last_ns, self.refused, self._waiting = saved["last_ns"], saved["refused"], list(saved["waiting"])


def observation(scan: Any, T_odom_laser: Any, sensor: str) -> Observation:
    """What a sensor_msgs/LaserScan saw.

    As REP 117 has it: a range of infinity saw nothing as far as it looks, one below the least saw something too near to
    measure, NaN knows nothing.
    """
    ranges = np.asarray(scan.ranges, dtype=np.float64)
    angles = scan_angles(scan)
    known = ~np.isnan(ranges) & (ranges >= np.float32(scan.range_min))
    ranges, angles = ranges[known], angles[known]
    hits = ranges <= np.float32(scan.range_max)
    ranges = np.minimum(ranges, scan.range_max)
    points = np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles), np.zeros(len(ranges))])
    return Observation(T_odom_laser.translation, T_odom_laser @ points, hits, sensor)
