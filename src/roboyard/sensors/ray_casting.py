"""Beam grids of lidars, sonars and GNSS receivers against primitive shapes, meshes and terrain; compiled.

The beams of a grid have azimuths and elevations about one point. For each shape only the beams that can hit its
bounding box are tried. For a few hundred shapes this is several times faster than MuJoCo's ``mj_multiRay``, and it
needs no acceleration structure that becomes invalid when objects move. Meshes have a bounding volume hierarchy;
MuJoCo casts the beams against terrain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.geometry.arrays import Array
from roboyard.physics.compiled_world import RAY_VISIBLE_GROUPS
from roboyard.physics.mujoco_memory import mujoco_ray_function
from roboyard.physics.world import PhysicsWorld
from roboyard.sensors.mesh_bvh import MeshBvh, Ray, cast_ray, make_mesh_bvh

_ray_hfield = mujoco_ray_function("mj_rayHfield")

_PLANE, _HFIELD, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = (
    int(kind)
    for kind in (
        mujoco.mjtGeom.mjGEOM_PLANE,
        mujoco.mjtGeom.mjGEOM_HFIELD,
        mujoco.mjtGeom.mjGEOM_SPHERE,
        mujoco.mjtGeom.mjGEOM_CAPSULE,
        mujoco.mjtGeom.mjGEOM_ELLIPSOID,
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        mujoco.mjtGeom.mjGEOM_BOX,
        mujoco.mjtGeom.mjGEOM_MESH,
    )
)
MISS = np.inf
TWO_PI = 2.0 * math.pi


@kernel(inline="always")
def _solve_quadratic(a: float, b: float, c: float) -> tuple[float, float]:
    """Both roots of a x² + 2 b x + c, or two misses."""
    det = b * b - a * c
    if det < 0.0 or a < 1e-15:
        return MISS, MISS
    root = math.sqrt(det)
    return (-b - root) / a, (-b + root) / a


@kernel
def _hit_box(px: float, py: float, pz: float, vx: float, vy: float, vz: float, size: Array) -> float:
    near, far = -MISS, MISS
    for axis in range(3):
        p = px if axis == 0 else (py if axis == 1 else pz)
        v = vx if axis == 0 else (vy if axis == 1 else vz)
        if abs(v) < 1e-15:
            if abs(p) > size[axis]:
                return MISS
            continue
        one, two = (-size[axis] - p) / v, (size[axis] - p) / v
        near, far = max(near, min(one, two)), min(far, max(one, two))
    if near > far or far < 0.0:
        return MISS
    return near if near >= 0.0 else far


@kernel
def _hit_sphere(px: float, py: float, pz: float, vx: float, vy: float, vz: float, radius: float) -> float:
    one, two = _solve_quadratic(
        vx * vx + vy * vy + vz * vz, px * vx + py * vy + pz * vz, px * px + py * py + pz * pz - radius * radius
    )
    return one if one >= 0.0 else (two if two >= 0.0 else MISS)


@kernel
def _hit_cylinder(
    px: float, py: float, pz: float, vx: float, vy: float, vz: float, radius: float, half: float
) -> float:
    best = MISS
    if abs(vz) > 1e-15:
        for side in (-half, half):
            x = (side - pz) / vz
            if 0.0 <= x < best and (px + x * vx) ** 2 + (py + x * vy) ** 2 <= radius * radius:
                best = x
    for x in _solve_quadratic(vx * vx + vy * vy, px * vx + py * vy, px * px + py * py - radius * radius):
        if 0.0 <= x < best and abs(pz + x * vz) <= half:
            best = x
    return best


@kernel
def _hit_capsule(px: float, py: float, pz: float, vx: float, vy: float, vz: float, radius: float, half: float) -> float:
    best = MISS
    for x in _solve_quadratic(vx * vx + vy * vy, px * vx + py * vy, px * px + py * py - radius * radius):
        if 0.0 <= x < best and abs(pz + x * vz) <= half:
            best = x
    for side in (-half, half):
        z = pz - side
        for x in _solve_quadratic(
            vx * vx + vy * vy + vz * vz, px * vx + py * vy + z * vz, px * px + py * py + z * z - radius * radius
        ):
            is_on_cap = (z + x * vz) * side >= 0.0
            if 0.0 <= x < best and is_on_cap:
                best = x
    return best


@kernel
def _hit_primitive(
    geom_type: int, size: Array, px: float, py: float, pz: float, vx: float, vy: float, vz: float
) -> float:
    """Distance along a ray given in a primitive shape's frame, in units of the direction's length."""
    if geom_type == _BOX:
        return _hit_box(px, py, pz, vx, vy, vz, size)
    if geom_type == _CYLINDER:
        return _hit_cylinder(px, py, pz, vx, vy, vz, size[0], size[1])
    if geom_type == _SPHERE:
        return _hit_sphere(px, py, pz, vx, vy, vz, size[0])
    if geom_type == _CAPSULE:
        return _hit_capsule(px, py, pz, vx, vy, vz, size[0], size[1])
    if geom_type == _ELLIPSOID:
        return _hit_sphere(px / size[0], py / size[1], pz / size[2], vx / size[0], vy / size[1], vz / size[2], 1.0)
    if geom_type == _PLANE and vz < -1e-15 and pz >= 0.0:  # hit from above only
        x = -pz / vz
        if (size[0] <= 0.0 or abs(px + x * vx) <= size[0]) and (size[1] <= 0.0 or abs(py + x * vy) <= size[1]):
            return x
    return MISS


@kernel
def _distance_to_box(local: Array, box: Array) -> float:
    """Distance from a point to a box (center, half sizes), 0 inside."""
    squares = 0.0
    for i in range(3):
        squares += max(abs(local[i] - box[i]) - box[3 + i], 0.0) ** 2
    return math.sqrt(squares)


@kernel
def _angular_extent(local: Array, R: Array, box: Array, rotation: Array) -> tuple[float, float, float, float]:
    """Where a box lies as the sensor sees it: first azimuth, width in azimuth (a full turn if a corner is not within a
    right angle of its center), lowest and highest corner along the sensor's axis."""
    forward, across, min_offset, max_offset, bottom, top = 0.0, 0.0, 0.0, 0.0, MISS, -MISS
    is_behind = False
    for corner in range(-1, 8):  # -1 is the center
        x, y, z = box[0] - local[0], box[1] - local[1], box[2] - local[2]
        if corner >= 0:
            x += box[3] if corner & 1 else -box[3]
            y += box[4] if corner & 2 else -box[4]
            z += box[5] if corner & 4 else -box[5]
        wx, wy, wz = R[0] * x + R[1] * y + R[2] * z, R[3] * x + R[4] * y + R[5] * z, R[6] * x + R[7] * y + R[8] * z
        sx = rotation[0, 0] * wx + rotation[1, 0] * wy + rotation[2, 0] * wz
        sy = rotation[0, 1] * wx + rotation[1, 1] * wy + rotation[2, 1] * wz
        sz = rotation[0, 2] * wx + rotation[1, 2] * wy + rotation[2, 2] * wz
        if corner < 0:
            forward, across = sx, sy
            continue
        along, lateral = sx * forward + sy * across, sy * forward - sx * across
        is_behind = is_behind or along <= 1e-9 * (forward * forward + across * across)
        if not is_behind:
            min_offset, max_offset = (
                min(min_offset, lateral / along),
                max(max_offset, lateral / along),
            )  # tangents from the center's bearing
        bottom, top = min(bottom, sz), max(top, sz)
    if is_behind:
        return 0.0, TWO_PI, bottom, top
    min_offset, max_offset = math.atan(min_offset), math.atan(max_offset)
    return math.atan2(across, forward) + min_offset, max_offset - min_offset, bottom, top


class BeamFan(NamedTuple):
    """Beams about one point, as the kernel takes them.

    Attributes:
        directions: (layers · samples, 3) unit directions in the sensor frame, azimuth changing fastest.
        world_directions: The same in the world; `cast_beams` writes them.
        first_azimuth: Azimuth of the first sample [rad].
        azimuth_step: Azimuth from one sample to the next [rad]; positive.
        max_range: Length of the beams [m].
        layers: Number of elevations.
        samples: Number of azimuths.
    """

    directions: Array
    world_directions: Array
    first_azimuth: float
    azimuth_step: float
    max_range: float
    layers: int
    samples: int


class TargetGeoms(NamedTuple):
    """The shapes of a world, and which of them beams can hit.

    Attributes:
        ids: (visible,) indices of the shapes that beams can hit.
        types: (all,) shape types.
        sizes: (all, 3) half sizes [m].
        boxes: (all, 6) centers and half sizes of bounding boxes in the shapes' frames [m].
        positions: (all, 3) positions in the world [m].
        rotations: (all, 9) rotations.
    """

    ids: NDArray[np.int64]
    types: NDArray[np.int32]
    sizes: Array
    boxes: Array
    positions: Array
    rotations: Array


class BeamHits(NamedTuple):
    """What each beam hits.

    Attributes:
        distances: (layers · samples,) [m], infinite where a beam hits nothing.
        geoms: (layers · samples,) index of the shape, -1 for none.
    """

    distances: Array
    geoms: NDArray[np.int64]


def _example_cast_beams() -> Iterable[tuple[Any, ...]]:
    point, points, indices = np.zeros(3), np.zeros((2, 3)), np.zeros(2, np.int64)
    beams = BeamFan(points, points, 0.0, 1.0, 30.0, 1, 1)
    geoms = TargetGeoms(indices, np.zeros(2, np.int32), points, np.zeros((2, 6)), points, np.zeros((2, 9)))
    bvh = MeshBvh(indices, points, np.zeros((2, 2), np.int64), points, indices)
    yield 0, 0, point, np.eye(3), beams, geoms, bvh, BeamHits(point, indices)


@kernel(examples=_example_cast_beams)
def cast_beams(
    model: int,
    data: int,
    origin: Array,
    rotation: Array,
    beams: BeamFan,
    geoms: TargetGeoms,
    bvh: MeshBvh,
    hits: BeamHits,
) -> None:
    """Compute the distance along each beam to the nearest shape.

    Args:
        model: Address of MuJoCo's model (for terrain).
        data: Address of its data.
        origin: (3,) of all beams, in the world [m].
        rotation: (3, 3) rotation from the sensor to the world.
        beams: Directions and length of the beams.
        geoms: The shapes and their poses.
        bvh: Trees of the meshes.
        hits: Written.
    """
    directions, world_directions, first_azimuth, azimuth_step, max_range, layers, samples = beams
    geom_ids, geom_types, sizes, boxes, positions, rotations = geoms
    distances, hit_geoms = hits
    roots = bvh.roots
    for k in range(directions.shape[0]):
        distances[k], hit_geoms[k] = MISS, -1
        for i in range(3):
            world_directions[k, i] = (
                rotation[i, 0] * directions[k, 0]
                + rotation[i, 1] * directions[k, 1]
                + rotation[i, 2] * directions[k, 2]
            )
    local = np.empty(3)
    is_planar = layers == 1 and directions[0, 2] == 0.0
    for g in geom_ids:
        geom_type, size, R, box = geom_types[g], sizes[g], rotations[g], boxes[g]
        dx, dy, dz = origin[0] - positions[g, 0], origin[1] - positions[g, 1], origin[2] - positions[g, 2]
        for i in range(3):  # the sensor in the shape's frame
            local[i] = R[i] * dx + R[3 + i] * dy + R[6 + i] * dz
        min_distance, start, width = 0.0, 0.0, TWO_PI
        if geom_type != _PLANE and geom_type != _HFIELD:
            min_distance = _distance_to_box(local, box)
            if min_distance > max_range:
                continue
            start, width, bottom, top = _angular_extent(local, R, box, rotation)
            if is_planar and (bottom > 0.0 or top < 0.0):
                continue
            start -= first_azimuth
            start -= TWO_PI * math.floor(start / TWO_PI)  # 0 … one turn after the first sample
        # The interval of azimuths, and its part beyond a full turn.
        for shift in (0.0, TWO_PI):
            low = max(math.ceil((start - shift) / azimuth_step - 1e-6), 0)
            high = min(math.floor((start + width - shift) / azimuth_step + 1e-6), samples - 1)
            for layer in range(layers):
                for k in range(layer * samples + low, layer * samples + high + 1):
                    if distances[k] <= min_distance:
                        continue
                    # No view of the row: a view costs a reference count at each beam.
                    vx, vy, vz = world_directions[k, 0], world_directions[k, 1], world_directions[k, 2]
                    x = R[0] * vx + R[3] * vy + R[6] * vz
                    y = R[1] * vx + R[4] * vy + R[7] * vz
                    z = R[2] * vx + R[5] * vy + R[8] * vz
                    if geom_type == _MESH:
                        ray = Ray(local[0], local[1], local[2], x, y, z)
                        distance = cast_ray(roots[g], bvh, ray, min(distances[k], max_range))
                    elif geom_type == _HFIELD:
                        v = world_directions[k]
                        distance = _ray_hfield(model, data, g, origin.ctypes.data, v.ctypes.data, 0)
                    else:
                        distance = _hit_primitive(geom_type, size, local[0], local[1], local[2], x, y, z)
                    if 0.0 <= distance < distances[k] and distance <= max_range:
                        distances[k], hit_geoms[k] = distance, g


_GEOM_TYPE = mujoco.mjtGeom


def geoms_containing(
    model: mujoco.MjModel, data: mujoco.MjData, point: NDArray[np.float64], owner: NDArray[np.int32], model_index: int
) -> NDArray[np.int64]:
    """Geoms of model number ``model_index`` that contain ``point`` (3,) in the world [m].

    Meshes count by their bounding box, for a housing's mesh is seldom closed.
    """
    found = []
    for geom in np.flatnonzero(owner == model_index):
        local = data.geom_xmat[geom].reshape(3, 3).T @ (point - data.geom_xpos[geom])
        if _contains(int(model.geom_type[geom]), model.geom_size[geom], model.geom_aabb[geom], local):
            found.append(geom)
    return np.array(found, np.int64)


def _contains(geom_type: int, size: NDArray[np.float64], box: NDArray[np.float64], local: NDArray[np.float64]) -> bool:
    x, y, z = (float(value) for value in local)
    half = tuple(float(value) for value in size)
    radial = float(np.hypot(x, y))
    match geom_type:
        case _GEOM_TYPE.mjGEOM_SPHERE:
            return x * x + y * y + z * z <= half[0] ** 2
        case _GEOM_TYPE.mjGEOM_BOX:
            return bool(np.all(np.abs(local) <= size))
        case _GEOM_TYPE.mjGEOM_CYLINDER:
            return radial <= half[0] and abs(z) <= half[1]
        case _GEOM_TYPE.mjGEOM_CAPSULE:
            return radial**2 + max(abs(z) - half[1], 0.0) ** 2 <= half[0] ** 2
        case _GEOM_TYPE.mjGEOM_ELLIPSOID:
            return bool(np.sum((local / size) ** 2) <= 1.0)
        case _GEOM_TYPE.mjGEOM_MESH:
            return bool(np.all(np.abs(local - box[:3]) <= box[3:]))
    return False


@dataclass(frozen=True, slots=True)
class BeamPattern:
    """A grid of beams about one point.

    Attributes:
        samples: Number of azimuths.
        angle_min: First azimuth about the sensor's z [rad].
        angle_max: Last azimuth [rad].
        max_range: Length of the beams [m].
        layers: Number of elevations.
        elevation_min: Lowest elevation [rad].
        elevation_max: Highest elevation [rad].
    """

    samples: int
    angle_min: float
    angle_max: float
    max_range: float
    layers: int = 1
    elevation_min: float = 0.0
    elevation_max: float = 0.0

    @property
    def azimuth_step(self) -> float:
        """Azimuth from one sample to the next [rad]; 1 for a single sample."""
        return (self.angle_max - self.angle_min) / max(self.samples - 1, 1) or 1.0

    def directions(self) -> NDArray[np.float64]:
        """Return unit vectors (layers · samples, 3) in the sensor frame: azimuths fastest, elevations from below."""
        azimuths = np.linspace(self.angle_min, self.angle_max, self.samples)
        elevations = np.linspace(self.elevation_min, self.elevation_max, self.layers)
        elevation, azimuth = (grid.ravel() for grid in np.meshgrid(elevations, azimuths, indexing="ij"))
        horizontal = np.cos(elevation)
        return np.stack([horizontal * np.cos(azimuth), horizontal * np.sin(azimuth), np.sin(elevation)], axis=1)


class BeamGrid:
    """Casts beams at collision shapes, and at the visuals of links that have none.

    The beams do not hit the link that they start from, nor any shape of the same model that contains their origin (a
    housing).

    Args:
        pattern: Directions and length of the beams.

    Attributes:
        directions: (layers · samples, 3) unit directions in the sensor frame.
        world_directions: The same in the world, after `cast`.
        hits: What the beams hit, after `cast`.
        target_geoms: Indices of the shapes that can be hit, after `bind`.
    """

    def __init__(self, pattern: BeamPattern) -> None:
        expect_kernels(cast_beams)
        self.directions = pattern.directions()
        self.world_directions = np.zeros_like(self.directions)
        self._fan = BeamFan(
            self.directions,
            self.world_directions,
            pattern.angle_min,
            pattern.azimuth_step,
            pattern.max_range,
            pattern.layers,
            pattern.samples,
        )
        self.hits = BeamHits(np.zeros(len(self.directions)), np.zeros(len(self.directions), np.int64))

    def bind(self, world: PhysicsWorld, robot: str, site: int, body: int) -> None:
        """Start the beams at a site, and find the shapes of the world that they can hit.

        Args:
            world: The world in which the beams are cast from now on.
            robot: Name of the model that carries the sensor.
            site: MuJoCo's site at which all beams start.
            body: MuJoCo's body that carries the site; beams pass through it.
        """
        model, data, contacts = world.model, world.data, world.contacts
        index = world.addresses(robot).index
        is_visible = np.isin(model.geom_group, RAY_VISIBLE_GROUPS)
        if body > 0:
            is_visible &= model.geom_bodyid != body
        is_visible[geoms_containing(model, data, data.site_xpos[site], contacts.geom_models, index)] = False
        self.target_geoms = np.flatnonzero(is_visible)
        self._mesh_bvh = make_mesh_bvh(model, self.target_geoms)
        # Views of MuJoCo's memory, which hold the present state whenever beams are cast.
        self._addresses = model._address, data._address
        self._origin, self._rotation = data.site_xpos[site], data.site_xmat[site].reshape(3, 3)
        self._geoms = TargetGeoms(
            self.target_geoms, model.geom_type, model.geom_size, model.geom_aabb, data.geom_xpos, data.geom_xmat
        )

    def cast(self, *, world_aligned: bool = False) -> NDArray[np.float64]:
        """Return distances (layers · samples,) [m], infinite where a beam hits nothing; the next call overwrites them.

        Args:
            world_aligned: Take the world's axes for the beams instead of the sensor's.
        """
        model, data = self._addresses
        rotation = np.eye(3) if world_aligned else self._rotation
        cast_beams(model, data, self._origin, rotation, self._fan, self._geoms, self._mesh_bvh, self.hits)
        return self.hits.distances
