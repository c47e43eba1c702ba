"""``<sensor>`` as SDF and URDF's ``<gazebo>`` blocks have it: the reverse of ``sensor_kinds``."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from roboyard.description.cameras import CameraSpec
from roboyard.description.sensors import (
    AltimeterSpec,
    ContactSpec,
    EncoderSpec,
    ForceTorqueSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    OtherSpec,
    PressureSpec,
    SatelliteSpec,
    Sensor,
    SonarSpec,
    VectorSpec,
)
from roboyard.description.write.cameras import add_camera
from roboyard.description.write.noise import add_noise as _noise
from roboyard.description.write.written import add, add_pose
from roboyard.geometry import SE3

_TYPES = {"lidar": "gpu_lidar"}
_SONAR = (
    "range_min", "range_max", "half_angle", "grazing", "phantom", "dropout", "frequency", "cycles", "threshold"
)  # fmt: skip
_Axes = tuple[Noise, Noise, Noise]


def add_sensor(parent: ET.Element, sensor: Sensor, T_parent_sensor: SE3 | None = None) -> None:
    """The sensor under a link, joint or ``<gazebo>`` element.

    Args:
        parent: That element.
        sensor: What is written.
        T_parent_sensor: Its pose there instead of that in its link.
    """
    node = add(parent, "sensor", name=sensor.name, type=_TYPES.get(sensor.kind, sensor.kind))
    if isinstance(sensor.spec, OtherSpec):
        _flat(node, sensor.spec.parameters)
        return
    add_pose(node, sensor.T_link_sensor if T_parent_sensor is None else T_parent_sensor)
    add(node, "update_rate", sensor.update_rate)
    add(node, "topic", sensor.topic)
    add(node, "gz_frame_id", sensor.frame)
    if not sensor.always_on:
        add(node, "always_on", False)
    if sensor.latency or isinstance(sensor.spec, CameraSpec):
        add(node, "latency", sensor.latency)
    if sensor.phase:
        add(node, "phase", sensor.phase)
    if sensor.outage.every:
        outage = add(node, "outage")
        add(outage, "every", sensor.outage.every)
        add(outage, "lasts", sensor.outage.lasts)
    _body(node, sensor)


def _body(node: ET.Element, sensor: Sensor) -> None:
    spec = sensor.spec
    match spec:
        case LidarSpec():
            _lidar(add(node, "lidar"), spec)
        case SonarSpec():
            body = add(node, "sonar")
            for tag in _SONAR:
                add(body, tag.removeprefix("range_"), getattr(spec, tag))
            _noise(body, spec.noise)
        case ImuSpec():
            body = add(node, "imu")
            add(body, "enable_orientation", spec.orientation)
            _axes(body, "angular_velocity", spec.angular_velocity)
            _axes(body, "linear_acceleration", spec.linear_acceleration)
        case VectorSpec():
            _three(add(node, sensor.kind), spec.axes)
        case AltimeterSpec():
            body = add(node, "altimeter")
            _noise(add(body, "vertical_position"), spec.position)
            _noise(add(body, "vertical_velocity"), spec.velocity)
        case PressureSpec():
            body = add(node, "air_pressure")
            add(body, "reference_altitude", spec.reference_altitude)
            _noise(add(body, "pressure"), spec.noise)
        case SatelliteSpec():
            body = add(node, "navsat")
            add(body, "sky", spec.sky)
            place, speed = add(body, "position_sensing"), add(body, "velocity_sensing")
            _noise(add(place, "horizontal"), spec.horizontal)
            _noise(add(place, "vertical"), spec.vertical)
            _noise(add(speed, "horizontal"), spec.horizontal_velocity)
            _noise(add(speed, "vertical"), spec.vertical_velocity)
        case ForceTorqueSpec():
            body = add(node, "force_torque")
            add(body, "frame", spec.frame)
            add(body, "measure_direction", spec.direction)
            _axes(body, "force", spec.force)
            _axes(body, "torque", spec.torque)
        case ContactSpec():
            body = add(node, "contact")
            for name in spec.collisions:
                add(body, "collision", name)
        case EncoderSpec():
            _encoder(add(node, "encoder"), spec)
        case CameraSpec():
            add_camera(node, sensor, spec)


def _lidar(body: ET.Element, spec: LidarSpec) -> None:
    scan = add(body, "scan")
    for tag, count, low, high in (
        ("horizontal", spec.samples, spec.angle_min, spec.angle_max),
        ("vertical", spec.vertical_samples, spec.vertical_angle_min, spec.vertical_angle_max),
    ):
        part = add(scan, tag)
        add(part, "samples", float(count))
        add(part, "resolution", 1.0)
        add(part, "min_angle", low)
        add(part, "max_angle", high)
    span = add(body, "range")
    add(span, "min", spec.range_min)
    add(span, "max", spec.range_max)
    add(span, "resolution", spec.resolution)
    _noise(body, spec.noise)
    if spec.phantom:
        add(body, "phantom", spec.phantom)
    if spec.dropout:
        add(body, "dropout", spec.dropout)


def _encoder(body: ET.Element, spec: EncoderSpec) -> None:
    for name in spec.joints:
        add(body, "joint", name)
    add(body, "resolution", float(spec.resolution))
    _noise(body, spec.noise)
    if spec.absolute:
        add(body, "absolute", True)
    if spec.miscount:
        add(body, "miscount", spec.miscount)


def _axes(parent: ET.Element, tag: str, noises: _Axes) -> None:
    if any(noise != Noise() for noise in noises):
        _three(add(parent, tag), noises)


def _three(parent: ET.Element, noises: _Axes) -> None:
    for axis, noise in zip("xyz", noises, strict=True):
        _noise(add(parent, axis), noise)


def _flat(node: ET.Element, leaves: tuple[tuple[str, str], ...]) -> None:
    """Leaves as (path/to/leaf, text), attributes as (path/to/leaf@key, text)."""
    for path, text in leaves:
        path, at, key = path.partition("@")
        *above, last = path.split("/")
        here = node
        for tag in above:
            found = here.findall(tag)
            here = found[-1] if found else ET.SubElement(here, tag)
        known = here.findall(last)
        leaf = known[-1] if at and known else ET.SubElement(here, last)
        if at:
            leaf.set(key, text)
        else:
            leaf.text = text
