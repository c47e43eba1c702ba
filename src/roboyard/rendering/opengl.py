"""Rendering by MuJoCo's OpenGL renderer: one pass for color and depth, without multisampling and shadows."""

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
from roboyard.rendering.cameras import RenderCamera
from roboyard.rendering.float32 import ExampleArguments
from roboyard.rendering.geom_triangles import HORIZON_DISTANCE, VISIBLE_GROUPS, geom_colors
from roboyard.rendering.gl_platform import find_gl_platform
from roboyard.rendering.lighting import Sky, draw_sky, fill_sky_pixels

MIN_FAR_CLIP_DISTANCE = 200.0
"""The far clipping plane is at least this far away, and behind all visible geoms [m]."""
MAX_FACES = 25_000  # of all curved shapes together, which take little time
MIN_EDGES, MAX_EDGES = 28, 128  # edges of a circle; with the most a ball of half a meter is off by 0.2 mm
WHITE_LEVEL = 1.22  # light, straight on, at which a white surface that lights meet at a slant is about white
MIN_SUN_FRACTION = 0.3  # a sun keeps this much, or shapes would look flat


class GlRenderer:
    """Renderer by OpenGL, through EGL or OSMesa, without a screen.

    To be used and closed in the thread that made it: an OpenGL context belongs to its thread.

    Args:
        model: Compiled model.
        width: Of the images [px].
        height: [px].

    Raises:
        ConfigError: OpenGL does not work on this machine.
    """

    backend = "gl"

    def __init__(self, model: mujoco.MjModel, width: int, height: int) -> None:
        expect_kernels(_decode_geom_ids, _flip_and_linearize, fill_sky_pixels)
        platform = find_gl_platform()
        if platform is None:
            raise ConfigError(
                "OpenGL without a screen does not work on this machine",
                valid="renderer rays; or install PyOpenGL, libegl1, libopengl0 and libgl1-mesa-dri (or libosmesa6)",
            )
        self.model, self.width, self.height, self.platform = model, width, height, platform
        self._thread = threading.get_ident()
        # Both are read by what is imported and called next, and by nothing before: importing mujoco chose nothing.
        os.environ["MUJOCO_GL"] = os.environ["PYOPENGL_PLATFORM"] = platform
        self._context: Any = _make_context(platform, width, height)
        self._context.make_current()
        quality = model.vis.quality
        before = quality.offsamples, model.vis.global_.offwidth, model.vis.global_.offheight
        round_before = quality.numslices, quality.numstacks
        edges = _count_circle_edges(model)
        quality.numslices, quality.numstacks = edges, edges // 2
        quality.offsamples, model.vis.global_.offwidth, model.vis.global_.offheight = 0, width, height
        try:
            self._render_context: Any = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        finally:
            quality.offsamples, model.vis.global_.offwidth, model.vis.global_.offheight = before
            quality.numslices, quality.numstacks = round_before
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._render_context)
        self._render_context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._infinite_planes = _find_infinite_planes(model)
        max_geoms = max(1000, 2 * model.ngeom + 100) + 4 * len(self._infinite_planes)
        self._scene = mujoco.MjvScene(model, max_geoms)
        for flag in (
            mujoco.mjtRndFlag.mjRND_SHADOW,
            mujoco.mjtRndFlag.mjRND_REFLECTION,
            mujoco.mjtRndFlag.mjRND_SKYBOX,
        ):
            self._scene.flags[flag] = 0
        self._far_clip_distance = MIN_FAR_CLIP_DISTANCE
        self._visible_geoms = np.flatnonzero(np.isin(model.geom_group, VISIBLE_GROUPS))
        self._visible_radii = _bounding_radii(model)[self._visible_geoms]
        self._sky = Sky.from_model(model)
        self._transparent_geoms = frozenset(np.flatnonzero(geom_colors(model)[:, 3] < 1.0).tolist())
        self._option, self._camera = mujoco.MjvOption(), mujoco.MjvCamera()
        self._viewport = mujoco.MjrRect(0, 0, width, height)
        self._color, self._depth = np.empty((height, width, 3), np.uint8), np.empty((height, width), np.float32)

    def render(self, data: mujoco.MjData, camera: RenderCamera) -> NDArray[np.uint8]:
        """Color image (height, width, 3) of the state in ``data`` (after ``mj_forward``)."""
        return self._render_and_read(data, camera)[0]

    def render_rgbd(self, data: mujoco.MjData, camera: RenderCamera) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Color image, and depth (height, width) along the optical axis [m], 0 where nothing is."""
        return self._render_and_read(data, camera)

    def render_depth(self, data: mujoco.MjData, camera: RenderCamera) -> NDArray[np.float32]:
        """Depth alone, as `rgbd` gives it."""
        self._draw_scene(data, camera)
        mujoco.mjr_readPixels(None, self._depth, self._viewport, self._render_context)
        return self._flip_images(camera)[1]

    def render_depth_and_geoms(
        self, data: mujoco.MjData, camera: RenderCamera
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Depth, and the number of the geom that each pixel shows, −1 where nothing is; in one pass, without lights."""
        self._update_scene(data, camera)
        geom_ids = [geom.objid if geom.objtype == _GEOM else -1 for geom in self._scene.geoms[: self._scene.ngeom]]
        for index, geom_id in enumerate(geom_ids):
            if geom_id in self._transparent_geoms:  # what can be looked through hides nothing, as in the other passes
                self._scene.geoms[index].segid = -1
        self._scene.flags[_SEGMENT] = self._scene.flags[_IDCOLOR] = 1
        mujoco.mjr_render(self._viewport, self._scene, self._render_context)
        self._scene.flags[_SEGMENT] = self._scene.flags[_IDCOLOR] = 0
        mujoco.mjr_readPixels(self._color, self._depth, self._viewport, self._render_context)
        geoms = np.empty(self._depth.shape, np.int32)
        # Colors count the shapes of the scene from 1; 0 is the background.
        _decode_geom_ids(self._color, np.array([-1, *geom_ids], np.int32), geoms)
        return self._flip_images(camera)[1], geoms

    def close(self) -> None:
        """Free context and buffers."""
        if self._context is None:
            return
        self._check_thread()
        self._context.make_current()
        self._render_context.free()
        self._context.free()
        self._render_context = self._context = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise RunError("an OpenGL renderer was used outside the thread that opened it", valid="open one there")

    def _render_and_read(
        self, data: mujoco.MjData, camera: RenderCamera
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        self._draw_scene(data, camera)
        mujoco.mjr_readPixels(self._color, self._depth, self._viewport, self._render_context)
        color, depth, empty = self._flip_images(camera)
        draw_sky(color, empty, camera, self._sky)
        return color, depth

    def _flip_images(self, camera: RenderCamera) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_]]:
        """What was read, from above: color, depth, and where nothing is."""
        color, depth = np.empty_like(self._color), np.empty_like(self._depth)
        empty = np.empty(depth.shape, np.bool_)
        _flip_and_linearize(
            self._color,
            self._depth,
            camera.near,
            self._far_clip_distance,
            camera.orthographic_height is not None,
            color,
            depth,
            empty,
        )
        return color, depth, empty

    def _draw_scene(self, data: mujoco.MjData, camera: RenderCamera) -> None:
        self._update_scene(data, camera)
        mujoco.mjr_render(self._viewport, self._scene, self._render_context)

    def _update_scene(self, data: mujoco.MjData, camera: RenderCamera) -> None:
        """Put the scene before the camera."""
        if self._context is None:
            raise RunError("the renderer is closed")
        self._check_thread()
        self._context.make_current()
        for eye in self._scene.camera:  # MuJoCo centers infinite planes around the scene's cameras before it moves them
            eye.pos = camera.T_world_camera.translation
        all_categories = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self.model, data, self._option, None, self._camera, all_categories, self._scene)
        self._extend_infinite_planes()
        self._limit_sun_brightness()
        self._far_clip_distance = self._compute_far_clip_distance(data, camera)
        rotation, near = camera.T_world_camera.rotation_matrix(), camera.near
        intrinsics, plane_distance = (
            camera.compute_intrinsics(self.width, self.height),
            1.0 if camera.orthographic_height is not None else near,
        )
        left, right = (
            -intrinsics.cx / intrinsics.fx * plane_distance,
            (self.width - intrinsics.cx) / intrinsics.fx * plane_distance,
        )
        for eye in self._scene.camera:  # both eyes of MuJoCo's stereo pair: it draws their middle
            eye.pos, eye.forward, eye.up = camera.T_world_camera.translation, rotation[:, 2], -rotation[:, 1]
            eye.frustum_near, eye.frustum_far = near, self._far_clip_distance
            eye.frustum_bottom = -(self.height - intrinsics.cy) / intrinsics.fy * plane_distance
            eye.frustum_top = intrinsics.cy / intrinsics.fy * plane_distance
            eye.frustum_center, eye.frustum_width = 0.5 * (left + right), 0.5 * (right - left)
            eye.orthographic = int(camera.orthographic_height is not None)

    def _compute_far_clip_distance(self, data: mujoco.MjData, camera: RenderCamera) -> float:
        """Return the distance of the point of visible geoms that is farthest from the camera, or the minimum [m]."""
        offsets = data.geom_xpos[self._visible_geoms] - camera.T_world_camera.translation
        distances = np.linalg.norm(offsets, axis=1) + self._visible_radii
        return float(distances.max(initial=MIN_FAR_CLIP_DISTANCE))

    def _extend_infinite_planes(self) -> None:
        """Surround infinite planes with flat boxes up to the horizon.

        MuJoCo draws an infinite plane as a square of some hundred meters. A larger square would not do: OpenGL lights
        the corners of its cells alone, and lamps would vanish between them.
        """
        if not self._infinite_planes:
            return
        for plane in [self._scene.geoms[i] for i in range(self._scene.ngeom)]:
            if plane.objtype != _GEOM or plane.objid not in self._infinite_planes:
                continue
            colors = np.append(np.asarray(plane.rgba[:3]) * self._infinite_planes[plane.objid], plane.rgba[3])
            half = float(self.model.vis.map.zfar * self.model.stat.extent)
            size = np.asarray(self.model.geom_size[plane.objid][:2], dtype=np.float64)
            rotation, center = np.asarray(plane.mat, dtype=np.float64).reshape(3, 3), np.asarray(plane.pos)
            for low, high in _frame_rectangles(size, half):
                if self._scene.ngeom >= self._scene.maxgeom:
                    return
                box = self._scene.geoms[self._scene.ngeom]
                box_center = rotation @ np.append((low + high) / 2, -_SHEET_HALF_THICKNESS) + center
                half_sizes = np.append((high - low) / 2, _SHEET_HALF_THICKNESS)
                mujoco.mjv_initGeom(box, _BOX, half_sizes, box_center, rotation.ravel(), colors.astype(np.float32))
                box.objtype, box.objid, box.segid = plane.objtype, plane.objid, self._scene.ngeom
                box.category = plane.category
                box.emission, box.specular, box.shininess = plane.emission, plane.specular, plane.shininess
                self._scene.ngeom += 1

    def _limit_sun_brightness(self) -> None:
        """Dim the suns until what they light does not clip: worlds are written for renderers with a tone curve."""
        lights = [self._scene.lights[i] for i in range(self._scene.nlight)]
        suns = [light for light in lights if light.type == _DIRECTIONAL and not light.headlight]
        total = sum(float(max(sun.diffuse)) for sun in suns)
        ambient = sum(float(max(light.ambient)) for light in lights)
        ambient += 0.7 * sum(float(max(light.diffuse)) for light in lights if light.headlight)
        scale = max(WHITE_LEVEL - ambient, MIN_SUN_FRACTION) / max(total, 1e-9)
        for sun in suns if scale < 1.0 else ():
            sun.diffuse[:] = sun.diffuse * scale


def _bounding_radii(model: mujoco.MjModel) -> NDArray[np.float64]:
    """Return the radii (geoms,) of spheres around the geoms' origins [m]; infinite planes reach the horizon."""
    radii = np.array(model.geom_rbound, dtype=np.float64)
    for geom in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE).tolist():
        half_size = np.asarray(model.geom_size[geom][:2], dtype=np.float64)
        radii[geom] = np.hypot(*np.where(half_size > 0.0, half_size, HORIZON_DISTANCE))
    return radii


def _find_infinite_planes(model: mujoco.MjModel) -> dict[int, NDArray[np.float64]]:
    """Return visible planes that have no size in some direction, with the mean color (3,) of their texture, 0 … 1."""
    mean_colors: dict[int, NDArray[np.float64]] = {}
    role = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
    for geom in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE).tolist():
        if (model.geom_size[geom][:2] > 0.0).all() or model.geom_group[geom] not in VISIBLE_GROUPS:
            continue
        material = int(model.geom_matid[geom])
        texture = int(np.asarray(model.mat_texid).reshape(model.nmat, -1)[material, role]) if material >= 0 else -1
        mean_colors[geom] = np.ones(3)
        if texture >= 0 and int(model.tex_nchannel[texture]) >= 3:
            start, channels = int(model.tex_adr[texture]), int(model.tex_nchannel[texture])
            count = int(model.tex_height[texture]) * int(model.tex_width[texture]) * channels
            pixels = np.asarray(model.tex_data[start : start + count]).reshape(-1, channels)
            mean_colors[geom] = pixels[:, :3].mean(axis=0) / 255.0
    return mean_colors


def _frame_rectangles(size: NDArray[np.float64], half: float) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return lowest and highest corner (2,) of the rectangles between a plane as MuJoCo draws it and the horizon.

    Args:
        size: (2,) half sizes of the plane, 0: infinite [m].
        half: Half size that MuJoCo draws in place of an infinite one [m].
    """
    inner = np.where(size > 0.0, size, half)
    outer = np.where(size > 0.0, size, max(half, HORIZON_DISTANCE))
    rectangles = []
    if outer[0] > inner[0]:
        rectangles += [(np.array([-outer[0], -outer[1]]), np.array([-inner[0], outer[1]]))]
        rectangles += [(np.array([inner[0], -outer[1]]), outer)]
    if outer[1] > inner[1]:
        rectangles += [(np.array([-inner[0], -outer[1]]), np.array([inner[0], -inner[1]]))]
        rectangles += [(np.array([-inner[0], inner[1]]), np.array([inner[0], outer[1]]))]
    return rectangles


def _count_circle_edges(model: mujoco.MjModel) -> int:
    """Return the number of edges of circles: the fewer curved shapes there are, the more edges they can have."""
    geom_types = mujoco.mjtGeom
    curved_types = (
        geom_types.mjGEOM_SPHERE,
        geom_types.mjGEOM_CAPSULE,
        geom_types.mjGEOM_ELLIPSOID,
        geom_types.mjGEOM_CYLINDER,
    )
    count = int(np.isin(model.geom_type, [int(geom_type) for geom_type in curved_types]).sum())
    return min(MAX_EDGES, max(MIN_EDGES, 2 * int(math.sqrt(2.0 * MAX_FACES / max(count, 1)) / 2.0)))


def _example_flip_images() -> ExampleArguments:
    color, depth = np.zeros((1, 1, 3), np.uint8), np.zeros((1, 1), np.float32)
    yield color, depth, 0.1, 1.0, False, color, depth, np.zeros((1, 1), np.bool_)


@kernel(examples=_example_flip_images, error_model="numpy")
def _flip_and_linearize(
    color: NDArray[np.uint8],
    reversed_depth: NDArray[np.float32],
    near: float,
    far: float,
    is_orthographic: bool,
    out: NDArray[np.uint8],
    depth: NDArray[np.float32],
    empty: NDArray[np.bool_],
) -> None:
    """OpenGL's rows from below as rows from above, and its depth (1 at the near plane, 0 at the far one) in meters."""
    height, width = reversed_depth.shape
    for row in range(height):
        source_row = height - 1 - row
        for column in range(width):
            z = np.float64(reversed_depth[source_row, column])
            distance = far - z * (far - near) if is_orthographic else near * far / (near + z * (far - near))
            empty[row, column] = z <= 0.0
            depth[row, column] = distance if z > 0.0 else 0.0
            for c in range(3):
                out[row, column, c] = color[source_row, column, c]


@kernel(
    examples=lambda: [(np.zeros((1, 1, 3), np.uint8), np.zeros(1, np.int32), np.zeros((1, 1), np.int32))],
    error_model="numpy",
)
def _decode_geom_ids(encoded: NDArray[np.uint8], geom_ids: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """Numbers that OpenGL's rows from below hold as colors, by their names, from above."""
    height, width = out.shape
    for row in range(height):
        for column in range(width):
            red, green, blue = encoded[height - 1 - row, column]
            number = np.int64(red) + 256 * np.int64(green) + 65536 * np.int64(blue)
            out[row, column] = geom_ids[number] if number < len(geom_ids) else -1


_SEGMENT, _IDCOLOR = mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR
_GEOM = mujoco.mjtObj.mjOBJ_GEOM.value
_BOX = mujoco.mjtGeom.mjGEOM_BOX.value
_SHEET_HALF_THICKNESS = 0.05
_DIRECTIONAL = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL.value


def _make_context(platform: str, width: int, height: int) -> Any:
    if platform == "egl":
        from mujoco.egl import GLContext
    else:
        from mujoco.osmesa import GLContext
    return GLContext(width, height)
