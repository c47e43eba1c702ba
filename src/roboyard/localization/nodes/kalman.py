"""The nodes `ekf` and `ukf`: fuse odometry, IMUs, poses and twists to one filtered odometry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from roboyard.bus import resource
from roboyard.bus.ros_node import RosNode
from roboyard.bus.transforms import MapToOdomBroadcaster, TransformBuffer, TransformError
from roboyard.config import parameter
from roboyard.config.ros_parameters import RosNodeConfig
from roboyard.control.drive_config import DriveLimits
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import STANDARD_GRAVITY
from roboyard.localization.kalman import (
    FusedEstimate,
    FusionConfig,
    Measurement,
    MeasurementSource,
    SensorFusion,
    SourceConfig,
    StationaryGyroBias,
    twist_at_base,
)
from roboyard.localization.kalman.config import (
    ImuSourceConfig,
    OdometrySourceConfig,
    PoseSourceConfig,
    TwistSourceConfig,
)
from roboyard.messages import msg, srv
from roboyard.messages.convert import (
    make_header,
    odometry_to_msg,
    pose_to_msg,
    pose_to_se3,
    quaternion_to_array,
    twist_to_arrays,
    vector_to_array,
)
from roboyard.messages.time import is_in_future, to_nanoseconds

_MAX_STATIONARY_SPEED = 0.005
"""Speed below which the base is stationary [m/s], [rad/s]."""


class MeasurementBuilder:
    """Converts messages of the sources to measurements in the world frame and the base frame.

    Args:
        transforms: Transforms between all frames.
        world_frame: Frame of the state's pose.
        base_frame: Frame of the base.
        gyro_bias: Estimates the bias of the gyroscope.
        attitude: Returns roll and pitch of the present estimate [rad].

    Its methods raise ``RoboyardError`` if a frame is unknown or numbers are not a valid pose.
    """

    def __init__(
        self, transforms: TransformBuffer, world_frame: str, base_frame: str, gyro_bias: StationaryGyroBias,
        attitude: Callable[[], tuple[float, float]],
    ) -> None:  # fmt: skip
        self._transforms, self._world_frame, self._base_frame = transforms, world_frame, base_frame
        self._gyro_bias, self._attitude = gyro_bias, attitude

    def odometry(self, source: MeasurementSource, message: Any) -> list[Measurement | None]:
        """Convert a nav_msgs/Odometry."""
        time_ns, measurements = to_nanoseconds(message.header.stamp), []
        child = message.child_frame_id or self._base_frame
        if source.uses_pose:
            measurements.append(self._pose(source, time_ns, message.header.frame_id, child, message.pose))
        linear, angular = twist_to_arrays(message.twist.twist)
        self._gyro_bias.set_stationary(time_ns, bool(np.abs([*linear, *angular]).max() < _MAX_STATIONARY_SPEED))
        if source.uses_twist:
            measurements.append(self._twist(source, time_ns, child, message.twist))
        return measurements

    def pose(self, source: MeasurementSource, message: Any) -> list[Measurement | None]:
        """Convert a geometry_msgs/PoseWithCovarianceStamped, a pose of the base."""
        time_ns = to_nanoseconds(message.header.stamp)
        return [self._pose(source, time_ns, message.header.frame_id, self._base_frame, message.pose)]

    def twist(self, source: MeasurementSource, message: Any) -> list[Measurement | None]:
        """Convert a geometry_msgs/TwistWithCovarianceStamped."""
        time_ns = to_nanoseconds(message.header.stamp)
        linear, angular = twist_to_arrays(message.twist.twist)
        self._gyro_bias.set_stationary(time_ns, bool(np.abs([*linear, *angular]).max() < _MAX_STATIONARY_SPEED))
        return [self._twist(source, time_ns, message.header.frame_id or self._base_frame, message.twist)]

    def imu(self, source: MeasurementSource, message: Any) -> list[Measurement | None]:
        """Convert a sensor_msgs/Imu: orientation, angular velocity and acceleration, as far as it measures them."""
        time_ns = to_nanoseconds(message.header.stamp)
        T = self._mount_pose(message.header.frame_id or self._base_frame)
        R = T.rotation_matrix()
        measurements, attitude = [], self._attitude()
        covariance = _matrix3(message.orientation_covariance)
        if covariance[0, 0] >= 0.0 and source.uses_pose:
            T_world_imu = SE3(quaternion_to_array(message.orientation))
            T_world_base = T_world_imu @ SE3(T.rotation).inverse()
            attitude = float(T_world_base.rpy[0]), float(T_world_base.rpy[1])
            measurements.append(source.pose(time_ns, T_world_base, _angular_block(covariance)))
        covariance = _matrix3(message.angular_velocity_covariance)
        rates = R @ vector_to_array(message.angular_velocity)
        if source.config.bias_at_rest:
            rates = self._gyro_bias.correct(time_ns, rates)
        if covariance[0, 0] >= 0.0 and source.uses_twist:
            measurements.append(
                source.twist(time_ns, np.concatenate([np.zeros(3), rates]), _angular_block(R @ covariance @ R.T))
            )
        covariance = _matrix3(message.linear_acceleration_covariance)
        if covariance[0, 0] >= 0.0:
            acceleration = R @ vector_to_array(message.linear_acceleration)
            measurements.append(source.acceleration(time_ns, acceleration, R @ covariance @ R.T, attitude))
        return measurements

    # -- frames --------------------------------------------------------------------------------------------------------
    def _pose(
        self, source: MeasurementSource, time_ns: int, frame: str, child: str, message: Any
    ) -> Measurement | None:
        T_frame_child = pose_to_se3(message.pose)
        covariance = np.asarray(message.covariance, dtype=np.float64).reshape(6, 6)
        T_frame_base = T_frame_child if child == self._base_frame else T_frame_child @ self._mount_pose(child).inverse()
        # For differential and relative poses the frame does not matter.
        if frame == self._world_frame or source.config.differential or source.config.relative:
            return source.pose(time_ns, T_frame_base, covariance)
        T_world_frame = self._transforms.lookup(self._world_frame, frame)
        R = np.kron(np.eye(2), T_world_frame.rotation_matrix())
        return source.pose(time_ns, T_world_frame @ T_frame_base, R @ covariance @ R.T)

    def _twist(self, source: MeasurementSource, time_ns: int, frame: str, message: Any) -> Measurement | None:
        linear, angular = twist_to_arrays(message.twist)
        values, covariance = (
            np.concatenate([linear, angular]),
            np.asarray(message.covariance, dtype=np.float64).reshape(6, 6),
        )
        if frame != self._base_frame:
            values, covariance = twist_at_base(self._mount_pose(frame), values, covariance)
        return source.twist(time_ns, values, covariance)

    def _mount_pose(self, frame: str) -> SE3:
        """Return ``T_base_frame`` of a frame that is fixed to the base."""
        return SE3.identity() if frame == self._base_frame else self._transforms.lookup(self._base_frame, frame)


SOURCE_TYPES = {
    "odom": (msg.Odometry, MeasurementBuilder.odometry),
    "pose": (msg.PoseWithCovarianceStamped, MeasurementBuilder.pose),
    "twist": (msg.TwistWithCovarianceStamped, MeasurementBuilder.twist),
    "imu": (msg.Imu, MeasurementBuilder.imu),
}
"""Message type of each kind of source, and the method that converts it to measurements."""


def _matrix3(values: Any) -> Array:
    return np.asarray(values, dtype=np.float64).reshape(3, 3)


def _angular_block(block: Array) -> Array:
    """Return (6, 6) with a (3, 3) block of the angular part."""
    full = np.zeros((6, 6))
    full[3:, 3:] = block
    return full


_MEASURED_STATES = {"odom": slice(0, 12), "pose": slice(0, 6), "twist": slice(6, 12), "imu": slice(3, 15)}
"""States that a source of each kind measures (of an IMU without the linear velocities)."""
_STALE_AFTER = 2.0
"""Time without messages after which a source is reported [s]."""


class KalmanNodeConfig(RosNodeConfig):
    """Configuration of the fusion nodes, under the names of robot_localization."""

    ros_names: ClassVar[tuple[str, ...]] = (
        "ekf_filter_node", "ukf_filter_node", "ekf_node", "ukf_node", "ekf_localization", "ukf_localization",
        "ekf_localization_node", "ukf_localization_node", "ekf_se_odom", "ekf_se_map", "ukf_se", "ekf_se",
    )  # fmt: skip
    ignored: ClassVar[frozenset[str]] = RosNodeConfig.ignored | {"debug_out_file", "disabled_at_startup"}

    frequency: float = parameter(30.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the estimate.")
    transform_time_offset: float = parameter(
        0.0, unit="s", low=-10.0, high=10.0, doc="Time added to the stamps of transforms."
    )
    transform_timeout: float = parameter(
        0.0, unit="s", low=0.0, high=10.0, doc="Without effect: frames of sensors are static."
    )
    map_frame: str = parameter("map", doc="Name of the map frame.")
    odom_frame: str = parameter("odom", doc="Name of the odometry frame.")
    base_link_frame: str = parameter("base_link", doc="Name of the base frame.")
    world_frame: str = parameter(
        "odom", doc="Frame of the estimate: odom_frame (publishes odom → base) or map_frame (publishes map → odom)."
    )
    publish_tf: bool = parameter(True, doc="Publish the transform.")
    publish_acceleration: bool = parameter(False, doc="Publish accel/filtered.")
    predict_to_current_time: bool = parameter(False, doc="Predict the estimate to the present time.")
    reset_on_time_jump: bool = parameter(False, doc="Restart where stamps go back by more than a second.")
    gravitational_acceleration: float = parameter(
        STANDARD_GRAVITY, unit="m/s²", low=0.0, high=100.0, doc="Gravity in the accelerations of IMUs."
    )
    use_control: bool = parameter(False, doc="Use commanded velocities of cmd_vel for the prediction.")
    stamped_control: bool = parameter(False, doc="Messages of cmd_vel are geometry_msgs/TwistStamped.")
    filter: FusionConfig = parameter(factory=FusionConfig, flatten="", doc="The filter.")
    odom0: OdometrySourceConfig = parameter(
        factory=OdometrySourceConfig, flatten="odom0", doc="Source 0 of nav_msgs/Odometry."
    )
    odom1: OdometrySourceConfig = parameter(
        factory=OdometrySourceConfig, flatten="odom1", doc="Source 1 of nav_msgs/Odometry."
    )
    odom2: OdometrySourceConfig = parameter(
        factory=OdometrySourceConfig, flatten="odom2", doc="Source 2 of nav_msgs/Odometry."
    )
    odom3: OdometrySourceConfig = parameter(
        factory=OdometrySourceConfig, flatten="odom3", doc="Source 3 of nav_msgs/Odometry."
    )
    pose0: PoseSourceConfig = parameter(
        factory=PoseSourceConfig, flatten="pose0", doc="Source 0 of geometry_msgs/PoseWithCovarianceStamped."
    )
    pose1: PoseSourceConfig = parameter(
        factory=PoseSourceConfig, flatten="pose1", doc="Source 1 of geometry_msgs/PoseWithCovarianceStamped."
    )
    pose2: PoseSourceConfig = parameter(
        factory=PoseSourceConfig, flatten="pose2", doc="Source 2 of geometry_msgs/PoseWithCovarianceStamped."
    )
    pose3: PoseSourceConfig = parameter(
        factory=PoseSourceConfig, flatten="pose3", doc="Source 3 of geometry_msgs/PoseWithCovarianceStamped."
    )
    twist0: TwistSourceConfig = parameter(
        factory=TwistSourceConfig, flatten="twist0", doc="Source 0 of geometry_msgs/TwistWithCovarianceStamped."
    )
    twist1: TwistSourceConfig = parameter(
        factory=TwistSourceConfig, flatten="twist1", doc="Source 1 of geometry_msgs/TwistWithCovarianceStamped."
    )
    twist2: TwistSourceConfig = parameter(
        factory=TwistSourceConfig, flatten="twist2", doc="Source 2 of geometry_msgs/TwistWithCovarianceStamped."
    )
    twist3: TwistSourceConfig = parameter(
        factory=TwistSourceConfig, flatten="twist3", doc="Source 3 of geometry_msgs/TwistWithCovarianceStamped."
    )
    imu0: ImuSourceConfig = parameter(factory=ImuSourceConfig, flatten="imu0", doc="Source 0 of sensor_msgs/Imu.")
    imu1: ImuSourceConfig = parameter(factory=ImuSourceConfig, flatten="imu1", doc="Source 1 of sensor_msgs/Imu.")
    imu2: ImuSourceConfig = parameter(factory=ImuSourceConfig, flatten="imu2", doc="Source 2 of sensor_msgs/Imu.")
    imu3: ImuSourceConfig = parameter(factory=ImuSourceConfig, flatten="imu3", doc="Source 3 of sensor_msgs/Imu.")

    def sources(self) -> dict[str, SourceConfig]:
        """Return the sources that have a topic, by name."""
        names = [f"{kind}{number}" for kind in SOURCE_TYPES for number in range(4)]
        return {name: source for name in names if (source := getattr(self, name)).topic}


class KalmanNode(RosNode[KalmanNodeConfig]):
    """Fuses sources with the filter that ``filter_type`` names; a node of another registered filter only sets it.

    in: the topics of odom0 … imu3, set_pose (geometry_msgs/PoseWithCovarianceStamped), cmd_vel with use_control
    out: odometry/filtered (nav_msgs/Odometry), odom_combined (geometry_msgs/PoseWithCovarianceStamped),
         accel/filtered, /tf world → base or map → odom   service: ~reset (std_srvs/Empty)

    The parameters have the names of robot_localization.  Limits of commanded accelerations that they leave out are
    those of the robot's drive.
    """

    drive_limits: DriveLimits | None = resource(DriveLimits, optional=True)

    filter_type: str = "ekf"
    state_fields = ("_last_received", "_published_ns", "_failures")

    def setup(self) -> None:
        """Connect."""
        super().setup()
        self._fusion = SensorFusion(self._filter_config(), self.filter_type)
        self._gyro_bias = StationaryGyroBias()
        names = (self.config.map_frame, self.config.odom_frame, self.config.base_link_frame, self.config.world_frame)
        self._map, self._odom, self._base, self._world = map(self.frame, names)
        self._map_to_odom = MapToOdomBroadcaster(self, self._map, self._odom, self._base)
        if self.config.world_frame not in (self.config.map_frame, self.config.odom_frame):
            raise ConfigError(
                f"world_frame = {self.config.world_frame!r}",
                location=self.full_name,
                valid=f"{self.config.map_frame}, {self.config.odom_frame}",
            )
        self._measurement_builder = MeasurementBuilder(
            self.transforms, self._world, self._base, self._gyro_bias, self._attitude
        )
        self._last_received: dict[str, int] = {}
        self._failures: dict[str, str] = {}
        self._published_ns = -1
        self._filtered = self.publisher("odometry/filtered", msg.Odometry)
        self._combined = self.publisher("odom_combined", msg.PoseWithCovarianceStamped)
        if self.config.publish_acceleration:
            self._accel = self.publisher("accel/filtered", msg.AccelWithCovarianceStamped)
        gravity = self.config.gravitational_acceleration
        self._sources = {
            name: MeasurementSource(name, config, gravity) for name, config in self._source_configs().items()
        }
        if not self._sources:
            raise ConfigError(
                "there is no source", location=self.full_name, valid="odom0: topic, odom0_config: 15 flags, …"
            )
        for name in self._sources:
            self._subscribe_source(name)
        self.subscribe("set_pose", msg.PoseWithCovarianceStamped, self._on_set_pose)
        if self.config.use_control:
            message_type = msg.TwistStamped if self.config.stamped_control else msg.Twist
            self.subscribe("cmd_vel", message_type, self._on_command)
        self.service("~reset", srv.Empty, self._on_reset)
        self.timer(rate=self.config.frequency, callback=self._publish_estimate)
        self._started_ns = self.now_ns

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        sources = {name: source.save_state() for name, source in self._sources.items()}
        node_state: dict[str, Any] = super().save_state()
        return node_state | {
            "fusion": self._fusion.save_state(),
            "sources": sources,
            "gyro_bias": self._gyro_bias.save_state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        super().load_state(state)
        self._fusion.load_state(state["fusion"])
        self._gyro_bias.load_state(state["gyro_bias"])
        for name, saved in state["sources"].items():
            self._sources[name].load_state(saved)

    # -- configuration -------------------------------------------------------------------------------------------------
    def _filter_config(self) -> FusionConfig:
        config = self.config.filter
        control = config.control.with_drive_limits(self.drive_limits)
        if not self.config.use_control:
            control = replace(control, control_mask=(False,) * 6)
        return replace(config, control=control, history_length=max(config.history_length, 1e-3))

    def _source_configs(self) -> dict[str, SourceConfig]:
        """Return the configurations of the sources by name, without states that their kind does not measure."""
        configs = {}
        for name, config in self.config.sources().items():
            config.check(name)
            kind = name.rstrip("0123456789")
            used = np.array(config.used, dtype=np.bool_)
            is_measured = np.zeros(15, dtype=np.bool_)
            is_measured[_MEASURED_STATES[kind]] = True
            if kind == "imu":
                is_measured[6:9] = False
            if (used & ~is_measured).any():
                self.log.warn(f"{name}_config names states that a source of kind {kind} does not measure: ignored")
            configs[name] = replace(config, used=tuple((used & is_measured).tolist()))
        return configs

    def _subscribe_source(self, name: str) -> None:
        message_type, convert = SOURCE_TYPES[name.rstrip("0123456789")]

        def on_message(message: Any) -> None:
            self._last_received[name] = self.now_ns
            self._check_time_jump(to_nanoseconds(message.header.stamp))
            try:
                measurements = convert(self._measurement_builder, self._sources[name], message)
            except RoboyardError as error:
                self._failures[name] = str(error)
                self.log.warn(f"dropped a message of {name}: {error}", throttle=5.0)
                return
            self._failures.pop(name, None)
            for measurement in measurements:
                if measurement is not None:
                    self._fusion.add(measurement)

        self.subscribe(self.config.sources()[name].topic, message_type, on_message)

    # -- what comes in besides -----------------------------------------------------------------------------------------
    def _check_time_jump(self, time_ns: int) -> None:
        estimate = self._fusion.estimate
        if self.config.reset_on_time_jump and estimate is not None and time_ns < estimate.time_ns - 1_000_000_000:
            self.log.warn("time jumped backwards: filter reset")
            self._reset_filter()

    def _reset_filter(self) -> None:
        self._fusion.reset()
        self._published_ns = -1
        self._sources = {
            name: MeasurementSource(name, source.config, source.gravity) for name, source in self._sources.items()
        }

    def _on_set_pose(self, message: Any) -> None:
        frame = message.header.frame_id
        try:
            T = pose_to_se3(message.pose.pose)
            if frame != self._world:
                T = self.transforms.lookup(self._world, frame) @ T
        except RoboyardError as error:
            self.log.warn(f"rejected set_pose: {error}")
            return
        covariance = np.asarray(message.pose.covariance, dtype=np.float64).reshape(6, 6)
        if not np.isfinite(covariance).all() or (np.diag(covariance) < 0.0).any():
            self.log.warn("rejected set_pose: its covariance is not finite or has negative variances")
            return
        time_ns = to_nanoseconds(message.header.stamp)
        if is_in_future(time_ns, self.now_ns):
            self.log.warn("rejected set_pose: it is stamped in the future")
            return
        self._reset_filter()
        self._fusion.set_pose(time_ns, np.concatenate([T.translation, T.rpy]), covariance)

    def _on_command(self, message: Any) -> None:
        twist = message.twist if self.config.stamped_control else message
        velocity = np.concatenate(twist_to_arrays(twist))
        if np.isfinite(velocity).all():
            self._fusion.set_control(self.now_ns, velocity)

    def _on_reset(self, request: Any) -> Any:
        self._reset_filter()
        return srv.Empty.Response()

    def _attitude(self) -> tuple[float, float]:
        estimate = self._fusion.estimate
        return (0.0, 0.0) if estimate is None else (float(estimate.state[3]), float(estimate.state[4]))

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _publish_estimate(self) -> None:
        self._fusion.advance(self.now_ns)
        estimate = (
            self._fusion.predict_at(self.now_ns) if self.config.predict_to_current_time else self._fusion.estimate
        )
        self._report_status(estimate)
        if estimate is None or estimate.time_ns <= self._published_ns:
            return
        self._published_ns = estimate.time_ns
        state, P = estimate.state, estimate.covariance
        pose = SE3.from_xyz_rpy(state[0:3], state[3:6])
        self._filtered.publish(
            odometry_to_msg(
                pose,
                state[6:9],
                state[9:12],
                frame=self._world,
                child_frame=self._base,
                time_ns=estimate.time_ns,
                pose_covariance=P[0:6, 0:6],
                twist_covariance=P[6:12, 6:12],
            )
        )
        combined = msg.PoseWithCovariance(pose=pose_to_msg(pose), covariance=P[0:6, 0:6].ravel())
        self._combined.publish(
            msg.PoseWithCovarianceStamped(header=make_header(self._world, estimate.time_ns), pose=combined)
        )
        if self.config.publish_acceleration:
            self._publish_acceleration(estimate)
        if self.config.publish_tf:
            self._broadcast(pose, estimate.time_ns)

    def _publish_acceleration(self, estimate: FusedEstimate) -> None:
        x, y, z = estimate.state[12:15].tolist()
        covariance = np.zeros((6, 6))
        covariance[:3, :3] = estimate.covariance[12:15, 12:15]
        accel = msg.AccelWithCovariance(
            accel=msg.Accel(linear=msg.Vector3(x=x, y=y, z=z)), covariance=covariance.ravel()
        )
        self._accel.publish(
            msg.AccelWithCovarianceStamped(header=make_header(self._base, estimate.time_ns), accel=accel)
        )

    def _broadcast(self, T_world_base: SE3, time_ns: int) -> None:
        stamp_ns = time_ns + round(self.config.transform_time_offset * 1e9)
        if self._world == self._odom:
            self.send_transform(T_world_base, self._world, self._base, time_ns=stamp_ns)
            return
        try:
            self._map_to_odom.send_pose(T_world_base, time_ns, stamp_ns)
        except TransformError as error:
            self._failures["map → odom"] = str(error)
            return
        self._failures.pop("map → odom", None)

    def _report_status(self, estimate: FusedEstimate | None) -> None:
        stale_sources = [
            f"{name} ({self.resolve(self.config.sources()[name].topic)})"
            for name in self._sources
            if (self.now_ns - self._last_received.get(name, self._started_ns)) * 1e-9 > _STALE_AFTER
        ]
        n_rejected = sum(source.n_rejected for source in self._sources.values())
        counts = {
            outcome: sum(source_counts[outcome] for source_counts in self._fusion.counts.values())
            for outcome in ("taken", "gated", "late")
        } | {"refused": n_rejected}  # fmt: skip
        default_covariance_sources = [name for name, source in self._sources.items() if source.uses_default_covariance]
        if self._failures:
            name, reason = next(iter(self._failures.items()))
            self.report_health("error", f"messages of {name} cannot be used", reason=reason, **counts)
        elif stale_sources:
            self.report_health("warn", f"no messages of {', '.join(stale_sources)}", **counts)
        elif estimate is None:
            self.report_health("warn", "waiting for the first measurement", **counts)
        elif default_covariance_sources:
            self.report_health(
                "warn", f"uses default covariances for {', '.join(default_covariance_sources)}", **counts
            )
        else:
            self.report_health("ok", "fusing", **counts)


class EkfNode(KalmanNode):
    """Fuses odometry, IMUs, poses and twists with an extended Kalman filter.

    in: odom0 … imu3, set_pose   out: odometry/filtered, odom_combined, /tf odom → base   service: ~reset
    """

    filter_type: str = "ekf"


class UkfNode(KalmanNode):
    """Fuses odometry, IMUs, poses and twists with an unscented Kalman filter.

    in: odom0 … imu3, set_pose   out: odometry/filtered, odom_combined, /tf odom → base   service: ~reset
    """

    filter_type: str = "ukf"
