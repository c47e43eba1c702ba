"""Gamepads as a hand on the stick: which axis drives, which button must be held; maps are YAML files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from roboyard.config import field, load
from roboyard.control.kinematics import PlanarTwist
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.hardware.joystick import JoystickEvent

_MAPS = Path(__file__).with_name("maps")
_MOST = 64
"""Axes or buttons of one gamepad."""


@dataclass(frozen=True)
class Axis:
    """An axis, as /joy numbers it: forward and left are positive."""

    axis: int = field(low=0, high=_MOST - 1, doc="its number")
    scale: float = field(1.0, low=-10.0, high=10.0, doc="part of full speed at its end; negative turns it round")


@dataclass(frozen=True)
class Button:
    """Buttons of which one must be held."""

    any: tuple[int, ...] = field(low=0, high=_MOST - 1, doc="their numbers")

    def __post_init__(self) -> None:
        if not self.any:
            raise ConfigError("there is no button", where="any", valid="at least one number")


@dataclass(frozen=True)
class PadMap:
    """What the axes and buttons of a gamepad mean."""

    forward: Axis = field(doc="drives")
    turn: Axis = field(doc="turns")
    deadman: Button = field(doc="nothing moves unless one of them is held")
    about: str = field("", doc="which gamepad")
    sideways: Axis | None = field(None, doc="for bases that can; left is positive")
    turbo: Button | None = field(None, doc="held too: faster")
    turbo_factor: float = field(2.0, low=1.0, high=10.0, doc="how much faster")
    deadzone: float = field(0.1, low=0.0, high=0.9, doc="of an axis, in which it counts as let go")


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

    def is_held(self, button: Button) -> bool:
        """Whether one of these buttons is held."""
        return any(number < len(self.buttons) and self.buttons[number] for number in button.any)

    def twist(self, means: PadMap, speed: float, turn: float) -> PlanarTwist | None:
        """The wanted motion at full speeds ``speed`` [m/s] and ``turn`` [rad/s]; None unless the deadman is held."""
        if not self.is_held(means.deadman):
            return None
        if means.turbo is not None and self.is_held(means.turbo):
            speed, turn = speed * means.turbo_factor, turn * means.turbo_factor
        return PlanarTwist(
            speed * self._share(means.forward, means.deadzone),
            speed * self._share(means.sideways, means.deadzone),
            turn * self._share(means.turn, means.deadzone),
        )

    def _share(self, axis: Axis | None, deadzone: float) -> float:
        """Beyond the deadzone it rises from zero, so that nothing jumps."""
        if axis is None or axis.axis >= len(self.axes):
            return 0.0
        value = self.axes[axis.axis]
        beyond = max(0.0, abs(value) - deadzone) / (1.0 - deadzone)
        return axis.scale * (beyond if value > 0.0 else -beyond)


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
            raise InputError(f"there is no file {path}", where="--map", valid=f"{', '.join(map_names())}, or a file")
    elif not path.is_file():
        raise UnknownNameError(f"no gamepad map '{name}'", where="--map", valid=f"{', '.join(map_names())}, or a file")
    return load(PadMap, path)
