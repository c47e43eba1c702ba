"""Collision and visual shapes as geoms, with their assets."""

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
from roboyard.description.write.urdf import upright
from roboyard.description.write.written import Files, Losses, add, number, numbers
from roboyard.geometry import SE3

COLLISION, VISUAL = "3", "2"
"""Groups, as in simulation: a viewer shows the second."""
_SIDES = 32
_LEAST = 1e-5
"""The engine's least friction coefficient."""
_BASE = 0.1
"""Depth of terrain below its lowest point [m]."""


@dataclass(slots=True)
class Shelf:
    """The document's assets, each once."""

    section: ET.Element
    files: Files | None
    losses: Losses
    _names: dict[object, str] = field(default_factory=dict)

    def mesh(self, mesh: Mesh) -> str:
        """Name of the asset of a mesh file."""
        key = (str(mesh.file), mesh.scale, mesh.inline)
        if mesh.inline is not None and key not in self._names:
            name = self._names[key] = f"mesh_{len(self._names)}"
            points = np.frombuffer(mesh.inline.values, np.float32).reshape(-1, 3) * np.asarray(mesh.scale)
            node = add(self.section, "mesh", name=name, vertex=numbers(points.ravel().tolist()), inertia="shell")
            node.set("face", " ".join(map(str, np.frombuffer(mesh.inline.faces, np.int32).tolist())))
        if key not in self._names:
            name = self._names[key] = f"mesh_{len(self._names)}"
            uri = self.files(mesh.file, mesh.uri) if self.files is not None and mesh.file else mesh.uri
            node = add(self.section, "mesh", name=name, file=uri, inertia="shell")
            if mesh.scale != (1.0, 1.0, 1.0):
                node.set("scale", numbers(mesh.scale))
        return self._names[key]

    def points(self, key: object, points: list[tuple[float, float, float]]) -> str:
        """Name of the asset of a convex body given by its corners."""
        if key not in self._names:
            name = self._names[key] = f"mesh_{len(self._names)}"
            corners = numbers(value for point in points for value in point)
            add(self.section, "mesh", name=name, vertex=corners)
        return self._names[key]

    def terrain(self, shape: Heightmap) -> str:
        """Name of the asset of a terrain."""
        key = ("terrain", str(shape.file), shape.size, shape.inline)
        if shape.inline is not None and key not in self._names:
            name = self._names[key] = f"terrain_{len(self._names)}"
            size = numbers((shape.size[0] / 2, shape.size[1] / 2, shape.size[2], _BASE))
            rows = np.frombuffer(shape.inline.values, np.float32).reshape(-1, shape.inline.columns)
            heights = rows[::-1].ravel()  # a document lists the farthest row first
            node = add(self.section, "hfield", name=name, size=size, elevation=numbers(heights.tolist()))
            node.set("ncol", str(shape.inline.columns))
            node.set("nrow", str(len(heights) // shape.inline.columns))
        if key not in self._names:
            name = self._names[key] = f"terrain_{len(self._names)}"
            uri = self.files(shape.file, shape.uri) if self.files is not None and shape.file else shape.uri
            size = numbers((shape.size[0] / 2, shape.size[1] / 2, shape.size[2], _BASE))
            add(self.section, "hfield", name=name, file=uri, size=size)
        return self._names[key]

    def material(self, material: Material) -> str:
        """Name of the asset of a material that is more than a colour; empty for a plain one."""
        picture = material.texture
        if picture is not None and picture.suffix.lower() != ".png":
            self.losses.say(f"the texture {picture.name} is lost: MuJoCo reads PNG")
            picture = None
        glow = max(material.emissive)
        if picture is None and not glow:
            return ""
        key = ("material", material)
        if key not in self._names:
            name = self._names[key] = f"material_{len(self._names)}"
            node = add(self.section, "material", name=name, rgba=numbers(material.rgba))
            if glow:
                brightest = max(*material.rgba[:3], 1e-3)
                node.set("emission", number(min(glow / brightest, 1.0)))
            if picture is not None:
                uri = self.files(picture, str(picture)) if self.files is not None else str(picture)
                add(self.section, "texture", name=f"{name}_texture", type="2d", file=uri)
                node.set("texture", f"{name}_texture")
        return self._names[key]


def place(node: ET.Element, T: SE3) -> None:
    """Position and orientation of a body, geom or site; nothing for none."""
    if any(T.translation):
        node.set("pos", numbers(T.translation))
    if T.quaternion != (1.0, 0.0, 0.0, 0.0):
        node.set("quat", numbers(T.quaternion))


def add_geoms(body: ET.Element, link: Link, prefix: str, shelf: Shelf, losses: Losses, *, still: bool) -> None:
    """All shapes of a link."""
    names: set[str] = set()

    def named(name: str) -> str:
        full = f"{prefix}{link.name}/{name}"
        while full in names:
            full += "_"
        names.add(full)
        return full

    for collision in link.collisions:
        where = f"collision '{collision.name}' of link '{link.name}'"
        if not collision.surface.collide:
            losses.say(f"{where} touches nothing: left out")
            continue
        node = _geom(body, collision.geometry, collision.T_link_geom, shelf, losses, where, still=still)
        if node is not None:
            node.set("name", named(collision.name))
            node.set("group", COLLISION)
            _contact(node, collision.surface, losses)
    for visual in link.visuals:
        where = f"visual '{visual.name}' of link '{link.name}'"
        node = _geom(body, visual.geometry, visual.T_link_geom, shelf, losses, where, still=still)
        if node is not None:
            node.set("name", named(f"visual/{visual.name}"))
            node.set("group", VISUAL)
            node.set("contype", "0")
            node.set("conaffinity", "0")
            material = shelf.material(visual.material)
            if material:
                node.set("material", material)
            else:
                node.set("rgba", numbers(visual.material.rgba))


def _contact(node: ET.Element, surface: Surface, losses: Losses) -> None:
    dimensions = 6 if surface.rolling else 4 if surface.torsional else 1 if surface.friction <= _LEAST else 3
    node.set("condim", str(dimensions))
    friction = (max(surface.friction, _LEAST), surface.torsional or 0.005, surface.rolling or 0.0001)
    node.set("friction", numbers(friction))
    if surface.friction2 is not None or surface.direction1 is not None or any(surface.slip):
        losses.say("friction that differs along two directions, and slip, are lost")
    if surface.stiffness is not None or surface.damping is not None or surface.restitution:
        losses.say("stiffness, damping and bounce of surfaces are lost")


def _geom(
    body: ET.Element, geometry: Geometry, T: SE3, shelf: Shelf, losses: Losses, where: str, *, still: bool
) -> ET.Element | None:
    found = _shape(geometry, shelf, losses, where, still=still)
    if found is None:
        return None
    attributes, T_geom_shape = found
    node = add(body, "geom", **attributes)
    place(node, T @ T_geom_shape)
    return node


def _shape(
    geometry: Geometry, shelf: Shelf, losses: Losses, where: str, *, still: bool
) -> tuple[dict[str, str], SE3] | None:
    here = SE3.identity()
    match geometry:
        case Box((x, y, z)):
            return {"type": "box", "size": numbers((x / 2, y / 2, z / 2))}, here
        case Sphere(radius):
            return {"type": "sphere", "size": number(radius)}, here
        case Cylinder(radius, length):
            return {"type": "cylinder", "size": numbers((radius, length / 2))}, here
        case Capsule(radius, length):
            return {"type": "capsule", "size": numbers((radius, length / 2))}, here
        case Ellipsoid(radii):
            return {"type": "ellipsoid", "size": numbers(radii)}, here
        case Plane(normal, (x, y)) if still:
            return {"type": "plane", "size": numbers((x / 2, y / 2, 1.0))}, upright(normal)
        case Mesh() if geometry.file is not None or geometry.inline is not None:
            if geometry.submesh:
                losses.say(f"{where}: the part '{geometry.submesh}' of a mesh is written as the whole mesh")
            return {"type": "mesh", "mesh": shelf.mesh(geometry)}, here
        case Heightmap() if still and (geometry.file is not None or geometry.inline is not None):
            if geometry.inline is None:
                losses.say(f"{where}: MuJoCo stretches a terrain's picture from its darkest to its brightest point")
            attributes = {"type": "hfield", "hfield": shelf.terrain(geometry)}
            return attributes, SE3(translation=geometry.position)
        case Cone(radius, length):
            losses.say(f"{where}: a cone is written as a mesh of {_SIDES} sides")
            turns = (2.0 * math.pi * side / _SIDES for side in range(_SIDES))
            corners = [(radius * math.cos(turn), radius * math.sin(turn), -length / 2) for turn in turns]
            return {"type": "mesh", "mesh": shelf.points(geometry, [*corners, (0.0, 0.0, length / 2)])}, here
        case Polyline(outlines, height):
            losses.say(f"{where}: a polyline is written as the convex hull of its outlines")
            flat = [point for outline in outlines for point in outline]
            corners = [(x, y, z) for z in (0.0, height) for x, y in flat]
            return {"type": "mesh", "mesh": shelf.points(geometry, corners)}, here
    losses.say(f"{where}: a {type(geometry).__name__.lower()} is left out")
    return None
