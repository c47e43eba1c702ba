"""Pictures by MuJoCo's OpenGL renderer: one pass for colour and depth, no multisampling, no shadows."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Any, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, RunError
from roboyard.simulation.render.camera import Camera
from roboyard.simulation.render.gl_probe import gl_platform
from roboyard.simulation.render.sky import Sky, paint_sky

NEAR, FAR = 0.02, 200.0  # clipping planes [m]
WHITE = 1.22  # light, straight on, at which a white surface that lamps meet at a slant is about white
LEAST_SUN = 0.3  # a sun keeps this much, or shapes would look flat


class GlRenderer:
    """Renderer by OpenGL, through EGL or OSMesa, without a screen.

    To be used and closed in the thread that made it: an OpenGL context belongs to its thread.

    Args:
        model: Compiled model.
        width: Of the pictures [px].
        height: [px].

    Raises:
        ConfigError: OpenGL does not work on this machine.
    """

    backend = "gl"

    def __init__(self, model: mujoco.MjModel, width: int, height: int) -> None:
        platform = gl_platform()
        if platform is None:
            raise ConfigError(
                "OpenGL without a screen does not work on this machine",
                valid="renderer rays; or install PyOpenGL, libegl1, libopengl0 and libgl1-mesa-dri (or libosmesa6)",
            )
        self.model, self.width, self.height, self.platform = model, width, height, platform
        self._thread = threading.get_ident()
        # Both are read by what is imported and called next, and by nothing before: importing mujoco chose nothing.
        os.environ["MUJOCO_GL"] = os.environ["PYOPENGL_PLATFORM"] = platform
        self._context: Any = _context(platform, width, height)
        self._context.make_current()
        quality = model.vis.quality
        before = quality.offsamples, model.vis.global_.offwidth, model.vis.global_.offheight
        quality.offsamples, model.vis.global_.offwidth, model.vis.global_.offheight = 0, width, height
        try:
            self._draw: Any = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        finally:
            quality.offsamples, model.vis.global_.offwidth, model.vis.global_.offheight = before
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._draw)
        self._draw.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._scene = mujoco.MjvScene(model, max(1000, 2 * model.ngeom + 100))
        for flag in (
            mujoco.mjtRndFlag.mjRND_SHADOW,
            mujoco.mjtRndFlag.mjRND_REFLECTION,
            mujoco.mjtRndFlag.mjRND_SKYBOX,
        ):
            self._scene.flags[flag] = 0
        self._sky = Sky.of(model)
        self._option, self._camera = mujoco.MjvOption(), mujoco.MjvCamera()
        self._view = mujoco.MjrRect(0, 0, width, height)
        self._colour, self._depth = np.empty((height, width, 3), np.uint8), np.empty((height, width), np.float32)

    def render(self, data: mujoco.MjData, camera: Camera) -> NDArray[np.uint8]:
        """Colour picture (height, width, 3) of the state in ``data`` (after ``mj_forward``)."""
        return self._take(data, camera)[0]

    def rgbd(self, data: mujoco.MjData, camera: Camera) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Colour picture, and depth (height, width) along the optical axis [m], 0 where nothing is."""
        colour, reversed_depth = self._take(data, camera)
        z = reversed_depth.astype(np.float64)  # 1 at the near plane, 0 at the far one
        depth = FAR - z * (FAR - NEAR) if camera.span is not None else NEAR * FAR / (NEAR + z * (FAR - NEAR))
        return colour, np.where(z > 0.0, depth, 0.0).astype(np.float32)

    def close(self) -> None:
        """Free context and buffers."""
        if self._context is None:
            return
        self._check_thread()
        self._context.make_current()
        self._draw.free()
        self._context.free()
        self._draw = self._context = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise RunError("an OpenGL renderer was used outside the thread that opened it", valid="open one there")

    def _take(self, data: mujoco.MjData, camera: Camera) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        if self._context is None:
            raise RunError("the renderer is closed")
        self._check_thread()
        self._context.make_current()
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self.model, data, self._option, None, self._camera, everything, self._scene)
        self._expose()
        rotation = camera.T_world_camera.rotation_matrix()
        half = 0.5 * self.height / camera.focal(self.height) * (1.0 if camera.span is not None else NEAR)
        for eye in self._scene.camera:  # both eyes of MuJoCo's stereo pair: it draws their middle
            eye.pos, eye.forward, eye.up = camera.T_world_camera.translation, rotation[:, 2], -rotation[:, 1]
            eye.frustum_near, eye.frustum_far = NEAR, FAR
            eye.frustum_bottom, eye.frustum_top = -half, half
            eye.frustum_center, eye.frustum_width = 0.0, half * self.width / self.height
            eye.orthographic = int(camera.span is not None)
        mujoco.mjr_render(self._view, self._scene, self._draw)
        mujoco.mjr_readPixels(self._colour, self._depth, self._view, self._draw)
        colour, depth = self._colour[::-1].copy(), self._depth[::-1]
        paint_sky(colour, depth <= 0.0, camera, self._sky)
        return colour, depth

    def _expose(self) -> None:
        """Dim the suns until what they light does not clip: worlds are written for renderers with a tone curve."""
        lamps = [self._scene.lights[i] for i in range(self._scene.nlight)]
        suns = [lamp for lamp in lamps if lamp.type == _DIRECTIONAL and not lamp.headlight]
        total = sum(float(max(sun.diffuse)) for sun in suns)
        around = sum(float(max(lamp.ambient)) for lamp in lamps)
        around += 0.7 * sum(float(max(lamp.diffuse)) for lamp in lamps if lamp.headlight)
        share = max(WHITE - around, LEAST_SUN) / max(total, 1e-9)
        for sun in suns if share < 1.0 else ():
            sun.diffuse[:] = sun.diffuse * share


_DIRECTIONAL = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL.value


def _context(platform: str, width: int, height: int) -> Any:
    if platform == "egl":
        from mujoco.egl import GLContext
    else:
        from mujoco.osmesa import GLContext
    return GLContext(width, height)
