"""How a robot's drives to goals went."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import RoboyardError
from roboyard.geometry import SE2, wrap_angle
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.metrics.foreign import ForeignDrives
from roboyard.scenarios.metrics.mapping import Plan
from roboyard.scenarios.planar import position_and_yaw

if TYPE_CHECKING:
    from roboyard.navigation import Costmap, Footprint

Outline = tuple[tuple[float, float], ...]
Pose = tuple[float, float, float]

_FINE = 0.02
_ENDS = ("succeeded", "aborted", "canceled")
_TO_A_POSE = ("navigate_to_pose", "approach_pose", "navigate_through_poses", "move_base")
_APART = 0.03
"""Between poses at which the clearance is looked at [m]."""


class Drives(Collector):
    """Goals of the navigator, from its status, against the truth; the map's frame is taken for the world's.

    Where the navigator was left out, goals are those that were asked outside.

    ``goals``: asked for; ``goals_reached``; ``goals_failed``: refused or given up; ``final_error`` [m] and
    ``final_heading_error`` [rad]: true pose against the goal when the last drive ended; ``time`` [s]: from
    goals to their ends; ``shortest_length`` [m]: of the shortest ways that the true floor plan leaves the robot to the
    goals it reached; ``driven_length`` [m]: that it drove on them; ``min_clearance`` [m]: least distance of its outline
    from what stood at its lidar's height when the run ended; ``replans``; ``recoveries``; ``cause``: one word for why
    the last goal that failed did, empty if none did.
    """

    names = (
        "goals", "goals_reached", "goals_failed", "final_error", "final_heading_error", "time",
        "shortest_length", "driven_length", "min_clearance", "replans", "recoveries",
    )  # fmt: skip

    def __init__(
        self, truth_topic: str, status_topic: str, plan: Plan | None, outline: Outline, namespace: str = ""
    ) -> None:
        self._topics = (truth_topic, status_topic)
        self._foreign = ForeignDrives(namespace, _TO_A_POSE, self._on_status)
        self._plan, self._outline = plan, outline
        self.cause = ""
        self._counts = {"goals": 0, "goals_reached": 0, "goals_failed": 0, "replans": 0, "recoveries": 0}
        self._seconds = self._driven = 0.0
        self._pose: Pose | None = None
        self._began: Pose | None = None
        self._way = 0.0
        self._ended = False
        self._errors: tuple[float, float] | None = None
        self._reached: list[tuple[Pose, Pose]] = []
        self._track: array[float] = array("d")

    def handlers(self) -> Mapping[str, Handler]:
        """Truth, the navigator's status, and what is asked of somebody else's."""
        own = dict(zip(self._topics, (self._on_truth, self._on_status), strict=True))
        return {**own, **self._foreign.handlers()}

    def _on_truth(self, message: Any, time_ns: int) -> None:
        pose = position_and_yaw(message.pose.pose)
        if self._pose is not None and self._began is not None:
            self._way += math.hypot(pose[0] - self._pose[0], pose[1] - self._pose[1])
        self._pose = pose
        track = self._track
        if len(track) < 3 or _moved(pose, (track[-3], track[-2], track[-1])) > _APART:
            track.extend(pose)

    def _on_status(self, message: Any, time_ns: int) -> None:
        if message.task not in _TO_A_POSE:
            return
        if message.state == "rejected":
            self._counts["goals"] += 1
            self._counts["goals_failed"] += 1
            self.cause = message.error_code
        elif message.state == "started":
            self._counts["goals"] += 1
            self._began, self._way = self._pose, 0.0
        elif message.state in _ENDS:
            self._end(message)

    def _end(self, message: Any) -> None:
        goal = position_and_yaw(message.goal)
        self._counts["replans"] += int(message.replans)
        self._counts["recoveries"] += int(message.recoveries)
        self._seconds += float(message.elapsed)
        if self._pose is not None:
            distance = math.hypot(self._pose[0] - goal[0], self._pose[1] - goal[1])
            self._errors = (distance, abs(wrap_angle(self._pose[2] - goal[2])))
        if message.state == "succeeded":
            self._counts["goals_reached"] += 1
            self._driven += self._way
            if self._began is not None:
                self._reached.append((self._began, goal))
        elif message.state == "aborted":
            self._counts["goals_failed"] += 1
            self.cause = message.error_code or "preempted"
        self._began = None

    def result(self) -> dict[str, Value]:
        """All None where nothing was asked of a navigator."""
        if not self._counts["goals"]:
            return dict.fromkeys((*self.names, "cause"))
        error, heading_error = self._errors or (None, None)
        found: dict[str, Value] = {
            **self._counts, "final_error": error, "final_heading_error": heading_error, "cause": self.cause,
            "time": self._seconds, "driven_length": self._driven,
        }  # fmt: skip
        return dict.fromkeys(self.names) | found | (self._of_plan() if self._ended else {})

    def finish(self, time_ns: int) -> None:
        """From now on the floor plan is looked at, too: that takes long."""
        self._ended = True

    def _of_plan(self) -> dict[str, Value]:
        from roboyard.navigation import Footprint

        if self._plan is None or len(self._outline) < 3 or not self._track:
            return {}
        try:
            footprint = Footprint(np.array(self._outline))
            costmap, distances = _true_costs(self._plan, footprint)
        except RoboyardError:
            return {}
        return {
            "min_clearance": _clearance(costmap, distances, footprint, np.array(self._track).reshape(-1, 3)),
            "shortest_length": _shortest(costmap, self._reached),
        }

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        left_out = ("_plan", "_outline", "_topics", "_track", "_foreign")
        return {
            "track": np.array(self._track),
            "foreign": self._foreign.save_state(),
            **{name: value for name, value in vars(self).items() if name not in left_out},
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._track = array("d", saved["track"].tolist())
        self._foreign.load_state(saved["foreign"])
        vars(self).update({name: value for name, value in saved.items() if name not in ("track", "foreign")})


def _moved(pose: Pose, before: Pose) -> float:
    return math.hypot(pose[0] - before[0], pose[1] - before[1]) + 0.3 * abs(wrap_angle(pose[2] - before[2]))


def _true_costs(plan: Plan, footprint: Footprint) -> tuple[Costmap, NDArray[np.float64]]:
    """The floor plan as a costmap without costs, and each cell's distance to what stands there [m]."""
    from scipy import ndimage

    from roboyard.grids import GridGeometry
    from roboyard.navigation import Costmap
    from roboyard.navigation.costmap import FREE, INSCRIBED, LETHAL

    found = plan(_FINE)
    distances = ndimage.distance_transform_edt(~found.occupied) * found.resolution
    cells = np.where(found.occupied, LETHAL, np.where(distances <= footprint.inscribed_radius, INSCRIBED, FREE))
    frame = GridGeometry(found.resolution, found.occupied.shape, SE2(*found.origin, 0.0))
    return Costmap(cells.astype(np.uint8), frame), distances


def _clearance(
    costmap: Costmap, distances: NDArray[np.float64], footprint: Footprint, track: NDArray[np.float64]
) -> float | None:
    border = footprint.border(costmap.frame.resolution)
    least = math.inf
    for x, y, theta in track:
        cells = costmap.frame.cells_of_points(SE2(x, y, theta) @ border)
        inside = costmap.frame.contains(cells)
        if inside.any():
            least = min(least, float(distances[cells[inside, 0], cells[inside, 1]].min()))
    return None if math.isinf(least) else least


def _shortest(costmap: Costmap, drives: list[tuple[Pose, Pose]]) -> float | None:
    """Sum of the shortest ways; None if one of them cannot be found in the plan."""
    from roboyard.navigation import NavigationError, Traversal, WavePlanner

    planner = WavePlanner(Traversal(cost_weight=0.0))
    total = 0.0
    try:
        for start, goal in drives:
            total += planner.plan(costmap, SE2(*start), SE2(*goal)).length
    except NavigationError:
        return None
    return total
