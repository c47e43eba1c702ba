"""``<gazebo>`` blocks: contact values, colours, gravity, springs, sensors and plugins laid over links and joints."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain

from roboyard.description.colours import gazebo_colour
from roboyard.description.fields import boolean_of, number_of, pose, text_of
from roboyard.description.model import Joint, Link, Material, Plugin, Surface
from roboyard.description.reading import Reading
from roboyard.description.sensing import read_plugin, read_sensor
from roboyard.description.sensors import Sensor
from roboyard.description.values import boolean, colour, number, shown, unit_vector, vector
from roboyard.description.xml import Node

# Settings of one engine (ODE) or of Gazebo's own fixed-link lumping, which never happens here.
_UNUSED = {
    "maxVel", "minDepth", "maxContacts", "max_contacts", "laserRetro", "laser_retro", "fudgeFactor", "stopKp", "stopKd",
    "stopCfm", "stopErp", "cfmDamping", "provideFeedback", "implicitSpringDamper", "preserveFixedJoint",
    "disableFixedJointLumping", "dampingFactor", "velocity_decay", "enable_wind", "initial_joint_position",
}  # fmt: skip
_LINK_TAGS = {
    "material", "mu1", "mu2", "mu", "fdir1", "kp", "kd", "turnGravityOff", "gravity", "selfCollide", "self_collide",
    "sensor", "plugin", "visual", "collision",
}  # fmt: skip
_JOINT_TAGS = {"springStiffness", "springReference", "sensor", "plugin"}


@dataclass(slots=True)
class Blocks:
    """What the ``<gazebo>`` blocks of a robot add."""

    sensors: list[Sensor] = field(default_factory=list)
    plugins: list[Plugin] = field(default_factory=list)
    static: bool = False


def apply_blocks(reading: Reading, blocks: list[Node], links: dict[str, Link], joints: dict[str, Joint]) -> Blocks:
    """Lay every block over ``links`` and ``joints`` (changed in place) and collect sensors and plugins.

    Raises:
        DescriptionError: a value in a block is wrong.
    """
    out = Blocks()
    for node in blocks:
        target = node.get("reference").strip()
        if not target:
            _robot(reading, node, out)
        elif target in links:
            links[target] = _link(reading, node, links[target], out)
        elif target in joints:
            joints[target] = _joint(reading, node, joints[target], out)
        else:
            reading.note(node, f"<gazebo> refers to {shown(target)}, which is no link and no joint")
    return out


def _robot(reading: Reading, node: Node, out: Blocks) -> None:
    reading.unknown(node, {"plugin", "static"}, _UNUSED)
    out.static = boolean_of(node, "static", out.static)
    out.plugins += [read_plugin(one) for one in node.all("plugin")]


def _joint(reading: Reading, node: Node, joint: Joint, out: Blocks) -> Joint:
    reading.unknown(node, _JOINT_TAGS, _UNUSED)
    for one in node.all("sensor"):
        out.sensors.append(read_sensor(reading, one, joint.child, pose(one.child("pose"))))
    out.plugins += [read_plugin(one) for one in node.all("plugin")]
    if not joint.axes or not any(node.child(tag) for tag in ("springStiffness", "springReference")):
        return joint
    dynamics = replace(
        joint.axes[0].dynamics,
        stiffness=number_of(node, "springStiffness", joint.axes[0].dynamics.stiffness, low=0.0),
        reference=number_of(node, "springReference", joint.axes[0].dynamics.reference),
    )
    return replace(joint, axes=(replace(joint.axes[0], dynamics=dynamics), *joint.axes[1:]))


def _link(reading: Reading, node: Node, link: Link, out: Blocks) -> Link:
    reading.unknown(node, _LINK_TAGS, _UNUSED)
    for one in node.all("sensor"):
        out.sensors.append(read_sensor(reading, one, link.name, pose(one.child("pose"))))
    out.plugins += [read_plugin(one, link.name) for one in node.all("plugin")]
    collisions = tuple(replace(one, surface=_surface(node, one.surface)) for one in link.collisions)
    material = _material(reading, node)
    visuals = tuple(replace(one, material=material) for one in link.visuals) if material else link.visuals
    gravity = boolean_of(node, "gravity", link.gravity)
    off = _said(node, "turnGravityOff")
    if off is not None:
        gravity = not boolean(_value(off), off, "<turnGravityOff>")
    collide = _said(node, "selfCollide") or _said(node, "self_collide")
    return replace(
        link,
        collisions=collisions,
        visuals=visuals,
        gravity=gravity,
        self_collide=boolean(_value(collide), collide, f"<{collide.tag}>") if collide else link.self_collide,
    )


def _said(node: Node, tag: str) -> Node | None:
    child = node.child(tag)
    return child if child is not None and _value(child).strip() else None


def _value(node: Node) -> str:
    """``<mu1>0.2</mu1>`` or the older ``<mu1 value="0.2"/>``."""
    return node.text if node.text.strip() else node.get("value")


def _surface(node: Node, surface: Surface) -> Surface:
    """The block's contact values; an SDF ``<collision><surface>`` inside it counts, too."""
    for body in (node, *chain.from_iterable(one.walk() for one in node.all("collision"))):
        mu1, mu2 = _number(body, "mu1"), _number(body, "mu2")
        mu = _number(body, "mu") if mu1 is None else mu1
        kp, kd = _number(body, "kp"), _number(body, "kd")
        surface = replace(
            surface,
            friction=surface.friction if mu is None else mu,
            friction2=surface.friction2 if mu2 is None else mu2,
            stiffness=surface.stiffness if kp is None else kp,
            damping=surface.damping if kd is None else kd,
        )
        direction = _said(body, "fdir1")
        if direction is not None and any(vector(_value(direction), direction, "<fdir1>")):
            surface = replace(surface, direction1=unit_vector(_value(direction), direction, "<fdir1>"))
    return surface


def _number(node: Node, tag: str) -> float | None:
    child = _said(node, tag)
    return None if child is None else max(number(_value(child), child, f"<{tag}>"), 0.0)


def _material(reading: Reading, node: Node) -> Material | None:
    """``<material>Gazebo/Orange</material>``, or SDF's ``<visual><material><diffuse>``."""
    given = node.child("material")
    if given is None:
        inside = [one.child("material") for one in node.all("visual")]
        given = next((one for one in inside if one is not None), None)
    if given is None:
        return None
    name = given.text.strip() or text_of(given.child("script"), "name")
    diffuse = given.child("diffuse")
    if diffuse is not None:
        return Material(name, colour(diffuse.text, diffuse, "<diffuse>"))
    rgba = gazebo_colour(name)
    if rgba is None:
        reading.note(given, f"material {shown(name)} is not one of Gazebo's: left as it is")
        return None
    return Material(name, rgba)
