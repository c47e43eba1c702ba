"""``<sensor>`` elements, the same in SDF and in URDF's ``<gazebo>`` blocks, to sensor records."""

from __future__ import annotations

import math

from roboyard.description.fields import boolean_of, integer_of, number_of, text_of
from roboyard.description.model import Plugin
from roboyard.description.reading import Reading
from roboyard.description.sensors import (
    ContactSpec,
    EncoderSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    OtherSpec,
    Sensor,
    SensorSpec,
    TruthSpec,
)
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node
from roboyard.geometry import SE3

_LIDAR = ("ray", "gpu_ray", "lidar", "gpu_lidar")
_DEFAULT_RATE = {"lidar": 10.0, "imu": 100.0, "contact": 50.0, "encoder": 50.0, "truth": 50.0}
_COMMON = {
    "pose", "update_rate", "updateRate", "topic", "always_on", "alwaysOn", "plugin", "visualize", "enable_metrics",
    "gz_frame_id", "ignition_frame_id", "frame_id",
}  # fmt: skip
_DEFAULT_RANGE = 30.0  # [m]
_SLOWEST, _FASTEST = 0.001, 10_000.0  # [Hz]; physics makes 500 to 10,000 steps a second
_LOUDEST = 1e9  # noise of any unit
_MAX_RAYS = 2_000_000


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
    kind = "lidar" if written in _LIDAR else written
    if not kind:
        raise fault(f"sensor '{name}' has no type", node, 'type="gpu_lidar", "imu", "contact", …')
    spec: SensorSpec
    if kind == "lidar":
        body = node.child("lidar") or node.child("ray")
        reading.unknown(node, _COMMON | {"lidar", "ray"})
        spec = _lidar(reading, body or node, name)
    elif kind == "imu":
        reading.unknown(node, _COMMON | {"imu"})
        spec = _imu(reading, node.child("imu"))
    elif kind == "contact":
        reading.unknown(node, _COMMON | {"contact"})
        body = node.child("contact")
        spec = ContactSpec(tuple(one.text.strip() for one in body.all("collision")) if body else ())
    elif kind == "encoder":
        reading.unknown(node, _COMMON | {"encoder"})
        spec = _encoder(reading, node.child("encoder"), name, joint)
    elif kind == "truth":
        reading.unknown(node, _COMMON)
        spec = TruthSpec()
    else:
        reading.note(node, f"sensor '{name}' of type {shown(written)} is kept as written: no rule reads it yet")
        spec = OtherSpec(tuple(_flat(node)))
    rate = number_of(node, "update_rate", number_of(node, "updateRate", 0.0, low=0.0), low=0.0)
    if 0.0 < rate < _SLOWEST:
        raise fault(f"sensor '{name}' has an update rate of {rate:g} Hz", node, f"0 or at least {_SLOWEST:g} Hz")
    if rate > _FASTEST:
        reading.note(node, f"sensor '{name}' has an update rate of {rate:g} Hz: {_FASTEST:g} Hz taken")
        rate = _FASTEST
    if rate == 0.0:
        rate = _DEFAULT_RATE.get(kind, 30.0)
        if kind != "encoder":  # read whenever somebody asks for the joints
            reading.note(node, f"sensor '{name}' has no update rate: {rate:g} Hz taken")
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
    )


def read_plugin(node: Node, link: str | None = None) -> Plugin:
    """The plugin at ``node`` as written."""
    return Plugin(node.get("name").strip(), node.get("filename").strip(), node.element(), link)


def read_noise(reading: Reading, node: Node | None) -> Noise:
    """A ``<noise>`` element; None is ideal. Raises DescriptionError for a negative spread."""
    if node is None:
        return Noise()
    kind = (node.get("type") or text_of(node, "type", "gaussian")).strip().lower()
    if kind == "none":
        return Noise()
    if kind not in ("gaussian", "gaussian_quantized"):
        reading.note(node, f"noise type {shown(kind)} is not understood: no noise")
        return Noise()

    def value(tag: str, low: float = 0.0) -> float:
        found = number_of(node, tag, 0.0, low=low)
        if abs(found) > _LOUDEST:
            raise fault(f"<{tag}> is {found:g}", node.child(tag) or node, f"at most {_LOUDEST:g}")
        return found

    return Noise(
        mean=value("mean", -math.inf),
        stddev=value("stddev"),
        bias_mean=value("bias_mean", -math.inf),
        bias_stddev=value("bias_stddev"),
        dynamic_bias_stddev=value("dynamic_bias_stddev"),
        dynamic_bias_correlation_time=value("dynamic_bias_correlation_time"),
        precision=value("precision") if kind == "gaussian_quantized" else 0.0,
    )


def _lidar(reading: Reading, node: Node, name: str) -> LidarSpec:
    scan = node.child("scan")
    span = node.child("range")
    reading.unknown(node, _COMMON | {"scan", "range", "noise"}, {"visibility_mask"})
    samples, angle_min, angle_max = _fan(scan.child("horizontal") if scan else None, name, 640, math.pi / 2)
    rows, row_min, row_max = _fan(scan.child("vertical") if scan else None, name, 1, 0.0)
    if samples * rows > _MAX_RAYS:
        raise fault(f"lidar '{name}' has {samples} × {rows} rays", node, f"at most {_MAX_RAYS}")
    near = number_of(span, "min", 0.0, low=0.0)
    far = number_of(span, "max", 0.0, low=0.0, infinite=True)
    if far == 0.0:
        far = _DEFAULT_RANGE
        reading.note(span or node, f"lidar '{name}' has no largest range: {far:g} m taken")
    if far <= near:
        raise fault(f"lidar '{name}' sees from {near:g} m to {far:g} m", span or node, "max above min")
    return LidarSpec(
        samples=samples,
        angle_min=angle_min,
        angle_max=angle_max,
        vertical_samples=rows,
        vertical_angle_min=row_min,
        vertical_angle_max=row_max,
        range_min=near,
        range_max=far,
        resolution=number_of(span, "resolution", 0.0, low=0.0),
        noise=read_noise(reading, node.child("noise")),
    )


def _fan(node: Node | None, name: str, samples: int, half: float) -> tuple[int, float, float]:
    """Samples and angles of one direction; ``resolution`` multiplies the samples, as in SDF."""
    count = integer_of(node, "samples", samples) * number_of(node, "resolution", 1.0, low=0.0, above=True)
    low = number_of(node, "min_angle", -half)
    high = number_of(node, "max_angle", half)
    if node is not None and (count < 1.0 or low > high):
        raise fault(
            f"lidar '{name}' has {count:g} samples from {low:g} to {high:g} rad",
            node,
            "at least 1 sample, min_angle ≤ max_angle",
        )
    return round(count), low, high


def _imu(reading: Reading, node: Node | None) -> ImuSpec:
    if node is None:
        return ImuSpec()
    reading.unknown(
        node,
        {"angular_velocity", "linear_acceleration", "enable_orientation", "noise"},
        {"orientation_reference_frame", "topic"},
    )
    orientation = boolean_of(node, "enable_orientation", True)
    old = node.child("noise")  # SDF 1.4: one noise for all axes, <rate> and <accel>
    if old is not None:
        rate, accel = (read_noise(reading, _old_noise(old, part)) for part in ("rate", "accel"))
        return ImuSpec((rate, rate, rate), (accel, accel, accel), orientation)
    return ImuSpec(
        _axes(reading, node.child("angular_velocity")), _axes(reading, node.child("linear_acceleration")), orientation
    )


def _old_noise(node: Node, part: str) -> Node | None:
    values = node.child(part)
    if values is None:
        return None
    kind = node.get("type") or text_of(node, "type", "gaussian")
    return Node("noise", {"type": kind}, values.file, values.line, "", values.children)


def _encoder(reading: Reading, node: Node | None, name: str, joint: str) -> EncoderSpec:
    """``<joint>`` as often as there are joints, ``<resolution>`` in steps per revolution, ``<noise>`` of the speed."""
    own = (joint,) if joint else ()
    if node is None:
        return EncoderSpec(own)
    reading.unknown(node, {"joint", "resolution", "noise"})
    named = tuple(dict.fromkeys(one.text.strip() for one in node.all("joint") if one.text.strip()))
    steps = integer_of(node, "resolution", 0)
    if steps < 0:
        raise fault(f"encoder '{name}' has {steps} steps per revolution", node, "at least 1, or 0 for no steps")
    return EncoderSpec(named or own, steps, read_noise(reading, node.child("noise")))


def _axes(reading: Reading, node: Node | None) -> tuple[Noise, Noise, Noise]:
    parts = [node.child(axis) if node else None for axis in ("x", "y", "z")]
    x, y, z = (read_noise(reading, part.child("noise") if part else None) for part in parts)
    return x, y, z


def _topic(node: Node, name: str) -> str:
    """Topic relative to the robot: the file's, else a classic Gazebo plugin's, else the sensor's name."""
    topic = text_of(node, "topic")
    body = node.child("contact")
    if not topic and body is not None:
        topic = text_of(body, "topic")
    if topic in ("", "__default_topic__"):
        topic = _from_plugins(node, ("topicName", "topic_name", "bumperTopicName")) or _remapped(node) or name
    return topic.strip("/") or name


def _frame(node: Node) -> str:
    """Frame id as written; empty where the file gives none (the model's assembly fills it in)."""
    for tag in ("gz_frame_id", "ignition_frame_id", "frame_id"):
        if text := text_of(node, tag):
            return text
    return _from_plugins(node, ("frame_name", "frameName", "frameId", "frame_id"))


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
