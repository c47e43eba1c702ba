"""The node of differential and skid-steer drives: velocity commands in, wheel speeds out."""

from __future__ import annotations

import math

import numpy as np

from roboyard.bus import resource
from roboyard.config import Config, parameter
from roboyard.control.drive_config import DifferentialDriveConfig
from roboyard.control.kinematics import DifferentialWheels, PlanarTwist, slow_to_wheel_limit
from roboyard.control.nodes.twist import VelocityControllerConfig, VelocityControllerNode, check_modes
from roboyard.control.ramps import SmoothRampConfig
from roboyard.hardware.interface import Hardware, JointCommand


class SideJointsConfig(Config):
    """Wheels of a drive with two sides."""

    left_joints: tuple[str, ...] = parameter(("left_wheel_joint",), doc="Joints of the wheels on the left side.")
    right_joints: tuple[str, ...] = parameter(("right_wheel_joint",), doc="Joints of the wheels on the right side.")


class DriveNodeConfig(SideJointsConfig, VelocityControllerConfig):
    """Configuration of `DriveNode`."""

    wheels: DifferentialWheels = parameter(factory=DifferentialWheels, flatten="", doc="Geometry of the drive.")
    ramps: SmoothRampConfig = parameter(factory=SmoothRampConfig, flatten="", doc="Limits of the velocities.")
    wheel_speed: float = parameter(
        math.inf, unit="rad/s", low=1e-3, high=math.inf, runtime=True,
        doc="Largest wheel speed; faster commands are scaled down, so that the path stays the same.",
    )  # fmt: skip


class DriveNode(VelocityControllerNode[DriveNodeConfig]):
    """Drives two sides of wheels (differential or skid steer) along ramps.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: velocity set-points to the hardware

    At a fixed rate the newest command goes through limits and ramps, then through the wheel kinematics.  A command that
    is older than ``timeout`` counts as standstill, so a silent sender means braking; one that is not finite is dropped.
    """

    drive_geometry: DifferentialDriveConfig | None = resource(DifferentialDriveConfig, optional=True)
    hardware: Hardware = resource(Hardware)

    def configure(self, config: DriveNodeConfig) -> None:
        """Take the wheels."""
        sides = config.left_joints, config.right_joints
        check_modes(self.hardware, (*sides[0], *sides[1]), "velocity", self.full_name)
        self._joints = (*sides[0], *sides[1])
        self._sides = np.array([0] * len(sides[0]) + [1] * len(sides[1]))
        self._drive, self._wheel_speed = config.wheels, config.wheel_speed

    def move(self, twist: PlanarTwist) -> None:
        """Turn the wheels of both sides."""
        speeds = slow_to_wheel_limit(self._drive.wheel_speeds(twist), self._wheel_speed)
        self.hardware.write(JointCommand("velocity", self._joints, speeds[self._sides]))
