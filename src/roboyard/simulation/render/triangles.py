"""Every MuJoCo geom as triangles in its own frame: what a ray caster and a floor plan can work on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from roboyard.geometry.arrays import Array

# Round things become so many flat faces that their outline is off by this at most [m].
SAGITTA = 5e-4
SHARP = 0.8  # cosine between face and corner normals below which a mesh's edge is not smoothed


@dataclass(frozen=True, slots=True)
class Triangles:
    """Triangles of one geom.

    Attributes:
        corners: (n, 3, 3) corner points, counter-clockwise from outside [m].
        normals: (n, 3, 3) unit normals at the corners, for smooth looks.
        uv: (n, 3, 2) place of the corners in a picture, v downwards; None where it is not known.
    """

    corners: Array
    normals: Array
    uv: Array | None = None

    @staticmethod
    def flat(corners: Array, *, keep_all: bool = False) -> Triangles:
        """Triangles with their own face normals; those without area are dropped unless ``keep_all``."""
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.maximum(np.linalg.norm(cross, axis=1), 1e-20)
        keep = (length > 1e-14) | keep_all
        unit = cross[keep] / length[keep, None]
        return Triangles(corners[keep], np.repeat(unit[:, None], 3, axis=1))

    @staticmethod
    def join(parts: list[Triangles]) -> Triangles:
        """All triangles of all parts."""
        if not parts:
            return Triangles(np.zeros((0, 3, 3)), np.zeros((0, 3, 3)))
        return Triangles(
            np.concatenate([p.corners for p in parts]),
            np.concatenate([p.normals for p in parts]),
            np.concatenate([p.places() for p in parts]) if any(p.uv is not None for p in parts) else None,
        )

    def places(self) -> Array:
        """``uv``, not a number where there is none."""
        return np.full((len(self.corners), 3, 2), np.nan) if self.uv is None else self.uv

    def placed(self, rotation: Array, translation: Array) -> Triangles:
        """The same triangles seen from the frame in which theirs stands at ``rotation``, ``translation``."""
        return Triangles(self.corners @ rotation.T + translation, self.normals @ rotation.T, self.uv)


def geom_triangles(model: mujoco.MjModel, geom: int, *, plane_reach: float = 200.0, finer: int = 1) -> Triangles:
    """Triangles of a geom in the geom's frame.

    Args:
        model: Compiled model.
        geom: Index of the geom.
        plane_reach: Half size that stands for "infinite" in planes [m].
        finer: Round things get this many times as many edges.
    """
    kind, size = int(model.geom_type[geom]), np.asarray(model.geom_size[geom])
    types = mujoco.mjtGeom
    if kind == types.mjGEOM_BOX:
        return _spread(box(size), 2)
    if kind == types.mjGEOM_PLANE:
        return _spread(rectangle(float(size[0]) or plane_reach, float(size[1]) or plane_reach), 2)
    if kind == types.mjGEOM_SPHERE:
        return ellipsoid(np.full(3, size[0]), finer)
    if kind == types.mjGEOM_ELLIPSOID:
        return ellipsoid(size, finer)
    if kind == types.mjGEOM_CYLINDER:
        return cylinder(float(size[0]), float(size[1]), finer)
    if kind == types.mjGEOM_CAPSULE:
        return capsule(float(size[0]), float(size[1]), finer)
    if kind in (types.mjGEOM_MESH, types.mjGEOM_SDF):
        return _mesh(model, int(model.geom_dataid[geom]))
    if kind == types.mjGEOM_HFIELD:
        return _height_field(model, int(model.geom_dataid[geom]))
    return Triangles.join([])


def _spread(triangles: Triangles, to_a_face: int) -> Triangles:
    """With a picture on each face of ``to_a_face`` triangles, from its first corner to the opposite one."""
    face = np.array([[[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]])
    return Triangles(triangles.corners, triangles.normals, np.tile(face, (len(triangles.corners) // to_a_face, 1, 1)))


def segments(radius: float) -> int:
    """Edges of a circle of this radius: a multiple of 8, from 16 to 64."""
    exact = math.pi / math.acos(max(1.0 - SAGITTA / max(radius, 1e-6), 0.0))
    return min(64, max(16, 8 * math.ceil(exact / 8)))


def rectangle(half_x: float, half_y: float) -> Triangles:
    """Rectangle in the xy plane, facing up."""
    a, b, c, d = (np.array([sx * half_x, sy * half_y, 0.0]) for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1)))
    return Triangles.flat(np.array([[a, b, c], [a, c, d]]))


def framed_rectangle(half: Array, low: Array, high: Array) -> Triangles:
    """Rectangle of half size ``half`` (2,) in the xy plane, made of the one from ``low`` to ``high`` and a frame."""
    low, high = np.maximum(low, -half), np.minimum(high, half)
    outer = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half
    inner = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
    faces = [inner[[0, 1, 2]], inner[[0, 2, 3]]]
    for k in range(4):
        n = (k + 1) % 4
        faces += [np.array([outer[k], outer[n], inner[n]]), np.array([outer[k], inner[n], inner[k]])]
    return Triangles.flat(np.concatenate([np.array(faces), np.zeros((len(faces), 3, 1))], axis=2))


def box(half: Array) -> Triangles:
    """Box of half edge lengths ``half``."""
    faces = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for sign in (1.0, -1.0):
            quad = np.zeros((4, 3))
            quad[:, axis] = sign * half[axis]
            quad[:, u] = np.array([-1, 1, 1, -1]) * half[u] * sign
            quad[:, v] = np.array([-1, -1, 1, 1]) * half[v]
            faces += [quad[[0, 1, 2]], quad[[0, 2, 3]]]
    return Triangles.flat(np.array(faces))


def ellipsoid(radii: Array, finer: int = 1) -> Triangles:
    """Ellipsoid with semi-axes ``radii``."""
    count = finer * segments(float(radii.max()))
    unit = _revolve(*_arc(-math.pi / 2, math.pi / 2, max(8, count // (3 if finer == 1 else 2))), count)
    normals = unit.normals / radii
    return Triangles(unit.corners * radii, normals / np.linalg.norm(normals, axis=2, keepdims=True))


def cylinder(radius: float, half: float, finer: int = 1) -> Triangles:
    """Cylinder along z, centred."""
    count = finer * segments(radius)
    side = _revolve(np.array([[radius, -half], [radius, half]]), np.array([[1.0, 0.0], [1.0, 0.0]]), count)
    top = _revolve(np.array([[radius, half], [0.0, half]]), np.array([[0.0, 1.0], [0.0, 1.0]]), count)
    bottom = _revolve(np.array([[0.0, -half], [radius, -half]]), np.array([[0.0, -1.0], [0.0, -1.0]]), count)
    return Triangles.join([side, top, bottom])


def capsule(radius: float, half: float, finer: int = 1) -> Triangles:
    """Capsule along z; ``half`` is half of its cylindrical part."""
    count = finer * segments(radius)
    low, low_normals = _arc(-math.pi / 2, 0.0, count // 4)
    high, high_normals = _arc(0.0, math.pi / 2, count // 4)
    profile = np.concatenate([low * radius - [0.0, half], high * radius + [0.0, half]])
    return _revolve(profile, np.concatenate([low_normals, high_normals]), count)


def _arc(start: float, stop: float, steps: int) -> tuple[Array, Array]:
    angles = np.linspace(start, stop, steps + 1)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return points, points


def _revolve(profile: Array, normals: Array, count: int) -> Triangles:
    """Turn a profile of (radius, z) points with (radial, z) normals about z in ``count`` steps."""
    angles = np.linspace(0.0, 2 * math.pi, count + 1)
    cos, sin = np.cos(angles), np.sin(angles)
    cos[-1], sin[-1] = cos[0], sin[0]

    def turned(values: Array) -> Array:  # (points, angles, 3)
        radial, axial = values[:, :1], np.repeat(values[:, 1:], len(cos), 1)
        return np.stack([radial * cos, radial * sin, axial], axis=2)

    p, n = turned(profile), turned(normals)

    def faces(values: Array) -> Array:
        low, low_next, high, high_next = values[:-1, :-1], values[:-1, 1:], values[1:, :-1], values[1:, 1:]
        first = np.stack([low, low_next, high_next], axis=2)
        second = np.stack([low, high_next, high], axis=2)
        return np.concatenate([first.reshape(-1, 3, 3), second.reshape(-1, 3, 3)])

    corners, corner_normals = faces(p), faces(n)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    keep = area > 1e-14
    return Triangles(corners[keep], corner_normals[keep])


def _mesh(model: mujoco.MjModel, mesh: int) -> Triangles:
    if mesh < 0:
        return Triangles.join([])
    first, count = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    faces = np.asarray(model.mesh_face[first : first + count])
    face_normals = np.asarray(model.mesh_facenormal[first : first + count])
    vertices = np.asarray(model.mesh_vert[int(model.mesh_vertadr[mesh]) :], dtype=np.float64)
    normals = np.asarray(model.mesh_normal[int(model.mesh_normaladr[mesh]) :], dtype=np.float64)
    flat, smooth = Triangles.flat(vertices[faces], keep_all=True), normals[face_normals]
    # The engine rounds the normals of sharp edges too: there the face's own is right.
    sharp = (flat.normals * smooth).sum(2, keepdims=True) < SHARP
    return Triangles(flat.corners, np.where(sharp, flat.normals, smooth), _pictured(model, mesh, first, count))


def _pictured(model: mujoco.MjModel, mesh: int, first: int, count: int) -> Array | None:
    start = int(model.mesh_texcoordadr[mesh])
    if start < 0:
        return None
    places = np.asarray(model.mesh_texcoord[start:], dtype=np.float64)
    return np.asarray(places[np.asarray(model.mesh_facetexcoord[first : first + count])])


def _height_field(model: mujoco.MjModel, field: int) -> Triangles:
    rows, cols = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    size_x, size_y, size_z, _ = model.hfield_size[field]
    start = int(model.hfield_adr[field])
    heights = np.asarray(model.hfield_data[start : start + rows * cols], dtype=np.float64).reshape(rows, cols) * size_z
    x, y = np.meshgrid(np.linspace(-size_x, size_x, cols), np.linspace(-size_y, size_y, rows))
    points = np.stack([x, y, heights], axis=2)
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    corners = np.concatenate([np.stack(t, axis=2).reshape(-1, 3, 3) for t in ((a, b, c), (a, c, d))])
    return Triangles.flat(corners)
