"""Drive nodes with ramps: the base class, and the nodes of differential, mecanum and Ackermann drives.

Velocity commands go through limits and ramps at a fixed rate, then through the wheel kinematics.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from typing_extensions import TypeVar

from roboyard.bus import resource
from roboyard.config import Config, parameter
from roboyard.control.drive_config import AckermannDriveConfig, DifferentialDriveConfig, MecanumDriveConfig
from roboyard.control.nodes.steering import SteeringJointsConfig, SteeringRateLimitConfig
from roboyard.control.nodes.velocity_base import DriveCommandNode
from roboyard.control.velocity_ramps import (
    ZERO_STATE,
    DriveRampConfig,
    HolonomicRampConfig,
    JerkLimitedRampConfig,
    PlanarRampLimits,
    RampState,
    step_velocity,
    twist_from_state,
)
from roboyard.control.wheel_kinematics import (
    ZERO_TWIST,
    AckermannDrive,
    DifferentialWheels,
    MecanumDrive,
    PlanarTwist,
    scale_to_wheel_limit,
)
from roboyard.hardware.interface import Hardware, JointCommand, VelocityBase, check_command_mode


class VelocityControllerConfig(Config):
    """Configuration of `VelocityControllerNode`."""

    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    timeout: float = parameter(
        0.5, unit="s", low=0.01, high=1e9, runtime=True, doc="Age from which a command counts as standstill."
    )
    ramps: DriveRampConfig = parameter(factory=DriveRampConfig, flatten="", doc="Limits of the velocities.")


VelocityControllerConfigT = TypeVar(
    "VelocityControllerConfigT", bound=VelocityControllerConfig, default=VelocityControllerConfig, covariant=True
)


class VelocityControllerNode(DriveCommandNode[VelocityControllerConfigT]):
    """Base of the nodes that drive wheels: brings the newest command through limits and ramps at a fixed rate.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)

    A command older than ``timeout`` counts as standstill, so the drive brakes without commands. Subclasses fill in
    ``configure`` and ``move``.
    """

    state_fields: tuple[str, ...] = (*DriveCommandNode.state_fields, "_target", "_state")

    def setup(self) -> None:
        """Check the robot and start the control loop."""
        self._is_ready = False
        self._target = ZERO_TWIST
        self._state = ZERO_STATE
        self._configure(self.config)
        self._is_ready = True
        self.listen()
        self.timer(rate=self.config.rate, callback=self._update)
        self.report_health("ok", "at standstill")

    def configure(self, config: Any) -> None:
        """Apply new parameters; raise ConfigError to reject them."""

    def move(self, twist: PlanarTwist) -> None:
        """Move the robot at this twist from now on."""

    def on_config_change(self, old: VelocityControllerConfig, new: VelocityControllerConfig) -> None:
        """Rebuild kinematics and limits; raises ConfigError for inconsistent values."""
        self._configure(new)

    def on_twist(self, *velocities: float) -> None:
        """Follow the command from the next step on."""
        if self._command_ns < 0:
            self.report_health("ok", "driving")
        self._target = PlanarTwist(*velocities)

    def close(self) -> None:
        """Stop the robot."""
        if self._is_ready:  # False if setup failed
            self.move(ZERO_TWIST)

    def _configure(self, config: VelocityControllerConfig) -> None:
        self.configure(config)
        ramps = config.ramps
        self._limits = PlanarRampLimits(ramps.forward_limits(), ramps.lateral_limits(), ramps.angular_limits())

    def _update(self) -> None:
        if self.is_command_old(self.config.timeout):
            self._target = ZERO_TWIST
            self.report_health("ok", "at standstill: no command")
        self._state = self._limits.step(self._state, self._target, 1.0 / self.config.rate)
        self.move(twist_from_state(self._state))


class SideJointsConfig(Config):
    """Wheels of a drive with two sides."""

    left_joints: tuple[str, ...] = parameter(("left_wheel_joint",), doc="Joints of the wheels on the left side.")
    right_joints: tuple[str, ...] = parameter(("right_wheel_joint",), doc="Joints of the wheels on the right side.")


class DifferentialDriveNodeConfig(SideJointsConfig, VelocityControllerConfig):
    """Configuration of `DifferentialDriveNode`."""

    wheels: DifferentialWheels = parameter(factory=DifferentialWheels, flatten="", doc="Geometry of the drive.")
    ramps: JerkLimitedRampConfig = parameter(factory=JerkLimitedRampConfig, flatten="", doc="Limits of the velocities.")
    wheel_speed: float = parameter(
        math.inf, unit="rad/s", low=1e-3, high=math.inf, runtime=True,
        doc="Largest wheel speed; faster commands are scaled down, so that the path stays the same.",
    )  # fmt: skip


class DifferentialDriveNode(VelocityControllerNode[DifferentialDriveNodeConfig]):
    """Drives two sides of wheels (differential or skid steer) along ramps.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: velocity set-points to the hardware

    At a fixed rate the newest command passes limits and ramps, then the wheel kinematics. A command that is older than
    ``timeout`` counts as standstill, so that the drive brakes; a command that is not finite is dropped.
    """

    drive_geometry: DifferentialDriveConfig | None = resource(DifferentialDriveConfig, optional=True)
    hardware: Hardware = resource(Hardware)

    def configure(self, config: DifferentialDriveNodeConfig) -> None:
        """Take the wheels."""
        sides = config.left_joints, config.right_joints
        check_command_mode(self.hardware, (*sides[0], *sides[1]), "velocity", self.full_name)
        self._joints = (*sides[0], *sides[1])
        self._sides = np.array([0] * len(sides[0]) + [1] * len(sides[1]))
        self._drive, self._wheel_speed = config.wheels, config.wheel_speed

    def move(self, twist: PlanarTwist) -> None:
        """Turn the wheels of both sides."""
        speeds = scale_to_wheel_limit(self._drive.wheel_speeds(twist), self._wheel_speed)
        self.hardware.write(JointCommand("velocity", self._joints, speeds[self._sides]))


class MecanumJointsConfig(Config):
    """Wheels of a mecanum drive."""

    joints: tuple[str, ...] = parameter(
        ("front_left", "front_right", "rear_left", "rear_right"), doc="Joints of the wheels, in this order."
    )


class MecanumDriveNodeConfig(MecanumJointsConfig, VelocityControllerConfig):
    """Configuration of `MecanumNode`."""

    ramps: HolonomicRampConfig = parameter(factory=HolonomicRampConfig, flatten="", doc="Limits of the velocities.")
    drive: MecanumDrive = parameter(factory=MecanumDrive, flatten="", doc="Geometry of the drive.")


class MecanumDriveNode(VelocityControllerNode[MecanumDriveNodeConfig]):
    """Drives four mecanum wheels along ramps.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: velocity set-points to the hardware, and to the base

    If the description has no rollers, as most, the robot has a ``base`` that gets the same velocity: the wheels then
    only turn, for the odometry.
    """

    drive_geometry: MecanumDriveConfig | None = resource(MecanumDriveConfig, optional=True)
    hardware: Hardware = resource(Hardware)
    base: VelocityBase | None = resource(VelocityBase, optional=True)

    def configure(self, config: MecanumDriveNodeConfig) -> None:
        """Take the geometry."""
        check_command_mode(self.hardware, self.config.joints, "velocity", self.full_name)
        self._drive = config.drive

    def move(self, twist: PlanarTwist) -> None:
        """Turn the wheels, and move the base."""
        self.hardware.write(JointCommand("velocity", self.config.joints, self._drive.wheel_speeds(twist)))
        if self.base is not None:
            self.base.set_velocity((twist.vx, twist.vy, 0.0), (0.0, 0.0, twist.wz))


class AckermannJointsConfig(SteeringJointsConfig):
    """Wheels and steering of a car."""

    left_joints: tuple[str, ...] = parameter((), doc="Joints of driven left wheels that do not steer.")
    right_joints: tuple[str, ...] = parameter((), doc="Joints of driven right wheels that do not steer.")
    left_steered_joints: tuple[str, ...] = parameter((), doc="Joints of driven left wheels that steer.")
    right_steered_joints: tuple[str, ...] = parameter((), doc="Joints of driven right wheels that steer.")


class AckermannDriveNodeConfig(AckermannJointsConfig, SteeringRateLimitConfig, VelocityControllerConfig):
    """Configuration of `AckermannDriveNode`."""

    ramps: HolonomicRampConfig = parameter(factory=HolonomicRampConfig, flatten="", doc="Limits of the velocities.")
    drive: AckermannDrive = parameter(factory=AckermannDrive, flatten="", doc="Geometry of the drive.")


class AckermannDriveNode(VelocityControllerNode[AckermannDriveNodeConfig]):
    """Drives a car: both steered wheels by the geometry of Ackermann, every driven wheel at its own speed.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: steering positions and wheel speeds to the hardware

    ``angular.z`` over ``linear.x`` is the curvature; at standstill a command to turn only steers. The steering angle
    changes at most at ``steering_rate``, and the wheel speeds follow the present steering angle, not the commanded one.
    """

    drive_geometry: AckermannDriveConfig | None = resource(AckermannDriveConfig, optional=True)
    hardware: Hardware = resource(Hardware)

    state_fields: tuple[str, ...] = (*VelocityControllerNode.state_fields, "_steering_angle")

    def setup(self) -> None:
        """Check the joints and start."""
        self._steering_angle = 0.0
        super().setup()

    def configure(self, config: AckermannDriveNodeConfig) -> None:
        """Take the geometry."""
        self._sides = (
            self.config.left_joints,
            self.config.right_joints,
            self.config.left_steered_joints,
            self.config.right_steered_joints,
        )
        self._wheels = tuple(joint for side in self._sides for joint in side)
        self._steering = (*self.config.left_steering_joints, *self.config.right_steering_joints)
        check_command_mode(self.hardware, self._wheels, "velocity", self.full_name)
        check_command_mode(self.hardware, self._steering, "position", self.full_name)
        self._drive = config.drive
        self._rate_limit = config.steering_limits()

    def move(self, twist: PlanarTwist) -> None:
        """Steer towards the commanded curvature, and turn the wheels for the present one."""
        drive = self._drive
        # the middle wheel of a bicycle with the same curvature: its angle moves at the rate limit
        target_angle = math.atan(drive.wheelbase * drive.curvature(twist))
        self._steering_angle = step_velocity(
            RampState(self._steering_angle), target_angle, 1.0 / self.config.rate, self._rate_limit
        ).velocity
        curvature = math.tan(self._steering_angle) / drive.wheelbase
        left, right = drive.steering(curvature)
        angles = [left] * len(self.config.left_steering_joints) + [right] * len(self.config.right_steering_joints)
        self.hardware.write(JointCommand("position", self._steering, np.array(angles)))
        if self._wheels:
            wheel_speeds = drive.wheel_speeds(twist.vx, curvature)
            speeds = [speed for speed, side in zip(wheel_speeds, self._sides, strict=True) for _ in side]
            self.hardware.write(JointCommand("velocity", self._wheels, np.array(speeds)))
