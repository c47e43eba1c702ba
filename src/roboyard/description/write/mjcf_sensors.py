"""Sensors and named frames as sites and sensors of MJCF."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from roboyard.description.model import Link, Model
from roboyard.description.sensors import EncoderSpec, ImuSpec, LidarSpec, Noise, Sensor
from roboyard.description.write.mjcf_geoms import set_pose
from roboyard.description.write.written import ConversionLosses, add_child, format_number, format_numbers

_SITE_SENSOR_KINDS = ("imu", "contact", "magnetometer")


def add_sites(body: ET.Element, model: Model, link: Link, prefix: str) -> None:
    """A site for each named frame, and for each sensor that needs one."""
    for frame in model.frames:
        if frame.link == link.name:
            set_pose(add_child(body, "site", name=prefix + frame.name, group="5"), frame.T_link_frame)
    for sensor in model.sensors:
        if sensor.link != link.name:
            continue
        if sensor.kind in _SITE_SENSOR_KINDS:
            set_pose(add_child(body, "site", name=prefix + sensor.name, group="5"), sensor.T_link_sensor)
        elif isinstance(sensor.spec, LidarSpec):
            _add_ray_sites(body, sensor, sensor.spec, prefix)


def _add_ray_sites(body: ET.Element, sensor: Sensor, spec: LidarSpec, prefix: str) -> None:
    """A site for each ray, along whose z a range finder looks; MuJoCo's ``<replicate>`` takes seconds for hundreds."""
    frame = add_child(body, "frame")
    set_pose(frame, sensor.T_link_sensor)
    for name, angle in _ray_angles(sensor, spec):
        ray = format_numbers((math.cos(angle), math.sin(angle), 0.0))
        add_child(frame, "site", name=prefix + name, zaxis=ray, group="5")


def _ray_angles(sensor: Sensor, spec: LidarSpec) -> Iterator[tuple[str, float]]:
    """Name and angle of each ray."""
    if spec.samples == 1:
        yield sensor.name, spec.angle_min
        return
    step = (spec.angle_max - spec.angle_min) / (spec.samples - 1)
    for index in range(spec.samples):
        yield f"{sensor.name}-{index}", spec.angle_min + index * step


def add_sensors(section: ET.Element, model: Model, prefix: str, losses: ConversionLosses) -> None:
    """The sensors that MJCF knows; others are lost."""
    for sensor in model.sensors:
        name = prefix + sensor.name
        rate = {"interval": format_number(1.0 / sensor.update_rate)}
        match sensor.spec:
            case ImuSpec():
                for tag, noise in (
                    ("gyro", sensor.spec.angular_velocity[0]),
                    ("accelerometer", sensor.spec.linear_acceleration[0]),
                ):
                    add_child(section, tag, site=name, **rate, **_noise_attribute(noise, sensor, losses))
                if sensor.spec.orientation:
                    add_child(section, "framequat", objtype="site", objname=name, **rate)
                if len(set(sensor.spec.angular_velocity)) > 1 or len(set(sensor.spec.linear_acceleration)) > 1:
                    losses.add(f"sensor '{sensor.name}': the noise of its first axis is written for all")
            case LidarSpec():
                attributes = {**_noise_attribute(sensor.spec.noise, sensor, losses), **rate}
                cutoff = format_number(min(sensor.spec.range_max, 1e9))
                for ray_name, _ in _ray_angles(sensor, sensor.spec):
                    add_child(
                        section,
                        "rangefinder",
                        name=prefix + ray_name,
                        site=prefix + ray_name,
                        cutoff=cutoff,
                        **attributes,
                    )
                if sensor.spec.vertical_samples > 1:
                    losses.add(f"sensor '{sensor.name}': one of its {sensor.spec.vertical_samples} rows is written")
                if sensor.spec.range_min or sensor.spec.resolution:
                    losses.add("the least range and the resolution of lidars are lost")
            case EncoderSpec():
                joints = sensor.spec.joints or tuple(one.name for one in model.joints if one.axes)
                for joint in joints:
                    for tag in ("jointpos", "jointvel"):
                        add_child(section, tag, joint=prefix + joint, **rate)
                if sensor.spec.resolution or sensor.spec.noise != Noise():
                    losses.add("steps and noise of encoders are lost")
            case _ if sensor.kind == "contact":
                add_child(section, "touch", name=name, site=name, **rate)
            case _ if sensor.kind == "magnetometer":
                add_child(section, "magnetometer", name=name, site=name, **rate)
            case _ if sensor.kind == "truth":
                add_child(section, "framepos", name=name, objtype="body", objname=prefix + sensor.link, **rate)
            case _:
                losses.add(f"sensor '{sensor.name}' of kind {sensor.kind} is lost")
        if sensor.latency or sensor.outage.mean_interval:
            losses.add("latencies and outages of sensors are lost")


def _noise_attribute(noise: Noise, sensor: Sensor, losses: ConversionLosses) -> dict[str, str]:
    if Noise(stddev=noise.stddev) != noise:
        losses.add(f"sensor '{sensor.name}': of its noise only the white part is written")
    return {"noise": format_number(noise.stddev)} if noise.stddev else {}
