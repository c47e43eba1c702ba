"""``<world>``: placed models, lamps, gravity, physics, scene."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from roboyard.description.fields import colour_of, number_of, text_of, vector_of
from roboyard.description.model import Geodetic, Joint, Light, Physics, Placed, Vec3, World
from roboyard.description.naming import free_name
from roboyard.description.reading import Reading
from roboyard.description.sdf.actors import read_actor, standing
from roboyard.description.sdf.includes import Included, Version
from roboyard.description.sdf.joint import end, read_joint
from roboyard.description.sdf.lights import read_light
from roboyard.description.sdf.model import distinct, included, model_entry, nested_entry
from roboyard.description.sdf.placeholders import is_placeholder
from roboyard.description.sdf.scope import WORLD, Entry, Scope
from roboyard.description.sensing import read_plugin
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node
from roboyard.geometry import SE3

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
    known = len(reading.faults)
    scope = Scope(f"world '{name}'", WORLD, strict=version >= (1, 7))
    lamps: list[Included] = []
    actors: list[Included] = []
    for child in node.children:
        found = reading.attempt(partial(_part, reading, child, version), None)
        if isinstance(found, Included):
            (lamps if found.node.tag == "light" else actors).append(found)
        elif found is not None:
            distinct(reading, scope, found)
            if not reading.attempt(partial(scope.declare, found), True):
                reading.note(child, f"the {found.kind} '{found.name}' shares its name with another part")
    for key, entry in scope.entries("frame"):
        reading.attempt(partial(scope.pose, key, entry.node, f"frame '{entry.name}'"), SE3.identity())
    placed = tuple(
        Placed(entry.name, entry.model, reading.attempt(partial(_place, scope, key, entry), SE3.identity()))
        for key, entry in scope.entries("model")
        if entry.model is not None
    )
    taken = {one.name for one in placed}
    nobody: tuple[Placed, ...] = ()
    placed += reading.attempt(lambda: tuple(_figures(reading, scope, actors, taken)), nobody)
    joints = _joints(reading, scope, placed, version)
    dark: tuple[Light, ...] = ()
    lights = reading.attempt(partial(_lights, reading, scope, lamps), dark)
    physics = reading.attempt(partial(_physics, reading, node), Physics())
    origin = reading.attempt(partial(_origin, reading, node.child("spherical_coordinates")), Geodetic())
    if reading.faults[known:]:  # what follows of them is none of its own
        raise reading.faults[known]
    scene = node.child("scene")
    if scene is not None:
        reading.unknown(scene, {"ambient", "background"}, {"grid", "shadows", "sky", "fog", "origin_visual"})
    return World(
        name=name,
        models=placed,
        joints=joints,
        lights=lights,
        gravity=_gravity(node),
        physics=physics,
        ambient=colour_of(scene, "ambient", _SCENE.ambient),
        background=colour_of(scene, "background", _SCENE.background),
        magnetic_field=vector_of(node, "magnetic_field", _SCENE.magnetic_field),
        origin=origin,
        plugins=tuple(read_plugin(one) for one in node.all("plugin")),
    )


def _part(reading: Reading, child: Node, version: Version) -> Entry | Included | None:
    """What a world's child declares, or a lamp or actor; None for what has no place in it."""
    called, where = child.get("name").strip(), child.child("pose")
    match child.tag:
        case "model":
            return nested_entry(reading, child, version, WORLD)
        case "actor" | "light":
            return Included(called, None, child, where)
        case "joint":
            moved = end(child, "child")
            return Entry(called, "joint", child, where, moved, attached=moved)
        case "include":
            if child.get("merge").strip() in ("true", "1"):
                reading.note(child, "merging a world into a world is not understood: included as it is")
            found = included(reading, child)
            return found if found.model is None else model_entry(found, WORLD)
        case "frame":
            attached = child.get("attached_to").strip()
            return Entry(called, "frame", child, where, attached or WORLD, attached=attached)
    return None


def _place(scope: Scope, key: str, entry: Entry) -> SE3:
    return scope.pose(key, entry.node, f"model '{entry.name}'")


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
        joint = reading.attempt(partial(read_joint, reading, entry.node, scope, key, poses, version), None)
        if joint is None:
            continue
        if any(end(entry.node, role).partition("::")[0] in missing for role in ("parent", "child")):
            reading.note(entry.node, f"joint '{entry.name}' leads to a model that is not there: left out")
            continue
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
