"""How well a robot knows where it is in the map."""

from __future__ import annotations

import math
from typing import Any

from roboyard.geometry import wrap_angle
from roboyard.scenarios.metrics.collector import Value
from roboyard.scenarios.metrics.odometry import OdometryError, Pose

_FOUND = 0.25
"""Nearer than this it counts as found [m]."""


def _count(counts: dict[int, int], value: float) -> None:
    """Add a value to bins of equal ratio, so that a median needs no list and is exact to half a percent."""
    index = round(math.log(max(value, 1e-6)) * 100.0)
    counts[index] = counts.get(index, 0) + 1


def _median(counts: dict[int, int]) -> float:
    left = sum(counts.values()) / 2.0
    for index in sorted(counts):
        left -= counts[index]
        if left <= 0.0:
            return math.exp(index / 100.0)
    return math.nan


class LocationError(OdometryError):
    """Error of poses in the map against the truth at their stamps; the map's frame is taken for the world's.

    ``location_median_error``, ``location_rmse``, ``location_max_error``, ``location_final_error`` [m],
    ``location_heading_median_error`` [rad], ``location_found``: time [s] since when the error is below 0.25 m.
    """

    def __init__(self, truth_topic: str, pose_topic: str) -> None:
        super().__init__(truth_topic, pose_topic)
        self.names = tuple(
            f"location_{name}"
            for name in ("median_error", "rmse", "max_error", "final_error", "heading_median_error", "found")
        )
        self._errors: dict[int, int] = {}
        self._headings: dict[int, int] = {}
        self._found_ns: int | None = None
        self._moment_ns = 0

    def _compare(self, odometry: Pose, truth: Pose) -> None:
        self.error = error = math.hypot(odometry[0] - truth[0], odometry[1] - truth[1])
        self.heading_error = abs(wrap_angle(odometry[2] - truth[2]))
        self.max_error = max(self.max_error, error)
        self._squares += error * error
        _count(self._errors, error)
        _count(self._headings, self.heading_error)
        self.count += 1
        if error > _FOUND:
            self._found_ns = None
        elif self._found_ns is None:
            self._found_ns = self._moment_ns

    def _on_odometry(self, message: Any, time_ns: int) -> None:
        self._moment_ns = time_ns
        super()._on_odometry(message, time_ns)

    def result(self) -> dict[str, Value]:
        """All None while nothing could be compared."""
        if not self.count:
            return dict.fromkeys(self.names)
        values: tuple[Value, ...] = (
            _median(self._errors), math.sqrt(self._squares / self.count), self.max_error, self.error,
            _median(self._headings), None if self._found_ns is None else self._found_ns * 1e-9,
        )  # fmt: skip
        return dict(zip(self.names, values, strict=True))
