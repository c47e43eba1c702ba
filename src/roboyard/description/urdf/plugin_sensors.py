"""Sensors that plugins define without a ``<sensor>``, as in Gazebo Classic and hector_gazebo; mimic plugins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from roboyard.description.model import Joint, Link, Mimic
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensors import (
    AltimeterSpec,
    ForceTorqueSpec,
    GnssSpec,
    ImuSpec,
    Noise,
    Sensor,
    SensorSpec,
    ThreeAxisSpec,
)
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import child_number, child_text, parse_number, quote
from roboyard.geometry import SE3

_SENSOR_PLUGIN_FILE = re.compile(r"^lib(?:hector_)?gazebo_ros_(imu|gps|magnetic|baro|ft_sensor|f3d)\.so$")
_MIMIC_PLUGIN_FILES = ("libroboticsgroup_gazebo_mimic_joint_plugin.so", "libgazebo_mimic_joint_plugin.so",
          "libroboticsgroup_upatras_gazebo_mimic_joint_plugin.so")  # fmt: skip
_PLUGIN_RATES = {"imu": 100.0, "gps": 4.0, "magnetic": 50.0, "baro": 20.0, "ft_sensor": 100.0, "f3d": 100.0}
"""Default rates of the plugins [Hz]; the GPS plugin's default is lower than that of a sensor."""
_MAX_RATE = 1000.0  # [Hz]
_DRIFT_TIME = 3600.0  # time constant of hector's drifts [s]
_EARTH_FIELD = 5e-5  # strength of the earth's field in hector's plugin [T]
_Axes = tuple[Noise, Noise, Noise]


@dataclass(frozen=True, slots=True)
class _SensorPlugin:
    """Plugin with its link and the joints of the robot."""

    node: XmlNode
    link: str
    joints: Mapping[str, Joint]


def read_plugin_sensor(
    context: ReaderContext, node: XmlNode, link: str | None, links: Mapping[str, Link], joints: Mapping[str, Joint]
) -> Sensor | None:
    """Read the sensor that a plugin defines; None for other plugins and for invalid ones.

    Args:
        context: Receives warnings.
        node: The ``<plugin>``.
        link: Link of the surrounding ``<gazebo>`` block, if it has one.
        links: Links by name.
        joints: Joints by name.

    Raises:
        DescriptionError: A value is not a number.
    """
    match = _SENSOR_PLUGIN_FILE.match(node.get("filename").strip().rpartition("/")[2])
    if match is None:
        return None
    kind, read_spec = _SENSOR_READERS[match[1]]
    joint = child_text(node, "jointName", child_text(node, "joint_name"))
    if kind == "force_torque" and joint:
        sensor_link = joints[joint].child if joint in joints else ""
    else:
        sensor_link = child_text(node, "bodyName", child_text(node, "body_name", link or ""))
    name = node.get("name").strip() or f"{sensor_link}_{kind}"
    if sensor_link not in links:
        context.warn(
            node, f"plugin '{name}' measures at the unknown link or joint {quote(joint or sensor_link)}: ignored"
        )
        return None
    spec = read_spec(context, _SensorPlugin(node, sensor_link, joints))
    if spec is None:
        return None
    rate = child_number(node, "updateRate", child_number(node, "update_rate", 0.0, minimum=0.0), minimum=0.0)
    topic = child_text(node, "topicName", child_text(node, "topic_name", _remapped_topic(node))).strip("/")
    return Sensor(
        name=name,
        kind=kind,
        link=sensor_link,
        T_link_sensor=_read_offset(node),
        update_rate=min(rate, _MAX_RATE) if rate > 0.001 else _PLUGIN_RATES[match[1]],
        topic=topic or name,
        frame=child_text(node, "frameId", child_text(node, "frameName", child_text(node, "frame_name"))).strip("/"),
        spec=spec,
    )


def apply_mimic_plugin(context: ReaderContext, node: XmlNode, joints: dict[str, Joint]) -> None:
    """Apply a mimic plugin to its joint, unless the description already defines a mimic."""
    if node.get("filename").strip().rpartition("/")[2] not in _MIMIC_PLUGIN_FILES:
        return
    leader, name = child_text(node, "joint"), child_text(node, "mimicJoint")
    if name not in joints or leader not in joints or name == leader:
        context.warn(node, f"a mimic plugin connects {quote(name)} to {quote(leader)}: ignored")
        return
    follower_joint, leader_joint = joints[name], joints[leader]
    if (
        follower_joint.mimic is not None
        or leader_joint.mimic is not None
        or not follower_joint.axes
        or not leader_joint.axes
    ):
        return
    mimic = Mimic(leader, child_number(node, "multiplier", 1.0), child_number(node, "offset", 0.0))
    joints[name] = replace(follower_joint, mimic=mimic)


def _read_three_numbers(node: XmlNode, *tags: str) -> tuple[float, float, float]:
    """Read three numbers, or one for all; zeros without a value."""
    for tag in tags:
        text = child_text(node, tag)
        if text:
            value_node = node.child(tag) or node
            values = [parse_number(part, value_node, f"<{tag}>") for part in text.split()[:3]]
            if len(values) == 3:
                return values[0], values[1], values[2]
            return values[0], values[0], values[0]
    return 0.0, 0.0, 0.0


def _read_axis_noises(node: XmlNode, channel: str, scale: float = 1.0, common: str = "gaussianNoise") -> _Axes:
    """Read offset, drift and Gaussian noise of a channel; `channel` is the prefix of the tags, e.g. "accel"."""

    def channel_tag(name: str) -> str:
        return channel + name[0].upper() + name[1:] if channel else name

    stddev = _read_three_numbers(node, channel_tag("gaussianNoise"), *([common] if common else []))
    drift, mean = _read_three_numbers(node, channel_tag("drift")), _read_three_numbers(node, channel_tag("offset"))
    x, y, z = (
        Noise(
            mean=scale * mean[axis],
            stddev=scale * abs(stddev[axis]),
            dynamic_bias_stddev=scale * abs(drift[axis]),
            dynamic_bias_correlation_time=_DRIFT_TIME if drift[axis] else 0.0,
        )
        for axis in range(3)
    )
    return x, y, z


def _imu_spec(context: ReaderContext, plugin: _SensorPlugin) -> SensorSpec:
    return ImuSpec(_read_axis_noises(plugin.node, "rate"), _read_axis_noises(plugin.node, "accel"))


def _gnss_spec(context: ReaderContext, plugin: _SensorPlugin) -> SensorSpec:
    horizontal, _, vertical = _read_axis_noises(plugin.node, "")
    horizontal_velocity, _, vertical_velocity = _read_axis_noises(plugin.node, "velocity", common="")
    for tag in ("referenceLatitude", "referenceLongitude", "referenceAltitude", "referenceHeading"):
        child = plugin.node.child(tag)
        if child is not None and float(_read_three_numbers(plugin.node, tag)[0]):
            context.warn(child, f"<{tag}> is ignored: the geodetic origin of the world is used")
    return GnssSpec(horizontal, vertical, horizontal_velocity, vertical_velocity)


def _magnetometer_spec(context: ReaderContext, plugin: _SensorPlugin) -> SensorSpec:
    return ThreeAxisSpec(_read_axis_noises(plugin.node, "", _EARTH_FIELD))


def _altimeter_spec(context: ReaderContext, plugin: _SensorPlugin) -> SensorSpec:
    return AltimeterSpec(_read_axis_noises(plugin.node, "")[0])


def _force_torque_spec(context: ReaderContext, plugin: _SensorPlugin) -> SensorSpec | None:
    joint = child_text(plugin.node, "jointName", child_text(plugin.node, "joint_name"))
    joint = joint or next((one.name for one in plugin.joints.values() if one.child == plugin.link), "")
    if not joint:
        context.warn(
            plugin.node,
            f"plugin '{plugin.node.get('name')}' measures a force, but '{plugin.link}' is not the child of a joint",
        )
        return None
    noise = _read_axis_noises(plugin.node, "")
    return ForceTorqueSpec(joint, force=noise, torque=noise)


_SENSOR_READERS: dict[str, tuple[str, Callable[[ReaderContext, _SensorPlugin], SensorSpec | None]]] = {
    "imu": ("imu", _imu_spec),
    "gps": ("navsat", _gnss_spec),
    "magnetic": ("magnetometer", _magnetometer_spec),
    "baro": ("altimeter", _altimeter_spec),
    "ft_sensor": ("force_torque", _force_torque_spec),
    "f3d": ("force_torque", _force_torque_spec),
}
"""Kind of the sensor and its reader, by the plugin's name."""


def _read_offset(node: XmlNode) -> SE3:
    xyz = _read_three_numbers(node, "xyzOffset", "xyzOffsets", "xyz_offset")
    return SE3.from_xyz_rpy(xyz, _read_three_numbers(node, "rpyOffset", "rpyOffsets", "rpy_offset"))


def _remapped_topic(node: XmlNode) -> str:
    for ros in node.children_with_tag("ros"):
        for one in ros.children_with_tag("remapping"):
            _, arrow, target = one.text.strip().partition(":=")
            if arrow:
                return target
    return ""
