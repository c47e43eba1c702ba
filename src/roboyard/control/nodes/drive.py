"""The drive node: wanted twist in, wheel speeds out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.control.kinematics import DifferentialDrive, PlanarTwist, slow_to_wheel_limit
from roboyard.control.ramps import RampLimits, RampState, next_velocity
from roboyard.errors import ConfigError
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import msg


class DriveNodeConfig(Config):
    """Configuration of `DriveNode`."""

    left_joints: tuple[str, ...] = parameter(("left_wheel_joint",), doc="wheels of the left side")
    right_joints: tuple[str, ...] = parameter(("right_wheel_joint",), doc="wheels of the right side")
    wheel_radius: float = parameter(0.1, unit="m", low=1e-3, high=10.0, runtime=True)
    track: float = parameter(
        0.35, unit="m", low=1e-3, high=20.0, doc="between the middles of left and right wheels", runtime=True
    )
    slip_factor: float = parameter(
        1.0, low=0.1, high=10.0, doc="k: skid steering turns as if the track were k times wider", runtime=True
    )
    left_radius_scale: float = parameter(
        1.0, low=0.5, high=2.0, doc="true over nominal radius, from calibration", runtime=True
    )
    right_radius_scale: float = parameter(
        1.0, low=0.5, high=2.0, doc="true over nominal radius, from calibration", runtime=True
    )
    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0)
    timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="older commands count as standstill", runtime=True
    )
    speed: float = parameter(1.0, unit="m/s", low=0.0, high=50.0, runtime=True)
    reverse_speed: float = parameter(
        -1.0, unit="m/s", low=-1.0, high=50.0, doc="largest backwards; -1: as speed", runtime=True
    )
    turn_rate: float = parameter(2.0, unit="rad/s", low=0.0, high=50.0, runtime=True)
    acceleration: float = parameter(1.0, unit="m/s²", low=1e-3, high=1e3, runtime=True)
    deceleration: float = parameter(
        0.0, unit="m/s²", low=0.0, high=1e3, doc="when slowing down; 0: as acceleration", runtime=True
    )
    turn_acceleration: float = parameter(3.0, unit="rad/s²", low=1e-3, high=1e3, runtime=True)
    turn_deceleration: float = parameter(
        0.0, unit="rad/s²", low=0.0, high=1e3, doc="0: as turn_acceleration", runtime=True
    )
    jerk: float = parameter(math.inf, unit="m/s³", low=1e-3, doc="inf: none", high=math.inf, runtime=True)
    turn_jerk: float = parameter(math.inf, unit="rad/s³", low=1e-3, doc="inf: none", high=math.inf, runtime=True)
    deadband: float = parameter(
        0.0, unit="m/s", low=0.0, high=1.0, doc="smaller wanted speeds count as zero", runtime=True
    )
    turn_deadband: float = parameter(0.0, unit="rad/s", low=0.0, high=1.0, runtime=True)
    wheel_speed: float = parameter(
        math.inf, unit="rad/s", low=1e-3, doc="largest wheel speed; the arc is kept", high=math.inf, runtime=True
    )


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
        reverse = config.reverse_speed
        self._drive = DifferentialDrive(
            config.wheel_radius,
            config.track,
            config.slip_factor,
            config.left_radius_scale,
            config.right_radius_scale,
        )
        self._linear_limits = RampLimits(
            speed=config.speed,
            acceleration=config.acceleration,
            deceleration=config.deceleration or None,
            jerk=config.jerk,
            reverse_speed=None if reverse < 0.0 else reverse,
            deadband=config.deadband,
        )
        self._angular_limits = RampLimits(
            speed=config.turn_rate,
            acceleration=config.turn_acceleration,
            deceleration=config.turn_deceleration or None,
            jerk=config.turn_jerk,
            deadband=config.turn_deadband,
        )

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
