"""``<sensor>``: gyroscope and accelerometer become an IMU, range finders lidars, joint sensors encoders, touch contact.

An IMU takes the name of its site, since each of its parts has one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roboyard.description.mjcf.beams import fans
from roboyard.description.mjcf.compiled import Compiled
from roboyard.description.reading import Reading
from roboyard.description.sensors import (
    ContactSpec,
    EncoderSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    Sensor,
    SensorSpec,
    TruthSpec,
    VectorSpec,
)
from roboyard.description.xml import Node
from roboyard.geometry import SE3

INERTIAL = ("gyro", "accelerometer")
ORIENTATION = "framequat"
JOINTS = ("jointpos", "jointvel")
_MOTORS = ("actuatorpos", "actuatorvel")
_TRUTH = ("framepos", "framelinvel", "frameangvel")
_RATES = {"imu": 100.0, "lidar": 10.0, "contact": 50.0, "encoder": 50.0, "truth": 50.0, "magnetometer": 50.0}
_FAR = 100.0  # [m]

Place = tuple[str, SE3]
"""A link and a pose in it."""


@dataclass(frozen=True, slots=True)
class Part:
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
    node: Node


def parts_of(source: Compiled) -> list[Part]:
    """All compiled sensors."""
    import mujoco

    m = source.model
    nodes = source.sensor_nodes
    site, body, joint, actuator = (
        int(kind)
        for kind in (
            mujoco.mjtObj.mjOBJ_SITE,
            mujoco.mjtObj.mjOBJ_BODY,
            mujoco.mjtObj.mjOBJ_JOINT,
            mujoco.mjtObj.mjOBJ_ACTUATOR,
        )
    )
    found = []
    for number in range(m.nsensor):
        tag = mujoco.mjtSensor(int(m.sensor_type[number])).name.removeprefix("mjSENS_").lower()
        kind, index = int(m.sensor_objtype[number]), int(m.sensor_objid[number])
        called, link, T, turns = "", "", SE3.identity(), ""
        if kind == site:
            called = m.site(index).name or f"site_{index}"
            link = source.bodies[int(m.site_bodyid[index])]
            T = SE3(m.site_quat[index], m.site_pos[index])
        elif kind in (body, int(mujoco.mjtObj.mjOBJ_XBODY)):
            link = source.bodies[index]
        elif kind == joint:
            turns = source.joints[index]
        elif kind == actuator and int(m.actuator_trntype[index]) == int(mujoco.mjtTrn.mjTRN_JOINT):
            turns = source.joints[int(m.actuator_trnid[index][0])]
        if turns:
            link = source.bodies[int(m.jnt_bodyid[source.joints.index(turns)])]
        noise, cutoff = float(m.sensor_noise[number]), float(m.sensor_cutoff[number])
        interval = float(m.sensor_interval[number][0])
        name = m.sensor(number).name
        found.append(Part(name, tag, called, link, T, turns, noise, cutoff, interval, nodes[number]))
    return found


def read_sensors(reading: Reading, source: Compiled, bodies: Iterable[str]) -> list[Sensor]:
    """The sensors on the given links.

    Args:
        reading: Takes findings.
        source: The compiled document.
        bodies: Names of the links that count.
    """
    wanted = set(bodies)
    parts = [part for part in parts_of(source) if part.link in wanted]
    inertial = {part.site for part in parts if part.tag in INERTIAL}
    sensors: list[Sensor] = []
    imus: dict[str, list[Part]] = {}
    beams: list[Part] = []
    turning: dict[str, Part] = {}
    carried: set[str] = set()
    for part in parts:
        if part.site in inertial and part.tag in (*INERTIAL, ORIENTATION):
            imus.setdefault(part.site, []).append(part)
        elif part.tag == "rangefinder":
            beams.append(part)
        elif part.tag == "touch":
            spec = ContactSpec()
            sensors.append(_made(reading, part, part.name or part.site, "contact", part.T_link_sensor, spec))
        elif part.tag == "magnetometer":
            noise = Noise(stddev=part.noise)
            axes = VectorSpec((noise, noise, noise))
            sensors.append(_made(reading, part, part.name or part.site, "magnetometer", part.T_link_sensor, axes))
        elif part.tag in (*JOINTS, *_MOTORS) and part.joint:
            turning.setdefault(part.joint, part)
        elif part.tag in _TRUTH and not part.site and not part.joint:
            if part.link not in carried:
                carried.add(part.link)
                sensors.append(_made(reading, part, part.name or part.link, "truth", SE3.identity(), TruthSpec()))
        else:
            reading.note(part.node, f"the sensor <{part.tag}> is not understood")
    for site, pieces in imus.items():
        rate, force = (_noise(next((one for one in pieces if one.tag == tag), None)) for tag in INERTIAL)
        turned = any(one.tag == ORIENTATION for one in pieces)
        spec_imu = ImuSpec((rate, rate, rate), (force, force, force), turned)
        sensors.append(_made(reading, pieces[0], site, "imu", pieces[0].T_link_sensor, spec_imu))
    for group, fan in fans(
        [(part.link, part.T_link_sensor, (part.cutoff, part.noise, part.interval)) for part in beams]
    ):
        first = beams[group[0]]
        spec_lidar = LidarSpec(
            samples=len(group),
            angle_min=fan.angle_min,
            angle_max=fan.angle_max,
            range_min=0.0,
            range_max=first.cutoff or _FAR,
            noise=_noise(first),
        )
        name = first.name or first.site
        if len(group) > 1:  # replicated sites are numbered
            name = name.rstrip("0123456789").rstrip("-_") or name
        sensors.append(_made(reading, first, name, "lidar", fan.T_link_lidar, spec_lidar))
    if turning:
        first = next(iter(turning.values()))
        sensors.append(_made(reading, first, "encoders", "encoder", SE3.identity(), EncoderSpec(tuple(turning))))
    return sensors


def _noise(part: Part | None) -> Noise:
    return Noise(stddev=part.noise if part else 0.0)


def _made(reading: Reading, part: Part, name: str, kind: str, T: SE3, spec: SensorSpec) -> Sensor:
    rate = _RATES[kind]
    if part.interval > 0.0:
        rate = min(max(1.0 / part.interval, 0.001), 10_000.0)
    elif kind != "encoder":  # read whenever somebody asks for the joints
        reading.note(part.node, f"sensor '{name}' has no update rate: {rate:g} Hz taken")
    return Sensor(name, kind, part.link, T, rate, name, "", spec)
