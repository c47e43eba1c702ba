"""Metrics of occupancy maps and octree maps against ground truth."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final, Self

import numpy as np

from roboyard.compute import expect_kernels
from roboyard.errors import InputError, RoboyardError
from roboyard.evaluation.collector import (
    GroundTruthProvider,
    MessageHandler,
    Metric,
    MetricCollector,
    MetricValue,
    RobotContext,
)
from roboyard.evaluation.plugin import RunPlugin
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.mapping import PoseTrajectory, absolute_error, relative_error
from roboyard.mapping.octree.octree import fill_cubes, read_full
from roboyard.messages.convert.poses import pose_to_xy_yaw
from roboyard.messages.time import to_nanoseconds

_MAP_RESOLUTION = 0.01
_MIN_SAMPLE_INTERVAL_NS = 40_000_000
_MAX_EXTRAPOLATION_NS = 100_000_000


class OccupancyMapMetrics(MetricCollector):
    """Compares the last map and path that a SLAM node published with the true floor plan and the true track.

    See `roboyard.mapping.evaluation.map_error`.

    Args:
        robot: Its truth, its map and its path are read; without ground truth only the path is judged.
    """

    metrics = (
        Metric(
            "map_ate",
            "m",
            "Absolute trajectory error: root mean square of the distance between the mapped path and the true track "
            "after alignment; no value, as of the next five, of a robot that does not map.",
            "lower",
        ),
        Metric(
            "map_rpe",
            "m",
            "Relative pose error: root mean square of the error of motions over one second.",
            "lower",
        ),
        Metric(
            "map_wall_error",
            "m",
            "Mean distance of the map's walls from true surfaces at the lidar's height.",
            "lower",
        ),
        Metric(
            "map_iou_occupied",
            "ratio",
            "Overlap of the map's and the true occupied area, within one cell.",
            "higher",
        ),
        Metric("map_iou_free", "ratio", "Overlap of the map's and the true free area.", "higher"),
        Metric("map_coverage", "ratio", "Share of the true free area that the map knows.", "higher"),
    )
    position = 50

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot)

    def __init__(self, robot: RobotContext) -> None:
        self._topics = (robot.topics.truth, robot.topics.map, robot.topics.path)
        self._robot = robot
        self._times: array[int] = array("q")
        self._poses: array[float] = array("d")
        self._map: Any = None
        self._path: Any = None

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of true odometry, map and path."""
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
        """Return the errors; none without a path, and none of the map without ground truth."""
        values: dict[str, MetricValue] = {}
        if self._path is None or not self._path.poses or not self._times:
            return values
        rows = [(to_nanoseconds(item.header.stamp), pose_to_xy_yaw(item.pose)) for item in self._path.poses]
        if not np.isfinite([pose for _, pose in rows]).all():
            raise InputError("a pose of the path is not finite", location=self._topics[2], valid="finite numbers")
        estimate = PoseTrajectory(np.array([time for time, _ in rows]), np.array([pose for _, pose in rows]))
        truth = PoseTrajectory(np.array(self._times, dtype=np.int64), np.array(self._poses).reshape(-1, 3))
        try:
            absolute = absolute_error(estimate, truth, max_extrapolation_ns=_MAX_EXTRAPOLATION_NS)
            values["map_ate"] = absolute.translational.rmse
            values["map_rpe"] = relative_error(estimate, truth).translational.rmse
        except RoboyardError:
            return values
        return values | self._compare_map(absolute.T_true_map)

    def _compare_map(self, T_world_map: SE2) -> dict[str, MetricValue]:
        from roboyard.mapping.evaluation.map_error import compare_with_floor_plan
        from roboyard.messages.convert.grids import occupancy_grid_from_msg

        if self._map is None or self._robot.truth is None:
            return {}
        try:
            plan = self._robot.truth.floor_plan(self._robot.lidar_height, _MAP_RESOLUTION)
            geometry = GridGeometry(plan.resolution, plan.occupied.shape, SE2(*plan.origin, 0.0))
            comparison = compare_with_floor_plan(
                occupancy_grid_from_msg(self._map), plan.occupied, geometry, T_world_map
            )
        except RoboyardError:
            return {}
        return {
            "map_wall_error": comparison.wall_error,
            "map_iou_occupied": comparison.iou_occupied,
            "map_iou_free": comparison.iou_free,
            "map_coverage": comparison.coverage,
        }

    def save_state(self) -> dict[str, Any]:
        """Return map, path and true track as plain data."""
        times, poses = np.array(self._times, dtype=np.int64), np.array(self._poses)
        return {"times": times, "poses": poses, "map": self._map, "path": self._path}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._times, self._poses = array("q", state["times"].tolist()), array("d", state["poses"].tolist())
        self._map, self._path = state["map"], state["path"]


VOXEL_TOLERANCE: Final = 0.02
"""A surface this near to the border of two voxels, in edges of a voxel, may be in either of them."""


class OctreeMapMetrics(MetricCollector):
    """Compares the last full octree that was published with the true surfaces of the world without its robots.

    Voxels that the map does not know do not count: no camera saw them.  Map and world are one frame.  See
    `roboyard.mapping.evaluation.map_error`.

    Args:
        topic: Of the octomap_msgs/Octomap.
        truth: The ground truth.
    """

    metrics = (
        Metric(
            "octree_iou",
            "ratio",
            "Of the voxels that the last `octomap_full` knows: those occupied in map and truth, divided by those "
            "occupied in either; surfaces that cameras see, without robots, with the map's frame as the world's "
            "([exactly](map-evaluation.md#error-of-an-octree-map)); no value, as of the next two, without such a "
            "map.",
            "higher",
        ),
        Metric(
            "octree_precision",
            "ratio",
            "Share of the map's occupied voxels that a true surface touches.",
            "higher",
        ),
        Metric(
            "octree_recall",
            "ratio",
            "Share of the truly occupied voxels that the map has, of those it observed.",
            "higher",
        ),
    )
    position = 60

    @classmethod
    def create(cls, robot: RobotContext) -> Self | None:
        """Return the collector of a robot whose ground truth is known."""
        return None if robot.truth is None else cls(robot.topics.octree, robot.truth)

    def __init__(self, topic: str, truth: GroundTruthProvider) -> None:
        self._topic, self._truth = topic, truth
        self._message: Any = None
        self._values: dict[str, MetricValue | None] | None = None

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topic of the map."""
        return {self._topic: self._on_map}

    def _on_map(self, message: Any, time_ns: int) -> None:
        expect_kernels(fill_cubes, read_full)  # of the comparison at the end
        self._message, self._values = message, None

    def values(self) -> dict[str, MetricValue | None]:
        """Return the agreement; nothing while no map was published that can be read."""
        if self._values is None:
            self._values = self._compare()
        return dict(self._values)

    def _compare(self) -> dict[str, MetricValue | None]:
        from roboyard.mapping.evaluation.map_error import compare_voxels
        from roboyard.mapping.octree.octomap_files import octree_from_msg
        from roboyard.mapping.octree.octree import to_dense
        from roboyard.mapping.octree.voxel_blocks import ORIGIN_KEY

        if self._message is None:
            return {}
        try:
            leaves = octree_from_msg(self._message)
            state, min_index = to_dense(leaves)
            voxel_size = leaves.resolution
            corner = np.asarray((min_index - ORIGIN_KEY) * voxel_size, dtype=np.float64)
            touched_voxels, crossed_voxels = self._truth.surface_voxels(
                corner, state.shape, voxel_size, VOXEL_TOLERANCE * voxel_size
            )
        except RoboyardError:
            return {}
        comparison = compare_voxels(state, touched_voxels, crossed_voxels)
        return dict(zip(self.metric_names(), (comparison.iou, comparison.precision, comparison.recall), strict=True))

    def save_state(self) -> dict[str, Any]:
        """Return the last map."""
        return {"message": self._message}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._message, self._values = state["message"], None


PLUGIN = RunPlugin("mapping", (OccupancyMapMetrics, OctreeMapMetrics))
