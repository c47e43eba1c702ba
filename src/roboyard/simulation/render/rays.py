"""Pictures by casting rays on the CPU: needs nothing but pip packages, and looks the same on every machine.

One ray a pixel finds what is seen, one more asks for its shadow; pixels on edges are then taken again with finer
rays.  About 30 ms for 640 × 360 on one core.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import ThreadPool, count_usable_cores
from roboyard.geometry.arrays import F32, I32
from roboyard.simulation.render.ambient import Openness, bake_openness
from roboyard.simulation.render.bodies import geom_colours
from roboyard.simulation.render.camera import Camera
from roboyard.simulation.render.camera_rays import camera_rays
from roboyard.simulation.render.lamps import lamps_of, light_around
from roboyard.simulation.render.ray_scene import RayScene
from roboyard.simulation.render.shading import shade, shadow_rays
from roboyard.simulation.render.sky import Sky
from roboyard.simulation.render.surfaces import darken_below, edge_pixels, surfaces
from roboyard.simulation.render.textures import Textures
from roboyard.simulation.render.tone import light_for, linear, to_bytes, tone_table

# Places of the finer rays inside an edge pixel (a turned triangle), next to the one in its middle.
_FINE = np.array([[-0.33, -0.15], [0.3, -0.25], [0.05, 0.36]], dtype=np.float32)

CLEAR_EXTENT = 40.0
"""Up to this extent of a world [m] the haze is that of a hall; in larger ones it thins in proportion."""


class _Traced(NamedTuple):
    light: F32
    hits: I32
    distances: F32
    normals: F32
    lit: NDArray[np.bool_]


class RayRenderer:
    """Renderer by ray casting.

    Args:
        model: Compiled model.
        width: Of the pictures [px].
        height: [px].
        smooth: Take pixels on edges with finer rays.
        shadows: Cast shadows.
        sky: Colours of the sky; None takes the model's.
        threads: How many share a picture; one for each usable core (at most 4) if not given. It changes no pixel.
    """

    backend = "rays"

    def __init__(
        self,
        model: mujoco.MjModel,
        width: int,
        height: int,
        *,
        smooth: bool = True,
        shadows: bool = True,
        sky: Sky | None = None,
        threads: int | None = None,
    ) -> None:
        self.model, self.width, self.height = model, width, height
        self._smooth, self._shadows = smooth, shadows
        sky = sky or Sky.of(model)
        self._table = tone_table()
        self._zenith, self._horizon = light_for(sky.zenith, self._table), light_for(sky.horizon, self._table)
        self._scene = RayScene(model)
        self._glass = RayScene(model, opaque=False)
        self._openness = bake_openness(self._scene)
        self._pictures = {id(scene): Textures(model, scene) for scene in (self._scene, self._glass)}
        # Large places are seen from afar: the haze must not swallow them.
        self._clearness = np.float32(min(1.0, CLEAR_EXTENT / max(float(model.stat.extent), 1e-6)))
        self._pixel = 0.0
        self._glass_open = Openness.all_open(len(self._glass.corners))
        threads = threads or min(count_usable_cores(), 4)
        self._threads = ThreadPool(threads) if threads > 1 else None
        columns, rows = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
        self._pixels = np.stack([columns.ravel(), rows.ravel()], axis=1).astype(np.float32)

    def render(self, data: mujoco.MjData, camera: Camera) -> NDArray[np.uint8]:
        """Colour picture (height, width, 3) uint8 of the state in ``data`` (after ``mj_forward``)."""
        self._update(data)
        traced = self._trace(camera, self._pixels)
        light = traced.light
        if self._smooth:
            edges = edge_pixels(traced.hits, self._scene.geoms, traced.normals, traced.lit, self.width, self.height)
            if len(edges):
                fine = (self._pixels[edges][:, None] + _FINE).reshape(-1, 2)
                more = self._trace(camera, fine).light.reshape(len(edges), len(_FINE), 3)
                np.minimum(more, 4.0, out=more)
                total = more[:, 0]
                for number in range(1, len(_FINE)):  # numpy sums along short axes slowly
                    total += more[:, number]
                light[edges] = (total + np.minimum(light[edges], 4.0)) / (len(_FINE) + 1)
        return to_bytes(light, self._table).reshape(self.height, self.width, 3)

    def rgbd(self, data: mujoco.MjData, camera: Camera) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Colour picture and depth (height, width) along the optical axis [m], 0 where nothing is; edges are hard."""
        self._update(data)
        traced = self._trace(camera, self._pixels)
        forward = np.asarray(camera.T_world_camera.rotation_matrix()[:, 2], dtype=np.float32)
        _, directions = self._rays(camera, self._pixels)
        depth = np.where(traced.hits >= 0, traced.distances * (directions @ forward), np.float32(0.0))
        shape = (self.height, self.width)
        return to_bytes(traced.light, self._table).reshape(*shape, 3), depth.reshape(shape).astype(np.float32)

    def close(self) -> None:
        """End the threads, free the scene."""
        self._scene.meshes.close()
        self._glass.meshes.close()
        if self._threads is not None:
            self._threads.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _update(self, data: mujoco.MjData) -> None:
        self._looks, self._alpha = looks_of(self.model)
        self._lamps = lamps_of(self.model, data)
        self._surround = np.stack([light_around(self.model), self._zenith, self._horizon])
        self._scene.update(data)
        self._glass.update(data)
        self._balls = _balls(self._scene)

    def _colours(self, scene: RayScene, hits: I32, inside: F32, distances: F32) -> tuple[I32, I32, F32]:
        """``hits``, geoms and looks for ``shade``: where something has a picture, each ray has looks of its own."""
        pictures = self._pictures[id(scene)]
        if not pictures.used:
            return hits, scene.geoms, self._looks
        looks = self._looks[scene.geoms[np.maximum(hits, 0)]]
        rows, colours = pictures.colours(hits, inside, distances, self._pixel)
        looks[rows, :3] *= colours
        each = np.arange(len(hits), dtype=np.int32)
        return np.where(hits >= 0, each, np.int32(-1)), each, looks

    def _rays(self, camera: Camera, pixels: F32) -> tuple[F32, F32]:
        T, window = camera.T_world_camera, camera.windowed(self.width, self.height)
        return camera_rays(
            np.ascontiguousarray(T.rotation_matrix(), dtype=np.float32),
            np.asarray(T.translation, dtype=np.float32),
            pixels,
            window.fx,
            window.fy,
            window.cx,
            window.cy,
            camera.span is not None,
        )

    def _trace(self, camera: Camera, pixels: F32) -> _Traced:
        """Follow the rays of ``pixels``, in as many equal parts as there are threads; the parts do not interact."""
        parts = [p for p in np.array_split(pixels, self._threads.workers if self._threads else 1) if len(p)]
        if self._threads is None or len(parts) < 2:
            return self._trace_part(camera, pixels)
        futures = [self._threads.submit(self._trace_part, camera, part) for part in parts]
        return _Traced(*(np.concatenate(arrays) for arrays in zip(*(f.result() for f in futures), strict=True)))

    def _trace_part(self, camera: Camera, pixels: F32) -> _Traced:
        self._pixel = 1.0 / camera.focal(self.height)
        origins, directions = self._rays(camera, pixels)
        hits, distances, inside = self._scene.meshes.nearest(origins, directions)
        light, normals, lit = self._shade(self._scene, self._openness, origins, directions, hits, distances, inside)
        if self._glass.bodies:
            self._through_glass(origins, directions, distances, light)
        return _Traced(light, hits, distances, normals, lit)

    def _shade(
        self, scene: RayScene, opened: Openness, origins: F32, directions: F32, hits: I32, distances: F32, inside: F32
    ) -> tuple[F32, F32, NDArray[np.bool_]]:
        points, normals, openness = surfaces(
            origins, directions, hits, distances,
            inside, scene.normals, scene.piece_of, scene.rotations, scene.translations,
            opened.start, opened.cells, opened.spots, opened.values,
        )  # fmt: skip
        darken_below(points, normals, hits, scene.piece_of, self._balls, openness)
        dark, share = np.full(len(hits), -1, np.int32), np.ones(len(hits), np.float32)
        if self._shadows:
            rows, starts, towards, lengths, key, share = shadow_rays(points, normals, hits, self._lamps)
            behind = rows[self._scene.meshes.blocked(starts, towards, lengths)]
            dark[behind] = key[behind]
        numbers, geoms, looks = self._colours(scene, hits, inside, distances)
        light = shade(
            points, normals, openness, directions, numbers, distances * self._clearness,
            geoms, looks, dark, share, self._lamps, self._surround,
        )  # fmt: skip
        return light, normals, dark < 0

    def _through_glass(self, origins: F32, directions: F32, distances: F32, light: F32) -> None:
        """Lay the nearest transparent surface over what is behind it; changes ``light``."""
        hits, near, inside = self._glass.meshes.nearest(origins, directions, distances)
        rows = np.flatnonzero(hits >= 0).astype(np.int32)
        if not len(rows):
            return
        front, _, _ = self._shade(
            self._glass, self._glass_open, origins[rows], directions[rows], hits[rows], near[rows], inside[rows]
        )
        alpha = self._alpha[self._glass.geoms[hits[rows]], None]
        light[rows] = alpha * front + (1 - alpha) * light[rows]


def _balls(scene: RayScene) -> F32:
    """(pieces, 4) balls that stand for moving pieces where they hide the sky; radius 0 for what stands still."""
    balls = np.zeros((len(scene.bodies), 4), np.float32)
    if len(balls):
        balls[:, :3] = np.einsum("pij,pj->pi", scene.rotations, scene.centres) + scene.translations
        balls[:, 3] = np.where(np.array(scene.bodies) > 0, 0.62 * scene.radii, 0.0)
    return balls


def looks_of(model: mujoco.MjModel) -> tuple[F32, F32]:
    """Of each geom: linear colour, glow, highlight's strength and sharpness (g, 6); and alpha (g,)."""
    rgba = geom_colours(model)
    looks = np.zeros((len(rgba), 6), np.float32)
    looks[:, :3] = linear(rgba[:, :3])
    looks[:, 4:] = (0.05, 40.0)
    material = np.asarray(model.geom_matid)
    has = material >= 0
    if has.any():
        looks[has, 3] = model.mat_emission[material[has]]
        looks[has, 4] = 0.12 * model.mat_specular[material[has]]
        looks[has, 5] = 10.0 + 120.0 * model.mat_shininess[material[has]]
    return looks, rgba[:, 3].astype(np.float32)
