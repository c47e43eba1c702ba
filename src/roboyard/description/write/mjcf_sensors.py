"""Sensors and named frames as sites and sensors of MJCF."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from roboyard.description.model import Link, Model
from roboyard.description.sensors import EncoderSpec, ImuSpec, LidarSpec, Noise, Sensor
from roboyard.description.write.mjcf_geoms import place
from roboyard.description.write.written import Losses, add, number, numbers

_SITES = ("imu", "contact", "magnetometer")


def add_frames(body: ET.Element, model: Model, link: Link, prefix: str) -> None:
    """A site for each named frame, and for each sensor that needs one."""
    for frame in model.frames:
        if frame.link == link.name:
            place(add(body, "site", name=prefix + frame.name, group="5"), frame.T_link_frame)
    for sensor in model.sensors:
        if sensor.link != link.name:
            continue
        if sensor.kind in _SITES:
            place(add(body, "site", name=prefix + sensor.name, group="5"), sensor.T_link_sensor)
        elif isinstance(sensor.spec, LidarSpec):
            _rays(body, sensor, sensor.spec, prefix)


def _rays(body: ET.Element, sensor: Sensor, spec: LidarSpec, prefix: str) -> None:
    """A site for each ray, along whose z a range finder looks; MuJoCo's ``<replicate>`` takes seconds for hundreds."""
    frame = add(body, "frame")
    place(frame, sensor.T_link_sensor)
    for name, angle in _beams(sensor, spec):
        ray = numbers((math.cos(angle), math.sin(angle), 0.0))
        add(frame, "site", name=prefix + name, zaxis=ray, group="5")


def _beams(sensor: Sensor, spec: LidarSpec) -> Iterator[tuple[str, float]]:
    """Name and angle of each ray."""
    if spec.samples == 1:
        yield sensor.name, spec.angle_min
        return
    step = (spec.angle_max - spec.angle_min) / (spec.samples - 1)
    for index in range(spec.samples):
        yield f"{sensor.name}-{index}", spec.angle_min + index * step


def add_sensors(section: ET.Element, model: Model, prefix: str, losses: Losses) -> None:
    """The sensors that MJCF knows; others are lost."""
    for sensor in model.sensors:
        name = prefix + sensor.name
        rate = {"interval": number(1.0 / sensor.update_rate)}
        match sensor.spec:
            case ImuSpec():
                for tag, noise in (
                    ("gyro", sensor.spec.angular_velocity[0]),
                    ("accelerometer", sensor.spec.linear_acceleration[0]),
                ):
                    add(section, tag, site=name, **rate, **_noise(noise, sensor, losses))
                if sensor.spec.orientation:
                    add(section, "framequat", objtype="site", objname=name, **rate)
                if len(set(sensor.spec.angular_velocity)) > 1 or len(set(sensor.spec.linear_acceleration)) > 1:
                    losses.say(f"sensor '{sensor.name}': the noise of its first axis is written for all")
            case LidarSpec():
                more = {**_noise(sensor.spec.noise, sensor, losses), **rate}
                far = number(min(sensor.spec.range_max, 1e9))
                for beam, _ in _beams(sensor, sensor.spec):
                    add(section, "rangefinder", name=prefix + beam, site=prefix + beam, cutoff=far, **more)
                if sensor.spec.vertical_samples > 1:
                    losses.say(f"sensor '{sensor.name}': one of its {sensor.spec.vertical_samples} rows is written")
                if sensor.spec.range_min or sensor.spec.resolution:
                    losses.say("the least range and the resolution of lidars are lost")
            case EncoderSpec():
                joints = sensor.spec.joints or tuple(one.name for one in model.joints if one.axes)
                for joint in joints:
                    for tag in ("jointpos", "jointvel"):
                        add(section, tag, joint=prefix + joint, **rate)
                if sensor.spec.resolution or sensor.spec.noise != Noise():
                    losses.say("steps and noise of encoders are lost")
            case _ if sensor.kind == "contact":
                add(section, "touch", name=name, site=name, **rate)
            case _ if sensor.kind == "magnetometer":
                add(section, "magnetometer", name=name, site=name, **rate)
            case _ if sensor.kind == "truth":
                add(section, "framepos", name=name, objtype="body", objname=prefix + sensor.link, **rate)
            case _:
                losses.say(f"sensor '{sensor.name}' of kind {sensor.kind} is lost")
        if sensor.latency or sensor.outage.every:
            losses.say("latencies and outages of sensors are lost")


def _noise(noise: Noise, sensor: Sensor, losses: Losses) -> dict[str, str]:
    if Noise(stddev=noise.stddev) != noise:
        losses.say(f"sensor '{sensor.name}': of its noise only the white part is written")
    return {"noise": number(noise.stddev)} if noise.stddev else {}
