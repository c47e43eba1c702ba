"""`Model` as URDF, with ``<gazebo>`` and ``<ros2_control>`` blocks for what plain URDF has no words for."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree as ET

from roboyard.description.model import (
    Box,
    Capsule,
    Collision,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Joint,
    JointInterface,
    JointType,
    Link,
    Material,
    Mesh,
    Model,
    Plane,
    Sphere,
    Surface,
)
from roboyard.description.write.names import plain_names
from roboyard.description.write.sensors import add_sensor
from roboyard.description.write.simpler import joints_at_links, split, without_points
from roboyard.description.write.written import Files, Losses, Written, add, add_direction, add_element, number, numbers
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

_CONTROL = "ros2_control"
_SPLIT: tuple[JointType, ...] = ("ball", "universal", "screw", "revolute2", "gearbox")
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
_THICK = 0.01
"""Of the box that stands for a plane [m]."""


def write_urdf(model: Model, files: Files | None = None) -> Written:
    """The model as a URDF document.

    Args:
        model: What is written.
        files: Names of meshes and textures in the document; None: as the original named them.

    Raises:
        DescriptionError: it has several roots, which URDF cannot have.
    """
    losses = Losses()
    hung = [joint for joint in model.joints if joint.parent == "world"]
    if len(model.roots) + len(hung) != 1:
        raise DescriptionError(
            f"model '{model.name}' has {len(model.roots) + len(hung)} roots",
            valid="one root for URDF; SDF may have more",
        )
    model = without_points(model, losses)
    model = joints_at_links(split(plain_names(model, losses), _SPLIT, losses), losses)
    root = ET.Element("robot", name=model.name)
    if hung:
        add(root, "link", name="world")
    for base in model.roots:
        if not base.T_model_link.almost_equal(SE3.identity(), 1e-12):
            losses.say(f"the model's origin moves to its root link '{base.name}'")
    for link in model.links:
        _link(root, link, files, losses)
    for joint in model.joints:
        _joint(root, joint)
    _interfaces(root, model)
    for link in model.links:
        _gazebo_link(root, model, link, losses)
    for joint in model.joints:
        _gazebo_joint(root, model, joint)
    if model.static:
        add(add(root, "gazebo"), "static", True)
    for plugin in model.plugins:
        if plugin.element.tag == _CONTROL:
            add_element(root, plugin.element)
        elif plugin.link is None:
            add_element(add(root, "gazebo"), plugin.element)
    for what, found in (("frames", model.frames), ("closed loops", model.closures), ("excluded pairs", model.excludes)):
        if found:
            losses.say(f"{what} are lost ({len(found)})")
    return losses.finish(root)


# -- links -------------------------------------------------------------------------------------------------------------
def _origin(parent: ET.Element, T: SE3) -> None:
    if SE3.identity() != T:
        add(parent, "origin", xyz=numbers(T.translation), rpy=numbers(T.rpy))


def _link(root: ET.Element, link: Link, files: Files | None, losses: Losses) -> None:
    node = add(root, "link", name=link.name)
    if link.inertial is not None:
        inertial = add(node, "inertial")
        _origin(inertial, link.inertial.T_link_com)
        add(inertial, "mass", value=number(link.inertial.mass))
        moments = zip(_MOMENTS, link.inertial.inertia, strict=True)
        add(inertial, "inertia", **{key: number(value) for key, value in moments})
    for visual in link.visuals:
        made = _geometry(visual.geometry, files, losses, f"visual '{visual.name}'")
        if made is None:
            continue
        part = add(node, "visual", name=visual.name)
        shape, T_geom_shape = made
        _origin(part, visual.T_link_geom @ T_geom_shape)
        add(part, "geometry").append(shape)
        if visual.material.stated:  # else a mesh keeps the looks of its own file
            _material(part, visual.material, files, losses)
        if not visual.cast_shadows:
            losses.say("that some visuals cast no shadow is lost")
    for collision in link.collisions:
        made = _geometry(collision.geometry, files, losses, f"collision '{collision.name}'")
        if made is None:
            continue
        if not collision.surface.collide:
            losses.say(f"collision '{collision.name}' touches nothing: left out")
            continue
        part = add(node, "collision", name=collision.name)
        shape, T_geom_shape = made
        _origin(part, collision.T_link_geom @ T_geom_shape)
        add(part, "geometry").append(shape)


def _material(parent: ET.Element, material: Material, files: Files | None, losses: Losses) -> None:
    node = add(parent, "material", name=material.name)
    add(node, "color", rgba=numbers(material.rgba))
    if material.texture is not None:
        add(node, "texture", filename=_named(material.texture, str(material.texture), files))
    if any(material.emissive):
        losses.say("the light that surfaces give off is lost")


def _named(file: Path | None, uri: str, files: Files | None) -> str:
    return files(file, uri) if files is not None and file is not None else uri


def _geometry(geometry: Geometry, files: Files | None, losses: Losses, where: str) -> tuple[ET.Element, SE3] | None:
    """The shape, and where it sits in the geometry's frame."""
    here = SE3.identity()
    match geometry:
        case Box(size):
            return ET.Element("box", size=numbers(size)), here
        case Sphere(radius):
            return ET.Element("sphere", radius=number(radius)), here
        case Cylinder(radius, length):
            return ET.Element("cylinder", radius=number(radius), length=number(length)), here
        case Capsule(radius, length):
            return ET.Element("capsule", radius=number(radius), length=number(length)), here
        case Mesh():
            if geometry.submesh:
                losses.say(f"{where}: the part '{geometry.submesh}' of a mesh is written as the whole mesh")
            name = _named(geometry.file, geometry.uri, files)
            return ET.Element("mesh", filename=name, scale=numbers(geometry.scale)), here
        case Cone(radius, length):
            losses.say(f"{where}: a cone is written as a cylinder")
            return ET.Element("cylinder", radius=number(radius), length=number(length)), here
        case Ellipsoid(radii):
            losses.say(f"{where}: an ellipsoid is written as the ball of its volume")
            return ET.Element("sphere", radius=number(math.prod(radii) ** (1.0 / 3.0))), here
        case Plane(normal, size):
            losses.say(f"{where}: a plane is written as a flat box below it")
            shape = ET.Element("box", size=numbers((*size, _THICK)))
            return shape, upright(normal) @ SE3(translation=(0.0, 0.0, -_THICK / 2))
    losses.say(f"{where}: a {type(geometry).__name__.lower()} is left out")
    return None


def upright(normal: tuple[float, float, float]) -> SE3:
    """The shortest turn that takes z to ``normal``."""
    x, y, z = normal
    if z < -1.0 + 1e-12:
        return SE3((0.0, 1.0, 0.0, 0.0))
    return SE3((1.0 + z, -y, x, 0.0))


# -- joints ------------------------------------------------------------------------------------------------------------
def _joint(root: ET.Element, joint: Joint) -> None:
    node = add(root, "joint", name=joint.name, type=joint.type)
    _origin(node, joint.T_parent_child)
    add(node, "parent", link=joint.parent)
    add(node, "child", link=joint.child)
    if joint.axes:
        axis = joint.axes[0]
        add(node, "axis", xyz=numbers(axis.xyz))
        limits = axis.limits
        values = {"lower": limits.lower, "upper": limits.upper, "velocity": limits.velocity, "effort": limits.effort}
        if joint.type not in ("revolute", "prismatic"):
            del values["lower"], values["upper"]
        if any(not math.isinf(value) for value in values.values()):
            add(node, "limit", **{key: number(value) for key, value in values.items()})
        dynamics = axis.dynamics
        if dynamics.damping or dynamics.friction or dynamics.armature:
            rotor = {"armature": number(dynamics.armature)} if dynamics.armature else {}
            add(node, "dynamics", damping=number(dynamics.damping), friction=number(dynamics.friction), **rotor)
    if joint.mimic is not None:
        factor, offset = number(joint.mimic.multiplier), number(joint.mimic.offset)
        add(node, "mimic", joint=joint.mimic.joint, multiplier=factor, offset=offset)
    if joint.safety is not None:
        add(
            node,
            "safety_controller",
            soft_lower_limit=number(joint.safety.soft_lower),
            soft_upper_limit=number(joint.safety.soft_upper),
            k_position=number(joint.safety.k_position),
            k_velocity=number(joint.safety.k_velocity),
        )


def _gazebo_joint(root: ET.Element, model: Model, joint: Joint) -> None:
    node = ET.Element("gazebo", reference=joint.name)
    if joint.axes and (joint.axes[0].dynamics.stiffness or joint.axes[0].dynamics.reference):
        add(node, "springStiffness", joint.axes[0].dynamics.stiffness)
        add(node, "springReference", joint.axes[0].dynamics.reference)
    for sensor in model.sensors:
        if sensor.kind == "force_torque" and getattr(sensor.spec, "joint", "") == joint.name:
            add_sensor(node, sensor)
    if len(node):
        root.append(node)


# -- what plain URDF has no words for ----------------------------------------------------------------------------------
def _gazebo_link(root: ET.Element, model: Model, link: Link, losses: Losses) -> None:
    node = ET.Element("gazebo", reference=link.name)
    _surface(node, link.collisions, link.name, losses)
    if not link.gravity:
        add(node, "gravity", False)
    if link.self_collide:
        add(node, "selfCollide", True)
    for sensor in model.sensors:
        if sensor.link == link.name and sensor.kind != "force_torque":
            add_sensor(node, sensor)
    for plugin in model.plugins:
        if plugin.link == link.name:
            add_element(node, plugin.element)
    if len(node):
        root.append(node)


def _surface(node: ET.Element, collisions: tuple[Collision, ...], link: str, losses: Losses) -> None:
    touching = [one.surface for one in collisions if one.surface.collide]
    if not touching:
        return
    first = touching[0]
    if any(surface != first for surface in touching):
        losses.say(f"link '{link}': its collisions have one surface, that of the first")
    plain = Surface()
    if first.friction != plain.friction or first.friction2 is not None:
        add(node, "mu1", first.friction)
        add(node, "mu2", first.friction if first.friction2 is None else first.friction2)
    add_direction(node, first)
    if any(first.slip):
        add(node, "slip1", first.slip[0])
        add(node, "slip2", first.slip[1])
    if first.stiffness is not None:
        add(node, "kp", first.stiffness)
    if first.damping is not None:
        add(node, "kd", first.damping)
    if first.torsional is not None or first.rolling is not None or first.restitution:
        losses.say("torsional and rolling friction and bounce of surfaces are lost")


def _interfaces(root: ET.Element, model: Model) -> None:
    """Those that no ``<ros2_control>`` block of the original states."""
    stated = {
        dict(joint.attributes).get("name", "").strip()
        for plugin in model.plugins
        if plugin.element.tag == _CONTROL
        for joint in plugin.element.find_all("joint")
    }
    left = [one for one in model.interfaces if one.joint not in stated]
    if left:
        block = add(root, _CONTROL, name="joints", type="system")
        for one in left:
            _interface(block, one)
    for one in model.interfaces:
        if one.reduction != 1.0:
            node = add(root, "transmission", name=f"{one.joint}_transmission")
            add(node, "joint", name=one.joint)
            add(node, "mechanicalReduction", one.reduction)


def _interface(block: ET.Element, one: JointInterface) -> None:
    node = add(block, "joint", name=one.joint)
    for mode, low, high in one.commands:
        command = add(node, "command_interface", name=mode)
        for name, bound in (("min", low), ("max", high)):
            if not math.isinf(bound):
                add(command, "param", bound, name=name)
    initial = dict(one.initial)
    for state in dict.fromkeys((*one.states, *initial)):
        told = add(node, "state_interface", name=state)
        if state in initial:
            add(told, "param", initial[state], name="initial_value")
    for name, text in one.parameters:
        add(node, "param", text, name=name)
