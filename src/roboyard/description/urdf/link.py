"""``<link>``: inertial, collision and visual shapes, materials."""

from __future__ import annotations

from roboyard.description.gazebo_materials import gazebo_material
from roboyard.description.inertia import check_inertia_plausibility, check_inertial, estimate_inertia
from roboyard.description.model import (
    MOMENT_NAMES,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Geometry,
    Inertial,
    Link,
    Material,
    Mesh,
    Sphere,
    Visual,
)
from roboyard.description.names import make_unique_name
from roboyard.description.reader_context import ReaderContext
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import (
    error_at,
    parse_color,
    parse_number,
    parse_position,
    parse_positive,
    parse_positives,
    parse_vector,
    quote,
)
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3

_LINK_TAGS = {"inertial", "visual", "collision"}
_SHAPE_TAGS = ("box", "cylinder", "sphere", "capsule", "mesh")


def read_origin(node: XmlNode, label: str) -> SE3:
    """Read the ``<origin xyz rpy>`` child; identity if it is missing. Raises DescriptionError."""
    child = node.child("origin")
    if child is None:
        return SE3.identity()
    xyz = parse_position(child.get("xyz") or "0 0 0", child, f"{label}: xyz")
    rpy = parse_vector(child.get("rpy") or "0 0 0", child, f"{label}: rpy")
    return SE3.from_xyz_rpy(xyz, rpy)


def read_materials(context: ReaderContext, root: XmlNode) -> dict[str, Material]:
    """Read the materials defined at the top level and inside visuals, by name. Raises DescriptionError."""
    defined: dict[str, Material] = {}
    visual_materials = (
        one
        for link in root.children_with_tag("link")
        for visual in link.children_with_tag("visual")
        for one in visual.children_with_tag("material")
    )
    for node in (*root.children_with_tag("material"), *visual_materials):
        if node.children and node.get("name") not in defined:
            defined[node.get("name")] = _read_material(context, node)
    return defined


def _read_material(context: ReaderContext, node: XmlNode) -> Material:
    name = node.get("name")
    context.warn_unknown_children(node, {"color", "texture"})
    color_node, texture_node = node.child("color"), node.child("texture")
    rgba = (
        parse_color(color_node.get("rgba"), color_node, f"color of material '{name}'")
        if color_node
        else Material().rgba
    )
    texture = context.find_file(texture_node.get("filename"), texture_node, "texture") if texture_node else None
    return Material(name, rgba, texture)


def read_link(context: ReaderContext, node: XmlNode, materials: dict[str, Material]) -> Link:
    """Read a ``<link>``; its pose is set later.

    Raises:
        DescriptionError: A mass, inertia, shape or number is wrong; the message names the link.
    """
    name = node.get("name")
    context.warn_unknown_children(node, _LINK_TAGS)
    collisions, visuals = [], []
    names: dict[str, int] = {}
    for index, child in enumerate(node.children_with_tag("collision")):
        context.warn_unknown_children(child, {"origin", "geometry"})
        unique_name = make_unique_name(child.get("name") or f"{name}_collision{f'_{index}' if index else ''}", names)
        collisions.append(
            Collision(unique_name, _read_geometry(context, child, name), read_origin(child, f"link '{name}'"))
        )
    for index, child in enumerate(node.children_with_tag("visual")):
        context.warn_unknown_children(child, {"origin", "geometry", "material"})
        unique_name = make_unique_name(child.get("name") or f"{name}_visual{f'_{index}' if index else ''}", names)
        shape = _read_geometry(context, child, name)
        visuals.append(
            Visual(
                unique_name,
                shape,
                read_origin(child, f"link '{name}'"),
                _read_visual_material(context, child.child("material"), materials),
            )
        )
    inertial = _read_inertial(context, node, name, collisions)
    link = Link(name, SE3.identity(), inertial, tuple(collisions), tuple(visuals))
    inertial_node = node.child("inertial")
    return check_inertia_plausibility(context, inertial_node, link) if inertial_node is not None else link


def _read_visual_material(context: ReaderContext, node: XmlNode | None, materials: dict[str, Material]) -> Material:
    if node is None:
        return Material(is_explicit=False)
    if node.children:
        return _read_material(context, node)
    name = node.get("name")
    if name in materials:
        return materials[name]
    builtin_material = gazebo_material(name)
    if builtin_material is None:
        context.warn(node, f"material {quote(name)} is not defined: gray is used")
        return Material(name)
    return builtin_material


def _read_inertial(context: ReaderContext, node: XmlNode, link: str, collisions: list[Collision]) -> Inertial | None:
    inertial_node = node.child("inertial")
    if inertial_node is None:
        return None
    context.warn_unknown_children(inertial_node, {"origin", "mass", "inertia"})
    mass_node, inertia_node = inertial_node.child("mass"), inertial_node.child("inertia")
    problem_start = f"link '{link}' has an <inertial> without"
    if mass_node is None:
        context.repair_or_raise(
            inertial_node,
            f"{problem_start} <mass>",
            "<mass …/>, or no <inertial>",
            "treated as a massless frame",
        )
        return None
    mass = parse_number(mass_node.get("value"), mass_node, f"mass of link '{link}'")
    if mass == 0.0:
        return None  # a massless frame, if it is fixed to a link with mass: see `massless_links`
    T_link_com = read_origin(inertial_node, f"link '{link}'")
    if inertia_node is None:
        moments, moments_source = estimate_inertia(abs(mass), T_link_com, collisions)
        context.repair_or_raise(
            inertial_node,
            f"{problem_start} <inertia>",
            "<inertia …/>, or no <inertial>",
            f"the inertia {moments_source} is used",
        )
    else:
        ixx, iyy, izz, ixy, ixz, iyz = (
            parse_number(inertia_node.get(key, "0"), inertia_node, f"{key} of link '{link}'") for key in MOMENT_NAMES
        )
        moments = ixx, iyy, izz, ixy, ixz, iyz
    return check_inertial(context, inertial_node, link, mass, T_link_com, moments, collisions)


def _read_geometry(context: ReaderContext, node: XmlNode, link: str) -> Geometry:
    geometry_node = node.child("geometry")
    shape = (
        next((child for child in geometry_node.children if child.tag in _SHAPE_TAGS), None) if geometry_node else None
    )
    if geometry_node is None or shape is None:
        found_tag = (
            f" (found <{geometry_node.children[0].tag[:40]}>)" if geometry_node and geometry_node.children else ""
        )
        raise error_at(
            f"link '{link}' has a <{node.tag}> without a shape{found_tag}",
            geometry_node or node,
            ", ".join(_SHAPE_TAGS),
        )
    context.warn_unknown_children(geometry_node, _SHAPE_TAGS)
    label = f"{shape.tag} of link '{link}'"
    if shape.tag == "box":
        x, y, z = parse_positives(shape.get("size"), 3, shape, f"size of {label}")
        return Box((x, y, z))
    if shape.tag == "mesh":
        return _read_mesh(context, shape, label)
    radius = parse_positive(shape.get("radius"), shape, f"radius of {label}")
    if shape.tag == "sphere":
        return Sphere(radius)
    length = parse_positive(shape.get("length"), shape, f"length of {label}")
    return Cylinder(radius, length) if shape.tag == "cylinder" else Capsule(radius, length)


def _read_mesh(context: ReaderContext, node: XmlNode, label: str) -> Mesh:
    uri = node.get("filename")
    if not uri.strip():
        raise error_at(f"{label} has no filename", node, 'filename="package://…"')
    scale: Vec3 = parse_vector(node.get("scale") or "1 1 1", node, f"scale of {label}")
    if 0.0 in scale:
        raise error_at(f"scale of {label} is {quote(node.get('scale'))}", node, "no zeros")
    return Mesh(uri, context.find_file(uri, node, "mesh"), scale)
