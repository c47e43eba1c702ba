"""Base of the nodes that drive wheels: velocity commands go through limits and ramps at a fixed rate."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

from roboyard.config import Config, parameter
from roboyard.control.kinematics import STANDSTILL, PlanarTwist
from roboyard.control.nodes.velocity import DriveCommandNode
from roboyard.control.planar_ramps import AT_REST, PlanarLimits, twist_of
from roboyard.control.ramps import RampConfig
from roboyard.description.model import CommandMode
from roboyard.errors import ConfigError
from roboyard.hardware.interface import Hardware


class VelocityControllerConfig(Config):
    """Configuration of `VelocityControllerNode`."""

    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    timeout: float = parameter(
        0.5, unit="s", low=0.01, high=1e9, runtime=True, doc="Age from which a command counts as standstill."
    )
    ramps: RampConfig = parameter(factory=RampConfig, flatten="", doc="Limits of the velocities.")


VelocityControllerConfigT = TypeVar(
    "VelocityControllerConfigT", bound=VelocityControllerConfig, default=VelocityControllerConfig, covariant=True
)


class VelocityControllerNode(DriveCommandNode[VelocityControllerConfigT]):
    """Base of the nodes that drive wheels: brings the newest command through limits and ramps at a fixed rate.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)

    A command older than ``timeout`` counts as standstill, so a silent sender means braking. Subclasses fill in
    ``configure`` and ``move``.
    """

    state_fields: tuple[str, ...] = (*DriveCommandNode.state_fields, "_target", "_state")

    def setup(self) -> None:
        """Check the robot and start the control loop."""
        self._is_ready = False
        self._target = STANDSTILL
        self._state = AT_REST
        self._configure(self.config)
        self._is_ready = True
        self.listen()
        self.timer(rate=self.config.rate, callback=self._tick)
        self.report_health("ok", "standing")

    def configure(self, config: Any) -> None:
        """Take new parameters; raise ConfigError to refuse."""

    def move(self, twist: PlanarTwist) -> None:
        """Have the robot move so from now on."""

    def on_config_change(self, old: VelocityControllerConfig, new: VelocityControllerConfig) -> None:
        """Rebuild kinematics and limits; refuses combinations that make no sense."""
        self._configure(new)

    def on_twist(self, *velocities: float) -> None:
        """Follow the command from the next step on."""
        if self._command_ns < 0:
            self.report_health("ok", "driving")
        self._target = PlanarTwist(*velocities)

    def close(self) -> None:
        """Leave the robot standing."""
        if self._is_ready:  # False if setup failed
            self.move(STANDSTILL)

    def _configure(self, config: VelocityControllerConfig) -> None:
        self.configure(config)
        ramps = config.ramps
        self._limits = PlanarLimits(ramps.forward(), ramps.sideways(), ramps.turning())

    def _tick(self) -> None:
        if self.is_command_old(self.config.timeout):
            self._target = STANDSTILL
            self.report_health("ok", "standing: no command")
        self._state = self._limits.step(self._state, self._target, 1.0 / self.config.rate)
        self.move(twist_of(self._state))


def check_modes(hardware: Hardware, joints: tuple[str, ...], mode: CommandMode, location: str) -> None:
    """Check that all joints take commands of a mode.

    Raises:
        ConfigError: One does not.
        UnknownNameError: There is no such joint.
    """
    for joint in joints:
        modes = hardware.command_modes(joint)
        if mode not in modes:
            raise ConfigError(
                f"joint '{joint}' takes no {mode} commands",
                location=location,
                valid=f"it takes: {', '.join(modes) or 'none'}",
            )
