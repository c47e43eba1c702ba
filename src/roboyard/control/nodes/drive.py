"""The drive node: wanted twist in, wheel speeds out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.control.kinematics import DifferentialWheels, PlanarTwist, slow_to_wheel_limit
from roboyard.control.nodes.twist import CommandConfig
from roboyard.control.ramps import RampState, SmoothRampConfig, next_velocity
from roboyard.errors import ConfigError
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import msg


class SideJointsConfig(Config):
    """Wheels of a drive with two sides."""

    left_joints: tuple[str, ...] = parameter(("left_wheel_joint",), doc="Joints of the wheels on the left side.")
    right_joints: tuple[str, ...] = parameter(("right_wheel_joint",), doc="Joints of the wheels on the right side.")


class DriveNodeConfig(SideJointsConfig, CommandConfig):
    """Configuration of `DriveNode`."""

    wheels: DifferentialWheels = parameter(factory=DifferentialWheels, flatten="", doc="Geometry of the drive.")
    ramps: SmoothRampConfig = parameter(factory=SmoothRampConfig, flatten="", doc="Limits of the velocities.")
    wheel_speed: float = parameter(
        math.inf, unit="rad/s", low=1e-3, high=math.inf, runtime=True,
        doc="Largest wheel speed; faster commands are scaled down, so that the path stays the same.",
    )  # fmt: skip


class DriveNode(Node[DriveNodeConfig]):
    """Drives two sides of wheels (differential or skid steer) along ramps.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: velocity set-points to the hardware

    At a fixed rate the newest command goes through limits and ramps, then through the wheel kinematics.  A command that
    is older than ``timeout`` counts as standstill, so a silent sender means braking; one that is not finite is dropped.
    """

    hardware: Hardware = resource(Hardware)

    state_fields = ("_wanted", "_heard_ns", "_linear", "_angular")

    def setup(self) -> None:
        """Check the wheels and start the control loop."""
        self._joints: tuple[str, ...] = ()
        joints = (*self.config.left_joints, *self.config.right_joints)
        for joint in joints:
            modes = self.hardware.command_modes(joint)
            if "velocity" not in modes:
                raise ConfigError(
                    f"joint '{joint}' takes no velocity commands",
                    location=self.full_name,
                    valid=f"it takes: {', '.join(modes) or 'none'}",
                )
        self._wanted = (0.0, 0.0)
        self._heard_ns = -1
        self._linear = RampState()
        self._angular = RampState()
        self._configure(self.config)
        self._joints = joints
        self._sides = np.array([0] * len(self.config.left_joints) + [1] * len(self.config.right_joints))
        self.subscribe("cmd_vel_out", msg.Twist, self._on_command)
        self.timer(rate=self.config.rate, callback=self._tick)
        self.report_health("ok", "standing")

    def on_config_change(self, old: DriveNodeConfig, new: DriveNodeConfig) -> None:
        """Rebuild kinematics and limits; refuses combinations that make no sense."""
        self._configure(new)

    def close(self) -> None:
        """Leave the wheels standing."""
        if self._joints:  # empty if setup failed
            self._write(0.0, 0.0)

    def _configure(self, config: DriveNodeConfig) -> None:
        self._drive = config.wheels
        self._linear_limits, self._angular_limits = config.ramps.forward(), config.ramps.turning()

    def _on_command(self, command: Any) -> None:
        vx, wz = command.linear.x, command.angular.z
        if not (math.isfinite(vx) and math.isfinite(wz)):
            self.log.error(f"dropped a command that is not finite: {vx} m/s, {wz} rad/s", throttle=5.0)
            return
        if self._heard_ns < 0:
            self.report_health("ok", "driving")
        self._wanted, self._heard_ns = (vx, wz), self.now_ns

    def _tick(self) -> None:
        if self._heard_ns >= 0 and self.now_ns - self._heard_ns > self.config.timeout * 1e9:
            self._wanted, self._heard_ns = (0.0, 0.0), -1
            self.report_health("ok", "standing: no command")
        vx, wz = self._wanted
        dt = 1.0 / self.config.rate
        self._linear = next_velocity(self._linear, vx, dt, self._linear_limits)
        self._angular = next_velocity(self._angular, wz, dt, self._angular_limits)
        self._write(self._linear.velocity, self._angular.velocity)

    def _write(self, vx: float, wz: float) -> None:
        speeds = slow_to_wheel_limit(self._drive.wheel_speeds(PlanarTwist(vx, 0.0, wz)), self.config.wheel_speed)
        self.hardware.write(JointCommand("velocity", self._joints, speeds[self._sides]))
