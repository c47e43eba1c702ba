"""Lamps, sky and materials: what only rendering looks at."""

from __future__ import annotations

import math
from pathlib import Path

import mujoco
import numpy as np

from roboyard.description.meshes.appearance import MAX_TEXTURE_SIDE, Pixels
from roboyard.description.model import Light, Material, Rgba, World
from roboyard.errors import DescriptionError
from roboyard.geometry.arrays import Vec3
from roboyard.simulation.assembly.pictures import opened

NEAR_PLANE = 0.02
"""Nearest distance that cameras see [m]; the engine's own default grows with the world."""

MAX_TEXELS = 8192 * 8192
"""Pixels of a texture."""

_KINDS = {
    "directional": mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
    "point": mujoco.mjtLightType.mjLIGHT_POINT,
    "spot": mujoco.mjtLightType.mjLIGHT_SPOT,
}

DEFAULT_LIGHT = Light("sun", direction=(0.3, 0.2, -0.9))


def add_scenery(spec: mujoco.MjSpec, world: World) -> None:
    """Lamps, ambient light and sky of ``world``."""
    for light in world.lights or (DEFAULT_LIGHT,):
        rotation = light.T_world_light.rotation_matrix()
        spec.worldbody.add_light(
            name=f"light::{light.name}",
            type=_KINDS[light.type],
            pos=light.T_world_light.translation,
            dir=rotation @ np.asarray(light.direction, float),
            diffuse=light.diffuse[:3],
            specular=light.specular[:3],
            ambient=[0.0, 0.0, 0.0],
            castshadow=light.cast_shadows,
            attenuation=list(light.attenuation),
            cutoff=math.degrees(light.outer_angle),
            exponent=min(light.falloff, 128.0),
            **({"range": light.range} if math.isfinite(light.range) else {}),
        )
    headlight = spec.visual.headlight
    headlight.ambient = world.ambient[:3]
    headlight.diffuse = [0.2, 0.2, 0.2]
    headlight.specular = [0.0, 0.0, 0.0]
    headlight.active = 1
    horizon = np.asarray(world.background[:3], float)
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=0.6 * horizon + 0.1,
        rgb2=horizon,
        width=128,
        height=128,
    )


def set_view(model: mujoco.MjModel) -> None:
    """Planes of sight that do not depend on how large the world is."""
    model.vis.map.znear = NEAR_PLANE / float(model.stat.extent)
    model.vis.map.zfar = max(50.0, 300.0 / float(model.stat.extent))


def glow(material: Material) -> float:
    """Share of its colour that a surface gives off without any lamp, 0 … 1."""
    return min(max(material.emissive), 1.0)


def seen_colour(material: Material) -> Rgba:
    """Colour of a surface; one that glows takes on the colour it glows in, since the engine's have only one."""
    red, green, blue, alpha = material.rgba
    dim, (r, g, b) = 1.0 - glow(material), material.emissive
    return min(dim * red + r, 1.0), min(dim * green + g, 1.0), min(dim * blue + b, 1.0), alpha


class MaterialStore:
    """Adds each look once."""

    def __init__(self, spec: mujoco.MjSpec, notes: list[str]) -> None:
        self._spec, self._notes = spec, notes
        self._names: dict[tuple[Rgba, Path | int | None, Vec3], str] = {}
        self._pixels: dict[Path | int, Pixels | None] = {}
        self._textures: dict[Path | int, str] = {}

    def name(self, material: Material, pixels: Pixels | None = None) -> str:
        """The engine material for ``material``; a texture that cannot be read leaves its plain colour.

        Args:
            material: Its colours, and the file of its picture.
            pixels: A picture (h, w, 3) that is no file, instead; it must outlive this store.
        """
        source = material.texture if pixels is None else id(pixels)
        if pixels is not None:
            self._pixels[id(pixels)] = pixels
        key = (material.rgba, source, material.emissive)
        if key not in self._names:
            name = f"material{len(self._names)}"
            made = self._spec.add_material(name=name, rgba=seen_colour(material), specular=0.3, shininess=0.4)
            made.emission = glow(material)
            texture = self._texture(source)
            if texture:
                made.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = texture
                made.texrepeat = [1.0, 1.0]
            self._names[key] = name
        return self._names[key]

    def _texture(self, source: Path | int | None) -> str:
        """The engine's texture of a picture, added once; empty where there is none."""
        if source is None:
            return ""
        if source not in self._textures:
            pixels = self._pixels[source] if isinstance(source, int) else self._read(source)
            name = f"texture{len(self._textures)}" if pixels is not None else ""
            if pixels is not None:
                texture = self._spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_2D)
                texture.height, texture.width, texture.nchannel = pixels.shape
                texture.data = pixels.tobytes()
            self._textures[source] = name
        return self._textures[source]

    def _read(self, file: Path) -> Pixels | None:
        try:
            with opened(file, "texture", MAX_TEXELS) as picture:
                picture.draft("RGB", (2 * MAX_TEXTURE_SIDE, 2 * MAX_TEXTURE_SIDE))
                small = picture.convert("RGB")
                small.thumbnail((MAX_TEXTURE_SIDE, MAX_TEXTURE_SIDE))
                return np.asarray(small, np.uint8)
        except DescriptionError as error:
            self._notes.append(f"{error}; plain colour taken")
            return None
