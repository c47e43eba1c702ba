"""The renderers that work on this machine, and `open_renderer`, which opens one of them."""

from __future__ import annotations

from types import TracebackType
from typing import Literal, Protocol, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.rendering.cameras import RenderCamera
from roboyard.rendering.gl_platform import find_gl_platform

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
    """Return the backend that ``backend`` means on this machine.

    Raises:
        ConfigError: The backend does not exist, or "gl" was requested and does not work.
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
            the CPU, which needs no OpenGL and gives the same images on every machine; "auto": gl where it works.

    Raises:
        ConfigError: The size is out of range, the backend does not exist, or "gl" was requested and does not work.
    """
    if not (1 <= width <= 8192 and 1 <= height <= 8192):
        raise ConfigError(f"an image of {width} × {height} pixels is not possible", valid="1 … 8192 each way")
    if resolve_backend(backend) == "gl":
        from roboyard.rendering.opengl import GlRenderer

        return GlRenderer(model, width, height)
    from roboyard.rendering.ray_renderer import RayRenderer

    return RayRenderer(model, width, height)
