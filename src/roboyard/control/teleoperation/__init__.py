"""Teleoperation: keys of a terminal and gamepads become commanded twists and joint motions."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.control.teleoperation.gamepad import (
        GamepadAxis,
        GamepadButton,
        GamepadJointMapping,
        GamepadJointTeleop,
        GamepadMapping,
        GamepadState,
        load_mapping,
        mapping_names,
    )
    from roboyard.control.teleoperation.keyboard import (
        JointJogCommand,
        KeyboardJointTeleop,
        KeyboardTeleop,
        KeyDecoder,
        KeyEvent,
    )

__all__ = [
    "GamepadAxis",
    "GamepadButton",
    "GamepadJointMapping",
    "GamepadJointTeleop",
    "GamepadMapping",
    "GamepadState",
    "JointJogCommand",
    "KeyDecoder",
    "KeyEvent",
    "KeyboardJointTeleop",
    "KeyboardTeleop",
    "load_mapping",
    "mapping_names",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "gamepad": (
            "GamepadAxis",
            "GamepadButton",
            "GamepadJointMapping",
            "GamepadJointTeleop",
            "GamepadMapping",
            "GamepadState",
            "load_mapping",
            "mapping_names",
        ),
        "keyboard": ("JointJogCommand", "KeyDecoder", "KeyEvent", "KeyboardJointTeleop", "KeyboardTeleop"),
    },
)
