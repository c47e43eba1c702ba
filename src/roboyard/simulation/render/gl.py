"""Pictures by MuJoCo's OpenGL renderer: one pass for colour and depth, no multisampling, no shadows."""

from __future__ import annotations

import math
import os
import threading
from types import TracebackType
from typing import Any, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.errors import ConfigError, RunError
from roboyard.simulation.render.bodies import geom_colours
from roboyard.simulation.render.camera import Camera
from roboyard.simulation.render.gl_probe import gl_platform
from roboyard.simulation.render.single import Cases
from roboyard.simulation.render.sky import Sky, _paint, paint_sky

FAR = 200.0  # clipping plane [m]
FACES = 25_000  # of all round things together: as many as cost little
FEWEST, MOST = 28, 128  # edges of a circle; with the most a ball of half a metre is off by 0.2 mm
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
        expect_kernels(_name, _turn, _paint)
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
        round_before = quality.numslices, quality.numstacks
        edges = _edges(model)
        quality.numslices, quality.numstacks = edges, edges // 2
        quality.offsamples, model.vis.global_.offwidth, model.vis.global_.offheight = 0, width, height
        try:
            self._draw: Any = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        finally:
            quality.offsamples, model.vis.global_.offwidth, model.vis.global_.offheight = before
            quality.numslices, quality.numstacks = round_before
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
        self._clear = frozenset(np.flatnonzero(geom_colours(model)[:, 3] < 1.0).tolist())
        self._option, self._camera = mujoco.MjvOption(), mujoco.MjvCamera()
        self._view = mujoco.MjrRect(0, 0, width, height)
        self._colour, self._depth = np.empty((height, width, 3), np.uint8), np.empty((height, width), np.float32)

    def render(self, data: mujoco.MjData, camera: Camera) -> NDArray[np.uint8]:
        """Colour picture (height, width, 3) of the state in ``data`` (after ``mj_forward``)."""
        return self._take(data, camera)[0]

    def rgbd(self, data: mujoco.MjData, camera: Camera) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Colour picture, and depth (height, width) along the optical axis [m], 0 where nothing is."""
        return self._take(data, camera)

    def depth(self, data: mujoco.MjData, camera: Camera) -> NDArray[np.float32]:
        """Depth alone, as `rgbd` gives it."""
        self._shoot(data, camera)
        mujoco.mjr_readPixels(None, self._depth, self._view, self._draw)
        return self._turned(camera)[1]

    def depth_and_geoms(self, data: mujoco.MjData, camera: Camera) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Depth, and the number of the geom that each pixel shows, −1 where nothing is; in one pass, without lamps."""
        self._aim(data, camera)
        names = [geom.objid if geom.objtype == _GEOM else -1 for geom in self._scene.geoms[: self._scene.ngeom]]
        for place, name in enumerate(names):
            if name in self._clear:  # what can be looked through hides nothing, as in the other passes
                self._scene.geoms[place].segid = -1
        self._scene.flags[_SEGMENT] = self._scene.flags[_IDCOLOR] = 1
        mujoco.mjr_render(self._view, self._scene, self._draw)
        self._scene.flags[_SEGMENT] = self._scene.flags[_IDCOLOR] = 0
        mujoco.mjr_readPixels(self._colour, self._depth, self._view, self._draw)
        geoms = np.empty(self._depth.shape, np.int32)
        # Colours count the shapes of the scene from 1; 0 is the background.
        _name(self._colour, np.array([-1, *names], np.int32), geoms)
        return self._turned(camera)[1], geoms

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
        self._shoot(data, camera)
        mujoco.mjr_readPixels(self._colour, self._depth, self._view, self._draw)
        colour, depth, empty = self._turned(camera)
        paint_sky(colour, empty, camera, self._sky)
        return colour, depth

    def _turned(self, camera: Camera) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_]]:
        """What was read, from above: colour, depth, and where nothing is."""
        colour, depth = np.empty_like(self._colour), np.empty_like(self._depth)
        empty = np.empty(depth.shape, np.bool_)
        _turn(self._colour, self._depth, camera.near, FAR, camera.span is not None, colour, depth, empty)
        return colour, depth, empty

    def _shoot(self, data: mujoco.MjData, camera: Camera) -> None:
        self._aim(data, camera)
        mujoco.mjr_render(self._view, self._scene, self._draw)

    def _aim(self, data: mujoco.MjData, camera: Camera) -> None:
        """Put the scene before the camera."""
        if self._context is None:
            raise RunError("the renderer is closed")
        self._check_thread()
        self._context.make_current()
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self.model, data, self._option, None, self._camera, everything, self._scene)
        self._expose()
        rotation, near = camera.T_world_camera.rotation_matrix(), camera.near
        window, plane = camera.windowed(self.width, self.height), 1.0 if camera.span is not None else near
        left, right = -window.cx / window.fx * plane, (self.width - window.cx) / window.fx * plane
        for eye in self._scene.camera:  # both eyes of MuJoCo's stereo pair: it draws their middle
            eye.pos, eye.forward, eye.up = camera.T_world_camera.translation, rotation[:, 2], -rotation[:, 1]
            eye.frustum_near, eye.frustum_far = near, FAR
            eye.frustum_bottom = -(self.height - window.cy) / window.fy * plane
            eye.frustum_top = window.cy / window.fy * plane
            eye.frustum_center, eye.frustum_width = 0.5 * (left + right), 0.5 * (right - left)
            eye.orthographic = int(camera.span is not None)

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


def _edges(model: mujoco.MjModel) -> int:
    """Edges of circles: the fewer round things there are, the rounder they can be."""
    kinds = mujoco.mjtGeom
    round_ones = (kinds.mjGEOM_SPHERE, kinds.mjGEOM_CAPSULE, kinds.mjGEOM_ELLIPSOID, kinds.mjGEOM_CYLINDER)
    count = int(np.isin(model.geom_type, [int(kind) for kind in round_ones]).sum())
    return min(MOST, max(FEWEST, 2 * int(math.sqrt(2.0 * FACES / max(count, 1)) / 2.0)))


def _turn_examples() -> Cases:
    colour, depth = np.zeros((1, 1, 3), np.uint8), np.zeros((1, 1), np.float32)
    yield colour, depth, 0.1, 1.0, False, colour, depth, np.zeros((1, 1), np.bool_)


@kernel(examples=_turn_examples, error_model="numpy")
def _turn(
    colour: NDArray[np.uint8],
    reversed_depth: NDArray[np.float32],
    near: float,
    far: float,
    parallel: bool,
    out: NDArray[np.uint8],
    depth: NDArray[np.float32],
    empty: NDArray[np.bool_],
) -> None:
    """OpenGL's rows from below as rows from above, and its depth (1 at the near plane, 0 at the far one) in metres."""
    height, width = reversed_depth.shape
    for row in range(height):
        other = height - 1 - row
        for column in range(width):
            z = np.float64(reversed_depth[other, column])
            found = far - z * (far - near) if parallel else near * far / (near + z * (far - near))
            empty[row, column] = z <= 0.0
            depth[row, column] = found if z > 0.0 else 0.0
            for c in range(3):
                out[row, column, c] = colour[other, column, c]


@kernel(
    examples=lambda: [(np.zeros((1, 1, 3), np.uint8), np.zeros(1, np.int32), np.zeros((1, 1), np.int32))],
    error_model="numpy",
)
def _name(coded: NDArray[np.uint8], names: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """Numbers that OpenGL's rows from below hold as colours, by their names, from above."""
    height, width = out.shape
    for row in range(height):
        for column in range(width):
            red, green, blue = coded[height - 1 - row, column]
            number = np.int64(red) + 256 * np.int64(green) + 65536 * np.int64(blue)
            out[row, column] = names[number] if number < len(names) else -1


_SEGMENT, _IDCOLOR = mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR
_GEOM = mujoco.mjtObj.mjOBJ_GEOM.value
_DIRECTIONAL = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL.value


def _context(platform: str, width: int, height: int) -> Any:
    if platform == "egl":
        from mujoco.egl import GLContext
    else:
        from mujoco.osmesa import GLContext
    return GLContext(width, height)
