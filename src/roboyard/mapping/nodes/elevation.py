"""The elevation map in a live run, as elevation_mapping makes it: clouds in, heights and their variances out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Future, MessageFilter, Node
from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.mapping.elevation import ElevationConfig, ElevationMap, Taken
from roboyard.mapping.nodes.octree_messages import cloud_from_msg
from roboyard.messages import msg, srv, to_nanoseconds
from roboyard.messages.convert.grid_maps import CEILING, HEIGHTS, VARIANCE, grid_map_to_msg

_TRANSFORM_TIMEOUT: Final = 0.3
"""A cloud waits for its transforms until it is older than this [s]."""
_QUEUE_SIZE: Final = 4


@dataclass(frozen=True)
class Look:
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
    elevation: ElevationConfig = parameter(factory=ElevationConfig, doc="Cells and evidence of the map.")
    drift: float = parameter(
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

    Names are those of elevation_mapping.  Clouds are taken in beside the run, at most ``max_rate`` a second: what one
    tells is known ``latency`` after it.  As the pose's covariance grows, so do heights' variances; where nobody tells
    it, by ``drift`` with the way gone.
    """

    state_fields = ("_taken_ns", "_published_ns", "_stale", "_sure", "_before", "_was")

    def setup(self) -> None:
        """Connect."""
        self._map = ElevationMap(self.config.elevation)
        self._taken_ns = self._published_ns = -(10**18)
        self._stale = self._clearing = False
        self._sure: NDArray[np.float64] | None = None  # covariance of the pose, as it was last told
        self._before: NDArray[np.float64] | None = None  # and at the last cloud
        self._was: tuple[float, float] | None = None  # where the robot was then
        self._published = self.publisher("elevation_map", msg.GridMap, latched=True)
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
        self._sure = np.asarray(message.pose.covariance, np.float64).reshape(6, 6)

    def _on_cloud(self, message: Any) -> None:
        time_ns = to_nanoseconds(message.header.stamp)
        # a period less a tenth: stamps jitter, and a camera's need not be a multiple of ours
        is_due = time_ns - self._taken_ns >= round(0.9e9 / self.config.max_rate)
        if is_due and self._clouds.add(message, self.config.point_cloud_topic):
            self._taken_ns = time_ns

    def _insert(self, message: Any, topic: str) -> None:
        """Give a cloud to the worker; the others wait until the worker is done."""
        self._clouds.pause()
        time_ns, (map_frame, base) = to_nanoseconds(message.header.stamp), self._frames
        T_map_sensor = self.transforms.lookup(map_frame, message.header.frame_id, time_ns)
        T_map_base = self.transforms.lookup(map_frame, base, time_ns)
        look = Look(message, T_map_sensor, T_map_base, self._growth(T_map_base))
        self.offload(take_in, self._map, look, latency=self.config.latency, on_done=self._done)

    def _growth(self, T_map_base: SE3) -> NDArray[np.float64]:
        """(6, 6) by which the covariance of the pose grew since the last cloud, never shrinking."""
        place = (T_map_base.x, T_map_base.y)
        gone = 0.0 if self._was is None else float(np.hypot(place[0] - self._was[0], place[1] - self._was[1]))
        self._was = place
        if self._sure is None:
            return np.diag([self.config.drift**2 * gone] * 3 + [0.0] * 3)
        before, self._before = self._before, self._sure
        grown = np.zeros(6) if before is None else np.diag(self._sure) - np.diag(before)
        return np.diag(np.maximum(np.nan_to_num(grown), 0.0))

    def _done(self, future: Future) -> None:
        taken = future.result
        if isinstance(taken, str):
            self.report_health("error", f"a cloud is left out: {taken}")
        else:
            self.report_health("ok", f"{taken.cells} cells known", points=taken.points)
            self._stale = True
        if self._clearing:
            self._map.clear()
            self._clearing, self._stale = False, True
        if self._stale and self.now_ns - self._published_ns >= round(self.config.publish_period * 1e9):
            self._publish()
        self._clouds.resume()

    def _publish(self) -> None:
        self._stale, self._published_ns = False, self.now_ns
        layers = {HEIGHTS: self._map.elevation, VARIANCE: self._map.variance, CEILING: self._map.ceiling}
        frame, cell = self.frame(self.config.map_frame_id), self.config.elevation.resolution
        self._published.publish(grid_map_to_msg(layers, self._map.corner, cell, self.now_ns, frame))

    def _on_clear(self, request: Any) -> Any:
        if self._clouds.is_paused:  # the worker has the map
            self._clearing = True
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
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._map.load_state(state["map"])
        self._clouds.load_state(state["clouds"])


def take_in(known: ElevationMap, look: Look) -> Taken | str:
    """Take a cloud into a map, which goes with the robot; what came of it, or what is wrong with the cloud."""
    try:
        points = np.stack(cloud_from_msg(look.message, color=False).columns, axis=-1)
        height, width = int(look.message.height), int(look.message.width)
        if height > 1:
            points = points.reshape(height, width, 3)
        known.grow(look.T_map_base, look.covariance)
        known.move(look.T_map_base.x, look.T_map_base.y)
        return known.insert(points, look.T_map_sensor)
    except InputError as error:
        return str(error)
