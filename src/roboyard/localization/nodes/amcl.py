"""The node `amcl`: localizes the robot in a map with laser scans and odometry."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import DroppedMessage, DropReason, MessageFilter, TransformError, resource
from roboyard.bus.ros_node import RosNode
from roboyard.bus.throttle import Throttle
from roboyard.bus.transforms import MapToOdomBroadcaster
from roboyard.config import parameter
from roboyard.config.ros_parameters import RosNodeConfig
from roboyard.control.drive_config import DriveConfig, MecanumDriveConfig, PlanarBaseConfig
from roboyard.errors import ConfigError, InputError, RoboyardError
from roboyard.geometry import SE2, SE3
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.localization.amcl import Amcl, AmclConfig, AmclEstimate
from roboyard.localization.amcl.particles import low_variance_indices
from roboyard.mapping import LaserScan
from roboyard.messages import msg, srv
from roboyard.messages.convert import make_header, pose_to_msg, pose_to_se2
from roboyard.messages.convert.grids import occupancy_grid_from_msg
from roboyard.messages.convert.poses import PLANAR_COVARIANCE_INDICES
from roboyard.messages.time import to_nanoseconds

_MIN_UP_COSINE = math.cos(math.radians(10.0))


def scan_from_msg(message: Any, laser: str, T_base_laser: SE3, T_odom_base: SE3) -> LaserScan:
    """Convert a sensor_msgs/LaserScan, with the pose of the base by odometry.

    The beams of a laser that is mounted upside down run in the opposite direction.

    Raises:
        InputError: The laser is tilted, or the message is no valid scan.
    """
    up = float(T_base_laser.rotation_matrix()[2, 2])
    if abs(up) < _MIN_UP_COSINE:
        raise InputError("a laser that does not lie level", location=laser, valid="tilted by less than 10 degrees")
    direction = 1.0 if up > 0.0 else -1.0
    return LaserScan(
        to_nanoseconds(message.header.stamp),
        np.asarray(message.ranges, dtype=np.float32),
        direction * float(message.angle_min),
        direction * float(message.angle_increment),
        float(message.range_min),
        float(message.range_max),
        float(message.time_increment),
        SE2.from_se3(T_base_laser),
        SE2.from_se3(T_odom_base),
        laser,
    )


def amcl_estimate_to_msg(estimate: AmclEstimate, frame: str) -> Any:
    """Convert an estimate to geometry_msgs/PoseWithCovarianceStamped; z, roll and pitch have variance 0, as in Nav2."""
    covariance = np.zeros(36)
    covariance[PLANAR_COVARIANCE_INDICES] = estimate.covariance.reshape(9)
    pose = msg.PoseWithCovariance(pose=pose_to_msg(estimate.T_map_base), covariance=covariance)
    return msg.PoseWithCovarianceStamped(header=make_header(frame, estimate.time_ns), pose=pose)


def particles_to_msg(amcl: Amcl, frame: str, time_ns: int, max_particles: int) -> Any:
    """Convert at most ``max_particles`` particles, drawn by their weights, to nav2_msgs/ParticleCloud."""
    particles, weights = amcl.particles, amcl.weights
    if len(particles) > max_particles:
        rng = np.random.default_rng(time_ns)  # its own generator: publishing must not change the filter
        particles = particles[low_variance_indices(weights, max_particles, rng)]
        weights = np.full(max_particles, 1.0 / max_particles)
    particle_messages = [
        msg.Particle(pose=pose_to_msg(SE2(*particle)), weight=weight)
        for particle, weight in zip(particles.tolist(), weights.tolist(), strict=True)
    ]
    return msg.ParticleCloud(header=make_header(frame, time_ns), particles=particle_messages)


_QUEUE_SIZE = 20
"""Scans of a laser that wait for their transforms, at most."""
_DROP_REASON_TEXTS = {
    DropReason.NO_TRANSFORM_FOUND: "scans without a transform",
    DropReason.QUEUE_FULL: "scans whose transforms did not arrive",
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
    additional_scan_topics: tuple[str, ...] = parameter((), doc="Scan topics of further lasers.")
    tf_broadcast: bool = parameter(True, doc="Publish the transform map → odom.")
    transform_tolerance: float = parameter(
        0.2, unit="s", low=0.0, high=60.0, doc="Time added to the stamp of map → odom.", runtime=True
    )
    transform_timeout: float = parameter(
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
    global_localization_at_start: bool = parameter(False, doc="Start with global localization.")
    # particle cloud
    particle_cloud_rate: float = parameter(
        1.0,
        unit="Hz",
        low=0.0,
        high=100.0,
        aliases=("gui_publish_rate",),
        doc="Rate of particle_cloud; 0: with every update.",
    )
    max_published_particles: int = parameter(200, low=1, high=1_000_000, doc="Largest number of particles published.")
    filter: AmclConfig = parameter(factory=AmclConfig, flatten="", doc="The particle filter.")


class AmclNode(RosNode[AmclNodeConfig]):
    """Localizes the robot in a map by adaptive Monte Carlo localization.

    in: map, scan (one topic or several), initialpose, /tf odom → base → laser
    out: amcl_pose (geometry_msgs/PoseWithCovarianceStamped), particle_cloud (nav2_msgs/ParticleCloud), /tf map → odom
    services: reinitialize_global_localization, request_nomotion_update (std_srvs/Empty), set_initial_pose (nav2_msgs)

    The parameters have the names of Nav2's amcl.  A ``robot_model_type`` that they leave out is that of the robot's
    drive.
    """

    drive_geometry: DriveConfig | None = resource(DriveConfig, optional=True)

    state_fields = ("_map", "_last_ns", "_T_map_odom", "_dropped")

    def setup(self) -> None:
        """Connect."""
        super().setup()
        self._filter = Amcl(self._filter_config(), self.random)
        self._map: tuple[NDArray[np.int8], float, tuple[float, float, float]] | None = None
        self._last_ns: dict[str, int] = {}
        self._T_map_odom: tuple[float, float, float] | None = None
        self._dropped = 0
        self._frames = tuple(
            map(self.frame, (self.config.global_frame_id, self.config.odom_frame_id, self.config.base_frame_id))
        )
        self._map_to_odom = MapToOdomBroadcaster(self, *self._frames)
        self._cloud_throttle = Throttle(self.config.particle_cloud_rate)
        self._pose = self.publisher("amcl_pose", msg.PoseWithCovarianceStamped, latched=True)
        self._cloud = self.publisher("particle_cloud", msg.ParticleCloud, latched=True)
        self.subscribe(self.config.map_topic, msg.OccupancyGrid, self._on_map)
        self.subscribe("initialpose", msg.PoseWithCovarianceStamped, self._on_initial_pose)
        for topic in self._scan_topics():
            self.subscribe(topic, msg.LaserScan, partial(self._on_scan, topic))
        self.service("reinitialize_global_localization", srv.Empty, self._on_global)
        self.service("request_nomotion_update", srv.Empty, self._on_nomotion)
        self.service("set_initial_pose", srv.SetInitialPose, self._on_set_pose)
        self._scans = MessageFilter(
            self,
            self._process_scan,
            target_frames=self._frames[1:],
            queue_size=_QUEUE_SIZE,
            timeout=lambda: self.config.transform_timeout,
            retry_period=0.02,
            on_drop=self._on_drop,
        )
        if self.config.set_initial_pose:
            covariance = np.diag([self.config.initial_cov_xx, self.config.initial_cov_yy, self.config.initial_cov_aa])
            self._filter.set_initial_pose(
                SE2(self.config.initial_pose_x, self.config.initial_pose_y, self.config.initial_pose_yaw), covariance
            )
        elif self.config.global_localization_at_start:
            self._filter.start_global_localization()
        self._report_missing_input()

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {
            "filter": self._filter.save_state(),
            "cloud": self._cloud_throttle.save_state(),
            "scans": self._scans.save_state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        super().load_state(state)
        if self._map is not None:
            cells, resolution, origin = self._map
            self._filter.set_map(OccupancyGrid(cells, GridGeometry(resolution, cells.shape, SE2(*origin))))
        self._filter.load_state(state["filter"])
        self._cloud_throttle.load_state(state["cloud"])
        self._scans.load_state(state["scans"])

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _filter_config(self) -> AmclConfig:
        config = self.config.filter
        if config.robot_model_type or not isinstance(self.drive_geometry, MecanumDriveConfig | PlanarBaseConfig):
            return config
        return replace(config, robot_model_type="omnidirectional")

    def _scan_topics(self) -> tuple[str, ...]:
        topics = tuple(dict.fromkeys((self.config.scan_topic, *self.config.additional_scan_topics)))
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
            self.log.error(f"dropped a map of frame '{frame}': localization is in '{self._frames[0]}'", throttle=5.0)
            self.report_health("error", "the map is of another frame", frame=frame, wanted=self._frames[0])
            return
        try:
            grid = occupancy_grid_from_msg(message, exact_resolution=True)
            self._filter.set_map(grid)
        except RoboyardError as error:
            self.log.error(f"dropped a map: {error}", throttle=5.0)
            self.report_health("error", "the map cannot be used", reason=str(error))
            return
        origin = grid.geometry.T_map_grid
        self._map = (grid.cells, grid.geometry.resolution, (origin.x, origin.y, origin.theta))
        self._report_missing_input()

    def _on_initial_pose(self, message: Any) -> None:
        frame = message.header.frame_id
        if frame not in (self._frames[0], self.config.global_frame_id):
            self.log.warn(f"dropped an initial pose in frame '{frame}'; it must be in '{self._frames[0]}'")
            return
        try:
            covariance = np.asarray(message.pose.covariance, dtype=np.float64)[PLANAR_COVARIANCE_INDICES].reshape(3, 3)
            pose = pose_to_se2(message.pose.pose) @ self._motion_since(to_nanoseconds(message.header.stamp))
            self._filter.set_initial_pose(pose, covariance)
        except RoboyardError as error:
            self.log.warn(f"dropped an initial pose: {error}")
            return
        self._report_missing_input()

    def _motion_since(self, time_ns: int) -> SE2:
        """Return the motion of the base since a pose was stamped; identity if it is unknown."""
        _, odom, base = self._frames
        try:
            earlier_pose, current_pose = self.transforms.lookup(odom, base, time_ns), self.transforms.lookup(odom, base)
        except TransformError:
            return SE2.identity()
        return SE2.from_se3(earlier_pose.inverse() @ current_pose)

    def _on_set_pose(self, request: Any) -> Any:
        self._on_initial_pose(request.pose)
        return srv.SetInitialPose.Response()

    def _on_global(self, request: Any) -> Any:
        self._filter.start_global_localization()
        self._T_map_odom = None
        self._report_missing_input()
        return srv.Empty.Response()

    def _on_nomotion(self, request: Any) -> Any:
        self._filter.request_update()
        return srv.Empty.Response()

    # -- scans ---------------------------------------------------------------------------------------------------------
    def _on_scan(self, topic: str, scan: Any) -> None:
        if self._filter.has_map and self._filter.is_initialized:
            self._scans.add(scan, topic)
        else:
            self._report_missing_input()

    def _process_scan(self, scan: Any, topic: str) -> None:
        """Process a scan whose transforms are known."""
        time_ns = to_nanoseconds(scan.header.stamp)
        if time_ns <= self._last_ns.get(topic, -1):
            self._report_dropped("scans that are not later than the one before")
            return
        _, odom, base = self._frames
        T_odom_base = self.transforms.lookup(odom, base, time_ns)
        T_base_laser = self.transforms.lookup(base, scan.header.frame_id, time_ns)
        self._last_ns[topic] = time_ns
        try:
            estimate = self._filter.process(scan_from_msg(scan, topic, T_base_laser, T_odom_base))
        except RoboyardError as error:
            self._report_dropped("scans that cannot be used", reason=str(error))
            return
        if estimate is not None:
            self._publish(estimate)
        self._broadcast(time_ns)

    def _on_drop(self, dropped: DroppedMessage) -> None:
        reason = {"reason": dropped.transform_error} if dropped.transform_error else {}
        self._report_dropped(_DROP_REASON_TEXTS[dropped.reason], **reason)

    def _report_dropped(self, description: str, **values: Any) -> None:
        self._dropped += 1
        reason = f": {values['reason']}" if "reason" in values else ""
        self.log.warn(f"dropped {description}{reason}", throttle=5.0)
        self.report_health("warn", f"dropped {description}", count=self._dropped, **values)

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _publish(self, estimate: AmclEstimate) -> None:
        correction = estimate.T_map_odom
        self._T_map_odom = (correction.x, correction.y, correction.theta)
        self._pose.publish(amcl_estimate_to_msg(estimate, self._frames[0]))
        if self._cloud_throttle.should_pass(estimate.time_ns):
            self._cloud.publish(
                particles_to_msg(self._filter, self._frames[0], estimate.time_ns, self.config.max_published_particles)
            )
        best, position_std = estimate.clusters[0], math.sqrt(float(np.trace(estimate.covariance[:2, :2])))
        is_localized = best.weight > 0.9 and estimate.inlier_fraction > 0.5
        self.report_health(
            "ok" if is_localized else "warn",
            "localized" if is_localized else "the pose is uncertain",
            explained=round(estimate.inlier_fraction, 3),
            particles=estimate.n_particles,
            clusters=len(estimate.clusters),
            spread=round(position_std, 3),
        )

    def _broadcast(self, time_ns: int) -> None:
        if self.config.tf_broadcast and self._T_map_odom is not None:
            stamp_ns = time_ns + round(self.config.transform_tolerance * 1e9)
            self._map_to_odom.send_correction(SE2(*self._T_map_odom), stamp_ns)

    def _report_missing_input(self) -> None:
        """Report in the node's health which input is missing."""
        if not self._filter.has_map:
            self.report_health("warn", f"waiting for a map on {self.resolve(self.config.map_topic)}")
        elif not self._filter.is_initialized:
            self.report_health("warn", "waiting for initialpose or reinitialize_global_localization")
