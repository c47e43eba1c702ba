"""``<sensor>`` as SDF and URDF's ``<gazebo>`` blocks have it: the reverse of ``sensor_kinds``."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from roboyard.description.cameras import CameraSpec
from roboyard.description.sensors import (
    AltimeterSpec,
    BarometerSpec,
    ContactSpec,
    CustomSensorSpec,
    EncoderSpec,
    ForceTorqueSpec,
    GnssSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    Sensor,
    SonarSpec,
    ThreeAxisSpec,
)
from roboyard.description.write.cameras import add_camera
from roboyard.description.write.noise import add_noise
from roboyard.description.write.written import add_child, add_pose
from roboyard.geometry import SE3

_SENSOR_TYPES = {"lidar": "gpu_lidar"}
_SONAR_FIELDS = {
    "min": "range_min",
    "max": "range_max",
    "half_angle": "half_angle",
    "grazing": "max_incidence_angle",
    "phantom": "false_echo_probability",
    "dropout": "dropout_probability",
    "frequency": "frequency",
    "cycles": "burst_cycles",
    "threshold": "detection_threshold",
}
_Axes = tuple[Noise, Noise, Noise]


def add_sensor(parent: ET.Element, sensor: Sensor, T_parent_sensor: SE3 | None = None) -> None:
    """The sensor under a link, joint or ``<gazebo>`` element.

    Args:
        parent: That element.
        sensor: What is written.
        T_parent_sensor: Its pose there instead of that in its link.
    """
    node = add_child(parent, "sensor", name=sensor.name, type=_SENSOR_TYPES.get(sensor.kind, sensor.kind))
    if isinstance(sensor.spec, CustomSensorSpec):
        _add_leaves(node, sensor.spec.parameters)
        return
    add_pose(node, sensor.T_link_sensor if T_parent_sensor is None else T_parent_sensor)
    add_child(node, "update_rate", sensor.update_rate)
    add_child(node, "topic", sensor.topic)
    add_child(node, "gz_frame_id", sensor.frame)
    if not sensor.always_on:
        add_child(node, "always_on", False)
    if sensor.latency or isinstance(sensor.spec, CameraSpec):
        add_child(node, "latency", sensor.latency)
    if sensor.phase:
        add_child(node, "phase", sensor.phase)
    if sensor.outage.mean_interval:
        outage = add_child(node, "outage")
        add_child(outage, "every", sensor.outage.mean_interval)
        add_child(outage, "lasts", sensor.outage.mean_duration)
    _add_spec(node, sensor)


def _add_spec(node: ET.Element, sensor: Sensor) -> None:
    spec = sensor.spec
    match spec:
        case LidarSpec():
            _add_lidar(add_child(node, "lidar"), spec)
        case SonarSpec():
            body = add_child(node, "sonar")
            for tag, field in _SONAR_FIELDS.items():
                add_child(body, tag, getattr(spec, field))
            add_noise(body, spec.noise)
        case ImuSpec():
            body = add_child(node, "imu")
            add_child(body, "enable_orientation", spec.orientation)
            _add_axis_noises(body, "angular_velocity", spec.angular_velocity)
            _add_axis_noises(body, "linear_acceleration", spec.linear_acceleration)
        case ThreeAxisSpec():
            _add_three_noises(add_child(node, sensor.kind), spec.axes)
        case AltimeterSpec():
            body = add_child(node, "altimeter")
            add_noise(add_child(body, "vertical_position"), spec.position)
            add_noise(add_child(body, "vertical_velocity"), spec.velocity)
        case BarometerSpec():
            body = add_child(node, "air_pressure")
            add_child(body, "reference_altitude", spec.reference_altitude)
            add_noise(add_child(body, "pressure"), spec.noise)
        case GnssSpec():
            body = add_child(node, "navsat")
            add_child(body, "sky", spec.min_sky_fraction)
            position, velocity = add_child(body, "position_sensing"), add_child(body, "velocity_sensing")
            add_noise(add_child(position, "horizontal"), spec.horizontal)
            add_noise(add_child(position, "vertical"), spec.vertical)
            add_noise(add_child(velocity, "horizontal"), spec.horizontal_velocity)
            add_noise(add_child(velocity, "vertical"), spec.vertical_velocity)
        case ForceTorqueSpec():
            body = add_child(node, "force_torque")
            add_child(body, "frame", spec.frame)
            add_child(body, "measure_direction", spec.direction)
            _add_axis_noises(body, "force", spec.force)
            _add_axis_noises(body, "torque", spec.torque)
        case ContactSpec():
            body = add_child(node, "contact")
            for name in spec.collisions:
                add_child(body, "collision", name)
        case EncoderSpec():
            _add_encoder(add_child(node, "encoder"), spec)
        case CameraSpec():
            add_camera(node, sensor, spec)


def _add_lidar(body: ET.Element, spec: LidarSpec) -> None:
    scan = add_child(body, "scan")
    for tag, count, lower, upper in (
        ("horizontal", spec.samples, spec.angle_min, spec.angle_max),
        ("vertical", spec.vertical_samples, spec.vertical_angle_min, spec.vertical_angle_max),
    ):
        part = add_child(scan, tag)
        add_child(part, "samples", float(count))
        add_child(part, "resolution", 1.0)
        add_child(part, "min_angle", lower)
        add_child(part, "max_angle", upper)
    range_node = add_child(body, "range")
    add_child(range_node, "min", spec.range_min)
    add_child(range_node, "max", spec.range_max)
    add_child(range_node, "resolution", spec.resolution)
    add_noise(body, spec.noise)
    if spec.false_echo_probability:
        add_child(body, "phantom", spec.false_echo_probability)
    if spec.dropout_probability:
        add_child(body, "dropout", spec.dropout_probability)


def _add_encoder(body: ET.Element, spec: EncoderSpec) -> None:
    for name in spec.joints:
        add_child(body, "joint", name)
    add_child(body, "resolution", float(spec.resolution))
    add_noise(body, spec.noise)
    if spec.absolute:
        add_child(body, "absolute", True)
    if spec.miscount_probability:
        add_child(body, "miscount", spec.miscount_probability)


def _add_axis_noises(parent: ET.Element, tag: str, noises: _Axes) -> None:
    if any(noise != Noise() for noise in noises):
        _add_three_noises(add_child(parent, tag), noises)


def _add_three_noises(parent: ET.Element, noises: _Axes) -> None:
    for axis, noise in zip("xyz", noises, strict=True):
        add_noise(add_child(parent, axis), noise)


def _add_leaves(node: ET.Element, leaves: tuple[tuple[str, str], ...]) -> None:
    """Leaves as (path/to/leaf, text), attributes as (path/to/leaf@key, text)."""
    for path, text in leaves:
        path, attribute_mark, key = path.partition("@")
        *ancestors, last = path.split("/")
        element = node
        for tag in ancestors:
            found = element.findall(tag)
            element = found[-1] if found else ET.SubElement(element, tag)
        existing = element.findall(last)
        leaf = existing[-1] if attribute_mark and existing else ET.SubElement(element, last)
        if attribute_mark:
            leaf.set(key, text)
        else:
            leaf.text = text
