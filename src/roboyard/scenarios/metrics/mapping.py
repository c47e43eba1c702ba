"""How good a robot's own map is, and its way in it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.mapping import Trajectory, absolute_error, relative_error
from roboyard.messages.time import to_nanoseconds
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.planar import position_and_yaw
from roboyard.simulation.floor_plan import FloorPlan

Plan = Callable[[float], FloorPlan]
"""The true floor plan, at the height at which the robot's lidar looks, with cells of a side [m]."""

_FINE = 0.01
_APART_NS = 40_000_000
_BEYOND_NS = 100_000_000


class MapQuality(Collector):
    """The last map and way that a SLAM node published, against floor plan and truth.

    ``map_ate`` [m]: root mean square of the way's distance from the truth after laying the one over the other;
    ``map_rpe`` [m]: of the error of its motions over a second; ``map_wall_error`` [m]: mean distance of the map's walls
    from true surfaces at its lidar's height; ``map_iou_occupied``, ``map_iou_free``: overlap of occupied places, within
    one cell, and of free ones; ``map_coverage``: share of the true room that the map knows.  See
    `roboyard.mapping.comparison`.
    """

    names = ("map_ate", "map_rpe", "map_wall_error", "map_iou_occupied", "map_iou_free", "map_coverage")

    def __init__(self, truth_topic: str, map_topic: str, path_topic: str, plan: Plan | None) -> None:
        self._topics = (truth_topic, map_topic, path_topic)
        self._plan = plan
        self._times: array[int] = array("q")
        self._poses: array[float] = array("d")
        self._map: Any = None
        self._path: Any = None

    def handlers(self) -> Mapping[str, Handler]:
        """Truth, map and way."""
        return dict(zip(self._topics, (self._on_truth, self._on_map, self._on_path), strict=True))

    def _on_truth(self, message: Any, time_ns: int) -> None:
        moment = to_nanoseconds(message.header.stamp)
        if not self._times or moment - self._times[-1] >= _APART_NS:
            self._times.append(moment)
            self._poses.extend(position_and_yaw(message.pose.pose))

    def _on_map(self, message: Any, time_ns: int) -> None:
        self._map = message

    def _on_path(self, message: Any, time_ns: int) -> None:
        self._path = message

    def result(self) -> dict[str, Value]:
        """All None while no way was published; those of the map also where nobody knows the floor plan."""
        found: dict[str, Value] = dict.fromkeys(self.names)
        if self._path is None or not self._path.poses or not self._times:
            return found
        rows = [(to_nanoseconds(item.header.stamp), position_and_yaw(item.pose)) for item in self._path.poses]
        if not np.isfinite([pose for _, pose in rows]).all():
            raise InputError("a pose of the path is not finite", location=self._topics[2], valid="finite numbers")
        believed = Trajectory(np.array([time for time, _ in rows]), np.array([pose for _, pose in rows]))
        truth = Trajectory(np.array(self._times, dtype=np.int64), np.array(self._poses).reshape(-1, 3))
        try:
            absolute = absolute_error(believed, truth, beyond_ns=_BEYOND_NS)
            found["map_ate"] = absolute.translational.rmse
            found["map_rpe"] = relative_error(believed, truth).translational.rmse
        except RoboyardError:
            return found
        return found | self._of_map(absolute.T_true_map)

    def _of_map(self, T_world_map: SE2) -> dict[str, Value]:
        from roboyard.mapping.comparison import compare
        from roboyard.mapping.nodes.map_messages import map_from_msg

        if self._map is None or self._plan is None:
            return {}
        try:
            plan = self._plan(_FINE)
            frame = GridGeometry(plan.resolution, plan.occupied.shape, SE2(*plan.origin, 0.0))
            against = compare(map_from_msg(self._map), plan.occupied, frame, T_world_map)
        except RoboyardError:
            return {}
        return {
            "map_wall_error": against.wall_error,
            "map_iou_occupied": against.iou_occupied,
            "map_iou_free": against.iou_free,
            "map_coverage": against.coverage,
        }

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        times, poses = np.array(self._times, dtype=np.int64), np.array(self._poses)
        return {"times": times, "poses": poses, "map": self._map, "path": self._path}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._times, self._poses = array("q", saved["times"].tolist()), array("d", saved["poses"].tolist())
        self._map, self._path = saved["map"], saved["path"]
