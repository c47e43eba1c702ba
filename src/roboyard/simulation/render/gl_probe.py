"""Whether OpenGL works without a screen, found out by trying in another process.

An OpenGL library that is missing, half installed or of the wrong kind fails in ways a process does not always survive
or recover from: PyOpenGL settles on a platform once and for all, drivers crash.  So a child tries first.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from typing import Literal

Platform = Literal["egl", "osmesa"]

_TRIAL = """
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
def gl_platform() -> Platform | None:
    """The first of EGL and OSMesa that draws a picture here, or None; tried once a process.

    ``MUJOCO_GL`` set to one of them leaves only that one; set to ``disabled`` (or ``off``, ``0``), none.
    """
    wish = os.environ.get("MUJOCO_GL", "").lower().strip()
    if wish in ("disable", "disabled", "off", "false", "0") or find_spec("OpenGL") is None:
        return None
    platforms: tuple[Platform, ...] = ("egl", "osmesa")
    for platform in platforms:
        if wish in ("egl", "osmesa") and wish != platform:
            continue
        if os.environ.get("PYOPENGL_PLATFORM", platform).lower() == platform and _draws(platform):
            return platform
    return None


def _draws(platform: Platform) -> bool:
    # -P: nothing of the working directory may get in the way of the imports.
    command = [sys.executable, "-P", "-c", _TRIAL, platform]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and b"drawn" in done.stdout
