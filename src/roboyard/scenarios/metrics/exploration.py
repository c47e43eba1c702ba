"""How much of a place a robot saw that explored it by itself, and whether it came back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.grids.distance_field import squared_distance_transform
from roboyard.grids.regions import label_components
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.metrics.mapping import Plan
from roboyard.scenarios.planar import position_and_yaw

_CELL = 0.05
_OVER = ("done", "failed", "canceled")


class Exploration(Collector):
    """The last exploration that an explorer told of, against floor plan and truth.

    ``coverage``: share of the floor that the robot could truly come to stand on (a disc of the size that it reckons
    with, from where it set out, at its lidar's height) that its map knows; ``explored``: whether it says that it is
    done; ``exploration_time`` [s] until it was over, or so far; ``return_error`` [m]: distance between where it set out
    and where it was at the end.  Coverage is reckoned when it is over, or the run.
    """

    names = ("coverage", "explored", "exploration_time", "return_error")

    def __init__(self, truth_topic: str, status_topic: str, map_topic: str, plan: Plan | None) -> None:
        self._topics = (truth_topic, status_topic, map_topic)
        self._plan = plan
        if plan is not None:
            expect_kernels(squared_distance_transform, label_components)  # of the coverage at the end
        self._truth: tuple[float, float, float] | None = None
        self._map: Any = None
        self._status: Any = None
        self._began_ns = self._last_ns = 0
        self._set_out: tuple[float, float, float] | None = None
        self._ended: tuple[float, float, float] | None = None
        self._finished = False

    def handlers(self) -> Mapping[str, Handler]:
        """Truth, status and map."""
        return dict(zip(self._topics, (self._on_truth, self._on_status, self._on_map), strict=True))

    def _on_truth(self, message: Any, time_ns: int) -> None:
        self._truth = position_and_yaw(message.pose.pose)
        if self._ended is None:
            self._last_ns = time_ns

    def _on_map(self, message: Any, time_ns: int) -> None:
        self._map = message

    def _on_status(self, message: Any, time_ns: int) -> None:
        over = message.phase in _OVER
        if self._status is None or (self._status.phase in _OVER and not over):
            self._began_ns, self._set_out, self._ended = time_ns, self._truth, None
        self._status = message
        if over and self._ended is None:
            self._ended, self._last_ns = self._truth, time_ns

    def finish(self, time_ns: int) -> None:
        """The run ended at this time [ns]."""
        self._finished = True

    def result(self) -> dict[str, Value]:
        """All None while nobody explores; ``coverage`` also where nobody knows the floor plan."""
        found: dict[str, Value] = dict.fromkeys(self.names)
        if self._status is None or self._set_out is None or self._truth is None:
            return found
        here = self._ended or self._truth
        found["explored"] = self._status.phase == "done"
        found["exploration_time"] = (self._last_ns - self._began_ns) * 1e-9
        found["return_error"] = SE2(*self._set_out).distance(SE2(*here))
        if self._finished or self._ended is not None:
            found["coverage"] = self._coverage(SE2(*self._set_out))
        return found

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        return {key: value for key, value in vars(self).items() if key not in ("_plan", "_topics")}

    def _coverage(self, T_world_base: SE2) -> float | None:
        from roboyard.mapping.nodes.map_messages import map_from_msg
        from roboyard.navigation.exploration import coverage

        if self._map is None or self._plan is None:
            return None
        try:
            return coverage(map_from_msg(self._map), *floor_in_map(self._plan, self._status, T_world_base))
        except RoboyardError:
            return None


def T_world_map(status: Any, T_world_base: SE2) -> SE2:
    """Where the robot's map lies in the world.

    Args:
        status: A roboyard_msgs/ExplorationStatus: it says where in its map the robot set out.
        T_world_base: Where it truly did.
    """
    return T_world_base @ SE2(*position_and_yaw(status.start)).inverse()


def floor_in_map(plan: Plan, status: Any, T_world_base: SE2) -> tuple[NDArray[np.bool_], GridGeometry]:
    """The floor that the robot could truly come to stand on (rows, columns), and where it lies in the robot's map.

    Raises:
        RoboyardError: there is no floor plan, or no room for the robot where it set out.
    """
    from roboyard.navigation.exploration import reachable_floor

    cut = plan(_CELL)
    frame = GridGeometry(cut.resolution, cut.occupied.shape, SE2(*cut.origin, 0.0))
    floor = reachable_floor(cut.occupied, frame, np.array(T_world_base.xy), round(float(status.radius), 6))
    T_map_floor = T_world_map(status, T_world_base).inverse() @ frame.T_map_grid
    return floor, GridGeometry(frame.resolution, frame.shape, T_map_floor)
