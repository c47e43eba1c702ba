"""``<camera>``: those that are fixed to a body become cameras of its model."""

from __future__ import annotations

import math
from collections.abc import Iterable

import mujoco

from roboyard.description.camera_reading import MAX_IMAGE_SIDE, MAX_PIXELS
from roboyard.description.cameras import CameraSpec
from roboyard.description.mjcf.compiled import CompiledMjcf
from roboyard.description.naming import make_unique_name
from roboyard.description.reading import ReaderContext
from roboyard.description.sensors import Sensor
from roboyard.description.values import error_at
from roboyard.geometry import SE3, CameraModel

CAMERA_RATE = 30.0
"""No camera of MJCF states one [Hz]."""
CAMERA_SIZE = (640, 480)
"""Of a camera that states none but the one pixel of MuJoCo's default."""
T_CAMERA_SENSOR = SE3((0.5, -0.5, 0.5, 0.5))
"""MuJoCo's cameras look along −z, with y up; ours along x, with z up."""
CAMERA_NEAR, CAMERA_FAR = 0.02, 100.0  # [m]


def read_cameras(context: ReaderContext, compiled: CompiledMjcf, bodies: Iterable[str]) -> list[Sensor]:
    """The cameras on the given links.

    Those of the world, those that turn after something by themselves, and those without perspective are findings.

    Args:
        context: Takes findings.
        compiled: The compiled document.
        bodies: Names of the links that count.

    Raises:
        DescriptionError: a picture without pixels, or too large.
    """
    m, link_names = compiled.model, set(bodies)
    cameras: list[Sensor] = []
    used_names: dict[str, int] = {}
    for number in range(m.ncam):
        link = compiled.bodies[int(m.cam_bodyid[number])]
        if link not in link_names:
            continue
        name = make_unique_name(m.camera(number).name or "camera", used_names)
        reason = _unsupported_reason(m, number)
        if reason:
            context.warn(compiled.root, f"the camera '{name}' has no effect here: {reason}")
            continue
        width, height = (int(pixels) for pixels in m.cam_resolution[number])
        if (width, height) == (1, 1):
            width, height = CAMERA_SIZE
            context.warn(compiled.root, f"the camera '{name}' has no resolution: {width} x {height} taken")
        if not (1 <= width <= MAX_IMAGE_SIDE and 1 <= height <= MAX_IMAGE_SIDE and width * height <= MAX_PIXELS):
            raise error_at(
                f"camera '{name}' takes pictures of {width} × {height} pixels", compiled.root,
                f"1 to {MAX_IMAGE_SIDE} each way, at most {MAX_PIXELS} in all",
            )  # fmt: skip
        lens = _read_lens(m, number, width, height)
        outputs = int(m.cam_output[number])
        depth = bool(outputs & (mujoco.mjtCamOutBit.mjCAMOUT_DEPTH.value | mujoco.mjtCamOutBit.mjCAMOUT_DIST.value))
        spec = CameraSpec(
            color=lens,
            depth=lens if depth else None,
            near=CAMERA_NEAR,
            far=CAMERA_FAR,
            depth_near=CAMERA_NEAR,
            depth_far=CAMERA_FAR,
        )
        kind = "rgbd_camera" if depth else "camera"
        T = SE3(m.cam_quat[number], m.cam_pos[number]) @ T_CAMERA_SENSOR
        cameras.append(Sensor(name, kind, link, T, CAMERA_RATE, name, "", spec))
    return cameras


def _unsupported_reason(m: mujoco.MjModel, number: int) -> str:
    if int(m.cam_mode[number]) != mujoco.mjtCamLight.mjCAMLIGHT_FIXED.value:
        return "it turns after something by itself, which no real one does"
    if int(m.cam_projection[number]) != mujoco.mjtProjection.mjPROJ_PERSPECTIVE.value:
        return "it has no perspective"
    if m.cam_sensorsize[number].all() and m.cam_intrinsic[number][2:].any():
        return "its axis does not go through the middle of its picture"
    return ""


def _read_lens(m: mujoco.MjModel, number: int, width: int, height: int) -> CameraModel:
    size, intrinsic = m.cam_sensorsize[number], m.cam_intrinsic[number]
    if size.all():
        fx, fy = (float(intrinsic[i]) / float(size[i]) * pixels for i, pixels in enumerate((width, height)))
    else:
        fx = fy = 0.5 * height / math.tan(math.radians(0.5 * float(m.cam_fovy[number])))
    return CameraModel(width, height, fx, fy, 0.5 * (width - 1), 0.5 * (height - 1))
