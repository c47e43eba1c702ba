"""Driving by hand: held keys and gamepads become wanted motions."""

from roboyard.control.teleoperation.keys import KeyDecoder, KeyEvent, KeyHand
from roboyard.control.teleoperation.pad import Axis, Button, PadMap, PadState, find_map, map_names

__all__ = ["Axis", "Button", "KeyDecoder", "KeyEvent", "KeyHand", "PadMap", "PadState", "find_map", "map_names"]
