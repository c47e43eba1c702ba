"""Odometry nodes of differential, mecanum and Ackermann drives: wheel angles in, odometry and its transform out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from roboyard.bus import resource
from roboyard.config import Config, parameter
from roboyard.control.ackermann import AckermannWheels, WheelRims, ackermann_twist
from roboyard.control.drive_config import AckermannDriveConfig, DifferentialDriveConfig, MecanumDriveConfig
from roboyard.control.kinematics import DifferentialDrive, PlanarTwist
from roboyard.control.mecanum import MecanumDrive
from roboyard.control.nodes.ackermann import AckermannJointsConfig
from roboyard.control.nodes.drive import SideJointsConfig
from roboyard.control.nodes.drive_parameters import DriveParameterNode
from roboyard.control.nodes.mecanum import MecanumJointsConfig
from roboyard.control.throttle import Throttle
from roboyard.errors import ConfigError
from roboyard.localization.odometry import OdometryEstimate, OdometryNoise, WheelOdometry
from roboyard.localization.planar import PlanarOdometry
from roboyard.messages import msg, srv
from roboyard.messages.time import time_to_msg, to_nanoseconds

_UNMEASURED = 1e6
"""Variance of what wheels cannot tell (z, roll, pitch); ROS drives use the same."""
_TEMPLATE = np.diag([0.0, 0.0, _UNMEASURED, _UNMEASURED, _UNMEASURED, 0.0]).reshape(36)
PLANAR = np.array([6 * row + column for row in (0, 1, 5) for column in (0, 1, 5)])
"""Places of x, y, yaw in ROS's (36,) covariance."""


class OdometryOutputConfig(Config):
    """What nodes of odometry publish, and how sure it is."""

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

    state_fields = ("_refused",)

    def setup(self) -> None:
        """Connect."""
        self._names: list[str] | None = None
        self._left: list[int] = []
        self._right: list[int] = []
        self._throttle = Throttle(self.config.rate)
        self._refused = 0
        self._frames = (self.frame(self.config.odom_frame), self.frame(self.config.base_frame))
        self._odometry = WheelOdometry(self.config.drive, self.config.noise, self.config.max_wheel_speed)
        self._publisher = self.publisher("odom", msg.Odometry)
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self.service("~reset", srv.Trigger, self._on_reset)

    def on_config_change(self, old: OdometryNodeConfig, new: OdometryNodeConfig) -> None:
        """Go on with the new geometry from where the base is."""
        odometry = self._odometry
        odometry.drive, odometry.noise, odometry.max_wheel_speed = new.drive, new.noise, new.max_wheel_speed

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {"odometry": self._odometry.save_state(), "throttle": self._throttle.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._odometry.load_state(state["odometry"])
        self._throttle.load_state(state["throttle"])

    def _on_joints(self, state: Any) -> None:
        if state.name != self._names:
            self._find_wheels(state.name)
        if not self._left or not self._right:
            return
        time_ns = to_nanoseconds(state.header.stamp)
        if not self._throttle.passes(time_ns):
            return
        angles = state.position.tolist()
        left = sum([angles[i] for i in self._left]) / len(self._left)
        right = sum([angles[i] for i in self._right]) / len(self._right)
        estimate = self._odometry.update(time_ns, left, right)
        if self._odometry.refused != self._refused:
            self._refused = self._odometry.refused
            self.log.warn("left out wheel angles that cannot be (not finite, out of order or a jump)", throttle=5.0)
            self.report_health("warn", "wheel angles left out", count=self._refused)
        if estimate is not None:
            self._publish(estimate)

    def _find_wheels(self, names: list[str]) -> None:
        """Places of the wheels in joint_states; messages of other joints only are passed over."""
        wanted = (*self.config.left_joints, *self.config.right_joints)
        present = [name for name in wanted if name in names]
        if present and len(present) < len(wanted):
            missing = next(name for name in wanted if name not in names)
            raise ConfigError(f"joint_states has no joint '{missing}'", location=self.full_name, valid=", ".join(names))
        self._names = list(names)
        self._left = [names.index(name) for name in self.config.left_joints] if present else []
        self._right = [names.index(name) for name in self.config.right_joints] if present else []

    def _publish(self, estimate: OdometryEstimate) -> None:
        self._publisher.publish(odometry_message(estimate, *self._frames))
        if self.config.publish_tf:
            self.send_transform(estimate.T_odom_base.to_se3(), *self._frames, time_ns=estimate.time_ns)

    def _on_reset(self, request: Any) -> Any:
        self._odometry.reset()
        return srv.Trigger.Response(success=True, message="odometry is at the origin")


def odometry_message(estimate: OdometryEstimate, odom_frame: str, base_frame: str) -> Any:
    """nav_msgs/Odometry of an estimate."""
    pose, twist = estimate.T_odom_base, estimate.twist
    half = 0.5 * pose.theta
    return msg.Odometry(
        header=msg.Header(stamp=time_to_msg(estimate.time_ns), frame_id=odom_frame),
        child_frame_id=base_frame,
        pose=msg.PoseWithCovariance(
            pose=msg.Pose(
                position=msg.Point(x=pose.x, y=pose.y),
                orientation=msg.Quaternion(z=math.sin(half), w=math.cos(half)),
            ),
            covariance=spatial_covariance(estimate.covariance),
        ),
        twist=msg.TwistWithCovariance(
            twist=msg.Twist(linear=msg.Vector3(x=twist.vx, y=twist.vy), angular=msg.Vector3(z=twist.wz)),
            covariance=spatial_covariance(estimate.twist_covariance),
        ),
    )


def spatial_covariance(planar: NDArray[np.float64]) -> NDArray[np.float64]:
    """ROS's (36,) covariance of x, y, z, roll, pitch, yaw from (3, 3) of x, y, yaw."""
    full = _TEMPLATE.copy()
    full[PLANAR] = planar.reshape(9)
    return full


OutputConfigT = TypeVar("OutputConfigT", bound=OdometryOutputConfig, default=OdometryOutputConfig, covariant=True)


class PlanarOdometryNode(DriveParameterNode[OutputConfigT]):
    """Adds up the way that joint angles say; subclasses fill in ``connect`` and ``way``.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)
    """

    state_fields = ("_angles",)

    def setup(self) -> None:
        """Connect."""
        self._joints = self.connect(self.config)
        self._names: list[str] = []
        self._where: NDArray[np.int64] | None = None
        self._angles: NDArray[np.float64] | None = None
        self._throttle = Throttle(self.config.rate)
        self._odometry = PlanarOdometry(self.config.noise)
        self._frames = (self.frame(self.config.odom_frame), self.frame(self.config.base_frame))
        self._publisher = self.publisher("odom", msg.Odometry)
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self.service("~reset", srv.Trigger, self._on_reset)

    def on_config_change(self, old: OdometryOutputConfig, new: OdometryOutputConfig) -> None:
        """Go on with the new geometry from where the base is."""
        self.connect(new)
        self._odometry.noise = new.noise

    def connect(self, config: Any) -> tuple[str, ...]:
        """Take the geometry; gives the joints whose angles ``way`` wants."""
        return ()

    def way(self, before: NDArray[np.float64], now: NDArray[np.float64]) -> PlanarTwist:
        """Way of the base frame [m, m, rad], in its own axes, between joint angles (n,) [rad]."""
        return PlanarTwist()

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {"odometry": self._odometry.save_state(), "throttle": self._throttle.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._odometry.load_state(state["odometry"])
        self._throttle.load_state(state["throttle"])

    def _on_joints(self, state: Any) -> None:
        if state.name != self._names:
            self._find(list(state.name))
        if self._where is None:
            return
        angles = np.asarray(state.position, dtype=np.float64)[self._where]
        time_ns = to_nanoseconds(state.header.stamp)
        if not np.isfinite(angles).all():
            self.log.warn("left out joint angles that are not finite", throttle=5.0)
            return
        if not self._throttle.passes(time_ns):
            return
        before, self._angles = self._angles, angles
        estimate = self._odometry.update(time_ns, PlanarTwist() if before is None else self.way(before, angles))
        if estimate is None:
            return
        self._publisher.publish(odometry_message(estimate, *self._frames))
        if self.config.publish_tf:
            self.send_transform(estimate.T_odom_base.to_se3(), *self._frames, time_ns=time_ns)

    def _find(self, names: list[str]) -> None:
        """Places of the joints; messages of others only are passed over."""
        present = [joint for joint in self._joints if joint in names]
        if present and len(present) < len(self._joints):
            missing = next(joint for joint in self._joints if joint not in names)
            raise ConfigError(f"joint_states has no joint '{missing}'", location=self.full_name, valid=", ".join(names))
        self._names = names
        self._where = np.array([names.index(joint) for joint in self._joints]) if present else None

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

    def connect(self, config: MecanumOdometryNodeConfig) -> tuple[str, ...]:
        """The four wheels."""
        self._drive = config.drive
        return config.joints

    def way(self, before: NDArray[np.float64], now: NDArray[np.float64]) -> PlanarTwist:
        """By the wheels' own angles."""
        return self._drive.body_twist(now - before)


class AckermannOdometryNodeConfig(OdometryOutputConfig, AckermannJointsConfig):
    """Configuration of `AckermannOdometryNode`."""

    wheels: AckermannWheels = parameter(factory=AckermannWheels, flatten="", doc="Geometry of the drive.")
    axle_x: float = parameter(
        0.0, unit="m", low=-50.0, high=50.0, runtime=True,
        doc="Position of the unsteered axle ahead of the base frame.",
    )  # fmt: skip


class AckermannOdometryNode(PlanarOdometryNode[AckermannOdometryNodeConfig]):
    """Odometry of a car: the way by its wheels, the turn by how its steered wheels stand.

    in: joint_states   out: odom (nav_msgs/Odometry), /tf odom_frame → base_frame   service: ~reset (std_srvs/Trigger)
    """

    drive_geometry: AckermannDriveConfig | None = resource(AckermannDriveConfig, optional=True)

    def connect(self, config: AckermannOdometryNodeConfig) -> tuple[str, ...]:
        """Wheels and steering."""
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

    def way(self, before: NDArray[np.float64], now: NDArray[np.float64]) -> PlanarTwist:
        """By the wheels' angles, and the steering in the middle of the step."""
        middle = 0.5 * (before + now)
        left, right = (group if len(group) else self._groups[9 - k] for k, group in enumerate(self._groups[4:], 4))
        curvature = self._wheels.curvature_of(float(middle[left].mean()), float(middle[right].mean()))
        rolled = [float((now - before)[group].mean()) if len(group) else math.nan for group in self._groups[:4]]
        return ackermann_twist(self._wheels.way(WheelRims(*rolled), curvature), curvature, self._axle_x)
