"""The fusion node: odometry, inertial units, poses and twists in, one filtered odometry out."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np

from roboyard.bus.transforms import TransformError
from roboyard.config import Config, parameter
from roboyard.config.ros_parameters import RosNodeConfig
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.constants import STANDARD_GRAVITY
from roboyard.localization.kalman import Fused, Fusion, FusionConfig, RestBias, Source, SourceConfig
from roboyard.localization.kalman.fusion import FilterType
from roboyard.localization.nodes.kalman_inputs import TYPES, Inputs
from roboyard.localization.nodes.ros_node import RosNode
from roboyard.messages import msg, srv
from roboyard.messages.convert import make_header, odometry_to_msg, pose_to_msg, pose_to_se3, twist_to_arrays
from roboyard.messages.time import is_in_future, to_nanoseconds

_MEASURED = {"odom": slice(0, 12), "pose": slice(0, 6), "twist": slice(6, 12), "imu": slice(3, 15)}
"""States that a source of each kind measures (of an IMU without the linear velocities)."""
_SILENT = 2.0
"""A source that says nothing for so long is reported [s]."""


class InputSource(Config):
    """Parameters that all sources have; a source without a topic is not there."""

    topic: str = parameter("", key="", doc="Topic; empty: no such source.")
    used: tuple[bool, ...] = parameter(
        (False,) * 15, key="_config",
        doc="States taken from it: x y z, roll pitch yaw, their velocities, the linear accelerations.",
    )  # fmt: skip
    queue_size: int = parameter(10, low=0, high=100_000, key="_queue_size", doc="Without effect: no message is lost.")
    nodelay: bool = parameter(False, key="_nodelay", doc="Without effect.")

    def make(self, name: str, gravity: float) -> SourceConfig:
        """Return the filter's configuration of the source; what this kind does not state keeps its default."""
        stated = {field.name for field in fields(self)} & {field.name for field in fields(SourceConfig)}
        return SourceConfig(name, gravity=gravity, **{key: getattr(self, key) for key in stated})


class TwistSource(InputSource):
    """A source of geometry_msgs/TwistWithCovarianceStamped."""

    twist_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_rejection_threshold", doc="Largest Mahalanobis distance of a velocity."
    )


class _MovingSource(InputSource):
    differential: bool = parameter(False, key="_differential", doc="Use changes between its poses as velocities.")
    relative: bool = parameter(False, key="_relative", doc="Poses count from its first one.")


class PoseSource(_MovingSource):
    """A source of geometry_msgs/PoseWithCovarianceStamped."""

    pose_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_rejection_threshold", doc="Largest Mahalanobis distance of a pose."
    )


class OdometrySource(_MovingSource):
    """A source of nav_msgs/Odometry."""

    pose_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_pose_rejection_threshold", doc="Largest Mahalanobis distance of a pose."
    )
    twist_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_twist_rejection_threshold",
        doc="Largest Mahalanobis distance of a velocity.",
    )  # fmt: skip


class ImuSource(OdometrySource):
    """A source of sensor_msgs/Imu."""

    linear_acceleration_rejection_threshold: float = parameter(
        math.inf, low=0.0, high=math.inf, key="_linear_acceleration_rejection_threshold",
        doc="Largest Mahalanobis distance of an acceleration.",
    )  # fmt: skip
    remove_gravitational_acceleration: bool = parameter(
        False, key="_remove_gravitational_acceleration", doc="Its accelerations contain gravity."
    )
    bias_at_rest: bool = parameter(
        False, key="_bias_at_rest", doc="Estimate the gyroscope's bias while odometry reports standstill."
    )


class KalmanNodeConfig(RosNodeConfig):
    """Configuration of the fusion nodes, under the names that robot_localization gives them."""

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
    odom0: OdometrySource = parameter(factory=OdometrySource, flatten="odom0", doc="Source 0 of nav_msgs/Odometry.")
    odom1: OdometrySource = parameter(factory=OdometrySource, flatten="odom1", doc="Source 1 of nav_msgs/Odometry.")
    odom2: OdometrySource = parameter(factory=OdometrySource, flatten="odom2", doc="Source 2 of nav_msgs/Odometry.")
    odom3: OdometrySource = parameter(factory=OdometrySource, flatten="odom3", doc="Source 3 of nav_msgs/Odometry.")
    pose0: PoseSource = parameter(
        factory=PoseSource, flatten="pose0", doc="Source 0 of geometry_msgs/PoseWithCovarianceStamped."
    )
    pose1: PoseSource = parameter(
        factory=PoseSource, flatten="pose1", doc="Source 1 of geometry_msgs/PoseWithCovarianceStamped."
    )
    pose2: PoseSource = parameter(
        factory=PoseSource, flatten="pose2", doc="Source 2 of geometry_msgs/PoseWithCovarianceStamped."
    )
    pose3: PoseSource = parameter(
        factory=PoseSource, flatten="pose3", doc="Source 3 of geometry_msgs/PoseWithCovarianceStamped."
    )
    twist0: TwistSource = parameter(
        factory=TwistSource, flatten="twist0", doc="Source 0 of geometry_msgs/TwistWithCovarianceStamped."
    )
    twist1: TwistSource = parameter(
        factory=TwistSource, flatten="twist1", doc="Source 1 of geometry_msgs/TwistWithCovarianceStamped."
    )
    twist2: TwistSource = parameter(
        factory=TwistSource, flatten="twist2", doc="Source 2 of geometry_msgs/TwistWithCovarianceStamped."
    )
    twist3: TwistSource = parameter(
        factory=TwistSource, flatten="twist3", doc="Source 3 of geometry_msgs/TwistWithCovarianceStamped."
    )
    imu0: ImuSource = parameter(factory=ImuSource, flatten="imu0", doc="Source 0 of sensor_msgs/Imu.")
    imu1: ImuSource = parameter(factory=ImuSource, flatten="imu1", doc="Source 1 of sensor_msgs/Imu.")
    imu2: ImuSource = parameter(factory=ImuSource, flatten="imu2", doc="Source 2 of sensor_msgs/Imu.")
    imu3: ImuSource = parameter(factory=ImuSource, flatten="imu3", doc="Source 3 of sensor_msgs/Imu.")

    def sources(self) -> dict[str, InputSource]:
        """Return the sources that have a topic, by name."""
        names = [f"{kind}{number}" for kind in TYPES for number in range(4)]
        return {name: source for name in names if (source := getattr(self, name)).topic}


class KalmanNode(RosNode[KalmanNodeConfig]):
    """Fuses sources with a Kalman filter; ``filter_type`` says which.

    in: the topics of odom0 … imu3, set_pose (geometry_msgs/PoseWithCovarianceStamped), cmd_vel with use_control
    out: odometry/filtered (nav_msgs/Odometry), odom_combined (geometry_msgs/PoseWithCovarianceStamped),
         accel/filtered, /tf world → base or map → odom   service: ~reset (std_srvs/Empty)

    Parameters are called as in robot_localization.
    """

    filter_type: FilterType = "ekf"
    state_fields = ("_heard", "_published_ns", "_failed")

    def setup(self) -> None:
        """Connect."""
        super().setup()
        self._fusion = Fusion(self._filter_config(), self.filter_type)
        self._rest = RestBias()
        names = (self.config.map_frame, self.config.odom_frame, self.config.base_link_frame, self.config.world_frame)
        self._map, self._odom, self._base, self._world = map(self.frame, names)
        if self.config.world_frame not in (self.config.map_frame, self.config.odom_frame):
            raise ConfigError(
                f"world_frame = {self.config.world_frame!r}",
                location=self.full_name,
                valid=f"{self.config.map_frame}, {self.config.odom_frame}",
            )
        self._inputs = Inputs(self.transforms, self._world, self._base, self._rest, self._attitude)
        self._heard: dict[str, int] = {}
        self._failed: dict[str, str] = {}
        self._published_ns = -1
        self._filtered = self.publisher("odometry/filtered", msg.Odometry)
        self._combined = self.publisher("odom_combined", msg.PoseWithCovarianceStamped)
        if self.config.publish_acceleration:
            self._accel = self.publisher("accel/filtered", msg.AccelWithCovarianceStamped)
        self._sources = {config.name: Source(config) for config in self._source_configs()}
        if not self._sources:
            raise ConfigError("has no source", location=self.full_name, valid="odom0: topic, odom0_config: 15 flags, …")
        for name in self._sources:
            self._listen(name)
        self.subscribe("set_pose", msg.PoseWithCovarianceStamped, self._on_set_pose)
        if self.config.use_control:
            kind = msg.TwistStamped if self.config.stamped_control else msg.Twist
            self.subscribe("cmd_vel", kind, self._on_command)
        self.service("~reset", srv.Empty, self._on_reset)
        self.timer(rate=self.config.frequency, callback=self._tick)
        self._started_ns = self.now_ns

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        sources = {name: source.save_state() for name, source in self._sources.items()}
        own: dict[str, Any] = super().save_state()
        return own | {"fusion": self._fusion.save_state(), "sources": sources, "rest": self._rest.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._fusion.load_state(state["fusion"])
        self._rest.load_state(state["rest"])
        for name, saved in state["sources"].items():
            self._sources[name].load_state(saved)

    # -- configuration -------------------------------------------------------------------------------------------------
    def _filter_config(self) -> FusionConfig:
        config = self.config.filter
        control = config.control if self.config.use_control else replace(config.control, used=(False,) * 6)
        return replace(config, control=control, history_length=max(config.history_length, 1e-3))

    def _source_configs(self) -> list[SourceConfig]:
        configs = []
        for name, source in self.config.sources().items():
            kind = name.rstrip("0123456789")
            config = source.make(name, self.config.gravitational_acceleration)
            used = np.array(config.used, dtype=np.bool_)
            measured = np.zeros(15, dtype=np.bool_)
            measured[_MEASURED[kind]] = True
            if kind == "imu":
                measured[6:9] = False
            if (used & ~measured).any():
                self.log.warn(f"{name}_config names states that a source of kind {kind} does not measure: ignored")
            configs.append(replace(config, used=tuple((used & measured).tolist())))
        return configs

    def _listen(self, name: str) -> None:
        message_type, convert = TYPES[name.rstrip("0123456789")]

        def on_message(message: Any) -> None:
            self._heard[name] = self.now_ns
            self._watch_clock(to_nanoseconds(message.header.stamp))
            try:
                found = convert(self._inputs, self._sources[name], message)
            except RoboyardError as error:
                self._failed[name] = str(error)
                self.log.warn(f"left out a message of {name}: {error}", throttle=5.0)
                return
            self._failed.pop(name, None)
            for measurement in found:
                if measurement is not None:
                    self._fusion.add(measurement)

        self.subscribe(self.config.sources()[name].topic, message_type, on_message)

    # -- what comes in besides -----------------------------------------------------------------------------------------
    def _watch_clock(self, time_ns: int) -> None:
        now = self._fusion.estimate
        if self.config.reset_on_time_jump and now is not None and time_ns < now.time_ns - 1_000_000_000:
            self.log.warn("time went back: the filter starts anew")
            self._restart()

    def _restart(self) -> None:
        self._fusion.reset()
        self._published_ns = -1
        self._sources = {name: Source(source.config) for name, source in self._sources.items()}

    def _on_set_pose(self, message: Any) -> None:
        frame = message.header.frame_id
        try:
            T = pose_to_se3(message.pose.pose)
            if frame != self._world:
                T = self.transforms.lookup(self._world, frame) @ T
        except RoboyardError as error:
            self.log.warn(f"left out a pose to be at: {error}")
            return
        covariance = np.asarray(message.pose.covariance, dtype=np.float64).reshape(6, 6)
        if not np.isfinite(covariance).all() or (np.diag(covariance) < 0.0).any():
            self.log.warn("left out a pose to be at: its covariance is none")
            return
        time_ns = to_nanoseconds(message.header.stamp)
        if is_in_future(time_ns, self.now_ns):
            self.log.warn("left out a pose to be at: it is stamped in the future")
            return
        self._restart()
        self._fusion.set_pose(time_ns, np.concatenate([T.translation, T.rpy]), covariance)

    def _on_command(self, message: Any) -> None:
        twist = message.twist if self.config.stamped_control else message
        velocity = np.concatenate(twist_to_arrays(twist))
        if np.isfinite(velocity).all():
            self._fusion.command(self.now_ns, velocity)

    def _on_reset(self, request: Any) -> Any:
        self._restart()
        return srv.Empty.Response()

    def _attitude(self) -> tuple[float, float]:
        now = self._fusion.estimate
        return (0.0, 0.0) if now is None else (float(now.state[3]), float(now.state[4]))

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        self._fusion.advance(self.now_ns)
        now = self._fusion.at(self.now_ns) if self.config.predict_to_current_time else self._fusion.estimate
        self._tell(now)
        if now is None or now.time_ns <= self._published_ns:
            return
        self._published_ns = now.time_ns
        state, P = now.state, now.covariance
        pose = SE3.from_xyz_rpy(state[0:3], state[3:6])
        self._filtered.publish(
            odometry_to_msg(
                pose,
                state[6:9],
                state[9:12],
                frame=self._world,
                child_frame=self._base,
                time_ns=now.time_ns,
                pose_covariance=P[0:6, 0:6],
                twist_covariance=P[6:12, 6:12],
            )
        )
        combined = msg.PoseWithCovariance(pose=pose_to_msg(pose), covariance=P[0:6, 0:6].ravel())
        self._combined.publish(
            msg.PoseWithCovarianceStamped(header=make_header(self._world, now.time_ns), pose=combined)
        )
        if self.config.publish_acceleration:
            self._publish_acceleration(now)
        if self.config.publish_tf:
            self._broadcast(pose, now.time_ns)

    def _publish_acceleration(self, now: Fused) -> None:
        x, y, z = now.state[12:15].tolist()
        covariance = np.zeros((6, 6))
        covariance[:3, :3] = now.covariance[12:15, 12:15]
        accel = msg.AccelWithCovariance(
            accel=msg.Accel(linear=msg.Vector3(x=x, y=y, z=z)), covariance=covariance.ravel()
        )
        self._accel.publish(msg.AccelWithCovarianceStamped(header=make_header(self._base, now.time_ns), accel=accel))

    def _broadcast(self, T_world_base: SE3, time_ns: int) -> None:
        later = time_ns + round(self.config.transform_time_offset * 1e9)
        if self._world == self._odom:
            self.send_transform(T_world_base, self._world, self._base, time_ns=later)
            return
        try:
            T_odom_base = self.transforms.lookup(self._odom, self._base, time_ns)
        except TransformError:
            try:
                T_odom_base = self.transforms.lookup(self._odom, self._base)
            except TransformError as error:
                self._failed["map → odom"] = str(error)
                return
        self._failed.pop("map → odom", None)
        self.send_transform(T_world_base @ T_odom_base.inverse(), self._map, self._odom, time_ns=later)

    def _tell(self, now: Fused | None) -> None:
        silent = [
            f"{name} ({self.resolve(self.config.sources()[name].topic)})"
            for name in self._sources
            if (self.now_ns - self._heard.get(name, self._started_ns)) * 1e-9 > _SILENT
        ]
        refused = sum(source.refused for source in self._sources.values())
        counts = {
            what: sum(of[what] for of in self._fusion.counts.values()) for what in ("taken", "gated", "late")
        } | {"refused": refused}  # fmt: skip
        assumed = [name for name, source in self._sources.items() if source.assumed]
        if self._failed:
            name, why = next(iter(self._failed.items()))
            self.report_health("error", f"messages of {name} cannot be used", reason=why, **counts)
        elif silent:
            self.report_health("warn", f"hears nothing of {', '.join(silent)}", **counts)
        elif now is None:
            self.report_health("warn", "waits for a first measurement", **counts)
        elif assumed:
            self.report_health("warn", f"assumes covariances that {', '.join(assumed)} does not tell", **counts)
        else:
            self.report_health("ok", "fuses", **counts)


class EkfNode(KalmanNode):
    """Fuses odometry, inertial units, poses and twists with an extended Kalman filter.

    in: odom0 … imu3, set_pose   out: odometry/filtered, odom_combined, /tf odom → base   service: ~reset
    """

    filter_type: FilterType = "ekf"


class UkfNode(KalmanNode):
    """The same with an unscented Kalman filter.

    in: odom0 … imu3, set_pose   out: odometry/filtered, odom_combined, /tf odom → base   service: ~reset
    """

    filter_type: FilterType = "ukf"
