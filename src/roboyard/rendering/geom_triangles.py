"""The geoms of a MuJoCo model as triangles, the moving body that carries each geom, and the color of each geom."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import Array

# Curved shapes have so many flat faces that their outline is off by at most this [m].
SAGITTA = 5e-4
SHARP_EDGE_COSINE = 0.8  # cosine between face and corner normals below which a mesh's edge is not smoothed


@dataclass(frozen=True, slots=True)
class GeomTriangles:
    """Triangles of one geom.

    Attributes:
        corners: (n, 3, 3) corner points, counter-clockwise from outside [m].
        normals: (n, 3, 3) unit normals at the corners, for smooth shading.
        uv: (n, 3, 2) texture coordinates of the corners, v downwards; None: unknown.
    """

    corners: Array
    normals: Array
    uv: Array | None = None

    @staticmethod
    def with_face_normals(corners: Array, *, with_degenerate: bool = False) -> GeomTriangles:
        """Triangles with their own face normals; those without area are dropped unless ``with_degenerate``."""
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.maximum(np.linalg.norm(cross, axis=1), 1e-20)
        has_area = (length > 1e-14) | with_degenerate
        unit = cross[has_area] / length[has_area, None]
        return GeomTriangles(corners[has_area], np.repeat(unit[:, None], 3, axis=1))

    @staticmethod
    def join(parts: list[GeomTriangles]) -> GeomTriangles:
        """All triangles of all parts."""
        if not parts:
            return GeomTriangles(np.zeros((0, 3, 3)), np.zeros((0, 3, 3)))
        return GeomTriangles(
            np.concatenate([p.corners for p in parts]),
            np.concatenate([p.normals for p in parts]),
            np.concatenate([p.uv_or_nan() for p in parts]) if any(p.uv is not None for p in parts) else None,
        )

    def uv_or_nan(self) -> Array:
        """``uv``, not a number where there is none."""
        return np.full((len(self.corners), 3, 2), np.nan) if self.uv is None else self.uv

    def transformed(self, rotation: Array, translation: Array) -> GeomTriangles:
        """Return the triangles in the frame in which their own has the pose ``rotation``, ``translation``."""
        return GeomTriangles(self.corners @ rotation.T + translation, self.normals @ rotation.T, self.uv)


def geom_triangles(
    model: mujoco.MjModel, geom: int, *, infinite_plane_half_size: float = 200.0, tessellation_factor: int = 1
) -> GeomTriangles:
    """Triangles of a geom in the geom's frame.

    Args:
        model: Compiled model.
        geom: Index of the geom.
        infinite_plane_half_size: Half size of infinite planes [m].
        tessellation_factor: Factor on the number of edges of curved shapes.
    """
    geom_type, size = int(model.geom_type[geom]), np.asarray(model.geom_size[geom])
    geom_types = mujoco.mjtGeom
    if geom_type == geom_types.mjGEOM_BOX:
        return _map_texture_to_faces(box(size), 2)
    if geom_type == geom_types.mjGEOM_PLANE:
        return _map_texture_to_faces(
            rectangle(float(size[0]) or infinite_plane_half_size, float(size[1]) or infinite_plane_half_size), 2
        )
    if geom_type == geom_types.mjGEOM_SPHERE:
        return ellipsoid(np.full(3, size[0]), tessellation_factor)
    if geom_type == geom_types.mjGEOM_ELLIPSOID:
        return ellipsoid(size, tessellation_factor)
    if geom_type == geom_types.mjGEOM_CYLINDER:
        return cylinder(float(size[0]), float(size[1]), tessellation_factor)
    if geom_type == geom_types.mjGEOM_CAPSULE:
        return capsule(float(size[0]), float(size[1]), tessellation_factor)
    if geom_type in (geom_types.mjGEOM_MESH, geom_types.mjGEOM_SDF):
        return _mesh_triangles(model, int(model.geom_dataid[geom]))
    if geom_type == geom_types.mjGEOM_HFIELD:
        return _height_field_triangles(model, int(model.geom_dataid[geom]))
    return GeomTriangles.join([])


def _map_texture_to_faces(triangles: GeomTriangles, triangles_per_face: int) -> GeomTriangles:
    """Return triangles with texture coordinates: each face of ``triangles_per_face`` triangles has a whole texture."""
    face = np.array([[[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]])
    return GeomTriangles(
        triangles.corners, triangles.normals, np.tile(face, (len(triangles.corners) // triangles_per_face, 1, 1))
    )


def count_circle_segments(radius: float) -> int:
    """Edges of a circle of this radius: a multiple of 8, from 16 to 64."""
    exact = math.pi / math.acos(max(1.0 - SAGITTA / max(radius, 1e-6), 0.0))
    return min(64, max(16, 8 * math.ceil(exact / 8)))


def rectangle(half_x: float, half_y: float) -> GeomTriangles:
    """Rectangle in the xy plane, facing up."""
    a, b, c, d = (np.array([sx * half_x, sy * half_y, 0.0]) for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1)))
    return GeomTriangles.with_face_normals(np.array([[a, b, c], [a, c, d]]))


def framed_rectangle(half: Array, low: Array, high: Array) -> GeomTriangles:
    """Rectangle of half size ``half`` (2,) in the xy plane, made of the one from ``low`` to ``high`` and a frame."""
    low, high = np.maximum(low, -half), np.minimum(high, half)
    inner = _rectangle_corners(low, high)
    center = _flat_triangles([inner[[0, 1, 2]], inner[[0, 2, 3]]])
    return GeomTriangles.join([center, rectangular_frame(half, low, high)])


def rectangular_frame(half: Array, low: Array, high: Array) -> GeomTriangles:
    """Rectangle of half size ``half`` (2,) in the xy plane without the rectangle from ``low`` to ``high`` inside."""
    outer, inner = _rectangle_corners(-half, half), _rectangle_corners(low, high)
    faces = []
    for k in range(4):
        n = (k + 1) % 4
        faces += [np.array([outer[k], outer[n], inner[n]]), np.array([outer[k], inner[n], inner[k]])]
    return _flat_triangles(faces)


def _rectangle_corners(low: Array, high: Array) -> Array:
    return np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])


def _flat_triangles(faces: list[Array]) -> GeomTriangles:
    return GeomTriangles.with_face_normals(np.concatenate([np.array(faces), np.zeros((len(faces), 3, 1))], axis=2))


def box(half: Array) -> GeomTriangles:
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
    return GeomTriangles.with_face_normals(np.array(faces))


def ellipsoid(radii: Array, tessellation_factor: int = 1) -> GeomTriangles:
    """Ellipsoid with semi-axes ``radii``."""
    count = tessellation_factor * count_circle_segments(float(radii.max()))
    unit = _revolve(*_arc(-math.pi / 2, math.pi / 2, max(8, count // (3 if tessellation_factor == 1 else 2))), count)
    normals = unit.normals / radii
    return GeomTriangles(unit.corners * radii, normals / np.linalg.norm(normals, axis=2, keepdims=True))


def cylinder(radius: float, half: float, tessellation_factor: int = 1) -> GeomTriangles:
    """Cylinder along z, centred."""
    count = tessellation_factor * count_circle_segments(radius)
    side = _revolve(np.array([[radius, -half], [radius, half]]), np.array([[1.0, 0.0], [1.0, 0.0]]), count)
    top = _revolve(np.array([[radius, half], [0.0, half]]), np.array([[0.0, 1.0], [0.0, 1.0]]), count)
    bottom = _revolve(np.array([[0.0, -half], [radius, -half]]), np.array([[0.0, -1.0], [0.0, -1.0]]), count)
    return GeomTriangles.join([side, top, bottom])


def capsule(radius: float, half: float, tessellation_factor: int = 1) -> GeomTriangles:
    """Capsule along z; ``half`` is half of its cylindrical part."""
    count = tessellation_factor * count_circle_segments(radius)
    low, low_normals = _arc(-math.pi / 2, 0.0, count // 4)
    high, high_normals = _arc(0.0, math.pi / 2, count // 4)
    profile = np.concatenate([low * radius - [0.0, half], high * radius + [0.0, half]])
    return _revolve(profile, np.concatenate([low_normals, high_normals]), count)


def _arc(start: float, stop: float, steps: int) -> tuple[Array, Array]:
    angles = np.linspace(start, stop, steps + 1)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return points, points


def _revolve(profile: Array, normals: Array, count: int) -> GeomTriangles:
    """Turn a profile of (radius, z) points with (radial, z) normals about z in ``count`` steps."""
    angles = np.linspace(0.0, 2 * math.pi, count + 1)
    cos, sin = np.cos(angles), np.sin(angles)
    cos[-1], sin[-1] = cos[0], sin[0]

    def rotate_around_z(values: Array) -> Array:  # (points, angles, 3)
        radial, axial = values[:, :1], np.repeat(values[:, 1:], len(cos), 1)
        return np.stack([radial * cos, radial * sin, axial], axis=2)

    p, n = rotate_around_z(profile), rotate_around_z(normals)

    def faces(values: Array) -> Array:
        low, low_next, high, high_next = values[:-1, :-1], values[:-1, 1:], values[1:, :-1], values[1:, 1:]
        first = np.stack([low, low_next, high_next], axis=2)
        second = np.stack([low, high_next, high], axis=2)
        return np.concatenate([first.reshape(-1, 3, 3), second.reshape(-1, 3, 3)])

    corners, corner_normals = faces(p), faces(n)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    has_area = area > 1e-14
    return GeomTriangles(corners[has_area], corner_normals[has_area])


def _mesh_triangles(model: mujoco.MjModel, mesh: int) -> GeomTriangles:
    if mesh < 0:
        return GeomTriangles.join([])
    first, count = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    faces = np.asarray(model.mesh_face[first : first + count])
    face_normals = np.asarray(model.mesh_facenormal[first : first + count])
    vertices = np.asarray(model.mesh_vert[int(model.mesh_vertadr[mesh]) :], dtype=np.float64)
    normals = np.asarray(model.mesh_normal[int(model.mesh_normaladr[mesh]) :], dtype=np.float64)
    flat, smooth = GeomTriangles.with_face_normals(vertices[faces], with_degenerate=True), normals[face_normals]
    # MuJoCo rounds the normals of sharp edges too: there the face's own is right.
    sharp = (flat.normals * smooth).sum(2, keepdims=True) < SHARP_EDGE_COSINE
    return GeomTriangles(flat.corners, np.where(sharp, flat.normals, smooth), _mesh_uv(model, mesh, first, count))


def _mesh_uv(model: mujoco.MjModel, mesh: int, first: int, count: int) -> Array | None:
    start = int(model.mesh_texcoordadr[mesh])
    if start < 0:
        return None
    uv = np.asarray(model.mesh_texcoord[start:], dtype=np.float64)
    return np.asarray(uv[np.asarray(model.mesh_facetexcoord[first : first + count])])


def _height_field_triangles(model: mujoco.MjModel, field: int) -> GeomTriangles:
    rows, cols = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    size_x, size_y, size_z, _ = model.hfield_size[field]
    start = int(model.hfield_adr[field])
    heights = np.asarray(model.hfield_data[start : start + rows * cols], dtype=np.float64).reshape(rows, cols) * size_z
    x, y = np.meshgrid(np.linspace(-size_x, size_x, cols), np.linspace(-size_y, size_y, rows))
    points = np.stack([x, y, heights], axis=2)
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    corners = np.concatenate([np.stack(t, axis=2).reshape(-1, 3, 3) for t in ((a, b, c), (a, c, d))])
    return GeomTriangles.with_face_normals(corners)


INFINITE_PLANE_HALF_SIZE = 20.0  # planes with a larger half size count as endless ground [m]
HORIZON_DISTANCE = 20_000.0  # planes of infinite size end here: from 100 m above, that is 0.3° below the horizon [m]
VISIBLE_GROUPS = (0, 1, 2)
"""Geom groups that renderers show: those that MuJoCo's own viewer shows by default."""


def moving_bodies(model: mujoco.MjModel) -> NDArray[np.int64]:
    """Return for each body the moving body that it is welded to; 0: it is static."""
    moving_body = np.zeros(model.nbody, np.int64)
    for body in range(1, model.nbody):
        is_moving = model.body_jntnum[body] > 0 or model.body_mocapid[body] >= 0
        moving_body[body] = body if is_moving else moving_body[model.body_parentid[body]]
    return moving_body


def geom_colors(model: mujoco.MjModel) -> NDArray[np.float64]:
    """Color of each geom (g, 4) as MuJoCo shows it: its own unless that is untouched and it has a material."""
    colors = np.array(model.geom_rgba, dtype=np.float64).reshape(-1, 4)
    material = np.asarray(model.geom_matid)
    uses_material = (material >= 0) & (np.asarray(model.geom_rgba) == np.array([0.5, 0.5, 0.5, 1.0], np.float32)).all(1)
    if uses_material.any():
        colors[uses_material] = model.mat_rgba[material[uses_material]]
    return colors


def body_triangles(
    model: mujoco.MjModel, geoms: NDArray[np.bool_], tessellation_factor: int = 1
) -> dict[int, list[tuple[int, GeomTriangles]]]:
    """Return the triangles of the selected geoms by the moving body that carries them (0: static), in its frame.

    Infinite ground is divided so that the part near other shapes is separate and can have soft shadows.

    Args:
        model: Compiled model.
        geoms: (g,) which geoms are selected.
        tessellation_factor: Factor on the number of edges of curved shapes.

    Returns:
        For each carrying body, in rising order, its geoms with their triangles.
    """
    state = mujoco.MjData(model)
    mujoco.mj_kinematics(model, state)
    moving_body = moving_bodies(model)
    by_body: dict[int, list[tuple[int, GeomTriangles]]] = {}
    ground_planes: list[int] = []
    for geom in np.flatnonzero(geoms).tolist():
        body = int(moving_body[model.geom_bodyid[geom]])
        if body == 0 and _is_infinite_plane(model, geom):
            ground_planes.append(geom)
            continue
        body_rotation = state.xmat[body].reshape(3, 3)
        rotation = body_rotation.T @ state.geom_xmat[geom].reshape(3, 3)
        translation = body_rotation.T @ (state.geom_xpos[geom] - state.xpos[body])
        by_body.setdefault(body, []).append(
            (
                geom,
                geom_triangles(model, geom, tessellation_factor=tessellation_factor).transformed(rotation, translation),
            )
        )
    if ground_planes:
        static_corners = [t.corners.reshape(-1, 3) for _, t in by_body.get(0, [])] or [
            np.array([[-5.0, -5, 0], [5, 5, 0]])
        ]
        for geom in ground_planes:
            rotation, origin = state.geom_xmat[geom].reshape(3, 3), state.geom_xpos[geom]
            local = (np.concatenate(static_corners) - origin) @ rotation
            size = np.asarray(model.geom_size[geom][:2], dtype=np.float64)
            half_size = np.where(size > 0, size, max(200.0, 4 * float(model.stat.extent)))
            ground = framed_rectangle(half_size, local[:, :2].min(0) - 2.0, local[:, :2].max(0) + 2.0)
            if (size <= 0).any():  # separate triangles beyond: nearby hits keep their precision
                horizon = np.where(size > 0, size, np.maximum(half_size, HORIZON_DISTANCE))
                ground = GeomTriangles.join([ground, rectangular_frame(horizon, -half_size, half_size)])
            by_body.setdefault(0, []).append((geom, ground.transformed(rotation, origin)))
    return dict(sorted(by_body.items()))


def _is_infinite_plane(model: mujoco.MjModel, geom: int) -> bool:
    size = model.geom_size[geom][:2]
    return model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE and bool(
        (size <= 0).any() or (size > INFINITE_PLANE_HALF_SIZE).any()
    )
