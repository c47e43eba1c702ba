"""The renderers that work on this machine, and `open_renderer`, which opens one of them.

Whether OpenGL works without a screen is tried in a child process. A missing, half installed or wrong OpenGL library
can crash the process that loads it, and PyOpenGL chooses its platform once for each process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from types import TracebackType
from typing import Literal, Protocol, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.rendering.cameras import RenderCamera

GlPlatform = Literal["egl", "osmesa"]

_TEST_SCRIPT = """
import os, sys
platform = sys.argv[1]
os.environ["MUJOCO_GL"] = os.environ["PYOPENGL_PLATFORM"] = platform
import mujoco, numpy
context = __import__("mujoco." + platform, fromlist=["GLContext"]).GLContext(16, 16)
context.make_current()
model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><light pos='0 0 3'/><geom size='1' rgba='1 0 0 1'/></worldbody></mujoco>"
)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
scene, camera = mujoco.MjvScene(model, 10), mujoco.MjvCamera()
camera.distance = 3
mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, camera, mujoco.mjtCatBit.mjCAT_ALL.value, scene)
draw = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, draw)
picture, view = numpy.zeros((16, 16, 3), numpy.uint8), mujoco.MjrRect(0, 0, 16, 16)
mujoco.mjr_render(view, scene, draw)
mujoco.mjr_readPixels(picture, None, view, draw)
assert picture[8, 8, 0] > picture[8, 8, 1] + 20, picture[8, 8]
print("drawn")
"""


@cache
def find_gl_platform() -> GlPlatform | None:
    """The first of EGL and OSMesa that draws a image here, or None; tried once a process.

    ``MUJOCO_GL`` set to one of them leaves only that one; set to ``disabled`` (or ``off``, ``0``), none.
    """
    requested = os.environ.get("MUJOCO_GL", "").lower().strip()
    if requested in ("disable", "disabled", "off", "false", "0") or find_spec("OpenGL") is None:
        return None
    platforms: tuple[GlPlatform, ...] = ("egl", "osmesa")
    for platform in platforms:
        if requested in ("egl", "osmesa") and requested != platform:
            continue
        if os.environ.get("PYOPENGL_PLATFORM", platform).lower() == platform and _can_render(platform):
            return platform
    return None


def _can_render(platform: GlPlatform) -> bool:
    # -P: nothing of the working directory may get in the way of the imports.
    command = [sys.executable, "-P", "-c", _TEST_SCRIPT, platform]
    try:
        result = subprocess.run(command, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0 and b"drawn" in result.stdout


Backend = Literal["auto", "gl", "rays"]
NO_OPENGL_ADVICE = "renderer rays; or install PyOpenGL, libegl1, libopengl0 and libgl1-mesa-dri (or libosmesa6)"


class Renderer(Protocol):
    """Takes images of a model in any of its states.

    Attributes:
        backend: "gl" or "rays".
        width: Of the images [px].
        height: [px].
    """

    backend: str
    width: int
    height: int

    def render(self, data: mujoco.MjData, camera: RenderCamera) -> NDArray[np.uint8]:
        """Color image (height, width, 3) of the state in ``data`` (after ``mj_forward``)."""
        ...

    def render_rgbd(self, data: mujoco.MjData, camera: RenderCamera) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Color image, and depth (height, width) along the optical axis [m], 0 where nothing is."""
        ...

    def close(self) -> None:
        """Free what the renderer holds; it takes no images any more."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def available_backend() -> Literal["gl", "rays"]:
    """The kind of renderer that ``open_renderer`` takes by itself: "gl" where OpenGL truly works, else "rays".

    The first call of a process tries OpenGL out in another process, which takes about a second; the answer is kept.
    """
    return "gl" if find_gl_platform() is not None else "rays"


def resolve_backend(backend: Backend) -> Literal["gl", "rays"]:
    """What ``backend`` comes to on this machine.

    Raises:
        ConfigError: It has no such name, or "gl" was asked for and does not work.
    """
    if backend not in ("auto", "gl", "rays"):
        raise ConfigError(f"unknown renderer {backend!r}", valid="auto, gl, rays")
    if backend == "gl" and find_gl_platform() is None:
        raise ConfigError("OpenGL without a screen does not work on this machine", valid=NO_OPENGL_ADVICE)
    return available_backend() if backend == "auto" else backend


def open_renderer(model: mujoco.MjModel, width: int, height: int, backend: Backend = "auto") -> Renderer:
    """A renderer for a compiled model.

    Args:
        model: Compiled model; its colors may change later, its geoms may not.
        width: Of the images [px].
        height: [px].
        backend: "gl": MuJoCo's OpenGL renderer, to be used only in the thread that opens it; "rays": ray casting on
            the CPU, which needs no OpenGL and looks the same on every machine; "auto": gl where it works.

    Raises:
        ConfigError: The size is no image's, the backend has no such name, or "gl" was asked for and does not work.
    """
    if not (1 <= width <= 8192 and 1 <= height <= 8192):
        raise ConfigError(f"an image of {width} × {height} pixels is not possible", valid="1 … 8192 each way")
    if resolve_backend(backend) == "gl":
        from roboyard.rendering.opengl import GlRenderer

        return GlRenderer(model, width, height)
    from roboyard.rendering.ray_renderer import RayRenderer

    return RayRenderer(model, width, height)
