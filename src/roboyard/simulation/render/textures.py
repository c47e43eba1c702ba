"""Pictures on surfaces for the ray caster: where a triangle lies in its picture, and the colour that is there.

Each picture is kept in ever smaller copies (a MIP map); a ray takes the one whose pixels are about as large as its own.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import F32, I32
from roboyard.simulation.render.ray_scene import RayScene
from roboyard.simulation.render.tone import linear

_LEVELS = 10


class Textures:
    """Colours of textured surfaces.

    Args:
        model: Compiled model.
        scene: Its triangles.

    Attributes:
        used: Whether any triangle of the scene has a picture.
    """

    def __init__(self, model: mujoco.MjModel, scene: RayScene) -> None:
        of_material = np.asarray(model.mat_texid).reshape(-1, int(mujoco.mjtTextureRole.mjNTEXROLE))
        role = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
        material = np.asarray(model.geom_matid)
        of_geom = np.full(model.ngeom, -1, np.int32)
        has = material >= 0
        of_geom[has] = of_material[material[has], role]
        flat = np.asarray(model.tex_type) == mujoco.mjtTexture.mjTEXTURE_2D
        of_geom[of_geom >= 0] = np.where(flat[of_geom[of_geom >= 0]], of_geom[of_geom >= 0], -1)
        self._texture: I32 = np.where(np.isnan(scene.uv[:, 0, 0]), -1, of_geom[scene.geoms]).astype(np.int32)
        self.used = bool((self._texture >= 0).any())
        if not self.used:
            return
        self._uv = np.nan_to_num(scene.uv)
        numbers = np.unique(self._texture[self._texture >= 0])
        self._pixels, self._sizes, self._starts = _pyramids(model, numbers)
        self._slot = np.searchsorted(numbers, np.maximum(self._texture, 0))
        self._density = self._pixels_a_metre(scene)
        self._linear = linear(np.arange(256) / 255.0)

    def _pixels_a_metre(self, scene: RayScene) -> F32:
        """Of each triangle, how many pixels of its picture lie on a metre."""
        e, f = scene.corners[:, 1] - scene.corners[:, 0], scene.corners[:, 2] - scene.corners[:, 0]
        area = np.linalg.norm(np.cross(e, f), axis=1)
        a, b = self._uv[:, 1] - self._uv[:, 0], self._uv[:, 2] - self._uv[:, 0]
        height, width = self._sizes[self._slot, 0].T
        covered = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) * width * height
        return np.asarray(np.sqrt(covered / np.maximum(area, 1e-12)), dtype=np.float32)

    def colours(self, hits: I32, inside: F32, distances: F32, pixel: float) -> tuple[NDArray[np.intp], F32]:
        """Rows of those ``hits`` that have a picture, and its colour there (k, 3), linear.

        Args:
            hits: (n,) triangle of each ray; negative for none.
            inside: (n, 2) where in it.
            distances: (n,) [m].
            pixel: Width of a ray at a metre's distance [m].
        """
        rows = np.flatnonzero((hits >= 0) & (self._texture[np.maximum(hits, 0)] >= 0))
        triangle = hits[rows]
        u, v = inside[rows, :1], inside[rows, 1:2]
        corner = self._uv[triangle]
        place = np.maximum(1.0 - u - v, 0.0) * corner[:, 0] + u * corner[:, 1] + v * corner[:, 2]
        wide = self._density[triangle] * distances[rows] * pixel
        level = np.clip(np.round(np.log2(np.maximum(wide, 1.0))), 0, _LEVELS - 1).astype(np.intp)
        slot = self._slot[triangle]
        height, width = self._sizes[slot, level].T
        place = place - np.floor(place)
        column = np.minimum((place[:, 0] * width).astype(np.intp), width - 1)
        row = np.minimum((place[:, 1] * height).astype(np.intp), height - 1)
        return rows, self._linear[self._pixels[self._starts[slot, level] + row * width + column]]


def _pyramids(
    model: mujoco.MjModel, numbers: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.intp], NDArray[np.intp]]:
    """Pixels (k, 3) of all levels of the textures, their heights and widths (t, levels, 2), and where each begins."""
    sizes = np.zeros((len(numbers), _LEVELS, 2), np.intp)
    starts = np.zeros((len(numbers), _LEVELS), np.intp)
    parts: list[NDArray[np.uint8]] = []
    total = 0
    for index, number in enumerate(numbers.tolist()):
        height, width = int(model.tex_height[number]), int(model.tex_width[number])
        channels, start = int(model.tex_nchannel[number]), int(model.tex_adr[number])
        data = np.asarray(model.tex_data[start : start + height * width * channels]).reshape(height, width, channels)
        picture = data[:, :, :3] if channels >= 3 else np.repeat(data[:, :, :1], 3, axis=2)
        for level in range(_LEVELS):
            sizes[index, level] = picture.shape[:2]
            starts[index, level] = total
            parts.append(np.ascontiguousarray(picture).reshape(-1, 3))
            total += len(parts[-1])
            picture = _halved(picture)
    return np.concatenate(parts), sizes, starts


def _halved(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    for axis in (0, 1):
        if picture.shape[axis] > 1:
            even = 2 * (picture.shape[axis] // 2)
            first = np.take(picture, range(0, even, 2), axis).astype(np.uint16)
            picture = ((first + np.take(picture, range(1, even, 2), axis)) // 2).astype(np.uint8)
    return picture
