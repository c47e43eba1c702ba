"""The OpenGL platform (EGL or OSMesa) that renders without a screen on this machine.

Whether OpenGL works without a screen is tried in a child process. A missing, half installed or wrong OpenGL library
can crash the process that loads it, and PyOpenGL chooses its platform once for each process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from typing import Literal

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
    """The first of EGL and OSMesa that renders an image on this machine, or None; tried once a process.

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
