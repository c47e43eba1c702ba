"""Gamepad teleoperation: state of axes and buttons, and the mapping of a gamepad, a YAML file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from roboyard.config import load, parameter
from roboyard.control.teleoperation.keyboard import JointJogCommand
from roboyard.control.wheel_kinematics import PlanarTwist
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.hardware.joystick import JoystickEvent

_MAX_INPUTS = 64
"""Largest number of axes or buttons of a gamepad."""


@dataclass(frozen=True)
class GamepadAxis:
    """An axis of a gamepad, with its number on /joy: forward and left are positive."""

    axis: int = parameter(low=0, high=_MAX_INPUTS - 1, doc="number of the axis")
    scale: float = parameter(
        1.0, low=-10.0, high=10.0, doc="fraction of full speed at full deflection; negative reverses the direction"
    )


@dataclass(frozen=True)
class GamepadButton:
    """Buttons, one of which must be held."""

    buttons: tuple[int, ...] = parameter(low=0, high=_MAX_INPUTS - 1, doc="numbers of the buttons")

    def __post_init__(self) -> None:
        if not self.buttons:
            raise ConfigError("no button", location="buttons", valid="at least one number")


class GamepadState:
    """Axes and buttons of a gamepad, from its events.

    Attributes:
        axes: Values in [-1, 1]; left and forward positive, as in ROS.
        buttons: 0 or 1.
    """

    def __init__(self) -> None:
        self.axes: list[float] = []
        self.buttons: list[int] = []

    def update(self, events: Iterable[JoystickEvent]) -> None:
        """Update the state with events; events of too large numbers are ignored."""
        for event in events:
            if event.number >= _MAX_INPUTS:
                continue
            if event.kind == "axis":
                self.axes += [0.0] * (event.number + 1 - len(self.axes))
                self.axes[event.number] = min(1.0, max(-1.0, -event.value / 32767.0)) + 0.0
            else:
                self.buttons += [0] * (event.number + 1 - len(self.buttons))
                self.buttons[event.number] = int(event.value != 0)

    def is_pressed(self, button: GamepadButton) -> bool:
        """Return whether one of these buttons is held."""
        return any(number < len(self.buttons) and self.buttons[number] for number in button.buttons)

    def axis_value(self, axis: GamepadAxis | None, deadzone: float) -> float:
        """Return the deflection of an axis in [-1, 1] times its scale; it rises from 0 at the edge of the dead zone."""
        if axis is None or axis.axis >= len(self.axes):
            return 0.0
        value = self.axes[axis.axis]
        magnitude = max(0.0, abs(value) - deadzone) / (1.0 - deadzone)
        return axis.scale * (magnitude if value > 0.0 else -magnitude)


@dataclass(frozen=True)
class GamepadJointMapping:
    """Mapping of axes and buttons of a gamepad to the motion of an arm."""

    move: GamepadAxis = parameter(doc="axis that moves the chosen joint")
    enable: GamepadButton = parameter(doc="buttons that enable the motion of joints")
    next: GamepadButton = parameter(doc="buttons that choose the next joint")
    previous: GamepadButton = parameter(doc="buttons that choose the previous joint")


class GamepadJointTeleop:
    """Gamepad teleoperation of an arm.

    Args:
        mapping: Mapping of axes and buttons.
        speed: Speed at full deflection [rad/s or m/s].
        deadzone: Deflection below which the axis counts as released.
    """

    def __init__(self, mapping: GamepadJointMapping, speed: float = 0.2, deadzone: float = 0.1) -> None:
        self.joint = 1
        self._mapping, self._speed, self._deadzone = mapping, speed, deadzone
        self._was_pressed = (False, False)

    def read_command(self, gamepad: GamepadState) -> JointJogCommand | None:
        """Return the present command; None unless the arm's enable button is pressed."""
        mapping = self._mapping
        is_pressed = gamepad.is_pressed(mapping.next), gamepad.is_pressed(mapping.previous)
        if is_pressed[0] and not self._was_pressed[0]:
            self.joint = min(self.joint + 1, 9)
        if is_pressed[1] and not self._was_pressed[1]:
            self.joint = max(self.joint - 1, 1)
        self._was_pressed = is_pressed
        if not gamepad.is_pressed(mapping.enable):
            return None
        return JointJogCommand(self.joint, speed=self._speed * gamepad.axis_value(mapping.move, self._deadzone))


_MAPPING_FOLDER = Path(__file__).with_name("maps")


@dataclass(frozen=True)
class GamepadMapping:
    """Mapping of axes and buttons of a gamepad to the motion of a robot."""

    forward: GamepadAxis = parameter(doc="axis of the forward speed")
    angular: GamepadAxis = parameter(doc="axis of the angular speed")
    enable: GamepadButton = parameter(doc="buttons that enable the motion")
    summary: str = parameter("", doc="description of the gamepad")
    lateral: GamepadAxis | None = parameter(None, doc="axis of the lateral speed, for bases that move sideways")
    turbo: GamepadButton | None = parameter(None, doc="buttons that increase the speed")
    turbo_factor: float = parameter(2.0, low=1.0, high=10.0, doc="factor on the speed while turbo is held")
    deadzone: float = parameter(0.1, low=0.0, high=0.9, doc="deflection below which an axis counts as released")
    joints: GamepadJointMapping | None = parameter(None, doc="mapping for an arm")

    def twist(self, gamepad: GamepadState, speed: float, angular_speed: float) -> PlanarTwist | None:
        """Return the commanded twist at full speeds ``speed`` [m/s] and ``angular_speed`` [rad/s].

        None unless an enable button is held.
        """
        if not gamepad.is_pressed(self.enable):
            return None
        if self.turbo is not None and gamepad.is_pressed(self.turbo):
            speed, angular_speed = speed * self.turbo_factor, angular_speed * self.turbo_factor
        return PlanarTwist(
            speed * gamepad.axis_value(self.forward, self.deadzone),
            speed * gamepad.axis_value(self.lateral, self.deadzone),
            angular_speed * gamepad.axis_value(self.angular, self.deadzone),
        )


def mapping_names() -> tuple[str, ...]:
    """Return the names of the built-in gamepad mappings."""
    return tuple(sorted(path.stem for path in _MAPPING_FOLDER.glob("*.yaml")))


def load_mapping(name: str) -> GamepadMapping:
    """Load the mapping of this name, or from this file.

    Raises:
        UnknownNameError: there is no mapping of this name.
        InputError: there is no such file.
        ConfigError: the file contains no mapping.
    """
    path = _MAPPING_FOLDER / f"{name}.yaml"
    if "/" in name or name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise InputError(
                f"there is no file {path}", location="--gamepad-map", valid=f"{', '.join(mapping_names())}, or a file"
            )
    elif not path.is_file():
        raise UnknownNameError(
            f"no gamepad map '{name}'", location="--gamepad-map", valid=f"{', '.join(mapping_names())}, or a file"
        )
    return load(GamepadMapping, path)
