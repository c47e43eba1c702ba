"""Decides which shapes are ground: the static shapes that carry the rest of the world, whatever their names are.

Wheels and feet touch the ground all the time, so these contacts are no contact episodes, and friction patches lie on
the ground.  A shape that is taken for ground by mistake hides collisions; a shape that is not taken for ground by
mistake only adds contacts.  The rule is therefore strict, and a model can declare itself ground:

1. Planes and height fields are ground.
2. A flat shape of a static model with nothing static beneath it is ground: a floor slab.
3. A flat, level shape of a static model that lies on a level ground shape and rises above it by at most
   `MAX_SHEET_HEIGHT`, and by at most `MAX_SHEET_ASPECT` of its width, is ground: floor tiles, a mat.
4. All shapes of a static model with the plugin ``<plugin filename="roboyard-ground" name="roboyard::Ground"/>`` are
   ground: a ramp, steps, uneven terrain.

Walls, tables and boxes are not flat, or they stand on something; links of robots and loose objects are not static.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import GROUND_PLUGIN, Model
from roboyard.physics.compiled_world import COLLISION_BITS

MAX_SLAB_ASPECT = 0.25
"""A shape is flat if its thickness is at most this fraction of its smaller width."""
MAX_SHEET_ASPECT = 0.05
"""A shape that lies on the ground is ground if it rises by at most this fraction of its smaller width."""
MAX_SHEET_HEIGHT = 0.05
"""A shape that lies on the ground is ground if it rises by at most this height [m]."""
_MIN_SLAB_COSINE = math.cos(math.radians(45.0))
_MIN_LEVEL_COSINE = math.cos(math.radians(2.0))
_MIN_OVERLAP = 1e-3
"""Shapes that overlap by less, seen from above, lie side by side [m]."""
_MAX_GAP = 0.01
"""A shape lies on another one if the gap between them is at most this [m]."""


def declares_ground(model: Model) -> bool:
    """Return whether a model is static and declares that it is ground."""
    return model.static and any(plugin.filename == GROUND_PLUGIN.filename for plugin in model.plugins)


def find_ground_geoms(
    model: mujoco.MjModel, is_static: NDArray[np.bool_], is_declared: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which geoms are ground (see the module's rule).

    Args:
        model: Its bodies of static models have the identity as pose, as the compiler makes them.
        is_static: (geoms,) whether the geom belongs to a static model.
        is_declared: (geoms,) whether the geom's model declares that it is ground.

    Returns:
        (geoms,) whether the geom is ground.
    """
    is_collidable = (model.geom_contype & COLLISION_BITS) != 0
    is_plane = is_collidable & (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    is_height_field = is_collidable & (model.geom_type == mujoco.mjtGeom.mjGEOM_HFIELD)
    is_ground = is_plane | is_height_field | (is_collidable & is_static & is_declared)
    bodies = np.flatnonzero(is_collidable & is_static & ~is_plane)
    if len(bodies) == 0:
        return np.asarray(is_ground)
    shapes = _StaticShapes(model, bodies)
    planes = _Planes(model, np.flatnonzero(is_plane))
    shape_is_ground = is_ground[bodies]
    candidates = np.flatnonzero(shapes.is_flat & ~shape_is_ground)
    for shape in candidates[np.argsort(shapes.bottom[candidates], kind="stable")].tolist():
        is_beneath = shapes.overlap(shape) & (shapes.is_height_field | (shapes.center_height < shapes.bottom[shape]))
        plane_height = planes.height_below(shapes.center[shape], shapes.top[shape])
        if plane_height is None and not is_beneath.any():
            shape_is_ground[shape] = True
            continue
        supports = shapes.top[is_beneath & shape_is_ground & shapes.is_level]
        heights = [*supports.tolist(), *(() if plane_height is None else (plane_height,))]
        if not heights or not shapes.is_level[shape]:
            continue
        height = max(heights)
        rise = shapes.top[shape] - height
        limit = min(MAX_SHEET_HEIGHT, MAX_SHEET_ASPECT * shapes.width[shape])
        shape_is_ground[shape] = shapes.bottom[shape] <= height + _MAX_GAP and rise <= limit
    is_ground[bodies] = shape_is_ground
    return np.asarray(is_ground)


class _StaticShapes:
    """Bounding boxes of static geoms in the world frame, and how flat the geoms are."""

    def __init__(self, model: mujoco.MjModel, geoms: NDArray[np.int64]) -> None:
        rotations = np.empty((len(geoms), 9))
        for row, geom in zip(rotations, geoms, strict=True):
            mujoco.mju_quat2Mat(row, model.geom_quat[geom])
        R = rotations.reshape(-1, 3, 3)
        local_center, half = model.geom_aabb[geoms, :3], model.geom_aabb[geoms, 3:]
        self.center = model.geom_pos[geoms] + np.einsum("nij,nj->ni", R, local_center)
        self._extent = np.einsum("nij,nj->ni", np.abs(R), half)
        thin_axis = np.argmin(half, axis=1)
        sizes = 2.0 * np.sort(half, axis=1)
        self.width = sizes[:, 1]
        cosine = np.abs(R[np.arange(len(geoms)), 2, thin_axis])
        self.is_flat = (sizes[:, 0] <= MAX_SLAB_ASPECT * self.width) & (cosine >= _MIN_SLAB_COSINE)
        self.is_height_field = model.geom_type[geoms] == mujoco.mjtGeom.mjGEOM_HFIELD
        self.is_level = (cosine >= _MIN_LEVEL_COSINE) & ~self.is_height_field
        self.center_height = self.center[:, 2]
        self.bottom, self.top = self.center_height - self._extent[:, 2], self.center_height + self._extent[:, 2]

    def overlap(self, shape: int) -> NDArray[np.bool_]:
        """Return which shapes overlap a shape when seen from above."""
        distance = np.abs(self.center[:, :2] - self.center[shape, :2])
        overlaps = (distance < self._extent[:, :2] + self._extent[shape, :2] - _MIN_OVERLAP).all(axis=1)
        return np.asarray(overlaps)


class _Planes:
    """Planes of the world whose upper side faces up."""

    def __init__(self, model: mujoco.MjModel, geoms: NDArray[np.int64]) -> None:
        self._planes: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        for geom in geoms:
            rotation = np.empty(9)
            mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
            normal = rotation.reshape(3, 3)[:, 2]
            if normal[2] >= _MIN_SLAB_COSINE:
                self._planes.append((model.geom_pos[geom].copy(), normal))

    def height_below(self, point: NDArray[np.float64], top: float) -> float | None:
        """Return the height of the highest plane below ``top`` at a point, or None [m]."""
        heights = [
            float(position[2] - normal[:2] @ (point[:2] - position[:2]) / normal[2])
            for position, normal in self._planes
        ]
        return max((height for height in heights if height <= top), default=None)
