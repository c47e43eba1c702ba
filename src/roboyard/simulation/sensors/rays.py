"""Rays of a spinning lidar against primitive shapes, compiled.

A lidar's beams are a grid of azimuths and elevations about one point.  For each shape only the beams that can meet its
bounding box are tried, which for a few hundred shapes is several times faster than casting every ray on its own
(MuJoCo's ``mj_multiRay``), and it needs no acceleration structure that would go stale when things move.
Meshes have a tree each; terrain is handed to the engine, beam by beam.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.simulation.native import ray_function
from roboyard.simulation.sensors.mesh_tree import ray

_ray_hfield = ray_function("mj_rayHfield")


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
FULL_TURN = 2.0 * math.pi


@kernel(inline="always")
def _quadratic(a: float, b: float, c: float) -> tuple[float, float]:
    """Both roots of a x² + 2 b x + c, or two misses."""
    det = b * b - a * c
    if det < 0.0 or a < 1e-15:
        return MISS, MISS
    root = math.sqrt(det)
    return (-b - root) / a, (-b + root) / a


@kernel
def _box(px: float, py: float, pz: float, vx: float, vy: float, vz: float, size: Array) -> float:
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
def _sphere(px: float, py: float, pz: float, vx: float, vy: float, vz: float, radius: float) -> float:
    one, two = _quadratic(
        vx * vx + vy * vy + vz * vz, px * vx + py * vy + pz * vz, px * px + py * py + pz * pz - radius * radius
    )
    return one if one >= 0.0 else (two if two >= 0.0 else MISS)


@kernel
def _cylinder(px: float, py: float, pz: float, vx: float, vy: float, vz: float, radius: float, half: float) -> float:
    best = MISS
    if abs(vz) > 1e-15:
        for side in (-half, half):
            x = (side - pz) / vz
            if 0.0 <= x < best and (px + x * vx) ** 2 + (py + x * vy) ** 2 <= radius * radius:
                best = x
    for x in _quadratic(vx * vx + vy * vy, px * vx + py * vy, px * px + py * py - radius * radius):
        if 0.0 <= x < best and abs(pz + x * vz) <= half:
            best = x
    return best


@kernel
def _capsule(px: float, py: float, pz: float, vx: float, vy: float, vz: float, radius: float, half: float) -> float:
    best = MISS
    for x in _quadratic(vx * vx + vy * vy, px * vx + py * vy, px * px + py * py - radius * radius):
        if 0.0 <= x < best and abs(pz + x * vz) <= half:
            best = x
    for side in (-half, half):
        z = pz - side
        for x in _quadratic(
            vx * vx + vy * vy + vz * vz, px * vx + py * vy + z * vz, px * px + py * py + z * z - radius * radius
        ):
            beyond = (z + x * vz) * side >= 0.0
            if 0.0 <= x < best and beyond:
                best = x
    return best


@kernel
def _ray(kind: int, size: Array, px: float, py: float, pz: float, vx: float, vy: float, vz: float) -> float:
    """Distance along a ray given in a primitive shape's frame, in units of the direction's length."""
    if kind == _BOX:
        return _box(px, py, pz, vx, vy, vz, size)
    if kind == _CYLINDER:
        return _cylinder(px, py, pz, vx, vy, vz, size[0], size[1])
    if kind == _SPHERE:
        return _sphere(px, py, pz, vx, vy, vz, size[0])
    if kind == _CAPSULE:
        return _capsule(px, py, pz, vx, vy, vz, size[0], size[1])
    if kind == _ELLIPSOID:
        return _sphere(px / size[0], py / size[1], pz / size[2], vx / size[0], vy / size[1], vz / size[2], 1.0)
    if kind == _PLANE and vz < -1e-15 and pz >= 0.0:  # seen from above only
        x = -pz / vz
        if (size[0] <= 0.0 or abs(px + x * vx) <= size[0]) and (size[1] <= 0.0 or abs(py + x * vy) <= size[1]):
            return x
    return MISS


@kernel
def _apart(local: Array, box: Array) -> float:
    """Distance from a point to a box (centre, half sizes), 0 inside."""
    squares = 0.0
    for i in range(3):
        squares += max(abs(local[i] - box[i]) - box[3 + i], 0.0) ** 2
    return math.sqrt(squares)


@kernel
def _extent(local: Array, R: Array, box: Array, turn: Array) -> tuple[float, float, float, float]:
    """Where a box lies as the sensor sees it: first azimuth, width in azimuth (a full turn if a corner is not within a
    right angle of its centre), lowest and highest corner along the sensor's axis."""
    forward, across, least, most, bottom, top = 0.0, 0.0, 0.0, 0.0, MISS, -MISS
    behind = False
    for corner in range(-1, 8):  # -1 is the centre
        x, y, z = box[0] - local[0], box[1] - local[1], box[2] - local[2]
        if corner >= 0:
            x += box[3] if corner & 1 else -box[3]
            y += box[4] if corner & 2 else -box[4]
            z += box[5] if corner & 4 else -box[5]
        wx, wy, wz = R[0] * x + R[1] * y + R[2] * z, R[3] * x + R[4] * y + R[5] * z, R[6] * x + R[7] * y + R[8] * z
        sx = turn[0, 0] * wx + turn[1, 0] * wy + turn[2, 0] * wz
        sy = turn[0, 1] * wx + turn[1, 1] * wy + turn[2, 1] * wz
        sz = turn[0, 2] * wx + turn[1, 2] * wy + turn[2, 2] * wz
        if corner < 0:
            forward, across = sx, sy
            continue
        ahead, aside = sx * forward + sy * across, sy * forward - sx * across
        behind = behind or ahead <= 1e-9 * (forward * forward + across * across)
        if not behind:
            least, most = min(least, aside / ahead), max(most, aside / ahead)  # tangents from the centre's bearing
        bottom, top = min(bottom, sz), max(top, sz)
    if behind:
        return 0.0, FULL_TURN, bottom, top
    least, most = math.atan(least), math.atan(most)
    return math.atan2(across, forward) + least, most - least, bottom, top


def _example() -> Iterable[tuple[Any, ...]]:
    one, two = np.zeros(3), np.zeros((2, 3))
    narrow = np.zeros(2, np.int32)
    wide = np.zeros(2, np.int64)
    pairs = np.zeros((2, 2), np.int64)
    yield (
        0,
        0,
        one,
        np.eye(3),
        two,
        two,
        0.0,
        1.0,
        30.0,
        1,
        1,
        wide,
        narrow,
        two,
        np.zeros((2, 6)),
        two,
        np.zeros((2, 9)),
        wide,
        two,
        pairs,
        two,
        wide,
        one,
        wide,
    )


@kernel(examples=_example)
def cast(
    model: int,
    data: int,
    origin: Array,
    turn: Array,
    beams: Array,
    world: Array,
    first: float,
    step: float,
    reach: float,
    layers: int,
    samples: int,
    geoms: NDArray[np.int64],
    kinds: NDArray[np.int32],
    sizes: Array,
    boxes: Array,
    places: Array,
    turns: Array,
    roots: NDArray[np.int64],
    bounds: Array,
    links: NDArray[np.int64],
    triangles: Array,
    waiting: NDArray[np.int64],
    out: Array,
    hit: NDArray[np.int64],
) -> None:
    """Distance along each beam to the nearest shape.

    Args:
        model: Address of the engine's model (for terrain).
        data: Address of its data.
        origin: (3,) of all beams, in the world [m].
        turn: (3, 3) rotation from the sensor to the world.
        beams: (layers · samples, 3) unit directions in the sensor frame, azimuth changing fastest.
        world: The same in the world; written here.
        first: Azimuth of the first sample [rad].
        step: Azimuth from one sample to the next [rad]; positive.
        reach: Nothing beyond is looked for [m].
        layers: Number of elevations.
        samples: Number of azimuths.
        geoms: Numbers of the shapes that can be seen.
        kinds: (all,) shape types.
        sizes: (all, 3) half sizes.
        boxes: (all, 6) centres and half sizes of bounding boxes in the shapes' frames.
        places: (all, 3) positions.
        turns: (all, 9) rotations.
        roots: See `MeshTrees`; so are the arguments up to ``waiting``.
        bounds: …
        links: …
        triangles: …
        waiting: …
        out: (layers · samples,) written: distances [m], infinite where nothing is met.
        hit: (layers · samples,) written: number of the shape met, -1 for none.
    """
    for k in range(beams.shape[0]):
        out[k], hit[k] = MISS, -1
        for i in range(3):
            world[k, i] = turn[i, 0] * beams[k, 0] + turn[i, 1] * beams[k, 1] + turn[i, 2] * beams[k, 2]
    local = np.empty(3)
    flat = layers == 1 and beams[0, 2] == 0.0
    for g in geoms:
        kind, R, box = kinds[g], turns[g], boxes[g]
        dx, dy, dz = origin[0] - places[g, 0], origin[1] - places[g, 1], origin[2] - places[g, 2]
        for i in range(3):  # the sensor in the shape's frame
            local[i] = R[i] * dx + R[3 + i] * dy + R[6 + i] * dz
        nearest, start, width = 0.0, 0.0, FULL_TURN
        if kind != _PLANE and kind != _HFIELD:
            nearest = _apart(local, box)
            if nearest > reach:
                continue
            start, width, bottom, top = _extent(local, R, box, turn)
            if flat and (bottom > 0.0 or top < 0.0):
                continue
            start -= first
            start -= FULL_TURN * math.floor(start / FULL_TURN)  # 0 … one turn after the first sample
        # The interval, and its part that has come round past the end of the turn.
        for shift in (0.0, FULL_TURN):
            low = max(math.ceil((start - shift) / step - 1e-6), 0)
            high = min(math.floor((start + width - shift) / step + 1e-6), samples - 1)
            for layer in range(layers):
                for k in range(layer * samples + low, layer * samples + high + 1):
                    if out[k] <= nearest:
                        continue
                    v = world[k]
                    x = R[0] * v[0] + R[3] * v[1] + R[6] * v[2]
                    y = R[1] * v[0] + R[4] * v[1] + R[7] * v[2]
                    z = R[2] * v[0] + R[5] * v[1] + R[8] * v[2]
                    if kind == _MESH:
                        found = ray(
                            roots[g], bounds, links, triangles, waiting, local[0], local[1], local[2], x, y, z,
                            min(out[k], reach),
                        )  # fmt: skip
                    elif kind == _HFIELD:
                        found = _ray_hfield(model, data, g, origin.ctypes.data, v.ctypes.data, 0)
                    else:
                        found = _ray(kind, sizes[g], local[0], local[1], local[2], x, y, z)
                    if 0.0 <= found < out[k] and found <= reach:
                        out[k], hit[k] = found, g
