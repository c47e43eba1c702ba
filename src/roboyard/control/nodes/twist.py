"""What all nodes have in common that follow a twist with ramps."""

from __future__ import annotations

import math
from typing import Any

from typing_extensions import TypeVar

from roboyard.bus import Node
from roboyard.config import Config, parameter
from roboyard.control.kinematics import STANDSTILL, PlanarTwist
from roboyard.control.planar_ramps import AT_REST, PlanarRampConfig, twist_of
from roboyard.description.model import CommandMode
from roboyard.errors import ConfigError
from roboyard.hardware.interface import Hardware
from roboyard.messages import msg


class CommandConfig(Config):
    """When a drive acts on its commands."""

    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    timeout: float = parameter(
        0.5, unit="s", low=0.01, high=1e9, runtime=True, doc="Age from which a command counts as standstill."
    )


class TwistNodeConfig(CommandConfig):
    """Configuration of `TwistNode`."""

    ramps: PlanarRampConfig = parameter(factory=PlanarRampConfig, flatten="", doc="Limits of the velocities.")


TwistNodeConfigT = TypeVar("TwistNodeConfigT", bound=TwistNodeConfig, default=TwistNodeConfig, covariant=True)


class TwistNode(Node[TwistNodeConfigT]):
    """Takes the newest twist, brings it through limits and ramps, and hands it to ``move`` at a fixed rate.

    in: cmd_vel_out (geometry_msgs/Twist, body frame)

    A command older than ``timeout`` counts as standstill; one that is not finite is dropped.  Subclasses fill in
    ``configure`` and ``move``.
    """

    state_fields: tuple[str, ...] = ("_wanted", "_heard_ns", "_state")

    def setup(self) -> None:
        """Start the control loop."""
        self._ready = False
        self._wanted = STANDSTILL
        self._heard_ns = -1
        self._state = AT_REST
        self._configure(self.config)
        self._ready = True
        self.subscribe("cmd_vel_out", msg.Twist, self._on_command)
        self.timer(rate=self.config.rate, callback=self._tick)
        self.report_health("ok", "standing")

    def configure(self, config: Any) -> None:
        """Take new parameters; raise ConfigError to refuse."""

    def move(self, twist: PlanarTwist) -> None:
        """Have the robot move so from now on."""

    def on_config_change(self, old: TwistNodeConfig, new: TwistNodeConfig) -> None:
        """Rebuild kinematics and limits; refuses combinations that make no sense."""
        self._configure(new)

    def close(self) -> None:
        """Leave the robot standing."""
        if self._ready:  # False if setup failed
            self.move(STANDSTILL)

    def _configure(self, config: TwistNodeConfig) -> None:
        self.configure(config)
        self._limits = config.ramps.limits()

    def _on_command(self, command: Any) -> None:
        wanted = PlanarTwist(command.linear.x, command.linear.y, command.angular.z)
        if not all(map(math.isfinite, wanted)):
            self.log.error(f"dropped a command that is not finite: {tuple(wanted)}", throttle=5.0)
            return
        if self._heard_ns < 0:
            self.report_health("ok", "driving")
        self._wanted, self._heard_ns = wanted, self.now_ns

    def _tick(self) -> None:
        if self._heard_ns >= 0 and self.now_ns - self._heard_ns > self.config.timeout * 1e9:
            self._wanted, self._heard_ns = STANDSTILL, -1
            self.report_health("ok", "standing: no command")
        self._state = self._limits.step(self._state, self._wanted, 1.0 / self.config.rate)
        self.move(twist_of(self._state))


def check_modes(hardware: Hardware, joints: tuple[str, ...], mode: CommandMode, where: str) -> None:
    """Whether all ``joints`` take commands of ``mode``.

    Raises:
        ConfigError: one does not.
        UnknownNameError: there is no such joint.
    """
    for joint in joints:
        modes = hardware.command_modes(joint)
        if mode not in modes:
            raise ConfigError(
                f"joint '{joint}' takes no {mode} commands",
                location=where,
                valid=f"it takes: {', '.join(modes) or 'none'}",
            )
