"""``<sensor>``: gyroscope and accelerometer become an IMU, range finders lidars, joint sensors encoders, touch contact.

An IMU takes the name of its site, since each of its parts has one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roboyard.description.mjcf.beams import group_rangefinders
from roboyard.description.mjcf.compiled import CompiledMjcf
from roboyard.description.reading import ReaderContext
from roboyard.description.sensors import (
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
from roboyard.geometry import SE3

INERTIAL_TAGS = ("gyro", "accelerometer")
ORIENTATION_TAG = "framequat"
JOINT_TAGS = ("jointpos", "jointvel")
_ACTUATOR_TAGS = ("actuatorpos", "actuatorvel")
_GROUND_TRUTH_TAGS = ("framepos", "framelinvel", "frameangvel")
_DEFAULT_RATES = {"imu": 100.0, "lidar": 10.0, "contact": 50.0, "encoder": 50.0, "truth": 50.0, "magnetometer": 50.0}
_DEFAULT_MAX_RANGE = 100.0  # [m]

LinkPose = tuple[str, SE3]
"""A link and a pose in it."""


@dataclass(frozen=True, slots=True)
class CompiledSensor:
    """One compiled sensor: its tag, what it is attached to, and its numbers."""

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
    """All compiled sensors."""
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
    """The sensors on the given links.

    Args:
        context: Takes findings.
        compiled: The compiled document.
        bodies: Names of the links that count.
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
                        context, element, element.name or element.link, "truth", SE3.identity(), GroundTruthSpec()
                    )
                )
        else:
            context.warn(element.node, f"the sensor <{element.tag}> is not understood")
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
    rate = _DEFAULT_RATES[kind]
    if element.interval > 0.0:
        rate = min(max(1.0 / element.interval, 0.001), 10_000.0)
    elif kind != "encoder":  # read whenever somebody asks for the joints
        context.warn(element.node, f"sensor '{name}' has no update rate: {rate:g} Hz taken")
    return Sensor(name, kind, element.link, T, rate, name, "", spec)
