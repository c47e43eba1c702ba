"""The elevation node with the interface of elevation_mapping: it maps heights and their variances from clouds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Future, MessageFilter, Node
from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.mapping.elevation import CloudInsertion, ElevationMap, ElevationMapConfig
from roboyard.messages import msg, srv, to_nanoseconds
from roboyard.messages.convert.clouds import cloud_from_msg
from roboyard.messages.convert.grid_maps import CEILING, HEIGHTS, VARIANCE, grid_map_to_msg

_TRANSFORM_TIMEOUT: Final = 0.3
"""A cloud waits for its transforms until it is older than this [s]."""
_QUEUE_SIZE: Final = 4


@dataclass(frozen=True)
class ElevationCloudJob:
    """A cloud on its way to the worker.

    Attributes:
        message: sensor_msgs/PointCloud2.
        T_map_sensor: Where it was taken from.
        T_map_base: Where the robot was.
        covariance: (6, 6) by which that of the robot's pose grew since the last one.
    """

    message: Any
    T_map_sensor: SE3
    T_map_base: SE3
    covariance: NDArray[np.float64]


class ElevationNodeConfig(Config):
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


class ElevationNode(Node[ElevationNodeConfig]):
    """Maps how high the ground is round a robot from the points of a depth camera or lidar.

    in: points (sensor_msgs/PointCloud2; another topic by point_cloud_topic; best organised, see `ElevationMap`), /tf
        from map_frame_id to the cloud and to robot_base_frame_id, and, where it is named,
        robot_pose_with_covariance_topic (geometry_msgs/PoseWithCovarianceStamped)
    out: elevation_map (grid_map_msgs/GridMap, latched; layers elevation [m], variance [m²] and ceiling [m]: what is in
        a cell is lower, seen or not; not a number: unknown)
    services: ~/clear_map (std_srvs/Empty)

    Names are those of elevation_mapping.  A worker inserts the clouds, at most ``max_rate`` a second; a result is
    available
    ``latency`` after its cloud. The variances of heights grow with the covariance of the pose, or, without its topic,
    by ``pose_drift``
    with the distance driven.
    """

    state_fields = (
        "_last_cloud_ns",
        "_published_ns",
        "_stale",
        "_pose_covariance",
        "_last_covariance",
        "_last_position",
    )

    def setup(self) -> None:
        """Connect."""
        self._map = ElevationMap(self.config.elevation)
        self._last_cloud_ns = self._published_ns = -(10**18)
        self._stale = self._is_clear_pending = False
        self._pose_covariance: NDArray[np.float64] | None = None  # covariance of the pose, as it was last told
        self._last_covariance: NDArray[np.float64] | None = None  # and at the last cloud
        self._last_position: tuple[float, float] | None = None  # where the robot was then
        self._publisher = self.publisher("elevation_map", msg.GridMap, latched=True)
        self.subscribe(self.config.point_cloud_topic, msg.PointCloud2, self._on_cloud)
        if self.config.robot_pose_with_covariance_topic:
            self.subscribe(self.config.robot_pose_with_covariance_topic, msg.PoseWithCovarianceStamped, self._on_pose)
        self.service("~/clear_map", srv.std_srvs.Empty, self._on_clear)
        self._frames = self.frame(self.config.map_frame_id), self.frame(self.config.robot_base_frame_id)
        self._clouds = MessageFilter(
            self,
            self._insert,
            target_frames=self._frames,
            queue_size=_QUEUE_SIZE,
            timeout=_TRANSFORM_TIMEOUT,
            retry_period=0.1,
        )

    def _on_pose(self, message: Any) -> None:
        self._pose_covariance = np.asarray(message.pose.covariance, np.float64).reshape(6, 6)

    def _on_cloud(self, message: Any) -> None:
        time_ns = to_nanoseconds(message.header.stamp)
        # a period less a tenth: stamps jitter, and a camera's need not be a multiple of ours
        is_due = time_ns - self._last_cloud_ns >= round(0.9e9 / self.config.max_rate)
        if is_due and self._clouds.add(message, self.config.point_cloud_topic):
            self._last_cloud_ns = time_ns

    def _insert(self, message: Any, topic: str) -> None:
        """Give a cloud to the worker; the others wait until the worker is done."""
        self._clouds.pause()
        time_ns, (map_frame, base) = to_nanoseconds(message.header.stamp), self._frames
        T_map_sensor = self.transforms.lookup(map_frame, message.header.frame_id, time_ns)
        T_map_base = self.transforms.lookup(map_frame, base, time_ns)
        job = ElevationCloudJob(message, T_map_sensor, T_map_base, self._covariance_growth(T_map_base))
        self.offload(insert_cloud, self._map, job, latency=self.config.latency, on_done=self._on_inserted)

    def _covariance_growth(self, T_map_base: SE3) -> NDArray[np.float64]:
        """(6, 6) by which the covariance of the pose grew since the last cloud, never shrinking."""
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

    def _on_inserted(self, future: Future) -> None:
        insertion: CloudInsertion | str = future.result
        if isinstance(insertion, str):
            self.report_health("error", f"a cloud is left out: {insertion}")
        else:
            self.report_health("ok", f"{insertion.n_known_cells} cells known", points=insertion.n_points)
            self._stale = True
        if self._is_clear_pending:
            self._map.clear()
            self._is_clear_pending, self._stale = False, True
        if self._stale and self.now_ns - self._published_ns >= round(self.config.publish_period * 1e9):
            self._publish()
        self._clouds.resume()

    def _publish(self) -> None:
        self._stale, self._published_ns = False, self.now_ns
        layers = {HEIGHTS: self._map.elevation, VARIANCE: self._map.variance, CEILING: self._map.ceiling}
        frame, cell = self.frame(self.config.map_frame_id), self.config.elevation.resolution
        self._publisher.publish(grid_map_to_msg(layers, self._map.min_corner, cell, self.now_ns, frame))

    def _on_clear(self, request: Any) -> Any:
        if self._clouds.is_paused:  # the worker has the map
            self._is_clear_pending = True
        else:
            self._map.clear()
            self._publish()
        return srv.std_srvs.Empty.Response()

    def save_state(self) -> dict[str, Any]:
        """State as plain data, the map with it.

        Raises:
            RunError: work is under way.
        """
        return super().save_state() | {"map": self._map.save_state(), "clouds": self._clouds.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._map.load_state(state["map"])
        self._clouds.load_state(state["clouds"])


def insert_cloud(elevation_map: ElevationMap, job: ElevationCloudJob) -> CloudInsertion | str:
    """Take a cloud into a map, which goes with the robot; what came of it, or what is wrong with the cloud."""
    try:
        points = np.stack(cloud_from_msg(job.message, color=False).xyz, axis=-1)
        height, width = int(job.message.height), int(job.message.width)
        if height > 1:
            points = points.reshape(height, width, 3)
        elevation_map.inflate_variance(job.T_map_base, job.covariance)
        elevation_map.recenter(job.T_map_base.x, job.T_map_base.y)
        return elevation_map.insert(points, job.T_map_sensor)
    except InputError as error:
        return str(error)
