"""The render thread: renders the images of all cameras of a simulation.

An OpenGL context belongs to the thread that opened it, so one thread renders all images. It renders copies of the
state, which the cameras capture when they measure; physics continues meanwhile, and no result depends on when the
thread renders.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import RunError
from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import F32, U8
from roboyard.rendering.backends import Backend, resolve_backend
from roboyard.rendering.cameras import (
    LensRemap,
    PinholeIntrinsics,
    RenderCamera,
    make_lens_remap,
    remap_color,
    remap_depth,
)
from roboyard.rendering.geom_triangles import geom_colors
from roboyard.sensors.cameras.exposure import SRGB_TO_LINEAR
from roboyard.sensors.optics import MIRROR, OPAQUE, make_optics_table

if TYPE_CHECKING:
    from roboyard.physics.visual_scene import SceneState, VisualScene
    from roboyard.rendering.opengl import GlRenderer
    from roboyard.rendering.ray_renderer import FastRayRenderer

R = TypeVar("R")
_RenderRequest = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]
_MAX_RENDERERS = 6
"""Sizes of images that OpenGL keeps ready."""


@dataclass(frozen=True, slots=True)
class RenderedView:
    """The image, depth and reflectance of one camera model for one state.

    Attributes:
        color: (h, w, 3).
        depth: (h, w) along the axis [m], 0: nothing there.
        reflectance: (h, w) fraction of light that surfaces reflect, negative for mirrors; None if not requested.
    """

    color: U8
    depth: F32
    reflectance: F32 | None = None


class RenderThread:
    """Renders images in a thread of its own.

    Args:
        backend: "gl", "rays", or "auto": OpenGL where it works.

    Attributes:
        backend: "gl" or "rays", once an image was requested.
    """

    def __init__(self, backend: Backend = "auto") -> None:
        self._requested_backend = backend
        self._requests: SimpleQueue[_RenderRequest | None] = SimpleQueue()
        self._thread: Thread | None = None
        # Without references the thread ends: a garbage collector in any thread may put a request into the queue.
        # Not when the interpreter ends: it stops the thread, which must not wake up in what is left of it.
        weakref.finalize(self, self._requests.put, None).atexit = False

    @property
    def backend(self) -> str:
        """The kind of renderer that it uses. Raises ConfigError where "gl" was requested and does not work."""
        return resolve_backend(self._requested_backend)

    def submit(self, work: Callable[..., R], *args: Any) -> Future[R]:
        """Have ``work(room, *args)`` done in the render thread's thread; ``worker.render_view`` renders."""
        if self._thread is None:
            self._thread = Thread(
                target=_run_worker, args=(self._requests, self.backend), name="roboyard-render", daemon=True
            )
            self._thread.start()
        future: Future[R] = Future()
        self._requests.put((future, work, args))
        return future

    def close(self) -> None:
        """Free renderers and end the thread; pending images are finished."""
        self._requests.put(None)
        if self._thread is not None:
            self._thread.join()


def _run_worker(requests: SimpleQueue[_RenderRequest | None], backend: str) -> None:
    """Serve requests until the queue delivers None."""
    worker = _RenderWorker(backend)
    while (request := requests.get()) is not None:
        future, work, args = request
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(work(worker, *args))
        except BaseException as error:  # noqa: BLE001 - the waiting caller receives it
            future.set_exception(error)
        del request, future, work, args  # or the last image would live on
    worker.close()


class _RenderWorker:
    """The renderers, in their thread."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self._scene: VisualScene | None = None
        self._opengl_renderers: OrderedDict[tuple[int, int], GlRenderer] = OrderedDict()
        self._ray_renderer: FastRayRenderer | None = None
        self._remaps: dict[CameraModel, tuple[F32, LensRemap | None]] = {}

    def set_scene(self, scene: VisualScene, state: SceneState) -> None:
        """Pose the scene."""
        if scene is not self._scene:
            self.close()
            self._scene, self._data = scene, mujoco.MjData(scene.model)
            self._reflectance_of_geom = np.append(_compute_geom_reflectance(scene), np.float32(1.0))
        state.apply_to(scene.model, self._data)

    @property
    def has_uneven_reflectance(self) -> bool:
        """Whether a projected pattern is lost on some surfaces because they reflect little or are mirrors."""
        return bool((self._reflectance_of_geom < 0.1).any())

    def render_view(
        self,
        camera_model: CameraModel,
        T_world_camera: SE3,
        near: float,
        *,
        with_color: bool = True,
        with_reflectance: bool = False,
    ) -> RenderedView:
        """What a lens sees of the scene that was entered last.

        Args:
            camera_model: The lens.
            T_world_camera: Its optical frame in the world.
            near: No surface nearer is visible [m].
            with_color: Whether the colors matter.
            with_reflectance: Whether to compute ``RenderedView.reflectance``.
        """
        rays, remap = self._get_remap(camera_model)
        if self.backend == "gl" and (camera_model.is_undistorted or remap is not None):
            return self._render_opengl(
                camera_model, remap, T_world_camera, near, with_color=with_color, with_reflectance=with_reflectance
            )
        rendered, depth, geoms = self._get_ray_renderer().render(
            self._data,
            RenderCamera(T_world_camera, near=near, intrinsics=PinholeIntrinsics.from_camera_model(camera_model)),
            rays,
            with_color=with_color,
        )
        color = rendered if rendered is not None else np.zeros((camera_model.height, camera_model.width, 3), np.uint8)
        return RenderedView(color, depth, self._read_reflectance(geoms) if with_reflectance else None)

    def _render_opengl(
        self,
        camera_model: CameraModel,
        remap: LensRemap | None,
        T_world_camera: SE3,
        near: float,
        *,
        with_color: bool,
        with_reflectance: bool,
    ) -> RenderedView:
        intrinsics = PinholeIntrinsics.from_camera_model(camera_model) if remap is None else remap.intrinsics
        width, height = (camera_model.width, camera_model.height) if remap is None else (remap.width, remap.height)
        renderer, camera = (
            self._get_opengl_renderer(width, height),
            RenderCamera(T_world_camera, near=near, intrinsics=intrinsics),
        )
        geoms = None
        if with_color:
            color, depth = renderer.render_rgbd(self._data, camera)
            if remap is not None:
                color = remap_color(color, remap)
        else:
            color = np.zeros((camera_model.height, camera_model.width, 3), np.uint8)
            if with_reflectance and remap is None:
                depth, geoms = renderer.render_depth_and_geoms(self._data, camera)
            else:
                depth = renderer.render_depth(self._data, camera)
        if remap is not None:
            depth = remap_depth(depth, remap)
        if not with_reflectance:
            return RenderedView(color, depth)
        return RenderedView(
            color,
            depth,
            self._trace_reflectance(camera_model, T_world_camera, near)
            if geoms is None
            else self._read_reflectance(geoms),
        )

    def _trace_reflectance(self, camera_model: CameraModel, T_world_camera: SE3, near: float) -> F32:
        """``RenderedView.reflectance`` by rays, one for each four pixels: beside colors, OpenGL would draw it all
        once more."""
        rays = np.ascontiguousarray(self._get_remap(camera_model)[0][::2, ::2])
        _, _, geoms = self._get_ray_renderer().render(
            self._data, RenderCamera(T_world_camera, near=near), rays, with_color=False
        )
        return self._read_reflectance(geoms).repeat(2, 0).repeat(2, 1)[: camera_model.height, : camera_model.width]

    def _read_reflectance(self, geoms: NDArray[np.int32]) -> F32:
        return self._reflectance_of_geom[geoms]  # the last is nothing's

    def _get_remap(self, camera_model: CameraModel) -> tuple[F32, LensRemap | None]:
        if camera_model not in self._remaps:
            rays = camera_model.pixel_rays().astype(np.float32)
            self._remaps[camera_model] = (
                rays,
                None if camera_model.is_undistorted or self.backend != "gl" else make_lens_remap(camera_model, rays),
            )
        return self._remaps[camera_model]

    def _get_opengl_renderer(self, width: int, height: int) -> GlRenderer:
        from roboyard.rendering.opengl import GlRenderer

        size = width, height
        if size not in self._opengl_renderers:
            if len(self._opengl_renderers) >= _MAX_RENDERERS:
                self._opengl_renderers.popitem(last=False)[1].close()
            self._opengl_renderers[size] = GlRenderer(self._current_scene.model, width, height)
        self._opengl_renderers.move_to_end(size)
        return self._opengl_renderers[size]

    def _get_ray_renderer(self) -> FastRayRenderer:
        from roboyard.rendering.ray_renderer import FastRayRenderer

        if self._ray_renderer is None:
            self._ray_renderer = FastRayRenderer(self._current_scene.model)
        return self._ray_renderer

    @property
    def _current_scene(self) -> VisualScene:
        if self._scene is None:
            raise RunError("no scene is set in the render worker", valid="set_scene before render_view")
        return self._scene

    def close(self) -> None:
        """Free the renderers."""
        for renderer in self._opengl_renderers.values():
            renderer.close()
        self._opengl_renderers.clear()
        if self._ray_renderer is not None:
            self._ray_renderer.close()
        self._ray_renderer = self._scene = None


def _compute_geom_reflectance(scene: VisualScene) -> F32:
    """Share of infrared light that each geom throws back: its brightest color's, linear; −1 for mirrors."""
    rgba = geom_colors(scene.model)
    reflectance = SRGB_TO_LINEAR[np.round(255.0 * rgba[:, :3].max(axis=1)).astype(int)]
    optics = make_optics_table(scene.compiled)
    is_textured = np.asarray(scene.model.geom_matid) >= 0
    if is_textured.any() and scene.model.ntex > 1:  # the darkness of a texture is not taken into account
        reflectance = np.where(is_textured, np.maximum(reflectance, 0.2), reflectance)
    return np.where(optics == MIRROR, np.float32(-1.0), np.where(optics == OPAQUE, reflectance, 1.0)).astype(np.float32)
