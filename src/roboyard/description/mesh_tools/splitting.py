"""One surface into several: what hangs together, or cut by planes and boxes with the cuts closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mesh_tools.surface import Points, Surface, joined, welded
from roboyard.errors import DescriptionError, import_extra

MAX_PARTS = 500
"""More are no links: the export fell apart into triangles, or screws were not left out."""
SLIVER = 1e-9
"""Parts smaller than this share of the volume are rounding of a cut."""
Plane = tuple[NDArray[np.float64], float]
"""Unit normal and offset: the points with ``normal · x = offset`` [m]."""
Box = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Least and largest corner [m]."""


def by_components(surface: Surface) -> list[Surface]:
    """Parts that hang together, the largest first; a cavity stays with the body around it.

    Raises:
        DescriptionError: there are more than `MAX_PARTS`.
    """
    groups = surface.components()
    if len(groups) > MAX_PARTS:
        raise DescriptionError(f"the surface falls into {len(groups)} parts", valid=f"at most {MAX_PARTS}")
    parts = [surface.part(group) for group in groups]
    bodies = [part for part in parts if not (part.closed and part.volume < 0.0)]
    if not bodies:
        return sorted(parts, key=lambda part: -part.size)
    inside: list[list[Surface]] = [[body] for body in bodies]
    for cavity in (part for part in parts if part.closed and part.volume < 0.0):
        hosts = [i for i, body in enumerate(bodies) if body.closed and _winds_round(body, cavity.vertices[0])]
        host = min(hosts, key=lambda i: bodies[i].volume, default=None)
        if host is None:
            inside.append([cavity])
        else:
            inside[host].append(cavity)
    found = [joined(group) for group in inside]
    return _largest_first(found)


def by_planes(surface: Surface, planes: Sequence[Plane]) -> list[Surface]:
    """Pieces of a closed surface between planes, cuts closed; the largest first. Raises DescriptionError."""
    pieces = [_solid(surface)]
    for normal, offset in planes:
        halves = [half for piece in pieces for half in piece.split_by_plane(tuple(map(float, normal)), float(offset))]
        pieces = [half for half in halves if not half.is_empty()]
    return _surfaces(pieces, surface)


def by_boxes(surface: Surface, boxes: Sequence[Box]) -> list[Surface]:
    """What of a closed surface is in each box, in their order, and last what is in none. Raises DescriptionError."""
    manifold3d = import_extra("manifold3d", "mesh", "cutting a mesh")

    rest, found = _solid(surface), []
    for low, high in boxes:
        size = tuple(map(float, np.asarray(high) - np.asarray(low)))
        cube = manifold3d.Manifold.cube(size).translate(tuple(map(float, low)))
        found += _surfaces([rest ^ cube], surface)
        rest = rest - cube
    return found + _surfaces([rest], surface)


def _solid(surface: Surface) -> Any:
    """The surface as an oriented manifold; several bodies are united first, so that nothing is counted twice."""
    manifold3d = import_extra("manifold3d", "mesh", "cutting a mesh")

    solids = []
    for part in by_components(surface):
        mesh = manifold3d.Mesh64(np.ascontiguousarray(part.vertices), np.ascontiguousarray(part.faces, np.uint64))
        solid = manifold3d.Manifold(mesh)
        if solid.status() != manifold3d.Error.NoError or solid.is_empty():
            raise DescriptionError(
                f"a part with {len(part.faces)} triangles cannot be cut: its surface is no closed manifold",
                valid="triangles that meet in pairs, edge to edge; --repair closes holes",
            )
        solids.append(solid)
    return manifold3d.Manifold.batch_boolean(solids, manifold3d.OpType.Add) if len(solids) > 1 else solids[0]


def _surfaces(solids: Sequence[Any], whole: Surface) -> list[Surface]:
    found = []
    for solid in solids:
        mesh = solid.to_mesh64()
        surface = Surface(np.asarray(mesh.vert_properties, float)[:, :3], np.asarray(mesh.tri_verts, np.int64))
        if len(surface.faces) and abs(surface.volume) > SLIVER * abs(whole.volume):
            found.append(welded(surface))
    return _largest_first(found)


def _largest_first(parts: list[Surface]) -> list[Surface]:
    """By volume, open parts last; twins, whose volumes differ by rounding, in the order they came in."""
    volumes = [abs(part.volume) if part.closed else 0.0 for part in parts]
    largest = max(volumes, default=0.0) or 1.0
    order = sorted(range(len(parts)), key=lambda number: -round(volumes[number] / largest, 6))
    return [parts[number] for number in order]


def _winds_round(surface: Surface, point: Points) -> bool:
    """Whether a point is inside a closed surface: its solid angle (A. van Oosterom, J. Strackee, 1983)."""
    a, b, c = (surface.triangles - point).transpose(1, 0, 2)
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    above = np.einsum("ij,ij->i", a, np.cross(b, c))
    dots = [np.einsum("ij,ij->i", x, y) for x, y in ((a, b), (b, c), (c, a))]
    below = la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb
    return bool(abs(2.0 * np.arctan2(above, below).sum()) > 2.0 * np.pi)
