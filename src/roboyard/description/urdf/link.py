"""``<link>``: inertial, collision and visual shapes, materials."""

from __future__ import annotations

from roboyard.description import checks
from roboyard.description.colours import gazebo_material
from roboyard.description.model import (
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
    Vec3,
    Visual,
)
from roboyard.description.naming import free_name
from roboyard.description.plausibility import sensible
from roboyard.description.reading import Reading
from roboyard.description.remedies import plausible
from roboyard.description.values import colour, fault, number, position, positive, positives, shown, vector
from roboyard.description.xml import Node
from roboyard.geometry import SE3

_LINK = {"inertial", "visual", "collision"}
_SHAPES = ("box", "cylinder", "sphere", "capsule", "mesh")
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def origin(node: Node, label: str) -> SE3:
    """The ``<origin xyz rpy>`` child; identity where it is missing. Raises DescriptionError."""
    child = node.child("origin")
    if child is None:
        return SE3.identity()
    xyz = position(child.get("xyz") or "0 0 0", child, f"{label}: xyz")
    rpy = vector(child.get("rpy") or "0 0 0", child, f"{label}: rpy")
    return SE3.from_xyz_rpy(xyz, rpy)


def read_materials(reading: Reading, root: Node) -> dict[str, Material]:
    """The materials defined at the robot's top and inside its visuals, by name. Raises DescriptionError."""
    defined: dict[str, Material] = {}
    inside = (one for link in root.all("link") for visual in link.all("visual") for one in visual.all("material"))
    for node in (*root.all("material"), *inside):
        if node.children and node.get("name") not in defined:
            defined[node.get("name")] = _material(reading, node)
    return defined


def _material(reading: Reading, node: Node) -> Material:
    name = node.get("name")
    reading.unknown(node, {"color", "texture"})
    paint, picture = node.child("color"), node.child("texture")
    rgba = colour(paint.get("rgba"), paint, f"colour of material '{name}'") if paint else Material().rgba
    texture = reading.file(picture.get("filename"), picture, "texture") if picture else None
    return Material(name, rgba, texture)


def read_link(reading: Reading, node: Node, materials: dict[str, Material]) -> Link:
    """The link at ``node``, its pose not yet known.

    Raises:
        DescriptionError: a mass, inertia, shape or number is wrong; the message names the link.
    """
    name = node.get("name")
    reading.unknown(node, _LINK)
    collisions, visuals = [], []
    names: dict[str, int] = {}
    for index, child in enumerate(node.all("collision")):
        reading.unknown(child, {"origin", "geometry"})
        given = free_name(child.get("name") or f"{name}_collision{f'_{index}' if index else ''}", names)
        collisions.append(Collision(given, _geometry(reading, child, name), origin(child, f"link '{name}'")))
    for index, child in enumerate(node.all("visual")):
        reading.unknown(child, {"origin", "geometry", "material"})
        given = free_name(child.get("name") or f"{name}_visual{f'_{index}' if index else ''}", names)
        shape = _geometry(reading, child, name)
        visuals.append(
            Visual(given, shape, origin(child, f"link '{name}'"), _looks(reading, child.child("material"), materials))
        )
    inertial = _inertial(reading, node, name, collisions)
    link = Link(name, SE3.identity(), inertial, tuple(collisions), tuple(visuals))
    stated = node.child("inertial")
    return sensible(reading, stated, link) if stated is not None else link


def _looks(reading: Reading, node: Node | None, materials: dict[str, Material]) -> Material:
    if node is None:
        return Material(stated=False)
    if node.children:
        return _material(reading, node)
    name = node.get("name")
    if name in materials:
        return materials[name]
    shipped = gazebo_material(name)
    if shipped is None:
        reading.note(node, f"material {shown(name)} is not defined: grey taken")
        return Material(name)
    return shipped


def _inertial(reading: Reading, node: Node, link: str, collisions: list[Collision]) -> Inertial | None:
    given = node.child("inertial")
    if given is None:
        return None
    reading.unknown(given, {"origin", "mass", "inertia"})
    mass, inertia = given.child("mass"), given.child("inertia")
    where = f"link '{link}' has an <inertial> without"
    if mass is None:
        reading.mend(given, f"{where} <mass>", "<mass …/>, or no <inertial>", "taken as a mere frame without mass")
        return None
    kilograms = number(mass.get("value"), mass, f"mass of link '{link}'")
    if kilograms == 0.0:
        return None  # a mere frame, if it is fixed to what has mass: see `massless`
    T_link_com = origin(given, f"link '{link}'")
    if inertia is None:
        moments, whose = plausible(abs(kilograms), T_link_com, collisions)
        reading.mend(given, f"{where} <inertia>", "<inertia …/>, or no <inertial>", f"the inertia taken {whose}")
    else:
        ixx, iyy, izz, ixy, ixz, iyz = (
            number(inertia.get(key, "0"), inertia, f"{key} of link '{link}'") for key in _MOMENTS
        )
        moments = ixx, iyy, izz, ixy, ixz, iyz
    return checks.inertial(reading, given, link, kilograms, T_link_com, moments, collisions)


def _geometry(reading: Reading, node: Node, link: str) -> Geometry:
    given = node.child("geometry")
    shape = next((child for child in given.children if child.tag in _SHAPES), None) if given else None
    if given is None or shape is None:
        found = f" (found <{given.children[0].tag[:40]}>)" if given and given.children else ""
        raise fault(f"link '{link}' has a <{node.tag}> without a shape{found}", given or node, ", ".join(_SHAPES))
    reading.unknown(given, _SHAPES)
    label = f"{shape.tag} of link '{link}'"
    if shape.tag == "box":
        x, y, z = positives(shape.get("size"), 3, shape, f"size of {label}")
        return Box((x, y, z))
    if shape.tag == "mesh":
        return _mesh(reading, shape, label)
    radius = positive(shape.get("radius"), shape, f"radius of {label}")
    if shape.tag == "sphere":
        return Sphere(radius)
    length = positive(shape.get("length"), shape, f"length of {label}")
    return Cylinder(radius, length) if shape.tag == "cylinder" else Capsule(radius, length)


def _mesh(reading: Reading, node: Node, label: str) -> Mesh:
    uri = node.get("filename")
    if not uri.strip():
        raise fault(f"{label} has no filename", node, 'filename="package://…"')
    scale: Vec3 = vector(node.get("scale") or "1 1 1", node, f"scale of {label}")
    if 0.0 in scale:
        raise fault(f"scale of {label} is {shown(node.get('scale'))}", node, "no zeros")
    return Mesh(uri, reading.file(uri, node, "mesh"), scale)
