"""``<gazebo>`` blocks of URDF: contact parameters, colors, gravity, springs, sensors and plugins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from roboyard.description.gazebo_materials import gazebo_material
from roboyard.description.model import Joint, Link, Material, Plugin, Surface
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensor_reader import read_plugin, read_sensor
from roboyard.description.sensors import CustomSensorSpec, Sensor
from roboyard.description.urdf.plugin_sensors import apply_mimic_plugin, read_plugin_sensor
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
