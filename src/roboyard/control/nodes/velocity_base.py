"""Base of all drive nodes, and the node that passes velocity commands to a body without ramps."""

from __future__ import annotations

import math
from typing import Any

from typing_extensions import TypeVar

from roboyard.bus import resource
from roboyard.config import Config, parameter
from roboyard.control import PlanarTwist
from roboyard.control.drive_config import DriveLimits
from roboyard.control.nodes.drive_parameters import DriveParameterNode
from roboyard.hardware.interface import VelocityBase
from roboyard.messages import msg

DriveNodeConfigT = TypeVar("DriveNodeConfigT", bound=Config, default=Config, covariant=True)


class DriveCommandNode(DriveParameterNode[DriveNodeConfigT]):
    """Base of all nodes that drive a robot.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)

    It drops a command that is not finite. Subclasses call `listen` in ``setup``, and fill in ``on_twist`` and
    ``velocities``.
    """

    drive_limits: DriveLimits | None = resource(DriveLimits, optional=True)

    state_fields: tuple[str, ...] = ("_command_ns",)

    def listen(self) -> None:
        """Subscribe to commands."""
        self._command_ns = -1  # of the newest command; -1: none, or too old
        self.subscribe("cmd_vel_out", msg.Twist, self._on_command)

    def velocities(self, command: Any) -> tuple[float, ...]:
        """Return the velocities of a geometry_msgs/Twist that the drive follows."""
        return command.linear.x, command.linear.y, command.angular.z

    def on_twist(self, *velocities: float) -> None:
        """Take the velocities of a new command."""

    def is_command_old(self, timeout: float) -> bool:
        """Return whether the newest command is older than a time [s]; once, until the next command comes."""
        if self._command_ns < 0 or self.now_ns - self._command_ns <= timeout * 1e9:
            return False
        self._command_ns = -1
        return True

    def _on_command(self, command: Any) -> None:
        velocities = self.velocities(command)
        if not all(map(math.isfinite, velocities)):
            self.log.error(f"dropped a command that is not finite: {velocities}", throttle=5.0)
            return
        self.on_twist(*velocities)
        self._command_ns = self.now_ns


class VelocityBaseNodeConfig(Config):
    """Configuration of `VelocityBaseNode`."""

    timeout: float = parameter(
        0.0, unit="s", low=0.0, high=1e6, runtime=True, doc="Age from which a command counts as standstill; 0: never."
    )
    initial_linear: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), unit="m/s", doc="Velocity at the start.")
    initial_angular: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), unit="rad/s", doc="Angular velocity at the start."
    )


class VelocityBaseNode(DriveCommandNode[VelocityBaseNodeConfig]):
    """Passes twists on to the base without ramps.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)   out: velocities to the base

    Like Gazebo's VelocityControl it holds the last command unless ``timeout`` is set.
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
        """Release the base."""
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


def planar_twist_from_msg(message: Any) -> PlanarTwist:
    """Return the planar components of a geometry_msgs/Twist."""
    return PlanarTwist(float(message.linear.x), float(message.linear.y), float(message.angular.z))


def planar_twist_to_msg(twist: PlanarTwist) -> Any:
    """Return a geometry_msgs/Twist."""
    return msg.Twist(linear=msg.Vector3(x=twist.vx, y=twist.vy), angular=msg.Vector3(z=twist.wz))
