"""Reads `<gazebo>` blocks: contact values, colors, gravity, springs, sensors and plugins of links and joints.

Sensors that a plugin makes without a `<sensor>` around it, as Gazebo Classic's and hector's do, become sensors, and
mimic plugins become mimics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from roboyard.description.gazebo_materials import gazebo_material
from roboyard.description.model import Joint, Link, Material, Mimic, Plugin, Surface
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensor_reader import read_plugin, read_sensor
from roboyard.description.sensors import (
    AltimeterSpec,
    CustomSensorSpec,
    ForceTorqueSpec,
    GnssSpec,
    ImuSpec,
    Noise,
    Sensor,
    SensorSpec,
    ThreeAxisSpec,
)
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import (
    child_boolean,
    child_color,
    child_number,
    child_text,
    parse_boolean,
    parse_number,
    parse_unit_vector,
    parse_vector,
    quote,
    read_expressed_in,
    read_pose,
)
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3

# Settings of one engine (ODE) or of Gazebo's fixed-link lumping, which is not applied here.
_UNUSED_EXTENSION_TAGS = {
    "maxVel", "minDepth", "maxContacts", "max_contacts", "laserRetro", "laser_retro", "fudgeFactor", "stopKp", "stopKd",
    "stopCfm", "stopErp", "cfmDamping", "provideFeedback", "implicitSpringDamper", "preserveFixedJoint",
    "disableFixedJointLumping", "dampingFactor", "velocity_decay", "enable_wind", "initial_joint_position",
}  # fmt: skip
_LINK_EXTENSION_TAGS = {
    "material", "mu1", "mu2", "mu", "fdir1", "slip1", "slip2", "kp", "kd", "turnGravityOff", "gravity", "selfCollide",
    "self_collide", "sensor", "plugin", "visual", "collision",
}  # fmt: skip
_JOINT_EXTENSION_TAGS = {"springStiffness", "springReference", "sensor", "plugin"}


@dataclass(slots=True)
class GazeboExtensions:
    """Data that the ``<gazebo>`` blocks of a robot add."""

    sensors: list[Sensor] = field(default_factory=list)
    plugins: list[Plugin] = field(default_factory=list)
    static: bool = False

    def add_sensor(self, sensor: Sensor, node: XmlNode) -> None:
        """Add a sensor and its plugins; plugins of an unknown sensor are not added."""
        self.sensors.append(sensor)
        if not isinstance(sensor.spec, CustomSensorSpec):
            self.plugins += [read_plugin(one, sensor.link) for one in node.children_with_tag("plugin")]


@dataclass(slots=True)
class _LinkOverrides:
    """Settings of all blocks of one link; None: not set."""

    friction: float | None = None
    friction2: float | None = None
    stiffness: float | None = None
    damping: float | None = None
    friction_direction: Vec3 | None = None
    friction_direction_frame: str | None = None
    slip: tuple[float, float] | None = None
    material: Material | None = None
    gravity: bool | None = None
    self_collide: bool | None = None

    def apply_to(self, link: Link) -> Link:
        """Return the link with the settings applied."""

        def override_surface(surface: Surface) -> Surface:
            return replace(
                surface,
                friction=surface.friction if self.friction is None else self.friction,
                friction2=surface.friction2 if self.friction2 is None else self.friction2,
                stiffness=surface.stiffness if self.stiffness is None else self.stiffness,
                damping=surface.damping if self.damping is None else self.damping,
                friction_direction=self.friction_direction or surface.friction_direction,
                friction_direction_frame=self.friction_direction_frame
                if self.friction_direction
                else surface.friction_direction_frame,
                slip=self.slip or surface.slip,
            )

        return replace(
            link,
            collisions=tuple(replace(one, surface=override_surface(one.surface)) for one in link.collisions),
            visuals=tuple(replace(one, material=self.material or one.material) for one in link.visuals),
            gravity=link.gravity if self.gravity is None else self.gravity,
            self_collide=link.self_collide if self.self_collide is None else self.self_collide,
        )


def apply_gazebo_blocks(
    context: ReaderContext, blocks: list[XmlNode], links: dict[str, Link], joints: dict[str, Joint]
) -> GazeboExtensions:
    """Apply every block to `links` and `joints` (changed in place) and collect sensors and plugins.

    Raises:
        DescriptionError: A value in a block is wrong.
    """
    extensions = GazeboExtensions()
    overrides_by_link: dict[str, _LinkOverrides] = {}

    def apply_block(node: XmlNode) -> None:
        target = node.get("reference").strip()
        if not target:
            _read_robot_block(context, node, extensions)
        elif target in links:
            _read_link_block(context, node, target, overrides_by_link.setdefault(target, _LinkOverrides()), extensions)
        elif target in joints:
            joints[target] = _read_joint_block(context, node, joints[target], extensions)
        else:
            context.warn(node, f"<gazebo> refers to the unknown link or joint {quote(target)}")
            return
        _read_plugins(context, node, target if target in links else None, links, joints, extensions)

    for block in blocks:
        context.try_read(partial(apply_block, block), None)
    for name, overrides in overrides_by_link.items():
        links[name] = overrides.apply_to(links[name])
    return extensions


def _read_plugins(
    context: ReaderContext,
    node: XmlNode,
    link: str | None,
    links: dict[str, Link],
    joints: dict[str, Joint],
    extensions: GazeboExtensions,
) -> None:
    """Read every plugin as written, and apply those that this reader supports: plugin sensors and mimic joints."""
    for one in node.children_with_tag("plugin"):
        extensions.plugins.append(read_plugin(one, link))
        sensor = read_plugin_sensor(context, one, link, links, joints)
        extensions.sensors += [sensor] if sensor is not None else []
        apply_mimic_plugin(context, one, joints)


def _read_robot_block(context: ReaderContext, node: XmlNode, extensions: GazeboExtensions) -> None:
    context.warn_unknown_children(node, {"plugin", "static", "joint"}, _UNUSED_EXTENSION_TAGS)
    extensions.static = child_boolean(node, "static", extensions.static)


def _read_joint_block(context: ReaderContext, node: XmlNode, joint: Joint, extensions: GazeboExtensions) -> Joint:
    context.warn_unknown_children(node, _JOINT_EXTENSION_TAGS, _UNUSED_EXTENSION_TAGS)
    for one in node.children_with_tag("sensor"):
        extensions.add_sensor(read_sensor(context, one, joint.child, read_pose(one.child("pose")), joint.name), one)
    if not joint.axes or not any(node.child(tag) for tag in ("springStiffness", "springReference")):
        return joint
    dynamics = replace(
        joint.axes[0].dynamics,
        stiffness=child_number(node, "springStiffness", joint.axes[0].dynamics.stiffness, minimum=0.0),
        reference=child_number(node, "springReference", joint.axes[0].dynamics.reference),
    )
    return replace(joint, axes=(replace(joint.axes[0], dynamics=dynamics), *joint.axes[1:]))


def _read_link_block(
    context: ReaderContext, node: XmlNode, link: str, overrides: _LinkOverrides, extensions: GazeboExtensions
) -> None:
    context.warn_unknown_children(node, _LINK_EXTENSION_TAGS, _UNUSED_EXTENSION_TAGS)
    for one in node.children_with_tag("sensor"):
        extensions.add_sensor(read_sensor(context, one, link, read_pose(one.child("pose"))), one)
    for plugin in (plugin for one in node.children_with_tag("visual") for plugin in one.children_with_tag("plugin")):
        context.warn(plugin, f"the plugin {quote(plugin.get('name'))} of a <visual> has no effect here")
    _read_contact(node, overrides)
    overrides.material = _read_material(context, node) or overrides.material
    if node.child("gravity"):
        overrides.gravity = child_boolean(node, "gravity", True)
    gravity_off_node = _child_with_value(node, "turnGravityOff")
    if gravity_off_node is not None:
        overrides.gravity = not parse_boolean(_value_text(gravity_off_node), gravity_off_node, "<turnGravityOff>")
    self_collide_node = _child_with_value(node, "selfCollide") or _child_with_value(node, "self_collide")
    if self_collide_node is not None:
        overrides.self_collide = parse_boolean(
            _value_text(self_collide_node), self_collide_node, f"<{self_collide_node.tag}>"
        )


def _child_with_value(node: XmlNode, tag: str) -> XmlNode | None:
    child = node.child(tag)
    return child if child is not None and _value_text(child).strip() else None


def _value_text(node: XmlNode) -> str:
    """Return the text of ``<mu1>0.2</mu1>`` or of the older ``<mu1 value="0.2"/>``."""
    return node.text if node.text.strip() else node.get("value")


def _read_contact(node: XmlNode, overrides: _LinkOverrides) -> None:
    """Read the block's contact parameters; an SDF ``<collision><surface>`` inside it counts, too."""
    for element in (node, *chain.from_iterable(one.walk() for one in node.children_with_tag("collision"))):
        mu1 = _read_non_negative(element, "mu1")
        mu = _read_non_negative(element, "mu") if mu1 is None else mu1
        overrides.friction = overrides.friction if mu is None else mu
        for tag, name in (("mu2", "friction2"), ("kp", "stiffness"), ("kd", "damping")):
            value = _read_non_negative(element, tag)
            if value is not None:
                setattr(overrides, name, value)
        direction_node = _child_with_value(element, "fdir1")
        if direction_node is not None and any(parse_vector(_value_text(direction_node), direction_node, "<fdir1>")):
            overrides.friction_direction = parse_unit_vector(_value_text(direction_node), direction_node, "<fdir1>")
            overrides.friction_direction_frame = read_expressed_in(direction_node)
        slip = _read_non_negative(element, "slip1"), _read_non_negative(element, "slip2")
        if slip != (None, None):
            overrides.slip = (slip[0] or 0.0, slip[1] or 0.0)


def _read_non_negative(node: XmlNode, tag: str) -> float | None:
    child = _child_with_value(node, tag)
    return None if child is None else max(parse_number(_value_text(child), child, f"<{tag}>"), 0.0)


def _read_material(context: ReaderContext, node: XmlNode) -> Material | None:
    """Read ``<material>Gazebo/Orange</material>``, or SDF's ``<visual><material>`` with ``<diffuse>`` and
    ``<emissive>``.
    """
    material_node = node.child("material")
    if material_node is None:
        visual_materials = [one.child("material") for one in node.children_with_tag("visual")]
        material_node = next((one for one in visual_materials if one is not None), None)
    if material_node is None:
        return None
    name = material_node.text.strip() or child_text(material_node.child("script"), "name")
    builtin_material = gazebo_material(name)
    base_material = builtin_material or Material(name)
    if material_node.child("diffuse") or material_node.child("emissive"):
        emissive = child_color(material_node, "emissive", (*base_material.emissive, 1.0))
        return replace(
            base_material, rgba=child_color(material_node, "diffuse", base_material.rgba), emissive=emissive[:3]
        )
    if builtin_material is None:
        context.warn(material_node, f"unknown Gazebo material {quote(name)}: the material is not changed")
    return builtin_material


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
