"""Visiting waypoints one after another, and keeping account of those that could not be reached."""

from __future__ import annotations

from typing import Any

from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.navigation.driving.navigate import Driver, Navigate
from roboyard.navigation.driving.situation import Situation
from roboyard.navigation.errors import NavigationError, WaypointMissed
from roboyard.navigation.path import Path
from roboyard.navigation.waypoints import WaypointSequence


class VisitWaypoints:
    """Brings the robot to waypoints in order; where one has a wait, it stands there so long.

    Args:
        driver: What it navigates with.
        sequence: Of the waypoints; tasks at waypoints are passed over, nobody here knows any.
    """

    def __init__(self, driver: Driver, sequence: WaypointSequence) -> None:
        self._driver, self.sequence = driver, sequence
        self._drive: Navigate | None = None

    @property
    def path(self) -> Path | None:
        """The way to the present waypoint."""
        return None if self._drive is None else self._drive.path

    @property
    def doing(self) -> str:
        """For people."""
        what = self.sequence.doing if self._drive is None else self._drive.doing
        return f"waypoint {self.sequence.index + 1}: {what}"

    def step(self, now: Situation) -> PlanarTwist | None:
        """See ``Task``; raises WaypointMissed where one was missed and the sequence stops at that."""
        sequence, time_ns = self.sequence, round(now.time * 1e9)
        sequence.look(time_ns)
        while sequence.doing == "task":
            sequence.task_done()
        if sequence.doing == "failed":
            missed = sequence.missed[-1]
            raise WaypointMissed(f"waypoint {missed.index + 1} was missed: {missed.cause}")
        if sequence.over:
            return None
        if sequence.doing == "wait":
            return STANDSTILL
        if self._drive is None:
            self._drive = Navigate(self._driver, [sequence.waypoint.pose])
        try:
            twist = self._drive.step(now)
        except NavigationError as error:
            self._drive = None
            sequence.failed(error.cause)
            return STANDSTILL
        if twist is None:
            self._drive = None
            sequence.arrived(time_ns)
            return STANDSTILL
        return twist

    def save_state(self) -> dict[str, Any]:
        """See ``Task``."""
        return {
            "sequence": self.sequence.save_state(),
            "drive": None if self._drive is None else self._drive.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Task``."""
        self.sequence.load_state(saved["sequence"])
        if saved["drive"] is not None:
            self._drive = Navigate(self._driver, [self.sequence.waypoint.pose])
            self._drive.load_state(saved["drive"])
