"""The steering node: a wanted steering angle in, angles of both steered wheels out; somebody else drives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bus import Node, param, resource
from roboyard.control.ackermann import AckermannDrive
from roboyard.control.nodes.twist import check_modes
from roboyard.control.ramps import RampLimits, RampState, next_velocity
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import msg


class SteeringNode(Node):
    """Steers a car that others drive, both wheels by the geometry of Ackermann.

    in: steer_angle (std_msgs/Float64), of a wheel midway between the two [rad]
    out: steering positions to the hardware

    An angle that is not finite is dropped; one at which the inner wheel would stand beyond ``steering_limit`` is held
    to that.  Steering goes at most at ``steering_rate``.
    """

    hardware: Hardware = resource(Hardware)
    left_steering_joints: tuple[str, ...] = param(("left_steering_joint",), fixed=True)
    right_steering_joints: tuple[str, ...] = param(("right_steering_joint",), fixed=True)
    wheelbase: float = param(1.0, unit="m", low=-50.0, high=50.0, doc="from the unsteered to the steered axle")
    kingpin_width: float = param(0.8, unit="m", low=1e-3, high=20.0, doc="between the steering axes")
    steering_limit: float = param(0.5, unit="rad", low=1e-3, high=1.57)
    steering_rate: float = param(2.0, unit="rad/s", low=1e-3, high=1e3, doc="of the angle midway")
    rate: float = param(50.0, unit="Hz", low=1.0, high=1000.0, fixed=True)

    state_fields: tuple[str, ...] = ("_wanted", "_steer")

    def setup(self) -> None:
        """Check the joints and listen."""
        self._joints = (*self.left_steering_joints, *self.right_steering_joints)
        check_modes(self.hardware, self._joints, "position", self.full_name)
        self._wanted = self._steer = 0.0
        self.subscribe("steer_angle", msg.Float64, self._on_angle)
        self.timer(rate=self.rate, callback=self._tick, immediate=True)

    def _on_angle(self, message: Any) -> None:
        if not math.isfinite(message.data):
            self.log.error(f"dropped an angle that is not finite: {message.data}", throttle=5.0)
            return
        self._wanted = float(message.data)

    def _tick(self) -> None:
        drive = AckermannDrive(1.0, self.wheelbase, self.kingpin_width, self.kingpin_width, self.steering_limit)
        top = math.atan(drive.largest_curvature * abs(self.wheelbase))
        wanted, limit = min(max(self._wanted, -top), top), RampLimits(speed=math.inf, acceleration=self.steering_rate)
        self._steer = next_velocity(RampState(self._steer), wanted, 1.0 / self.rate, limit).velocity
        left, right = drive.steering(math.tan(self._steer) / self.wheelbase)
        angles = [left] * len(self.left_steering_joints) + [right] * len(self.right_steering_joints)
        self.hardware.write(JointCommand("position", self._joints, np.array(angles)))
