"""Gamepads as a hand on the stick: which axis drives, which button must be held; maps are YAML files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roboyard.config import load, parameter
from roboyard.control.kinematics import PlanarTwist
from roboyard.control.teleoperation.joints import PadJoints
from roboyard.control.teleoperation.pad import GamepadAxis, GamepadButton, PadState
from roboyard.errors import InputError, UnknownNameError

_MAPS = Path(__file__).with_name("maps")


@dataclass(frozen=True)
class PadMap:
    """What the axes and buttons of a gamepad mean."""

    forward: GamepadAxis = parameter(doc="drives")
    turn: GamepadAxis = parameter(doc="turns")
    deadman: GamepadButton = parameter(doc="nothing moves unless one of them is held")
    summary: str = parameter("", doc="which gamepad")
    sideways: GamepadAxis | None = parameter(None, doc="for bases that can; left is positive")
    turbo: GamepadButton | None = parameter(None, doc="held too: faster")
    turbo_factor: float = parameter(2.0, low=1.0, high=10.0, doc="how much faster")
    deadzone: float = parameter(0.1, low=0.0, high=0.9, doc="of an axis, in which it counts as let go")
    joints: PadJoints | None = parameter(None, doc="of an arm")

    def twist(self, pad: PadState, speed: float, turn: float) -> PlanarTwist | None:
        """The wanted motion at full speeds ``speed`` [m/s] and ``turn`` [rad/s]; None unless the deadman is held."""
        if not pad.is_held(self.deadman):
            return None
        if self.turbo is not None and pad.is_held(self.turbo):
            speed, turn = speed * self.turbo_factor, turn * self.turbo_factor
        return PlanarTwist(
            speed * pad.share(self.forward, self.deadzone),
            speed * pad.share(self.sideways, self.deadzone),
            turn * pad.share(self.turn, self.deadzone),
        )


def map_names() -> tuple[str, ...]:
    """Gamepads for which a map comes along."""
    return tuple(sorted(path.stem for path in _MAPS.glob("*.yaml")))


def find_map(name: str) -> PadMap:
    """The map of this name, or in this file.

    Raises:
        UnknownNameError: no map of this name.
        InputError: no such file.
        ConfigError: it is no map.
    """
    path = _MAPS / f"{name}.yaml"
    if "/" in name or name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise InputError(
                f"there is no file {path}", location="--gamepad-map", valid=f"{', '.join(map_names())}, or a file"
            )
    elif not path.is_file():
        raise UnknownNameError(
            f"no gamepad map '{name}'", location="--gamepad-map", valid=f"{', '.join(map_names())}, or a file"
        )
    return load(PadMap, path)
