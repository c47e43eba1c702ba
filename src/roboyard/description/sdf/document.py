"""Reads the model of an ``<sdf>`` document, or its world with models, lights, actors, joints and physics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from roboyard.description.model import (
    ActorClip,
    ActorScript,
    ActorTrajectory,
    Capsule,
    Collision,
    GeodeticOrigin,
    Joint,
    Light,
    Link,
    Material,
    Model,
    PhysicsRequest,
    PlacedModel,
    Rgba,
    Visual,
    World,
)
from roboyard.description.names import make_unique_name
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sdf.includes import IncludedEntity, SdfVersion, read_include, read_sdf_version
from roboyard.description.sdf.joint import read_joint, read_joint_link
from roboyard.description.sdf.model import (
    make_model_entry,
    make_name_unique,
    read_included_entity,
    read_model,
    read_nested_entry,
)
from roboyard.description.sdf.scope import PLACEHOLDER_COLOR, WORLD, ScopeEntry, SdfScope, is_placeholder
from roboyard.description.sensor_reader import read_plugin
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import (
    child_boolean,
    child_color,
    child_number,
    child_text,
    child_vector,
    error_at,
    quote,
    read_pose,
)
from roboyard.geometry import SE2, SE3
from roboyard.geometry.arrays import Vec3
from roboyard.geometry.constants import SDF_GRAVITY_VECTOR

_LIGHT_TYPES: dict[str, Literal["directional", "point", "spot"]] = {
    "directional": "directional",
    "point": "point",
    "spot": "spot",
}


_DEFAULT_LIGHT = Light("light")


def read_light(context: ReaderContext, node: XmlNode, T_world_light: SE3) -> Light:
    """Read a ``<light>``. Raises DescriptionError for an invalid color or direction."""
    context.warn_unknown_children(
        node,
        {"pose", "diffuse", "specular", "direction", "cast_shadows", "attenuation", "spot", "intensity", "light_on"},
        {"visualize"},
    )
    name = node.get("name").strip() or "light"
    kind = _LIGHT_TYPES.get(node.get("type", "point").strip())
    if kind is None:
        context.warn(node, f"light '{name}' has the unknown type {quote(node.get('type'))}: point is used")
        kind = "point"
    direction = child_vector(node, "direction", (0.0, 0.0, -1.0))
    attenuation_node, spot_node = node.child("attenuation"), node.child("spot")
    attenuation = _DEFAULT_LIGHT.attenuation
    if attenuation_node is not None:
        context.warn_unknown_children(attenuation_node, {"range", "constant", "linear", "quadratic"})
        terms = [
            _read_non_negative(context, attenuation_node, tag, value)
            for tag, value in (("constant", 1), ("linear", 1), ("quadratic", 0))
        ]
        attenuation = (terms[0], terms[1], terms[2]) if any(terms) else attenuation
    if spot_node is not None:
        context.warn_unknown_children(spot_node, {"outer_angle", "falloff"}, {"inner_angle"})
    intensity = _read_non_negative(context, node, "intensity", 1.0) if child_boolean(node, "light_on", True) else 0.0
    outer_angle = child_number(spot_node, "outer_angle", 2.0 * _DEFAULT_LIGHT.outer_angle)
    return Light(
        name=name,
        type=kind,
        T_world_light=T_world_light,
        direction=direction if any(direction) else (0.0, 0.0, -1.0),
        diffuse=_scale_color(child_color(node, "diffuse", _DEFAULT_LIGHT.diffuse), intensity),
        specular=_scale_color(child_color(node, "specular", _DEFAULT_LIGHT.specular), intensity),
        cast_shadows=child_boolean(node, "cast_shadows", False),
        attenuation=attenuation,
        range=_read_non_negative(context, attenuation_node, "range", 0.0) or _DEFAULT_LIGHT.range,
        outer_angle=min(max(outer_angle / 2.0, 0.01), math.pi / 2.0),
        falloff=_read_non_negative(context, spot_node, "falloff", _DEFAULT_LIGHT.falloff),
    )


def _read_non_negative(context: ReaderContext, node: XmlNode | None, tag: str, default: float) -> float:
    """Read a non-negative number of an appearance: Gazebo draws worlds with negative ones, so they are not rejected."""
    value = child_number(node, tag, default)
    if node is not None and value < 0.0:
        context.warn(node.child(tag) or node, f"<{tag}> of a light is {value:g}: 0 is used")
    return max(value, 0.0)


def _scale_color(color: Rgba, intensity: float) -> Rgba:
    red, green, blue, alpha = color
    return min(red * intensity, 1.0), min(green * intensity, 1.0), min(blue * intensity, 1.0), alpha


ACTOR_HEIGHT, ACTOR_RADIUS = 1.75, 0.25
HIP_HEIGHT = 1.0
"""Usual height of an actor's frame: skeletons have their root at the hip, a meter above the ground [m]."""
ACTOR_LINK = "figure"
_ACTOR_MATERIAL = Material("actor", PLACEHOLDER_COLOR)
_ACTOR_TAGS = {"pose", "script", "static", "plugin", "animation"}
_UNUSED_ACTOR_TAGS = {"skin", "link", "joint"}


@dataclass(frozen=True, slots=True)
class Actor:
    """Actor model, and its pose in the actor's frame or, if it has a trajectory, in the world."""

    model: Model
    initial_pose: SE3 | None


def read_actor(context: ReaderContext, node: XmlNode) -> Actor:
    """Read an ``<actor>``: a model marked by its color, with its script.

    Raises:
        DescriptionError: The name is missing, a waypoint or time is invalid, or times do not increase.
    """
    name = node.get("name").strip()
    if not name:
        raise error_at("an actor has no name", node, '<actor name="…">')
    context.warn_unknown_children(node, _ACTOR_TAGS, _UNUSED_ACTOR_TAGS)
    actor_script = _read_actor_script(context, node)
    initial_pose = next((T for one in actor_script.trajectories for _, T in one.waypoints), None)
    child_boolean(node, "static", False)
    context.warn(node, f"actor '{name}' is drawn as a person of this simulator: its skin has no effect")
    shape = Capsule(ACTOR_RADIUS, ACTOR_HEIGHT - 2.0 * ACTOR_RADIUS)
    T_link_geom = SE3.from_xyz_rpy((0.0, 0.0, ACTOR_HEIGHT / 2.0))
    link = Link(
        ACTOR_LINK,
        SE3.identity(),
        collisions=(Collision(ACTOR_LINK, shape, T_link_geom),),
        visuals=(Visual(ACTOR_LINK, shape, T_link_geom, _ACTOR_MATERIAL),),
    )
    plugins = tuple(read_plugin(one) for one in node.children_with_tag("plugin"))
    return Actor(
        Model(name, (link,), static=True, canonical_link=ACTOR_LINK, plugins=plugins, actor_script=actor_script),
        initial_pose,
    )


def _read_actor_script(context: ReaderContext, node: XmlNode) -> ActorScript:
    clips = []
    for one in node.children_with_tag("animation"):
        context.warn_unknown_children(one, {"filename", "scale", "interpolate_x"})
        uri = child_text(one, "filename")
        if uri:
            file = context.find_file(uri, one.child("filename") or one, "animation")
            clips.append(ActorClip(one.get("name").strip(), uri, file, child_boolean(one, "interpolate_x", False)))
    script = node.child("script")
    if script is None:
        return ActorScript(tuple(clips))
    context.warn_unknown_children(script, {"loop", "delay_start", "auto_start", "trajectory"})
    return ActorScript(
        tuple(clips),
        tuple(_read_trajectory(context, one) for one in script.children_with_tag("trajectory")),
        child_boolean(script, "loop", True),
        child_number(script, "delay_start", 0.0, minimum=0.0),
        child_boolean(script, "auto_start", True),
    )


def _read_trajectory(context: ReaderContext, node: XmlNode) -> ActorTrajectory:
    context.warn_unknown_children(node, {"waypoint"})
    waypoints: list[tuple[float, SE3]] = []
    for one in node.children_with_tag("waypoint"):
        context.warn_unknown_children(one, {"time", "pose"})
        time = child_number(one, "time", 0.0, minimum=0.0)
        if waypoints and time <= waypoints[-1][0]:
            raise error_at(f"a waypoint at {time:g} s follows one at {waypoints[-1][0]:g} s", one, "increasing times")
        waypoints.append((time, read_pose(one.child("pose"))))
    return ActorTrajectory(node.get("type").strip(), tuple(waypoints))


def feet_pose(T_world_actor: SE3) -> SE3:
    """Return the pose of the actor's feet: upright, and below the hip if the actor's frame is at its height."""
    x, y, z = (float(value) for value in T_world_actor.xyz)
    yaw = SE2.from_se3(T_world_actor).theta
    return SE3.from_xyz_rpy((x, y, z - HIP_HEIGHT if z >= 0.5 * HIP_HEIGHT else z), (0.0, 0.0, yaw))


_WORLD_TAGS = {
    "model", "include", "light", "physics", "gravity", "scene", "frame", "plugin", "name", "magnetic_field",
    "spherical_coordinates", "actor", "joint",
}  # fmt: skip
_UNUSED_WORLD_TAGS = {
    "gui", "atmosphere", "wind", "audio", "road", "state", "population", "model_group",
}  # fmt: skip


def read_world(context: ReaderContext, node: XmlNode, version: SdfVersion) -> World:
    """Read a ``<world>``.

    Raises:
        DescriptionError: A part of it is invalid.
    """
    name = node.get("name").strip()
    if not name:
        raise error_at("the world has no name", node, '<world name="…">')
    context.warn_unknown_children(node, _WORLD_TAGS, _UNUSED_WORLD_TAGS)
    n_errors_before = len(context.errors)
    scope = SdfScope(f"world '{name}'", WORLD, requires_unique_names=version >= (1, 7))
    light_elements: list[IncludedEntity] = []
    actor_elements: list[IncludedEntity] = []
    for child in node.children:
        child_entry = context.try_read(partial(_read_child, context, child, version), None)
        if isinstance(child_entry, IncludedEntity):
            (light_elements if child_entry.node.tag == "light" else actor_elements).append(child_entry)
        elif child_entry is not None:
            make_name_unique(context, scope, child_entry)
            if not context.try_read(partial(scope.declare, child_entry), True):
                context.warn(child, f"the {child_entry.kind} '{child_entry.name}' has the same name as another part")
    for key, entry in scope.entries("frame"):
        context.try_read(partial(scope.pose, key, entry.node, f"frame '{entry.name}'"), SE3.identity())
    placed = tuple(
        PlacedModel(
            entry.name, entry.model, context.try_read(partial(_resolve_model_pose, scope, key, entry), SE3.identity())
        )
        for key, entry in scope.entries("model")
        if entry.model is not None
    )
    model_names = {one.name for one in placed}
    no_actors: tuple[PlacedModel, ...] = ()
    placed += context.try_read(lambda: tuple(_place_actors(context, scope, actor_elements, model_names)), no_actors)
    joints = _read_joints_between_models(context, scope, placed, version)
    no_lights: tuple[Light, ...] = ()
    lights = context.try_read(partial(_read_lights, context, scope, light_elements), no_lights)
    physics = context.try_read(partial(_read_physics, context, node), PhysicsRequest())
    origin = context.try_read(
        partial(_read_geodetic_origin, context, node.child("spherical_coordinates")), GeodeticOrigin()
    )
    context.raise_collected_error(n_errors_before)
    scene = node.child("scene")
    if scene is not None:
        context.warn_unknown_children(
            scene, {"ambient", "background"}, {"grid", "shadows", "sky", "fog", "origin_visual"}
        )
    return World(
        name=name,
        models=placed,
        joints=joints,
        lights=lights,
        gravity=_read_gravity(node),
        physics=physics,
        ambient=child_color(scene, "ambient", _DEFAULT_WORLD.ambient),
        background=child_color(scene, "background", _DEFAULT_WORLD.background),
        magnetic_field=child_vector(node, "magnetic_field", _DEFAULT_WORLD.magnetic_field),
        origin=origin,
        plugins=tuple(read_plugin(one) for one in node.children_with_tag("plugin")),
    )


def _read_child(context: ReaderContext, child: XmlNode, version: SdfVersion) -> ScopeEntry | IncludedEntity | None:
    """Read the entry, light or actor that a child of the world defines; None for elements without an entry."""
    name, pose_node = child.get("name").strip(), child.child("pose")
    match child.tag:
        case "model":
            return read_nested_entry(context, child, version, WORLD)
        case "actor" | "light":
            return IncludedEntity(name, None, child, pose_node)
        case "joint":
            child_name = read_joint_link(child, "child")
            return ScopeEntry(name, "joint", child, pose_node, child_name, attached_to=child_name)
        case "include":
            if child.get("merge").strip() in ("true", "1"):
                context.warn(child, "merging a world into a world is not supported: it is included without merging")
            entity = read_included_entity(context, child)
            return entity if entity.model is None else make_model_entry(entity, WORLD)
        case "frame":
            attached_to = child.get("attached_to").strip()
            return ScopeEntry(name, "frame", child, pose_node, attached_to or WORLD, attached_to=attached_to)
    return None


def _resolve_model_pose(scope: SdfScope, key: str, entry: ScopeEntry) -> SE3:
    return scope.pose(key, entry.node, f"model '{entry.name}'")


def _read_geodetic_origin(context: ReaderContext, node: XmlNode | None) -> GeodeticOrigin:
    if node is None:
        return GeodeticOrigin()
    context.warn_unknown_children(
        node,
        {"surface_model", "world_frame_orientation", "latitude_deg", "longitude_deg", "elevation", "heading_deg"},
        {"surface_axis_equatorial", "surface_axis_polar"},
    )
    surface_model, orientation = (
        child_text(node, "surface_model", "EARTH_WGS84"),
        child_text(node, "world_frame_orientation", "ENU"),
    )
    if surface_model != "EARTH_WGS84" or orientation != "ENU":
        context.warn(
            node, f"surface {quote(surface_model)} with axes {quote(orientation)} is read as EARTH_WGS84 with ENU"
        )
    latitude, longitude = child_number(node, "latitude_deg", 0.0), child_number(node, "longitude_deg", 0.0)
    if abs(latitude) > 90.0 or abs(longitude) > 360.0:
        raise error_at(f"latitude {latitude:g}°, longitude {longitude:g}°", node, "-90 … 90° and -180 … 180°")
    heading = math.radians(child_number(node, "heading_deg", 0.0))
    return GeodeticOrigin(
        math.radians(latitude), math.radians(longitude), child_number(node, "elevation", 0.0), heading
    )


_DEFAULT_WORLD = World("defaults")


def _place_actors(
    context: ReaderContext, scope: SdfScope, actor_elements: list[IncludedEntity], model_names: set[str]
) -> Iterator[PlacedModel]:
    used_names = dict.fromkeys(model_names, 0)
    for element in actor_elements:
        actor = read_actor(context, element.node)
        T_world_actor = scope.resolve_pose(element.pose_node, WORLD, element.node, f"actor '{element.name}'")
        name = make_unique_name(element.name, used_names)
        yield PlacedModel(name, replace(actor.model, name=name), feet_pose(actor.initial_pose or T_world_actor))


def _read_joints_between_models(
    context: ReaderContext, scope: SdfScope, placed: tuple[PlacedModel, ...], version: SdfVersion
) -> tuple[Joint, ...]:
    """Read the joints between models, whose links are named ``model::link``."""
    placeholder_models = {one.name for one in placed if is_placeholder(one.model)}
    poses = {
        f"{one.name}::{link.name}": one.T_world_model @ link.T_model_link for one in placed for link in one.model.links
    }
    joints = []
    for key, entry in scope.entries("joint"):
        joint = context.try_read(partial(read_joint, context, entry.node, scope, key, poses, version), None)
        if joint is None:
            continue
        if any(
            read_joint_link(entry.node, role).partition("::")[0] in placeholder_models for role in ("parent", "child")
        ):
            context.warn(entry.node, f"joint '{entry.name}' refers to a missing model: ignored")
            continue
        if joint.parent == joint.child:
            problem = f"joint '{joint.name}' connects link '{joint.child}' to itself"
            context.repair_or_raise(entry.node, problem, "two different links", "the joint is removed")
            continue
        joints.append(joint)
    return tuple(joints)


def _read_gravity(node: XmlNode) -> Vec3:
    """Read gravity: in the world since SDF 1.6, in its physics before."""
    return child_vector(node, "gravity", child_vector(node.child("physics"), "gravity", SDF_GRAVITY_VECTOR))


def _read_physics(context: ReaderContext, node: XmlNode) -> PhysicsRequest:
    physics_nodes = node.children_with_tag("physics")
    selected_node = next(
        (one for one in physics_nodes if one.get("default") in ("true", "1")),
        physics_nodes[0] if physics_nodes else None,
    )
    for one in physics_nodes:
        if one is not selected_node:
            context.warn(one, "more than one <physics>: this one is ignored")
    if selected_node is None:
        return PhysicsRequest()
    context.warn_unknown_children(
        selected_node,
        {"max_step_size", "gravity"},
        {"ode", "bullet", "dart", "simbody", "max_contacts", "magnetic_field"} | _REAL_TIME_TAGS,
    )
    step = child_number(selected_node, "max_step_size", 0.0, minimum=0.0, exclusive=True)
    return PhysicsRequest(step or None)


_REAL_TIME_TAGS = {"real_time_factor", "real_time_update_rate"}


def _read_lights(context: ReaderContext, scope: SdfScope, light_elements: list[IncludedEntity]) -> tuple[Light, ...]:
    lights: list[Light] = []
    used_names: dict[str, int] = {}
    for element in light_elements:
        T_world_light = scope.resolve_pose(element.pose_node, WORLD, element.node, f"light '{element.name}'")
        light = read_light(context, element.node, T_world_light)
        name = make_unique_name(light.name, used_names)
        if name != light.name:
            context.warn(element.node, f"two lights are named '{light.name}': this one becomes '{name}'")
        lights.append(replace(light, name=name))
    return tuple(lights)


_DOCUMENT_TAGS = {"model", "world", "light", "actor", "include"}


def read_model_document(context: ReaderContext, root: XmlNode, name: str | None = None) -> Model:
    """Read the document's model.

    Args:
        context: Receives warnings, resolves files.
        root: The ``<sdf>``.
        name: Name that replaces the model's name.

    Raises:
        DescriptionError: The document has no model, or it is invalid.
    """
    version = read_sdf_version(context, root)
    context.warn_unknown_children(root, _DOCUMENT_TAGS)
    candidates = root.children_with_tag("model", "include")
    if not candidates:
        worlds = root.children_with_tag("world")
        if worlds:
            raise error_at("the file describes a world, not a model", worlds[0], "load it as a world")
        raise error_at("the document has no model", root, "<model>")
    for extra in candidates[1:]:
        context.warn(extra, f"a second <{extra.tag}> in the document is ignored")
    if candidates[0].tag == "model":
        model = read_model(context, candidates[0], version)
    else:
        entity = read_include(context, candidates[0], read_model)
        if entity.model is None:
            raise error_at(f"the document includes a {entity.node.tag}, not a model", candidates[0], "a model")
        model = entity.model
    return replace(model, name=name) if name else model


def read_world_document(context: ReaderContext, root: XmlNode) -> World:
    """Read the document's world. Raises DescriptionError if it has none, or it is invalid."""
    version = read_sdf_version(context, root)
    context.warn_unknown_children(root, _DOCUMENT_TAGS)
    worlds = root.children_with_tag("world")
    if not worlds:
        model = root.child("model")
        raise error_at(
            "the file describes a model, not a world" if model else "the document has no world", root, "<world>"
        )
    for extra in worlds[1:]:
        context.warn(extra, "a second <world> in the document is ignored")
    return read_world(context, worlds[0], version)
