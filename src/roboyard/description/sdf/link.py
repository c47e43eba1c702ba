"""Reads `<link>` of SDF: inertial, geometry, surface, material, sensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from roboyard.description import validation
from roboyard.description.gazebo_materials import gazebo_material
from roboyard.description.inertia import (
    check_inertia_plausibility,
    check_inertial,
    collisions_inertia,
    is_finite,
    replace_missing_collision_meshes,
)
from roboyard.description.model import (
    MOMENT_NAMES,
    Box,
    Capsule,
    Collision,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Heightmap,
    Inertial,
    Link,
    Material,
    Mesh,
    Plane,
    Plugin,
    Polyline,
    Sphere,
    Surface,
    Visual,
)
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensor_reader import read_plugin, read_sensor
from roboyard.description.sensors import Sensor
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import (
    child_boolean,
    child_color,
    child_number,
    child_text,
    child_vector,
    error_at,
    parse_integer,
    parse_number,
    parse_numbers,
    parse_positive,
    parse_positives,
    parse_unit_vector,
    quote,
    read_expressed_in,
    read_pose,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3

_UNUSED_PBR_TAGS = {
    "roughness_map", "metalness_map", "environment_map", "ambient_occlusion_map", "normal_map", "emissive_map",
    "light_map", "specular_map", "glossiness_map", "glossiness",
}  # fmt: skip
_UNUSED_CONTACT_TAGS = {
    "collide_without_contact", "collide_without_contact_bitmask", "category_bitmask", "poissons_ratio",
    "elastic_modulus", "bullet",
}  # fmt: skip
_UNUSED_SURFACE_TAGS = {"soft_contact", "bullet"}


def read_geometry(context: ReaderContext, node: XmlNode, label: str) -> Geometry | None:
    """Read the shape in ``<geometry>``; None, with a warning, if it has no known shape.

    Raises:
        DescriptionError: A size is missing, not a number or not positive.
    """
    geometry_node = node.child("geometry")
    if geometry_node is None or not geometry_node.children:
        context.warn(geometry_node or node, f"{label} has no shape: ignored")
        return None
    shape = geometry_node.children[0]
    label = f"{shape.tag} of {label}"
    match shape.tag:
        case "box":
            return Box(_read_three_sizes(context, shape, "size", label))
        case "sphere":
            return Sphere(_read_positive_size(context, shape, "radius", label, "1"))
        case "cylinder":
            return Cylinder(*_read_radius_and_length(context, shape, label, "1"))
        case "capsule":
            return Capsule(*_read_radius_and_length(context, shape, label, "0.5"))
        case "cone":
            return Cone(*_read_radius_and_length(context, shape, label, "0.5"))
        case "ellipsoid":
            return Ellipsoid(_read_three_sizes(context, shape, "radii", label))
        case "plane":
            return _read_plane(shape, label)
        case "mesh":
            return _read_mesh(context, shape, label)
        case "heightmap":
            context.warn_unknown_children(
                shape, {"uri", "size", "pos"}, {"texture", "blend", "use_terrain_paging", "sampling"}
            )
            uri = child_text(shape, "uri")
            return Heightmap(
                uri,
                context.find_file(uri, shape, "heightmap"),
                _read_three_sizes(context, shape, "size", label),
                child_vector(shape, "pos", (0.0, 0.0, 0.0)),
            )
        case "polyline":
            return _read_polyline(context, geometry_node, label)
        case "empty":
            return None
    context.warn(shape, f"{label}: unknown shape <{shape.tag[:40]}>: ignored")
    return None


def _read_size_text(context: ReaderContext, node: XmlNode, tag: str, label: str, default: str) -> str:
    """Return the text of a size; SDF's default, with a warning, if it is missing."""
    text = child_text(node, tag)
    if not text:
        context.warn(node, f"{label} has no {tag}: {default} m is used")
    return text or default


def _read_positive_size(context: ReaderContext, node: XmlNode, tag: str, label: str, default: str) -> float:
    return parse_positive(
        _read_size_text(context, node, tag, label, default), node.child(tag) or node, f"{tag} of {label}"
    )


def _read_radius_and_length(context: ReaderContext, node: XmlNode, label: str, radius: str) -> tuple[float, float]:
    return _read_positive_size(context, node, "radius", label, radius), _read_positive_size(
        context, node, "length", label, "1"
    )


def _read_three_sizes(context: ReaderContext, node: XmlNode, tag: str, label: str) -> Vec3:
    text = _read_size_text(context, node, tag, label, "1 1 1")
    x, y, z = parse_positives(text, 3, node.child(tag) or node, f"{tag} of {label}")
    return x, y, z


def _read_plane(node: XmlNode, label: str) -> Plane:
    normal_node = node.child("normal")
    normal = (0.0, 0.0, 1.0)
    if normal_node is not None and normal_node.text.strip():
        normal = parse_unit_vector(normal_node.text, normal_node, f"normal of {label}")
    size_node = node.child("size")
    if size_node is None or not size_node.text.strip():
        return Plane(normal)
    x, y = parse_numbers(size_node.text, 2, size_node, f"size of {label}")
    return Plane(normal, (abs(x), abs(y)))


def _read_mesh(context: ReaderContext, node: XmlNode, label: str) -> Mesh:
    context.warn_unknown_children(node, {"uri", "scale", "submesh", "convex_decomposition"})
    uri = child_text(node, "uri")
    if not uri:
        raise error_at(f"{label} has no <uri>", node, "<uri>model://…</uri>")
    scale = _read_mesh_scale(context, node, label)
    if 0.0 in scale:
        raise error_at(f"scale of {label} is {quote(child_text(node, 'scale'))}", node, "no zeros")
    submesh_node = node.child("submesh")
    return Mesh(
        uri=uri,
        file=context.find_file(uri, node.child("uri") or node, "mesh"),
        scale=scale,
        submesh=child_text(submesh_node, "name") or None,
        center_submesh=child_boolean(submesh_node, "center", False),
        convex=node.get("optimization") in ("convex_hull", "convex_decomposition"),
    )


def _read_mesh_scale(context: ReaderContext, node: XmlNode, label: str) -> Vec3:
    scale_node = node.child("scale")
    if scale_node is None or len(scale_node.text.split()) != 1:
        return child_vector(node, "scale", (1.0, 1.0, 1.0))
    value = parse_number(scale_node.text, scale_node, f"scale of {label}")
    context.repair_or_raise(
        scale_node, f"scale of {label} is {quote(scale_node.text)}", "3 numbers", "used along all axes"
    )
    return value, value, value


def _read_polyline(context: ReaderContext, node: XmlNode, label: str) -> Polyline:
    outlines = []
    for one in node.children_with_tag("polyline"):
        points = [parse_numbers(point.text, 2, point, f"point of {label}") for point in one.children_with_tag("point")]
        if len(points) < 3:
            raise error_at(f"{label} has {len(points)} points", one, "at least 3")
        outlines.append(tuple((x, y) for x, y in points))
    first = node.children_with_tag("polyline")[0]
    return Polyline(tuple(outlines), _read_positive_size(context, first, "height", label, "1"))


def read_surface(context: ReaderContext, node: XmlNode | None) -> Surface:
    """Read the contact properties of a ``<surface>``; None gives the defaults. Raises DescriptionError."""
    if node is None:
        return Surface()
    context.warn_unknown_children(node, {"friction", "contact", "bounce"}, _UNUSED_SURFACE_TAGS)
    friction = node.child("friction")
    ode = friction.child("ode") if friction else None
    bullet = friction.child("bullet") if friction else None
    torsional = friction.child("torsional") if friction else None
    contact = node.child("contact")
    contact_ode = contact.child("ode") if contact else None
    mu = child_number(ode, "mu", child_number(bullet, "friction", 1.0))
    mu2 = child_number(ode, "mu2", child_number(bullet, "friction2", mu))
    direction_node = ode.child("fdir1") if ode else None
    friction_direction = child_vector(ode, "fdir1", (0.0, 0.0, 0.0))
    bitmask_node = contact.child("collide_bitmask") if contact else None
    for part, (known_tags, unused_tags) in (
        (friction, ({"ode", "bullet", "torsional"}, set())),
        (ode, ({"mu", "mu2", "fdir1", "slip1", "slip2"}, set())),
        (bullet, ({"friction", "friction2", "rolling_friction"}, {"fdir1"})),
        (torsional, ({"coefficient"}, {"use_patch_radius", "patch_radius", "surface_radius", "ode"})),
        (contact, ({"ode", "collide_bitmask"}, _UNUSED_CONTACT_TAGS)),
        (contact_ode, ({"kp", "kd"}, {"soft_cfm", "soft_erp", "max_vel", "min_depth"})),
        (node.child("bounce"), ({"restitution_coefficient"}, {"threshold"})),
    ):
        if part is not None:
            context.warn_unknown_children(part, known_tags, unused_tags)
    if bitmask_node is not None and _read_collide_bitmask(bitmask_node) & 0xFFFF not in (0, 0xFFFF):
        context.warn(
            bitmask_node, "groups of <collide_bitmask> have no effect here: only 0, which disables contacts, has"
        )
    return Surface(
        friction=mu if mu >= 0.0 else 1.0,
        friction2=mu2 if mu2 >= 0.0 and mu2 != mu else None,
        friction_direction=parse_unit_vector(direction_node.text, direction_node, "<fdir1>")
        if direction_node and any(friction_direction)
        else None,
        friction_direction_frame=read_expressed_in(direction_node),
        torsional=_read_optional_number(torsional, "coefficient"),
        rolling=_read_optional_number(bullet, "rolling_friction"),
        slip=(child_number(ode, "slip1", 0.0, minimum=0.0), child_number(ode, "slip2", 0.0, minimum=0.0)),
        stiffness=_read_optional_number(contact_ode, "kp"),
        damping=_read_optional_number(contact_ode, "kd"),
        restitution=child_number(node.child("bounce"), "restitution_coefficient", 0.0, minimum=0.0),
        collide=not (bitmask_node is not None and _read_collide_bitmask(bitmask_node) == 0),
    )


def _read_optional_number(node: XmlNode | None, tag: str) -> float | None:
    value = child_number(node, tag, -1.0)
    return value if value >= 0.0 else None


def _read_collide_bitmask(node: XmlNode) -> int:
    text = node.text.strip().lower()
    if text.startswith("0x"):
        digits = text[2:]
        if digits and len(digits) <= 8 and all(one in "0123456789abcdef" for one in digits):
            return int(digits, 16)
        raise error_at(f"<collide_bitmask> is {quote(text)}", node, "a number or 0x…")
    return parse_integer(text or "65535", node, "<collide_bitmask>")


def read_material(context: ReaderContext, node: XmlNode | None, transparency: float) -> Material:
    """Read the material of a visual. Raises DescriptionError.

    Args:
        context: Receives warnings, resolves textures.
        node: The ``<material>``; None gives the default gray.
        transparency: Transparency of the visual: 0 opaque … 1 invisible.
    """
    default = Material()
    alpha = 1.0 - min(max(transparency, 0.0), 1.0)
    if node is None:
        r, g, b, a = default.rgba
        return Material(rgba=(r, g, b, a * alpha), is_explicit=False)
    context.warn_unknown_children(
        node,
        {"ambient", "diffuse", "emissive", "script", "pbr"},
        {"shader", "render_order", "double_sided", "shininess", "specular", "lighting"},
    )
    for workflow in (one for pbr in node.children_with_tag("pbr") for one in pbr.children):
        context.warn_unknown_children(workflow, {"albedo_map", "metalness", "roughness"}, _UNUSED_PBR_TAGS)
    name = child_text(node.child("script"), "name")
    named_material = gazebo_material(name) if name else None
    texture = _find_texture(context, node)
    default_rgba = (1.0, 1.0, 1.0, 1.0) if texture else default.rgba
    rgba = child_color(
        node, "diffuse", named_material.rgba if named_material else child_color(node, "ambient", default_rgba)
    )
    if name and named_material is None and node.child("diffuse") is None:
        context.warn(node, f"material script {quote(name)} is not supported: a plain color is used")
    default_emissive = named_material.emissive if named_material else default.emissive
    emissive = child_color(node, "emissive", (*default_emissive, 1.0))[:3]
    return Material(name, (rgba[0], rgba[1], rgba[2], rgba[3] * alpha), texture, emissive, _is_polished(node))


def _is_polished(node: XmlNode) -> bool:
    """Return whether a material is PBR metal without roughness."""
    workflows = [workflow for pbr in node.children_with_tag("pbr") for workflow in pbr.children]
    return any(
        child_number(workflow, "metalness", 0.5) >= 0.9 and child_number(workflow, "roughness", 0.5) <= 0.1
        for workflow in workflows
    )


def _find_texture(context: ReaderContext, node: XmlNode) -> Path | None:
    for pbr in node.children_with_tag("pbr"):
        for workflow in pbr.children:
            uri = child_text(workflow, "albedo_map")
            if uri:
                return context.find_file(uri, workflow.child("albedo_map") or workflow, "texture")
    return None


_LINK_TAGS = {"pose", "inertial", "collision", "visual", "sensor", "gravity", "self_collide", "plugin"}
_UNUSED_LINK_TAGS = {
    "velocity_decay", "kinematic", "must_be_base_link", "enable_wind", "light", "projector", "audio_source",
    "audio_sink", "battery", "particle_emitter",
}  # fmt: skip
_DEFAULT_INERTIA = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)  # libsdformat's inertia without an <inertial> [kg m²]
_DEFAULT_DENSITY = 1000.0  # SDF's default density [kg/m³]

PoseResolver = Callable[[XmlNode, str], SE3]
"""Function that returns the pose in the link of an element with a ``<pose>``, whose ``relative_to`` may name any part
of the model.
"""


@dataclass(frozen=True, slots=True)
class LinkElements:
    """Link with its sensors and plugins."""

    link: Link
    sensors: tuple[Sensor, ...]
    plugins: tuple[Plugin, ...]


def read_link(
    context: ReaderContext, node: XmlNode, T_model_link: SE3, resolve_pose: PoseResolver, *, static: bool
) -> LinkElements:
    """Read a ``<link>``.

    Args:
        context: Receives warnings, resolves files.
        node: The ``<link>``.
        T_model_link: Pose of the link.
        resolve_pose: Resolves the poses of its parts.
        static: Whether the model never moves, so that an invalid inertia is a warning instead of an error.

    Raises:
        DescriptionError: A shape, mass, inertia or number is wrong, or a name occurs twice.
    """
    name = node.get("name").strip()
    context.warn_unknown_children(node, _LINK_TAGS, _UNUSED_LINK_TAGS)
    for decay in node.children_with_tag("velocity_decay"):  # no effect, but the value must be a number
        child_number(decay, "linear", 0.0)
        child_number(decay, "angular", 0.0)
    owner = f"link '{name}'"
    validation.require_unique_names(
        "collision", ((one.get("name").strip(), one) for one in node.children_with_tag("collision")), owner
    )
    validation.require_unique_names(
        "visual", ((one.get("name").strip(), one) for one in node.children_with_tag("visual")), owner
    )
    validation.require_unique_names(
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
        context.warn(node.child("inertial") or node, f"{error.message}; ignored, because the model is static")
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
    """Read a collision and its density."""
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
        child_number(inertia, key, default) for key, default in zip(MOMENT_NAMES, _DEFAULT_INERTIA, strict=True)
    )
    moments = (ixx, iyy, izz, ixy, ixz, iyz)
    shapes = [collision for collision, _ in collisions]
    return check_inertial(context, inertial_node, link, mass, read_pose(inertial_node.child("pose")), moments, shapes)


def _compute_inertial(
    context: ReaderContext, node: XmlNode, link: str, collisions: list[tuple[Collision, float]]
) -> Inertial | None:
    """Compute the inertia from the shapes; a given mass scales it, as in SDF 1.11."""
    common_density = child_number(node, "density", _DEFAULT_DENSITY, minimum=0.0, exclusive=True)
    properties = collisions_inertia([(collision, density or common_density) for collision, density in collisions])
    if properties is None:
        context.warn(node, f"link '{link}': no inertia can be computed from its collisions; 1 kg, 1 kg m² are used")
        return Inertial(1.0, SE3.identity(), _DEFAULT_INERTIA)
    if not is_finite(properties):
        raise error_at(
            f"link '{link}': mass or inertia of its collision shapes is too large for floating-point numbers",
            node,
            "smaller shapes or densities, closer to the link's frame",
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
    return check_inertial(context, node, link, mass * scale, T_link_com, (ixx, iyy, izz, ixy, ixz, iyz))
