"""``<light>``."""

from __future__ import annotations

import math
from typing import Literal

from roboyard.description.fields import child_boolean, child_color, child_number, child_vector
from roboyard.description.model import Light, Rgba
from roboyard.description.reading import ReaderContext
from roboyard.description.values import quote
from roboyard.description.xml import XmlNode
from roboyard.geometry import SE3

_LIGHT_TYPES: dict[str, Literal["directional", "point", "spot"]] = {
    "directional": "directional",
    "point": "point",
    "spot": "spot",
}


_DEFAULT_LIGHT = Light("light")


def read_light(context: ReaderContext, node: XmlNode, T_world_light: SE3) -> Light:
    """The lamp at ``node``. Raises DescriptionError for a colour or direction that is none."""
    context.warn_unknown_children(
        node,
        {"pose", "diffuse", "specular", "direction", "cast_shadows", "attenuation", "spot", "intensity", "light_on"},
        {"visualize"},
    )
    name = node.get("name").strip() or "light"
    kind = _LIGHT_TYPES.get(node.get("type", "point").strip())
    if kind is None:
        context.warn(node, f"light '{name}' has type {quote(node.get('type'))}: point taken")
        kind = "point"
    direction = child_vector(node, "direction", (0.0, 0.0, -1.0))
    attenuation_node, spot_node = node.child("attenuation"), node.child("spot")
    attenuation = _DEFAULT_LIGHT.attenuation
    if attenuation_node is not None:
        context.warn_unknown_children(attenuation_node, {"range", "constant", "linear", "quadratic"})
        terms = [
            _read_non_negative(context, attenuation_node, tag, value)
            for tag, value in (("constant", 1), ("linear", 1), ("quadratic", 0))
        ]
        attenuation = (terms[0], terms[1], terms[2]) if any(terms) else attenuation
    if spot_node is not None:
        context.warn_unknown_children(spot_node, {"outer_angle", "falloff"}, {"inner_angle"})
    intensity = _read_non_negative(context, node, "intensity", 1.0) if child_boolean(node, "light_on", True) else 0.0
    outer_angle = child_number(spot_node, "outer_angle", 2.0 * _DEFAULT_LIGHT.outer_angle)
    return Light(
        name=name,
        type=kind,
        T_world_light=T_world_light,
        direction=direction if any(direction) else (0.0, 0.0, -1.0),
        diffuse=_scale_color(child_color(node, "diffuse", _DEFAULT_LIGHT.diffuse), intensity),
        specular=_scale_color(child_color(node, "specular", _DEFAULT_LIGHT.specular), intensity),
        cast_shadows=child_boolean(node, "cast_shadows", False),
        attenuation=attenuation,
        range=_read_non_negative(context, attenuation_node, "range", 0.0) or _DEFAULT_LIGHT.range,
        outer_angle=min(max(outer_angle / 2.0, 0.01), math.pi / 2.0),
        falloff=_read_non_negative(context, spot_node, "falloff", _DEFAULT_LIGHT.falloff),
    )


def _read_non_negative(context: ReaderContext, node: XmlNode | None, tag: str, default: float) -> float:
    """A number of looks: one below zero is no reason to refuse a world that Gazebo draws."""
    value = child_number(node, tag, default)
    if node is not None and value < 0.0:
        context.warn(node.child(tag) or node, f"<{tag}> of a light is {value:g}: 0 taken")
    return max(value, 0.0)


def _scale_color(color: Rgba, intensity: float) -> Rgba:
    red, green, blue, alpha = color
    return min(red * intensity, 1.0), min(green * intensity, 1.0), min(blue * intensity, 1.0), alpha
