"""Moving devices (conveyor belts, doors, turntables): the parameters in a model's plugin, and the set-point's ramp.

```xml
<plugin filename="roboyard-furniture" name="roboyard::Conveyor">
  <link>belt</link> <direction>1 0 0</direction> <speed>0.3</speed> <acceleration>2</acceleration>
</plugin>
<plugin filename="roboyard-furniture" name="roboyard::Door">
  <joint>hinge</joint> <closed>0</closed> <open>1.57</open> <speed>0.8</speed>
</plugin>
<plugin filename="roboyard-furniture" name="roboyard::Turntable">
  <joint>axle</joint> <speed>0.5</speed> <acceleration>1</acceleration>
</plugin>
```
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from roboyard.description.model import Model, Plugin, XmlElement
from roboyard.errors import DescriptionError

DeviceKind = Literal["conveyor", "door", "turntable"]
_DEVICE_KINDS: dict[str, DeviceKind] = {
    "roboyard::Conveyor": "conveyor", "roboyard::Door": "door", "roboyard::Turntable": "turntable",
}  # fmt: skip
PLUGIN_FILENAME = "roboyard-furniture"
MAX_COMMAND = 100.0
"""Highest speed and acceleration of a device [m/s or rad/s, m/s² or rad/s²]."""


@dataclass(frozen=True, slots=True)
class MovingDevice:
    """Parameters of a moving device.

    Attributes:
        kind: A conveyor's command is the belt's speed [m/s], a turntable's its angular velocity [rad/s], a door's its
            opening as a fraction from 0 to 1.
        element: Name of the belt's link, or of the joint.
        direction: Unit vector in which the belt carries, in the link's frame.
        on_command: The command that "on" or "open" means.
        max_command_rate: Highest rate of change of the set-point [unit of the command per second].
        closed_position: Joint position of the closed door [rad or m].
        open_position: Joint position of the open door [rad or m].
    """

    kind: DeviceKind
    element: str
    direction: tuple[float, float, float] = (1.0, 0.0, 0.0)
    on_command: float = 1.0
    max_command_rate: float = 1.0
    closed_position: float = 0.0
    open_position: float = 1.0

    @property
    def min_command(self) -> float:
        """The smallest command."""
        return 0.0 if self.kind == "door" else -MAX_COMMAND

    @property
    def max_command(self) -> float:
        """The largest command."""
        return 1.0 if self.kind == "door" else MAX_COMMAND

    def clamp(self, command: float) -> float:
        """Return the command limited to its bounds; 0 if it is not finite."""
        return min(max(command, self.min_command), self.max_command) if math.isfinite(command) else 0.0

    def ramp(self, setpoint: float, command: float, seconds: float) -> float:
        """Return the set-point ``seconds`` [s] after it was ``setpoint``, moved towards ``command``."""
        step = self.max_command_rate * seconds
        return setpoint + min(max(command - setpoint, -step), step)

    def position(self, opening: float) -> float:
        """Return the joint position of a door with this opening [rad or m]."""
        return self.closed_position + opening * (self.open_position - self.closed_position)

    def opening(self, position: float) -> float:
        """Return the opening of a door with this joint position."""
        return (position - self.closed_position) / (self.open_position - self.closed_position)


def read_moving_device(model: Model) -> MovingDevice | None:
    """Read the moving device that ``model`` describes; None if it has no such plugin.

    Raises:
        DescriptionError: The model has several such plugins, or the plugin names an unknown device, link or joint, or
            has an invalid number; the error has the location.
    """
    plugins = [plugin for plugin in model.plugins if plugin.filename == PLUGIN_FILENAME]
    if not plugins:
        return None
    if len(plugins) > 1:
        raise DescriptionError(f"model {model.name} has {len(plugins)} plugins {PLUGIN_FILENAME}", valid="one plugin")
    return _read_plugin(plugins[0], model)


def _read_plugin(plugin: Plugin, model: Model) -> MovingDevice:
    element = plugin.element
    location = f"{model.source or model.name}:{element.line}" if element.line else f"model {model.name}"
    kind = _DEVICE_KINDS.get(plugin.name)
    if kind is None:
        raise DescriptionError(
            f"unknown device {plugin.name!r}", location=location, valid=f"one of: {', '.join(_DEVICE_KINDS)}"
        )
    tag = "link" if kind == "conveyor" else "joint"
    element_names = [item.name for item in (model.links if kind == "conveyor" else model.joints)]
    element_name = _child_text(element, tag)
    if element_name not in element_names:
        names = ", ".join(element_names)
        raise DescriptionError(
            f"<{tag}> of {plugin.name} is {element_name!r}",
            location=location,
            valid=f"one of: {names}" if names else f"the model has no {tag}s",
        )
    speed = _read_number(element, "speed", 0.5, location, low=1e-6)
    if kind == "door":
        closed_position, open_position = (
            _read_number(element, "closed", 0.0, location),
            _read_number(element, "open", 1.0, location),
        )
        if closed_position == open_position:
            raise DescriptionError(
                f"<closed> and <open> are both {closed_position:g}", location=location, valid="two different positions"
            )
        return MovingDevice(
            kind,
            element_name,
            max_command_rate=speed / abs(open_position - closed_position),
            closed_position=closed_position,
            open_position=open_position,
        )
    acceleration = _read_number(element, "acceleration", 1.0, location, low=1e-6)
    return MovingDevice(
        kind, element_name, _read_direction(element, location), on_command=speed, max_command_rate=acceleration
    )


def _child_text(element: XmlElement, tag: str) -> str:
    child = element.find(tag)
    return child.text.strip() if child is not None else ""


def _read_number(element: XmlElement, tag: str, default: float, location: str, low: float = -1e3) -> float:
    text = _child_text(element, tag)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    high = MAX_COMMAND if low > 0.0 else 1e3
    if not low <= value <= high:
        raise DescriptionError(
            f"<{tag}> is {text[:40]!r}", location=location, valid=f"a number from {low:g} to {high:g}"
        )
    return value


def _read_direction(element: XmlElement, location: str) -> tuple[float, float, float]:
    text = _child_text(element, "direction") or "1 0 0"
    try:
        x, y, z = map(float, text.split())
        length = math.sqrt(x * x + y * y + z * z)
    except ValueError:
        length = math.nan
    if not 1e-6 < length < 1e6:
        raise DescriptionError(f"<direction> is {text[:40]!r}", location=location, valid="three numbers, not all zero")
    return x / length, y / length, z / length
