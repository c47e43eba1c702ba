"""Sensors that a plugin makes without a ``<sensor>`` around it, as Gazebo Classic's and hector's do; mimic plugins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from roboyard.description.fields import number_of, text_of
from roboyard.description.model import Joint, Link, Mimic
from roboyard.description.reading import Reading
from roboyard.description.sensors import (
    AltimeterSpec,
    ForceTorqueSpec,
    ImuSpec,
    Noise,
    SatelliteSpec,
    Sensor,
    SensorSpec,
    VectorSpec,
)
from roboyard.description.values import number, shown
from roboyard.description.xml import Node
from roboyard.geometry import SE3

_FILE = re.compile(r"^lib(?:hector_)?gazebo_ros_(imu|gps|magnetic|baro|ft_sensor|f3d)\.so$")
_MIMIC = ("libroboticsgroup_gazebo_mimic_joint_plugin.so", "libgazebo_mimic_joint_plugin.so",
          "libroboticsgroup_upatras_gazebo_mimic_joint_plugin.so")  # fmt: skip
_RATE = {"imu": 100.0, "gps": 4.0, "magnetic": 50.0, "baro": 20.0, "ft_sensor": 100.0, "f3d": 100.0}  # [Hz]
_FASTEST = 1000.0  # [Hz]
_SLOW = 3600.0  # time in which hector's drifts change [s]
_FIELD = 5e-5  # of the earth, where hector's plugin counts in its strength [T]
_Axes = tuple[Noise, Noise, Noise]


@dataclass(frozen=True, slots=True)
class _Said:
    """A plugin and what it stands on."""

    node: Node
    link: str
    joints: Mapping[str, Joint]


def read_plugin_sensor(
    reading: Reading, node: Node, link: str | None, links: Mapping[str, Link], joints: Mapping[str, Joint]
) -> Sensor | None:
    """The sensor that the plugin at ``node`` makes by itself; None for other plugins, and for one that cannot be.

    Args:
        reading: Takes findings.
        node: The ``<plugin>``.
        link: Of the ``<gazebo>`` block it stands in, if that is one of a link.
        links: By name.
        joints: By name.

    Raises:
        DescriptionError: one of its values is no number.
    """
    found = _FILE.match(node.get("filename").strip().rpartition("/")[2])
    if found is None:
        return None
    kind, read = _KINDS[found[1]]
    joint = text_of(node, "jointName", text_of(node, "joint_name"))
    if kind == "force_torque" and joint:
        body = joints[joint].child if joint in joints else ""
    else:
        body = text_of(node, "bodyName", text_of(node, "body_name", link or ""))
    name = node.get("name").strip() or f"{body}_{kind}"
    if body not in links:
        reading.note(node, f"plugin '{name}' measures at {shown(joint or body)}, which is not there: left out")
        return None
    spec = read(reading, _Said(node, body, joints))
    if spec is None:
        return None
    rate = number_of(node, "updateRate", number_of(node, "update_rate", 0.0, low=0.0), low=0.0)
    topic = text_of(node, "topicName", text_of(node, "topic_name", _remapped(node))).strip("/")
    return Sensor(
        name=name,
        kind=kind,
        link=body,
        T_link_sensor=_offset(node),
        update_rate=min(rate, _FASTEST) if rate > 0.001 else _RATE[found[1]],
        topic=topic or name,
        frame=text_of(node, "frameId", text_of(node, "frameName", text_of(node, "frame_name"))).strip("/"),
        spec=spec,
    )


def follow_mimic(reading: Reading, node: Node, joints: dict[str, Joint]) -> None:
    """Let the joint that a mimic plugin names follow the other, unless the description says so already."""
    if node.get("filename").strip().rpartition("/")[2] not in _MIMIC:
        return
    leader, name = text_of(node, "joint"), text_of(node, "mimicJoint")
    if name not in joints or leader not in joints or name == leader:
        reading.note(node, f"a mimic plugin joins {shown(name)} to {shown(leader)}: left out")
        return
    follower, leads = joints[name], joints[leader]
    if follower.mimic is not None or leads.mimic is not None or not follower.axes or not leads.axes:
        return
    mimic = Mimic(leader, number_of(node, "multiplier", 1.0), number_of(node, "offset", 0.0))
    joints[name] = replace(follower, mimic=mimic)


def _numbers(node: Node, *tags: str) -> tuple[float, float, float]:
    """Three numbers, or one for all; zeros where there is none."""
    for tag in tags:
        text = text_of(node, tag)
        if text:
            where = node.child(tag) or node
            values = [number(part, where, f"<{tag}>") for part in text.split()[:3]]
            if len(values) == 3:
                return values[0], values[1], values[2]
            return values[0], values[0], values[0]
    return 0.0, 0.0, 0.0


def _noises(node: Node, what: str, scale: float = 1.0, common: str = "gaussianNoise") -> _Axes:
    """Offset, drift and Gaussian noise of a channel; ``what`` begins the tags' names, e.g. "accel"."""

    def tag(name: str) -> str:
        return what + name[0].upper() + name[1:] if what else name

    spread = _numbers(node, tag("gaussianNoise"), *([common] if common else []))
    drift, mean = _numbers(node, tag("drift")), _numbers(node, tag("offset"))
    x, y, z = (
        Noise(
            mean=scale * mean[axis],
            stddev=scale * abs(spread[axis]),
            dynamic_bias_stddev=scale * abs(drift[axis]),
            dynamic_bias_correlation_time=_SLOW if drift[axis] else 0.0,
        )
        for axis in range(3)
    )
    return x, y, z


def _imu(reading: Reading, said: _Said) -> SensorSpec:
    return ImuSpec(_noises(said.node, "rate"), _noises(said.node, "accel"))


def _gps(reading: Reading, said: _Said) -> SensorSpec:
    along, _, up = _noises(said.node, "")
    fast, _, climb = _noises(said.node, "velocity", common="")
    for tag in ("referenceLatitude", "referenceLongitude", "referenceAltitude", "referenceHeading"):
        child = said.node.child(tag)
        if child is not None and float(_numbers(said.node, tag)[0]):
            reading.note(child, f"<{tag}> is not followed: the world's own place on the globe holds")
    return SatelliteSpec(along, up, fast, climb)


def _magnetic(reading: Reading, said: _Said) -> SensorSpec:
    return VectorSpec(_noises(said.node, "", _FIELD))


def _baro(reading: Reading, said: _Said) -> SensorSpec:
    return AltimeterSpec(_noises(said.node, "")[0])


def _force(reading: Reading, said: _Said) -> SensorSpec | None:
    joint = text_of(said.node, "jointName", text_of(said.node, "joint_name"))
    joint = joint or next((one.name for one in said.joints.values() if one.child == said.link), "")
    if not joint:
        reading.note(
            said.node, f"plugin '{said.node.get('name')}' measures a force, and no joint carries '{said.link}'"
        )
        return None
    noise = _noises(said.node, "")
    return ForceTorqueSpec(joint, force=noise, torque=noise)


_KINDS: dict[str, tuple[str, Callable[[Reading, _Said], SensorSpec | None]]] = {
    "imu": ("imu", _imu),
    "gps": ("navsat", _gps),
    "magnetic": ("magnetometer", _magnetic),
    "baro": ("altimeter", _baro),
    "ft_sensor": ("force_torque", _force),
    "f3d": ("force_torque", _force),
}
"""By the plugin's name: the kind of sensor and what reads it."""


def _offset(node: Node) -> SE3:
    xyz = _numbers(node, "xyzOffset", "xyzOffsets", "xyz_offset")
    return SE3.from_xyz_rpy(xyz, _numbers(node, "rpyOffset", "rpyOffsets", "rpy_offset"))


def _remapped(node: Node) -> str:
    for ros in node.all("ros"):
        for one in ros.all("remapping"):
            _, arrow, target = one.text.strip().partition(":=")
            if arrow:
                return target
    return ""
