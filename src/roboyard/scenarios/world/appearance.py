"""Appearance of a world: light, and floor textures that are rendered once and kept in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from roboyard.compute.kernel_folders import cache_root
from roboyard.compute.random import make_generator
from roboyard.config import RegisteredName, ValueConstraint, atomic_path, parameter
from roboyard.config.registry import Registry
from roboyard.description import Model, World
from roboyard.description.model import Light, Link
from roboyard.errors import ConfigError

FLOOR_VISUAL = "floor"
"""Name of the visuals that ``appearance.floor`` textures."""
_LightRange = Annotated[tuple[float, float], ValueConstraint(low=0.0, high=100.0)]

_IMAGE_SIZE = 1024
"""Edge length of the images [px]."""
_RGB = NDArray[np.float64]
TextureRenderer = Callable[[np.random.Generator], _RGB | None]
"""Function that renders (h, w, 3) colors from 0 to 255 of a floor, or None for a floor without a texture."""


def render_floor_texture(texture: str) -> NDArray[np.uint8] | None:
    """Return the (h, w, 3) image of a floor, always the same; None for a floor without a texture.

    Raises:
        UnknownNameError: There is no such texture.
    """
    image = FLOOR_TEXTURES[texture](np.random.default_rng([0xF1, len(texture)]))
    return None if image is None else np.clip(np.round(image), 0, 255).astype(np.uint8)


def floor_texture_file(texture: str) -> Path | None:
    """Return the image as a PNG file in the cache; None for a floor without a texture."""
    pixels = render_floor_texture(texture)
    if pixels is None:
        return None
    from PIL import Image

    folder = cache_root().parent / "surfaces"
    path = folder / f"{texture}-{hashlib.sha256(pixels.tobytes()).hexdigest()[:16]}.png"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            Image.fromarray(pixels).save(temporary, "PNG")
    return path


def _smooth_noise(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.float64]:
    """Return noise of ``rows`` x ``columns`` waves over the image, from -1 to 1."""
    from scipy.ndimage import zoom

    grid = rng.uniform(-1.0, 1.0, (rows + 1, columns + 1))
    enlarged = zoom(grid, (_IMAGE_SIZE / (rows + 1) + 1e-9, _IMAGE_SIZE / (columns + 1) + 1e-9), order=1)
    return np.asarray(enlarged[:_IMAGE_SIZE, :_IMAGE_SIZE], dtype=np.float64)


def _wood(rng: np.random.Generator) -> _RGB:
    """Render eight boards with the grain along them."""
    plank = np.arange(_IMAGE_SIZE) // (_IMAGE_SIZE // 8)
    tone = rng.uniform(-14.0, 14.0, 8)[plank][:, None]
    fibers = 12.0 * _smooth_noise(rng, 256, 6) + 7.0 * _smooth_noise(rng, 64, 3)
    seam = np.where(np.arange(_IMAGE_SIZE) % (_IMAGE_SIZE // 8) < 2, -45.0, 0.0)[:, None]
    return np.array([166.0, 126.0, 84.0]) + (tone + fibers + seam)[..., None]


def _terrazzo(rng: np.random.Generator) -> _RGB:
    """Render light and dark chips of 1 to 6 mm in gray."""
    image = np.full((_IMAGE_SIZE, _IMAGE_SIZE, 3), 138.0) + 4.0 * _smooth_noise(rng, 128, 128)[..., None]
    rows, columns = np.mgrid[0:_IMAGE_SIZE, 0:_IMAGE_SIZE]
    for _ in range(2500):
        x, y = (int(value) for value in rng.integers(0, _IMAGE_SIZE, 2))
        size = float(rng.uniform(1.0, 4.0))
        part = np.s_[max(y - 5, 0) : y + 6, max(x - 5, 0) : x + 6]
        inside = np.hypot((columns[part] - x) * rng.uniform(0.6, 1.4), rows[part] - y) < size
        image[part][inside] = rng.uniform(70.0, 205.0) + rng.uniform(-8.0, 8.0, 3)
    return image


def _tiles(rng: np.random.Generator) -> _RGB:
    """Render square tiles, 10 to a side, with light joints."""
    tone = np.kron(rng.uniform(-10.0, 10.0, (11, 11)), np.ones((100, 100)))[:_IMAGE_SIZE, :_IMAGE_SIZE]
    tile_offset = np.arange(_IMAGE_SIZE) % 100
    joint = (tile_offset < 3)[:, None] | (tile_offset < 3)[None, :]
    tiles: _RGB = np.where(joint, 196.0, 118.0 + tone)[..., None] * np.array([1.0, 0.98, 0.94])
    return tiles


def _carpet(rng: np.random.Generator) -> _RGB:
    """Render uneven short pile in blue gray."""
    pile = rng.normal(0.0, 11.0, (_IMAGE_SIZE, _IMAGE_SIZE)) + 8.0 * _smooth_noise(rng, 16, 16)
    return np.array([92.0, 104.0, 124.0]) + pile[..., None]


def _plain(_: np.random.Generator) -> None:
    """No texture: the floor keeps its own color."""


FLOOR_TEXTURES: Registry[TextureRenderer] = Registry(
    "floor texture",
    group="roboyard.floor_textures",
    built_in={"plain": _plain, "wood": _wood, "terrazzo": _terrazzo, "tiles": _tiles, "carpet": _carpet},
)
"""Renderers of floor textures by the name that scenarios give as `appearance.floor`."""
FloorTexture = Annotated[str, RegisteredName(FLOOR_TEXTURES)]


@dataclass(frozen=True)
class AppearanceConfig:
    """Light and floor of a world."""

    light_scale: float | _LightRange = parameter(
        1.0, low=0.0, high=100.0, doc="factor on the world's light; [from, to]: drawn by the seed"
    )
    floor: FloorTexture | tuple[FloorTexture, ...] | None = parameter(
        None, doc="texture of the visual `floor`; a list: one of them is drawn by the seed"
    )


def apply_appearance(world: World, appearance: AppearanceConfig, seed: int) -> World:
    """Return the world with the light and the floor texture that the configuration gives or that the seed draws."""
    rng = make_generator(seed, "looks")
    light = (
        appearance.light_scale
        if isinstance(appearance.light_scale, float | int)
        else float(rng.uniform(*appearance.light_scale))
    )
    if light != 1.0:
        ambient = _scale_color(world.ambient, light)
        world = replace(world, lights=tuple(_scale_light(source, light) for source in world.lights), ambient=ambient)
    if appearance.floor is None:
        return world
    choice = (appearance.floor,) if isinstance(appearance.floor, str) else appearance.floor
    if not choice:
        raise ConfigError("an empty list", location="appearance.floor", valid="at least one floor")
    texture = floor_texture_file(choice[int(rng.integers(len(choice)))])
    models = tuple(replace(placed, model=_with_floor_texture(placed.model, texture)) for placed in world.models)
    if not any(
        visual.name == FLOOR_VISUAL for placed in models for link in placed.model.links for visual in link.visuals
    ):
        raise ConfigError(
            f"world {world.name} has no visual {FLOOR_VISUAL!r}",
            location="appearance.floor",
            valid="e.g. world station",
        )
    return replace(world, models=models)


def _with_floor_texture(model: Model, texture: Path | None) -> Model:
    if texture is None or not any(visual.name == FLOOR_VISUAL for link in model.links for visual in link.visuals):
        return model
    return replace(model, links=tuple(_with_link_floor_texture(link, texture) for link in model.links))


def _with_link_floor_texture(link: Link, texture: Path) -> Link:
    visuals = tuple(
        replace(one, material=replace(one.material, rgba=(1.0, 1.0, 1.0, 1.0), texture=texture))
        if one.name == FLOOR_VISUAL
        else one
        for one in link.visuals
    )
    return replace(link, visuals=visuals)


def _scale_light(source: Light, factor: float) -> Light:
    return replace(source, diffuse=_scale_color(source.diffuse, factor), specular=_scale_color(source.specular, factor))


def _scale_color(color: tuple[float, float, float, float], factor: float) -> tuple[float, float, float, float]:
    r, g, b, a = color
    return min(r * factor, 1.0), min(g * factor, 1.0), min(b * factor, 1.0), a
