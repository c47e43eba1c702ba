"""Geoms of MJCF as collision and visual shapes, and pairs of links that can collide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mjcf.compile import CompiledMjcf
from roboyard.description.model import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    Heightmap,
    InlineArray,
    Material,
    Mesh,
    Plane,
    Rgba,
    Sphere,
    Surface,
    Visual,
)
from roboyard.description.names import make_unique_name
from roboyard.description.reader_context import ReaderContext
from roboyard.geometry import SE3

_PLANE, _TERRAIN, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = range(8)  # mjtGeom
_VISIBLE_GROUPS = 3
"""Number of visible groups: viewers draw groups 0, 1 and 2 by default."""
_DEFAULT_RGBA: Rgba = (0.5, 0.5, 0.5, 1.0)
_INFINITE_PLANE_SIZE = 100.0  # [m]


def read_shapes(
    context: ReaderContext, compiled: CompiledMjcf, numbers: Sequence[int], owner: str
) -> tuple[tuple[Collision, ...], tuple[Visual, ...]]:
    """Read collision and visual shapes of the geoms `numbers` on the link `owner`.

    A geom whose ``contype`` and ``conaffinity`` are both zero has no contacts; one of group 3 or more is not drawn.
    """
    m = compiled.model
    collisions: list[Collision] = []
    visuals: list[Visual] = []
    used_names: dict[str, int] = {}
    for number in numbers:
        name = make_unique_name(m.geom(number).name or f"{owner}_geom", used_names)
        shape_and_pose = _read_geometry(context, compiled, number, name)
        if shape_and_pose is None:
            continue
        geometry, T_link_geom = shape_and_pose
        if m.geom_contype[number] or m.geom_conaffinity[number]:
            collisions.append(Collision(name, geometry, T_link_geom, _read_surface(compiled, number)))
        if int(m.geom_group[number]) < _VISIBLE_GROUPS:
            material = _read_material(compiled, number)
            if material.rgba[3] > 0.0:
                visuals.append(Visual(name, geometry, T_link_geom, material))
    return tuple(collisions), tuple(visuals)


def _read_geometry(
    context: ReaderContext, compiled: CompiledMjcf, number: int, name: str
) -> tuple[Geometry, SE3] | None:
    m = compiled.model
    T = SE3(m.geom_quat[number], m.geom_pos[number])
    x, y, z = (float(value) for value in m.geom_size[number])
    match int(m.geom_type[number]):
        case k if k == _PLANE:
            return Plane(size=(2.0 * x or _INFINITE_PLANE_SIZE, 2.0 * y or _INFINITE_PLANE_SIZE)), T
        case k if k == _TERRAIN:
            return _read_terrain(compiled, number, T)
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
            return _read_mesh(compiled, number, T)
    context.warn(compiled.geom_nodes[number], f"geom '{name}' has an unsupported shape: ignored")
    return None


def _read_terrain(compiled: CompiledMjcf, number: int, T: SE3) -> tuple[Geometry, SE3] | None:
    m = compiled.model
    field = int(m.geom_dataid[number])
    terrain_source = compiled.assets.terrains[m.hfield(field).name]
    x, y, z, _ = (float(value) for value in m.hfield_size[field])
    if not terrain_source.uri:
        start, rows, columns = int(m.hfield_adr[field]), int(m.hfield_nrow[field]), int(m.hfield_ncol[field])
        heights = np.asarray(m.hfield_data[start : start + rows * columns], np.float32)
        return Heightmap("", None, (2.0 * x, 2.0 * y, z), inline=InlineArray(heights.tobytes(), b"", columns)), T
    if terrain_source.file is None:
        return None  # a warning was given when the file was searched
    return Heightmap(terrain_source.uri, terrain_source.file, (2.0 * x, 2.0 * y, z)), T


def _read_mesh(compiled: CompiledMjcf, number: int, T: SE3) -> tuple[Geometry, SE3]:
    """Return the triangles of the file: MuJoCo has moved them to their center of mass and principal axes."""
    m = compiled.model
    index = int(m.geom_dataid[number])
    mesh = m.mesh(index).name
    mesh_source = compiled.assets.meshes.get(mesh)
    spec = compiled.spec.mesh(mesh)
    sx, sy, sz = (float(value) for value in spec.scale)
    T_link_asset = T @ SE3(m.mesh_quat[index], m.mesh_pos[index]).inverse()
    is_rotated = not SE3(spec.refquat).almost_equal(SE3.identity(), 1e-12)
    uses_compiled_mesh = (
        mesh_source is None
        or not mesh_source.uri
        or (mesh_source.file is not None and mesh_source.file.suffix.lower() == ".msh")
    )
    if mesh_source is None or uses_compiled_mesh or (is_rotated and not sx == sy == sz):
        uri = mesh_source.uri if mesh_source is not None else ""
        return Mesh(uri, None, convex=True, inline=_read_inline_mesh(compiled, index, T)), SE3.identity()
    if mesh_source.file is None:
        return Mesh(mesh_source.uri, None), T_link_asset
    px, py, pz = (float(value) for value in spec.refpos)
    T_asset_file = SE3(spec.refquat).inverse() @ SE3(translation=(-sx * px, -sy * py, -sz * pz))
    return Mesh(mesh_source.uri, mesh_source.file, (sx, sy, sz), convex=True), T_link_asset @ T_asset_file


def _read_inline_mesh(compiled: CompiledMjcf, mesh: int, T_link_geom: SE3) -> InlineArray:
    """Return vertices and faces from the compiler in the link's frame; the compiler chooses the geom's own frame."""
    m = compiled.model
    first, count = int(m.mesh_vertadr[mesh]), int(m.mesh_vertnum[mesh])
    start, faces = int(m.mesh_faceadr[mesh]), int(m.mesh_facenum[mesh])
    rotated = np.asarray(m.mesh_vert[first : first + count], float) @ T_link_geom.rotation_matrix().T
    vertices = np.ascontiguousarray(rotated + T_link_geom.translation, np.float32)
    return InlineArray(vertices.tobytes(), np.ascontiguousarray(m.mesh_face[start : start + faces], np.int32).tobytes())


def _read_surface(compiled: CompiledMjcf, number: int) -> Surface:
    m = compiled.model
    sliding, torsional, rolling = (float(value) for value in m.geom_friction[number])
    dimensions = int(m.geom_condim[number])
    return Surface(
        friction=sliding if dimensions > 1 else 0.0,
        torsional=torsional if dimensions >= 4 else None,
        rolling=rolling if dimensions >= 6 else None,
    )


def _read_material(compiled: CompiledMjcf, number: int) -> Material:
    m = compiled.model
    index = int(m.geom_matid[number])
    r, g, b, a = (float(value) for value in m.geom_rgba[number])
    if index < 0:
        return Material(rgba=_clip_rgba((r, g, b, a)))
    name = m.material(index).name
    if (r, g, b, a) == _DEFAULT_RGBA:
        r, g, b, a = (float(value) for value in m.mat_rgba[index])
    texture = compiled.assets.textures.get(name)
    image_file = texture.image_file if texture else None
    if texture:
        r, g, b = r * texture.mean_color[0], g * texture.mean_color[1], b * texture.mean_color[2]
    emission = min(max(float(m.mat_emission[index]), 0.0), 1.0)
    r, g, b, a = _clip_rgba((r, g, b, a))
    return Material(name, (r, g, b, a), image_file, (emission * r, emission * g, emission * b))


def _clip_rgba(rgba: Rgba) -> Rgba:
    r, g, b, a = (round(min(max(value, 0.0), 1.0), 7) for value in rgba)  # the engine uses single precision
    return r, g, b, a


MAX_COLLIDABLE_BODIES = 1500
"""Maximum number of bodies of one model whose pairs are checked; with more, self-collision is disabled."""
ContactBits = frozenset[tuple[int, int]]


def find_collision_pairs(compiled: CompiledMjcf, bodies: list[int]) -> tuple[set[int], list[tuple[int, int]]]:
    """Return bodies that can collide with another one of `bodies`, and the pairs among those that cannot."""
    bits = {body: _contact_bits(compiled, body) for body in bodies}
    collidable = [body for body in bodies if bits[body]]
    if not 2 <= len(collidable) <= MAX_COLLIDABLE_BODIES:
        return set(), []
    distinct_bits = list(dict.fromkeys(bits[body] for body in collidable))
    can_collide = np.array([[_can_collide(one, other) for other in distinct_bits] for one in distinct_bits])
    bits_index = np.array([distinct_bits.index(bits[body]) for body in collidable])
    allowed = can_collide[bits_index[:, None], bits_index[None, :]] & ~_neighbors(compiled, np.array(collidable))
    row_of = {body: index for index, body in enumerate(collidable)}
    for one, other in _excluded_pairs(compiled):
        if one in row_of and other in row_of:
            allowed[row_of[one], row_of[other]] = allowed[row_of[other], row_of[one]] = False
    is_member = allowed.any(axis=1)
    disabled = np.triu(~allowed, 1) & is_member[:, None] & is_member[None, :]
    members = {body for body, touches in zip(collidable, is_member, strict=True) if touches}
    return members, [(collidable[one], collidable[other]) for one, other in np.argwhere(disabled)]


def _contact_bits(compiled: CompiledMjcf, body: int) -> ContactBits:
    m = compiled.model
    return frozenset(
        (int(m.geom_contype[geom]), int(m.geom_conaffinity[geom]))
        for geom in compiled.geoms_of(body)
        if m.geom_contype[geom] or m.geom_conaffinity[geom]
    )


def _can_collide(one: ContactBits, other: ContactBits) -> bool:
    return any(a & d or c & b for a, b in one for c, d in other)


def _neighbors(compiled: CompiledMjcf, bodies: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the pairs (n, n) of bodies that are fixed together, or whose fixed groups are parent and child: they do
    not collide.
    """
    m = compiled.model
    group = np.asarray(m.body_weldid)[bodies]
    above = np.asarray(m.body_weldid)[np.asarray(m.body_parentid)[group]]
    below = (above[:, None] == group[None, :]) & (group[None, :] != 0)
    return np.asarray((group[:, None] == group[None, :]) | below | below.T)


def _excluded_pairs(compiled: CompiledMjcf) -> list[tuple[int, int]]:
    signatures = (int(value) for value in compiled.model.exclude_signature)
    return [(signature >> 16, signature & 0xFFFF) for signature in signatures]
