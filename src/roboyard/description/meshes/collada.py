"""Reads triangles of COLLADA (.dae) files: geometry, node transforms, unit, and the material of each part.

``up_axis`` is not applied: Gazebo and RViz ignore it, so descriptions are written for readers that do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.submesh import submesh_not_found_error
from roboyard.errors import DescriptionError

if TYPE_CHECKING:
    from lxml import etree

Triangles = NDArray[np.float64]  # (n, 3, 3): triangle, corner, xyz

MAX_DEPTH = 64
"""Maximum nesting of nodes; deeper nodes instance each other in a cycle."""
MAX_INSTANCES = 100_000
"""Maximum number of visited nodes: a few nodes that each instance the previous one twice would fill any memory."""


@dataclass(frozen=True, slots=True)
class MaterialTriangles:
    """Triangles with one material.

    Attributes:
        triangles: (n, 3, 3) corners [m].
        uv: (n, 3, 2) texture coordinates of the corners, v upwards; None if the file has none.
        material: Id of the material; empty without one.
    """

    triangles: Triangles
    uv: NDArray[np.float64] | None = None
    material: str = ""


def read_collada_triangles(file: Path, max_triangles: int = 10_000_000, submesh: str = "") -> Triangles:
    """Read the triangles of the file's scene in meters, in the file's own axes, without materials."""
    return np.concatenate([group.triangles for group in read_material_triangles(file, max_triangles, submesh)[0]])


def read_material_triangles(
    file: Path, max_triangles: int = 10_000_000, submesh: str = ""
) -> tuple[list[MaterialTriangles], etree._Element]:
    """Read the triangles of the file's scene by material, in meters and in the file's own axes; also return the root
    element.

    Args:
        file: The file.
        max_triangles: Maximum number of triangles.
        submesh: Name of the node or geometry to read, with its children; empty: all.

    Raises:
        DescriptionError: The file is not COLLADA, is inconsistent, has no such submesh, has no triangles or more than
            `max_triangles`.
    """
    try:
        groups, root = _read_scene(file, max_triangles, submesh)
    except (KeyError, IndexError, StopIteration, ValueError, ArithmeticError, TypeError) as error:
        reason = f"it refers to {error}, which does not exist" if isinstance(error, KeyError) else str(error)[:120]
        raise DescriptionError(f"mesh is inconsistent COLLADA: {reason}", location=str(file)) from None
    if not sum(len(group.triangles) for group in groups):
        raise DescriptionError("mesh has no triangles", location=str(file))
    return groups, root


def _read_scene(file: Path, max_triangles: int, submesh: str) -> tuple[list[MaterialTriangles], etree._Element]:
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, remove_comments=True)
    try:
        root = etree.parse(str(file), parser).getroot()
    except (OSError, etree.XMLSyntaxError) as error:
        raise DescriptionError(f"mesh is not readable COLLADA: {error}", location=str(file)) from error
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = etree.QName(element).localname

    ids = {str(element.get("id")): element for element in root.iter() if element.get("id")}
    geometries = {name: _read_geometry(element, ids) for name, element in ids.items() if element.tag == "geometry"}
    collected: list[MaterialTriangles] = []
    scene = root.find(".//visual_scene")
    if scene is not None:
        budget = _InstanceBudget(MAX_INSTANCES, max_triangles, submesh)
        for node in scene.findall("node"):
            _collect_node(node, np.eye(4), ids, geometries, collected, budget, 0)
    if submesh and not collected:
        submesh_names = [str(e.get("name")) for e in root.iter("node", "geometry") if e.get("name")]
        raise submesh_not_found_error(submesh, list(dict.fromkeys(submesh_names)), file)
    if not collected:
        collected = [
            group for groups in geometries.values() for group in groups
        ]  # without a scene: the complete geometry library, untransformed

    unit = root.find("asset/unit")
    unit_in_m = float(unit.get("meter", "1")) if unit is not None else 1.0
    if not 0.0 < unit_in_m < math.inf:
        raise ValueError(f"the unit {unit_in_m:g} m is out of range")
    return [replace(group, triangles=group.triangles * unit_in_m) for group in collected], root


class _InstanceBudget:
    """Remaining limits of node visits and triangles."""

    def __init__(self, visits: int, triangles: int, submesh: str) -> None:
        self._visits, self._triangles = visits, triangles
        self._submesh = submesh

    def is_requested(self, *elements: etree._Element | None) -> bool:
        """Return whether one of these elements is the requested submesh; always True if none is requested."""
        names = (element.get(key) for element in elements if element is not None for key in ("name", "id"))
        return not self._submesh or self._submesh in names

    def consume(self, visits: int, triangles: int) -> None:
        """Subtract from the limits. Raises ValueError when they are exceeded."""
        self._visits -= visits
        self._triangles -= triangles
        if self._visits < 0 or self._triangles < 0:
            raise ValueError("its nodes instance each other too often, or it has too many triangles")


def _parse_numbers(text: str | None, dtype: type = float) -> NDArray[np.float64]:
    return np.array((text or "").split(), dtype=dtype)


def _read_geometry(geometry: etree._Element, ids: dict[str, etree._Element]) -> list[MaterialTriangles]:
    return [
        group
        for tag in ("triangles", "polylist", "polygons")
        for element in geometry.iter(tag)
        for group in _read_primitive(element, ids)
    ]


def _read_primitive(element: etree._Element, ids: dict[str, etree._Element]) -> list[MaterialTriangles]:
    inputs = element.findall("input")
    vertex = next((item for item in inputs if item.get("semantic") == "VERTEX"), None)
    if vertex is None:
        return []
    positions = _read_positions(str(vertex.get("source", ""))[1:], ids)
    stride = 1 + max(int(item.get("offset", "0")) for item in inputs)
    offset = int(vertex.get("offset", "0"))
    lists = [_parse_numbers(p.text, int).reshape(-1, stride).astype(int) for p in element.findall("p")]
    if element.tag == "triangles":
        faces = [indices.reshape(-1, 3, stride) for indices in lists]
    elif element.tag == "polylist":
        counts = _parse_numbers(element.findtext("vcount"), int).astype(int)
        flat = np.concatenate(lists) if lists else np.zeros((0, stride), int)
        faces = [_triangulate_polygon(polygon) for polygon in np.split(flat, np.cumsum(counts)[:-1])]
    else:
        faces = [_triangulate_polygon(polygon) for polygon in lists]
    faces = [face for face in faces if len(face)]
    if any(face.min() < 0 for face in faces):
        raise ValueError("a face has a negative vertex index")
    if not faces:
        return []
    corners = np.concatenate(faces)
    return [
        MaterialTriangles(
            positions[corners[:, :, offset]],
            _read_texture_coordinates(inputs, corners, ids),
            str(element.get("material", "")),
        )
    ]


def _read_texture_coordinates(
    inputs: list[etree._Element], corners: NDArray[np.int_], ids: dict[str, etree._Element]
) -> NDArray[np.float64] | None:
    """Return the texture coordinates of the corners, from the first set of the file."""
    texture_input = next((item for item in inputs if item.get("semantic") == "TEXCOORD"), None)
    if texture_input is None:
        return None
    coordinates = _read_source(ids[str(texture_input.get("source", ""))[1:]])
    index = corners[:, :, int(texture_input.get("offset", "0"))]
    if coordinates.shape[1] < 2 or not len(coordinates) or index.max() >= len(coordinates):
        return None  # a fault in texture coordinates does not reject the file
    return np.asarray(coordinates[index][:, :, :2])


def _triangulate_polygon(polygon: NDArray[np.int_]) -> NDArray[np.int_]:
    """Triangulate a polygon (k, stride) into triangles (n, 3, stride)."""
    count = len(polygon)
    if count < 3:
        return np.zeros((0, 3, polygon.shape[1]), int)
    return np.stack([np.repeat(polygon[:1], count - 2, axis=0), polygon[1:-1], polygon[2:]], axis=1)


def _read_positions(name: str, ids: dict[str, etree._Element]) -> NDArray[np.float64]:
    element = ids[name]
    if element.tag == "vertices":
        sources = [item for item in element.findall("input") if item.get("semantic") == "POSITION"]
        if not sources:
            raise ValueError(f"the vertices '{name}' have no positions")
        element = ids[str(sources[0].get("source"))[1:]]
    return _read_source(element)[:, :3]


def _read_source(source: etree._Element) -> NDArray[np.float64]:
    """Return the rows of a ``<source>``."""
    accessor = source.find(".//accessor")
    stride = int(accessor.get("stride", "3")) if accessor is not None else 3
    return np.asarray(_parse_numbers(source.findtext("float_array")).reshape(-1, stride))


def _collect_node(
    node: etree._Element,
    T_scene_parent: NDArray[np.float64],
    ids: dict[str, etree._Element],
    geometries: dict[str, list[MaterialTriangles]],
    collected: list[MaterialTriangles],
    budget: _InstanceBudget,
    depth: int,
    is_requested: bool = False,
) -> None:
    if depth > MAX_DEPTH:
        return
    budget.consume(1, 0)
    is_requested = is_requested or budget.is_requested(node)
    T_scene_node = T_scene_parent
    for child in node:
        T_scene_node = T_scene_node @ _read_transform(child)
    for instance in node.findall("instance_geometry"):
        name = str(instance.get("url"))[1:]
        if name in geometries and (is_requested or budget.is_requested(ids.get(name))):
            materials = {
                str(binding.get("symbol")): str(binding.get("target"))[1:]
                for binding in instance.iter("instance_material")
            }
            for group in geometries[name]:
                budget.consume(0, len(group.triangles))
                triangles = group.triangles @ T_scene_node[:3, :3].T + T_scene_node[:3, 3]
                collected.append(
                    replace(group, triangles=triangles, material=materials.get(group.material, group.material))
                )
    for child in node.findall("node"):
        _collect_node(child, T_scene_node, ids, geometries, collected, budget, depth + 1, is_requested)
    for instance in node.findall("instance_node"):
        target = ids.get(str(instance.get("url"))[1:])
        if target is not None:
            _collect_node(target, T_scene_node, ids, geometries, collected, budget, depth + 1, is_requested)


def _read_transform(element: etree._Element) -> NDArray[np.float64]:
    T = np.eye(4)
    if element.tag == "matrix":
        return np.asarray(_parse_numbers(element.text).reshape(4, 4))
    if element.tag == "translate":
        T[:3, 3] = _parse_numbers(element.text)
    elif element.tag == "scale":
        T[:3, :3] = np.diag(_parse_numbers(element.text))
    elif element.tag == "rotate":
        x, y, z, degrees = _parse_numbers(element.text)
        axis = np.array([x, y, z]) / max(float(np.hypot(np.hypot(x, y), z)), 1e-12)
        K = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
        angle = np.radians(degrees)
        T[:3, :3] = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
    return T
