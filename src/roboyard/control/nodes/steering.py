"""The steering node: a wanted steering angle in, angles of both steered wheels out; somebody else drives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.control.ackermann import AckermannSteering
from roboyard.control.nodes.twist import check_modes
from roboyard.control.ramps import RampLimits, RampState, next_velocity
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import msg


class SteeringJointsConfig(Config):
    """Joints that steer."""

    left_steering_joints: tuple[str, ...] = parameter(
        ("left_steering_joint",), doc="Joints that steer wheels on the left side."
    )
    right_steering_joints: tuple[str, ...] = parameter(
        ("right_steering_joint",), doc="Joints that steer wheels on the right side."
    )


class SteeringRateConfig(Config):
    """How fast the steering moves."""

    steering_rate: float = parameter(
        2.0, unit="rad/s", low=1e-3, high=1e3, runtime=True,
        doc="Largest rate of the steering angle of a wheel midway between the two.",
    )  # fmt: skip

    def steering_limits(self) -> RampLimits:
        """Return the limits of the steering angle's ramp."""
        return RampLimits(speed=math.inf, acceleration=self.steering_rate)


class SteeringNodeConfig(SteeringJointsConfig, SteeringRateConfig):
    """Configuration of `SteeringNode`."""

    steering: AckermannSteering = parameter(factory=AckermannSteering, flatten="", doc="Geometry of the steering.")
    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")


class SteeringNode(Node[SteeringNodeConfig]):
    """Steers a car that others drive, both wheels by the geometry of Ackermann.

    in: steer_angle (std_msgs/Float64), of a wheel midway between the two [rad]
    out: steering positions to the hardware

    An angle that is not finite is dropped; one at which the inner wheel would stand beyond ``steering_limit`` is held
    to that.  Steering goes at most at ``steering_rate``.
    """

    hardware: Hardware = resource(Hardware)

    state_fields: tuple[str, ...] = ("_wanted", "_steer")

    def setup(self) -> None:
        """Check the joints and listen."""
        self._joints = (*self.config.left_steering_joints, *self.config.right_steering_joints)
        check_modes(self.hardware, self._joints, "position", self.full_name)
        self._wanted = self._steer = 0.0
        self.subscribe("steer_angle", msg.Float64, self._on_angle)
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)

    def _on_angle(self, message: Any) -> None:
        if not math.isfinite(message.data):
            self.log.error(f"dropped an angle that is not finite: {message.data}", throttle=5.0)
            return
        self._wanted = float(message.data)

    def _tick(self) -> None:
        geometry = self.config.steering
        top = math.atan(geometry.largest_curvature * abs(geometry.wheelbase))
        wanted = min(max(self._wanted, -top), top)
        limits = self.config.steering_limits()
        self._steer = next_velocity(RampState(self._steer), wanted, 1.0 / self.config.rate, limits).velocity
        left, right = geometry.steering(math.tan(self._steer) / geometry.wheelbase)
        angles = [left] * len(self.config.left_steering_joints) + [right] * len(self.config.right_steering_joints)
        self.hardware.write(JointCommand("position", self._joints, np.array(angles)))
