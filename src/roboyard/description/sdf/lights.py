"""``<light>``."""

from __future__ import annotations

from typing import Literal

from roboyard.description.fields import boolean_of, colour_of, vector_of
from roboyard.description.model import Light
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
        {"pose", "diffuse", "specular", "direction", "cast_shadows", "attenuation", "spot", "intensity"},
        {"visualize", "light_on"},
    )
    name = node.get("name").strip() or "light"
    kind = _TYPES.get(node.get("type", "point").strip())
    if kind is None:
        reading.note(node, f"light '{name}' has type {shown(node.get('type'))}: point taken")
        kind = "point"
    direction = vector_of(node, "direction", (0.0, 0.0, -1.0))
    return Light(
        name=name,
        type=kind,
        T_world_light=T_world_light,
        direction=direction if any(direction) else (0.0, 0.0, -1.0),
        diffuse=colour_of(node, "diffuse", _DEFAULT.diffuse),
        specular=colour_of(node, "specular", _DEFAULT.specular),
        cast_shadows=boolean_of(node, "cast_shadows", False),
    )
