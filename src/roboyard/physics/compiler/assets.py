"""Assets of a MuJoCo model: meshes, height fields, materials, textures, lights and sky."""

from __future__ import annotations

import math
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.appearance import MAX_TEXTURE_SIDE, Pixels
from roboyard.description.meshes.convex import (
    ConvexApproximation,
    approximate_by_convex_pieces,
    convex_hull_arrays,
    is_flat,
)
from roboyard.description.meshes.files import MeshArrays, load_mesh, mesh_modified_ns
from roboyard.description.model import Heightmap, Light, Material, Mesh, Rgba, World
from roboyard.errors import DescriptionError
from roboyard.geometry.arrays import Vec3

if TYPE_CHECKING:
    from PIL.Image import Image


_IMAGE_ERRORS = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    struct.error,
    zlib.error,
    MemoryError,
    OverflowError,
    TypeError,
)


@contextmanager
def open_image(file: Path, description: str, max_pixels: int) -> Iterator[Image]:
    """Open the image in a file; errors of Pillow inside the context become a DescriptionError.

    Args:
        file: Path of the file.
        description: Use of the image, such as "texture" or "heightmap", for the message.
        max_pixels: Maximum number of pixels; a file of a few hundred bytes can claim to be an image of a billion.

    Raises:
        DescriptionError: no picture, a broken one, or too large.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # max_pixels is the stricter bound
            with Image.open(file) as image:
                width, height = image.size
                if width * height > max_pixels:
                    raise DescriptionError(
                        f"{description} has {width} × {height} pixels",
                        location=str(file),
                        valid=f"at most {max_pixels} in all",
                    )
                yield image
    except (*_IMAGE_ERRORS, Image.DecompressionBombError) as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise DescriptionError(f"{description} cannot be read: {reason}", location=str(file)) from None


TextureCoordinates = NDArray[np.float64]  # (n, 2): texture coordinates of each vertex, v upwards

PLACEHOLDER_SIZE = 0.1
"""Edge of the marked box that replaces a mesh without a readable file [m]."""
MAX_HEIGHT_SAMPLES = 4_200_000
"""Largest number of samples of a height field: slightly more than 2049 × 2049, the largest of Gazebo."""
SHEET_THICKNESS = 1e-3
"""Thickness given to flat meshes [m]: a flat mesh has no convex hull."""


@lru_cache(maxsize=32)
def _approximate_mesh(mesh: Mesh, modified_ns: int) -> ConvexApproximation:
    """Decompose a mesh into convex pieces; cached, because adding or removing a model compiles the world again.

    Raises:
        DescriptionError: the mesh cannot be read or decomposed.
    """
    return approximate_by_convex_pieces(*load_mesh(mesh))


class MeshStore:
    """Adds mesh assets to one MuJoCo specification, each once, and returns their names."""

    def __init__(self, spec: mujoco.MjSpec) -> None:
        self._spec = spec
        self._names: dict[tuple[object, ...], str] = {}
        self._convex_pieces: dict[tuple[object, ...], tuple[list[str], ConvexApproximation]] = {}

    def add_mesh(self, mesh: Mesh) -> str:
        """Add a mesh unchanged (MuJoCo collides with its convex hull)."""
        return self._add_once(self._mesh_key(mesh, "whole"), lambda: load_mesh(mesh))

    def add_convex_pieces(self, mesh: Mesh) -> tuple[list[str], ConvexApproximation]:
        """Add convex pieces that approximate a concave mesh; returns their names and the approximation."""
        key = self._mesh_key(mesh, "pieces")
        if key not in self._convex_pieces:
            approximation = _approximate_mesh(mesh, mesh_modified_ns(mesh))
            names = [
                self._add_once((key, i), partial(_return_mesh, piece)) for i, piece in enumerate(approximation.pieces)
            ]
            self._convex_pieces[key] = names, approximation
        return self._convex_pieces[key]

    def add_visual_mesh(self, key: object, mesh: MeshArrays, uv: TextureCoordinates | None) -> str:
        """Add a mesh for rendering alone, with texture coordinates of its vertices."""
        vertices, faces = mesh
        if len(vertices) < 4:  # MuJoCo refuses a mesh of fewer vertices
            extra_vertices = (
                np.repeat(vertices[:1], 4 - len(vertices), axis=0)
                + SHEET_THICKNESS * np.eye(4)[: 4 - len(vertices), :3]
            )
            vertices = np.concatenate([vertices, extra_vertices])
            uv = None if uv is None else np.concatenate([uv, np.repeat(uv[:1], len(extra_vertices), axis=0)])
        return self._add_once(("drawn", key), lambda: (vertices, faces), uv)

    def add_flat_mesh(self, mesh: Mesh) -> str:
        """Add a flat mesh, extruded by `SHEET_THICKNESS`."""
        vertices, _ = load_mesh(mesh)
        normal = np.linalg.svd(vertices - vertices.mean(axis=0), full_matrices=False)[2][2]
        return self.add_convex_points(
            self._mesh_key(mesh, "sheet"), np.concatenate([vertices, vertices - SHEET_THICKNESS * normal])
        )

    def is_flat(self, mesh: Mesh) -> bool:
        """Whether all vertices of the mesh lie in one plane."""
        return is_flat(load_mesh(mesh)[0])

    def is_single_triangle(self, mesh: Mesh) -> bool:
        """Whether the mesh is a single triangle, which MuJoCo refuses."""
        return len(load_mesh(mesh)[0]) < 4

    def add_convex_points(self, key: object, points: NDArray[np.float64]) -> str:
        """Add the convex hull of some points."""
        return self._add_once(("points", key), lambda: convex_hull_arrays(points))

    def add_height_field(self, heightmap: Heightmap) -> tuple[str, float]:
        """Add a height field from a gray image, black 0 and white ``size[2]`` high; returns name and base [m].

        Raises:
            DescriptionError: the image is missing or unreadable.
        """
        heights = _read_heights(heightmap)
        min_height, height_range = float(heights.min()), float(heights.max() - heights.min())
        key = ("heightmap", str(heightmap.file), heightmap.size, heightmap.inline)
        if key not in self._names:
            name = f"terrain{len(self._names)}"
            height_field = self._spec.add_hfield(name=name, nrow=heights.shape[0], ncol=heights.shape[1])
            # MuJoCo normalizes the data to 0…1 and scales them by the third size.
            height_field.size = [
                heightmap.size[0] / 2,
                heightmap.size[1] / 2,
                max(height_range * heightmap.size[2], 1e-6),
                0.1,
            ]
            height_field.userdata = heights.ravel().tolist()
            self._names[key] = name
        return self._names[key], min_height * heightmap.size[2]

    def _mesh_key(self, mesh: Mesh, use: str) -> tuple[object, ...]:
        return (use, str(mesh.file), mesh.scale, mesh.submesh, mesh.center_submesh, mesh.inline)

    def _add_once(
        self, key: tuple[object, ...], make_mesh: Callable[[], MeshArrays], uv: TextureCoordinates | None = None
    ) -> str:
        if key not in self._names:
            vertices, faces = make_mesh()
            name = f"mesh{len(self._names)}"
            asset = self._spec.add_mesh(
                name=name,
                uservert=np.ascontiguousarray(vertices, np.float32).ravel(),
                userface=np.ascontiguousarray(faces, np.int32).ravel(),
            )
            if uv is not None:  # MuJoCo's images start at the top
                image_coordinates = np.stack([uv[:, 0], 1.0 - uv[:, 1]], axis=1)
                asset.usertexcoord = np.ascontiguousarray(image_coordinates, np.float32).ravel()
            # Masses come from the description; "shell" spares open surfaces the volume check.
            asset.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
            self._names[key] = name
        return self._names[key]


def _return_mesh(mesh: MeshArrays) -> MeshArrays:
    return mesh


def _read_heights(heightmap: Heightmap) -> NDArray[np.float32]:
    """Read heights 0…1, the first row at the smallest y."""
    if heightmap.inline is not None:
        heights = np.frombuffer(heightmap.inline.values, np.float32)
        return heights.reshape(-1, heightmap.inline.columns)
    if heightmap.file is None:
        raise DescriptionError(f"heightmap {heightmap.uri} was not found", location=heightmap.uri)
    with open_image(heightmap.file, "heightmap", MAX_HEIGHT_SAMPLES) as image:
        is_16_bit = image.mode.startswith("I")  # 16 bits
        gray = np.asarray(image.convert("I") if is_16_bit else image.convert("L"), np.float32)
    if min(gray.shape) < 2:
        raise DescriptionError("heightmap needs at least 2 x 2 pixels", location=str(heightmap.file))
    return np.asarray(gray[::-1] / (65535.0 if is_16_bit else 255.0), np.float32)


NEAR_PLANE = 0.02
"""Near clip plane of cameras [m]; MuJoCo's default grows with the world."""

MAX_TEXELS = 8192 * 8192
"""Largest number of pixels of a texture."""

_LIGHT_TYPES = {
    "directional": mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
    "point": mujoco.mjtLightType.mjLIGHT_POINT,
    "spot": mujoco.mjtLightType.mjLIGHT_SPOT,
}

DEFAULT_LIGHT = Light("sun", direction=(0.3, 0.2, -0.9))


def add_lights_and_sky(spec: mujoco.MjSpec, world: World) -> None:
    """Add the lights, the ambient light and the sky of ``world``."""
    for light in world.lights or (DEFAULT_LIGHT,):
        rotation = light.T_world_light.rotation_matrix()
        spec.worldbody.add_light(
            name=f"light::{light.name}",
            type=_LIGHT_TYPES[light.type],
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


def set_clip_planes(model: mujoco.MjModel) -> None:
    """Set clip planes that do not depend on the size of the world."""
    model.vis.map.znear = NEAR_PLANE / float(model.stat.extent)
    model.vis.map.zfar = max(50.0, 300.0 / float(model.stat.extent))


def emission_fraction(material: Material) -> float:
    """Fraction of its color that a surface emits without any light, 0 … 1."""
    return min(max(material.emissive), 1.0)


def displayed_color(material: Material) -> Rgba:
    """Color of a surface, mixed with its emitted color, because a MuJoCo material has one color only."""
    red, green, blue, alpha = material.rgba
    reflected_fraction, (r, g, b) = 1.0 - emission_fraction(material), material.emissive
    return (
        min(reflected_fraction * red + r, 1.0),
        min(reflected_fraction * green + g, 1.0),
        min(reflected_fraction * blue + b, 1.0),
        alpha,
    )


class MaterialStore:
    """Adds materials and textures to one MuJoCo specification, each once, and returns their names."""

    def __init__(self, spec: mujoco.MjSpec, warnings: list[str]) -> None:
        self._spec, self._warnings = spec, warnings
        self._names: dict[tuple[Rgba, Path | int | None, Vec3], str] = {}
        self._pixels: dict[Path | int, Pixels | None] = {}
        self._textures: dict[Path | int, str] = {}

    def add_material(self, material: Material, pixels: Pixels | None = None) -> str:
        """Add a material and return its name; without a readable texture the material has its plain color.

        Args:
            material: Colors, and the file of the texture.
            pixels: Texture (h, w, 3) that replaces the file; it must outlive this store.
        """
        source = material.texture if pixels is None else id(pixels)
        if pixels is not None:
            self._pixels[id(pixels)] = pixels
        key = (material.rgba, source, material.emissive)
        if key not in self._names:
            name = f"material{len(self._names)}"
            mujoco_material = self._spec.add_material(
                name=name, rgba=displayed_color(material), specular=0.3, shininess=0.4
            )
            mujoco_material.emission = emission_fraction(material)
            texture = self._add_texture(source)
            if texture:
                mujoco_material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = texture
                mujoco_material.texrepeat = [1.0, 1.0]
            self._names[key] = name
        return self._names[key]

    def _add_texture(self, source: Path | int | None) -> str:
        """Add a texture once and return its name; empty if there is none."""
        if source is None:
            return ""
        if source not in self._textures:
            pixels = self._pixels[source] if isinstance(source, int) else self._read_texture(source)
            name = f"texture{len(self._textures)}" if pixels is not None else ""
            if pixels is not None:
                texture = self._spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_2D)
                texture.height, texture.width, texture.nchannel = pixels.shape
                texture.data = pixels.tobytes()
            self._textures[source] = name
        return self._textures[source]

    def _read_texture(self, file: Path) -> Pixels | None:
        try:
            with open_image(file, "texture", MAX_TEXELS) as image:
                image.draft("RGB", (2 * MAX_TEXTURE_SIDE, 2 * MAX_TEXTURE_SIDE))
                rgb_image = image.convert("RGB")
                rgb_image.thumbnail((MAX_TEXTURE_SIDE, MAX_TEXTURE_SIDE))
                return np.asarray(rgb_image, np.uint8)
        except DescriptionError as error:
            self._warnings.append(f"{error}; its plain color is used")
            return None
