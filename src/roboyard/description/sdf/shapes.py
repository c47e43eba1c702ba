"""``<geometry>``, ``<surface>`` and ``<material>``."""

from __future__ import annotations

from pathlib import Path

from roboyard.description.colours import gazebo_material
from roboyard.description.fields import boolean_of, colour_of, expressed_in, number_of, text_of, vector_of
from roboyard.description.model import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Heightmap,
    Material,
    Mesh,
    Plane,
    Polyline,
    Sphere,
    Surface,
    Vec3,
)
from roboyard.description.reading import Reading
from roboyard.description.values import fault, integer, number, numbers, positive, positives, shown, unit_vector
from roboyard.description.xml import Node

_UNUSED_FLOW = {
    "roughness_map", "metalness_map", "environment_map", "ambient_occlusion_map", "normal_map", "emissive_map",
    "light_map", "specular_map", "glossiness_map", "glossiness",
}  # fmt: skip
_UNUSED_CONTACT = {
    "collide_without_contact", "collide_without_contact_bitmask", "category_bitmask", "poissons_ratio",
    "elastic_modulus", "bullet",
}  # fmt: skip
_UNUSED_SURFACE = {"soft_contact", "bullet"}


def read_geometry(reading: Reading, node: Node, label: str) -> Geometry | None:
    """The shape in ``<geometry>``; None, with a finding, where it has none that is known.

    Raises:
        DescriptionError: a size is missing, not a number or not above zero.
    """
    given = node.child("geometry")
    if given is None or not given.children:
        reading.note(given or node, f"{label} has no shape: left out")
        return None
    shape = given.children[0]
    label = f"{shape.tag} of {label}"
    match shape.tag:
        case "box":
            return Box(_sizes(reading, shape, "size", label))
        case "sphere":
            return Sphere(_positive(reading, shape, "radius", label, "1"))
        case "cylinder":
            return Cylinder(*_round(reading, shape, label, "1"))
        case "capsule":
            return Capsule(*_round(reading, shape, label, "0.5"))
        case "cone":
            return Cone(*_round(reading, shape, label, "0.5"))
        case "ellipsoid":
            return Ellipsoid(_sizes(reading, shape, "radii", label))
        case "plane":
            return _plane(shape, label)
        case "mesh":
            return _mesh(reading, shape, label)
        case "heightmap":
            reading.unknown(shape, {"uri", "size", "pos"}, {"texture", "blend", "use_terrain_paging", "sampling"})
            uri = text_of(shape, "uri")
            return Heightmap(
                uri,
                reading.file(uri, shape, "heightmap"),
                _sizes(reading, shape, "size", label),
                vector_of(shape, "pos", (0.0, 0.0, 0.0)),
            )
        case "polyline":
            return _polyline(reading, given, label)
        case "empty":
            return None
    reading.note(shape, f"shape <{shape.tag[:40]}> is not understood: left out")
    return None


def _given(reading: Reading, node: Node, tag: str, label: str, default: str) -> str:
    """Text of a size; SDF's default, with a finding, where it is missing."""
    text = text_of(node, tag)
    if not text:
        reading.note(node, f"{label} has no {tag}: {default} m taken")
    return text or default


def _positive(reading: Reading, node: Node, tag: str, label: str, default: str) -> float:
    return positive(_given(reading, node, tag, label, default), node.child(tag) or node, f"{tag} of {label}")


def _round(reading: Reading, node: Node, label: str, radius: str) -> tuple[float, float]:
    return _positive(reading, node, "radius", label, radius), _positive(reading, node, "length", label, "1")


def _sizes(reading: Reading, node: Node, tag: str, label: str) -> Vec3:
    text = _given(reading, node, tag, label, "1 1 1")
    x, y, z = positives(text, 3, node.child(tag) or node, f"{tag} of {label}")
    return x, y, z


def _plane(node: Node, label: str) -> Plane:
    given = node.child("normal")
    normal = (0.0, 0.0, 1.0)
    if given is not None and given.text.strip():
        normal = unit_vector(given.text, given, f"normal of {label}")
    size = node.child("size")
    if size is None or not size.text.strip():
        return Plane(normal)
    x, y = numbers(size.text, 2, size, f"size of {label}")
    return Plane(normal, (abs(x), abs(y)))


def _mesh(reading: Reading, node: Node, label: str) -> Mesh:
    reading.unknown(node, {"uri", "scale", "submesh", "convex_decomposition"})
    uri = text_of(node, "uri")
    if not uri:
        raise fault(f"{label} has no <uri>", node, "<uri>model://…</uri>")
    scale = _scale(reading, node, label)
    if 0.0 in scale:
        raise fault(f"scale of {label} is {shown(text_of(node, 'scale'))}", node, "no zeros")
    part = node.child("submesh")
    return Mesh(
        uri=uri,
        file=reading.file(uri, node.child("uri") or node, "mesh"),
        scale=scale,
        submesh=text_of(part, "name") or None,
        center_submesh=boolean_of(part, "center", False),
        convex=node.get("optimization") in ("convex_hull", "convex_decomposition"),
    )


def _scale(reading: Reading, node: Node, label: str) -> Vec3:
    given = node.child("scale")
    if given is None or len(given.text.split()) != 1:
        return vector_of(node, "scale", (1.0, 1.0, 1.0))
    value = number(given.text, given, f"scale of {label}")
    reading.mend(given, f"scale of {label} is {shown(given.text)}", "3 numbers", "taken along all axes")
    return value, value, value


def _polyline(reading: Reading, node: Node, label: str) -> Polyline:
    outlines = []
    for one in node.all("polyline"):
        points = [numbers(point.text, 2, point, f"point of {label}") for point in one.all("point")]
        if len(points) < 3:
            raise fault(f"{label} has {len(points)} points", one, "at least 3")
        outlines.append(tuple((x, y) for x, y in points))
    first = node.all("polyline")[0]
    return Polyline(tuple(outlines), _positive(reading, first, "height", label, "1"))


def read_surface(reading: Reading, node: Node | None) -> Surface:
    """Contact properties of a ``<surface>``; None gives the defaults. Raises DescriptionError."""
    if node is None:
        return Surface()
    reading.unknown(node, {"friction", "contact", "bounce"}, _UNUSED_SURFACE)
    friction = node.child("friction")
    ode = friction.child("ode") if friction else None
    bullet = friction.child("bullet") if friction else None
    torsional = friction.child("torsional") if friction else None
    contact = node.child("contact")
    stiff = contact.child("ode") if contact else None
    mu = number_of(ode, "mu", number_of(bullet, "friction", 1.0))
    mu2 = number_of(ode, "mu2", number_of(bullet, "friction2", mu))
    direction = ode.child("fdir1") if ode else None
    along = vector_of(ode, "fdir1", (0.0, 0.0, 0.0))
    bits = contact.child("collide_bitmask") if contact else None
    for part, (known, unused) in (
        (friction, ({"ode", "bullet", "torsional"}, set())),
        (ode, ({"mu", "mu2", "fdir1", "slip1", "slip2"}, set())),
        (bullet, ({"friction", "friction2", "rolling_friction"}, {"fdir1"})),
        (torsional, ({"coefficient"}, {"use_patch_radius", "patch_radius", "surface_radius", "ode"})),
        (contact, ({"ode", "collide_bitmask"}, _UNUSED_CONTACT)),
        (stiff, ({"kp", "kd"}, {"soft_cfm", "soft_erp", "max_vel", "min_depth"})),
        (node.child("bounce"), ({"restitution_coefficient"}, {"threshold"})),
    ):
        if part is not None:
            reading.unknown(part, known, unused)
    if bits is not None and _bits(bits) & 0xFFFF not in (0, 0xFFFF):
        reading.note(bits, "groups of <collide_bitmask> have no effect here: only 0, which touches nothing, has")
    return Surface(
        friction=mu if mu >= 0.0 else 1.0,
        friction2=mu2 if mu2 >= 0.0 and mu2 != mu else None,
        direction1=unit_vector(direction.text, direction, "<fdir1>") if direction and any(along) else None,
        direction1_in=expressed_in(direction),
        torsional=_optional(torsional, "coefficient"),
        rolling=_optional(bullet, "rolling_friction"),
        slip=(number_of(ode, "slip1", 0.0, low=0.0), number_of(ode, "slip2", 0.0, low=0.0)),
        stiffness=_optional(stiff, "kp"),
        damping=_optional(stiff, "kd"),
        restitution=number_of(node.child("bounce"), "restitution_coefficient", 0.0, low=0.0),
        collide=not (bits is not None and _bits(bits) == 0),
    )


def _optional(node: Node | None, tag: str) -> float | None:
    value = number_of(node, tag, -1.0)
    return value if value >= 0.0 else None


def _bits(node: Node) -> int:
    text = node.text.strip().lower()
    if text.startswith("0x"):
        digits = text[2:]
        if digits and len(digits) <= 8 and all(one in "0123456789abcdef" for one in digits):
            return int(digits, 16)
        raise fault(f"<collide_bitmask> is {shown(text)}", node, "a number or 0x…")
    return integer(text or "65535", node, "<collide_bitmask>")


def read_material(reading: Reading, node: Node | None, transparency: float) -> Material:
    """Looks of a visual. Raises DescriptionError.

    Args:
        reading: Takes findings, resolves textures.
        node: The ``<material>``; None gives the default grey.
        transparency: 0 opaque … 1 invisible, of the visual.
    """
    default = Material()
    alpha = 1.0 - min(max(transparency, 0.0), 1.0)
    if node is None:
        r, g, b, a = default.rgba
        return Material(rgba=(r, g, b, a * alpha), stated=False)
    reading.unknown(
        node,
        {"ambient", "diffuse", "emissive", "script", "pbr"},
        {"shader", "render_order", "double_sided", "shininess", "specular", "lighting"},
    )
    for flow in (one for pbr in node.all("pbr") for one in pbr.children):
        reading.unknown(flow, {"albedo_map", "metalness", "roughness"}, _UNUSED_FLOW)
    name = text_of(node.child("script"), "name")
    named = gazebo_material(name) if name else None
    picture = _picture(reading, node)
    plain = (1.0, 1.0, 1.0, 1.0) if picture else default.rgba
    rgba = colour_of(node, "diffuse", named.rgba if named else colour_of(node, "ambient", plain))
    if name and named is None and node.child("diffuse") is None:
        reading.note(node, f"material script {shown(name)} is not read: plain colour taken")
    dark = named.emissive if named else default.emissive
    emissive = colour_of(node, "emissive", (*dark, 1.0))[:3]
    return Material(name, (rgba[0], rgba[1], rgba[2], rgba[3] * alpha), picture, emissive, _polished(node))


def _polished(node: Node) -> bool:
    """PBR metal without roughness."""
    flows = [flow for pbr in node.all("pbr") for flow in pbr.children]
    return any(number_of(flow, "metalness", 0.5) >= 0.9 and number_of(flow, "roughness", 0.5) <= 0.1 for flow in flows)


def _picture(reading: Reading, node: Node) -> Path | None:
    for pbr in node.all("pbr"):
        for flow in pbr.children:
            uri = text_of(flow, "albedo_map")
            if uri:
                return reading.file(uri, flow.child("albedo_map") or flow, "texture")
    return None
