"""The drive node: wanted twist in, wheel speeds out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from roboyard.bus import Node, param, resource
from roboyard.control.kinematics import DifferentialDrive, PlanarTwist, slow_to_wheel_limit
from roboyard.control.ramps import RampLimits, RampState, next_velocity
from roboyard.errors import ConfigError
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import msg


class DriveNode(Node):
    """Drives two sides of wheels (differential or skid steer) along ramps.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: velocity set-points to the hardware

    At a fixed rate the newest command goes through limits and ramps, then through the wheel kinematics.  A command that
    is older than ``timeout`` counts as standstill, so a silent sender means braking; one that is not finite is dropped.
    """

    hardware: Hardware = resource(Hardware)
    left_joints: tuple[str, ...] = param(("left_wheel_joint",), doc="wheels of the left side", fixed=True)
    right_joints: tuple[str, ...] = param(("right_wheel_joint",), doc="wheels of the right side", fixed=True)
    wheel_radius: float = param(0.1, unit="m", low=1e-3, high=10.0)
    track: float = param(0.35, unit="m", low=1e-3, high=20.0, doc="between the middles of left and right wheels")
    slip_factor: float = param(1.0, low=0.1, high=10.0, doc="k: skid steering turns as if the track were k times wider")
    left_radius_scale: float = param(1.0, low=0.5, high=2.0, doc="true over nominal radius, from calibration")
    right_radius_scale: float = param(1.0, low=0.5, high=2.0, doc="true over nominal radius, from calibration")
    rate: float = param(50.0, unit="Hz", low=1.0, high=1000.0, fixed=True)
    timeout: float = param(0.5, unit="s", low=0.01, high=60.0, doc="older commands count as standstill")
    speed: float = param(1.0, unit="m/s", low=0.0, high=50.0)
    reverse_speed: float = param(-1.0, unit="m/s", low=-1.0, high=50.0, doc="largest backwards; -1: as speed")
    turn_rate: float = param(2.0, unit="rad/s", low=0.0, high=50.0)
    acceleration: float = param(1.0, unit="m/s²", low=1e-3, high=1e3)
    deceleration: float = param(0.0, unit="m/s²", low=0.0, high=1e3, doc="when slowing down; 0: as acceleration")
    turn_acceleration: float = param(3.0, unit="rad/s²", low=1e-3, high=1e3)
    turn_deceleration: float = param(0.0, unit="rad/s²", low=0.0, high=1e3, doc="0: as turn_acceleration")
    jerk: float = param(math.inf, unit="m/s³", low=1e-3, doc="inf: none")
    turn_jerk: float = param(math.inf, unit="rad/s³", low=1e-3, doc="inf: none")
    deadband: float = param(0.0, unit="m/s", low=0.0, high=1.0, doc="smaller wanted speeds count as zero")
    turn_deadband: float = param(0.0, unit="rad/s", low=0.0, high=1.0)
    wheel_speed: float = param(math.inf, unit="rad/s", low=1e-3, doc="largest wheel speed; the arc is kept")

    state_fields = ("_wanted", "_heard_ns", "_linear", "_angular")

    def setup(self) -> None:
        """Check the wheels and start the control loop."""
        self._joints: tuple[str, ...] = ()
        joints = (*self.left_joints, *self.right_joints)
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
        self._configure(self.parameters())
        self._joints = joints
        self._sides = np.array([0] * len(self.left_joints) + [1] * len(self.right_joints))
        self.subscribe("cmd_vel_out", msg.Twist, self._on_command)
        self.timer(rate=self.rate, callback=self._tick)
        self.report_health("ok", "standing")

    def on_parameter(self, name: str, value: Any) -> None:
        """Rebuild kinematics and limits; refuses combinations that make no sense."""
        self._configure({**self.parameters(), name: value})

    def close(self) -> None:
        """Leave the wheels standing."""
        if self._joints:  # empty if setup failed
            self._write(0.0, 0.0)

    def _configure(self, given: Mapping[str, Any]) -> None:
        reverse = given["reverse_speed"]
        self._drive = DifferentialDrive(
            given["wheel_radius"],
            given["track"],
            given["slip_factor"],
            given["left_radius_scale"],
            given["right_radius_scale"],
        )
        self._linear_limits = RampLimits(
            speed=given["speed"],
            acceleration=given["acceleration"],
            deceleration=given["deceleration"] or None,
            jerk=given["jerk"],
            reverse_speed=None if reverse < 0.0 else reverse,
            deadband=given["deadband"],
        )
        self._angular_limits = RampLimits(
            speed=given["turn_rate"],
            acceleration=given["turn_acceleration"],
            deceleration=given["turn_deceleration"] or None,
            jerk=given["turn_jerk"],
            deadband=given["turn_deadband"],
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
        if self._heard_ns >= 0 and self.now_ns - self._heard_ns > self.timeout * 1e9:
            self._wanted, self._heard_ns = (0.0, 0.0), -1
            self.report_health("ok", "standing: no command")
        vx, wz = self._wanted
        dt = 1.0 / self.rate
        self._linear = next_velocity(self._linear, vx, dt, self._linear_limits)
        self._angular = next_velocity(self._angular, wz, dt, self._angular_limits)
        self._write(self._linear.velocity, self._angular.velocity)

    def _write(self, vx: float, wz: float) -> None:
        speeds = slow_to_wheel_limit(self._drive.wheel_speeds(PlanarTwist(vx, 0.0, wz)), self.wheel_speed)
        self.hardware.write(JointCommand("velocity", self._joints, speeds[self._sides]))
