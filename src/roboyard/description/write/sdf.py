"""Writer of SDF 1.11 from `Model` and `World`."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree as ET

from roboyard.description.model import (
    MOMENT_NAMES,
    Axis,
    Box,
    Capsule,
    Collision,
    Cone,
    Cylinder,
    Ellipsoid,
    GeodeticOrigin,
    Geometry,
    Heightmap,
    Inertial,
    Joint,
    Light,
    Link,
    Material,
    Mesh,
    Model,
    Plane,
    Polyline,
    Sphere,
    Surface,
    Visual,
    World,
)
from roboyard.description.write.result import (
    ConversionLosses,
    FileNamer,
    WrittenDescription,
    add_child,
    add_element,
    add_friction_direction,
    add_pose,
    format_numbers,
)
from roboyard.description.write.sensors import add_sensor
from roboyard.description.write.simplify import (
    lend_masses,
    make_names_distinct,
    remove_scopes,
    replace_inline_meshes,
    split_multi_axis_joints,
)
from roboyard.geometry import SE3

_VERSION = "1.11"


def write_sdf(description: Model | World, file_namer: FileNamer | None = None) -> WrittenDescription:
    """Write a model or world as an SDF document.

    Args:
        description: The model or world.
        file_namer: Function that names meshes and textures in the document; None: names of the original.
    """
    losses = ConversionLosses()
    root = ET.Element("sdf", version=_VERSION)
    if isinstance(description, Model):
        _add_model(root, description, description.name, file_namer, losses)
    else:
        _add_world(root, description, file_namer, losses)
    return losses.finish(root)


def _add_world(root: ET.Element, world: World, file_namer: FileNamer | None, losses: ConversionLosses) -> None:
    node = add_child(root, "world", name=world.name)
    add_child(node, "gravity", format_numbers(world.gravity))
    if world.physics.max_step_size is not None:
        physics = add_child(node, "physics", name="physics", type="ode")
        add_child(physics, "max_step_size", world.physics.max_step_size)
    add_child(node, "magnetic_field", format_numbers(world.magnetic_field))
    if world.origin != GeodeticOrigin():
        origin_node = add_child(node, "spherical_coordinates")
        add_child(origin_node, "surface_model", "EARTH_WGS84")
        add_child(origin_node, "world_frame_orientation", "ENU")
        add_child(origin_node, "latitude_deg", math.degrees(world.origin.latitude))
        add_child(origin_node, "longitude_deg", math.degrees(world.origin.longitude))
        add_child(origin_node, "elevation", world.origin.elevation)
        add_child(origin_node, "heading_deg", math.degrees(world.origin.heading))
    scene = add_child(node, "scene")
    add_child(scene, "ambient", format_numbers(world.ambient))
    add_child(scene, "background", format_numbers(world.background))
    for light in world.lights:
        _add_light(node, light)
    for placed in world.models:
        _add_model(node, placed.model, placed.name, file_namer, losses, placed.T_world_model)
    for joint in world.joints:
        if max(joint.parent.count("::"), joint.child.count("::")) > 1:
            losses.add(f"joint '{joint.name}' between models refers to a nested model: it is lost")
        else:
            _add_joint(node, Model("", ()), joint, losses)
    for plugin in world.plugins:
        add_element(node, plugin.element)


def _add_light(parent: ET.Element, light: Light) -> None:
    node = add_child(parent, "light", name=light.name, type=light.type)
    add_pose(node, light.T_world_light)
    add_child(node, "direction", format_numbers(light.direction))
    add_child(node, "diffuse", format_numbers(light.diffuse))
    add_child(node, "specular", format_numbers(light.specular))
    add_child(node, "cast_shadows", light.cast_shadows)
    if light.attenuation != (1.0, 0.0, 0.0) or math.isfinite(light.range):
        attenuation_node = add_child(node, "attenuation")
        if math.isfinite(light.range):
            add_child(attenuation_node, "range", light.range)
        for tag, value in zip(("constant", "linear", "quadratic"), light.attenuation, strict=True):
            add_child(attenuation_node, tag, value)
    if light.type == "spot":
        spot = add_child(node, "spot")
        add_child(spot, "outer_angle", 2.0 * light.outer_angle)
        add_child(spot, "falloff", light.falloff)


def _add_model(
    parent: ET.Element,
    model: Model,
    name: str,
    file_namer: FileNamer | None,
    losses: ConversionLosses,
    T: SE3 | None = None,
) -> None:
    model = replace_inline_meshes(model, losses)
    model = make_names_distinct(
        split_multi_axis_joints(remove_scopes(model, losses), ("planar", "floating"), losses), losses
    )
    node = add_child(parent, "model", name=name)
    if model.canonical_link and model.canonical_link != model.links[0].name:
        node.set("canonical_link", model.canonical_link)
    add_pose(node, T or SE3.identity())
    if model.static:
        add_child(node, "static", True)
    inertials = {} if model.static else lend_masses(model, losses)
    for link in model.links:
        _add_link(node, model, link, inertials.get(link.name, link.inertial), file_namer, losses)
    for joint in (*model.joints, *model.loop_joints):
        _add_joint(node, model, joint, losses)
    for frame in model.frames:
        add_pose(add_child(node, "frame", name=frame.name, attached_to=frame.link), frame.T_link_frame)
    for plugin in model.plugins:
        if plugin.element.tag == "ros2_control":
            continue
        if plugin.link is None:
            add_element(node, plugin.element)
    if any(one.commands or one.initial for one in model.interfaces):
        losses.add("command modes of joints, their gains and initial positions are lost")
    if model.disabled_collisions:
        losses.add(f"disabled collision pairs are lost ({len(model.disabled_collisions)})")


# -- links -------------------------------------------------------------------------------------------------------------
def _add_link(
    parent: ET.Element,
    model: Model,
    link: Link,
    inertial: Inertial | None,
    file_namer: FileNamer | None,
    losses: ConversionLosses,
) -> None:
    node = add_child(parent, "link", name=link.name)
    add_pose(node, link.T_model_link)
    if inertial is not None:
        part = add_child(node, "inertial")
        add_pose(part, inertial.T_link_com)
        add_child(part, "mass", inertial.mass)
        moments = add_child(part, "inertia")
        for key, value in zip(MOMENT_NAMES, inertial.inertia, strict=True):
            add_child(moments, key, value)
    if not link.gravity:
        add_child(node, "gravity", False)
    if link.self_collide:
        add_child(node, "self_collide", True)
    for collision in link.collisions:
        _add_collision(node, collision, file_namer)
    for visual in link.visuals:
        _add_visual(node, visual, file_namer)
    for sensor in model.sensors:
        if sensor.link == link.name and sensor.kind != "force_torque":
            add_sensor(node, sensor)
    for plugin in model.plugins:
        if plugin.link == link.name:
            add_element(node, plugin.element)


def _add_collision(parent: ET.Element, collision: Collision, file_namer: FileNamer | None) -> None:
    node = add_child(parent, "collision", name=collision.name)
    add_pose(node, collision.T_link_geom)
    _add_geometry(node, collision.geometry, file_namer)
    if collision.surface != Surface():
        _add_surface(node, collision.surface)


def _add_surface(parent: ET.Element, surface: Surface) -> None:
    node = add_child(parent, "surface")
    friction = add_child(node, "friction")
    ode = add_child(friction, "ode")
    add_child(ode, "mu", surface.friction)
    add_child(ode, "mu2", surface.friction if surface.friction2 is None else surface.friction2)
    add_friction_direction(ode, surface)
    if any(surface.slip):
        add_child(ode, "slip1", surface.slip[0])
        add_child(ode, "slip2", surface.slip[1])
    if surface.torsional is not None:
        add_child(add_child(friction, "torsional"), "coefficient", surface.torsional)
    if surface.rolling is not None:
        bullet = add_child(friction, "bullet")
        add_child(bullet, "friction", surface.friction)
        add_child(bullet, "rolling_friction", surface.rolling)
    if surface.stiffness is not None or surface.damping is not None or not surface.collide:
        contact = add_child(node, "contact")
        if not surface.collide:
            add_child(contact, "collide_bitmask", "0x00")
        contact_ode = add_child(contact, "ode")
        if surface.stiffness is not None:
            add_child(contact_ode, "kp", surface.stiffness)
        if surface.damping is not None:
            add_child(contact_ode, "kd", surface.damping)
    if surface.restitution:
        add_child(add_child(node, "bounce"), "restitution_coefficient", surface.restitution)


def _add_visual(parent: ET.Element, visual: Visual, file_namer: FileNamer | None) -> None:
    node = add_child(parent, "visual", name=visual.name)
    add_pose(node, visual.T_link_geom)
    _add_geometry(node, visual.geometry, file_namer)
    if not visual.cast_shadows:
        add_child(node, "cast_shadows", False)
    _add_material(node, visual.material, file_namer)


def _add_material(parent: ET.Element, material: Material, file_namer: FileNamer | None) -> None:
    if not material.is_explicit:  # a mesh keeps the materials of its own file
        if material.rgba[3] < 1.0:
            add_child(parent, "transparency", 1.0 - material.rgba[3])
        return
    node = add_child(parent, "material")
    add_child(node, "ambient", format_numbers(material.rgba))
    add_child(node, "diffuse", format_numbers(material.rgba))
    if any(material.emissive):
        add_child(node, "emissive", format_numbers((*material.emissive, 1.0)))
    if material.texture is not None:
        metal = add_child(add_child(node, "pbr"), "metal")
        add_child(metal, "albedo_map", _file_uri(material.texture, str(material.texture), file_namer))


def _file_uri(file: Path | None, uri: str, file_namer: FileNamer | None) -> str:
    return file_namer(file, uri) if file_namer is not None and file is not None else uri


def _add_geometry(parent: ET.Element, geometry: Geometry, file_namer: FileNamer | None) -> None:
    node = add_child(parent, "geometry")
    match geometry:
        case Box(size):
            add_child(add_child(node, "box"), "size", format_numbers(size))
        case Sphere(radius):
            add_child(add_child(node, "sphere"), "radius", radius)
        case Cylinder(radius, length) | Capsule(radius, length) | Cone(radius, length):
            shape = add_child(node, type(geometry).__name__.lower())
            add_child(shape, "radius", radius)
            add_child(shape, "length", length)
        case Ellipsoid(radii):
            add_child(add_child(node, "ellipsoid"), "radii", format_numbers(radii))
        case Plane(normal, size):
            shape = add_child(node, "plane")
            add_child(shape, "normal", format_numbers(normal))
            add_child(shape, "size", format_numbers(size))
        case Mesh():
            shape = add_child(node, "mesh")
            if geometry.convex:
                shape.set("optimization", "convex_hull")
            add_child(shape, "uri", _file_uri(geometry.file, geometry.uri, file_namer))
            add_child(shape, "scale", format_numbers(geometry.scale))
            if geometry.submesh:
                part = add_child(shape, "submesh")
                add_child(part, "name", geometry.submesh)
                add_child(part, "center", geometry.center_submesh)
        case Heightmap():
            shape = add_child(node, "heightmap")
            add_child(shape, "uri", _file_uri(geometry.file, geometry.uri, file_namer))
            add_child(shape, "size", format_numbers(geometry.size))
            add_child(shape, "pos", format_numbers(geometry.position))
        case Polyline(outlines, height):
            for outline in outlines:
                shape = add_child(node, "polyline")
                for point in outline:
                    add_child(shape, "point", format_numbers(point))
                add_child(shape, "height", height)


# -- joints ------------------------------------------------------------------------------------------------------------
def _add_joint(parent: ET.Element, model: Model, joint: Joint, losses: ConversionLosses) -> None:
    node = add_child(parent, "joint", name=joint.name, type=joint.type)
    add_pose(node, joint.T_child_joint)
    add_child(node, "parent", joint.parent)
    add_child(node, "child", joint.child)
    for tag, axis in zip(("axis", "axis2"), joint.axes, strict=False):
        _add_axis(node, tag, axis, joint if tag == "axis" else None, losses)
    if joint.type == "screw":
        add_child(node, "screw_thread_pitch", joint.thread_pitch)
    if joint.type == "gearbox":
        add_child(node, "gearbox_ratio", joint.gear_ratio)
        if joint.gear_reference:
            add_child(node, "gearbox_reference_body", joint.gear_reference)
    if joint.safety is not None:
        losses.add("safety controllers of joints are lost")
    if joint.ball_axis is not None:
        losses.add("limits, springs, damping and friction of ball joints are lost")
    for sensor in model.sensors:
        if sensor.kind == "force_torque" and getattr(sensor.spec, "joint", "") == joint.name:
            add_sensor(node, sensor, joint.T_child_joint.inverse() @ sensor.T_link_sensor)


def _add_axis(parent: ET.Element, tag: str, axis: Axis, joint: Joint | None, losses: ConversionLosses) -> None:
    node = add_child(parent, tag)
    add_child(node, "xyz", format_numbers(axis.xyz))
    limits, dynamics = axis.limits, axis.dynamics
    values = {"lower": limits.lower, "upper": limits.upper, "velocity": limits.velocity, "effort": limits.effort}
    if any(not math.isinf(value) for value in values.values()):
        part = add_child(node, "limit")
        for key, value in values.items():
            if not math.isinf(value):
                add_child(part, key, value)
    if dynamics.damping or dynamics.friction or dynamics.stiffness or dynamics.reference:
        part = add_child(node, "dynamics")
        add_child(part, "damping", dynamics.damping)
        add_child(part, "friction", dynamics.friction)
        add_child(part, "spring_stiffness", dynamics.stiffness)
        add_child(part, "spring_reference", dynamics.reference)
    if dynamics.armature:
        losses.add("rotor inertia (armature) is lost")
    if joint is not None and joint.mimic is not None:
        mimic_node = add_child(node, "mimic", joint=joint.mimic.joint, axis="axis")
        add_child(mimic_node, "multiplier", joint.mimic.multiplier)
        add_child(mimic_node, "offset", joint.mimic.offset)
        add_child(mimic_node, "reference", 0.0)
