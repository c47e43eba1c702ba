"""The Ackermann node: wanted twist in, steering angles and wheel speeds out."""

from __future__ import annotations

import math

import numpy as np

from roboyard.bus import resource
from roboyard.config import parameter
from roboyard.control.ackermann import AckermannDrive
from roboyard.control.drive_config import AckermannDriveConfig
from roboyard.control.kinematics import PlanarTwist
from roboyard.control.nodes.steering import SteeringJointsConfig, SteeringRateConfig
from roboyard.control.nodes.twist import VelocityControllerConfig, VelocityControllerNode, check_modes
from roboyard.control.planar_ramps import PlanarRampConfig
from roboyard.control.ramps import RampState, next_velocity
from roboyard.hardware.interface import Hardware, JointCommand


class AckermannJointsConfig(SteeringJointsConfig):
    """Wheels and steering of a car."""

    left_joints: tuple[str, ...] = parameter((), doc="Joints of driven left wheels that do not steer.")
    right_joints: tuple[str, ...] = parameter((), doc="Joints of driven right wheels that do not steer.")
    left_steered_joints: tuple[str, ...] = parameter((), doc="Joints of driven left wheels that steer.")
    right_steered_joints: tuple[str, ...] = parameter((), doc="Joints of driven right wheels that steer.")


class AckermannNodeConfig(AckermannJointsConfig, SteeringRateConfig, VelocityControllerConfig):
    """Configuration of `AckermannNode`."""

    ramps: PlanarRampConfig = parameter(factory=PlanarRampConfig, flatten="", doc="Limits of the velocities.")
    drive: AckermannDrive = parameter(factory=AckermannDrive, flatten="", doc="Geometry of the drive.")


class AckermannNode(VelocityControllerNode[AckermannNodeConfig]):
    """Drives a car: both steered wheels by the geometry of Ackermann, every driven wheel at its own speed.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: steering positions and wheel speeds to the hardware

    ``angular.z`` over ``linear.x`` is the curvature; standing, a wish to turn only steers.  Steering goes at most at
    ``steering_rate``, and the wheels turn as the steering stands, not as it shall.
    """

    drive_geometry: AckermannDriveConfig | None = resource(AckermannDriveConfig, optional=True)
    hardware: Hardware = resource(Hardware)

    state_fields: tuple[str, ...] = (*VelocityControllerNode.state_fields, "_steer")

    def setup(self) -> None:
        """Check the joints and start."""
        self._steer = 0.0
        super().setup()

    def configure(self, config: AckermannNodeConfig) -> None:
        """Take the geometry."""
        self._sides = (
            self.config.left_joints,
            self.config.right_joints,
            self.config.left_steered_joints,
            self.config.right_steered_joints,
        )
        self._wheels = tuple(joint for side in self._sides for joint in side)
        self._steering = (*self.config.left_steering_joints, *self.config.right_steering_joints)
        check_modes(self.hardware, self._wheels, "velocity", self.full_name)
        check_modes(self.hardware, self._steering, "position", self.full_name)
        self._drive = config.drive
        self._rate_limit = config.steering_limits()

    def move(self, twist: PlanarTwist) -> None:
        """Steer towards the curvature, and turn the wheels as it is now."""
        drive = self._drive
        # the middle wheel of a bicycle with the same curvature: its angle moves at the rate limit
        wanted = math.atan(drive.wheelbase * drive.curvature(twist))
        self._steer = next_velocity(RampState(self._steer), wanted, 1.0 / self.config.rate, self._rate_limit).velocity
        curvature = math.tan(self._steer) / drive.wheelbase
        left, right = drive.steering(curvature)
        angles = [left] * len(self.config.left_steering_joints) + [right] * len(self.config.right_steering_joints)
        self.hardware.write(JointCommand("position", self._steering, np.array(angles)))
        if self._wheels:
            rims = drive.wheel_speeds(twist.vx, curvature)
            speeds = [rim for rim, side in zip(rims, self._sides, strict=True) for _ in side]
            self.hardware.write(JointCommand("velocity", self._wheels, np.array(speeds)))
