"""Readers of `<sensor>` elements of SDF and of URDF's `<gazebo>` blocks, one per sensor kind, and of sensor presets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import entry_points

from roboyard.description.camera_reader import read_camera, read_camera_plugin, read_plugin_base_topic
from roboyard.description.model import Plugin
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensor_element import SensorElement, read_noise, read_probability
from roboyard.description.sensor_presets import PRESETS, SensorPreset
from roboyard.description.sensors import (
    CAMERA_KINDS,
    DEFAULT_UPDATE_RATES,
    AltimeterSpec,
    BarometerSpec,
    CameraSpec,
    ContactSpec,
    CustomSensorSpec,
    EncoderSpec,
    ForceTorqueSpec,
    GnssSpec,
    GroundTruthSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    Outage,
    Sensor,
    SensorSpec,
    SonarSpec,
    ThreeAxisSpec,
)
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import child_boolean, child_integer, child_number, child_text, error_at, quote
from roboyard.geometry import SE3
from roboyard.geometry.constants import SPEED_OF_SOUND

_DEFAULT_RANGE = 30.0  # [m]
_MAX_RAYS = 2_000_000
_MAX_CYCLES = 10_000
_SONAR_TAGS = {
    "min", "max", "radius", "half_angle", "grazing", "noise", "phantom", "dropout", "frequency", "cycles", "threshold",
}  # fmt: skip
_Axes = tuple[Noise, Noise, Noise]


def _read_lidar(context: ReaderContext, element: SensorElement) -> LidarSpec:
    node, name = element.body or element.node, element.name
    scan = node.child("scan")
    range_element = node.child("range")
    if element.body is not None:
        context.warn_unknown_children(node, {"scan", "range", "noise", "phantom", "dropout"}, {"visibility_mask"})
    samples, angle_min, angle_max = _read_ray_angles(
        context, scan.child("horizontal") if scan else None, name, 640, math.pi / 2
    )
    rows, row_min, row_max = _read_ray_angles(context, scan.child("vertical") if scan else None, name, 1, 0.0)
    if samples * rows > _MAX_RAYS:
        raise error_at(f"lidar '{name}' has {samples} × {rows} rays", node, f"at most {_MAX_RAYS}")
    near = child_number(range_element, "min", 0.0, minimum=0.0)
    far = child_number(range_element, "max", 0.0, minimum=0.0, allow_infinite=True)
    if far == 0.0:
        far = _DEFAULT_RANGE
        context.warn(range_element or node, f"lidar '{name}' has no maximum range: {far:g} m is used")
    if far <= near:
        raise error_at(
            f"lidar '{name}': maximum range {far:g} m is not above minimum range {near:g} m",
            range_element or node,
            "max above min",
        )
    return LidarSpec(
        samples=samples,
        angle_min=angle_min,
        angle_max=angle_max,
        vertical_samples=rows,
        vertical_angle_min=row_min,
        vertical_angle_max=row_max,
        range_min=near,
        range_max=far,
        resolution=child_number(range_element, "resolution", 0.0, minimum=0.0),
        noise=read_noise(context, node.child("noise")),
        false_echo_probability=read_probability(node, "phantom"),
        dropout_probability=read_probability(node, "dropout"),
    )


def _read_ray_angles(
    context: ReaderContext, node: XmlNode | None, name: str, samples: int, half_angle: float
) -> tuple[int, float, float]:
    """Read samples and angles of one direction; ``resolution`` multiplies the samples, as in SDF."""
    count = child_integer(node, "samples", samples) * child_number(node, "resolution", 1.0, minimum=0.0, exclusive=True)
    low = child_number(node, "min_angle", -half_angle)
    high = child_number(node, "max_angle", half_angle)
    problem = f"lidar '{name}' has {count:g} samples from {low:g} to {high:g} rad"
    if node is not None and count < 1.0:
        raise error_at(problem, node, "at least 1 sample")
    if node is not None and low > high:
        context.repair_or_raise(node, problem, "min_angle ≤ max_angle", "the two are swapped")
        low, high = high, low
    return round(count), low, high


def _read_imu(context: ReaderContext, element: SensorElement) -> ImuSpec:
    node = element.body
    if node is None:
        return ImuSpec()
    context.warn_unknown_children(
        node,
        {"angular_velocity", "linear_acceleration", "enable_orientation", "noise"},
        {"orientation_reference_frame", "topic"},
    )
    orientation = child_boolean(node, "enable_orientation", True)
    common_noise = node.child("noise")  # SDF 1.4: one noise for all axes, <rate> and <accel>
    if common_noise is not None:
        rate, accel = (read_noise(context, _quantity_noise(common_noise, quantity)) for quantity in ("rate", "accel"))
        return ImuSpec((rate, rate, rate), (accel, accel, accel), orientation)
    return ImuSpec(
        _read_axes_noise(context, node.child("angular_velocity")),
        _read_axes_noise(context, node.child("linear_acceleration")),
        orientation,
    )


def _quantity_noise(node: XmlNode, quantity: str) -> XmlNode | None:
    values = node.child(quantity)
    if values is None:
        return None
    kind = node.get("type") or child_text(node, "type", "gaussian")
    return XmlNode("noise", {"type": kind}, values.file, values.line, "", values.children)


def _read_encoder(context: ReaderContext, element: SensorElement) -> EncoderSpec:
    """Read an encoder: ``<joint>`` once per joint, ``<resolution>`` in steps per revolution, ``<noise>`` of the
    velocity.
    """
    node, name, enclosing_joint = element.body, element.name, (element.joint,) if element.joint else ()
    if node is None:
        return EncoderSpec(enclosing_joint)
    context.warn_unknown_children(node, {"joint", "resolution", "noise", "absolute", "miscount"})
    named_joints = tuple(dict.fromkeys(one.text.strip() for one in node.children_with_tag("joint") if one.text.strip()))
    steps = child_integer(node, "resolution", 0)
    if steps < 0:
        raise error_at(
            f"encoder '{name}' has {steps} steps per revolution", node, "at least 1, or 0 for continuous values"
        )
    absolute = child_boolean(node, "absolute", False)
    return EncoderSpec(
        named_joints or enclosing_joint,
        steps,
        read_noise(context, node.child("noise")),
        absolute,
        read_probability(node, "miscount"),
    )


def _read_axes_noise(context: ReaderContext, node: XmlNode | None) -> tuple[Noise, Noise, Noise]:
    parts = [node.child(axis) if node else None for axis in ("x", "y", "z")]
    x, y, z = (read_noise(context, part.child("noise") if part else None) for part in parts)
    return x, y, z


def _read_contact(context: ReaderContext, element: SensorElement) -> ContactSpec:
    body = element.body
    return ContactSpec(tuple(one.text.strip() for one in body.children_with_tag("collision")) if body else ())


def _read_ground_truth(context: ReaderContext, element: SensorElement) -> GroundTruthSpec:
    return GroundTruthSpec()


def _read_sonar(context: ReaderContext, element: SensorElement) -> SonarSpec:
    """Read SDF's ``<min> <max> <radius>`` (of the cone at its end), or Roboyard's ``<half_angle>``."""
    node, defaults = element.body, SonarSpec()
    if node is None:
        return defaults
    context.warn_unknown_children(node, _SONAR_TAGS, {"geometry"})
    near, far = (
        child_number(node, "min", defaults.range_min, minimum=0.0),
        child_number(node, "max", defaults.range_max, minimum=0.0),
    )
    if far <= near:
        raise error_at(
            f"sonar '{element.name}': maximum range {far:g} m is not above minimum range {near:g} m",
            node,
            "max above min",
        )
    radius = child_number(node, "radius", far * math.tan(defaults.half_angle), minimum=0.0, exclusive=True)
    half_angle = child_number(node, "half_angle", math.atan2(radius, far), minimum=0.0, exclusive=True)
    if half_angle >= math.pi / 2:
        raise error_at(f"sonar '{element.name}' has a half angle of {half_angle:g} rad", node, "below pi/2")
    max_incidence_angle = child_number(node, "grazing", defaults.max_incidence_angle, minimum=0.0)
    noise = read_noise(context, node.child("noise"))
    burst_cycles = child_number(node, "cycles", defaults.burst_cycles, minimum=1.0)
    if burst_cycles > _MAX_CYCLES:
        raise error_at(f"sonar '{element.name}' sends {burst_cycles:g} cycles", node, f"at most {_MAX_CYCLES}")
    return SonarSpec(
        near,
        far,
        half_angle,
        max_incidence_angle,
        noise,
        read_probability(node, "phantom"),
        read_probability(node, "dropout"),
        child_number(node, "frequency", defaults.frequency, minimum=0.0, exclusive=True),
        round(burst_cycles),
        read_probability(node, "threshold"),
    )


def _read_three_axis(context: ReaderContext, element: SensorElement) -> ThreeAxisSpec:
    return ThreeAxisSpec(_read_axes_noise(context, element.body))


def _read_child_noise(context: ReaderContext, node: XmlNode | None, tag: str) -> Noise:
    part = node.child(tag) if node is not None else None
    return read_noise(context, part.child("noise") if part is not None else None)


def _read_altimeter(context: ReaderContext, element: SensorElement) -> AltimeterSpec:
    node = element.body
    return AltimeterSpec(
        _read_child_noise(context, node, "vertical_position"), _read_child_noise(context, node, "vertical_velocity")
    )


def _read_barometer(context: ReaderContext, element: SensorElement) -> BarometerSpec:
    node = element.body
    return BarometerSpec(_read_child_noise(context, node, "pressure"), child_number(node, "reference_altitude", 0.0))


def _read_gnss(context: ReaderContext, element: SensorElement) -> GnssSpec:
    node = element.body
    position = node.child("position_sensing") if node else None
    velocity = node.child("velocity_sensing") if node else None
    return GnssSpec(
        _read_child_noise(context, position, "horizontal"),
        _read_child_noise(context, position, "vertical"),
        _read_child_noise(context, velocity, "horizontal"),
        _read_child_noise(context, velocity, "vertical"),
        child_number(node, "sky", GnssSpec().min_sky_fraction, minimum=0.0),
    )


def _read_force_torque(context: ReaderContext, element: SensorElement) -> ForceTorqueSpec:
    node = element.body
    if not element.joint:
        raise error_at(f"force-torque sensor '{element.name}' is not inside a joint", element.node, "<joint><sensor …>")
    frame, direction = child_text(node, "frame", "child"), child_text(node, "measure_direction", "child_to_parent")
    if frame not in ("child", "parent", "sensor"):
        raise error_at(f"<frame> is {quote(frame)}", node or element.node, "child, parent or sensor")
    directions = ("child_to_parent", "parent_to_child")
    if direction not in directions:
        raise error_at(f"<measure_direction> is {quote(direction)}", node or element.node, " or ".join(directions))
    force, torque = (node.child(tag) if node else None for tag in ("force", "torque"))
    noise = _read_axes_noise(context, force), _read_axes_noise(context, torque)
    return ForceTorqueSpec(element.joint, frame, direction, *noise)  # type: ignore[arg-type]


READERS: dict[str, tuple[tuple[str, ...], Callable[[ReaderContext, SensorElement], SensorSpec]]] = {
    "lidar": (("lidar", "ray"), _read_lidar),
    "imu": (("imu",), _read_imu),
    "contact": (("contact",), _read_contact),
    "encoder": (("encoder",), _read_encoder),
    "ground_truth": ((), _read_ground_truth),
    "sonar": (("sonar",), _read_sonar),
    "accelerometer": (("accelerometer",), _read_three_axis),
    "gyroscope": (("gyroscope",), _read_three_axis),
    "magnetometer": (("magnetometer",), _read_three_axis),
    "altimeter": (("altimeter",), _read_altimeter),
    "air_pressure": (("air_pressure",), _read_barometer),
    "navsat": (("navsat", "gps"), _read_gnss),
    "force_torque": (("force_torque",), _read_force_torque),
    **dict.fromkeys(CAMERA_KINDS, (("camera",), read_camera)),
}
"""Names of the element inside and the reader, by sensor kind."""

_KIND_ALIASES = {
    "ray": "lidar", "gpu_ray": "lidar", "gpu_lidar": "lidar", "gps": "navsat", "gnss": "navsat",
    "ultrasonic": "sonar", "force_torque": "force_torque", "bumper": "contact", "barometer": "air_pressure",
    "wideanglecamera": "camera", "wideangle_camera": "camera", "wide_angle_camera": "camera", "infrared": "camera",
    "depth": "depth_camera", "rgbd": "rgbd_camera", "multicamera": "stereo_camera", "stereo": "stereo_camera",
}  # fmt: skip
"""Kinds by their other names."""
_COMMON_TAGS = {
    "pose", "update_rate", "updateRate", "topic", "always_on", "alwaysOn", "plugin", "visualize", "enable_metrics",
    "gz_frame_id", "ignition_frame_id", "frame_id", "latency", "outage", "preset", "phase",
}  # fmt: skip
_READOUT_TIME = 1.0 / 30.0  # an image is read out while the next one is exposed [s]
_MIN_RATE, _MAX_RATE = 0.001, 10_000.0  # [Hz]; physics makes 500 to 10,000 steps a second


def read_sensor(context: ReaderContext, node: XmlNode, link: str, T_link_sensor: SE3, joint: str = "") -> Sensor:
    """Read a sensor.

    Args:
        context: Receives warnings.
        node: The ``<sensor>`` element.
        link: Link that the sensor is mounted on.
        T_link_sensor: Its pose on that link.
        joint: Joint that contains the sensor, if any; an encoder there without a named joint measures this one.

    Raises:
        DescriptionError: A value is invalid; the message states the value and its location.
    """
    name = node.get("name").strip() or f"{link}_{node.get('type', 'sensor')}"
    type_text = node.get("type").strip().lower()
    kind = _KIND_ALIASES.get(type_text, type_text)
    if kind == "depth_camera" and read_camera_plugin(node).kind in ("openni_kinect", "depth_camera", "realsense"):
        kind = "rgbd_camera"
    if not kind:
        raise error_at(f"sensor '{name}' has no type", node, 'type="gpu_lidar", "imu", "contact", …')
    preset = _find_preset(node, name, kind)
    reader = READERS.get(kind)
    spec: SensorSpec
    if preset is not None:
        context.warn_unknown_children(node, _COMMON_TAGS, {"joint"})
        spec = _complete_preset(preset.spec, node, joint)
    elif reader is not None:
        body_tags, read = reader
        context.warn_unknown_children(node, _COMMON_TAGS | set(body_tags))
        body = next((found for tag in body_tags if (found := node.child(tag)) is not None), None)
        spec = read(context, SensorElement(node, body, name, joint, kind, type_text))
    else:
        if kind not in plugin_sensor_kinds():
            context.warn(node, f"sensor '{name}' has the unknown type {quote(type_text)}: it is kept as written")
        spec = CustomSensorSpec(tuple(_flatten(node)))
    rate = child_number(node, "update_rate", child_number(node, "updateRate", 0.0, minimum=0.0), minimum=0.0)
    if 0.0 < rate < _MIN_RATE:
        raise error_at(f"sensor '{name}' has an update rate of {rate:g} Hz", node, f"0 or at least {_MIN_RATE:g} Hz")
    if rate > _MAX_RATE:
        context.warn(node, f"sensor '{name}' has an update rate of {rate:g} Hz: {_MAX_RATE:g} Hz is used")
        rate = _MAX_RATE
    if rate == 0.0:
        rate = DEFAULT_UPDATE_RATES.get(kind, 30.0) if preset is None else preset.update_rate
        if kind != "encoder" and preset is None:  # encoders are read whenever joint states are requested
            context.warn(node, f"sensor '{name}' has no update rate: {rate:g} Hz is used")
    if isinstance(spec, SonarSpec) and 2.0 * spec.range_max * rate > SPEED_OF_SOUND:
        max_echo_distance = 0.5 * SPEED_OF_SOUND / rate
        context.warn(
            node,
            f"sonar '{name}' sends at {rate:g} Hz: echoes from beyond {max_echo_distance:.2g} m cause false readings",
        )
    return Sensor(
        name=name,
        kind=kind,
        link=link,
        T_link_sensor=T_link_sensor,
        update_rate=rate,
        topic=_read_topic(node, name),
        frame=_read_frame(node),
        spec=spec,
        always_on=child_boolean(node, "always_on", child_boolean(node, "alwaysOn", True)),
        latency=child_number(
            node, "latency", min(_READOUT_TIME, 1.0 / rate) if kind in CAMERA_KINDS else 0.0, minimum=0.0
        ),
        outage=_read_outage(context, node.child("outage")),
        phase=_read_phase(node, name, rate),
    )


def _find_preset(node: XmlNode, name: str, kind: str) -> SensorPreset | None:
    """Return the preset named by ``<preset>``. Raises DescriptionError for an unknown one, or one of another kind."""
    preset_name = child_text(node, "preset")
    if not preset_name:
        return None
    preset = PRESETS.get(preset_name)
    if preset is None or preset.kind != kind:
        valid_names = (
            ", ".join(key for key, candidate in PRESETS.items() if candidate.kind == kind) or "no preset for this type"
        )
        raise error_at(f"sensor '{name}' of type {kind} has the unknown preset {quote(preset_name)}", node, valid_names)
    return preset


def _complete_preset(spec: SensorSpec, node: XmlNode, joint: str) -> SensorSpec:
    """Complete a preset with data of its location: an encoder's joint, a camera's frame and topics."""
    if isinstance(spec, CameraSpec):
        plugin = read_camera_plugin(node)
        return replace(spec, optical_frame=plugin.optical_frame, topics=plugin.topics)
    return replace(spec, joints=(joint,)) if isinstance(spec, EncoderSpec) and joint else spec


def _read_outage(context: ReaderContext, node: XmlNode | None) -> Outage:
    """Read ``<outage><every>60</every><lasts>2</lasts></outage>`` [s]."""
    if node is None:
        return Outage()
    context.warn_unknown_children(node, {"every", "lasts"})
    return Outage(
        child_number(node, "every", 0.0, minimum=0.0), child_number(node, "lasts", 1.0, minimum=0.0, exclusive=True)
    )


def _read_phase(node: XmlNode, name: str, rate: float) -> float:
    """Read ``<phase>`` [s], within the sensor's period."""
    phase = child_number(node, "phase", 0.0, minimum=0.0)
    if phase * rate >= 1.0:
        raise error_at(
            f"sensor '{name}' has a phase of {phase:g} s, longer than its period", node, f"less than {1.0 / rate:g} s"
        )
    return phase


@lru_cache(maxsize=1)
def plugin_sensor_kinds() -> frozenset[str]:
    """Return the kinds that other packages simulate; their `CustomSensorSpec` has the content of the file."""
    return frozenset(entry.name for entry in entry_points(group="roboyard.sensors"))


def read_plugin(node: XmlNode, link: str | None = None) -> Plugin:
    """Read a plugin as written."""
    return Plugin(node.get("name").strip(), node.get("filename").strip(), node.freeze(), link)


def _read_topic(node: XmlNode, name: str) -> str:
    """Return the topic relative to the robot: the file's, else a classic Gazebo plugin's, else the sensor's name."""
    topic = child_text(node, "topic")
    body = node.child("contact")
    if not topic and body is not None:
        topic = child_text(body, "topic")
    if topic in ("", "__default_topic__"):
        tags = ("topicName", "topic_name", "bumperTopicName")
        topic = read_plugin_base_topic(node) or _plugin_text(node, tags) or _remapped_topic(node) or name
    return topic.strip("/") or name


def _read_frame(node: XmlNode) -> str:
    """Return the frame id as written; empty if the file has none (the last step of the reader completes it)."""
    frame = next(
        (text for tag in ("gz_frame_id", "ignition_frame_id", "frame_id") if (text := child_text(node, tag))), ""
    )
    frame = frame or _plugin_text(node, ("frame_name", "frameName", "frameId", "frame_id"))
    # A camera's optical frame is rotated relative to the sensor: it is stored with the camera's own parameters.
    return "" if frame == read_camera_plugin(node).optical_frame else frame


def _plugin_text(node: XmlNode, tags: tuple[str, ...]) -> str:
    for plugin in node.children_with_tag("plugin"):
        for tag in tags:
            if text := child_text(plugin, tag):
                return text.strip("/")
    return ""


def _remapped_topic(node: XmlNode) -> str:
    """Return the topic of ``<ros><remapping>~/out:=scan</remapping></ros>``."""
    for plugin in node.children_with_tag("plugin"):
        for ros in plugin.children_with_tag("ros"):
            for remapping in (*ros.children_with_tag("remapping"), *ros.children_with_tag("argument")):
                source, arrow, target = remapping.text.strip().partition(":=")
                if arrow and source.split("/")[-1] in ("out", "image_raw"):
                    return target
    return ""


def _flatten(node: XmlNode, path: str = "") -> list[tuple[str, str]]:
    """List the leaves below `node` as (path/to/leaf, text)."""
    leaves: list[tuple[str, str]] = []
    for child in node.children:
        if child.tag == "plugin":
            continue
        leaf_path = f"{path}{child.tag}"
        if child.text.strip() or not child.children:
            leaves.append((leaf_path, child.text.strip()))
        leaves += [(f"{leaf_path}@{key}", value) for key, value in child.attributes.items()]
        leaves += _flatten(child, f"{leaf_path}/")
    return leaves
