"""The velocity node: a body that takes its velocity as a command."""

from __future__ import annotations

from typing import Any

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.hardware.interface import VelocityBase
from roboyard.messages import msg
from roboyard.messages.convert import is_finite_twist


class VelocityNodeConfig(Config):
    """Configuration of `VelocityNode`."""

    timeout: float = parameter(
        0.0, unit="s", low=0.0, high=1e6, runtime=True, doc="Age from which a command counts as standstill; 0: never."
    )
    initial_linear: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), unit="m/s", doc="Velocity at the start.")
    initial_angular: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), unit="rad/s", doc="Angular velocity at the start."
    )


class VelocityNode(Node[VelocityNodeConfig]):
    """Hands twists to the base as they come.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: velocities to the base

    As Gazebo's VelocityControl, it has no ramps, and holds the last command unless ``timeout`` is set.
    """

    base: VelocityBase = resource(VelocityBase)

    state_fields = ("_heard_ns",)

    def setup(self) -> None:
        """Begin as told."""
        self._heard_ns = -1
        if any(self.config.initial_linear) or any(self.config.initial_angular):
            (vx, vy, vz), (wx, wy, wz) = self.config.initial_linear, self.config.initial_angular
            self.base.set_velocity((vx, vy, vz), (wx, wy, wz))
        self.subscribe("cmd_vel_out", msg.Twist, self._on_command)
        if self.config.timeout > 0.0:
            self.timer(period=min(self.config.timeout, 0.1), callback=self._look)

    def close(self) -> None:
        """Let the body go."""
        self.base.release()

    def _on_command(self, command: Any) -> None:
        linear = (command.linear.x, command.linear.y, command.linear.z)
        angular = (command.angular.x, command.angular.y, command.angular.z)
        if not is_finite_twist(command):
            self.log.error(f"dropped a command that is not finite: {linear}, {angular}", throttle=5.0)
            return
        self._heard_ns = self.now_ns
        self.base.set_velocity(linear, angular)

    def _look(self) -> None:
        if self._heard_ns >= 0 and self.now_ns - self._heard_ns > self.config.timeout * 1e9:
            self._heard_ns = -1
            self.base.set_velocity((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
