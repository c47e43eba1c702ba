"""Sequences of waypoints, and the task that visits them.

A `WaypointSequence` moves nothing: its user calls ``report_arrival`` or ``report_failure``, and reads ``state``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.geometry.arrays import as_points
from roboyard.navigation.errors import NavigationError, WaypointFailedError
from roboyard.navigation.navigator.navigate import NavigateTask, NavigatorContext
from roboyard.navigation.navigator.task import NavigationState
from roboyard.navigation.path import Path

WaypointState = Literal["drive", "wait", "task", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A place to visit.

    Attributes:
        pose: ``T_map_base`` there.
        wait_ns: How long to stand there [ns].
        task: What is to be done there after that, for who knows the name; "" for nothing.

    Raises:
        InputError: a negative wait.
    """

    pose: SE2
    wait_ns: int = 0
    task: str = ""

    def __post_init__(self) -> None:
        if self.wait_ns < 0:
            raise InputError(f"a wait of {self.wait_ns} ns", valid="0 or more")


@dataclass(frozen=True, slots=True)
class MissedWaypoint:
    """A waypoint that was not reached, or at which the task failed.

    Attributes:
        index: Its place in the list.
        loop: In which round, from 0.
        cause: Why.
    """

    index: int
    loop: int
    cause: str


class WaypointSequence:
    """Visits waypoints in order, in one or several rounds.

    ``state`` says what is to be done with ``waypoint`` now: "drive" there, "wait", do its "task"; at the end it is
    "done", or "failed" where a waypoint was missed and ``stop_on_failure`` holds.

    Args:
        waypoints: In order.
        loops: Rounds after the first.
        first: Where the first round begins.
        stop_on_failure: Whether to end at a missed waypoint; otherwise the sequence continues with the next.

    Raises:
        InputError: no waypoint, a negative number of loops, or a first that there is not.
    """

    def __init__(
        self, waypoints: Sequence[Waypoint], *, loops: int = 0, first: int = 0, stop_on_failure: bool = True
    ) -> None:
        if not waypoints:
            raise InputError("no waypoints", valid="at least one")
        if loops < 0:
            raise InputError(f"{loops} loops", valid="0 or more")
        if not 0 <= first < len(waypoints):
            raise InputError(f"begin at waypoint {first}", valid=f"0 to {len(waypoints) - 1}")
        self.waypoints = tuple(waypoints)
        self.state: WaypointState = "drive"
        self.index, self.loop = first, 0
        self.missed: list[MissedWaypoint] = []
        self._loops, self._stop_on_failure = loops, stop_on_failure
        self._wait_end_ns = 0

    @property
    def waypoint(self) -> Waypoint:
        """The current or last waypoint."""
        return self.waypoints[self.index]

    @property
    def is_finished(self) -> bool:
        """Whether the sequence has ended."""
        return self.state in ("done", "failed")

    @property
    def n_remaining(self) -> int:
        """Visits still to be made, with the present one."""
        if self.is_finished:
            return 0
        count = len(self.waypoints)
        return count - self.index + (self._loops - self.loop) * count

    def report_arrival(self, time_ns: int) -> None:
        """The robot is there."""
        self._require_state("drive")
        self.state, self._wait_end_ns = "wait", time_ns + self.waypoint.wait_ns
        self.update(time_ns)

    def update(self, time_ns: int) -> None:
        """Update the time; ends a wait that is over."""
        if self.state == "wait" and time_ns >= self._wait_end_ns:
            if self.waypoint.task:
                self.state = "task"
            else:
                self._advance()

    def report_task_done(self) -> None:
        """The task at the waypoint is finished."""
        self._require_state("task")
        self._advance()

    def report_failure(self, cause: str) -> None:
        """The drive to the waypoint, or its task, has failed."""
        self._require_state("drive", "task")
        self.missed.append(MissedWaypoint(self.index, self.loop, cause))
        if self._stop_on_failure:
            self.state = "failed"
        else:
            self._advance()

    def _advance(self) -> None:
        if self.index + 1 < len(self.waypoints):
            self.index, self.state = self.index + 1, "drive"
        elif self.loop < self._loops:
            self.index, self.loop, self.state = 0, self.loop + 1, "drive"
        else:
            self.state = "done"

    def _require_state(self, *states: WaypointState) -> None:
        if self.state not in states:
            raise InputError(f"the sequence is at '{self.state}'", valid=" or ".join(states))

    def save_state(self) -> dict[str, Any]:
        """Return the progress as plain data, without the waypoints."""
        missed = [(miss.index, miss.loop, miss.cause) for miss in self.missed]
        return {"at": (self.state, self.index, self.loop, self._wait_end_ns), "missed": missed}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of ``save``, for the same waypoints."""
        self.state, self.index, self.loop, self._wait_end_ns = saved["at"]
        self.missed = [MissedWaypoint(*miss) for miss in saved["missed"]]


def waypoints_from_polyline(points: ArrayLike, final_heading: float | None = None) -> tuple[Waypoint, ...]:
    """Waypoints at the nodes of a route, each looking to the next.

    Args:
        points: (n, 2) [m] in the map.
        final_heading: At the last one [rad]; None: as it is come to.

    Raises:
        InputError: no points, or points of another shape.
    """
    nodes = as_points(points, 2).reshape(-1, 2)
    if not len(nodes):
        raise InputError("a route without nodes", valid="at least one")
    steps = np.diff(nodes, axis=0)
    headings = [0.0]
    for dx, dy in steps.tolist():
        headings.append(math.atan2(dy, dx) if (dx, dy) != (0.0, 0.0) else headings[-1])
    headings = [*headings[1:], headings[-1] if final_heading is None else final_heading]
    return tuple(Waypoint(SE2(x, y, heading)) for (x, y), heading in zip(nodes.tolist(), headings, strict=True))


class WaypointTask:
    """Brings the robot to waypoints in order and stops at each for its wait.

    Args:
        context: What it navigates with.
        sequence: Of the waypoints; tasks at waypoints are skipped.
    """

    def __init__(self, context: NavigatorContext, sequence: WaypointSequence) -> None:
        self._context, self.sequence = context, sequence
        self._navigate_task: NavigateTask | None = None

    @property
    def path(self) -> Path | None:
        """The way to the present waypoint."""
        return None if self._navigate_task is None else self._navigate_task.path

    @property
    def activity(self) -> str:
        """For people."""
        activity = self.sequence.state if self._navigate_task is None else self._navigate_task.activity
        return f"waypoint {self.sequence.index + 1}: {activity}"

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """See ``Task``; raises WaypointMissed where one was missed and the sequence stops at that."""
        sequence, time_ns = self.sequence, round(state.time * 1e9)
        sequence.update(time_ns)
        while sequence.state == "task":
            sequence.report_task_done()
        if sequence.state == "failed":
            missed = sequence.missed[-1]
            raise WaypointFailedError(f"waypoint {missed.index + 1} was missed: {missed.cause}")
        if sequence.is_finished:
            return None
        if sequence.state == "wait":
            return ZERO_TWIST
        if self._navigate_task is None:
            self._navigate_task = NavigateTask(self._context, [sequence.waypoint.pose])
        try:
            twist = self._navigate_task.compute_command(state)
        except NavigationError as error:
            self._navigate_task = None
            sequence.report_failure(error.cause)
            return ZERO_TWIST
        if twist is None:
            self._navigate_task = None
            sequence.report_arrival(time_ns)
            return ZERO_TWIST
        return twist

    def save_state(self) -> dict[str, Any]:
        """See ``Task``."""
        return {
            "sequence": self.sequence.save_state(),
            "drive": None if self._navigate_task is None else self._navigate_task.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Task``."""
        self.sequence.load_state(saved["sequence"])
        if saved["drive"] is not None:
            self._navigate_task = NavigateTask(self._context, [self.sequence.waypoint.pose])
            self._navigate_task.load_state(saved["drive"])
