"""How large a world is and what can be seen from where, asked of the compiled model."""

from __future__ import annotations

import mujoco
import numpy as np

from roboyard.geometry.arrays import Array
from roboyard.simulation.render.bodies import WIDE, moving_bodies
from roboyard.simulation.render.camera import Sight

STRAY = 30.0
"""So many times farther from the middle than most things is a stray."""


def world_bounds(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Array, Array]:
    """Lowest and highest corner (3,) of the box around everything but endless ground and strays [m].

    An empty world gives a few metres around the origin.  A stray is a thing so far from all others (a book that a
    typing error put 300 km up) that nothing could be seen with it in the picture.
    """
    low, high = [], []
    for geom in range(model.ngeom):
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
            half = np.array([*model.geom_size[geom][:2], 0.0])
            if (half[:2] <= 0).any() or (half[:2] > WIDE).any():
                continue
            centre = np.zeros(3)
        else:
            centre, half = np.split(np.asarray(model.geom_aabb[geom], dtype=np.float64), 2)
        rotation = data.geom_xmat[geom].reshape(3, 3)
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:  # turned to its principal axes: its box would be wide
            points = _vertices(model, int(model.geom_dataid[geom])) @ rotation.T + data.geom_xpos[geom]
            low.append(points.min(axis=0))
            high.append(points.max(axis=0))
            continue
        middle, reach = data.geom_xpos[geom] + rotation @ centre, np.abs(rotation) @ half
        low.append(middle - reach)
        high.append(middle + reach)
    if not low:
        return np.array([-3.0, -3.0, 0.0]), np.array([3.0, 3.0, 1.0])
    lows, highs = np.array(low), np.array(high)
    middles = (lows + highs) / 2
    away = np.linalg.norm(middles - np.median(middles, axis=0), axis=1)
    usual = max(float(np.quantile(away, 0.8)), float(np.max(highs - lows, axis=1)[away <= np.median(away)].max()), 1.0)
    near = away <= STRAY * usual
    return lows[near].min(axis=0), highs[near].max(axis=0)


def _vertices(model: mujoco.MjModel, mesh: int) -> Array:
    start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    return np.asarray(model.mesh_vert[start : start + count], dtype=np.float64)


def reach_of(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> float:
    """How far the geoms of a body and of all bodies that hang on it reach from its origin [m]."""
    inside = {body}
    for other in range(body + 1, model.nbody):
        if int(model.body_parentid[other]) in inside:
            inside.add(other)
    geoms = [g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in inside]
    distances = [np.linalg.norm(data.geom_xpos[g] - data.xpos[body]) + model.geom_rbound[g] for g in geoms]
    return float(max(distances, default=0.3))


def sight_through(model: mujoco.MjModel, data: mujoco.MjData) -> Sight:
    """For ``ChaseCamera.update``: which share of the way between two points nothing that stands still blocks."""
    carrier = moving_bodies(model)
    shown = np.array([1, 1, 1, 0, 0, 0], dtype=np.uint8)
    geom = np.zeros(1, np.int32)

    def share(start: Array, end: Array) -> float:
        way = end - start
        length = float(np.linalg.norm(way))
        if length < 1e-9:
            return 1.0
        direction, gone = way / length, 0.0
        for _ in range(16):  # robots and other things that move are looked past
            distance = mujoco.mj_ray(model, data, start + gone * direction, direction, shown, 1, -1, geom, None)
            if distance < 0 or gone + distance >= length:
                return 1.0
            gone += distance
            if carrier[model.geom_bodyid[geom[0]]] == 0:
                return float(gone / length)
            gone += 1e-3
        return 1.0

    return share
