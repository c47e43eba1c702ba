"""Odometry nodes of differential, mecanum and Ackermann drives: wheel angles to odometry and its transform."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from roboyard.bus import resource
from roboyard.bus.throttle import Throttle
from roboyard.config import Config, parameter
from roboyard.control.drive_config import AckermannDriveConfig, DifferentialDriveConfig, MecanumDriveConfig
from roboyard.control.nodes.drive_parameters import DriveParameterNode
from roboyard.control.nodes.velocity_controller import AckermannJointsConfig, MecanumJointsConfig, SideJointsConfig
from roboyard.control.wheel_kinematics import AckermannWheels, DifferentialDrive, MecanumDrive
from roboyard.errors import ConfigError
from roboyard.localization.wheel_odometry import (
    AckermannJointCounts,
    AckermannOdometry,
    DifferentialOdometry,
    DriveOdometry,
    MecanumOdometry,
    OdometryEstimate,
    OdometryNoise,
)
from roboyard.messages import msg, srv
from roboyard.messages.convert.poses import planar_covariance_to_msg
from roboyard.messages.time import time_to_msg, to_nanoseconds


class OdometryOutputConfig(Config):
    """Configuration of what all odometry nodes publish, and of its uncertainty."""

    odom_frame: str = parameter("odom", doc="Frame in which the odometry starts.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    publish_tf: bool = parameter(True, doc="Publish the transform; false where a filter does.")
    rate: float = parameter(
        0.0, unit="Hz", low=0.0, high=1000.0, doc="Largest rate of odometry; 0: one message for each of joint_states."
    )
    noise: OdometryNoise = parameter(factory=OdometryNoise, flatten="", doc="Growth of the covariance.")


def odometry_estimate_to_msg(estimate: OdometryEstimate, odom_frame: str, base_frame: str) -> Any:
    """Convert an estimate to nav_msgs/Odometry."""
    pose, twist = estimate.T_odom_base, estimate.twist
    half_heading = 0.5 * pose.theta
    return msg.Odometry(
        header=msg.Header(stamp=time_to_msg(estimate.time_ns), frame_id=odom_frame),
        child_frame_id=base_frame,
        pose=msg.PoseWithCovariance(
            pose=msg.Pose(
                position=msg.Point(x=pose.x, y=pose.y),
                orientation=msg.Quaternion(z=math.sin(half_heading), w=math.cos(half_heading)),
            ),
            covariance=planar_covariance_to_msg(estimate.covariance),
        ),
        twist=msg.TwistWithCovariance(
            twist=msg.Twist(linear=msg.Vector3(x=twist.vx, y=twist.vy), angular=msg.Vector3(z=twist.wz)),
            covariance=planar_covariance_to_msg(estimate.twist_covariance),
        ),
    )


OutputConfigT = TypeVar("OutputConfigT", bound=OdometryOutputConfig, default=OdometryOutputConfig, covariant=True)


class DriveOdometryNode(DriveParameterNode[OutputConfigT], ABC):
    """Base of the odometry nodes of all drives: publishes what a `DriveOdometry` estimates from joint angles.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)

    A node of a new drive implements ``odometry_joints``, ``make_odometry`` and ``configure_odometry``.  The base looks
    up the joints in joint_states, limits the rate, publishes, and reports rejected angles.
    """

    state_fields = ("_n_rejected",)

    def setup(self) -> None:
        """Connect."""
        self._used_joints = self.odometry_joints(self.config)
        self._joint_names: list[str] | None = None
        self._joint_indices: NDArray[np.intp] | None = None
        self._throttle = Throttle(self.config.rate)
        self._n_rejected = 0
        self._frames = (self.frame(self.config.odom_frame), self.frame(self.config.base_frame))
        self._odometry = self.make_odometry(self.config)
        self._publisher = self.publisher("odom", msg.Odometry)
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self.service("~reset", srv.Trigger, self._on_reset)

    @abstractmethod
    def odometry_joints(self, config: Any) -> tuple[str, ...]:
        """Return the names of the joints whose angles the odometry takes, in its order."""

    @abstractmethod
    def make_odometry(self, config: Any) -> DriveOdometry:
        """Return the odometry of a configuration."""

    @abstractmethod
    def configure_odometry(self, odometry: Any, config: Any) -> None:
        """Set geometry and noise of a configuration that was changed at run time; the pose must stay."""

    def on_config_change(self, old: OdometryOutputConfig, new: OdometryOutputConfig) -> None:
        """Continue from the present pose with the new geometry and noise."""
        self.configure_odometry(self._odometry, new)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"odometry": self._odometry.save_state(), "throttle": self._throttle.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        super().load_state(state)
        self._odometry.load_state(state["odometry"])
        self._throttle.load_state(state["throttle"])

    def _on_joints(self, state: Any) -> None:
        if state.name != self._joint_names:
            self._find_joints(list(state.name))
        if self._joint_indices is None:
            return
        time_ns = to_nanoseconds(state.header.stamp)
        if not self._throttle.should_pass(time_ns):
            return
        angles = np.asarray(state.position, dtype=np.float64)[self._joint_indices]
        estimate = self._odometry.update(time_ns, angles)
        if self._odometry.n_rejected != self._n_rejected:
            self._n_rejected = self._odometry.n_rejected
            self.log.warn("dropped wheel angles: not finite, out of order or implausible jump", throttle=5.0)
            self.report_health("warn", "wheel angles dropped", count=self._n_rejected)
        if estimate is None:
            return
        self._publisher.publish(odometry_estimate_to_msg(estimate, *self._frames))
        if self.config.publish_tf:
            self.send_transform(estimate.T_odom_base.to_se3(), *self._frames, time_ns=estimate.time_ns)

    def _find_joints(self, names: list[str]) -> None:
        """Look up the indices of the joints; messages that contain none of them are ignored."""
        present = [joint for joint in self._used_joints if joint in names]
        if present and len(present) < len(self._used_joints):
            missing = next(joint for joint in self._used_joints if joint not in names)
            raise ConfigError(f"joint_states has no joint '{missing}'", location=self.full_name, valid=", ".join(names))
        self._joint_names = names
        self._joint_indices = np.array([names.index(joint) for joint in self._used_joints]) if present else None

    def _on_reset(self, request: Any) -> Any:
        self._odometry.reset()
        return srv.Trigger.Response(success=True, message="odometry is at the origin")


class OdometryNodeConfig(OdometryOutputConfig, SideJointsConfig):
    """Configuration of `OdometryNode`."""

    drive: DifferentialDrive = parameter(factory=DifferentialDrive, flatten="", doc="Geometry of the drive.")
    max_wheel_speed: float = parameter(
        math.inf, unit="rad/s", low=1e-3, high=math.inf, runtime=True,
        doc="Wheel speed above which a step is a miscount and is ignored.",
    )  # fmt: skip


class OdometryNode(DriveOdometryNode[OdometryNodeConfig]):
    """Integrates the wheels of a differential or skid-steered base.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)

    The drive's parameters are those of the drive node; angles of several wheels on a side are averaged.
    """

    drive_geometry: DifferentialDriveConfig | None = resource(DifferentialDriveConfig, optional=True)

    def odometry_joints(self, config: OdometryNodeConfig) -> tuple[str, ...]:
        """Return the left, then the right wheels."""
        return (*config.left_joints, *config.right_joints)

    def make_odometry(self, config: OdometryNodeConfig) -> DriveOdometry:
        """Return the odometry of the two sides."""
        return DifferentialOdometry(config.drive, len(config.left_joints), config.noise, config.max_wheel_speed)

    def configure_odometry(self, odometry: DifferentialOdometry, config: OdometryNodeConfig) -> None:
        """Set geometry, noise and largest wheel speed."""
        odometry.configure(config.drive, config.noise, config.max_wheel_speed)


class MecanumOdometryNodeConfig(OdometryOutputConfig, MecanumJointsConfig):
    """Configuration of `MecanumOdometryNode`."""

    drive: MecanumDrive = parameter(factory=MecanumDrive, flatten="", doc="Geometry of the drive.")


class MecanumOdometryNode(DriveOdometryNode[MecanumOdometryNodeConfig]):
    """Odometry of four mecanum wheels; the drive's parameters are those of the mecanum node.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)
    """

    drive_geometry: MecanumDriveConfig | None = resource(MecanumDriveConfig, optional=True)

    def odometry_joints(self, config: MecanumOdometryNodeConfig) -> tuple[str, ...]:
        """Return the four wheels."""
        return config.joints

    def make_odometry(self, config: MecanumOdometryNodeConfig) -> DriveOdometry:
        """Return the odometry of the four wheels."""
        return MecanumOdometry(config.drive, config.noise)

    def configure_odometry(self, odometry: MecanumOdometry, config: MecanumOdometryNodeConfig) -> None:
        """Set geometry and noise."""
        odometry.drive, odometry.noise = config.drive, config.noise


class AckermannOdometryNodeConfig(OdometryOutputConfig, AckermannJointsConfig):
    """Configuration of `AckermannOdometryNode`."""

    wheels: AckermannWheels = parameter(factory=AckermannWheels, flatten="", doc="Geometry of the drive.")
    axle_x: float = parameter(
        0.0, unit="m", low=-50.0, high=50.0, runtime=True,
        doc="Position of the unsteered axle ahead of the base frame.",
    )  # fmt: skip

    def joint_groups(self) -> tuple[tuple[str, ...], ...]:
        """Return the joints of each kind, in the order of `AckermannJointCounts`."""
        return (
            self.left_joints,
            self.right_joints,
            self.left_steered_joints,
            self.right_steered_joints,
            self.left_steering_joints,
            self.right_steering_joints,
        )


class AckermannOdometryNode(DriveOdometryNode[AckermannOdometryNodeConfig]):
    """Odometry of a car: the distance by its wheels, the curvature by its steered wheels.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)
    """

    drive_geometry: AckermannDriveConfig | None = resource(AckermannDriveConfig, optional=True)

    def odometry_joints(self, config: AckermannOdometryNodeConfig) -> tuple[str, ...]:
        """Return wheels and steering joints."""
        return tuple(joint for group in config.joint_groups() for joint in group)

    def make_odometry(self, config: AckermannOdometryNodeConfig) -> DriveOdometry:
        """Return the odometry of the car."""
        counts = AckermannJointCounts(*map(len, config.joint_groups()))
        return AckermannOdometry(config.wheels, counts, config.axle_x, config.noise)

    def configure_odometry(self, odometry: AckermannOdometry, config: AckermannOdometryNodeConfig) -> None:
        """Set geometry and noise."""
        odometry.wheels, odometry.axle_x, odometry.noise = config.wheels, config.axle_x, config.noise
