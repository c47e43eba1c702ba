"""Triangles of a COLLADA (.dae) file: geometry, node transforms, unit, and which material each part has.

``up_axis`` is not applied: Gazebo and RViz ignore it, so descriptions are written for readers that do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from roboyard.errors import DescriptionError
from roboyard.simulation.assembly.parts import missing

Triangles = NDArray[np.float64]  # (n, 3, 3): triangle, corner, xyz

MAX_DEPTH = 64
"""Nodes within each other; deeper ones instance each other in a ring."""
MAX_INSTANCES = 100_000
"""Visits of nodes: a few that each instance the one before twice would fill any memory."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Triangles of one material.

    Attributes:
        triangles: (n, 3, 3) [m].
        uv: Place of each corner in the material's picture, (n, 3, 2), v upwards; None where the file gives none.
        material: Its id; empty for none.
    """

    triangles: Triangles
    uv: NDArray[np.float64] | None = None
    material: str = ""


def read_collada(file: Path, most: int = 10_000_000, part: str = "") -> Triangles:
    """Triangles of the file's scene in metres, in the file's own axes; as `read_patches`, without looks."""
    return np.concatenate([patch.triangles for patch in read_patches(file, most, part)[0]])


def read_patches(file: Path, most: int = 10_000_000, part: str = "") -> tuple[list[Patch], etree._Element]:
    """Patches of the file's scene in metres, in the file's own axes, and the file's root, its tags without prefixes.

    Args:
        file: The file.
        most: Triangles that are taken at most.
        part: Name of the node or geometry that alone is taken, with what hangs on it; empty: all.

    Raises:
        DescriptionError: the file is no COLLADA, is inconsistent, has no such part, holds no triangle or more than
            ``most``.
    """
    try:
        patches, root = _scene(file, most, part)
    except (KeyError, IndexError, StopIteration, ValueError, ArithmeticError, TypeError) as error:
        why = f"it refers to {error}, which it does not have" if isinstance(error, KeyError) else str(error)[:120]
        raise DescriptionError(f"mesh is inconsistent COLLADA: {why}", location=str(file)) from None
    if not sum(len(patch.triangles) for patch in patches):
        raise DescriptionError("mesh holds no triangles", location=str(file))
    return patches, root


def _scene(file: Path, most: int, part: str) -> tuple[list[Patch], etree._Element]:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, remove_comments=True)
    try:
        root = etree.parse(str(file), parser).getroot()
    except (OSError, etree.XMLSyntaxError) as error:
        raise DescriptionError(f"mesh is not readable COLLADA: {error}", location=str(file)) from error
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = etree.QName(element).localname

    ids = {str(element.get("id")): element for element in root.iter() if element.get("id")}
    shapes = {name: _geometry(element, ids) for name, element in ids.items() if element.tag == "geometry"}
    parts: list[Patch] = []
    scene = root.find(".//visual_scene")
    if scene is not None:
        room = _Room(MAX_INSTANCES, most, part)
        for node in scene.findall("node"):
            _collect(node, np.eye(4), ids, shapes, parts, room, 0)
    if part and not parts:
        there = [str(e.get("name")) for e in root.iter("node", "geometry") if e.get("name")]
        raise missing(part, list(dict.fromkeys(there)), file)
    if not parts:
        parts = [patch for patches in shapes.values() for patch in patches]  # a bare library: all of it where it stands

    unit = root.find("asset/unit")
    metre = float(unit.get("meter", "1")) if unit is not None else 1.0
    if not 0.0 < metre < math.inf:
        raise ValueError(f"its unit is {metre:g} m")
    return [replace(patch, triangles=patch.triangles * metre) for patch in parts], root


class _Room:
    """What instances may still bring."""

    def __init__(self, visits: int, triangles: int, part: str) -> None:
        self._visits, self._triangles = visits, triangles
        self._part = part

    def wants(self, *elements: etree._Element | None) -> bool:
        """Whether one of these is the part that is asked for; any is where none is asked for."""
        named = (one.get(key) for one in elements if one is not None for key in ("name", "id"))
        return not self._part or self._part in named

    def take(self, visits: int, triangles: int) -> None:
        """Raises ValueError when there is none left."""
        self._visits -= visits
        self._triangles -= triangles
        if self._visits < 0 or self._triangles < 0:
            raise ValueError("its nodes instance each other too often, or it has too many triangles")


def _numbers(text: str | None, dtype: type = float) -> NDArray[np.float64]:
    return np.array((text or "").split(), dtype=dtype)


def _geometry(geometry: etree._Element, ids: dict[str, etree._Element]) -> list[Patch]:
    return [
        patch
        for tag in ("triangles", "polylist", "polygons")
        for element in geometry.iter(tag)
        for patch in _primitive(element, ids)
    ]


def _primitive(element: etree._Element, ids: dict[str, etree._Element]) -> list[Patch]:
    inputs = element.findall("input")
    vertex = next((item for item in inputs if item.get("semantic") == "VERTEX"), None)
    if vertex is None:
        return []
    positions = _positions(str(vertex.get("source", ""))[1:], ids)
    stride = 1 + max(int(item.get("offset", "0")) for item in inputs)
    offset = int(vertex.get("offset", "0"))
    lists = [_numbers(p.text, int).reshape(-1, stride).astype(int) for p in element.findall("p")]
    if element.tag == "triangles":
        faces = [chunk.reshape(-1, 3, stride) for chunk in lists]
    elif element.tag == "polylist":
        counts = _numbers(element.findtext("vcount"), int).astype(int)
        flat = np.concatenate(lists) if lists else np.zeros((0, stride), int)
        faces = [_fan(polygon) for polygon in np.split(flat, np.cumsum(counts)[:-1])]
    else:
        faces = [_fan(polygon) for polygon in lists]
    faces = [face for face in faces if len(face)]
    if any(face.min() < 0 for face in faces):
        raise ValueError("a face has a corner of negative number")
    if not faces:
        return []
    corners = np.concatenate(faces)
    return [Patch(positions[corners[:, :, offset]], _pictured(inputs, corners, ids), str(element.get("material", "")))]


def _pictured(
    inputs: list[etree._Element], corners: NDArray[np.int_], ids: dict[str, etree._Element]
) -> NDArray[np.float64] | None:
    """Where the corners lie in the material's picture, by the first set of texture coordinates."""
    found = next((one for one in inputs if one.get("semantic") == "TEXCOORD"), None)
    if found is None:
        return None
    places = _values(ids[str(found.get("source", ""))[1:]])
    index = corners[:, :, int(found.get("offset", "0"))]
    if places.shape[1] < 2 or not len(places) or index.max() >= len(places):
        return None  # looks are worth no refusal
    return np.asarray(places[index][:, :, :2])


def _fan(polygon: NDArray[np.int_]) -> NDArray[np.int_]:
    """Triangles (n, 3, stride) of a polygon (k, stride)."""
    count = len(polygon)
    if count < 3:
        return np.zeros((0, 3, polygon.shape[1]), int)
    return np.stack([np.repeat(polygon[:1], count - 2, axis=0), polygon[1:-1], polygon[2:]], axis=1)


def _positions(name: str, ids: dict[str, etree._Element]) -> NDArray[np.float64]:
    element = ids[name]
    if element.tag == "vertices":
        sources = [item for item in element.findall("input") if item.get("semantic") == "POSITION"]
        if not sources:
            raise ValueError(f"the vertices '{name}' have no positions")
        element = ids[str(sources[0].get("source"))[1:]]
    return _values(element)[:, :3]


def _values(source: etree._Element) -> NDArray[np.float64]:
    """Rows of a ``<source>``."""
    accessor = source.find(".//accessor")
    stride = int(accessor.get("stride", "3")) if accessor is not None else 3
    return np.asarray(_numbers(source.findtext("float_array")).reshape(-1, stride))


def _collect(
    node: etree._Element,
    parent: NDArray[np.float64],
    ids: dict[str, etree._Element],
    shapes: dict[str, list[Patch]],
    parts: list[Patch],
    room: _Room,
    depth: int,
    wanted: bool = False,
) -> None:
    if depth > MAX_DEPTH:
        return
    room.take(1, 0)
    wanted = wanted or room.wants(node)
    T = parent
    for child in node:
        T = T @ _transform(child)
    for instance in node.findall("instance_geometry"):
        name = str(instance.get("url"))[1:]
        if name in shapes and (wanted or room.wants(ids.get(name))):
            bound = {str(one.get("symbol")): str(one.get("target"))[1:] for one in instance.iter("instance_material")}
            for patch in shapes[name]:
                room.take(0, len(patch.triangles))
                there = patch.triangles @ T[:3, :3].T + T[:3, 3]
                parts.append(replace(patch, triangles=there, material=bound.get(patch.material, patch.material)))
    for child in node.findall("node"):
        _collect(child, T, ids, shapes, parts, room, depth + 1, wanted)
    for instance in node.findall("instance_node"):
        target = ids.get(str(instance.get("url"))[1:])
        if target is not None:
            _collect(target, T, ids, shapes, parts, room, depth + 1, wanted)


def _transform(element: etree._Element) -> NDArray[np.float64]:
    T = np.eye(4)
    if element.tag == "matrix":
        return np.asarray(_numbers(element.text).reshape(4, 4))
    if element.tag == "translate":
        T[:3, 3] = _numbers(element.text)
    elif element.tag == "scale":
        T[:3, :3] = np.diag(_numbers(element.text))
    elif element.tag == "rotate":
        x, y, z, degrees = _numbers(element.text)
        axis = np.array([x, y, z]) / max(float(np.hypot(np.hypot(x, y), z)), 1e-12)
        K = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
        angle = np.radians(degrees)
        T[:3, :3] = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
    return T
