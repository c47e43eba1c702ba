"""Metrics of occupancy maps and octree maps against ground truth."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from roboyard.compute import expect_kernels
from roboyard.errors import InputError, RoboyardError
from roboyard.evaluation.plugin import (
    FloorPlanProvider,
    MessageHandler,
    MetricCollector,
    MetricValue,
    SurfaceVoxelProvider,
)
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.mapping import Trajectory, absolute_error, relative_error
from roboyard.mapping.octree.agreement import spread
from roboyard.mapping.octree.stream import read_full
from roboyard.messages.convert.poses import pose_to_xy_yaw
from roboyard.messages.time import to_nanoseconds

_MAP_RESOLUTION = 0.01
_MIN_SAMPLE_INTERVAL_NS = 40_000_000
_MAX_EXTRAPOLATION_NS = 100_000_000


class OccupancyMapMetrics(MetricCollector):
    """The last map and way that a SLAM node published, against floor plan and truth.

    ``map_ate`` [m]: root mean square of the way's distance from the truth after laying the one over the other;
    ``map_rpe`` [m]: of the error of its motions over a second; ``map_wall_error`` [m]: mean distance of the map's walls
    from true surfaces at its lidar's height; ``map_iou_occupied``, ``map_iou_free``: overlap of occupied places, within
    one cell, and of free ones; ``map_coverage``: share of the true room that the map knows.  See
    `roboyard.mapping.comparison`.
    """

    metric_names = ("map_ate", "map_rpe", "map_wall_error", "map_iou_occupied", "map_iou_free", "map_coverage")

    def __init__(self, truth_topic: str, map_topic: str, path_topic: str, floor_plan: FloorPlanProvider | None) -> None:
        self._topics = (truth_topic, map_topic, path_topic)
        self._floor_plan = floor_plan
        self._times: array[int] = array("q")
        self._poses: array[float] = array("d")
        self._map: Any = None
        self._path: Any = None

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Truth, map and way."""
        return dict(zip(self._topics, (self._on_truth, self._on_map, self._on_path), strict=True))

    def _on_truth(self, message: Any, time_ns: int) -> None:
        stamp_ns = to_nanoseconds(message.header.stamp)
        if not self._times or stamp_ns - self._times[-1] >= _MIN_SAMPLE_INTERVAL_NS:
            self._times.append(stamp_ns)
            self._poses.extend(pose_to_xy_yaw(message.pose.pose))

    def _on_map(self, message: Any, time_ns: int) -> None:
        self._map = message

    def _on_path(self, message: Any, time_ns: int) -> None:
        self._path = message

    def values(self) -> dict[str, MetricValue]:
        """All None while no way was published; those of the map also where nobody knows the floor plan."""
        values: dict[str, MetricValue] = dict.fromkeys(self.metric_names)
        if self._path is None or not self._path.poses or not self._times:
            return values
        rows = [(to_nanoseconds(item.header.stamp), pose_to_xy_yaw(item.pose)) for item in self._path.poses]
        if not np.isfinite([pose for _, pose in rows]).all():
            raise InputError("a pose of the path is not finite", location=self._topics[2], valid="finite numbers")
        estimate = Trajectory(np.array([time for time, _ in rows]), np.array([pose for _, pose in rows]))
        truth = Trajectory(np.array(self._times, dtype=np.int64), np.array(self._poses).reshape(-1, 3))
        try:
            absolute = absolute_error(estimate, truth, beyond_ns=_MAX_EXTRAPOLATION_NS)
            values["map_ate"] = absolute.translational.rmse
            values["map_rpe"] = relative_error(estimate, truth).translational.rmse
        except RoboyardError:
            return values
        return values | self._compare_map(absolute.T_true_map)

    def _compare_map(self, T_world_map: SE2) -> dict[str, MetricValue]:
        from roboyard.mapping.comparison import compare
        from roboyard.mapping.nodes.map_messages import map_from_msg

        if self._map is None or self._floor_plan is None:
            return {}
        try:
            plan = self._floor_plan(_MAP_RESOLUTION)
            geometry = GridGeometry(plan.resolution, plan.occupied.shape, SE2(*plan.origin, 0.0))
            comparison = compare(map_from_msg(self._map), plan.occupied, geometry, T_world_map)
        except RoboyardError:
            return {}
        return {
            "map_wall_error": comparison.wall_error,
            "map_iou_occupied": comparison.iou_occupied,
            "map_iou_free": comparison.iou_free,
            "map_coverage": comparison.coverage,
        }

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        times, poses = np.array(self._times, dtype=np.int64), np.array(self._poses)
        return {"times": times, "poses": poses, "map": self._map, "path": self._path}

    def load_state(self, state: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._times, self._poses = array("q", state["times"].tolist()), array("d", state["poses"].tolist())
        self._map, self._path = state["map"], state["path"]


VOXEL_TOLERANCE: Final = 0.02
"""A surface this near to the border of two voxels, in edges of a voxel, may be in either of them."""


class OctreeMapMetrics(MetricCollector):
    """The last full octree that was published, against the true surfaces of the world, robots left out.

    ``octree_iou``: of the voxels that the map knows, those occupied in map and truth by those occupied in either;
    ``octree_precision``: share of the map's occupied voxels that a surface touches; ``octree_recall``: share of the
    true ones it has, of all that it looked at.  What the map does not know does not count: no camera saw it.  The map's
    frame is taken for the world's.  See `roboyard.mapping.octree.agreement`.
    """

    metric_names = ("octree_iou", "octree_precision", "octree_recall")

    def __init__(self, topic: str, surface_voxels: SurfaceVoxelProvider | None) -> None:
        self._topic, self._surface_voxels = topic, surface_voxels
        self._message: Any = None
        self._values: dict[str, MetricValue] | None = None

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """The map."""
        return {self._topic: self._on_map}

    def _on_map(self, message: Any, time_ns: int) -> None:
        expect_kernels(spread, read_full)  # of the comparison at the end
        self._message, self._values = message, None

    def values(self) -> dict[str, MetricValue]:
        """All None while no map was published that can be read, or where nobody knows the world."""
        if self._values is None:
            self._values = self._compare()
        return dict(self._values)

    def _compare(self) -> dict[str, MetricValue]:
        from roboyard.mapping.nodes.octree_messages import octree_from_msg
        from roboyard.mapping.octree.agreement import agreement, dense
        from roboyard.mapping.octree.blocks import ORIGIN

        unknown: dict[str, MetricValue] = dict.fromkeys(self.metric_names)
        if self._message is None or self._surface_voxels is None:
            return unknown
        try:
            leaves = octree_from_msg(self._message)
            state, min_index = dense(leaves)
            voxel_size = leaves.resolution
            corner = np.asarray((min_index - ORIGIN) * voxel_size, dtype=np.float64)
            touched_voxels, crossed_voxels = self._surface_voxels(
                corner, state.shape, voxel_size, VOXEL_TOLERANCE * voxel_size
            )
        except RoboyardError:
            return unknown
        comparison = agreement(state, touched_voxels, crossed_voxels)
        return dict(zip(self.metric_names, (comparison.iou, comparison.precision, comparison.recall), strict=True))

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        return {"message": self._message}

    def load_state(self, state: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._message, self._values = state["message"], None
