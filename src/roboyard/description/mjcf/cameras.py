"""``<camera>``: those that are fixed to a body become cameras of its model."""

from __future__ import annotations

import math
from collections.abc import Iterable

import mujoco

from roboyard.description.camera_reading import MAX_EDGE, MAX_PIXELS
from roboyard.description.cameras import CameraSpec
from roboyard.description.mjcf.compiled import Compiled
from roboyard.description.naming import free_name
from roboyard.description.reading import Reading
from roboyard.description.sensors import Sensor
from roboyard.description.values import fault
from roboyard.geometry import SE3, Lens

RATE = 30.0
"""No camera of MJCF states one [Hz]."""
SIZE = (640, 480)
"""Of a camera that states none but the one pixel of MuJoCo's default."""
T_CAMERA_SENSOR = SE3((0.5, -0.5, 0.5, 0.5))
"""MuJoCo's cameras look along −z, with y up; ours along x, with z up."""
NEAR, FAR = 0.02, 100.0  # [m]


def read_cameras(reading: Reading, source: Compiled, bodies: Iterable[str]) -> list[Sensor]:
    """The cameras on the given links.

    Those of the world, those that turn after something by themselves, and those without perspective are findings.

    Args:
        reading: Takes findings.
        source: The compiled document.
        bodies: Names of the links that count.

    Raises:
        DescriptionError: a picture without pixels, or too large.
    """
    m, wanted = source.model, set(bodies)
    found: list[Sensor] = []
    taken: dict[str, int] = {}
    for number in range(m.ncam):
        link = source.bodies[int(m.cam_bodyid[number])]
        if link not in wanted:
            continue
        name = free_name(m.camera(number).name or "camera", taken)
        reason = _trouble(m, number)
        if reason:
            reading.note(source.root, f"the camera '{name}' has no effect here: {reason}")
            continue
        width, height = (int(pixels) for pixels in m.cam_resolution[number])
        if (width, height) == (1, 1):
            width, height = SIZE
            reading.note(source.root, f"the camera '{name}' has no resolution: {width} x {height} taken")
        if not (1 <= width <= MAX_EDGE and 1 <= height <= MAX_EDGE and width * height <= MAX_PIXELS):
            raise fault(
                f"camera '{name}' takes pictures of {width} × {height} pixels", source.root,
                f"1 to {MAX_EDGE} each way, at most {MAX_PIXELS} in all",
            )  # fmt: skip
        lens = _lens(m, number, width, height)
        outputs = int(m.cam_output[number])
        depth = bool(outputs & (mujoco.mjtCamOutBit.mjCAMOUT_DEPTH.value | mujoco.mjtCamOutBit.mjCAMOUT_DIST.value))
        spec = CameraSpec(
            colour=lens, depth=lens if depth else None, near=NEAR, far=FAR, depth_near=NEAR, depth_far=FAR
        )
        kind = "rgbd_camera" if depth else "camera"
        T = SE3(m.cam_quat[number], m.cam_pos[number]) @ T_CAMERA_SENSOR
        found.append(Sensor(name, kind, link, T, RATE, name, "", spec))
    return found


def _trouble(m: mujoco.MjModel, number: int) -> str:
    if int(m.cam_mode[number]) != mujoco.mjtCamLight.mjCAMLIGHT_FIXED.value:
        return "it turns after something by itself, which no real one does"
    if int(m.cam_projection[number]) != mujoco.mjtProjection.mjPROJ_PERSPECTIVE.value:
        return "it has no perspective"
    if m.cam_sensorsize[number].all() and m.cam_intrinsic[number][2:].any():
        return "its axis does not go through the middle of its picture"
    return ""


def _lens(m: mujoco.MjModel, number: int, width: int, height: int) -> Lens:
    size, intrinsic = m.cam_sensorsize[number], m.cam_intrinsic[number]
    if size.all():
        fx, fy = (float(intrinsic[i]) / float(size[i]) * pixels for i, pixels in enumerate((width, height)))
    else:
        fx = fy = 0.5 * height / math.tan(math.radians(0.5 * float(m.cam_fovy[number])))
    return Lens(width, height, fx, fy, 0.5 * (width - 1), 0.5 * (height - 1))
