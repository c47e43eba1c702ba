"""Axes and buttons of gamepads, and where they stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roboyard.config import parameter
from roboyard.errors import ConfigError
from roboyard.hardware.joystick import JoystickEvent

_MOST = 64
"""Axes or buttons of one gamepad."""


@dataclass(frozen=True)
class GamepadAxis:
    """An axis, as /joy numbers it: forward and left are positive."""

    axis: int = parameter(low=0, high=_MOST - 1, doc="its number")
    scale: float = parameter(1.0, low=-10.0, high=10.0, doc="part of full speed at its end; negative turns it round")


@dataclass(frozen=True)
class GamepadButton:
    """Buttons of which one must be held."""

    any: tuple[int, ...] = parameter(low=0, high=_MOST - 1, doc="their numbers")

    def __post_init__(self) -> None:
        if not self.any:
            raise ConfigError("there is no button", location="any", valid="at least one number")


class PadState:
    """Axes and buttons of a gamepad, as its events tell.

    Attributes:
        axes: Values in [-1, 1]; left and forward positive, as in ROS.
        buttons: 0 or 1.
    """

    def __init__(self) -> None:
        self.axes: list[float] = []
        self.buttons: list[int] = []

    def take(self, events: Iterable[JoystickEvent]) -> None:
        """Follow events; numbers beyond any gamepad's are passed over."""
        for event in events:
            if event.number >= _MOST:
                continue
            if event.kind == "axis":
                self.axes += [0.0] * (event.number + 1 - len(self.axes))
                self.axes[event.number] = min(1.0, max(-1.0, -event.value / 32767.0)) + 0.0
            else:
                self.buttons += [0] * (event.number + 1 - len(self.buttons))
                self.buttons[event.number] = int(event.value != 0)

    def is_held(self, button: GamepadButton) -> bool:
        """Whether one of these buttons is held."""
        return any(number < len(self.buttons) and self.buttons[number] for number in button.any)

    def share(self, axis: GamepadAxis | None, deadzone: float) -> float:
        """Where an axis stands, in [-1, 1] times its scale; beyond the deadzone it rises from zero: nothing jumps."""
        if axis is None or axis.axis >= len(self.axes):
            return 0.0
        value = self.axes[axis.axis]
        beyond = max(0.0, abs(value) - deadzone) / (1.0 - deadzone)
        return axis.scale * (beyond if value > 0.0 else -beyond)
