"""Furniture that moves: what a model's plugin says about its belt, door or turntable, and the ramp its set-point takes.

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

Kind = Literal["conveyor", "door", "turntable"]
_KINDS: dict[str, Kind] = {
    "roboyard::Conveyor": "conveyor", "roboyard::Door": "door", "roboyard::Turntable": "turntable",
}  # fmt: skip
FILENAME = "roboyard-furniture"
FASTEST = 100.0
"""Bound of speeds and accelerations [m/s or rad/s, m/s² or rad/s²]."""


@dataclass(frozen=True, slots=True)
class Furniture:
    """What moves, and how.

    Attributes:
        kind: A conveyor's command is the belt's speed [m/s], a turntable's its rate [rad/s], a door's how far it is
            open, from 0 to 1.
        part: Name of the belt's link, or of the joint.
        direction: In which the belt carries, in its link's frame; length 1.
        on: The command that "on" or "open" means.
        rate: Bound of the command's change [1/s of its unit].
        closed: The closed door's joint position [rad or m].
        opened: The open one's.
    """

    kind: Kind
    part: str
    direction: tuple[float, float, float] = (1.0, 0.0, 0.0)
    on: float = 1.0
    rate: float = 1.0
    closed: float = 0.0
    opened: float = 1.0

    @property
    def low(self) -> float:
        """The least command."""
        return 0.0 if self.kind == "door" else -FASTEST

    @property
    def high(self) -> float:
        """The largest command."""
        return 1.0 if self.kind == "door" else FASTEST

    def clipped(self, command: float) -> float:
        """The command within its bounds; one that is no number is 0."""
        return min(max(command, self.low), self.high) if math.isfinite(command) else 0.0

    def ramped(self, present: float, command: float, seconds: float) -> float:
        """The set-point ``seconds`` after it was ``present``, on its way to ``command``."""
        step = self.rate * seconds
        return present + min(max(command - present, -step), step)

    def position(self, opening: float) -> float:
        """Joint position of a door that is so far open [rad or m]."""
        return self.closed + opening * (self.opened - self.closed)

    def opening(self, position: float) -> float:
        """How far a door with this joint position is open."""
        return (position - self.closed) / (self.opened - self.closed)


def furniture_of(model: Model) -> Furniture | None:
    """What of ``model`` moves by itself; None if nothing does.

    Raises:
        DescriptionError: its plugin names a link or joint that is not there, or a number is none; says where.
    """
    plugins = [plugin for plugin in model.plugins if plugin.filename == FILENAME]
    if not plugins:
        return None
    if len(plugins) > 1:
        raise DescriptionError(f"model {model.name} has {len(plugins)} plugins {FILENAME}", valid="one")
    return _read(plugins[0], model)


def _read(plugin: Plugin, model: Model) -> Furniture:
    element = plugin.element
    where = f"{model.source or model.name}:{element.line}" if element.line else f"model {model.name}"
    kind = _KINDS.get(plugin.name)
    if kind is None:
        raise DescriptionError(f"furniture {plugin.name!r}", location=where, valid=f"one of: {', '.join(_KINDS)}")
    tag = "link" if kind == "conveyor" else "joint"
    parts = [item.name for item in (model.links if kind == "conveyor" else model.joints)]
    part = _text(element, tag)
    if part not in parts:
        raise DescriptionError(
            f"<{tag}> of {plugin.name} is {part!r}",
            location=where,
            valid=f"one of: {', '.join(parts) or 'none is there'}",
        )
    speed = _number(element, "speed", 0.5, where, low=1e-6)
    if kind == "door":
        closed, opened = _number(element, "closed", 0.0, where), _number(element, "open", 1.0, where)
        if closed == opened:
            raise DescriptionError(f"<closed> and <open> are both {closed:g}", location=where, valid="two positions")
        return Furniture(kind, part, rate=speed / abs(opened - closed), closed=closed, opened=opened)
    rate = _number(element, "acceleration", 1.0, where, low=1e-6)
    return Furniture(kind, part, _direction(element, where), on=speed, rate=rate)


def _text(element: XmlElement, tag: str) -> str:
    child = element.find(tag)
    return child.text.strip() if child is not None else ""


def _number(element: XmlElement, tag: str, default: float, where: str, low: float = -1e3) -> float:
    text = _text(element, tag)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    high = FASTEST if low > 0.0 else 1e3
    if not low <= value <= high:
        raise DescriptionError(f"<{tag}> is {text[:40]!r}", location=where, valid=f"a number from {low:g} to {high:g}")
    return value


def _direction(element: XmlElement, where: str) -> tuple[float, float, float]:
    text = _text(element, "direction") or "1 0 0"
    try:
        x, y, z = map(float, text.split())
        length = math.sqrt(x * x + y * y + z * z)
    except ValueError:
        length = math.nan
    if not 1e-6 < length < 1e6:
        raise DescriptionError(f"<direction> is {text[:40]!r}", location=where, valid="three numbers, not all zero")
    return x / length, y / length, z / length
