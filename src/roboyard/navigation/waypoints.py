"""Waypoints one after another: which is next, what is done there, and what is made of failures.

Nothing here drives: whoever drives says ``arrived`` or ``failed`` and looks at what is to be done now.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.geometry.arrays import as_points

Doing = Literal["drive", "wait", "task", "done", "failed"]


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
class Missed:
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

    ``doing`` says what is to be done with ``waypoint`` now: "drive" there, "wait", do its "task"; at the end it is
    "done", or "failed" where a waypoint was missed and ``stop_on_failure`` holds.

    Args:
        waypoints: In order.
        loops: Rounds after the first.
        first: Where the first round begins.
        stop_on_failure: Whether to end at a waypoint that is missed; else it goes on with the next.

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
        self.doing: Doing = "drive"
        self.index, self.loop = first, 0
        self.missed: list[Missed] = []
        self._loops, self._stop = loops, stop_on_failure
        self._until_ns = 0

    @property
    def waypoint(self) -> Waypoint:
        """The one that is visited now, or was last."""
        return self.waypoints[self.index]

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return self.doing in ("done", "failed")

    @property
    def left(self) -> int:
        """Visits still to be made, with the present one."""
        if self.over:
            return 0
        count = len(self.waypoints)
        return count - self.index + (self._loops - self.loop) * count

    def arrived(self, time_ns: int) -> None:
        """The robot is there."""
        self._expect("drive")
        self.doing, self._until_ns = "wait", time_ns + self.waypoint.wait_ns
        self.look(time_ns)

    def look(self, time_ns: int) -> None:
        """What time it is; ends a wait that is over."""
        if self.doing == "wait" and time_ns >= self._until_ns:
            if self.waypoint.task:
                self.doing = "task"
            else:
                self._advance()

    def task_done(self) -> None:
        """What was to be done there is done."""
        self._expect("task")
        self._advance()

    def failed(self, cause: str) -> None:
        """The way there, or the task, failed."""
        self._expect("drive", "task")
        self.missed.append(Missed(self.index, self.loop, cause))
        if self._stop:
            self.doing = "failed"
        else:
            self._advance()

    def _advance(self) -> None:
        if self.index + 1 < len(self.waypoints):
            self.index, self.doing = self.index + 1, "drive"
        elif self.loop < self._loops:
            self.index, self.loop, self.doing = 0, self.loop + 1, "drive"
        else:
            self.doing = "done"

    def _expect(self, *doing: Doing) -> None:
        if self.doing not in doing:
            raise InputError(f"the sequence is at '{self.doing}'", valid=" or ".join(doing))

    def save_state(self) -> dict[str, Any]:
        """Where it stands, as plain data; the waypoints are not in it."""
        missed = [(miss.index, miss.loop, miss.cause) for miss in self.missed]
        return {"at": (self.doing, self.index, self.loop, self._until_ns), "missed": missed}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of ``save``, for the same waypoints."""
        self.doing, self.index, self.loop, self._until_ns = saved["at"]
        self.missed = [Missed(*miss) for miss in saved["missed"]]


def waypoints_along(points: ArrayLike, final_heading: float | None = None) -> tuple[Waypoint, ...]:
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
    ways = np.diff(nodes, axis=0)
    headings = [0.0]
    for dx, dy in ways.tolist():
        headings.append(math.atan2(dy, dx) if (dx, dy) != (0.0, 0.0) else headings[-1])
    headings = [*headings[1:], headings[-1] if final_heading is None else final_heading]
    return tuple(Waypoint(SE2(x, y, heading)) for (x, y), heading in zip(nodes.tolist(), headings, strict=True))
