"""The mecanum node: wanted twist in, speeds of four wheels out."""

from __future__ import annotations

from roboyard.bus import resource
from roboyard.config import Config, parameter
from roboyard.control.drive_config import MecanumDriveConfig
from roboyard.control.kinematics import PlanarTwist
from roboyard.control.mecanum import MecanumDrive
from roboyard.control.nodes.twist import VelocityControllerConfig, VelocityControllerNode, check_modes
from roboyard.control.planar_ramps import PlanarRampConfig
from roboyard.hardware.interface import Hardware, JointCommand, VelocityBase


class MecanumJointsConfig(Config):
    """Wheels of a mecanum drive."""

    joints: tuple[str, ...] = parameter(
        ("front_left", "front_right", "rear_left", "rear_right"), doc="Joints of the wheels, in this order."
    )


class MecanumNodeConfig(MecanumJointsConfig, VelocityControllerConfig):
    """Configuration of `MecanumNode`."""

    ramps: PlanarRampConfig = parameter(factory=PlanarRampConfig, flatten="", doc="Limits of the velocities.")
    drive: MecanumDrive = parameter(factory=MecanumDrive, flatten="", doc="Geometry of the drive.")


class MecanumNode(VelocityControllerNode[MecanumNodeConfig]):
    """Drives four mecanum wheels along ramps.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: velocity set-points to the hardware, and to the base

    Where the wheels' rollers are not there to move the body, as in most descriptions, the robot comes with a ``base``,
    which is driven alike: the wheels then only turn and are counted.
    """

    drive_geometry: MecanumDriveConfig | None = resource(MecanumDriveConfig, optional=True)
    hardware: Hardware = resource(Hardware)
    base: VelocityBase | None = resource(VelocityBase, optional=True)

    def configure(self, config: MecanumNodeConfig) -> None:
        """Take the geometry."""
        check_modes(self.hardware, self.config.joints, "velocity", self.full_name)
        self._drive = config.drive

    def move(self, twist: PlanarTwist) -> None:
        """Turn the wheels, and move the base."""
        self.hardware.write(JointCommand("velocity", self.config.joints, self._drive.wheel_speeds(twist)))
        if self.base is not None:
            self.base.set_velocity((twist.vx, twist.vy, 0.0), (0.0, 0.0, twist.wz))
