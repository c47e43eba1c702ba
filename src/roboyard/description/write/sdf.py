"""`Model` and `World` as SDF 1.11."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree as ET

from roboyard.description.model import (
    Axis,
    Box,
    Capsule,
    Collision,
    Cone,
    Cylinder,
    Ellipsoid,
    Geodetic,
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
from roboyard.description.write.names import distinct, plain_names
from roboyard.description.write.sensors import add_sensor
from roboyard.description.write.simpler import split, without_points
from roboyard.description.write.weights import lent
from roboyard.description.write.written import (
    Files,
    Losses,
    Written,
    add,
    add_direction,
    add_element,
    add_pose,
    numbers,
)
from roboyard.geometry import SE3

_VERSION = "1.11"
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def write_sdf(thing: Model | World, files: Files | None = None) -> Written:
    """The model or world as an SDF document.

    Args:
        thing: What is written.
        files: Names of meshes and textures in the document; None: as the original named them.
    """
    losses = Losses()
    root = ET.Element("sdf", version=_VERSION)
    if isinstance(thing, Model):
        _model(root, thing, thing.name, files, losses)
    else:
        _world(root, thing, files, losses)
    return losses.finish(root)


def _world(root: ET.Element, world: World, files: Files | None, losses: Losses) -> None:
    node = add(root, "world", name=world.name)
    add(node, "gravity", numbers(world.gravity))
    if world.physics.max_step_size is not None:
        physics = add(node, "physics", name="physics", type="ode")
        add(physics, "max_step_size", world.physics.max_step_size)
    add(node, "magnetic_field", numbers(world.magnetic_field))
    if world.origin != Geodetic():
        place = add(node, "spherical_coordinates")
        add(place, "surface_model", "EARTH_WGS84")
        add(place, "world_frame_orientation", "ENU")
        add(place, "latitude_deg", math.degrees(world.origin.latitude))
        add(place, "longitude_deg", math.degrees(world.origin.longitude))
        add(place, "elevation", world.origin.elevation)
        add(place, "heading_deg", math.degrees(world.origin.heading))
    scene = add(node, "scene")
    add(scene, "ambient", numbers(world.ambient))
    add(scene, "background", numbers(world.background))
    for light in world.lights:
        _light(node, light)
    for placed in world.models:
        _model(node, placed.model, placed.name, files, losses, placed.T_world_model)
    for joint in world.joints:
        if max(joint.parent.count("::"), joint.child.count("::")) > 1:
            losses.say(f"joint '{joint.name}' between models leads into a nested one: it is lost")
        else:
            _joint(node, Model("", ()), joint, losses)
    for plugin in world.plugins:
        add_element(node, plugin.element)


def _light(parent: ET.Element, light: Light) -> None:
    node = add(parent, "light", name=light.name, type=light.type)
    add_pose(node, light.T_world_light)
    add(node, "direction", numbers(light.direction))
    add(node, "diffuse", numbers(light.diffuse))
    add(node, "specular", numbers(light.specular))
    add(node, "cast_shadows", light.cast_shadows)
    if light.attenuation != (1.0, 0.0, 0.0) or math.isfinite(light.reach):
        fading = add(node, "attenuation")
        if math.isfinite(light.reach):
            add(fading, "range", light.reach)
        for tag, value in zip(("constant", "linear", "quadratic"), light.attenuation, strict=True):
            add(fading, tag, value)
    if light.type == "spot":
        spot = add(node, "spot")
        add(spot, "outer_angle", 2.0 * light.cone)
        add(spot, "falloff", light.falloff)


def _model(
    parent: ET.Element, model: Model, name: str, files: Files | None, losses: Losses, T: SE3 | None = None
) -> None:
    model = without_points(model, losses)
    model = distinct(split(plain_names(model, losses), ("planar", "floating"), losses), losses)
    node = add(parent, "model", name=name)
    if model.canonical_link and model.canonical_link != model.links[0].name:
        node.set("canonical_link", model.canonical_link)
    add_pose(node, T or SE3.identity())
    if model.static:
        add(node, "static", True)
    weights = {} if model.static else lent(model, losses)
    for link in model.links:
        _link(node, model, link, weights.get(link.name, link.inertial), files, losses)
    for joint in (*model.joints, *model.closures):
        _joint(node, model, joint, losses)
    for frame in model.frames:
        add_pose(add(node, "frame", name=frame.name, attached_to=frame.link), frame.T_link_frame)
    for plugin in model.plugins:
        if plugin.element.tag == "ros2_control":
            continue
        if plugin.link is None:
            add_element(node, plugin.element)
    if any(one.commands or one.initial for one in model.interfaces):
        losses.say("which joints take what commands, their gains and initial positions, is lost")
    if model.excludes:
        losses.say(f"excluded pairs are lost ({len(model.excludes)})")


# -- links -------------------------------------------------------------------------------------------------------------
def _link(
    parent: ET.Element, model: Model, link: Link, inertial: Inertial | None, files: Files | None, losses: Losses
) -> None:
    node = add(parent, "link", name=link.name)
    add_pose(node, link.T_model_link)
    if inertial is not None:
        part = add(node, "inertial")
        add_pose(part, inertial.T_link_com)
        add(part, "mass", inertial.mass)
        moments = add(part, "inertia")
        for key, value in zip(_MOMENTS, inertial.inertia, strict=True):
            add(moments, key, value)
    if not link.gravity:
        add(node, "gravity", False)
    if link.self_collide:
        add(node, "self_collide", True)
    for collision in link.collisions:
        _collision(node, collision, files)
    for visual in link.visuals:
        _visual(node, visual, files)
    for sensor in model.sensors:
        if sensor.link == link.name and sensor.kind != "force_torque":
            add_sensor(node, sensor)
    for plugin in model.plugins:
        if plugin.link == link.name:
            add_element(node, plugin.element)


def _collision(parent: ET.Element, collision: Collision, files: Files | None) -> None:
    node = add(parent, "collision", name=collision.name)
    add_pose(node, collision.T_link_geom)
    _geometry(node, collision.geometry, files)
    if collision.surface != Surface():
        _surface(node, collision.surface)


def _surface(parent: ET.Element, surface: Surface) -> None:
    node = add(parent, "surface")
    friction = add(node, "friction")
    ode = add(friction, "ode")
    add(ode, "mu", surface.friction)
    add(ode, "mu2", surface.friction if surface.friction2 is None else surface.friction2)
    add_direction(ode, surface)
    if any(surface.slip):
        add(ode, "slip1", surface.slip[0])
        add(ode, "slip2", surface.slip[1])
    if surface.torsional is not None:
        add(add(friction, "torsional"), "coefficient", surface.torsional)
    if surface.rolling is not None:
        bullet = add(friction, "bullet")
        add(bullet, "friction", surface.friction)
        add(bullet, "rolling_friction", surface.rolling)
    if surface.stiffness is not None or surface.damping is not None or not surface.collide:
        contact = add(node, "contact")
        if not surface.collide:
            add(contact, "collide_bitmask", "0x00")
        stiff = add(contact, "ode")
        if surface.stiffness is not None:
            add(stiff, "kp", surface.stiffness)
        if surface.damping is not None:
            add(stiff, "kd", surface.damping)
    if surface.restitution:
        add(add(node, "bounce"), "restitution_coefficient", surface.restitution)


def _visual(parent: ET.Element, visual: Visual, files: Files | None) -> None:
    node = add(parent, "visual", name=visual.name)
    add_pose(node, visual.T_link_geom)
    _geometry(node, visual.geometry, files)
    if not visual.cast_shadows:
        add(node, "cast_shadows", False)
    _material(node, visual.material, files)


def _material(parent: ET.Element, material: Material, files: Files | None) -> None:
    if not material.stated:  # a mesh keeps the looks of its own file
        if material.rgba[3] < 1.0:
            add(parent, "transparency", 1.0 - material.rgba[3])
        return
    node = add(parent, "material")
    add(node, "ambient", numbers(material.rgba))
    add(node, "diffuse", numbers(material.rgba))
    if any(material.emissive):
        add(node, "emissive", numbers((*material.emissive, 1.0)))
    if material.texture is not None:
        metal = add(add(node, "pbr"), "metal")
        add(metal, "albedo_map", _named(material.texture, str(material.texture), files))


def _named(file: Path | None, uri: str, files: Files | None) -> str:
    return files(file, uri) if files is not None and file is not None else uri


def _geometry(parent: ET.Element, geometry: Geometry, files: Files | None) -> None:
    node = add(parent, "geometry")
    match geometry:
        case Box(size):
            add(add(node, "box"), "size", numbers(size))
        case Sphere(radius):
            add(add(node, "sphere"), "radius", radius)
        case Cylinder(radius, length) | Capsule(radius, length) | Cone(radius, length):
            shape = add(node, type(geometry).__name__.lower())
            add(shape, "radius", radius)
            add(shape, "length", length)
        case Ellipsoid(radii):
            add(add(node, "ellipsoid"), "radii", numbers(radii))
        case Plane(normal, size):
            shape = add(node, "plane")
            add(shape, "normal", numbers(normal))
            add(shape, "size", numbers(size))
        case Mesh():
            shape = add(node, "mesh")
            if geometry.convex:
                shape.set("optimization", "convex_hull")
            add(shape, "uri", _named(geometry.file, geometry.uri, files))
            add(shape, "scale", numbers(geometry.scale))
            if geometry.submesh:
                part = add(shape, "submesh")
                add(part, "name", geometry.submesh)
                add(part, "center", geometry.center_submesh)
        case Heightmap():
            shape = add(node, "heightmap")
            add(shape, "uri", _named(geometry.file, geometry.uri, files))
            add(shape, "size", numbers(geometry.size))
            add(shape, "pos", numbers(geometry.position))
        case Polyline(outlines, height):
            for outline in outlines:
                shape = add(node, "polyline")
                for point in outline:
                    add(shape, "point", numbers(point))
                add(shape, "height", height)


# -- joints ------------------------------------------------------------------------------------------------------------
def _joint(parent: ET.Element, model: Model, joint: Joint, losses: Losses) -> None:
    node = add(parent, "joint", name=joint.name, type=joint.type)
    add_pose(node, joint.T_child_joint)
    add(node, "parent", joint.parent)
    add(node, "child", joint.child)
    for tag, axis in zip(("axis", "axis2"), joint.axes, strict=False):
        _axis(node, tag, axis, joint if tag == "axis" else None, losses)
    if joint.type == "screw":
        add(node, "screw_thread_pitch", joint.thread_pitch)
    if joint.type == "gearbox":
        add(node, "gearbox_ratio", joint.gear_ratio)
        if joint.gear_reference:
            add(node, "gearbox_reference_body", joint.gear_reference)
    if joint.safety is not None:
        losses.say("safety controllers of joints are lost")
    if joint.swing is not None:
        losses.say("limits, springs, damping and friction of balls are lost")
    for sensor in model.sensors:
        if sensor.kind == "force_torque" and getattr(sensor.spec, "joint", "") == joint.name:
            add_sensor(node, sensor, joint.T_child_joint.inverse() @ sensor.T_link_sensor)


def _axis(parent: ET.Element, tag: str, axis: Axis, joint: Joint | None, losses: Losses) -> None:
    node = add(parent, tag)
    add(node, "xyz", numbers(axis.xyz))
    limits, dynamics = axis.limits, axis.dynamics
    values = {"lower": limits.lower, "upper": limits.upper, "velocity": limits.velocity, "effort": limits.effort}
    if any(not math.isinf(value) for value in values.values()):
        part = add(node, "limit")
        for key, value in values.items():
            if not math.isinf(value):
                add(part, key, value)
    if dynamics.damping or dynamics.friction or dynamics.stiffness or dynamics.reference:
        part = add(node, "dynamics")
        add(part, "damping", dynamics.damping)
        add(part, "friction", dynamics.friction)
        add(part, "spring_stiffness", dynamics.stiffness)
        add(part, "spring_reference", dynamics.reference)
    if dynamics.armature:
        losses.say("the inertia of motors' rotors (armature) is lost")
    if joint is not None and joint.mimic is not None:
        follow = add(node, "mimic", joint=joint.mimic.joint, axis="axis")
        add(follow, "multiplier", joint.mimic.multiplier)
        add(follow, "offset", joint.mimic.offset)
        add(follow, "reference", 0.0)
