"""Ground truth under the topics of estimators: publishes the simulated pose as localization or as odometry.

No real robot has these nodes.  They run only where a description, a robot's file or a scenario names them; each writes
a warning to the log and keeps its health at "warn".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.bus.throttle import Throttle
from roboyard.bus.transforms import MapToOdomBroadcaster, TransformError
from roboyard.config import Config, parameter
from roboyard.geometry import SE2, SE3
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg, pose_to_se3
from roboyard.messages.convert.poses import PLANAR_COVARIANCE_INDICES
from roboyard.messages.time import to_nanoseconds


class GroundTruthLocalizationNodeConfig(Config):
    """Configuration of `GroundTruthLocalizationNode`."""

    global_frame_id: str = parameter("map", doc="Frame of the map.")
    odom_frame_id: str = parameter("odom", doc="Frame of the odometry.")
    base_frame_id: str = parameter("base_link", doc="Frame of the base.")
    tf_broadcast: bool = parameter(True, doc="Publish the transform map → odom.")
    transform_tolerance: float = parameter(
        0.2, unit="s", low=0.0, high=60.0, runtime=True, doc="Time added to the stamp of map → odom."
    )
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the published poses.")
    map_x: float = parameter(0.0, unit="m", low=-1e6, high=1e6, doc="Position x of the map's origin in the world.")
    map_y: float = parameter(0.0, unit="m", low=-1e6, high=1e6, doc="Position y of the map's origin in the world.")
    map_yaw: float = parameter(0.0, unit="rad", low=-10.0, high=10.0, doc="Heading of the map in the world.")


class GroundTruthLocalizationNode(Node[GroundTruthLocalizationNodeConfig]):
    """Ground-truth localization: publishes the simulated pose in the map, with the topics and transforms of `amcl`.

    in: the simulated pose of the robot, /tf odom → base
    out: amcl_pose, particle_cloud (one particle), /tf map → odom   health: "ground truth, not an estimate"

    The map frame is the world frame, displaced by ``map_x``, ``map_y``, ``map_yaw``.
    """

    truth_topic: str = resource(str)

    state_fields = ("_n_missed_transforms",)

    def setup(self) -> None:
        """Connect, and warn that this is the ground truth."""
        self._n_missed_transforms = 0
        self._throttle = Throttle(self.config.rate)
        self._frames = tuple(
            map(self.frame, (self.config.global_frame_id, self.config.odom_frame_id, self.config.base_frame_id))
        )
        self._map_to_odom = MapToOdomBroadcaster(self, *self._frames)
        self._T_map_world = SE2(self.config.map_x, self.config.map_y, self.config.map_yaw).inverse().to_se3()
        self._pose = self.publisher("amcl_pose", msg.PoseWithCovarianceStamped, latched=True)
        self._cloud = self.publisher("particle_cloud", msg.ParticleCloud, latched=True)
        self.subscribe(self.truth_topic, msg.Odometry, self._on_truth)
        self.log.warn(f"{self.resolve('amcl_pose')} publishes the simulated ground truth, not an estimate")
        self.report_health("warn", "ground truth, not an estimate")

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"throttle": self._throttle.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        super().load_state(state)
        self._throttle.load_state(state["throttle"])

    def _on_truth(self, truth: Any) -> None:
        time_ns = to_nanoseconds(truth.header.stamp)
        if not self._throttle.should_pass(time_ns):
            return
        map_frame = self._frames[0]
        T_map_base = self._T_map_world @ pose_to_se3(truth.pose.pose)
        planar_pose = SE2.from_se3(T_map_base)
        covariance = np.zeros(36)
        covariance[PLANAR_COVARIANCE_INDICES] = (1e-9 * np.eye(3)).reshape(9)
        pose = msg.PoseWithCovariance(pose=pose_to_msg(planar_pose), covariance=covariance)
        self._pose.publish(msg.PoseWithCovarianceStamped(header=make_header(map_frame, time_ns), pose=pose))
        particle = msg.Particle(pose=pose_to_msg(planar_pose), weight=1.0)
        self._cloud.publish(msg.ParticleCloud(header=make_header(map_frame, time_ns), particles=[particle]))
        if self.config.tf_broadcast:
            self._broadcast(T_map_base, time_ns)

    def _broadcast(self, T_map_base: SE3, time_ns: int) -> None:
        try:
            self._map_to_odom.send_pose(T_map_base, time_ns, time_ns + round(self.config.transform_tolerance * 1e9))
        except TransformError as error:
            self._n_missed_transforms += 1
            self.log.warn(f"no map → odom: {error}", throttle=5.0)


class GroundTruthOdometryNodeConfig(Config):
    """Configuration of `GroundTruthOdometryNode`."""

    odom_frame: str = parameter("odom", doc="Frame in which the odometry starts.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    publish_tf: bool = parameter(True, doc="Publish the transform of the odometry.")
    start_at_origin: bool = parameter(True, doc="Count from the first pose; false: coordinates of the world.")
    noise_std: float = parameter(
        0.0, unit="m or rad", low=0.0, high=1e3, runtime=True, doc="Standard deviation of the noise on each coordinate."
    )
    rate: float = parameter(50.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the published odometry.")


class GroundTruthOdometryNode(Node[GroundTruthOdometryNodeConfig]):
    """Ground-truth odometry: publishes the simulated pose as odometry, as simulators' odometry and p3d plugins do.

    in: the simulated pose of the robot
    out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   health: "ground truth, not an estimate"
    """

    truth_topic: str = resource(str)

    state_fields = ("_start_pose",)

    def setup(self) -> None:
        """Connect, and warn that this is the ground truth."""
        self._start_pose: tuple[tuple[float, float, float, float], tuple[float, float, float]] | None = None
        self._throttle = Throttle(self.config.rate)
        self._publisher = self.publisher("odom", msg.Odometry)
        self.subscribe(self.truth_topic, msg.Odometry, self._on_truth)
        self.log.warn(f"{self.resolve('odom')} publishes the simulated ground truth, not an estimate")
        self.report_health("warn", "ground truth, not an estimate")

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"throttle": self._throttle.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        super().load_state(state)
        self._throttle.load_state(state["throttle"])

    def _on_truth(self, truth: Any) -> None:
        time_ns = to_nanoseconds(truth.header.stamp)
        if not self._throttle.should_pass(time_ns):
            return
        p, q = truth.pose.pose.position, truth.pose.pose.orientation
        T_world_base = SE3((q.w, q.x, q.y, q.z), (p.x, p.y, p.z))
        if self._start_pose is None:
            self._start_pose = _pose_to_plain(T_world_base)
        T_odom_base = SE3(*self._start_pose).inverse() @ T_world_base if self.config.start_at_origin else T_world_base
        if self.config.noise_std:
            dx, dy, dz, roll, pitch, yaw = (self.random.standard_normal(6) * self.config.noise_std).tolist()
            T_odom_base = T_odom_base @ SE3.from_xyz_rpy((dx, dy, dz), (roll, pitch, yaw))
        covariance = np.eye(6).reshape(36) * self.config.noise_std**2
        (w, x, y, z), (px, py, pz) = _pose_to_plain(T_odom_base)
        odom_frame, base_frame = self.frame(self.config.odom_frame), self.frame(self.config.base_frame)
        self._publisher.publish(
            msg.Odometry(
                header=msg.Header(stamp=truth.header.stamp, frame_id=odom_frame),
                child_frame_id=base_frame,
                pose=msg.PoseWithCovariance(
                    pose=msg.Pose(position=msg.Point(x=px, y=py, z=pz), orientation=msg.Quaternion(x=x, y=y, z=z, w=w)),
                    covariance=covariance,
                ),
                twist=truth.twist,
            )
        )
        if self.config.publish_tf:
            self.send_transform(T_odom_base, odom_frame, base_frame, time_ns=time_ns)


def _pose_to_plain(T: SE3) -> tuple[tuple[float, float, float, float], tuple[float, float, float]]:
    """Return quaternion and position as numbers."""
    w, x, y, z = T.rotation.tolist()
    px, py, pz = T.translation.tolist()
    return (w, x, y, z), (px, py, pz)
