"""Odometry nodes of differential, mecanum and Ackermann drives: wheel angles to odometry and its transform."""

from __future__ import annotations

import math
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
from roboyard.control.wheel_kinematics import (
    AckermannWheels,
    AckermannWheelValues,
    DifferentialDrive,
    MecanumDrive,
    PlanarTwist,
    ackermann_twist,
)
from roboyard.errors import ConfigError
from roboyard.localization.wheel_odometry import OdometryEstimate, OdometryNoise, PlanarOdometry, WheelOdometry
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


class OdometryNodeConfig(OdometryOutputConfig, SideJointsConfig):
    """Configuration of `OdometryNode`."""

    drive: DifferentialDrive = parameter(factory=DifferentialDrive, flatten="", doc="Geometry of the drive.")
    max_wheel_speed: float = parameter(
        math.inf, unit="rad/s", low=1e-3, high=math.inf, runtime=True,
        doc="Wheel speed above which a step is a miscount and is ignored.",
    )  # fmt: skip


class OdometryNode(DriveParameterNode[OdometryNodeConfig]):
    """Integrates the wheels of a differential or skid-steered base.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)

    The drive's parameters are those of the drive node; angles of several wheels on a side are averaged.
    """

    drive_geometry: DifferentialDriveConfig | None = resource(DifferentialDriveConfig, optional=True)

    state_fields = ("_n_rejected",)

    def setup(self) -> None:
        """Connect."""
        self._joint_names: list[str] | None = None
        self._left_indices: list[int] = []
        self._right_indices: list[int] = []
        self._throttle = Throttle(self.config.rate)
        self._n_rejected = 0
        self._frames = (self.frame(self.config.odom_frame), self.frame(self.config.base_frame))
        self._odometry = WheelOdometry(self.config.drive, self.config.noise, self.config.max_wheel_speed)
        self._publisher = self.publisher("odom", msg.Odometry)
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self.service("~reset", srv.Trigger, self._on_reset)

    def on_config_change(self, old: OdometryNodeConfig, new: OdometryNodeConfig) -> None:
        """Continue from the present pose with the new geometry."""
        odometry = self._odometry
        odometry.drive, odometry.noise, odometry.max_wheel_speed = new.drive, new.noise, new.max_wheel_speed

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
            self._find_wheels(state.name)
        if not self._left_indices or not self._right_indices:
            return
        time_ns = to_nanoseconds(state.header.stamp)
        if not self._throttle.should_pass(time_ns):
            return
        angles = state.position.tolist()
        left = sum([angles[i] for i in self._left_indices]) / len(self._left_indices)
        right = sum([angles[i] for i in self._right_indices]) / len(self._right_indices)
        estimate = self._odometry.update(time_ns, left, right)
        if self._odometry.n_rejected != self._n_rejected:
            self._n_rejected = self._odometry.n_rejected
            self.log.warn("dropped wheel angles: not finite, out of order or implausible jump", throttle=5.0)
            self.report_health("warn", "wheel angles dropped", count=self._n_rejected)
        if estimate is not None:
            self._publish(estimate)

    def _find_wheels(self, names: list[str]) -> None:
        """Look up the indices of the wheels in joint_states; messages that contain none of them are ignored."""
        wheel_joints = (*self.config.left_joints, *self.config.right_joints)
        present = [name for name in wheel_joints if name in names]
        if present and len(present) < len(wheel_joints):
            missing = next(name for name in wheel_joints if name not in names)
            raise ConfigError(f"joint_states has no joint '{missing}'", location=self.full_name, valid=", ".join(names))
        self._joint_names = list(names)
        self._left_indices = [names.index(name) for name in self.config.left_joints] if present else []
        self._right_indices = [names.index(name) for name in self.config.right_joints] if present else []

    def _publish(self, estimate: OdometryEstimate) -> None:
        self._publisher.publish(odometry_estimate_to_msg(estimate, *self._frames))
        if self.config.publish_tf:
            self.send_transform(estimate.T_odom_base.to_se3(), *self._frames, time_ns=estimate.time_ns)

    def _on_reset(self, request: Any) -> Any:
        self._odometry.reset()
        return srv.Trigger.Response(success=True, message="odometry is at the origin")


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


class PlanarOdometryNode(DriveParameterNode[OutputConfigT]):
    """Integrates the displacements that joint angles cause; subclasses implement ``set_geometry`` and ``displacement``.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)
    """

    state_fields = ("_angles",)

    def setup(self) -> None:
        """Connect."""
        self._used_joints = self.set_geometry(self.config)
        self._joint_names: list[str] = []
        self._joint_indices: NDArray[np.int64] | None = None
        self._angles: NDArray[np.float64] | None = None
        self._throttle = Throttle(self.config.rate)
        self._odometry = PlanarOdometry(self.config.noise)
        self._frames = (self.frame(self.config.odom_frame), self.frame(self.config.base_frame))
        self._publisher = self.publisher("odom", msg.Odometry)
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self.service("~reset", srv.Trigger, self._on_reset)

    def on_config_change(self, old: OdometryOutputConfig, new: OdometryOutputConfig) -> None:
        """Continue from the present pose with the new geometry."""
        self.set_geometry(new)
        self._odometry.noise = new.noise

    def set_geometry(self, config: Any) -> tuple[str, ...]:
        """Set the geometry of the drive; return the joints whose angles ``displacement`` takes."""
        return ()

    def displacement(self, previous_angles: NDArray[np.float64], angles: NDArray[np.float64]) -> PlanarTwist:
        """Return the displacement of the base frame [m, m, rad], in its own axes, between joint angles (n,) [rad]."""
        return PlanarTwist()

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
        angles = np.asarray(state.position, dtype=np.float64)[self._joint_indices]
        time_ns = to_nanoseconds(state.header.stamp)
        if not np.isfinite(angles).all():
            self.log.warn("dropped joint angles that are not finite", throttle=5.0)
            return
        if not self._throttle.should_pass(time_ns):
            return
        previous_angles, self._angles = self._angles, angles
        estimate = self._odometry.update(
            time_ns, PlanarTwist() if previous_angles is None else self.displacement(previous_angles, angles)
        )
        if estimate is None:
            return
        self._publisher.publish(odometry_estimate_to_msg(estimate, *self._frames))
        if self.config.publish_tf:
            self.send_transform(estimate.T_odom_base.to_se3(), *self._frames, time_ns=time_ns)

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
        self._angles = None
        return srv.Trigger.Response(success=True, message="odometry is at the origin")


class MecanumOdometryNodeConfig(OdometryOutputConfig, MecanumJointsConfig):
    """Configuration of `MecanumOdometryNode`."""

    drive: MecanumDrive = parameter(factory=MecanumDrive, flatten="", doc="Geometry of the drive.")


class MecanumOdometryNode(PlanarOdometryNode[MecanumOdometryNodeConfig]):
    """Odometry of four mecanum wheels; the drive's parameters are those of the mecanum node.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)
    """

    drive_geometry: MecanumDriveConfig | None = resource(MecanumDriveConfig, optional=True)

    def set_geometry(self, config: MecanumOdometryNodeConfig) -> tuple[str, ...]:
        """Set the geometry; return the four wheels."""
        self._drive = config.drive
        return config.joints

    def displacement(self, previous_angles: NDArray[np.float64], angles: NDArray[np.float64]) -> PlanarTwist:
        """Return the displacement by the angles of the wheels."""
        return self._drive.body_twist(angles - previous_angles)


class AckermannOdometryNodeConfig(OdometryOutputConfig, AckermannJointsConfig):
    """Configuration of `AckermannOdometryNode`."""

    wheels: AckermannWheels = parameter(factory=AckermannWheels, flatten="", doc="Geometry of the drive.")
    axle_x: float = parameter(
        0.0, unit="m", low=-50.0, high=50.0, runtime=True,
        doc="Position of the unsteered axle ahead of the base frame.",
    )  # fmt: skip


class AckermannOdometryNode(PlanarOdometryNode[AckermannOdometryNodeConfig]):
    """Odometry of a car: the distance by its wheels, the curvature by its steered wheels.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)
    """

    drive_geometry: AckermannDriveConfig | None = resource(AckermannDriveConfig, optional=True)

    def set_geometry(self, config: AckermannOdometryNodeConfig) -> tuple[str, ...]:
        """Set the geometry; return wheels and steering joints."""
        self._wheels, self._axle_x = config.wheels, config.axle_x
        groups = (
            config.left_joints,
            config.right_joints,
            config.left_steered_joints,
            config.right_steered_joints,
            config.left_steering_joints,
            config.right_steering_joints,
        )
        joints = tuple(joint for group in groups for joint in group)
        self._groups = [np.array([joints.index(joint) for joint in group], dtype=np.int64) for group in groups]
        return joints

    def displacement(self, previous_angles: NDArray[np.float64], angles: NDArray[np.float64]) -> PlanarTwist:
        """Return the displacement by the angles of the wheels, and the mean steering angle of the step."""
        mean_angles = 0.5 * (previous_angles + angles)
        left, right = (group if len(group) else self._groups[9 - k] for k, group in enumerate(self._groups[4:], 4))
        curvature = self._wheels.curvature_from_steering(
            float(mean_angles[left].mean()), float(mean_angles[right].mean())
        )
        wheel_rotations = [
            float((angles - previous_angles)[group].mean()) if len(group) else math.nan for group in self._groups[:4]
        ]
        return ackermann_twist(
            self._wheels.travel(AckermannWheelValues(*wheel_rotations), curvature), curvature, self._axle_x
        )
