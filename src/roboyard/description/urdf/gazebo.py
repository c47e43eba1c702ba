"""``<gazebo>`` blocks: contact values, colours, gravity, springs, sensors and plugins laid over links and joints."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from roboyard.description.colours import gazebo_material
from roboyard.description.fields import boolean_of, colour_of, expressed_in, number_of, pose, text_of
from roboyard.description.model import Joint, Link, Material, Plugin, Surface, Vec3
from roboyard.description.reading import Reading
from roboyard.description.sensing import read_plugin, read_sensor
from roboyard.description.sensors import OtherSpec, Sensor
from roboyard.description.urdf.plugin_sensors import follow_mimic, read_plugin_sensor
from roboyard.description.values import boolean, number, shown, unit_vector, vector
from roboyard.description.xml import Node

# Settings of one engine (ODE) or of Gazebo's own fixed-link lumping, which never happens here.
_UNUSED = {
    "maxVel", "minDepth", "maxContacts", "max_contacts", "laserRetro", "laser_retro", "fudgeFactor", "stopKp", "stopKd",
    "stopCfm", "stopErp", "cfmDamping", "provideFeedback", "implicitSpringDamper", "preserveFixedJoint",
    "disableFixedJointLumping", "dampingFactor", "velocity_decay", "enable_wind", "initial_joint_position",
}  # fmt: skip
_LINK_TAGS = {
    "material", "mu1", "mu2", "mu", "fdir1", "slip1", "slip2", "kp", "kd", "turnGravityOff", "gravity", "selfCollide",
    "self_collide", "sensor", "plugin", "visual", "collision",
}  # fmt: skip
_JOINT_TAGS = {"springStiffness", "springReference", "sensor", "plugin"}


@dataclass(slots=True)
class Blocks:
    """What the ``<gazebo>`` blocks of a robot add."""

    sensors: list[Sensor] = field(default_factory=list)
    plugins: list[Plugin] = field(default_factory=list)
    static: bool = False

    def add(self, sensor: Sensor, node: Node) -> None:
        """A sensor and the plugins in it; those of one that nobody reads are as little of use as it is."""
        self.sensors.append(sensor)
        if not isinstance(sensor.spec, OtherSpec):
            self.plugins += [read_plugin(one, sensor.link) for one in node.all("plugin")]


@dataclass(slots=True)
class _Overlay:
    """What all blocks of one link say; None: nothing."""

    friction: float | None = None
    friction2: float | None = None
    stiffness: float | None = None
    damping: float | None = None
    direction1: Vec3 | None = None
    direction1_in: str | None = None
    slip: tuple[float, float] | None = None
    material: Material | None = None
    gravity: bool | None = None
    self_collide: bool | None = None

    def laid_over(self, link: Link) -> Link:
        """The link with what is said."""

        def surface(old: Surface) -> Surface:
            return replace(
                old,
                friction=old.friction if self.friction is None else self.friction,
                friction2=old.friction2 if self.friction2 is None else self.friction2,
                stiffness=old.stiffness if self.stiffness is None else self.stiffness,
                damping=old.damping if self.damping is None else self.damping,
                direction1=self.direction1 or old.direction1,
                direction1_in=self.direction1_in if self.direction1 else old.direction1_in,
                slip=self.slip or old.slip,
            )

        return replace(
            link,
            collisions=tuple(replace(one, surface=surface(one.surface)) for one in link.collisions),
            visuals=tuple(replace(one, material=self.material or one.material) for one in link.visuals),
            gravity=link.gravity if self.gravity is None else self.gravity,
            self_collide=link.self_collide if self.self_collide is None else self.self_collide,
        )


def apply_blocks(reading: Reading, blocks: list[Node], links: dict[str, Link], joints: dict[str, Joint]) -> Blocks:
    """Lay every block over ``links`` and ``joints`` (changed in place) and collect sensors and plugins.

    Raises:
        DescriptionError: a value in a block is wrong.
    """
    out = Blocks()
    overlays: dict[str, _Overlay] = {}

    def lay(node: Node) -> None:
        target = node.get("reference").strip()
        if not target:
            _robot(reading, node, out)
        elif target in links:
            _link(reading, node, target, overlays.setdefault(target, _Overlay()), out)
        elif target in joints:
            joints[target] = _joint(reading, node, joints[target], out)
        else:
            reading.note(node, f"<gazebo> refers to {shown(target)}, which is no link and no joint")
            return
        _plugins(reading, node, target if target in links else None, links, joints, out)

    for block in blocks:
        reading.attempt(partial(lay, block), None)
    for name, overlay in overlays.items():
        links[name] = overlay.laid_over(links[name])
    return out


def _plugins(
    reading: Reading, node: Node, link: str | None, links: dict[str, Link], joints: dict[str, Joint], out: Blocks
) -> None:
    """Every plugin as written, and what those do that need nobody else: sensors of their own, joints that follow."""
    for one in node.all("plugin"):
        out.plugins.append(read_plugin(one, link))
        sensor = read_plugin_sensor(reading, one, link, links, joints)
        out.sensors += [sensor] if sensor is not None else []
        follow_mimic(reading, one, joints)


def _robot(reading: Reading, node: Node, out: Blocks) -> None:
    reading.unknown(node, {"plugin", "static", "joint"}, _UNUSED)
    out.static = boolean_of(node, "static", out.static)


def _joint(reading: Reading, node: Node, joint: Joint, out: Blocks) -> Joint:
    reading.unknown(node, _JOINT_TAGS, _UNUSED)
    for one in node.all("sensor"):
        out.add(read_sensor(reading, one, joint.child, pose(one.child("pose")), joint.name), one)
    if not joint.axes or not any(node.child(tag) for tag in ("springStiffness", "springReference")):
        return joint
    dynamics = replace(
        joint.axes[0].dynamics,
        stiffness=number_of(node, "springStiffness", joint.axes[0].dynamics.stiffness, low=0.0),
        reference=number_of(node, "springReference", joint.axes[0].dynamics.reference),
    )
    return replace(joint, axes=(replace(joint.axes[0], dynamics=dynamics), *joint.axes[1:]))


def _link(reading: Reading, node: Node, link: str, overlay: _Overlay, out: Blocks) -> None:
    reading.unknown(node, _LINK_TAGS, _UNUSED)
    for one in node.all("sensor"):
        out.add(read_sensor(reading, one, link, pose(one.child("pose"))), one)
    for plugin in (plugin for one in node.all("visual") for plugin in one.all("plugin")):
        reading.note(plugin, f"the plugin {shown(plugin.get('name'))} of a <visual> has no effect here")
    _contact(node, overlay)
    overlay.material = _material(reading, node) or overlay.material
    if node.child("gravity"):
        overlay.gravity = boolean_of(node, "gravity", True)
    off = _said(node, "turnGravityOff")
    if off is not None:
        overlay.gravity = not boolean(_value(off), off, "<turnGravityOff>")
    collide = _said(node, "selfCollide") or _said(node, "self_collide")
    if collide is not None:
        overlay.self_collide = boolean(_value(collide), collide, f"<{collide.tag}>")


def _said(node: Node, tag: str) -> Node | None:
    child = node.child(tag)
    return child if child is not None and _value(child).strip() else None


def _value(node: Node) -> str:
    """``<mu1>0.2</mu1>`` or the older ``<mu1 value="0.2"/>``."""
    return node.text if node.text.strip() else node.get("value")


def _contact(node: Node, overlay: _Overlay) -> None:
    """The block's contact values; an SDF ``<collision><surface>`` inside it counts, too."""
    for body in (node, *chain.from_iterable(one.walk() for one in node.all("collision"))):
        mu1 = _number(body, "mu1")
        mu = _number(body, "mu") if mu1 is None else mu1
        overlay.friction = overlay.friction if mu is None else mu
        for tag, name in (("mu2", "friction2"), ("kp", "stiffness"), ("kd", "damping")):
            value = _number(body, tag)
            if value is not None:
                setattr(overlay, name, value)
        direction = _said(body, "fdir1")
        if direction is not None and any(vector(_value(direction), direction, "<fdir1>")):
            overlay.direction1 = unit_vector(_value(direction), direction, "<fdir1>")
            overlay.direction1_in = expressed_in(direction)
        slip = _number(body, "slip1"), _number(body, "slip2")
        if slip != (None, None):
            overlay.slip = (slip[0] or 0.0, slip[1] or 0.0)


def _number(node: Node, tag: str) -> float | None:
    child = _said(node, tag)
    return None if child is None else max(number(_value(child), child, f"<{tag}>"), 0.0)


def _material(reading: Reading, node: Node) -> Material | None:
    """``<material>Gazebo/Orange</material>``, or SDF's ``<visual><material>`` with ``<diffuse>`` and ``<emissive>``."""
    given = node.child("material")
    if given is None:
        inside = [one.child("material") for one in node.all("visual")]
        given = next((one for one in inside if one is not None), None)
    if given is None:
        return None
    name = given.text.strip() or text_of(given.child("script"), "name")
    shipped = gazebo_material(name)
    plain = shipped or Material(name)
    if given.child("diffuse") or given.child("emissive"):
        emissive = colour_of(given, "emissive", (*plain.emissive, 1.0))
        return replace(plain, rgba=colour_of(given, "diffuse", plain.rgba), emissive=emissive[:3])
    if shipped is None:
        reading.note(given, f"material {shown(name)} is not one of Gazebo's: left as it is")
    return shipped
