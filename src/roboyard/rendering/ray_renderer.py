"""Rendering by ray casting on the CPU: it needs only pip packages and gives equal images on all machines.

`RayRenderer` casts one ray for each pixel and one shadow ray, and samples edges with finer rays (about 30 ms for 640
× 360 pixels on one core). `FastRayRenderer` renders the images of simulated cameras: any lens, no shadows (about 25
ms for 640 × 480 pixels).
"""

from __future__ import annotations

from itertools import pairwise
from types import TracebackType
from typing import NamedTuple, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import ThreadPool, count_usable_cores, expect_kernels
from roboyard.geometry.arrays import F32, I32
from roboyard.rendering.ambient_occlusion import AmbientOcclusion, bake_ambient_occlusion
from roboyard.rendering.cameras import RenderCamera, make_camera_rays
from roboyard.rendering.geom_triangles import geom_colors
from roboyard.rendering.lighting import (
    Sky,
    ambient_light,
    apply_tone_curve,
    collect_lights,
    inverse_tone_curve,
    make_tone_table,
    srgb_to_linear,
)
from roboyard.rendering.ray_scene import RayScene, TextureSampler
from roboyard.rendering.shading import (
    CameraPose,
    Lighting,
    MaterialTable,
    PieceTable,
    RayHits,
    ShadowTable,
    TracedCameraRays,
    compute_surface_points,
    darken_near_moving_bodies,
    find_edge_pixels,
    make_shadow_rays,
    shade,
    shade_without_shadows,
    trace_camera_rays,
)

# Positions of the finer rays inside an edge pixel (a rotated triangle), beside the ray in its middle [px].
_SUBPIXEL_OFFSETS = np.array([[-0.33, -0.15], [0.3, -0.25], [0.05, 0.36]], dtype=np.float32)

FULL_HAZE_EXTENT = 40.0
"""Up to this extent of a world [m] the haze is that of a hall; in larger ones it thins in proportion."""


class _TraceResult(NamedTuple):
    light: F32
    hits: I32
    distances: F32
    normals: F32
    is_lit: NDArray[np.bool_]


class RayRenderer:
    """Renderer by ray casting.

    Args:
        model: Compiled model.
        width: Of the images [px].
        height: [px].
        antialias: Sample pixels on edges with finer rays.
        shadows: Cast shadows.
        sky: Colors of the sky; None takes the model's.
        threads: Number of threads; one for each usable core (at most 4) if not given. It changes no pixel.
    """

    backend = "rays"

    def __init__(
        self,
        model: mujoco.MjModel,
        width: int,
        height: int,
        *,
        antialias: bool = True,
        shadows: bool = True,
        sky: Sky | None = None,
        threads: int | None = None,
    ) -> None:
        self.model, self.width, self.height = model, width, height
        self._antialias, self._shadows = antialias, shadows
        sky = sky or Sky.from_model(model)
        self._tone_table = make_tone_table()
        self._zenith, self._horizon = (
            inverse_tone_curve(sky.zenith, self._tone_table),
            inverse_tone_curve(sky.horizon, self._tone_table),
        )
        self._scene = RayScene(model)
        self._transparent_scene = RayScene(model, opaque=False)
        self._occlusion = bake_ambient_occlusion(self._scene)
        self._texture_samplers = {
            id(scene): TextureSampler(model, scene) for scene in (self._scene, self._transparent_scene)
        }
        # Large worlds are seen from a distance: the haze must not hide them.
        self._haze_distance_scale = np.float32(min(1.0, FULL_HAZE_EXTENT / max(float(model.stat.extent), 1e-6)))
        self._pixel_angle = 0.0
        self._transparent_occlusion = AmbientOcclusion.unoccluded(len(self._transparent_scene.corners))
        threads = threads or min(count_usable_cores(), 4)
        self._thread_pool = ThreadPool(threads) if threads > 1 else None
        columns, rows = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
        self._pixels = np.stack([columns.ravel(), rows.ravel()], axis=1).astype(np.float32)

    def render(self, data: mujoco.MjData, camera: RenderCamera) -> NDArray[np.uint8]:
        """Color image (height, width, 3) uint8 of the state in ``data`` (after ``mj_forward``)."""
        self._update(data)
        traced = self._trace(camera, self._pixels)
        light = traced.light
        if self._antialias:
            edges = find_edge_pixels(
                traced.hits, self._scene.geoms, traced.normals, traced.is_lit, self.width, self.height
            )
            if len(edges):
                subpixels = (self._pixels[edges][:, None] + _SUBPIXEL_OFFSETS).reshape(-1, 2)
                subpixel_light = self._trace(camera, subpixels).light.reshape(len(edges), len(_SUBPIXEL_OFFSETS), 3)
                np.minimum(subpixel_light, 4.0, out=subpixel_light)
                total = subpixel_light[:, 0]
                for index in range(1, len(_SUBPIXEL_OFFSETS)):  # numpy sums along short axes slowly
                    total += subpixel_light[:, index]
                light[edges] = (total + np.minimum(light[edges], 4.0)) / (len(_SUBPIXEL_OFFSETS) + 1)
        return apply_tone_curve(light, self._tone_table).reshape(self.height, self.width, 3)

    def render_rgbd(self, data: mujoco.MjData, camera: RenderCamera) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Color image and depth (height, width) along the optical axis [m], 0 where nothing is; edges are hard."""
        self._update(data)
        traced = self._trace(camera, self._pixels)
        forward = np.asarray(camera.T_world_camera.rotation_matrix()[:, 2], dtype=np.float32)
        _, directions = self._make_rays(camera, self._pixels)
        depth = np.where(traced.hits >= 0, traced.distances * (directions @ forward), np.float32(0.0))
        shape = (self.height, self.width)
        return apply_tone_curve(traced.light, self._tone_table).reshape(*shape, 3), depth.reshape(shape).astype(
            np.float32
        )

    def close(self) -> None:
        """End the threads, free the scene."""
        self._scene.embree_scene.close()
        self._transparent_scene.embree_scene.close()
        if self._thread_pool is not None:
            self._thread_pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _update(self, data: mujoco.MjData) -> None:
        self._materials, self._alpha = geom_materials(self.model)
        environment_light = np.stack([ambient_light(self.model), self._zenith, self._horizon])
        self._lighting = Lighting(collect_lights(self.model, data), environment_light)
        self._scene.update(data)
        self._transparent_scene.update(data)
        self._bounding_spheres = _make_bounding_spheres(self._scene)

    def _select_materials(self, scene: RayScene, hits: RayHits) -> MaterialTable:
        """Return the materials of the geoms; where surfaces have textures, each ray has a material of its own."""
        sampler = self._texture_samplers[id(scene)]
        if not sampler.has_textures:
            return MaterialTable(scene.geoms, self._materials, False)
        return _make_textured_materials(sampler, scene, self._materials, hits, self._pixel_angle)

    def _make_rays(self, camera: RenderCamera, pixels: F32) -> tuple[F32, F32]:
        T, intrinsics = camera.T_world_camera, camera.compute_intrinsics(self.width, self.height)
        return make_camera_rays(
            np.ascontiguousarray(T.rotation_matrix(), dtype=np.float32),
            np.asarray(T.translation, dtype=np.float32),
            pixels,
            intrinsics.fx,
            intrinsics.fy,
            intrinsics.cx,
            intrinsics.cy,
            camera.orthographic_height is not None,
        )

    def _trace(self, camera: RenderCamera, pixels: F32) -> _TraceResult:
        """Trace the rays of ``pixels``, in as many equal parts as there are threads; the parts do not interact."""
        parts = [p for p in np.array_split(pixels, self._thread_pool.workers if self._thread_pool else 1) if len(p)]
        if self._thread_pool is None or len(parts) < 2:
            return self._trace_part(camera, pixels)
        futures = [self._thread_pool.submit(self._trace_part, camera, part) for part in parts]
        return _TraceResult(*(np.concatenate(arrays) for arrays in zip(*(f.result() for f in futures), strict=True)))

    def _trace_part(self, camera: RenderCamera, pixels: F32) -> _TraceResult:
        self._pixel_angle = 1.0 / camera.focal_length(self.height)
        origins, directions = self._make_rays(camera, pixels)
        hits = RayHits(*self._scene.embree_scene.cast_rays(origins, directions))
        light, normals, is_lit = self._shade(self._scene, self._occlusion, origins, directions, hits)
        if self._transparent_scene.bodies:
            self._blend_transparent(origins, directions, hits.distances, light)
        return _TraceResult(light, hits.triangles, hits.distances, normals, is_lit)

    def _shade(
        self, scene: RayScene, occlusion: AmbientOcclusion, origins: F32, directions: F32, hits: RayHits
    ) -> tuple[F32, F32, NDArray[np.bool_]]:
        surface = compute_surface_points(origins, directions, hits, _piece_table(scene), occlusion)
        darken_near_moving_bodies(surface, hits.triangles, scene.piece_of, self._bounding_spheres)
        shadows = ShadowTable(np.full(len(directions), -1, np.int32), np.ones(len(directions), np.float32))
        if self._shadows:
            rows, shadow_origins, light_directions, lengths, light_of_hit, shadow_fraction = make_shadow_rays(
                surface.positions, surface.normals, hits.triangles, self._lighting.lights
            )
            shadowed_rows = rows[self._scene.embree_scene.is_occluded(shadow_origins, light_directions, lengths)]
            shadows.light[shadowed_rows] = light_of_hit[shadowed_rows]
            shadows = ShadowTable(shadows.light, shadow_fraction)
        light = shade(
            surface,
            directions,
            hits.triangles,
            hits.distances * self._haze_distance_scale,
            self._select_materials(scene, hits),
            shadows,
            self._lighting,
        )
        return light, surface.normals, shadows.light < 0

    def _blend_transparent(self, origins: F32, directions: F32, distances: F32, light: F32) -> None:
        """Blend the nearest transparent surface with what is behind it; changes ``light``."""
        hits, near_distances, barycentric = self._transparent_scene.embree_scene.cast_rays(
            origins, directions, distances
        )
        rows = np.flatnonzero(hits >= 0).astype(np.int32)
        if not len(rows):
            return
        front, _, _ = self._shade(
            self._transparent_scene,
            self._transparent_occlusion,
            origins[rows],
            directions[rows],
            RayHits(hits[rows], near_distances[rows], barycentric[rows]),
        )
        alpha = self._alpha[self._transparent_scene.geoms[hits[rows]], None]
        light[rows] = alpha * front + (1 - alpha) * light[rows]


def _piece_table(scene: RayScene) -> PieceTable:
    return PieceTable(scene.embree_scene.first_triangle, scene.piece_of, scene.rotations, scene.normals)


def _make_textured_materials(
    sampler: TextureSampler, scene: RayScene, geom_materials: F32, hits: RayHits, pixel_angle: float
) -> MaterialTable:
    """Return a material for each ray: that of the geom, with the color of its texture."""
    materials = geom_materials[scene.geoms[np.maximum(hits.triangles, 0)]]
    textured, colors = sampler.sample_colors(hits.triangles, hits.barycentric, hits.distances, pixel_angle)
    materials[textured, :3] *= colors
    return MaterialTable(np.arange(len(materials), dtype=np.int32), materials, True)


def _make_bounding_spheres(scene: RayScene) -> F32:
    """Return spheres (pieces, 4) that stand for moving pieces where they hide the sky; radius 0 for static pieces."""
    spheres = np.zeros((len(scene.bodies), 4), np.float32)
    if len(spheres):
        spheres[:, :3] = np.einsum("pij,pj->pi", scene.rotations, scene.centers) + scene.translations
        spheres[:, 3] = np.where(np.array(scene.bodies) > 0, 0.62 * scene.radii, 0.0)
    return spheres


def geom_materials(model: mujoco.MjModel) -> tuple[F32, F32]:
    """Return linear color, emission, strength and sharpness of the highlight (g, 6), and alpha (g,), of each geom."""
    rgba = geom_colors(model)
    materials = np.zeros((len(rgba), 6), np.float32)
    materials[:, :3] = srgb_to_linear(rgba[:, :3])
    materials[:, 4:] = (0.05, 40.0)
    material = np.asarray(model.geom_matid)
    has_material = material >= 0
    if has_material.any():
        materials[has_material, 3] = model.mat_emission[material[has_material]]
        materials[has_material, 4] = 0.12 * model.mat_specular[material[has_material]]
        materials[has_material, 5] = 10.0 + 120.0 * model.mat_shininess[material[has_material]]
    return materials, rgba[:, 3].astype(np.float32)


class FastRayRenderer:
    """Renderer by ray casting without shadows, soft edges and glass.

    Args:
        model: Compiled model.
        threads: Number of threads; one for each usable core (at most 4) if not given. It changes no pixel.
    """

    backend = "rays"

    def __init__(self, model: mujoco.MjModel, *, threads: int | None = None) -> None:
        expect_kernels(trace_camera_rays)
        self.model = model
        sky = Sky.from_model(model)
        self._tone_table = make_tone_table()
        self._zenith, self._horizon = (
            inverse_tone_curve(sky.zenith, self._tone_table),
            inverse_tone_curve(sky.horizon, self._tone_table),
        )
        self._scene = RayScene(model, tessellation_factor=2)
        self._texture_sampler = TextureSampler(model, self._scene)
        self._materials, _ = geom_materials(model)
        workers = threads or min(count_usable_cores(), 4)
        self._thread_pool = ThreadPool(workers) if workers > 1 else None

    def render(
        self, data: mujoco.MjData, camera: RenderCamera, rays: F32, *, with_color: bool = True
    ) -> tuple[NDArray[np.uint8] | None, F32, I32]:
        """Render an image.

        Args:
            data: State (after ``mj_kinematics``).
            camera: Its pose and near plane; its intrinsics do not matter, beside ``rays``.
            rays: (h, w, 3) unit vectors in the optical frame; NaN for pixels without a ray.
            with_color: Whether to compute colors.

        Returns:
            Colors (h, w, 3); depth (h, w) along the axis [m], 0: no surface; and the geom (h, w), -1: none.
        """
        height, width = rays.shape[:2]
        ray_directions = rays.reshape(-1, 3)
        count = len(ray_directions)
        scene = self._scene
        scene.update(data)
        rotation = np.ascontiguousarray(camera.T_world_camera.rotation_matrix(), dtype=np.float32)
        position = np.asarray(camera.T_world_camera.translation, dtype=np.float32).copy()
        hits = RayHits(np.empty(count, np.int32), np.empty(count, np.float32), np.empty((count, 2), np.float32))
        traced = TracedCameraRays(np.empty((count, 3), np.float32), hits, np.empty(count, np.float32))
        environment_light = np.stack([ambient_light(self.model), self._zenith, self._horizon])
        lighting = Lighting(collect_lights(self.model, data), environment_light)
        linear_color = np.empty((count, 3), np.float32) if with_color else None
        color_bytes = np.empty((count, 3), np.uint8) if with_color else None
        pose, pieces = CameraPose(rotation, position, camera.near), _piece_table(scene)
        embree, pixel_angle = scene.embree_scene, 1.0 / camera.focal_length(height)

        def render_rows(first_ray: int, end_ray: int) -> None:
            trace_camera_rays(
                embree.world_scene, embree.arguments, ray_directions, pose, pieces, traced, first_ray, end_ray
            )
            if linear_color is None or color_bytes is None:
                return
            rows = slice(first_ray, end_ray)
            row_hits = RayHits(hits.triangles[rows], hits.distances[rows], hits.barycentric[rows])
            materials = MaterialTable(scene.geoms, self._materials, False)
            if self._texture_sampler.has_textures:
                materials = _make_textured_materials(
                    self._texture_sampler, scene, self._materials, row_hits, pixel_angle
                )
            shade_without_shadows(
                traced.directions[rows], row_hits, pieces, materials, lighting, position, linear_color[rows]
            )
            color_bytes[rows] = apply_tone_curve(linear_color[rows], self._tone_table)

        strips = self._thread_pool.workers * 4 if self._thread_pool else 1
        edges = np.linspace(0, height, strips + 1).astype(int) * width
        ray_ranges = [(int(a), int(b)) for a, b in pairwise(edges.tolist()) if b > a]
        if self._thread_pool is None:
            render_rows(0, count)
        else:
            for future in [self._thread_pool.submit(render_rows, a, b) for a, b in ray_ranges]:
                future.result()
        triangles = hits.triangles
        geoms = np.where(triangles >= 0, scene.geoms[np.maximum(triangles, 0)], np.int32(-1)).astype(np.int32)
        image = color_bytes.reshape(height, width, 3) if color_bytes is not None else None
        return image, traced.depth.reshape(height, width), geoms.reshape(height, width)

    def close(self) -> None:
        """End the threads, free the scene."""
        self._scene.embree_scene.close()
        if self._thread_pool is not None:
            self._thread_pool.close()
