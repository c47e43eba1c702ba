"""Writes `<sensor>`, `<camera>` and `<noise>`: the reverse of `sensor_reader` and `camera_reader`."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

from roboyard.description.sensors import (
    T_SENSOR_OPTICAL,
    AltimeterSpec,
    BarometerSpec,
    CameraSpec,
    ContactSpec,
    CustomSensorSpec,
    DepthNoise,
    EncoderSpec,
    Exposure,
    ForceTorqueSpec,
    GnssSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    Sensor,
    SonarSpec,
    ThreeAxisSpec,
)
from roboyard.description.write.result import add_child, add_pose
from roboyard.geometry import SE3, CameraModel


def add_noise(parent: ET.Element, noise: Noise) -> None:
    """Add the noise to a channel's element; zero noise is not written."""
    if noise == Noise():
        return
    node = add_child(parent, "noise", type="gaussian_quantized" if noise.precision else "gaussian")
    for tag in (
        "mean", "stddev", "bias_mean", "bias_stddev", "dynamic_bias_stddev", "dynamic_bias_correlation_time",
        "precision",
    ):  # fmt: skip
        if getattr(noise, tag) or tag in ("mean", "stddev"):
            add_child(node, tag, getattr(noise, tag))


_LENS_TYPES = {
    "equidistant": "equidistant", "stereographic": "stereographic", "equisolid": "equisolid_angle",
    "orthographic": "orthographic",
}  # fmt: skip
_TOPIC_TAGS = {"image": "imageTopicName", "info": "cameraInfoTopicName", "depth": "depthImageTopicName",
           "depth_info": "depthImageCameraInfoTopicName", "points": "pointCloudTopicName"}  # fmt: skip


def add_camera(node: ET.Element, sensor: Sensor, spec: CameraSpec) -> None:
    """Add the camera to its ``<sensor>``; topics of individual outputs go into a plugin's element."""
    lens = spec.color or spec.depth or CameraModel()
    pure_infrared = sensor.kind == "camera" and spec.color is None
    if pure_infrared:
        node.set("type", "infrared")
    elif lens.model != "plumb_bob":
        node.set("type", "wideanglecamera")
    body = add_child(node, "camera")
    _add_lens(body, lens)
    pixel_format = "L16" if spec.depth_in_mm else ("L8" if spec.is_grayscale else "R8G8B8")
    add_child(_add_image(body, lens), "format", pixel_format)
    _add_clip(body, spec.near, spec.far)
    _add_clip(add_child(body, "depth_camera"), spec.depth_near, spec.depth_far)
    if spec.optical_frame:
        add_child(body, "optical_frame_id", spec.optical_frame)
    add_noise(body, spec.noise)
    if spec.exposure != Exposure():
        exposure = add_child(body, "exposure")
        for tag in ("gain", "auto", "vignetting", "full_well", "read_noise"):
            add_child(exposure, tag, getattr(spec.exposure, tag))
    if spec.depth_noise != DepthNoise():
        noise = add_child(body, "depth_noise")
        add_child(noise, "model", spec.depth_noise.model)
        add_child(noise, "baseline", spec.depth_noise.baseline)
        add_child(noise, "disparity", spec.depth_noise.disparity_stddev)
        add_child(noise, "close", spec.depth_noise.near_blur_distance)
        add_noise(noise, spec.depth_noise.noise if spec.depth_noise.model == "gaussian" else Noise())
    if spec.has_separate_depth_lens and spec.depth is not None:
        depth_node = add_child(body, "depth")
        add_pose(depth_node, T_SENSOR_OPTICAL @ spec.T_color_depth @ T_SENSOR_OPTICAL.inverse())
        _add_lens(depth_node, spec.depth)
        _add_image(depth_node, spec.depth)
    if spec.infrared and not pure_infrared:
        add_child(body, "infrared", True)
    if spec.baseline:
        add_child(body, "baseline", spec.baseline)
    topics = dict(spec.topics)
    if topics:
        plugin = add_child(node, "plugin", name=f"{sensor.name}_topics", filename="libgazebo_ros_camera.so")
        for output, tag in _TOPIC_TAGS.items():
            if output in topics:
                add_child(plugin, tag, f"/{topics[output]}")


def _add_image(body: ET.Element, lens: CameraModel) -> ET.Element:
    image = add_child(body, "image")
    add_child(image, "width", float(lens.width))
    add_child(image, "height", float(lens.height))
    return image


def _add_clip(body: ET.Element, near: float, far: float) -> None:
    clip = add_child(body, "clip")
    add_child(clip, "near", near)
    add_child(clip, "far", far)


def _add_lens(body: ET.Element, lens: CameraModel) -> None:
    add_child(body, "horizontal_fov", lens.horizontal_fov)
    if any(lens.distortion):
        distortion = add_child(body, "distortion")
        for tag, value in zip(("k1", "k2", "p1", "p2", "k3"), lens.distortion, strict=True):
            add_child(distortion, tag, value)
    lens_node = add_child(body, "lens")
    if lens.model != "plumb_bob":
        add_child(lens_node, "type", _LENS_TYPES[lens.model])
    intrinsics = add_child(lens_node, "intrinsics")
    for tag, value in (("fx", lens.fx), ("fy", lens.fy), ("cx", lens.cx + 0.5), ("cy", lens.cy + 0.5)):
        add_child(intrinsics, tag, value)


T_OPTICAL_BACKWARD = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (math.pi, 0.0, 0.0))
"""Rotation to MuJoCo's camera frame, which looks along -z with y up."""

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
    """Add a sensor to a link, joint or ``<gazebo>`` element.

    Args:
        parent: The element.
        sensor: The sensor.
        T_parent_sensor: Its pose in the element instead of the pose in its link.
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
    """Add leaves given as (path/to/leaf, text), attributes as (path/to/leaf@key, text)."""
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
