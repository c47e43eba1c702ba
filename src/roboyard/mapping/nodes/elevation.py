"""The elevation node with the interface of elevation_mapping: it maps heights and their variances from clouds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Future
from roboyard.config import parameter
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.mapping.elevation import CloudInsertion, ElevationMap, ElevationMapConfig
from roboyard.mapping.nodes.cloud_mapper import CloudMapperConfig, CloudMapperNode
from roboyard.messages import msg, srv
from roboyard.messages.convert.clouds import cloud_from_msg
from roboyard.messages.convert.grid_maps import CEILING, HEIGHTS, VARIANCE, grid_map_to_msg


@dataclass(frozen=True)
class ElevationCloudJob:
    """A cloud that the worker inserts.

    Attributes:
        message: sensor_msgs/PointCloud2.
        T_map_sensor: Pose of the sensor.
        T_map_base: Pose of the robot.
        covariance: (6, 6) growth of the covariance of the robot's pose since the last cloud [m², rad²].
    """

    message: Any
    T_map_sensor: SE3
    T_map_base: SE3
    covariance: NDArray[np.float64]


@dataclass(frozen=True)
class ElevationJobResult:
    """Result of an insertion; without one, ``error`` says what is wrong with the cloud."""

    insertion: CloudInsertion | None
    error: str = ""


class ElevationNodeConfig(CloudMapperConfig):
    """Configuration of `ElevationNode`."""

    point_cloud_topic: str = parameter("points", doc="Topic of the clouds.")
    robot_pose_with_covariance_topic: str = parameter("", doc="Topic of the pose's covariance; empty: none.")
    map_frame_id: str = parameter("map", doc="Frame of the map.")
    robot_base_frame_id: str = parameter("base_link", doc="Frame with which the window moves.")
    elevation: ElevationMapConfig = parameter(factory=ElevationMapConfig, doc="Cells and evidence of the map.")
    pose_drift: float = parameter(
        0.0, unit="m", low=0.0, high=1.0, runtime=True, doc="Standard deviation of the pose after 1 m."
    )
    max_rate: float = parameter(10.0, unit="Hz", low=0.01, high=100.0, doc="Largest rate of processed clouds.")
    publish_period: float = parameter(0.25, unit="s", low=0.0, high=1e6, doc="Smallest time between maps.")
    latency: float = parameter(0.03, unit="s", low=1e-3, high=100.0, doc="Declared duration of processing a cloud.")


class ElevationNode(CloudMapperNode[ElevationNodeConfig]):
    """Elevation map around a robot, from the clouds of a depth camera or lidar; the interface of elevation_mapping.

    in: points (sensor_msgs/PointCloud2; another topic by point_cloud_topic; organized clouds give the best maps), /tf
        from map_frame_id to the cloud and to robot_base_frame_id; robot_pose_with_covariance_topic
        (geometry_msgs/PoseWithCovarianceStamped) if it is set
    out: elevation_map (grid_map_msgs/GridMap, latched; layers elevation [m], variance [m²] and ceiling [m]: upper bound
        of heights, also where nothing was seen; NaN: unknown)
    services: ~/clear_map (std_srvs/Empty)

    A worker inserts the clouds, at most ``max_rate`` a second; a result is available ``latency`` after its cloud. The
    variances of heights grow with the covariance of the pose, or, without its topic, by ``pose_drift`` with the
    distance driven.
    """

    state_fields = (*CloudMapperNode.state_fields, "_pose_covariance", "_last_covariance", "_last_position")

    def setup(self) -> None:
        """Create the map, the publisher, the subscriptions and the service."""
        self._map = ElevationMap(self.config.elevation)
        self._pose_covariance: NDArray[np.float64] | None = None  # newest covariance of the pose
        self._last_covariance: NDArray[np.float64] | None = None  # covariance at the last cloud
        self._last_position: tuple[float, float] | None = None  # position of the robot at the last cloud
        self._publisher = self.publisher("elevation_map", msg.GridMap, latched=True)
        self._frames = self.frame(self.config.map_frame_id), self.frame(self.config.robot_base_frame_id)
        self.start_mapping(self._map, self.config.point_cloud_topic, self._frames)
        if self.config.robot_pose_with_covariance_topic:
            self.subscribe(self.config.robot_pose_with_covariance_topic, msg.PoseWithCovarianceStamped, self._on_pose)
        self.service("~/clear_map", srv.std_srvs.Empty, self._on_clear)

    def _on_pose(self, message: Any) -> None:
        self._pose_covariance = np.asarray(message.pose.covariance, np.float64).reshape(6, 6)

    def prepare_insertion(self, message: Any, time_ns: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return `insert_cloud` with the map and a job; see `CloudMapperNode.prepare_insertion`."""
        map_frame, base = self._frames
        T_map_sensor = self.transforms.lookup(map_frame, message.header.frame_id, time_ns)
        T_map_base = self.transforms.lookup(map_frame, base, time_ns)
        job = ElevationCloudJob(message, T_map_sensor, T_map_base, self._covariance_growth(T_map_base))
        return insert_cloud, (self._map, job)

    def _covariance_growth(self, T_map_base: SE3) -> NDArray[np.float64]:
        """Return the growth (6, 6) of the covariance of the pose since the last cloud; a decrease counts as 0."""
        position = (T_map_base.x, T_map_base.y)
        traveled = (
            0.0
            if self._last_position is None
            else float(np.hypot(position[0] - self._last_position[0], position[1] - self._last_position[1]))
        )
        self._last_position = position
        if self._pose_covariance is None:
            return np.diag([self.config.pose_drift**2 * traveled] * 3 + [0.0] * 3)
        last_covariance, self._last_covariance = self._last_covariance, self._pose_covariance
        growth = np.zeros(6) if last_covariance is None else np.diag(self._pose_covariance) - np.diag(last_covariance)
        return np.diag(np.maximum(np.nan_to_num(growth), 0.0))

    def report_insertion(self, result: Any) -> bool:
        """Report the number of known cells, or what is wrong with the cloud."""
        job_result: ElevationJobResult = result
        insertion = job_result.insertion
        if insertion is None:
            self.report_health("error", f"cloud dropped: {job_result.error}")
            return False
        self.report_health("ok", f"{insertion.n_known_cells} cells known", points=insertion.n_points)
        return True

    def publish_map(self) -> None:
        """Publish the layers of the map."""
        layers = {HEIGHTS: self._map.elevation, VARIANCE: self._map.variance, CEILING: self._map.ceiling}
        frame, cell = self.frame(self.config.map_frame_id), self.config.elevation.resolution
        self._publisher.publish(grid_map_to_msg(layers, self._map.min_corner, cell, self.now_ns, frame))

    def _on_clear(self, request: Any) -> Future:
        return self.change_map(self._map.clear, srv.std_srvs.Empty.Response)


def insert_cloud(elevation_map: ElevationMap, job: ElevationCloudJob) -> ElevationJobResult:
    """Move the window of the map to the robot, and insert a cloud; return the result, or what is wrong."""
    try:
        points = np.stack(cloud_from_msg(job.message, color=False).xyz, axis=-1)
        height, width = int(job.message.height), int(job.message.width)
        if height > 1:
            points = points.reshape(height, width, 3)
        elevation_map.inflate_variance(job.T_map_base, job.covariance)
        elevation_map.recenter(job.T_map_base.x, job.T_map_base.y)
        return ElevationJobResult(elevation_map.insert(points, job.T_map_sensor))
    except InputError as error:
        return ElevationJobResult(None, str(error))
