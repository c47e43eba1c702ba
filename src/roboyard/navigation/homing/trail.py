"""The way driven, as a bounded queue of poses."""

from __future__ import annotations

import math
from typing import Any

from roboyard.errors import ConfigError
from roboyard.geometry import SE2

_STEP = 0.05
"""Motion shorter than this is not added up yet [m]: what a pose jitters at rest is no way."""


class Trail:
    """Remembers the pose where the way began, and then every ``spacing`` metres of it.

    Args:
        spacing: Way between two points [m]; the thesis's l.
        capacity: Most points kept.  A full trail is thinned evenly, not cut: whenever a point comes, the one is
            dropped whose neighbours lie nearest to each other, never the oldest or the newest.

    Attributes:
        points: Oldest first.

    Raises:
        ConfigError: a spacing that is not positive, or room for fewer than 3 points.
    """

    def __init__(self, spacing: float = 1.0, capacity: int = 1000) -> None:
        if not (math.isfinite(spacing) and spacing > 0.0):
            raise ConfigError(f"spacing = {spacing}", location="Trail", valid="a positive number of metres")
        if capacity < 3:
            raise ConfigError(f"capacity = {capacity}", location="Trail", valid="at least 3 points")
        self.spacing = spacing
        self.capacity = capacity
        self.points: list[SE2] = []
        self._way = 0.0
        self._last: SE2 | None = None

    def __len__(self) -> int:
        return len(self.points)

    def drive(self, pose: SE2) -> bool:
        """The operator has driven on to ``pose``; gives whether it was stored."""
        if not self.points:
            self.points.append(pose)
            self._last = pose
            return True
        last = self._last or self.points[-1]
        step = last.distance(pose)
        if step < min(_STEP, self.spacing):
            return False
        self._way += step
        self._last = pose
        if self._way < self.spacing:
            return False
        if len(self.points) == self.capacity:
            self._thin()
        self.points.append(pose)
        self._way = 0.0
        return True

    def _thin(self) -> None:
        gaps = [a.distance(b) for a, b in zip(self.points, self.points[2:], strict=False)]
        del self.points[1 + gaps.index(min(gaps))]

    def take(self) -> SE2 | None:
        """Remove and give the newest point; None of an empty trail."""
        self._way, self._last = 0.0, None  # what is driven next begins at the point that is then the newest
        return self.points.pop() if self.points else None

    def restart(self, pose: SE2) -> None:
        """Forget the way: the robot is home."""
        self.points = [pose]
        self._way, self._last = 0.0, None

    def move(self, T_new_old: SE2) -> None:
        """Express all points in another frame."""
        self.points = [T_new_old @ point for point in self.points]
        self._last = None if self._last is None else T_new_old @ self._last

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        last = None if self._last is None else _plain(self._last)
        return {"points": [_plain(point) for point in self.points], "way": self._way, "last": last}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.points = [SE2(*point) for point in saved["points"]]
        self._way = saved["way"]
        self._last = None if saved["last"] is None else SE2(*saved["last"])


def _plain(pose: SE2) -> tuple[float, float, float]:
    return pose.x, pose.y, pose.theta
