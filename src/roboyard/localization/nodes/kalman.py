"""The fusion node: odometry, inertial units, poses and twists in, one filtered odometry out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bus.transforms import TransformError
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE3
from roboyard.localization.kalman import ControlConfig, Fused, Fusion, FusionConfig, RestBias, Source, SourceConfig
from roboyard.localization.nodes.kalman_inputs import TYPES, Inputs
from roboyard.localization.nodes.kalman_parameters import EACH, KINDS, KalmanParameters
from roboyard.messages import msg, srv
from roboyard.messages.convert import make_header, odometry_to_msg, pose_to_msg, pose_to_se3, twist_to_arrays
from roboyard.messages.time import is_in_future, to_nanoseconds

_SILENT = 2.0
"""A source that says nothing for so long is reported [s]."""


class KalmanNode(KalmanParameters):
    """Fuses sources with a Kalman filter; ``kind`` says which.

    in: the topics of odom0 … imu3, set_pose (geometry_msgs/PoseWithCovarianceStamped), cmd_vel with use_control
    out: odometry/filtered (nav_msgs/Odometry), odom_combined (geometry_msgs/PoseWithCovarianceStamped),
         accel/filtered, /tf world → base or map → odom   service: ~reset (std_srvs/Empty)

    Parameters are called as in robot_localization.
    """

    kind = "ekf"
    state_fields = ("_heard", "_published_ns", "_failed")

    def setup(self) -> None:
        """Connect."""
        self.warn_of_unknown()
        self._fusion = Fusion(self._settings())
        self._rest = RestBias()
        names = (self.map_frame, self.odom_frame, self.base_link_frame, self.world_frame)
        self._map, self._odom, self._base, self._world = map(self.frame, names)
        if self.world_frame not in (self.map_frame, self.odom_frame):
            raise ConfigError(
                f"world_frame = {self.world_frame!r}",
                location=self.full_name,
                valid=f"{self.map_frame}, {self.odom_frame}",
            )
        self._inputs = Inputs(self.transforms, self._world, self._base, self._rest, self._attitude)
        self._heard: dict[str, int] = {}
        self._failed: dict[str, str] = {}
        self._published_ns = -1
        self._filtered = self.publisher("odometry/filtered", msg.Odometry)
        self._combined = self.publisher("odom_combined", msg.PoseWithCovarianceStamped)
        if self.publish_acceleration:
            self._accel = self.publisher("accel/filtered", msg.AccelWithCovarianceStamped)
        self._sources = {name: Source(config) for kind in KINDS for name, config in self._configs(kind)}
        if not self._sources:
            raise ConfigError("has no source", location=self.full_name, valid="odom0: topic, odom0_config: 15 flags, …")
        for name in self._sources:
            self._listen(name)
        self.subscribe("set_pose", msg.PoseWithCovarianceStamped, self._on_set_pose)
        if self.use_control:
            kind = msg.TwistStamped if self.stamped_control else msg.Twist
            self.subscribe("cmd_vel", kind, self._on_command)
        self.service("~reset", srv.Empty, self._on_reset)
        self.timer(rate=self.frequency, callback=self._tick)
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

    # -- settings ------------------------------------------------------------------------------------------------------
    def _settings(self) -> FusionConfig:
        control = ControlConfig(
            self.control_config if self.use_control else (False,) * 6, self.control_timeout, self.acceleration_limits,
            self.deceleration_limits, self.acceleration_gains, self.deceleration_gains,
        )  # fmt: skip
        return FusionConfig(
            self.kind, self.two_d_mode, self.sensor_timeout, self.process_noise_covariance,
            self.dynamic_process_noise_covariance, self.initial_state, self.initial_estimate_covariance,
            self.smooth_lagged_data, max(self.history_length, 1e-3), control, self.alpha, self.kappa, self.beta,
        )  # fmt: skip

    def _configs(self, kind: str) -> list[tuple[str, SourceConfig]]:
        said, found = self.parameters(), []
        for name in (f"{kind}{number}" for number in range(EACH)):
            if not said[name]:
                continue
            used = np.array(said[f"{name}_config"], dtype=np.bool_)
            if len(used) == 15:
                parts = {"odom": slice(0, 12), "pose": slice(0, 6), "twist": slice(6, 12), "imu": slice(3, 15)}
                kept = np.zeros(15, dtype=np.bool_)
                kept[parts[kind]] = True
                if kind == "imu":
                    kept[6:9] = False
                if (used & ~kept).any():
                    self.log.warn(f"{name}_config names what a {kind} does not measure: left out")
                used &= kept
            one = said.get(f"{name}_rejection_threshold", math.inf)
            found.append((name, SourceConfig(
                name, tuple(used.tolist()),
                said.get(f"{name}_differential", False), said.get(f"{name}_relative", False),
                said.get(f"{name}_pose_rejection_threshold", one), said.get(f"{name}_twist_rejection_threshold", one),
                said.get(f"{name}_linear_acceleration_rejection_threshold", math.inf),
                said.get(f"{name}_remove_gravitational_acceleration", False), said.get(f"{name}_bias_at_rest", False),
                self.gravitational_acceleration,
            )))  # fmt: skip
        return found

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

        self.subscribe(self.parameters()[name], message_type, on_message)

    # -- what comes in besides -----------------------------------------------------------------------------------------
    def _watch_clock(self, time_ns: int) -> None:
        now = self._fusion.estimate
        if self.reset_on_time_jump and now is not None and time_ns < now.time_ns - 1_000_000_000:
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
        twist = message.twist if self.stamped_control else message
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
        now = self._fusion.at(self.now_ns) if self.predict_to_current_time else self._fusion.estimate
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
        if self.publish_acceleration:
            self._publish_acceleration(now)
        if self.publish_tf:
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
        later = time_ns + round(self.transform_time_offset * 1e9)
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
            f"{name} ({self.resolve(self.parameters()[name])})"
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

    kind = "ekf"


class UkfNode(KalmanNode):
    """The same with an unscented Kalman filter.

    in: odom0 … imu3, set_pose   out: odometry/filtered, odom_combined, /tf odom → base   service: ~reset
    """

    kind = "ukf"
