"""Lamps that hang in the world; those on bodies are left out."""

from __future__ import annotations

from typing import Literal

from roboyard.description.mjcf.compiled import CompiledMjcf
from roboyard.description.model import Light
from roboyard.description.naming import make_unique_name
from roboyard.description.reading import ReaderContext
from roboyard.geometry import SE3

_LIGHT_TYPES: tuple[Literal["directional", "point", "spot"], ...] = ("spot", "directional", "point")  # mjtLightType


def read_lights(context: ReaderContext, compiled: CompiledMjcf) -> tuple[Light, ...]:
    """The lamps of the world itself."""
    m = compiled.model
    lights: list[Light] = []
    used_names: dict[str, int] = {}
    for number in range(m.nlight):
        name = make_unique_name(m.light(number).name or "light", used_names)
        kind = int(m.light_type[number])
        if int(m.light_bodyid[number]) != 0 or kind >= len(_LIGHT_TYPES) or not m.light_active[number]:
            context.warn(compiled.root, f"the lamp '{name}' is left out: it moves, is switched off, or of unknown kind")
            continue
        dx, dy, dz = (float(value) for value in m.light_dir[number])
        r, g, b = (float(value) for value in m.light_diffuse[number])
        sr, sg, sb = (float(value) for value in m.light_specular[number])
        lights.append(
            Light(
                name,
                _LIGHT_TYPES[kind],
                SE3(translation=m.light_pos[number]),
                (dx, dy, dz),
                (r, g, b, 1.0),
                (sr, sg, sb, 1.0),
                bool(m.light_castshadow[number]),
            )
        )
    return tuple(lights)
