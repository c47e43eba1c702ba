"""``<sensor>`` elements, the same in SDF and in URDF's ``<gazebo>`` blocks, to sensor records."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from importlib.metadata import entry_points

from roboyard.description.camera_plugins import read_camera_plugin, read_plugin_base_topic
from roboyard.description.cameras import CAMERA_KINDS, CameraSpec
from roboyard.description.fields import child_boolean, child_number, child_text
from roboyard.description.model import Plugin
from roboyard.description.presets import PRESETS, SensorPreset
from roboyard.description.reading import ReaderContext
from roboyard.description.sensor_kinds import READERS
from roboyard.description.sensor_place import SensorElement
from roboyard.description.sensors import (
    SPEED_OF_SOUND,
    CustomSensorSpec,
    EncoderSpec,
    Outage,
    Sensor,
    SensorSpec,
    SonarSpec,
)
from roboyard.description.values import error_at, quote
from roboyard.description.xml import XmlNode
from roboyard.geometry import SE3

_KIND_ALIASES = {
    "ray": "lidar", "gpu_ray": "lidar", "gpu_lidar": "lidar", "gps": "navsat", "gnss": "navsat",
    "ultrasonic": "sonar", "force_torque": "force_torque", "bumper": "contact", "barometer": "air_pressure",
    "wideanglecamera": "camera", "wideangle_camera": "camera", "wide_angle_camera": "camera", "infrared": "camera",
    "depth": "depth_camera", "rgbd": "rgbd_camera", "multicamera": "stereo_camera", "stereo": "stereo_camera",
}  # fmt: skip
"""What a kind is called elsewhere."""
_DEFAULT_RATES = {
    "lidar": 10.0, "imu": 100.0, "contact": 50.0, "encoder": 50.0, "truth": 50.0, "sonar": 10.0, "navsat": 5.0,
    "accelerometer": 100.0, "gyroscope": 100.0, "magnetometer": 50.0, "altimeter": 20.0, "air_pressure": 20.0,
    "force_torque": 100.0, **dict.fromkeys(CAMERA_KINDS, 30.0),
}  # fmt: skip
_COMMON_TAGS = {
    "pose", "update_rate", "updateRate", "topic", "always_on", "alwaysOn", "plugin", "visualize", "enable_metrics",
    "gz_frame_id", "ignition_frame_id", "frame_id", "latency", "outage", "preset", "phase",
}  # fmt: skip
_READOUT_TIME = 1.0 / 30.0  # a picture is read out while the next one is exposed [s]
_MIN_RATE, _MAX_RATE = 0.001, 10_000.0  # [Hz]; physics makes 500 to 10,000 steps a second


def read_sensor(context: ReaderContext, node: XmlNode, link: str, T_link_sensor: SE3, joint: str = "") -> Sensor:
    """The sensor at ``node``.

    Args:
        context: Takes findings.
        node: The ``<sensor>`` element.
        link: Link it is mounted on.
        T_link_sensor: Its pose on that link.
        joint: The joint it stands in, if any; an encoder there that names no joint measures this one.

    Raises:
        DescriptionError: a value is impossible; the message names it and its place.
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
            context.warn(node, f"sensor '{name}' of type {quote(type_text)} is kept as written: no rule reads it yet")
        spec = CustomSensorSpec(tuple(_flatten(node)))
    rate = child_number(node, "update_rate", child_number(node, "updateRate", 0.0, minimum=0.0), minimum=0.0)
    if 0.0 < rate < _MIN_RATE:
        raise error_at(f"sensor '{name}' has an update rate of {rate:g} Hz", node, f"0 or at least {_MIN_RATE:g} Hz")
    if rate > _MAX_RATE:
        context.warn(node, f"sensor '{name}' has an update rate of {rate:g} Hz: {_MAX_RATE:g} Hz taken")
        rate = _MAX_RATE
    if rate == 0.0:
        rate = _DEFAULT_RATES.get(kind, 30.0) if preset is None else preset.update_rate
        if kind != "encoder" and preset is None:  # read whenever somebody asks for the joints
            context.warn(node, f"sensor '{name}' has no update rate: {rate:g} Hz taken")
    if isinstance(spec, SonarSpec) and 2.0 * spec.range_max * rate > SPEED_OF_SOUND:
        max_echo_distance = 0.5 * SPEED_OF_SOUND / rate
        context.warn(
            node, f"sonar '{name}' sends at {rate:g} Hz: echoes from beyond {max_echo_distance:.2g} m come as phantoms"
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
    """What ``<preset>`` asks for. Raises DescriptionError for an unknown one, or one of another kind."""
    preset_name = child_text(node, "preset")
    if not preset_name:
        return None
    preset = PRESETS.get(preset_name)
    if preset is None or preset.kind != kind:
        valid_names = (
            ", ".join(key for key, candidate in PRESETS.items() if candidate.kind == kind) or "none for this type"
        )
        raise error_at(f"sensor '{name}' of type {kind} asks for the preset {quote(preset_name)}", node, valid_names)
    return preset


def _complete_preset(spec: SensorSpec, node: XmlNode, joint: str) -> SensorSpec:
    """A preset with what only its place can say: an encoder's joint, a camera's frame and topics."""
    if isinstance(spec, CameraSpec):
        plugin = read_camera_plugin(node)
        return replace(spec, optical_frame=plugin.optical_frame, topics=plugin.topics)
    return replace(spec, joints=(joint,)) if isinstance(spec, EncoderSpec) and joint else spec


def _read_outage(context: ReaderContext, node: XmlNode | None) -> Outage:
    """``<outage><every>60</every><lasts>2</lasts></outage>`` [s]."""
    if node is None:
        return Outage()
    context.warn_unknown_children(node, {"every", "lasts"})
    return Outage(
        child_number(node, "every", 0.0, minimum=0.0), child_number(node, "lasts", 1.0, minimum=0.0, exclusive=True)
    )


def _read_phase(node: XmlNode, name: str, rate: float) -> float:
    """``<phase>`` [s], within the sensor's period."""
    phase = child_number(node, "phase", 0.0, minimum=0.0)
    if phase * rate >= 1.0:
        raise error_at(f"sensor '{name}' measures {phase:g} s into its period", node, f"less than {1.0 / rate:g} s")
    return phase


@lru_cache(maxsize=1)
def plugin_sensor_kinds() -> frozenset[str]:
    """Kinds that other packages simulate; their ``CustomSensorSpec`` holds what the file says."""
    return frozenset(entry.name for entry in entry_points(group="roboyard.sensors"))


def read_plugin(node: XmlNode, link: str | None = None) -> Plugin:
    """The plugin at ``node`` as written."""
    return Plugin(node.get("name").strip(), node.get("filename").strip(), node.freeze(), link)


def _read_topic(node: XmlNode, name: str) -> str:
    """Topic relative to the robot: the file's, else a classic Gazebo plugin's, else the sensor's name."""
    topic = child_text(node, "topic")
    body = node.child("contact")
    if not topic and body is not None:
        topic = child_text(body, "topic")
    if topic in ("", "__default_topic__"):
        tags = ("topicName", "topic_name", "bumperTopicName")
        topic = read_plugin_base_topic(node) or _plugin_text(node, tags) or _remapped_topic(node) or name
    return topic.strip("/") or name


def _read_frame(node: XmlNode) -> str:
    """Frame id as written; empty where the file gives none (the model's assembly fills it in)."""
    frame = next(
        (text for tag in ("gz_frame_id", "ignition_frame_id", "frame_id") if (text := child_text(node, tag))), ""
    )
    frame = frame or _plugin_text(node, ("frame_name", "frameName", "frameId", "frame_id"))
    # A camera's optical frame is turned against the sensor: it is kept with the camera's own things.
    return "" if frame == read_camera_plugin(node).optical_frame else frame


def _plugin_text(node: XmlNode, tags: tuple[str, ...]) -> str:
    for plugin in node.children_with_tag("plugin"):
        for tag in tags:
            if text := child_text(plugin, tag):
                return text.strip("/")
    return ""


def _remapped_topic(node: XmlNode) -> str:
    """``<ros><remapping>~/out:=scan</remapping></ros>``"""
    for plugin in node.children_with_tag("plugin"):
        for ros in plugin.children_with_tag("ros"):
            for remapping in (*ros.children_with_tag("remapping"), *ros.children_with_tag("argument")):
                source, arrow, target = remapping.text.strip().partition(":=")
                if arrow and source.split("/")[-1] in ("out", "image_raw"):
                    return target
    return ""


def _flatten(node: XmlNode, path: str = "") -> list[tuple[str, str]]:
    """Leaves below ``node`` as (path/to/leaf, text)."""
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
