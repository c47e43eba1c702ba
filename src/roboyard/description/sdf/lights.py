"""``<light>``."""

from __future__ import annotations

import math
from typing import Literal

from roboyard.description.fields import boolean_of, colour_of, number_of, vector_of
from roboyard.description.model import Light, Rgba
from roboyard.description.reading import Reading
from roboyard.description.values import shown
from roboyard.description.xml import Node
from roboyard.geometry import SE3

_TYPES: dict[str, Literal["directional", "point", "spot"]] = {
    "directional": "directional",
    "point": "point",
    "spot": "spot",
}


_DEFAULT = Light("light")


def read_light(reading: Reading, node: Node, T_world_light: SE3) -> Light:
    """The lamp at ``node``. Raises DescriptionError for a colour or direction that is none."""
    reading.unknown(
        node,
        {"pose", "diffuse", "specular", "direction", "cast_shadows", "attenuation", "spot", "intensity", "light_on"},
        {"visualize"},
    )
    name = node.get("name").strip() or "light"
    kind = _TYPES.get(node.get("type", "point").strip())
    if kind is None:
        reading.note(node, f"light '{name}' has type {shown(node.get('type'))}: point taken")
        kind = "point"
    direction = vector_of(node, "direction", (0.0, 0.0, -1.0))
    fading, spot = node.child("attenuation"), node.child("spot")
    plain = _DEFAULT.attenuation
    if fading is not None:
        reading.unknown(fading, {"range", "constant", "linear", "quadratic"})
        terms = [
            _positive(reading, fading, tag, value) for tag, value in (("constant", 1), ("linear", 1), ("quadratic", 0))
        ]
        plain = (terms[0], terms[1], terms[2]) if any(terms) else plain
    if spot is not None:
        reading.unknown(spot, {"outer_angle", "falloff"}, {"inner_angle"})
    strength = _positive(reading, node, "intensity", 1.0) if boolean_of(node, "light_on", True) else 0.0
    outer = number_of(spot, "outer_angle", 2.0 * _DEFAULT.cone)
    return Light(
        name=name,
        type=kind,
        T_world_light=T_world_light,
        direction=direction if any(direction) else (0.0, 0.0, -1.0),
        diffuse=_brighter(colour_of(node, "diffuse", _DEFAULT.diffuse), strength),
        specular=_brighter(colour_of(node, "specular", _DEFAULT.specular), strength),
        cast_shadows=boolean_of(node, "cast_shadows", False),
        attenuation=plain,
        reach=_positive(reading, fading, "range", 0.0) or _DEFAULT.reach,
        cone=min(max(outer / 2.0, 0.01), math.pi / 2.0),
        falloff=_positive(reading, spot, "falloff", _DEFAULT.falloff),
    )


def _positive(reading: Reading, node: Node | None, tag: str, default: float) -> float:
    """A number of looks: one below zero is no reason to refuse a world that Gazebo draws."""
    value = number_of(node, tag, default)
    if node is not None and value < 0.0:
        reading.note(node.child(tag) or node, f"<{tag}> of a light is {value:g}: 0 taken")
    return max(value, 0.0)


def _brighter(colour: Rgba, strength: float) -> Rgba:
    red, green, blue, alpha = colour
    return min(red * strength, 1.0), min(green * strength, 1.0), min(blue * strength, 1.0), alpha
