"""Sequences of waypoints, and the navigation task that visits them (Nav2: waypoint follower).

A `WaypointSequence` is a state machine: its user calls ``report_arrival`` or ``report_failure``, and reads ``state``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

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


class WaypointState(Enum):
    """State of a sequence of waypoints; the values stand in roboyard_msgs/NavigationStatus."""

    DRIVING = "drive"
    """The robot drives to the waypoint."""
    WAITING = "wait"
    """The robot waits at the waypoint."""
    EXECUTING_TASK = "task"
    """The task at the waypoint is executed."""
    COMPLETED = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A pose to visit.

    Attributes:
        pose: Pose ``T_map_base``.
        wait_ns: Duration of the stop [ns].
        task: Name of the task to execute after the stop; "": none.

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
        index: Index of the waypoint.
        loop: Number of the loop, from 0.
        cause: Cause of the failure.
    """

    index: int
    loop: int
    cause: str


class WaypointSequence:
    """Visits waypoints in order, once or in several loops.

    ``state`` states what to do at ``waypoint`` now.  The sequence ends in `WaypointState.COMPLETED`, or in
    `WaypointState.FAILED` if a waypoint was missed and ``stop_on_failure`` is true.

    Args:
        waypoints: Waypoints in order.
        loops: Number of loops after the first.
        first: Index of the waypoint at which the first loop starts.
        stop_on_failure: Whether the sequence ends at a missed waypoint; otherwise it continues with the next.

    Raises:
        InputError: There is no waypoint, the number of loops is negative, or there is no waypoint of index ``first``.
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
        self.state = WaypointState.DRIVING
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
        return self.state in (WaypointState.COMPLETED, WaypointState.FAILED)

    @property
    def n_remaining(self) -> int:
        """Number of visits left, including the present one."""
        if self.is_finished:
            return 0
        count = len(self.waypoints)
        return count - self.index + (self._loops - self.loop) * count

    def report_arrival(self, time_ns: int) -> None:
        """Process the arrival of the robot at the waypoint."""
        self._require_state(WaypointState.DRIVING)
        self.state, self._wait_end_ns = WaypointState.WAITING, time_ns + self.waypoint.wait_ns
        self.update(time_ns)

    def update(self, time_ns: int) -> None:
        """Process the time, at which a stop may end."""
        if self.state is WaypointState.WAITING and time_ns >= self._wait_end_ns:
            if self.waypoint.task:
                self.state = WaypointState.EXECUTING_TASK
            else:
                self._advance()

    def report_task_done(self) -> None:
        """Process the end of the task at the waypoint."""
        self._require_state(WaypointState.EXECUTING_TASK)
        self._advance()

    def report_failure(self, cause: str) -> None:
        """Process the failure of the drive to the waypoint or of its task."""
        self._require_state(WaypointState.DRIVING, WaypointState.EXECUTING_TASK)
        self.missed.append(MissedWaypoint(self.index, self.loop, cause))
        if self._stop_on_failure:
            self.state = WaypointState.FAILED
        else:
            self._advance()

    def _advance(self) -> None:
        if self.index + 1 < len(self.waypoints):
            self.index, self.state = self.index + 1, WaypointState.DRIVING
        elif self.loop < self._loops:
            self.index, self.loop, self.state = 0, self.loop + 1, WaypointState.DRIVING
        else:
            self.state = WaypointState.COMPLETED

    def _require_state(self, *states: WaypointState) -> None:
        if self.state not in states:
            raise InputError(
                f"the sequence is in state '{self.state.value}'", valid=" or ".join(state.value for state in states)
            )

    def save_state(self) -> dict[str, Any]:
        """Return the progress as plain data, without the waypoints."""
        missed = [(miss.index, miss.loop, miss.cause) for miss in self.missed]
        return {"at": (self.state.value, self.index, self.loop, self._wait_end_ns), "missed": missed}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned, for the same waypoints."""
        state, self.index, self.loop, self._wait_end_ns = saved["at"]
        self.state = WaypointState(state)
        self.missed = [MissedWaypoint(*miss) for miss in saved["missed"]]


def waypoints_from_polyline(points: ArrayLike, final_heading: float | None = None) -> tuple[Waypoint, ...]:
    """Return waypoints at the points of a polyline, each with the heading to the next.

    Args:
        points: (n, 2) points in the map [m].
        final_heading: Heading at the last point [rad]; None: the heading of the last segment.

    Raises:
        InputError: There are no points, or they have another shape.
    """
    nodes = as_points(points, 2).reshape(-1, 2)
    if not len(nodes):
        raise InputError("a polyline without points", valid="at least one")
    steps = np.diff(nodes, axis=0)
    headings = [0.0]
    for dx, dy in steps.tolist():
        headings.append(math.atan2(dy, dx) if (dx, dy) != (0.0, 0.0) else headings[-1])
    headings = [*headings[1:], headings[-1] if final_heading is None else final_heading]
    return tuple(Waypoint(SE2(x, y, heading)) for (x, y), heading in zip(nodes.tolist(), headings, strict=True))


class WaypointTask:
    """Navigation task that visits waypoints in order and stops at each for its wait.

    Args:
        context: Planner, controller and costmaps of the navigator.
        sequence: Sequence of the waypoints; their tasks are skipped.
    """

    def __init__(self, context: NavigatorContext, sequence: WaypointSequence) -> None:
        self._context, self.sequence = context, sequence
        self._navigate_task: NavigateTask | None = None

    @property
    def path(self) -> Path | None:
        """Path to the present waypoint; None before it is planned."""
        return None if self._navigate_task is None else self._navigate_task.path

    @property
    def activity(self) -> str:
        """Present activity, for status messages."""
        activity = self.sequence.state.value if self._navigate_task is None else self._navigate_task.activity
        return f"waypoint {self.sequence.index + 1}: {activity}"

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return the next velocity command; None at the end.

        Raises:
            WaypointFailedError: A waypoint was missed, and the sequence ends at a missed waypoint.
        """
        sequence, time_ns = self.sequence, round(state.time * 1e9)
        sequence.update(time_ns)
        while sequence.state is WaypointState.EXECUTING_TASK:
            sequence.report_task_done()
        if sequence.state is WaypointState.FAILED:
            missed = sequence.missed[-1]
            raise WaypointFailedError(f"waypoint {missed.index + 1} was missed: {missed.cause}")
        if sequence.is_finished:
            return None
        if sequence.state is WaypointState.WAITING:
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
        """Return the state as plain data."""
        return {
            "sequence": self.sequence.save_state(),
            "drive": None if self._navigate_task is None else self._navigate_task.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        self.sequence.load_state(saved["sequence"])
        if saved["drive"] is not None:
            self._navigate_task = NavigateTask(self._context, [self.sequence.waypoint.pose])
            self._navigate_task.load_state(saved["drive"])
