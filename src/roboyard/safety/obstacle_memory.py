"""Obstacle points around a robot from all sensors, including recent points outside the current fields of view."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, UnknownNameError
from roboyard.geometry import SE2

_MEMORY_RESOLUTION = 0.03
"""Side of the squares of which each holds at most one remembered point [m]."""


@dataclass(frozen=True, slots=True)
class SensorView:
    """Measurement of one sensor at one time, in a fixed frame.

    Attributes:
        pose: Pose of the sensor.
        points: (n, 2) measured points [m].
        min_angle: Start of its field of view, in its own frame [rad].
        max_angle: End of its field of view [rad].
        max_range: Largest range [m].
    """

    pose: SE2
    points: NDArray[np.float64]
    min_angle: float = -math.pi
    max_angle: float = math.pi
    max_range: float = math.inf

    def covers(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which of the points (n, 2) [m] are in its field of view."""
        x, y = (self.pose.inverse() @ points).T
        angle = (np.arctan2(y, x) - self.min_angle) % (2.0 * math.pi)
        return np.asarray((angle <= self.max_angle - self.min_angle) & (np.hypot(x, y) <= self.max_range))


class ObstacleMemory:
    """Obstacle points around the robot, by the name of the sensor that measured them.

    Points that leave all fields of view are remembered for a while: a robot with a laser that looks ahead can then
    drive backwards past obstacles that it has measured.

    Args:
        timeouts: Time without a view after which each sensor counts as silent [s].
        memory: Time for which points are remembered [s].
        radius: Distance within which points are remembered [m].

    Raises:
        ConfigError: a number out of range.
    """

    def __init__(self, timeouts: Mapping[str, float], *, memory: float = 10.0, radius: float = 4.0) -> None:
        if not all(timeout > 0.0 for timeout in timeouts.values()):
            raise ConfigError(f"timeouts {dict(timeouts)}", location="obstacle memory", valid="positive times [s]")
        if not (0.0 <= memory <= 3600.0 and 0.0 < radius < math.inf):
            raise ConfigError(
                f"memory {memory} s, radius {radius} m", location="obstacle memory", valid="0 to 3600 s, > 0 m"
            )
        self._timeouts = dict(timeouts)
        self._memory_ns, self._radius = round(memory * 1e9), radius
        self._received_ns: dict[str, int] = {}
        self._current_points: dict[str, NDArray[np.float64]] = {}
        self._remembered_points: dict[str, NDArray[np.float64]] = {}  # x, y, time [ns]

    def update(self, name: str, view: SensorView, time_ns: int) -> None:
        """Store the view of a sensor at a time [ns].

        Raises:
            UnknownNameError: there is no such sensor.
        """
        if name not in self._timeouts:
            raise UnknownNameError(f"no sensor '{name}'", valid=", ".join(self._timeouts) or "none")
        previous_points = self._current_points.get(name, np.zeros((0, 2)))
        stamped = np.column_stack(
            [previous_points, np.full(len(previous_points), float(self._received_ns.get(name, 0)))]
        )
        remembered = np.vstack([stamped, self._remembered_points.get(name, np.zeros((0, 3)))])
        is_nearby = np.hypot(*(remembered[:, :2] - view.pose.xy).T) <= self._radius
        remembered = remembered[
            is_nearby & (time_ns - remembered[:, 2] <= self._memory_ns) & ~view.covers(remembered[:, :2])
        ]
        _, first = np.unique(np.floor(remembered[:, :2] / _MEMORY_RESOLUTION), axis=0, return_index=True)
        self._remembered_points[name] = remembered[np.sort(first)]
        self._current_points[name], self._received_ns[name] = view.points, time_ns

    def points(self, pose: SE2) -> NDArray[np.float64]:
        """Return all points (n, 2) in the base frame, for a pose of the base [m]."""
        clouds = [self._current_points[name] for name in self._current_points] + [
            remembered[:, :2] for remembered in self._remembered_points.values()
        ]
        return np.ascontiguousarray(pose.inverse() @ np.vstack([np.zeros((0, 2)), *clouds]))

    def silent_sensors(self, now_ns: int, since_ns: int = 0) -> dict[str, float]:
        """Return how long each silent sensor has been silent [s]; ``since_ns`` is the start time [ns]."""
        message_ages = {name: (now_ns - self._received_ns.get(name, since_ns)) * 1e-9 for name in self._timeouts}
        return {
            name: seconds
            for name, seconds in message_ages.items()
            if seconds > self._timeouts[name] or name not in self._received_ns
        }

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "heard": dict(self._received_ns),
            "now": dict(self._current_points),
            "past": dict(self._remembered_points),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._received_ns = dict(state["heard"])
        self._current_points = {name: np.asarray(points, dtype=np.float64) for name, points in state["now"].items()}
        self._remembered_points = {name: np.asarray(points, dtype=np.float64) for name, points in state["past"].items()}
