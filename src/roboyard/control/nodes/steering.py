"""The steering node: sets the angles of both steered wheels for a target steering angle; another node drives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.control.velocity_ramps import RampLimits, RampState, step_velocity
from roboyard.control.wheel_kinematics import AckermannSteering
from roboyard.hardware.interface import Hardware, JointCommand, check_command_mode
from roboyard.messages import msg


class SteeringJointsConfig(Config):
    """Joints of the steering."""

    left_steering_joints: tuple[str, ...] = parameter(
        ("left_steering_joint",), doc="Joints that steer wheels on the left side."
    )
    right_steering_joints: tuple[str, ...] = parameter(
        ("right_steering_joint",), doc="Joints that steer wheels on the right side."
    )


class SteeringRateLimitConfig(Config):
    """Rate limit of the steering."""

    steering_rate: float = parameter(
        2.0, unit="rad/s", low=1e-3, high=1e3, runtime=True,
        doc="Largest rate of the steering angle of a wheel midway between the two.",
    )  # fmt: skip

    def steering_limits(self) -> RampLimits:
        """Return the limits of the steering angle's ramp."""
        return RampLimits(speed=math.inf, acceleration=self.steering_rate)


class SteeringAngleNodeConfig(SteeringJointsConfig, SteeringRateLimitConfig):
    """Configuration of `SteeringAngleNode`."""

    steering: AckermannSteering = parameter(factory=AckermannSteering, flatten="", doc="Geometry of the steering.")
    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")


class SteeringAngleNode(Node[SteeringAngleNodeConfig]):
    """Steers a car that another node drives, with Ackermann geometry.

    in: steering_angle (std_msgs/Float64), of a wheel midway between the two [rad]
    out: steering positions to the hardware

    An angle that is not finite is dropped; an angle at which the inner wheel would exceed ``steering_limit`` is
    reduced. The steering angle changes at most at ``steering_rate``.
    """

    hardware: Hardware = resource(Hardware)

    state_fields: tuple[str, ...] = ("_target", "_steering_angle")

    def setup(self) -> None:
        """Check the joints and listen."""
        self._joints = (*self.config.left_steering_joints, *self.config.right_steering_joints)
        check_command_mode(self.hardware, self._joints, "position", self.full_name)
        self._target = self._steering_angle = 0.0
        self.subscribe("steering_angle", msg.Float64, self._on_angle)
        self.timer(rate=self.config.rate, callback=self._update, immediate=True)

    def _on_angle(self, message: Any) -> None:
        if not math.isfinite(message.data):
            self.log.error(f"dropped an angle that is not finite: {message.data}", throttle=5.0)
            return
        self._target = float(message.data)

    def _update(self) -> None:
        geometry = self.config.steering
        max_angle = math.atan(geometry.max_curvature * abs(geometry.wheelbase))
        target = min(max(self._target, -max_angle), max_angle)
        limits = self.config.steering_limits()
        self._steering_angle = step_velocity(
            RampState(self._steering_angle), target, 1.0 / self.config.rate, limits
        ).velocity
        left, right = geometry.steering(math.tan(self._steering_angle) / geometry.wheelbase)
        angles = [left] * len(self.config.left_steering_joints) + [right] * len(self.config.right_steering_joints)
        self.hardware.write(JointCommand("position", self._joints, np.array(angles)))
