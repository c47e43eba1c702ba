"""Collision and visual shapes as geoms of MJCF, with their assets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

import numpy as np

from roboyard.description.model import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Heightmap,
    Link,
    Material,
    Mesh,
    Plane,
    Polyline,
    Sphere,
    Surface,
)
from roboyard.description.write.result import ConversionLosses, FileNamer, add_child, format_number, format_numbers
from roboyard.description.write.urdf import align_z_with
from roboyard.geometry import SE3

COLLISION_GROUP, VISUAL_GROUP = "3", "2"
"""Groups of collision and visual geoms, as in simulation: viewers show the second."""
_CONE_SIDES = 32
_MIN_FRICTION = 1e-5
"""Minimum friction coefficient of the engine."""
_TERRAIN_BASE = 0.1
"""Depth of terrain below its lowest point [m]."""


@dataclass(slots=True)
class AssetSection:
    """Assets of the document, without duplicates."""

    section: ET.Element
    file_namer: FileNamer | None
    losses: ConversionLosses
    _names: dict[object, str] = field(default_factory=dict)

    def add_mesh(self, mesh: Mesh) -> str:
        """Return the asset name of a mesh file."""
        key = (str(mesh.file), mesh.scale, mesh.inline)
        if mesh.inline is not None and key not in self._names:
            name = self._names[key] = f"mesh_{len(self._names)}"
            points = np.frombuffer(mesh.inline.values, np.float32).reshape(-1, 3) * np.asarray(mesh.scale)
            node = add_child(
                self.section, "mesh", name=name, vertex=format_numbers(points.ravel().tolist()), inertia="shell"
            )
            node.set("face", " ".join(map(str, np.frombuffer(mesh.inline.faces, np.int32).tolist())))
        if key not in self._names:
            name = self._names[key] = f"mesh_{len(self._names)}"
            uri = self.file_namer(mesh.file, mesh.uri) if self.file_namer is not None and mesh.file else mesh.uri
            node = add_child(self.section, "mesh", name=name, file=uri, inertia="shell")
            if mesh.scale != (1.0, 1.0, 1.0):
                node.set("scale", format_numbers(mesh.scale))
        return self._names[key]

    def add_convex_mesh(self, key: object, points: list[tuple[float, float, float]]) -> str:
        """Return the asset name of a convex body given by its corners."""
        if key not in self._names:
            name = self._names[key] = f"mesh_{len(self._names)}"
            corners = format_numbers(value for point in points for value in point)
            add_child(self.section, "mesh", name=name, vertex=corners)
        return self._names[key]

    def add_terrain(self, shape: Heightmap) -> str:
        """Return the asset name of a terrain."""
        key = ("terrain", str(shape.file), shape.size, shape.inline)
        if shape.inline is not None and key not in self._names:
            name = self._names[key] = f"terrain_{len(self._names)}"
            size = format_numbers((shape.size[0] / 2, shape.size[1] / 2, shape.size[2], _TERRAIN_BASE))
            rows = np.frombuffer(shape.inline.values, np.float32).reshape(-1, shape.inline.columns)
            heights = rows[::-1].ravel()  # a document lists the last row first
            node = add_child(self.section, "hfield", name=name, size=size, elevation=format_numbers(heights.tolist()))
            node.set("ncol", str(shape.inline.columns))
            node.set("nrow", str(len(heights) // shape.inline.columns))
        if key not in self._names:
            name = self._names[key] = f"terrain_{len(self._names)}"
            uri = self.file_namer(shape.file, shape.uri) if self.file_namer is not None and shape.file else shape.uri
            size = format_numbers((shape.size[0] / 2, shape.size[1] / 2, shape.size[2], _TERRAIN_BASE))
            add_child(self.section, "hfield", name=name, file=uri, size=size)
        return self._names[key]

    def add_material(self, material: Material) -> str:
        """Return the asset name of a material with more than a color; empty for a plain color."""
        image_file = material.texture
        if image_file is not None and image_file.suffix.lower() != ".png":
            self.losses.add(f"the texture {image_file.name} is lost: MuJoCo supports only PNG")
            image_file = None
        emission = max(material.emissive)
        if image_file is None and not emission:
            return ""
        key = ("material", material)
        if key not in self._names:
            name = self._names[key] = f"material_{len(self._names)}"
            node = add_child(self.section, "material", name=name, rgba=format_numbers(material.rgba))
            if emission:
                brightest = max(*material.rgba[:3], 1e-3)
                node.set("emission", format_number(min(emission / brightest, 1.0)))
            if image_file is not None:
                uri = self.file_namer(image_file, str(image_file)) if self.file_namer is not None else str(image_file)
                add_child(self.section, "texture", name=f"{name}_texture", type="2d", file=uri)
                node.set("texture", f"{name}_texture")
        return self._names[key]


def set_pose(node: ET.Element, T: SE3) -> None:
    """Set position and orientation of a body, geom or site; the identity is not written."""
    if any(T.translation):
        node.set("pos", format_numbers(T.translation))
    if T.quaternion != (1.0, 0.0, 0.0, 0.0):
        node.set("quat", format_numbers(T.quaternion))


def add_geoms(
    body: ET.Element, link: Link, prefix: str, assets: AssetSection, losses: ConversionLosses, *, static: bool
) -> None:
    """Add all shapes of a link."""
    names: set[str] = set()

    def unique_name(name: str) -> str:
        full = f"{prefix}{link.name}/{name}"
        while full in names:
            full += "_"
        names.add(full)
        return full

    for collision in link.collisions:
        label = f"collision '{collision.name}' of link '{link.name}'"
        if not collision.surface.collide:
            losses.add(f"{label} has no contacts: not written")
            continue
        node = _add_geom(body, collision.geometry, collision.T_link_geom, assets, losses, label, static=static)
        if node is not None:
            node.set("name", unique_name(collision.name))
            node.set("group", COLLISION_GROUP)
            _set_contact(node, collision.surface, losses)
    for visual in link.visuals:
        label = f"visual '{visual.name}' of link '{link.name}'"
        node = _add_geom(body, visual.geometry, visual.T_link_geom, assets, losses, label, static=static)
        if node is not None:
            node.set("name", unique_name(f"visual/{visual.name}"))
            node.set("group", VISUAL_GROUP)
            node.set("contype", "0")
            node.set("conaffinity", "0")
            material = assets.add_material(visual.material)
            if material:
                node.set("material", material)
            else:
                node.set("rgba", format_numbers(visual.material.rgba))


def _set_contact(node: ET.Element, surface: Surface, losses: ConversionLosses) -> None:
    dimensions = 6 if surface.rolling else 4 if surface.torsional else 1 if surface.friction <= _MIN_FRICTION else 3
    node.set("condim", str(dimensions))
    friction = (max(surface.friction, _MIN_FRICTION), surface.torsional or 0.005, surface.rolling or 0.0001)
    node.set("friction", format_numbers(friction))
    if surface.friction2 is not None or surface.friction_direction is not None or any(surface.slip):
        losses.add("friction that differs between two directions, and slip, are lost")
    if surface.stiffness is not None or surface.damping is not None or surface.restitution:
        losses.add("stiffness, damping and restitution of surfaces are lost")


def _add_geom(
    body: ET.Element,
    geometry: Geometry,
    T: SE3,
    assets: AssetSection,
    losses: ConversionLosses,
    label: str,
    *,
    static: bool,
) -> ET.Element | None:
    shape_and_pose = _geom_attributes(geometry, assets, losses, label, static=static)
    if shape_and_pose is None:
        return None
    attributes, T_geom_shape = shape_and_pose
    node = add_child(body, "geom", **attributes)
    set_pose(node, T @ T_geom_shape)
    return node


def _geom_attributes(
    geometry: Geometry, assets: AssetSection, losses: ConversionLosses, label: str, *, static: bool
) -> tuple[dict[str, str], SE3] | None:
    identity = SE3.identity()
    match geometry:
        case Box((x, y, z)):
            return {"type": "box", "size": format_numbers((x / 2, y / 2, z / 2))}, identity
        case Sphere(radius):
            return {"type": "sphere", "size": format_number(radius)}, identity
        case Cylinder(radius, length):
            return {"type": "cylinder", "size": format_numbers((radius, length / 2))}, identity
        case Capsule(radius, length):
            return {"type": "capsule", "size": format_numbers((radius, length / 2))}, identity
        case Ellipsoid(radii):
            return {"type": "ellipsoid", "size": format_numbers(radii)}, identity
        case Plane(normal, (x, y)) if static:
            return {"type": "plane", "size": format_numbers((x / 2, y / 2, 1.0))}, align_z_with(normal)
        case Mesh() if geometry.file is not None or geometry.inline is not None:
            if geometry.submesh:
                losses.add(f"{label}: the submesh '{geometry.submesh}' is written as the complete mesh")
            return {"type": "mesh", "mesh": assets.add_mesh(geometry)}, identity
        case Heightmap() if static and (geometry.file is not None or geometry.inline is not None):
            if geometry.inline is None:
                losses.add(f"{label}: MuJoCo scales a terrain's image from its darkest to its brightest pixel")
            attributes = {"type": "hfield", "hfield": assets.add_terrain(geometry)}
            return attributes, SE3(translation=geometry.position)
        case Cone(radius, length):
            losses.add(f"{label}: a cone is written as a mesh of {_CONE_SIDES} sides")
            angles = (2.0 * math.pi * side / _CONE_SIDES for side in range(_CONE_SIDES))
            corners = [(radius * math.cos(angle), radius * math.sin(angle), -length / 2) for angle in angles]
            return {
                "type": "mesh",
                "mesh": assets.add_convex_mesh(geometry, [*corners, (0.0, 0.0, length / 2)]),
            }, identity
        case Polyline(outlines, height):
            losses.add(f"{label}: a polyline is written as the convex hull of its outlines")
            points = [point for outline in outlines for point in outline]
            corners = [(x, y, z) for z in (0.0, height) for x, y in points]
            return {"type": "mesh", "mesh": assets.add_convex_mesh(geometry, corners)}, identity
    losses.add(f"{label}: a {type(geometry).__name__.lower()} is not written")
    return None
