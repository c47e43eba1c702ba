"""Driving by hand: held keys and gamepads become wanted motions."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.control.teleoperation.joints import JointWish, KeyJoints, PadArm, PadJoints
    from roboyard.control.teleoperation.keys import KeyDecoder, KeyEvent, KeyHand
    from roboyard.control.teleoperation.pad import GamepadAxis, GamepadButton, PadState
    from roboyard.control.teleoperation.pad_maps import PadMap, find_map, map_names

__all__ = [
    "GamepadAxis",
    "GamepadButton",
    "JointWish",
    "KeyDecoder",
    "KeyEvent",
    "KeyHand",
    "KeyJoints",
    "PadArm",
    "PadJoints",
    "PadMap",
    "PadState",
    "find_map",
    "map_names",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "joints": ("JointWish", "KeyJoints", "PadArm", "PadJoints"),
    "keys": ("KeyDecoder", "KeyEvent", "KeyHand"),
    "pad": ("GamepadAxis", "GamepadButton", "PadState"),
    "pad_maps": ("PadMap", "find_map", "map_names"),
})  # fmt: skip
