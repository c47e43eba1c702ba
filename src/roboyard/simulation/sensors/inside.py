"""Which shapes a point lies inside of."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

_G = mujoco.mjtGeom


def geoms_around(
    model: mujoco.MjModel, data: mujoco.MjData, point: NDArray[np.float64], owner: NDArray[np.int32], of: int
) -> NDArray[np.int64]:
    """Geoms of model number ``of`` that contain ``point`` (3,) in the world [m].

    Meshes count by their bounding box, for a housing's mesh is seldom closed.
    """
    found = []
    for geom in np.flatnonzero(owner == of):
        local = data.geom_xmat[geom].reshape(3, 3).T @ (point - data.geom_xpos[geom])
        if _contains(int(model.geom_type[geom]), model.geom_size[geom], model.geom_aabb[geom], local):
            found.append(geom)
    return np.array(found, np.int64)


def _contains(kind: int, size: NDArray[np.float64], box: NDArray[np.float64], local: NDArray[np.float64]) -> bool:
    x, y, z = (float(value) for value in local)
    half = tuple(float(value) for value in size)
    across = float(np.hypot(x, y))
    match kind:
        case _G.mjGEOM_SPHERE:
            return x * x + y * y + z * z <= half[0] ** 2
        case _G.mjGEOM_BOX:
            return bool(np.all(np.abs(local) <= size))
        case _G.mjGEOM_CYLINDER:
            return across <= half[0] and abs(z) <= half[1]
        case _G.mjGEOM_CAPSULE:
            return across**2 + max(abs(z) - half[1], 0.0) ** 2 <= half[0] ** 2
        case _G.mjGEOM_ELLIPSOID:
            return bool(np.sum((local / size) ** 2) <= 1.0)
        case _G.mjGEOM_MESH:
            return bool(np.all(np.abs(local - box[:3]) <= box[3:]))
    return False
