"""Which geoms of a compiled model move together, where they stand in that body, and in which colour."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.simulation.render.triangles import Triangles, framed_rectangle, geom_triangles

WIDE = 20.0  # planes with a larger half size count as endless ground [m]


def moving_bodies(model: mujoco.MjModel) -> NDArray[np.int64]:
    """For each body the one it is welded to that moves on its own; 0: it stands still."""
    carrier = np.zeros(model.nbody, np.int64)
    for body in range(1, model.nbody):
        moves = model.body_jntnum[body] > 0 or model.body_mocapid[body] >= 0
        carrier[body] = body if moves else carrier[model.body_parentid[body]]
    return carrier


def geom_colours(model: mujoco.MjModel) -> NDArray[np.float64]:
    """Colour of each geom (g, 4) as MuJoCo shows it: its own unless that is untouched and it has a material."""
    colours = np.array(model.geom_rgba, dtype=np.float64).reshape(-1, 4)
    material = np.asarray(model.geom_matid)
    takes = (material >= 0) & (np.asarray(model.geom_rgba) == np.array([0.5, 0.5, 0.5, 1.0], np.float32)).all(1)
    if takes.any():
        colours[takes] = model.mat_rgba[material[takes]]
    return colours


def body_triangles(
    model: mujoco.MjModel, geoms: NDArray[np.bool_], finer: int = 1
) -> dict[int, list[tuple[int, Triangles]]]:
    """Triangles of the chosen geoms, by the body that carries them (0: what stands still) and in its frame.

    Endless ground is divided so that the part near other things stands alone and can carry soft shadows.

    Args:
        model: Compiled model.
        geoms: (g,) which of its geoms.
        finer: Round things get this many times as many edges.

    Returns:
        For each carrying body, in rising order, its geoms with their triangles.
    """
    state = mujoco.MjData(model)
    mujoco.mj_kinematics(model, state)
    carrier = moving_bodies(model)
    by_body: dict[int, list[tuple[int, Triangles]]] = {}
    wide: list[int] = []
    for geom in np.flatnonzero(geoms).tolist():
        body = int(carrier[model.geom_bodyid[geom]])
        if body == 0 and _is_wide_plane(model, geom):
            wide.append(geom)
            continue
        axes = state.xmat[body].reshape(3, 3)
        rotation = axes.T @ state.geom_xmat[geom].reshape(3, 3)
        translation = axes.T @ (state.geom_xpos[geom] - state.xpos[body])
        by_body.setdefault(body, []).append(
            (geom, geom_triangles(model, geom, finer=finer).placed(rotation, translation))
        )
    if wide:
        inside = [t.corners.reshape(-1, 3) for _, t in by_body.get(0, [])] or [np.array([[-5.0, -5, 0], [5, 5, 0]])]
        for geom in wide:
            rotation, origin = state.geom_xmat[geom].reshape(3, 3), state.geom_xpos[geom]
            local = (np.concatenate(inside) - origin) @ rotation
            size = np.asarray(model.geom_size[geom][:2], dtype=np.float64)
            reach = np.where(size > 0, size, max(200.0, 4 * float(model.stat.extent)))
            ground = framed_rectangle(reach, local[:, :2].min(0) - 2.0, local[:, :2].max(0) + 2.0)
            by_body.setdefault(0, []).append((geom, ground.placed(rotation, origin)))
    return dict(sorted(by_body.items()))


def _is_wide_plane(model: mujoco.MjModel, geom: int) -> bool:
    size = model.geom_size[geom][:2]
    return model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE and bool((size <= 0).any() or (size > WIDE).any())
