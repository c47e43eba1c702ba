"""``<sensor>`` elements, the same in SDF and in URDF's ``<gazebo>`` blocks, to sensor records."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from importlib.metadata import entry_points

from roboyard.description.camera_plugins import camera_plugin, plugin_base
from roboyard.description.cameras import CAMERA_KINDS, CameraSpec
from roboyard.description.fields import boolean_of, number_of, text_of
from roboyard.description.model import Plugin
from roboyard.description.presets import PRESETS, Preset
from roboyard.description.reading import Reading
from roboyard.description.sensor_kinds import READERS
from roboyard.description.sensor_place import Place
from roboyard.description.sensors import SPEED_OF_SOUND, EncoderSpec, OtherSpec, Outage, Sensor, SensorSpec, SonarSpec
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node
from roboyard.geometry import SE3

_WORDS = {
    "ray": "lidar", "gpu_ray": "lidar", "gpu_lidar": "lidar", "gps": "navsat", "gnss": "navsat",
    "ultrasonic": "sonar", "force_torque": "force_torque", "bumper": "contact", "barometer": "air_pressure",
    "wideanglecamera": "camera", "wideangle_camera": "camera", "wide_angle_camera": "camera", "infrared": "camera",
    "depth": "depth_camera", "rgbd": "rgbd_camera", "multicamera": "stereo_camera", "stereo": "stereo_camera",
}  # fmt: skip
"""What a kind is called elsewhere."""
_DEFAULT_RATE = {
    "lidar": 10.0, "imu": 100.0, "contact": 50.0, "encoder": 50.0, "truth": 50.0, "sonar": 10.0, "navsat": 5.0,
    "accelerometer": 100.0, "gyroscope": 100.0, "magnetometer": 50.0, "altimeter": 20.0, "air_pressure": 20.0,
    "force_torque": 100.0, **dict.fromkeys(CAMERA_KINDS, 30.0),
}  # fmt: skip
_COMMON = {
    "pose", "update_rate", "updateRate", "topic", "always_on", "alwaysOn", "plugin", "visualize", "enable_metrics",
    "gz_frame_id", "ignition_frame_id", "frame_id", "latency", "outage", "preset", "phase",
}  # fmt: skip
_READ_OUT = 1.0 / 30.0  # a picture is read out while the next one is exposed [s]
_SLOWEST, _FASTEST = 0.001, 10_000.0  # [Hz]; physics makes 500 to 10,000 steps a second


def read_sensor(reading: Reading, node: Node, link: str, T_link_sensor: SE3, joint: str = "") -> Sensor:
    """The sensor at ``node``.

    Args:
        reading: Takes findings.
        node: The ``<sensor>`` element.
        link: Link it is mounted on.
        T_link_sensor: Its pose on that link.
        joint: The joint it stands in, if any; an encoder there that names no joint measures this one.

    Raises:
        DescriptionError: a value is impossible; the message names it and its place.
    """
    name = node.get("name").strip() or f"{link}_{node.get('type', 'sensor')}"
    written = node.get("type").strip().lower()
    kind = _WORDS.get(written, written)
    if kind == "depth_camera" and camera_plugin(node).kind in ("openni_kinect", "depth_camera", "realsense"):
        kind = "rgbd_camera"
    if not kind:
        raise fault(f"sensor '{name}' has no type", node, 'type="gpu_lidar", "imu", "contact", …')
    preset = _preset(node, name, kind)
    reader = READERS.get(kind)
    spec: SensorSpec
    if preset is not None:
        reading.unknown(node, _COMMON, {"joint"})
        spec = _here(preset.spec, node, joint)
    elif reader is not None:
        bodies, read = reader
        reading.unknown(node, _COMMON | set(bodies))
        body = next((found for tag in bodies if (found := node.child(tag)) is not None), None)
        spec = read(reading, Place(node, body, name, joint, kind, written))
    else:
        if kind not in sensor_kinds_of_others():
            reading.note(node, f"sensor '{name}' of type {shown(written)} is kept as written: no rule reads it yet")
        spec = OtherSpec(tuple(_flat(node)))
    rate = number_of(node, "update_rate", number_of(node, "updateRate", 0.0, low=0.0), low=0.0)
    if 0.0 < rate < _SLOWEST:
        raise fault(f"sensor '{name}' has an update rate of {rate:g} Hz", node, f"0 or at least {_SLOWEST:g} Hz")
    if rate > _FASTEST:
        reading.note(node, f"sensor '{name}' has an update rate of {rate:g} Hz: {_FASTEST:g} Hz taken")
        rate = _FASTEST
    if rate == 0.0:
        rate = _DEFAULT_RATE.get(kind, 30.0) if preset is None else preset.rate
        if kind != "encoder" and preset is None:  # read whenever somebody asks for the joints
            reading.note(node, f"sensor '{name}' has no update rate: {rate:g} Hz taken")
    if isinstance(spec, SonarSpec) and 2.0 * spec.range_max * rate > SPEED_OF_SOUND:
        heard = 0.5 * SPEED_OF_SOUND / rate
        reading.note(node, f"sonar '{name}' sends at {rate:g} Hz: echoes from beyond {heard:.2g} m come as phantoms")
    return Sensor(
        name=name,
        kind=kind,
        link=link,
        T_link_sensor=T_link_sensor,
        update_rate=rate,
        topic=_topic(node, name),
        frame=_frame(node),
        spec=spec,
        always_on=boolean_of(node, "always_on", boolean_of(node, "alwaysOn", True)),
        latency=number_of(node, "latency", min(_READ_OUT, 1.0 / rate) if kind in CAMERA_KINDS else 0.0, low=0.0),
        outage=_outage(reading, node.child("outage")),
        phase=_phase(node, name, rate),
    )


def _preset(node: Node, name: str, kind: str) -> Preset | None:
    """What ``<preset>`` asks for. Raises DescriptionError for an unknown one, or one of another kind."""
    called = text_of(node, "preset")
    if not called:
        return None
    found = PRESETS.get(called)
    if found is None or found.kind != kind:
        fitting = ", ".join(key for key, preset in PRESETS.items() if preset.kind == kind) or "none for this type"
        raise fault(f"sensor '{name}' of type {kind} asks for the preset {shown(called)}", node, fitting)
    return found


def _here(spec: SensorSpec, node: Node, joint: str) -> SensorSpec:
    """A preset with what only its place can say: an encoder's joint, a camera's frame and topics."""
    if isinstance(spec, CameraSpec):
        plugin = camera_plugin(node)
        return replace(spec, optical_frame=plugin.optical_frame, topics=plugin.topics)
    return replace(spec, joints=(joint,)) if isinstance(spec, EncoderSpec) and joint else spec


def _outage(reading: Reading, node: Node | None) -> Outage:
    """``<outage><every>60</every><lasts>2</lasts></outage>`` [s]."""
    if node is None:
        return Outage()
    reading.unknown(node, {"every", "lasts"})
    return Outage(number_of(node, "every", 0.0, low=0.0), number_of(node, "lasts", 1.0, low=0.0, above=True))


def _phase(node: Node, name: str, rate: float) -> float:
    """``<phase>`` [s], within the sensor's period."""
    phase = number_of(node, "phase", 0.0, low=0.0)
    if phase * rate >= 1.0:
        raise fault(f"sensor '{name}' measures {phase:g} s into its period", node, f"less than {1.0 / rate:g} s")
    return phase


@lru_cache(maxsize=1)
def sensor_kinds_of_others() -> frozenset[str]:
    """Kinds that other packages simulate; their ``OtherSpec`` holds what the file says."""
    return frozenset(entry.name for entry in entry_points(group="roboyard.sensors"))


def read_plugin(node: Node, link: str | None = None) -> Plugin:
    """The plugin at ``node`` as written."""
    return Plugin(node.get("name").strip(), node.get("filename").strip(), node.element(), link)


def _topic(node: Node, name: str) -> str:
    """Topic relative to the robot: the file's, else a classic Gazebo plugin's, else the sensor's name."""
    topic = text_of(node, "topic")
    body = node.child("contact")
    if not topic and body is not None:
        topic = text_of(body, "topic")
    if topic in ("", "__default_topic__"):
        tags = ("topicName", "topic_name", "bumperTopicName")
        topic = plugin_base(node) or _from_plugins(node, tags) or _remapped(node) or name
    return topic.strip("/") or name


def _frame(node: Node) -> str:
    """Frame id as written; empty where the file gives none (the model's assembly fills it in)."""
    said = next((text for tag in ("gz_frame_id", "ignition_frame_id", "frame_id") if (text := text_of(node, tag))), "")
    said = said or _from_plugins(node, ("frame_name", "frameName", "frameId", "frame_id"))
    # A camera's optical frame is turned against the sensor: it is kept with the camera's own things.
    return "" if said == camera_plugin(node).optical_frame else said


def _from_plugins(node: Node, tags: tuple[str, ...]) -> str:
    for plugin in node.all("plugin"):
        for tag in tags:
            if text := text_of(plugin, tag):
                return text.strip("/")
    return ""


def _remapped(node: Node) -> str:
    """``<ros><remapping>~/out:=scan</remapping></ros>``"""
    for plugin in node.all("plugin"):
        for ros in plugin.all("ros"):
            for one in (*ros.all("remapping"), *ros.all("argument")):
                source, arrow, target = one.text.strip().partition(":=")
                if arrow and source.split("/")[-1] in ("out", "image_raw"):
                    return target
    return ""


def _flat(node: Node, path: str = "") -> list[tuple[str, str]]:
    """Leaves below ``node`` as (path/to/leaf, text)."""
    leaves: list[tuple[str, str]] = []
    for child in node.children:
        if child.tag == "plugin":
            continue
        here = f"{path}{child.tag}"
        if child.text.strip() or not child.children:
            leaves.append((here, child.text.strip()))
        leaves += [(f"{here}@{key}", value) for key, value in child.attributes.items()]
        leaves += _flat(child, f"{here}/")
    return leaves
