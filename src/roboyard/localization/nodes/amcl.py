"""The amcl node: maps, scans and transforms in, the robot's pose in the map out."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import DroppedMessage, DropReason, MessageFilter, TransformError
from roboyard.config import parameter
from roboyard.config.ros_parameters import RosNodeConfig
from roboyard.control.throttle import Throttle
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE2, SE3
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.localization.amcl import Amcl, AmclConfig, AmclEstimate
from roboyard.localization.nodes.amcl_messages import cloud_message, pose_message, scan_of
from roboyard.localization.nodes.odometry import PLANAR
from roboyard.localization.nodes.ros_node import RosNode
from roboyard.messages import msg, srv
from roboyard.messages.convert import grid_origin, grid_to_array, pose_to_se2
from roboyard.messages.time import to_nanoseconds

_QUEUE_SIZE = 20
"""Scans of a laser that wait for their transforms, at most."""
_DROP_TEXTS = {
    DropReason.NO_TRANSFORM_FOUND: "scans without a transform",
    DropReason.QUEUE_FULL: "scans whose transforms never came",
    DropReason.EMPTY_FRAME_ID: "scans without a frame",
    DropReason.STAMPED_IN_FUTURE: "scans that are stamped in the future",
}


class AmclNodeConfig(RosNodeConfig):
    """Configuration of `AmclNode`: parameters of Nav2's amcl, those of ROS 1 as aliases, and a few of this package."""

    ros_names: ClassVar[tuple[str, ...]] = ("amcl",)
    ignored: ClassVar[frozenset[str]] = RosNodeConfig.ignored | {
        "initial_pose_z", "always_reset_initial_pose", "use_map_topic", "first_map_only_", "introspection_mode",
        "random_seed",
    }  # fmt: skip

    # frames, topics, transforms
    global_frame_id: str = parameter("map", doc="Frame of the map.")
    odom_frame_id: str = parameter("odom", doc="Frame of the odometry.")
    base_frame_id: str = parameter("base_link", doc="Frame of the base.")
    map_topic: str = parameter("map", doc="Topic of the map, nav_msgs/OccupancyGrid.")
    scan_topic: str = parameter("scan", doc="Topic of the scans, sensor_msgs/LaserScan.")
    more_scan_topics: tuple[str, ...] = parameter((), doc="Scan topics of further lasers.")
    tf_broadcast: bool = parameter(True, doc="Publish the transform map → odom.")
    transform_tolerance: float = parameter(
        0.2, unit="s", low=0.0, high=60.0, doc="Time added to the stamp of map → odom.", runtime=True
    )
    wait_for_transform: float = parameter(
        0.5, unit="s", low=0.0, high=10.0, doc="Time that a scan waits for its transforms.", runtime=True
    )
    first_map_only: bool = parameter(False, doc="Ignore maps after the first.")
    # start
    set_initial_pose: bool = parameter(False, doc="Start at initial_pose_x, initial_pose_y, initial_pose_yaw.")
    initial_pose_x: float = parameter(0.0, unit="m", low=-1e6, high=1e6, doc="Position x of the initial pose.")
    initial_pose_y: float = parameter(0.0, unit="m", low=-1e6, high=1e6, doc="Position y of the initial pose.")
    initial_pose_yaw: float = parameter(
        0.0, unit="rad", low=-1e3, high=1e3, aliases=("initial_pose_a",), doc="Heading of the initial pose."
    )
    initial_cov_xx: float = parameter(0.25, unit="m²", low=0.0, high=1e6, doc="Variance of x of the initial pose.")
    initial_cov_yy: float = parameter(0.25, unit="m²", low=0.0, high=1e6, doc="Variance of y of the initial pose.")
    initial_cov_aa: float = parameter(
        0.0685, unit="rad²", low=0.0, high=100.0, doc="Variance of the heading of the initial pose."
    )
    start_anywhere: bool = parameter(False, doc="Start with global localization.")
    # particle cloud
    particle_cloud_rate: float = parameter(
        1.0,
        unit="Hz",
        low=0.0,
        high=100.0,
        aliases=("gui_publish_rate",),
        doc="Rate of particle_cloud; 0: with every update.",
    )
    particle_cloud_limit: int = parameter(200, low=1, high=1_000_000, doc="Largest number of particles published.")
    filter: AmclConfig = parameter(factory=AmclConfig, flatten="", doc="The particle filter.")


class AmclNode(RosNode[AmclNodeConfig]):
    """Localises the robot in a map, by adaptive Monte-Carlo localisation.

    in: map, scan (one topic or several), initialpose, /tf odom → base → laser
    out: amcl_pose (geometry_msgs/PoseWithCovarianceStamped), particle_cloud (nav2_msgs/ParticleCloud), /tf map → odom
    services: reinitialize_global_localization, request_nomotion_update (std_srvs/Empty), set_initial_pose (nav2_msgs)

    Parameters are called as in Nav2's amcl.
    """

    state_fields = ("_map", "_last_ns", "_T_map_odom", "_dropped")

    def setup(self) -> None:
        """Connect."""
        super().setup()
        self._filter = Amcl(self.config.filter, self.random)
        self._map: tuple[NDArray[np.int8], float, tuple[float, float, float]] | None = None
        self._last_ns: dict[str, int] = {}
        self._T_map_odom: tuple[float, float, float] | None = None
        self._dropped = 0
        self._frames = tuple(
            map(self.frame, (self.config.global_frame_id, self.config.odom_frame_id, self.config.base_frame_id))
        )
        self._cloud_throttle = Throttle(self.config.particle_cloud_rate)
        self._pose = self.publisher("amcl_pose", msg.PoseWithCovarianceStamped, latched=True)
        self._cloud = self.publisher("particle_cloud", msg.ParticleCloud, latched=True)
        self.subscribe(self.config.map_topic, msg.OccupancyGrid, self._on_map)
        self.subscribe("initialpose", msg.PoseWithCovarianceStamped, self._on_initial_pose)
        for topic in self._topics():
            self.subscribe(topic, msg.LaserScan, partial(self._on_scan, topic))
        self.service("reinitialize_global_localization", srv.Empty, self._on_global)
        self.service("request_nomotion_update", srv.Empty, self._on_nomotion)
        self.service("set_initial_pose", srv.SetInitialPose, self._on_set_pose)
        self._scans = MessageFilter(
            self,
            self._process,
            target_frames=self._frames[1:],
            queue_size=_QUEUE_SIZE,
            timeout=lambda: self.config.wait_for_transform,
            retry_period=0.02,
            on_drop=self._on_drop,
        )
        if self.config.set_initial_pose:
            spread = np.diag([self.config.initial_cov_xx, self.config.initial_cov_yy, self.config.initial_cov_aa])
            self._filter.start(
                SE2(self.config.initial_pose_x, self.config.initial_pose_y, self.config.initial_pose_yaw), spread
            )
        elif self.config.start_anywhere:
            self._filter.start_anywhere()
        self._tell()

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {
            "filter": self._filter.save_state(),
            "cloud": self._cloud_throttle.save_state(),
            "scans": self._scans.save_state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        if self._map is not None:
            cells, resolution, origin = self._map
            self._filter.set_map(OccupancyGrid(cells, GridGeometry(resolution, cells.shape, SE2(*origin))))
        self._filter.load_state(state["filter"])
        self._cloud_throttle.load_state(state["cloud"])
        self._scans.load_state(state["scans"])

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _topics(self) -> tuple[str, ...]:
        topics = tuple(dict.fromkeys((self.config.scan_topic, *self.config.more_scan_topics)))
        if "" in topics:
            raise ConfigError(
                "a scan topic without a name", location=self.full_name, valid="topics of sensor_msgs/LaserScan"
            )
        return topics

    def _on_map(self, message: Any) -> None:
        frame = message.header.frame_id
        if self.config.first_map_only and self._map is not None:
            return
        if frame not in (self._frames[0], self.config.global_frame_id):
            self.log.error(f"left out a map of frame '{frame}': localisation is in '{self._frames[0]}'", throttle=5.0)
            self.report_health("error", "the map is of another frame", frame=frame, wanted=self._frames[0])
            return
        try:
            cells, origin = np.array(grid_to_array(message)), grid_origin(message)
            place = GridGeometry(float(message.info.resolution), (cells.shape[0], cells.shape[1]), origin)
            self._filter.set_map(OccupancyGrid(cells, place))
        except RoboyardError as error:
            self.log.error(f"left out a map: {error}", throttle=5.0)
            self.report_health("error", "the map cannot be used", reason=str(error))
            return
        self._map = (cells, place.resolution, (origin.x, origin.y, origin.theta))
        self._tell()

    def _on_initial_pose(self, message: Any) -> None:
        frame = message.header.frame_id
        if frame not in (self._frames[0], self.config.global_frame_id):
            self.log.warn(f"left out a first pose in frame '{frame}'; it must be in '{self._frames[0]}'")
            return
        try:
            covariance = np.asarray(message.pose.covariance, dtype=np.float64)[PLANAR].reshape(3, 3)
            pose = pose_to_se2(message.pose.pose) @ self._moved_since(to_nanoseconds(message.header.stamp))
            self._filter.start(pose, covariance)
        except RoboyardError as error:
            self.log.warn(f"left out a first pose: {error}")
            return
        self._tell()

    def _moved_since(self, time_ns: int) -> SE2:
        """How the base moved since a pose was stamped; not at all, if that is not known."""
        _, odom, base = self._frames
        try:
            then, now = self.transforms.lookup(odom, base, time_ns), self.transforms.lookup(odom, base)
        except TransformError:
            return SE2.identity()
        return SE2.from_se3(then.inverse() @ now)

    def _on_set_pose(self, request: Any) -> Any:
        self._on_initial_pose(request.pose)
        return srv.SetInitialPose.Response()

    def _on_global(self, request: Any) -> Any:
        self._filter.start_anywhere()
        self._T_map_odom = None
        self._tell()
        return srv.Empty.Response()

    def _on_nomotion(self, request: Any) -> Any:
        self._filter.request_update()
        return srv.Empty.Response()

    # -- scans ---------------------------------------------------------------------------------------------------------
    def _on_scan(self, topic: str, scan: Any) -> None:
        if self._filter.has_map and self._filter.started:
            self._scans.add(scan, topic)
        else:
            self._tell()

    def _process(self, scan: Any, topic: str) -> None:
        """Process a scan whose transforms are known."""
        time_ns = to_nanoseconds(scan.header.stamp)
        if time_ns <= self._last_ns.get(topic, -1):
            self._drop("scans that are not later than the one before")
            return
        _, odom, base = self._frames
        T_odom_base = self.transforms.lookup(odom, base, time_ns)
        T_base_laser = self.transforms.lookup(base, scan.header.frame_id, time_ns)
        self._last_ns[topic] = time_ns
        try:
            estimate = self._filter.process(scan_of(scan, topic, T_base_laser, T_odom_base))
        except RoboyardError as error:
            self._drop("scans that cannot be used", reason=str(error))
            return
        if estimate is not None:
            self._publish(estimate)
        self._broadcast(time_ns)

    def _on_drop(self, dropped: DroppedMessage) -> None:
        reason = {"reason": dropped.transform_error} if dropped.transform_error else {}
        self._drop(_DROP_TEXTS[dropped.reason], **reason)

    def _drop(self, what: str, **why: Any) -> None:
        self._dropped += 1
        reason = f": {why['reason']}" if "reason" in why else ""
        self.log.warn(f"left out {what}{reason}", throttle=5.0)
        self.report_health("warn", f"left out {what}", count=self._dropped, **why)

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _publish(self, estimate: AmclEstimate) -> None:
        correction = estimate.T_map_odom
        self._T_map_odom = (correction.x, correction.y, correction.theta)
        self._pose.publish(pose_message(estimate, self._frames[0]))
        if self._cloud_throttle.passes(estimate.time_ns):
            self._cloud.publish(
                cloud_message(self._filter, self._frames[0], estimate.time_ns, self.config.particle_cloud_limit)
            )
        best, spread = estimate.clusters[0], math.sqrt(float(np.trace(estimate.covariance[:2, :2])))
        sure = best.weight > 0.9 and estimate.explained > 0.5
        self.report_health(
            "ok" if sure else "warn", "localised" if sure else "not sure where the robot is",
            explained=round(estimate.explained, 3), particles=estimate.particles, clusters=len(estimate.clusters),
            spread=round(spread, 3),
        )  # fmt: skip

    def _broadcast(self, time_ns: int) -> None:
        if self.config.tf_broadcast and self._T_map_odom is not None:
            pose: SE3 = SE2(*self._T_map_odom).to_se3()
            later = time_ns + round(self.config.transform_tolerance * 1e9)
            self.send_transform(pose, self._frames[0], self._frames[1], time_ns=later)

    def _tell(self) -> None:
        """Health while something is missing."""
        if not self._filter.has_map:
            self.report_health("warn", f"waits for a map on {self.resolve(self.config.map_topic)}")
        elif not self._filter.started:
            self.report_health("warn", "waits for initialpose, or reinitialize_global_localization")
