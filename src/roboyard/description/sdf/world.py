"""``<world>``: placed models, lamps, gravity, physics, scene."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from roboyard.description.fields import colour_of, number_of, text_of, vector_of
from roboyard.description.model import Geodetic, Joint, Light, Physics, Placed, Vec3, World
from roboyard.description.naming import free_name
from roboyard.description.reading import Reading
from roboyard.description.sdf.actors import read_actor, standing
from roboyard.description.sdf.includes import Included, Version, is_placeholder, read_include
from roboyard.description.sdf.joint import end, read_joint
from roboyard.description.sdf.lights import read_light
from roboyard.description.sdf.model import distinct, model_entry, read_model
from roboyard.description.sdf.scope import WORLD, Entry, Scope
from roboyard.description.sensing import read_plugin
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node

_KNOWN = {
    "model", "include", "light", "physics", "gravity", "scene", "frame", "plugin", "name", "magnetic_field",
    "spherical_coordinates", "actor", "joint",
}  # fmt: skip
_UNUSED = {
    "gui", "atmosphere", "wind", "audio", "road", "state", "population", "model_group",
}  # fmt: skip
_EARTH: Vec3 = (0.0, 0.0, -9.8)


def read_world(reading: Reading, node: Node, version: Version) -> World:
    """The world at ``node``.

    Raises:
        DescriptionError: anything in it is wrong.
    """
    name = node.get("name").strip()
    if not name:
        raise fault("the world has no name", node, '<world name="…">')
    reading.unknown(node, _KNOWN, _UNUSED)
    scope = Scope(f"world '{name}'", WORLD, strict=version >= (1, 7))
    lamps: list[Included] = []
    actors: list[Included] = []
    for child in node.children:
        called, where = child.get("name").strip(), child.child("pose")
        if child.tag == "model":
            model = read_model(reading, child, version)
            entry = model_entry(Included(called, model, child, where, child.get("placement_frame").strip()), WORLD)
        elif child.tag == "actor":
            actors.append(Included(called, None, child, where))
            continue
        elif child.tag == "joint":
            moved = end(child, "child")
            entry = Entry(called, "joint", child, where, moved, attached=moved)
        elif child.tag == "include":
            if child.get("merge").strip() in ("true", "1"):
                reading.note(child, "merging a world into a world is not understood: included as it is")
            found = read_include(reading, child, read_model)
            if found.model is None:
                (lamps if found.node.tag == "light" else actors).append(found)
                continue
            entry = model_entry(found, WORLD)
        elif child.tag == "light":
            lamps.append(Included(called, None, child, where))
            continue
        elif child.tag == "frame":
            attached = child.get("attached_to").strip()
            entry = Entry(called, "frame", child, where, attached or WORLD, attached=attached)
        else:
            continue
        distinct(reading, scope, entry)
        if not scope.declare(entry):
            reading.note(child, f"the {entry.kind} '{entry.name}' shares its name with another part")
    for key, entry in scope.entries("frame"):
        scope.pose(key, entry.node, f"frame '{entry.name}'")
    placed = tuple(
        Placed(entry.name, entry.model, scope.pose(key, entry.node, f"model '{entry.name}'"))
        for key, entry in scope.entries("model")
        if entry.model is not None
    )
    placed += tuple(_figures(reading, scope, actors, {one.name for one in placed}))
    joints = _joints(reading, scope, placed, version)
    physics = _physics(reading, node)
    scene = node.child("scene")
    if scene is not None:
        reading.unknown(scene, {"ambient", "background"}, {"grid", "shadows", "sky", "fog", "origin_visual"})
    return World(
        name=name,
        models=placed,
        joints=joints,
        lights=_lights(reading, scope, lamps),
        gravity=_gravity(node),
        physics=physics,
        ambient=colour_of(scene, "ambient", _SCENE.ambient),
        background=colour_of(scene, "background", _SCENE.background),
        magnetic_field=vector_of(node, "magnetic_field", _SCENE.magnetic_field),
        origin=_origin(reading, node.child("spherical_coordinates")),
        plugins=tuple(read_plugin(one) for one in node.all("plugin")),
    )


def _origin(reading: Reading, node: Node | None) -> Geodetic:
    if node is None:
        return Geodetic()
    reading.unknown(
        node,
        {"surface_model", "world_frame_orientation", "latitude_deg", "longitude_deg", "elevation", "heading_deg"},
        {"surface_axis_equatorial", "surface_axis_polar"},
    )
    surface, axes = text_of(node, "surface_model", "EARTH_WGS84"), text_of(node, "world_frame_orientation", "ENU")
    if surface != "EARTH_WGS84" or axes != "ENU":
        reading.note(node, f"surface {shown(surface)} with axes {shown(axes)} is taken as EARTH_WGS84 with ENU")
    latitude, longitude = number_of(node, "latitude_deg", 0.0), number_of(node, "longitude_deg", 0.0)
    if abs(latitude) > 90.0 or abs(longitude) > 360.0:
        raise fault(f"latitude {latitude:g}°, longitude {longitude:g}°", node, "-90 … 90° and -180 … 180°")
    heading = math.radians(number_of(node, "heading_deg", 0.0))
    return Geodetic(math.radians(latitude), math.radians(longitude), number_of(node, "elevation", 0.0), heading)


_SCENE = World("defaults")


def _figures(reading: Reading, scope: Scope, actors: list[Included], taken: set[str]) -> Iterator[Placed]:
    names = dict.fromkeys(taken, 0)
    for one in actors:
        actor = read_actor(reading, one.node)
        T_world_actor = scope.relative(one.pose_node, WORLD, one.node, f"actor '{one.name}'")
        name = free_name(one.name, names)
        yield Placed(name, replace(actor.model, name=name), standing(actor.start or T_world_actor))


def _joints(reading: Reading, scope: Scope, placed: tuple[Placed, ...], version: Version) -> tuple[Joint, ...]:
    """Joints between models, their ends called ``model::link``."""
    missing = {one.name for one in placed if is_placeholder(one.model)}
    poses = {
        f"{one.name}::{link.name}": one.T_world_model @ link.T_model_link for one in placed for link in one.model.links
    }
    found = []
    for key, entry in scope.entries("joint"):
        if any(end(entry.node, role).partition("::")[0] in missing for role in ("parent", "child")):
            reading.note(entry.node, f"joint '{entry.name}' leads to a model that is not there: left out")
            continue
        joint = read_joint(reading, entry.node, scope, key, poses, version)
        if joint.parent == joint.child:
            what = f"joint '{joint.name}' joins link '{joint.child}' to itself"
            reading.mend(entry.node, what, "two different links", "left out")
            continue
        found.append(joint)
    return tuple(found)


def _gravity(node: Node) -> Vec3:
    """In the world since SDF 1.6, in its physics before."""
    return vector_of(node, "gravity", vector_of(node.child("physics"), "gravity", _EARTH))


def _physics(reading: Reading, node: Node) -> Physics:
    given = node.all("physics")
    chosen = next((one for one in given if one.get("default") in ("true", "1")), given[0] if given else None)
    for one in given:
        if one is not chosen:
            reading.note(one, "more than one <physics>: this one is left out")
    if chosen is None:
        return Physics()
    reading.unknown(
        chosen,
        {"max_step_size", "gravity"},
        {"ode", "bullet", "dart", "simbody", "max_contacts", "magnetic_field"} | _PACE,
    )
    step = number_of(chosen, "max_step_size", 0.0, low=0.0, above=True)
    return Physics(step or None)


_PACE = {"real_time_factor", "real_time_update_rate"}


def _lights(reading: Reading, scope: Scope, lamps: list[Included]) -> tuple[Light, ...]:
    found: list[Light] = []
    names: dict[str, int] = {}
    for lamp in lamps:
        T_world_light = scope.relative(lamp.pose_node, WORLD, lamp.node, f"light '{lamp.name}'")
        light = read_light(reading, lamp.node, T_world_light)
        name = free_name(light.name, names)
        if name != light.name:
            reading.note(lamp.node, f"two lamps are called '{light.name}': this one becomes '{name}'")
        found.append(replace(light, name=name))
    return tuple(found)
