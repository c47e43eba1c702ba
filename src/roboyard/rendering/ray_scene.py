"""A compiled MuJoCo model for ray casting: one rigid piece of triangles for each moving body, with textures.

Each texture is stored as a MIP map. A ray samples the level whose pixels are about as large as its own.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import F32, I32
from roboyard.rendering.embree import EmbreeScene
from roboyard.rendering.geom_triangles import VISIBLE_GROUPS, GeomTriangles, body_triangles, geom_colors
from roboyard.rendering.lighting import srgb_to_linear


class RayScene:
    """The triangles of a model, posed by the state of the model.

    Args:
        model: Compiled model.
        opaque: Take the opaque geoms, or the transparent ones (0 < alpha < 1).
        groups: Visible geom groups.
        tessellation_factor: Factor on the number of edges of curved shapes that images for people need.

    Attributes:
        bodies: (p,) the body of each piece; 0 is the static piece, the first one if it exists.
        corners: (t, 3, 3) corners of all triangles, in the frame of their piece [m].
        normals: (t, 3, 3) float32 unit normals at the corners, same frame.
        uv: (t, 3, 2) float32 texture coordinates of the corners, v downwards; NaN: unknown.
        geoms: (t,) geom of each triangle.
        piece_of: (t,) piece of each triangle.
        is_half_rectangle: (t,) True: half of a rectangle; the other half continues it beyond its longest edge.
        centers: (p, 3) middle of each piece in its own frame [m].
        radii: (p,) distance of its farthest corner from there [m].
        rotations: (p, 3, 3) float32 world from piece, as of the last ``update``.
        translations: (p, 3) float32 [m].
        embree_scene: The same triangles in Embree.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        opaque: bool = True,
        groups: tuple[int, ...] = VISIBLE_GROUPS,
        tessellation_factor: int = 1,
    ) -> None:
        alpha = geom_colors(model)[:, 3]
        is_visible = (alpha >= 0.999) if opaque else (alpha > 0.01) & (alpha < 0.999)
        by_body = body_triangles(model, is_visible & np.isin(model.geom_group, groups), tessellation_factor)
        parts = {b: [(g, t) for g, t in part if len(t.corners)] for b, part in by_body.items()}
        parts = {body: part for body, part in parts.items() if part}
        joined = {
            body: normalize_corner_order(GeomTriangles.join([t for _, t in part])) for body, part in parts.items()
        }
        counts = [len(t.corners) for t in joined.values()]
        all_triangles = GeomTriangles.join(list(joined.values()))
        self.bodies = list(joined)
        self.corners = all_triangles.corners
        self.normals: F32 = all_triangles.normals.astype(np.float32)
        self.uv: F32 = all_triangles.uv_or_nan().astype(np.float32)
        geom_counts = [(geom, len(t.corners)) for part in parts.values() for geom, t in part]
        self.geoms: I32 = np.repeat([g for g, _ in geom_counts], [n for _, n in geom_counts]).astype(np.int32)
        self.piece_of: I32 = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
        rectangle_types = (mujoco.mjtGeom.mjGEOM_BOX.value, mujoco.mjtGeom.mjGEOM_PLANE.value)
        self.is_half_rectangle = np.isin(np.asarray(model.geom_type)[self.geoms], rectangle_types)
        bounds = [(t.corners.min((0, 1)), t.corners.max((0, 1))) for t in joined.values()]
        self.centers = np.array([(low + high) / 2 for low, high in bounds]).reshape(-1, 3)
        self.radii = np.array([_bounding_radius(t, c) for t, c in zip(joined.values(), self.centers, strict=True)])
        self.rotations: F32 = np.repeat(np.eye(3, dtype=np.float32)[None], len(counts), 0)
        self.translations: F32 = np.zeros((len(counts), 3), np.float32)
        self.embree_scene = EmbreeScene([t.corners for t in joined.values()])

    def update(self, data: mujoco.MjData) -> None:
        """Take the bodies' poses from ``data`` (after ``mj_kinematics`` or ``mj_forward``)."""
        if not self.bodies:
            return
        self.rotations[:] = data.xmat[self.bodies].reshape(-1, 3, 3)
        self.translations[:] = data.xpos[self.bodies]
        self.embree_scene.set_poses(self.rotations, self.translations)


def _bounding_radius(triangles: GeomTriangles, center: NDArray[np.float64]) -> float:
    return float(np.sqrt(((triangles.corners - center) ** 2).sum(2).max()))


def normalize_corner_order(triangles: GeomTriangles) -> GeomTriangles:
    """Turn each triangle's corners so that its longest edge lies opposite the first one."""
    corners = triangles.corners
    opposite = np.stack(
        [np.linalg.norm(corners[:, (k + 2) % 3] - corners[:, (k + 1) % 3], axis=1) for k in range(3)], axis=1
    )
    order = (opposite.argmax(1)[:, None] + np.arange(3)) % 3
    rows = np.arange(len(corners))[:, None]
    uv = None if triangles.uv is None else triangles.uv[rows, order]
    return GeomTriangles(corners[rows, order], triangles.normals[rows, order], uv)


_N_LEVELS = 10


class TextureSampler:
    """Colors of textured surfaces.

    Args:
        model: Compiled model.
        scene: Its triangles.

    Attributes:
        has_textures: Whether any triangle of the scene has a texture.
    """

    def __init__(self, model: mujoco.MjModel, scene: RayScene) -> None:
        texture_of_material = np.asarray(model.mat_texid).reshape(-1, int(mujoco.mjtTextureRole.mjNTEXROLE))
        role = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
        material = np.asarray(model.geom_matid)
        texture_of_geom = np.full(model.ngeom, -1, np.int32)
        has_material = material >= 0
        texture_of_geom[has_material] = texture_of_material[material[has_material], role]
        is_2d = np.asarray(model.tex_type) == mujoco.mjtTexture.mjTEXTURE_2D
        texture_of_geom[texture_of_geom >= 0] = np.where(
            is_2d[texture_of_geom[texture_of_geom >= 0]], texture_of_geom[texture_of_geom >= 0], -1
        )
        self._texture_of_triangle: I32 = np.where(np.isnan(scene.uv[:, 0, 0]), -1, texture_of_geom[scene.geoms]).astype(
            np.int32
        )
        self.has_textures = bool((self._texture_of_triangle >= 0).any())
        if not self.has_textures:
            return
        self._uv = np.nan_to_num(scene.uv)
        texture_ids = np.unique(self._texture_of_triangle[self._texture_of_triangle >= 0])
        self._pixels, self._sizes, self._starts = _make_mipmaps(model, texture_ids)
        self._slots = np.searchsorted(texture_ids, np.maximum(self._texture_of_triangle, 0))
        self._pixel_density = self._pixels_per_meter(scene)
        self._linear = srgb_to_linear(np.arange(256) / 255.0)

    def _pixels_per_meter(self, scene: RayScene) -> F32:
        """Of each triangle, how many pixels of its image lie on a meter."""
        e, f = scene.corners[:, 1] - scene.corners[:, 0], scene.corners[:, 2] - scene.corners[:, 0]
        area = np.linalg.norm(np.cross(e, f), axis=1)
        a, b = self._uv[:, 1] - self._uv[:, 0], self._uv[:, 2] - self._uv[:, 0]
        height, width = self._sizes[self._slots, 0].T
        covered = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) * width * height
        return np.asarray(np.sqrt(covered / np.maximum(area, 1e-12)), dtype=np.float32)

    def sample_colors(
        self, hits: I32, barycentric: F32, distances: F32, pixel_angle: float
    ) -> tuple[NDArray[np.intp], F32]:
        """Return the rows of those ``hits`` whose triangle has a texture, and its linear color there (k, 3).

        Args:
            hits: (n,) triangle of each ray; negative for none.
            barycentric: (n, 2) where in it.
            distances: (n,) [m].
            pixel_angle: Width of a ray at a meter's distance [m].
        """
        rows = np.flatnonzero((hits >= 0) & (self._texture_of_triangle[np.maximum(hits, 0)] >= 0))
        triangle = hits[rows]
        u, v = barycentric[rows, :1], barycentric[rows, 1:2]
        corner = self._uv[triangle]
        uv = np.maximum(1.0 - u - v, 0.0) * corner[:, 0] + u * corner[:, 1] + v * corner[:, 2]
        texels_per_ray = self._pixel_density[triangle] * distances[rows] * pixel_angle
        level = np.clip(np.round(np.log2(np.maximum(texels_per_ray, 1.0))), 0, _N_LEVELS - 1).astype(np.intp)
        slot = self._slots[triangle]
        height, width = self._sizes[slot, level].T
        uv = uv - np.floor(uv)
        column = np.minimum((uv[:, 0] * width).astype(np.intp), width - 1)
        row = np.minimum((uv[:, 1] * height).astype(np.intp), height - 1)
        return rows, self._linear[self._pixels[self._starts[slot, level] + row * width + column]]


def _make_mipmaps(
    model: mujoco.MjModel, texture_ids: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.intp], NDArray[np.intp]]:
    """Pixels (k, 3) of all levels of the textures, their heights and widths (t, levels, 2), and where each begins."""
    sizes = np.zeros((len(texture_ids), _N_LEVELS, 2), np.intp)
    starts = np.zeros((len(texture_ids), _N_LEVELS), np.intp)
    level_pixels: list[NDArray[np.uint8]] = []
    total = 0
    for index, texture_id in enumerate(texture_ids.tolist()):
        height, width = int(model.tex_height[texture_id]), int(model.tex_width[texture_id])
        channels, start = int(model.tex_nchannel[texture_id]), int(model.tex_adr[texture_id])
        data = np.asarray(model.tex_data[start : start + height * width * channels]).reshape(height, width, channels)
        image = data[:, :, :3] if channels >= 3 else np.repeat(data[:, :, :1], 3, axis=2)
        for level in range(_N_LEVELS):
            sizes[index, level] = image.shape[:2]
            starts[index, level] = total
            level_pixels.append(np.ascontiguousarray(image).reshape(-1, 3))
            total += len(level_pixels[-1])
            image = _halve(image)
    return np.concatenate(level_pixels), sizes, starts


def _halve(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    for axis in (0, 1):
        if image.shape[axis] > 1:
            even = 2 * (image.shape[axis] // 2)
            first = np.take(image, range(0, even, 2), axis).astype(np.uint16)
            image = ((first + np.take(image, range(1, even, 2), axis)) // 2).astype(np.uint8)
    return image
