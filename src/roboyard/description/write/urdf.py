"""Writer of URDF from `Model`, with ``<gazebo>`` and ``<ros2_control>`` blocks for content that plain URDF cannot
express.
"""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree as ET

from roboyard.description.model import (
    MOMENT_NAMES,
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
from roboyard.description.write.result import (
    ConversionLosses,
    FileNamer,
    WrittenDescription,
    add_child,
    add_element,
    add_friction_direction,
    format_number,
    format_numbers,
)
from roboyard.description.write.sensors import add_sensor
from roboyard.description.write.simplify import (
    move_joints_to_links,
    remove_scopes,
    replace_inline_meshes,
    split_multi_axis_joints,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

_CONTROL = "ros2_control"
_SPLIT_JOINT_TYPES: tuple[JointType, ...] = ("ball", "universal", "screw", "revolute2", "gearbox")
_PLANE_THICKNESS = 0.01
"""Thickness of the box that replaces a plane [m]."""


def write_urdf(model: Model, file_namer: FileNamer | None = None) -> WrittenDescription:
    """Write a model as a URDF document.

    Args:
        model: The model.
        file_namer: Function that names meshes and textures in the document; None: names of the original.

    Raises:
        DescriptionError: The model has several roots, which URDF does not support.
    """
    losses = ConversionLosses()
    world_joints = [joint for joint in model.joints if joint.parent == "world"]
    if len(model.roots) + len(world_joints) != 1:
        raise DescriptionError(
            f"model '{model.name}' has {len(model.roots) + len(world_joints)} roots",
            valid="one root for URDF; SDF may have more",
        )
    model = replace_inline_meshes(model, losses)
    model = move_joints_to_links(
        split_multi_axis_joints(remove_scopes(model, losses), _SPLIT_JOINT_TYPES, losses), losses
    )
    root = ET.Element("robot", name=model.name)
    if world_joints:
        add_child(root, "link", name="world")
    for base in model.roots:
        if not base.T_model_link.almost_equal(SE3.identity(), 1e-12):
            losses.add(f"the model's origin moves to its root link '{base.name}'")
    for link in model.links:
        _add_link(root, link, file_namer, losses)
    for joint in model.joints:
        _add_joint(root, joint)
    _add_interfaces(root, model)
    for link in model.links:
        _add_gazebo_link(root, model, link, losses)
    for joint in model.joints:
        _add_gazebo_joint(root, model, joint)
    if model.static:
        add_child(add_child(root, "gazebo"), "static", True)
    for plugin in model.plugins:
        if plugin.element.tag == _CONTROL:
            add_element(root, plugin.element)
        elif plugin.link is None:
            add_element(add_child(root, "gazebo"), plugin.element)
    for feature, elements in (
        ("frames", model.frames),
        ("loop joints", model.loop_joints),
        ("disabled collision pairs", model.disabled_collisions),
    ):
        if elements:
            losses.add(f"{feature} are lost ({len(elements)})")
    return losses.finish(root)


# -- links -------------------------------------------------------------------------------------------------------------
def _add_origin(parent: ET.Element, T: SE3) -> None:
    if SE3.identity() != T:
        add_child(parent, "origin", xyz=format_numbers(T.translation), rpy=format_numbers(T.rpy))


def _add_link(root: ET.Element, link: Link, file_namer: FileNamer | None, losses: ConversionLosses) -> None:
    node = add_child(root, "link", name=link.name)
    if link.inertial is not None:
        inertial = add_child(node, "inertial")
        _add_origin(inertial, link.inertial.T_link_com)
        add_child(inertial, "mass", value=format_number(link.inertial.mass))
        moments = zip(MOMENT_NAMES, link.inertial.inertia, strict=True)
        add_child(inertial, "inertia", **{key: format_number(value) for key, value in moments})
    for visual in link.visuals:
        shape_and_pose = _make_geometry(visual.geometry, file_namer, losses, f"visual '{visual.name}'")
        if shape_and_pose is None:
            continue
        part = add_child(node, "visual", name=visual.name)
        shape, T_geom_shape = shape_and_pose
        _add_origin(part, visual.T_link_geom @ T_geom_shape)
        add_child(part, "geometry").append(shape)
        if visual.material.is_explicit:  # otherwise a mesh keeps the materials of its own file
            _add_material(part, visual.material, file_namer, losses)
        if not visual.cast_shadows:
            losses.add("shadow settings of visuals are lost")
    for collision in link.collisions:
        shape_and_pose = _make_geometry(collision.geometry, file_namer, losses, f"collision '{collision.name}'")
        if shape_and_pose is None:
            continue
        if not collision.surface.collide:
            losses.add(f"collision '{collision.name}' has no contacts: not written")
            continue
        part = add_child(node, "collision", name=collision.name)
        shape, T_geom_shape = shape_and_pose
        _add_origin(part, collision.T_link_geom @ T_geom_shape)
        add_child(part, "geometry").append(shape)


def _add_material(
    parent: ET.Element, material: Material, file_namer: FileNamer | None, losses: ConversionLosses
) -> None:
    node = add_child(parent, "material", name=material.name)
    add_child(node, "color", rgba=format_numbers(material.rgba))
    if material.texture is not None:
        add_child(node, "texture", filename=_file_uri(material.texture, str(material.texture), file_namer))
    if any(material.emissive):
        losses.add("emissive colors of surfaces are lost")


def _file_uri(file: Path | None, uri: str, file_namer: FileNamer | None) -> str:
    return file_namer(file, uri) if file_namer is not None and file is not None else uri


def _make_geometry(
    geometry: Geometry, file_namer: FileNamer | None, losses: ConversionLosses, label: str
) -> tuple[ET.Element, SE3] | None:
    """Return the shape, and its pose in the geometry's frame."""
    identity = SE3.identity()
    match geometry:
        case Box(size):
            return ET.Element("box", size=format_numbers(size)), identity
        case Sphere(radius):
            return ET.Element("sphere", radius=format_number(radius)), identity
        case Cylinder(radius, length):
            return ET.Element("cylinder", radius=format_number(radius), length=format_number(length)), identity
        case Capsule(radius, length):
            return ET.Element("capsule", radius=format_number(radius), length=format_number(length)), identity
        case Mesh():
            if geometry.submesh:
                losses.add(f"{label}: the submesh '{geometry.submesh}' is written as the complete mesh")
            name = _file_uri(geometry.file, geometry.uri, file_namer)
            return ET.Element("mesh", filename=name, scale=format_numbers(geometry.scale)), identity
        case Cone(radius, length):
            losses.add(f"{label}: a cone is written as a cylinder")
            return ET.Element("cylinder", radius=format_number(radius), length=format_number(length)), identity
        case Ellipsoid(radii):
            losses.add(f"{label}: an ellipsoid is written as a sphere of the same volume")
            return ET.Element("sphere", radius=format_number(math.prod(radii) ** (1.0 / 3.0))), identity
        case Plane(normal, size):
            losses.add(f"{label}: a plane is written as a flat box below it")
            shape = ET.Element("box", size=format_numbers((*size, _PLANE_THICKNESS)))
            return shape, align_z_with(normal) @ SE3(translation=(0.0, 0.0, -_PLANE_THICKNESS / 2))
    losses.add(f"{label}: a {type(geometry).__name__.lower()} is not written")
    return None


def align_z_with(normal: tuple[float, float, float]) -> SE3:
    """Return the smallest rotation that maps z to `normal`."""
    x, y, z = normal
    if z < -1.0 + 1e-12:
        return SE3((0.0, 1.0, 0.0, 0.0))
    return SE3((1.0 + z, -y, x, 0.0))


# -- joints ------------------------------------------------------------------------------------------------------------
def _add_joint(root: ET.Element, joint: Joint) -> None:
    node = add_child(root, "joint", name=joint.name, type=joint.type)
    _add_origin(node, joint.T_parent_child)
    add_child(node, "parent", link=joint.parent)
    add_child(node, "child", link=joint.child)
    if joint.axes:
        axis = joint.axes[0]
        add_child(node, "axis", xyz=format_numbers(axis.xyz))
        limits = axis.limits
        values = {"lower": limits.lower, "upper": limits.upper, "velocity": limits.velocity, "effort": limits.effort}
        if joint.type not in ("revolute", "prismatic"):
            del values["lower"], values["upper"]
        if any(not math.isinf(value) for value in values.values()):
            add_child(node, "limit", **{key: format_number(value) for key, value in values.items()})
        dynamics = axis.dynamics
        if dynamics.damping or dynamics.friction or dynamics.armature:
            rotor = {"armature": format_number(dynamics.armature)} if dynamics.armature else {}
            add_child(
                node,
                "dynamics",
                damping=format_number(dynamics.damping),
                friction=format_number(dynamics.friction),
                **rotor,
            )
    if joint.mimic is not None:
        factor, offset = format_number(joint.mimic.multiplier), format_number(joint.mimic.offset)
        add_child(node, "mimic", joint=joint.mimic.joint, multiplier=factor, offset=offset)
    if joint.safety is not None:
        add_child(
            node,
            "safety_controller",
            soft_lower_limit=format_number(joint.safety.soft_lower),
            soft_upper_limit=format_number(joint.safety.soft_upper),
            k_position=format_number(joint.safety.k_position),
            k_velocity=format_number(joint.safety.k_velocity),
        )


def _add_gazebo_joint(root: ET.Element, model: Model, joint: Joint) -> None:
    node = ET.Element("gazebo", reference=joint.name)
    if joint.axes and (joint.axes[0].dynamics.stiffness or joint.axes[0].dynamics.reference):
        add_child(node, "springStiffness", joint.axes[0].dynamics.stiffness)
        add_child(node, "springReference", joint.axes[0].dynamics.reference)
    for sensor in model.sensors:
        if sensor.kind == "force_torque" and getattr(sensor.spec, "joint", "") == joint.name:
            add_sensor(node, sensor)
    if len(node):
        root.append(node)


# -- extensions of plain URDF ------------------------------------------------------------------------------------------
def _add_gazebo_link(root: ET.Element, model: Model, link: Link, losses: ConversionLosses) -> None:
    node = ET.Element("gazebo", reference=link.name)
    _add_surface(node, link.collisions, link.name, losses)
    if not link.gravity:
        add_child(node, "gravity", False)
    if link.self_collide:
        add_child(node, "selfCollide", True)
    for sensor in model.sensors:
        if sensor.link == link.name and sensor.kind != "force_torque":
            add_sensor(node, sensor)
    for plugin in model.plugins:
        if plugin.link == link.name:
            add_element(node, plugin.element)
    if len(node):
        root.append(node)


def _add_surface(node: ET.Element, collisions: tuple[Collision, ...], link: str, losses: ConversionLosses) -> None:
    surfaces = [one.surface for one in collisions if one.surface.collide]
    if not surfaces:
        return
    first = surfaces[0]
    if any(surface != first for surface in surfaces):
        losses.add(f"link '{link}': all its collisions get the surface of the first")
    default = Surface()
    if first.friction != default.friction or first.friction2 is not None:
        add_child(node, "mu1", first.friction)
        add_child(node, "mu2", first.friction if first.friction2 is None else first.friction2)
    add_friction_direction(node, first)
    if any(first.slip):
        add_child(node, "slip1", first.slip[0])
        add_child(node, "slip2", first.slip[1])
    if first.stiffness is not None:
        add_child(node, "kp", first.stiffness)
    if first.damping is not None:
        add_child(node, "kd", first.damping)
    if first.torsional is not None or first.rolling is not None or first.restitution:
        losses.add("torsional and rolling friction and restitution of surfaces are lost")


def _add_interfaces(root: ET.Element, model: Model) -> None:
    """Add interfaces that no ``<ros2_control>`` block of the original has."""
    original_joints = {
        dict(joint.attributes).get("name", "").strip()
        for plugin in model.plugins
        if plugin.element.tag == _CONTROL
        for joint in plugin.element.find_all("joint")
    }
    missing = [one for one in model.interfaces if one.joint not in original_joints]
    if missing:
        block = add_child(root, _CONTROL, name="joints", type="system")
        for one in missing:
            _add_interface(block, one)
    for one in model.interfaces:
        if one.reduction != 1.0:
            node = add_child(root, "transmission", name=f"{one.joint}_transmission")
            add_child(node, "joint", name=one.joint)
            add_child(node, "mechanicalReduction", one.reduction)


def _add_interface(block: ET.Element, interface: JointInterface) -> None:
    node = add_child(block, "joint", name=interface.joint)
    for mode, lower, upper in interface.commands:
        command = add_child(node, "command_interface", name=mode)
        for name, bound in (("min", lower), ("max", upper)):
            if not math.isinf(bound):
                add_child(command, "param", bound, name=name)
    initial = dict(interface.initial)
    for state in dict.fromkeys((*interface.states, *initial)):
        state_node = add_child(node, "state_interface", name=state)
        if state in initial:
            add_child(state_node, "param", initial[state], name="initial_value")
    for name, text in interface.parameters:
        add_child(node, "param", text, name=name)
