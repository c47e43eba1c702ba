"""Geoms of a body as collision and visual shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roboyard.description.mjcf.compiled import Compiled
from roboyard.description.model import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    Heightmap,
    Inline,
    Material,
    Mesh,
    Plane,
    Rgba,
    Sphere,
    Surface,
    Visual,
)
from roboyard.description.naming import free_name
from roboyard.description.reading import Reading
from roboyard.geometry import SE3

_PLANE, _TERRAIN, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = range(8)  # mjtGeom
_SEEN_GROUPS = 3
"""Geoms of groups 0, 1 and 2 are drawn unless a viewer is told otherwise."""
_UNSET: Rgba = (0.5, 0.5, 0.5, 1.0)
_ENDLESS = 100.0  # [m]


def shapes(
    reading: Reading, source: Compiled, numbers: Sequence[int], owner: str
) -> tuple[tuple[Collision, ...], tuple[Visual, ...]]:
    """Collision and visual shapes of the geoms ``numbers``, which sit on the link ``owner``.

    A geom whose ``contype`` and ``conaffinity`` are both zero touches nothing; one of group 3 or more is not drawn.
    """
    m = source.model
    collisions: list[Collision] = []
    visuals: list[Visual] = []
    taken: dict[str, int] = {}
    for number in numbers:
        name = free_name(m.geom(number).name or f"{owner}_geom", taken)
        found = _geometry(reading, source, number, name)
        if found is None:
            continue
        geometry, T_link_geom = found
        if m.geom_contype[number] or m.geom_conaffinity[number]:
            collisions.append(Collision(name, geometry, T_link_geom, _surface(source, number)))
        if int(m.geom_group[number]) < _SEEN_GROUPS:
            material = _material(source, number)
            if material.rgba[3] > 0.0:
                visuals.append(Visual(name, geometry, T_link_geom, material))
    return tuple(collisions), tuple(visuals)


def _geometry(reading: Reading, source: Compiled, number: int, name: str) -> tuple[Geometry, SE3] | None:
    m = source.model
    T = SE3(m.geom_quat[number], m.geom_pos[number])
    x, y, z = (float(value) for value in m.geom_size[number])
    match int(m.geom_type[number]):
        case k if k == _PLANE:
            return Plane(size=(2.0 * x or _ENDLESS, 2.0 * y or _ENDLESS)), T
        case k if k == _TERRAIN:
            return _terrain(source, number, T)
        case k if k == _SPHERE:
            return Sphere(x), T
        case k if k == _CAPSULE:
            return Capsule(x, 2.0 * y), T
        case k if k == _CYLINDER:
            return Cylinder(x, 2.0 * y), T
        case k if k == _ELLIPSOID:
            return Ellipsoid((x, y, z)), T
        case k if k == _BOX:
            return Box((2.0 * x, 2.0 * y, 2.0 * z)), T
        case k if k == _MESH:
            return _mesh(source, number, T)
    reading.note(source.geom_nodes[number], f"geom '{name}' is of a shape that is not understood: left out")
    return None


def _terrain(source: Compiled, number: int, T: SE3) -> tuple[Geometry, SE3] | None:
    m = source.model
    field = int(m.geom_dataid[number])
    origin = source.assets.terrains[m.hfield(field).name]
    x, y, z, _ = (float(value) for value in m.hfield_size[field])
    if not origin.uri:
        start, rows, columns = int(m.hfield_adr[field]), int(m.hfield_nrow[field]), int(m.hfield_ncol[field])
        heights = np.asarray(m.hfield_data[start : start + rows * columns], np.float32)
        return Heightmap("", None, (2.0 * x, 2.0 * y, z), inline=Inline(heights.tobytes(), b"", columns)), T
    if origin.file is None:
        return None  # said where it was looked for
    return Heightmap(origin.uri, origin.file, (2.0 * x, 2.0 * y, z)), T


def _mesh(source: Compiled, number: int, T: SE3) -> tuple[Geometry, SE3]:
    """The file's own triangles: MuJoCo has moved them to their centre of mass and principal axes."""
    m = source.model
    index = int(m.geom_dataid[number])
    mesh = m.mesh(index).name
    origin = source.assets.meshes.get(mesh)
    spec = source.spec.mesh(mesh)
    sx, sy, sz = (float(value) for value in spec.scale)
    T_link_asset = T @ SE3(m.mesh_quat[index], m.mesh_pos[index]).inverse()
    turned = not SE3(spec.refquat).almost_equal(SE3.identity(), 1e-12)
    compiled = origin is None or not origin.uri or (origin.file is not None and origin.file.suffix.lower() == ".msh")
    if origin is None or compiled or (turned and not sx == sy == sz):
        uri = origin.uri if origin is not None else ""
        return Mesh(uri, None, convex=True, inline=_points(source, index, T)), SE3.identity()
    if origin.file is None:
        return Mesh(origin.uri, None), T_link_asset
    px, py, pz = (float(value) for value in spec.refpos)
    T_asset_file = SE3(spec.refquat).inverse() @ SE3(translation=(-sx * px, -sy * py, -sz * pz))
    return Mesh(origin.uri, origin.file, (sx, sy, sz), convex=True), T_link_asset @ T_asset_file


def _points(source: Compiled, mesh: int, T_link_geom: SE3) -> Inline:
    """Vertices and faces as the compiler made them, in the link's frame: the geom's own is the compiler's choice."""
    m = source.model
    first, count = int(m.mesh_vertadr[mesh]), int(m.mesh_vertnum[mesh])
    start, faces = int(m.mesh_faceadr[mesh]), int(m.mesh_facenum[mesh])
    there = np.asarray(m.mesh_vert[first : first + count], float) @ T_link_geom.rotation_matrix().T
    vertices = np.ascontiguousarray(there + T_link_geom.translation, np.float32)
    return Inline(vertices.tobytes(), np.ascontiguousarray(m.mesh_face[start : start + faces], np.int32).tobytes())


def _surface(source: Compiled, number: int) -> Surface:
    m = source.model
    sliding, torsional, rolling = (float(value) for value in m.geom_friction[number])
    dimensions = int(m.geom_condim[number])
    return Surface(
        friction=sliding if dimensions > 1 else 0.0,
        torsional=torsional if dimensions >= 4 else None,
        rolling=rolling if dimensions >= 6 else None,
    )


def _material(source: Compiled, number: int) -> Material:
    m = source.model
    index = int(m.geom_matid[number])
    r, g, b, a = (float(value) for value in m.geom_rgba[number])
    if index < 0:
        return Material(rgba=_clipped((r, g, b, a)))
    name = m.material(index).name
    if (r, g, b, a) == _UNSET:
        r, g, b, a = (float(value) for value in m.mat_rgba[index])
    skin = source.assets.skins.get(name)
    picture = skin.picture if skin else None
    if skin:
        r, g, b = r * skin.colour[0], g * skin.colour[1], b * skin.colour[2]
    glow = min(max(float(m.mat_emission[index]), 0.0), 1.0)
    r, g, b, a = _clipped((r, g, b, a))
    return Material(name, (r, g, b, a), picture, (glow * r, glow * g, glow * b))


def _clipped(rgba: Rgba) -> Rgba:
    r, g, b, a = (round(min(max(value, 0.0), 1.0), 7) for value in rgba)  # the engine keeps single precision
    return r, g, b, a
