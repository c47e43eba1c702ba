"""What is about a robot, by all its sensors: what they see now, and what they lately saw where they look no more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, UnknownNameError
from roboyard.geometry import SE2

_GRAIN = 0.03
"""Of remembered points no two are in one square of this side [m]."""


@dataclass(frozen=True, slots=True)
class View:
    """What one sensor saw at one moment, in a frame that stays in place.

    Attributes:
        pose: Of the sensor.
        points: (n, 2) where it saw something [m].
        first: From which direction on it looked, in its own frame [rad].
        last: To which.
        reach: How far [m].
    """

    pose: SE2
    points: NDArray[np.float64]
    first: float = -math.pi
    last: float = math.pi
    reach: float = math.inf

    def covers(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """At which of the points (n, 2) it looked."""
        x, y = (self.pose.inverse() @ points).T
        turn = (np.arctan2(y, x) - self.first) % (2.0 * math.pi)
        return np.asarray((turn <= self.last - self.first) & (np.hypot(x, y) <= self.reach))


class Surroundings:
    """Points about the robot, by the name of the sensor that saw them.

    A robot that backs out is blind with a laser that looks ahead: so what was seen is remembered for a while where no
    newer view looked at it again.

    Args:
        timeouts: After how long without a view each sensor counts as silent [s].
        memory: How long points are remembered [s].
        radius: Only points as near as this are remembered [m].

    Raises:
        ConfigError: a number out of range.
    """

    def __init__(self, timeouts: Mapping[str, float], *, memory: float = 10.0, radius: float = 4.0) -> None:
        if not all(timeout > 0.0 for timeout in timeouts.values()):
            raise ConfigError(f"timeouts {dict(timeouts)}", location="surroundings", valid="positive times [s]")
        if not (0.0 <= memory <= 3600.0 and 0.0 < radius < math.inf):
            raise ConfigError(
                f"memory {memory} s, radius {radius} m", location="surroundings", valid="0 to 3600 s, > 0 m"
            )
        self._timeouts = dict(timeouts)
        self._memory_ns, self._radius = round(memory * 1e9), radius
        self._heard_ns: dict[str, int] = {}
        self._now: dict[str, NDArray[np.float64]] = {}
        self._past: dict[str, NDArray[np.float64]] = {}  # x, y, time [ns]

    def see(self, name: str, view: View, time_ns: int) -> None:
        """Take what a sensor saw at a time [ns].

        Raises:
            UnknownNameError: there is no such sensor.
        """
        if name not in self._timeouts:
            raise UnknownNameError(f"no sensor '{name}'", valid=", ".join(self._timeouts) or "none")
        before = self._now.get(name, np.zeros((0, 2)))
        stamped = np.column_stack([before, np.full(len(before), float(self._heard_ns.get(name, 0)))])
        past = np.vstack([stamped, self._past.get(name, np.zeros((0, 3)))])
        near = np.hypot(*(past[:, :2] - view.pose.xy).T) <= self._radius
        past = past[near & (time_ns - past[:, 2] <= self._memory_ns) & ~view.covers(past[:, :2])]
        _, first = np.unique(np.floor(past[:, :2] / _GRAIN), axis=0, return_index=True)
        self._past[name] = past[np.sort(first)]
        self._now[name], self._heard_ns[name] = view.points, time_ns

    def points(self, pose: SE2) -> NDArray[np.float64]:
        """All of them (n, 2) [m] as seen from a base that stands at a pose."""
        clouds = [self._now[name] for name in self._now] + [past[:, :2] for past in self._past.values()]
        return np.ascontiguousarray(pose.inverse() @ np.vstack([np.zeros((0, 2)), *clouds]))

    def silent(self, now_ns: int, since_ns: int = 0) -> dict[str, float]:
        """Sensors that say nothing for longer than they may, and for how long [s]; ``since_ns``: when all began."""
        quiet = {name: (now_ns - self._heard_ns.get(name, since_ns)) * 1e-9 for name in self._timeouts}
        return {
            name: seconds
            for name, seconds in quiet.items()
            if seconds > self._timeouts[name] or name not in self._heard_ns
        }

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {"heard": dict(self._heard_ns), "now": dict(self._now), "past": dict(self._past)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._heard_ns = dict(state["heard"])
        self._now = {name: np.asarray(points, dtype=np.float64) for name, points in state["now"].items()}
        self._past = {name: np.asarray(points, dtype=np.float64) for name, points in state["past"].items()}
