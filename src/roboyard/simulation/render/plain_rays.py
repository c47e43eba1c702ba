"""Colour and depth by casting rays, as quickly as it goes: for cameras on machines without OpenGL, and for bent lenses.

Each pixel has its own ray, so that any lens can be: 640 × 480 pixels take about 25 ms on one core.
"""

from __future__ import annotations

from itertools import pairwise

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import ThreadPool, count_usable_cores, expect_kernels
from roboyard.geometry.arrays import F32, I32
from roboyard.simulation.render.camera import Camera
from roboyard.simulation.render.lamps import lamps_of, light_around
from roboyard.simulation.render.plain_shading import light, look
from roboyard.simulation.render.ray_scene import RayScene
from roboyard.simulation.render.rays import looks_of
from roboyard.simulation.render.sky import Sky
from roboyard.simulation.render.textures import Textures
from roboyard.simulation.render.tone import light_for, to_bytes, tone_table


class PlainRayRenderer:
    """Renderer by ray casting without shadows, soft edges and glass.

    Args:
        model: Compiled model.
        threads: How many share a picture; one for each usable core (at most 4) if not given. It changes no pixel.
    """

    backend = "rays"

    def __init__(self, model: mujoco.MjModel, *, threads: int | None = None) -> None:
        expect_kernels(look)
        self.model = model
        sky = Sky.of(model)
        self._table = tone_table()
        self._zenith, self._horizon = light_for(sky.zenith, self._table), light_for(sky.horizon, self._table)
        self._scene = RayScene(model, finer=2)
        self._pictures = Textures(model, self._scene)
        self._looks, _ = looks_of(model)
        workers = threads or min(count_usable_cores(), 4)
        self._threads = ThreadPool(workers) if workers > 1 else None

    def take(
        self, data: mujoco.MjData, camera: Camera, rays: F32, *, colour: bool = True
    ) -> tuple[NDArray[np.uint8] | None, F32, I32]:
        """A picture.

        Args:
            data: State (after ``mj_kinematics``).
            camera: Its pose and near plane; the rest is in ``rays``.
            rays: (h, w, 3) unit vectors in the optical frame; not a number where nothing is seen.
            colour: Whether colours are wanted.

        Returns:
            Colours (h, w, 3); depth (h, w) along the axis [m], 0 where nothing is; and the geom (h, w) there, -1: none.
        """
        height, width = rays.shape[:2]
        table = rays.reshape(-1, 3)
        count = len(table)
        scene = self._scene
        scene.update(data)
        rotation = np.ascontiguousarray(camera.T_world_camera.rotation_matrix(), dtype=np.float32)
        position = np.asarray(camera.T_world_camera.translation, dtype=np.float32).copy()
        directions, hits, far = np.empty((count, 3), np.float32), np.empty(count, np.int32), np.empty(count, np.float32)
        inside, depth = np.empty((count, 2), np.float32), np.empty(count, np.float32)
        surround = np.stack([light_around(self.model), self._zenith, self._horizon])
        lamps = lamps_of(self.model, data)
        shown = np.empty((count, 3), np.float32) if colour else None
        bytes_ = np.empty((count, 3), np.uint8) if colour else None
        near = camera.near

        def part(begin: int, end: int) -> None:
            look(
                scene.meshes.whole, scene.meshes.arguments, table, rotation, position, near, scene.meshes.first,
                scene.piece_of, scene.rotations, directions, hits, far, inside, depth, begin, end,
            )  # fmt: skip
            if shown is None or bytes_ is None:
                return
            geoms, looks = scene.geoms, self._looks
            rows = slice(begin, end)
            if self._pictures.used:
                looks = self._looks[scene.geoms[np.maximum(hits[rows], 0)]]
                own, colours = self._pictures.colours(hits[rows], inside[rows], far[rows], 1.0 / camera.focal(height))
                looks[own, :3] *= colours
                geoms = np.arange(len(looks), dtype=np.int32)
            light(
                directions[rows], hits[rows], far[rows], inside[rows], scene.normals, scene.piece_of, scene.rotations,
                geoms, looks, lamps, surround, position, shown[rows], self._pictures.used,
            )  # fmt: skip
            bytes_[rows] = to_bytes(shown[rows], self._table)

        strips = self._threads.workers * 4 if self._threads else 1
        edges = np.linspace(0, height, strips + 1).astype(int) * width
        pieces = [(int(a), int(b)) for a, b in pairwise(edges.tolist()) if b > a]
        if self._threads is None:
            part(0, count)
        else:
            for done in [self._threads.submit(part, a, b) for a, b in pieces]:
                done.result()
        geoms = np.where(hits >= 0, scene.geoms[np.maximum(hits, 0)], np.int32(-1)).astype(np.int32)
        seen = bytes_.reshape(height, width, 3) if bytes_ is not None else None
        return seen, depth.reshape(height, width), geoms.reshape(height, width)

    def close(self) -> None:
        """End the threads, free the scene."""
        self._scene.meshes.close()
        if self._threads is not None:
            self._threads.close()
