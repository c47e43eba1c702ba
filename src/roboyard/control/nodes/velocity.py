"""The velocity node: a body that takes its velocity as a command."""

from __future__ import annotations

from typing import Any

from roboyard.bus import resource
from roboyard.config import Config, parameter
from roboyard.control.nodes.twist import DriveCommandNode
from roboyard.hardware.interface import VelocityBase


class VelocityNodeConfig(Config):
    """Configuration of `VelocityNode`."""

    timeout: float = parameter(
        0.0, unit="s", low=0.0, high=1e6, runtime=True, doc="Age from which a command counts as standstill; 0: never."
    )
    initial_linear: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), unit="m/s", doc="Velocity at the start.")
    initial_angular: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), unit="rad/s", doc="Angular velocity at the start."
    )


class VelocityNode(DriveCommandNode[VelocityNodeConfig]):
    """Hands twists to the base as they come.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: velocities to the base

    As Gazebo's VelocityControl, it has no ramps, and holds the last command unless ``timeout`` is set.
    """

    base: VelocityBase = resource(VelocityBase)

    def setup(self) -> None:
        """Set the velocity of the start, and listen."""
        if any(self.config.initial_linear) or any(self.config.initial_angular):
            (vx, vy, vz), (wx, wy, wz) = self.config.initial_linear, self.config.initial_angular
            self.base.set_velocity((vx, vy, vz), (wx, wy, wz))
        self.listen()
        if self.config.timeout > 0.0:
            self.timer(period=min(self.config.timeout, 0.1), callback=self._check_age)

    def close(self) -> None:
        """Let the body go."""
        self.base.release()

    def velocities(self, command: Any) -> tuple[float, ...]:
        """Return all six velocities of a command."""
        linear, angular = command.linear, command.angular
        return linear.x, linear.y, linear.z, angular.x, angular.y, angular.z

    def on_twist(self, *velocities: float) -> None:
        """Hand the velocities to the base."""
        vx, vy, vz, wx, wy, wz = velocities
        self.base.set_velocity((vx, vy, vz), (wx, wy, wz))

    def _check_age(self) -> None:
        if self.is_command_old(self.config.timeout):
            self.base.set_velocity((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
