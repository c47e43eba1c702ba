"""Fake localisation: the truth under the name of odometry, for who explicitly asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.control.throttle import Throttle
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.time import to_nanoseconds


class TruthOdometryNodeConfig(Config):
    """Configuration of `TruthOdometryNode`."""

    odom_frame: str = parameter("odom", doc="Frame in which the odometry starts.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    publish_tf: bool = parameter(True, doc="Publish the transform of the odometry.")
    from_start: bool = parameter(True, doc="Count from the first pose; false: coordinates of the world.")
    noise: float = parameter(
        0.0, unit="m or rad", low=0.0, high=1e3, runtime=True, doc="Standard deviation of the noise on each coordinate."
    )
    rate: float = parameter(50.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the published odometry.")


class TruthOdometryNode(Node[TruthOdometryNodeConfig]):
    """Passes the robot's true pose on as odometry, as simulators' odometry and p3d plugins do.

    in: the robot's truth   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   health: "this is the truth"

    No real robot has this.  It comes up only where a description, a robot's file or a scenario names it; what is judged
    with it is marked by the node's health in /diagnostics, and by a line in the log.
    """

    truth_topic: str = resource(str)

    state_fields = ("_start",)

    def setup(self) -> None:
        """Connect, and say what this is."""
        self._start: tuple[tuple[float, float, float, float], tuple[float, float, float]] | None = None
        self._throttle = Throttle(self.config.rate)
        self._publisher = self.publisher("odom", msg.Odometry)
        self.subscribe(self.truth_topic, msg.Odometry, self._on_truth)
        self.log.warn(f"{self.resolve('odom')} is the truth of the simulation, no estimate")
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
        p, q = truth.pose.pose.position, truth.pose.pose.orientation
        T_world_base = SE3((q.w, q.x, q.y, q.z), (p.x, p.y, p.z))
        if self._start is None:
            self._start = _plain(T_world_base)
        T_odom_base = SE3(*self._start).inverse() @ T_world_base if self.config.from_start else T_world_base
        if self.config.noise:
            dx, dy, dz, roll, pitch, yaw = (self.random.standard_normal(6) * self.config.noise).tolist()
            T_odom_base = T_odom_base @ SE3.from_xyz_rpy((dx, dy, dz), (roll, pitch, yaw))
        covariance = np.eye(6).reshape(36) * self.config.noise**2
        (w, x, y, z), (px, py, pz) = _plain(T_odom_base)
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


def _plain(T: SE3) -> tuple[tuple[float, float, float, float], tuple[float, float, float]]:
    """Quaternion and place as numbers."""
    w, x, y, z = T.rotation.tolist()
    px, py, pz = T.translation.tolist()
    return (w, x, y, z), (px, py, pz)
