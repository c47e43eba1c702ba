"""``<link>``: inertial, shapes, sensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from roboyard.description import checks
from roboyard.description.fields import child_boolean, child_number, read_pose
from roboyard.description.inertia import collisions_inertia, is_finite
from roboyard.description.model import Collision, Inertial, Link, Plugin, Visual
from roboyard.description.plausibility import check_inertia_plausibility
from roboyard.description.reading import ReaderContext
from roboyard.description.remedies import replace_missing_collision_meshes
from roboyard.description.sdf.shapes import read_geometry, read_material, read_surface
from roboyard.description.sensing import read_plugin, read_sensor
from roboyard.description.sensors import Sensor
from roboyard.description.values import error_at
from roboyard.description.xml import XmlNode
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

_LINK_TAGS = {"pose", "inertial", "collision", "visual", "sensor", "gravity", "self_collide", "plugin"}
_UNUSED_LINK_TAGS = {
    "velocity_decay", "kinematic", "must_be_base_link", "enable_wind", "light", "projector", "audio_source",
    "audio_sink", "battery", "particle_emitter",
}  # fmt: skip
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
_DEFAULT_INERTIA = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)  # libsdformat's inertia where the file gives none [kg m²]
_DEFAULT_DENSITY = 1000.0  # SDF's default density [kg/m³]

PoseResolver = Callable[[XmlNode, str], SE3]
"""Pose in the link of an element with a ``<pose>``, whose ``relative_to`` may name anything in the model."""


@dataclass(frozen=True, slots=True)
class LinkElements:
    """A link with what sits on it."""

    link: Link
    sensors: tuple[Sensor, ...]
    plugins: tuple[Plugin, ...]


def read_link(
    context: ReaderContext, node: XmlNode, T_model_link: SE3, resolve_pose: PoseResolver, *, static: bool
) -> LinkElements:
    """The link at ``node``.

    Args:
        context: Takes findings, resolves files.
        node: The ``<link>``.
        T_model_link: Its pose.
        resolve_pose: Resolves the poses of its parts.
        static: Whether the model never moves, so that a wrong inertia is noted instead of refused.

    Raises:
        DescriptionError: a shape, mass, inertia or number is wrong, or a name occurs twice.
    """
    name = node.get("name").strip()
    context.warn_unknown_children(node, _LINK_TAGS, _UNUSED_LINK_TAGS)
    for decay in node.children_with_tag("velocity_decay"):  # without effect, but a number it must be
        child_number(decay, "linear", 0.0)
        child_number(decay, "angular", 0.0)
    owner = f"link '{name}'"
    checks.require_unique_names(
        "collision", ((one.get("name").strip(), one) for one in node.children_with_tag("collision")), owner
    )
    checks.require_unique_names(
        "visual", ((one.get("name").strip(), one) for one in node.children_with_tag("visual")), owner
    )
    checks.require_unique_names(
        "sensor", ((one.get("name").strip(), one) for one in node.children_with_tag("sensor")), owner
    )
    maybe_collisions = [
        context.try_read(partial(_read_collision, context, one, name, resolve_pose), None)
        for one in node.children_with_tag("collision")
    ]
    collisions = [
        collision_with_density for collision_with_density in maybe_collisions if collision_with_density is not None
    ]
    maybe_visuals = [
        context.try_read(partial(_read_visual, context, one, name, resolve_pose), None)
        for one in node.children_with_tag("visual")
    ]
    visuals = [visual for visual in maybe_visuals if visual is not None]
    try:
        with context.without_repair(static):
            inertial = _read_inertial(context, node, name, collisions)
    except DescriptionError as error:
        if not static:
            raise
        context.warn(node.child("inertial") or node, f"{error.message}; of no matter, the model is static")
        inertial = None
    link = Link(
        name=name,
        T_model_link=T_model_link,
        inertial=inertial,
        collisions=tuple(collision for collision, _ in collisions),
        visuals=tuple(visuals),
        gravity=child_boolean(node, "gravity", True),
        self_collide=child_boolean(node, "self_collide", False),
    )
    if not static:
        inertial_node = node.child("inertial")
        link = check_inertia_plausibility(context, inertial_node, link) if inertial_node is not None else link
        link = replace_missing_collision_meshes(context, node, link)
    sensors = tuple(
        read_sensor(context, one, name, resolve_pose(one, f"sensor of {owner}"))
        for one in node.children_with_tag("sensor")
    )
    sensor_plugins = (
        plugin for sensor in node.children_with_tag("sensor") for plugin in sensor.children_with_tag("plugin")
    )
    plugins = tuple(read_plugin(one, name) for one in (*node.children_with_tag("plugin"), *sensor_plugins))
    return LinkElements(link, sensors, plugins)


def _read_collision(
    context: ReaderContext, node: XmlNode, link: str, resolve_pose: PoseResolver
) -> tuple[Collision, float] | None:
    """The collision and its density."""
    context.warn_unknown_children(
        node,
        {"pose", "geometry", "surface", "density"},
        {"max_contacts", "laser_retro", "auto_inertia_params", "material"},
    )
    name = node.get("name").strip()
    shape = read_geometry(context, node, f"collision '{name}' of link '{link}'")
    if shape is None:
        return None
    T_link_geom = resolve_pose(node, f"collision '{name}' of link '{link}'")
    surface = read_surface(context, node.child("surface"))
    return Collision(name, shape, T_link_geom, surface), child_number(node, "density", 0.0, minimum=0.0)


def _read_visual(context: ReaderContext, node: XmlNode, link: str, resolve_pose: PoseResolver) -> Visual | None:
    context.warn_unknown_children(
        node,
        {"pose", "geometry", "material", "transparency", "cast_shadows"},
        {"meta", "laser_retro", "visibility_flags", "plugin"},
    )
    name = node.get("name").strip()
    shape = read_geometry(context, node, f"visual '{name}' of link '{link}'")
    if shape is None:
        return None
    material = read_material(context, node.child("material"), child_number(node, "transparency", 0.0))
    T_link_geom = resolve_pose(node, f"visual '{name}' of link '{link}'")
    return Visual(name, shape, T_link_geom, material, child_boolean(node, "cast_shadows", True))


def _read_inertial(
    context: ReaderContext, node: XmlNode, link: str, collisions: list[tuple[Collision, float]]
) -> Inertial | None:
    inertial_node = node.child("inertial")
    if inertial_node is None:
        return Inertial(1.0, SE3.identity(), _DEFAULT_INERTIA)
    context.warn_unknown_children(
        inertial_node, {"mass", "inertia", "pose", "density"}, {"auto_inertia_params", "fluid_added_mass", "frame"}
    )
    if inertial_node.get("auto") in ("true", "1"):
        return _compute_inertial(context, inertial_node, link, collisions)
    mass = child_number(inertial_node, "mass", 1.0)
    inertia = inertial_node.child("inertia")
    ixx, iyy, izz, ixy, ixz, iyz = (
        child_number(inertia, key, default) for key, default in zip(_MOMENTS, _DEFAULT_INERTIA, strict=True)
    )
    moments = (ixx, iyy, izz, ixy, ixz, iyz)
    shapes = [collision for collision, _ in collisions]
    return checks.check_inertial(
        context, inertial_node, link, mass, read_pose(inertial_node.child("pose")), moments, shapes
    )


def _compute_inertial(
    context: ReaderContext, node: XmlNode, link: str, collisions: list[tuple[Collision, float]]
) -> Inertial | None:
    """Inertia from the shapes; a given mass scales it, as in SDF 1.11."""
    common_density = child_number(node, "density", _DEFAULT_DENSITY, minimum=0.0, exclusive=True)
    properties = collisions_inertia([(collision, density or common_density) for collision, density in collisions])
    if properties is None:
        context.warn(node, f"link '{link}': no inertia can be computed from its collisions; 1 kg, 1 kg m² taken")
        return Inertial(1.0, SE3.identity(), _DEFAULT_INERTIA)
    if not is_finite(properties):
        raise error_at(
            f"link '{link}': mass or inertia of its collision shapes is too large for floating-point numbers",
            node,
            "smaller shapes or densities, nearer to the link's frame",
        )
    mass, com, inertia = properties
    total = child_number(node, "mass", mass, minimum=0.0, exclusive=True)
    scale = total / mass
    if not math.isfinite(scale):
        raise error_at(
            f"link '{link}': its collision shapes are too small for a mass of {total:g} kg", node, "larger shapes"
        )
    inertia = inertia * scale
    moments = (inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2])
    ixx, iyy, izz, ixy, ixz, iyz = (float(value) for value in moments)
    T_link_com = SE3((1.0, 0.0, 0.0, 0.0), com)
    return checks.check_inertial(context, node, link, mass * scale, T_link_com, (ixx, iyy, izz, ixy, ixz, iyz))
