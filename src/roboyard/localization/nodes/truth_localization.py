"""Ground-truth localisation: the transforms and topics of the amcl node from the simulation's truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.bus.transforms import TransformError
from roboyard.config import Config, parameter
from roboyard.control.throttle import Throttle
from roboyard.geometry import SE2, SE3
from roboyard.localization.nodes.odometry import PLANAR
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg, pose_to_se3
from roboyard.messages.time import to_nanoseconds


class TruthLocalizationNodeConfig(Config):
    """Configuration of `TruthLocalizationNode`."""

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


class TruthLocalizationNode(Node[TruthLocalizationNodeConfig]):
    """Fake localisation: says where the robot truly is, as if a localisation in a map had found it.

    in: the robot's truth, /tf odom → base
    out: amcl_pose, particle_cloud (one particle), /tf map → odom   health: "this is the truth"

    No real robot has this.  It comes up only where a scenario or a robot's file names it, says so in the log, and keeps
    its health at "warn".  The map frame is the world's, moved by ``map_x``, ``map_y``, ``map_yaw``.
    """

    truth_topic: str = resource(str)

    state_fields = ("_missed",)

    def setup(self) -> None:
        """Connect, and say what this is."""
        self._missed = 0
        self._throttle = Throttle(self.config.rate)
        self._frames = tuple(
            map(self.frame, (self.config.global_frame_id, self.config.odom_frame_id, self.config.base_frame_id))
        )
        self._T_map_world = SE2(self.config.map_x, self.config.map_y, self.config.map_yaw).inverse().to_se3()
        self._pose = self.publisher("amcl_pose", msg.PoseWithCovarianceStamped, latched=True)
        self._cloud = self.publisher("particle_cloud", msg.ParticleCloud, latched=True)
        self.subscribe(self.truth_topic, msg.Odometry, self._on_truth)
        self.log.warn(f"{self.resolve('amcl_pose')} is the truth of the simulation, no estimate")
        self.report_health("warn", "this is the truth, no estimate")

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {"throttle": self._throttle.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._throttle.load_state(state["throttle"])

    def _on_truth(self, truth: Any) -> None:
        time_ns = to_nanoseconds(truth.header.stamp)
        if not self._throttle.passes(time_ns):
            return
        map_frame, odom, base = self._frames
        T_map_base = self._T_map_world @ pose_to_se3(truth.pose.pose)
        flat = SE2.from_se3(T_map_base)
        covariance = np.zeros(36)
        covariance[PLANAR] = (1e-9 * np.eye(3)).reshape(9)
        pose = msg.PoseWithCovariance(pose=pose_to_msg(flat), covariance=covariance)
        self._pose.publish(msg.PoseWithCovarianceStamped(header=make_header(map_frame, time_ns), pose=pose))
        particle = msg.Particle(pose=pose_to_msg(flat), weight=1.0)
        self._cloud.publish(msg.ParticleCloud(header=make_header(map_frame, time_ns), particles=[particle]))
        if self.config.tf_broadcast:
            self._broadcast(T_map_base, odom, base, time_ns)

    def _broadcast(self, T_map_base: SE3, odom: str, base: str, time_ns: int) -> None:
        try:
            T_odom_base = self.transforms.lookup(odom, base, time_ns)
        except TransformError:
            try:  # odometry of this moment may come after the truth of it
                T_odom_base = self.transforms.lookup(odom, base)
            except TransformError as error:
                self._missed += 1
                self.log.warn(f"no map → odom: {error}", throttle=5.0)
                return
        later = time_ns + round(self.config.transform_tolerance * 1e9)
        self.send_transform(T_map_base @ T_odom_base.inverse(), self._frames[0], odom, time_ns=later)
