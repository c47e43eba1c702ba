"""Sensors and cameras of MJCF; range finders that fan out from one point become one lidar.

An IMU has the name of its site.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.camera_reader import MAX_IMAGE_SIDE, MAX_PIXELS
from roboyard.description.mjcf.compile import CompiledMjcf
from roboyard.description.names import make_unique_name
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensors import (
    DEFAULT_UPDATE_RATES,
    CameraSpec,
    ContactSpec,
    EncoderSpec,
    GroundTruthSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    Sensor,
    SensorSpec,
    ThreeAxisSpec,
)
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at
from roboyard.geometry import SE3, CameraModel

_TOLERANCE = 1e-6
Rangefinder = tuple[str, SE3, tuple[float, float, float]]
"""Link, pose in it (the ray runs along z), and the values that must be equal within a fan: cut-off, noise, interval."""


@dataclass(frozen=True, slots=True)
class RayFan:
    """Rays at equal angles about the lidar's z, with the angle 0 along its x [rad]."""

    T_link_lidar: SE3
    angle_min: float
    angle_max: float


def group_rangefinders(rangefinders: Sequence[Rangefinder]) -> list[tuple[list[int], RayFan]]:
    """Group range finders into fans: return the indices of each group, ordered by angle, and its fan."""
    groups: dict[object, list[int]] = {}
    for number, (link, T, settings) in enumerate(rangefinders):
        origin_key = tuple(np.round(T.translation / _TOLERANCE).astype(np.int64).tolist())
        groups.setdefault((link, origin_key, settings), []).append(number)
    ray_fans: list[tuple[list[int], RayFan]] = []
    for group in groups.values():
        rays = np.array([rangefinders[number][1].rotation_matrix()[:, 2] for number in group])
        fan = _fit_ray_fan(rays, rangefinders[group[0]][1].translation) if len(group) > 1 else None
        if fan is None:
            ray_fans += [([number], _single_ray(rangefinders[number][1])) for number in group]
        else:
            order, one = fan
            ray_fans.append(([group[index] for index in order], one))
    return ray_fans


def _single_ray(T_link_ray: SE3) -> RayFan:
    return RayFan(T_link_ray @ SE3.from_xyz_rpy(rpy=(0.0, -math.pi / 2, 0.0)), 0.0, 0.0)


def _fit_ray_fan(rays: NDArray[np.float64], origin: NDArray[np.float64]) -> tuple[list[int], RayFan] | None:
    """Return the order of the rays and their fan; None if they are not in a plane or not evenly spaced."""
    _, _, axes = np.linalg.svd(rays, full_matrices=True)
    normal = axes[2]
    if np.abs(rays @ normal).max() > _TOLERANCE:
        return None
    if normal[int(np.argmax(np.abs(normal)))] < 0.0:
        normal = -normal  # upwards, if the fan is roughly level
    forward = np.array([1.0, 0.0, 0.0]) - normal[0] * normal
    forward = forward / np.linalg.norm(forward) if np.linalg.norm(forward) > 0.1 else rays[0]
    angles = np.arctan2(rays @ np.cross(normal, forward), rays @ forward)
    order = np.argsort(angles, kind="stable")
    gaps = np.diff(angles[order], append=angles[order[0]] + 2.0 * math.pi)
    last_rays = (int(np.argmax(gaps)), int(np.argmin(gaps)))  # almost a full turn: it ends at the smallest gap
    if gaps[last_rays[0]] <= gaps[last_rays[1]] + _TOLERANCE:
        last_rays = (-1, -1)  # a full turn: it starts behind
    for last_ray in last_rays:
        shifted = np.roll(order, -(last_ray + 1))
        sorted_angles = np.unwrap(angles[shifted])
        steps = np.diff(sorted_angles)
        if steps.min() >= _TOLERANCE and np.ptp(steps) <= _TOLERANCE:
            order = shifted
            break
    else:
        return None
    if sorted_angles[0] > math.pi or sorted_angles[0] < -math.pi - _TOLERANCE:
        sorted_angles -= 2.0 * math.pi * round(float(sorted_angles[0]) / (2.0 * math.pi))
    R = np.column_stack([forward, np.cross(normal, forward), normal])
    T_link_lidar = SE3.from_rotation_matrix(R, origin)
    return order.tolist(), RayFan(T_link_lidar, float(sorted_angles[0]), float(sorted_angles[-1]))


CAMERA_RATE = 30.0
"""Rate of cameras, which MJCF does not state [Hz]."""
CAMERA_SIZE = (640, 480)
"""Image size of a camera with MuJoCo's default of one pixel."""
T_CAMERA_SENSOR = SE3((0.5, -0.5, 0.5, 0.5))
"""Rotation from MuJoCo's camera frame (looks along −z, with y up) to the sensor frame (along x, with z up)."""
CAMERA_NEAR, CAMERA_FAR = 0.02, 100.0  # [m]


def read_cameras(context: ReaderContext, compiled: CompiledMjcf, bodies: Iterable[str]) -> list[Sensor]:
    """Read the cameras on the given links.

    Cameras of the world, tracking cameras, and orthographic ones give warnings.

    Args:
        context: Receives warnings.
        compiled: The compiled document.
        bodies: Names of the links to read.

    Raises:
        DescriptionError: The image has no pixels, or is too large.
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
            context.warn(compiled.root, f"the camera '{name}' has no resolution: {width} x {height} is used")
        if not (1 <= width <= MAX_IMAGE_SIDE and 1 <= height <= MAX_IMAGE_SIDE and width * height <= MAX_PIXELS):
            raise error_at(
                f"camera '{name}' has an image size of {width} × {height} pixels", compiled.root,
                f"1 to {MAX_IMAGE_SIDE} per side, at most {MAX_PIXELS} in total",
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
        return "it tracks a body, which real cameras do not"
    if int(m.cam_projection[number]) != mujoco.mjtProjection.mjPROJ_PERSPECTIVE.value:
        return "it is orthographic"
    if m.cam_sensorsize[number].all() and m.cam_intrinsic[number][2:].any():
        return "its principal point is not the center of the image"
    return ""


def _read_lens(m: mujoco.MjModel, number: int, width: int, height: int) -> CameraModel:
    size, intrinsic = m.cam_sensorsize[number], m.cam_intrinsic[number]
    if size.all():
        fx, fy = (float(intrinsic[i]) / float(size[i]) * pixels for i, pixels in enumerate((width, height)))
    else:
        fx = fy = 0.5 * height / math.tan(math.radians(0.5 * float(m.cam_fovy[number])))
    return CameraModel(width, height, fx, fy, 0.5 * (width - 1), 0.5 * (height - 1))


INERTIAL_TAGS = ("gyro", "accelerometer")
ORIENTATION_TAG = "framequat"
JOINT_TAGS = ("jointpos", "jointvel")
_ACTUATOR_TAGS = ("actuatorpos", "actuatorvel")
_GROUND_TRUTH_TAGS = ("framepos", "framelinvel", "frameangvel")
_DEFAULT_MAX_RANGE = 100.0  # [m]

LinkPose = tuple[str, SE3]
"""Link and a pose in it."""


@dataclass(frozen=True, slots=True)
class CompiledSensor:
    """Compiled sensor: its tag, the object it is attached to, and its parameters."""

    name: str
    tag: str
    site: str
    link: str
    T_link_sensor: SE3
    joint: str
    noise: float
    cutoff: float
    interval: float
    node: XmlNode


def compiled_sensors(compiled: CompiledMjcf) -> list[CompiledSensor]:
    """Return all compiled sensors."""
    import mujoco

    m = compiled.model
    nodes = compiled.sensor_nodes
    site, body, joint, actuator = (
        int(kind)
        for kind in (
            mujoco.mjtObj.mjOBJ_SITE,
            mujoco.mjtObj.mjOBJ_BODY,
            mujoco.mjtObj.mjOBJ_JOINT,
            mujoco.mjtObj.mjOBJ_ACTUATOR,
        )
    )
    sensors = []
    for number in range(m.nsensor):
        tag = mujoco.mjtSensor(int(m.sensor_type[number])).name.removeprefix("mjSENS_").lower()
        kind, index = int(m.sensor_objtype[number]), int(m.sensor_objid[number])
        site_name, link, T, joint_name = "", "", SE3.identity(), ""
        if kind == site:
            site_name = m.site(index).name or f"site_{index}"
            link = compiled.bodies[int(m.site_bodyid[index])]
            T = SE3(m.site_quat[index], m.site_pos[index])
        elif kind in (body, int(mujoco.mjtObj.mjOBJ_XBODY)):
            link = compiled.bodies[index]
        elif kind == joint:
            joint_name = compiled.joints[index]
        elif kind == actuator and int(m.actuator_trntype[index]) == int(mujoco.mjtTrn.mjTRN_JOINT):
            joint_name = compiled.joints[int(m.actuator_trnid[index][0])]
        if joint_name:
            link = compiled.bodies[int(m.jnt_bodyid[compiled.joints.index(joint_name)])]
        noise, cutoff = float(m.sensor_noise[number]), float(m.sensor_cutoff[number])
        interval = float(m.sensor_interval[number][0])
        name = m.sensor(number).name
        sensors.append(
            CompiledSensor(name, tag, site_name, link, T, joint_name, noise, cutoff, interval, nodes[number])
        )
    return sensors


def read_sensors(context: ReaderContext, compiled: CompiledMjcf, bodies: Iterable[str]) -> list[Sensor]:
    """Read the sensors on the given links.

    Args:
        context: Receives warnings.
        compiled: The compiled document.
        bodies: Names of the links to read.
    """
    link_names = set(bodies)
    elements = [element for element in compiled_sensors(compiled) if element.link in link_names]
    imu_sites = {element.site for element in elements if element.tag in INERTIAL_TAGS}
    sensors: list[Sensor] = []
    imus: dict[str, list[CompiledSensor]] = {}
    rangefinders: list[CompiledSensor] = []
    joint_sensors: dict[str, CompiledSensor] = {}
    links_with_truth: set[str] = set()
    for element in elements:
        if element.site in imu_sites and element.tag in (*INERTIAL_TAGS, ORIENTATION_TAG):
            imus.setdefault(element.site, []).append(element)
        elif element.tag == "rangefinder":
            rangefinders.append(element)
        elif element.tag == "touch":
            spec = ContactSpec()
            sensors.append(
                _make_sensor(context, element, element.name or element.site, "contact", element.T_link_sensor, spec)
            )
        elif element.tag == "magnetometer":
            noise = Noise(stddev=element.noise)
            spec_magnetometer = ThreeAxisSpec((noise, noise, noise))
            sensors.append(
                _make_sensor(
                    context,
                    element,
                    element.name or element.site,
                    "magnetometer",
                    element.T_link_sensor,
                    spec_magnetometer,
                )
            )
        elif element.tag in (*JOINT_TAGS, *_ACTUATOR_TAGS) and element.joint:
            joint_sensors.setdefault(element.joint, element)
        elif element.tag in _GROUND_TRUTH_TAGS and not element.site and not element.joint:
            if element.link not in links_with_truth:
                links_with_truth.add(element.link)
                sensors.append(
                    _make_sensor(
                        context,
                        element,
                        element.name or element.link,
                        "ground_truth",
                        SE3.identity(),
                        GroundTruthSpec(),
                    )
                )
        else:
            context.warn(element.node, f"unsupported sensor <{element.tag}>")
    for site, imu_parts in imus.items():
        gyro_noise, accelerometer_noise = (
            _sensor_noise(next((one for one in imu_parts if one.tag == tag), None)) for tag in INERTIAL_TAGS
        )
        has_orientation = any(one.tag == ORIENTATION_TAG for one in imu_parts)
        spec_imu = ImuSpec(
            (gyro_noise, gyro_noise, gyro_noise),
            (accelerometer_noise, accelerometer_noise, accelerometer_noise),
            has_orientation,
        )
        sensors.append(_make_sensor(context, imu_parts[0], site, "imu", imu_parts[0].T_link_sensor, spec_imu))
    for group, fan in group_rangefinders(
        [
            (element.link, element.T_link_sensor, (element.cutoff, element.noise, element.interval))
            for element in rangefinders
        ]
    ):
        first = rangefinders[group[0]]
        spec_lidar = LidarSpec(
            samples=len(group),
            angle_min=fan.angle_min,
            angle_max=fan.angle_max,
            range_min=0.0,
            range_max=first.cutoff or _DEFAULT_MAX_RANGE,
            noise=_sensor_noise(first),
        )
        name = first.name or first.site
        if len(group) > 1:  # replicated sites are numbered
            name = name.rstrip("0123456789").rstrip("-_") or name
        sensors.append(_make_sensor(context, first, name, "lidar", fan.T_link_lidar, spec_lidar))
    if joint_sensors:
        first = next(iter(joint_sensors.values()))
        sensors.append(
            _make_sensor(context, first, "encoders", "encoder", SE3.identity(), EncoderSpec(tuple(joint_sensors)))
        )
    return sensors


def _sensor_noise(element: CompiledSensor | None) -> Noise:
    return Noise(stddev=element.noise if element else 0.0)


def _make_sensor(
    context: ReaderContext, element: CompiledSensor, name: str, kind: str, T: SE3, spec: SensorSpec
) -> Sensor:
    rate = DEFAULT_UPDATE_RATES[kind]
    if element.interval > 0.0:
        rate = min(max(1.0 / element.interval, 0.001), 10_000.0)
    elif kind != "encoder":  # encoders are read whenever joint states are requested
        context.warn(element.node, f"sensor '{name}' has no update rate: {rate:g} Hz is used")
    return Sensor(name, kind, element.link, T, rate, name, "", spec)
