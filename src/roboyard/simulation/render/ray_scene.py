"""A compiled MuJoCo model for the ray caster: its geoms as rigid pieces of triangles, one for each body that moves."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import F32, I32
from roboyard.simulation.render.bodies import body_triangles, geom_colours
from roboyard.simulation.render.embree import Meshes
from roboyard.simulation.render.triangles import Triangles

# What MuJoCo's own viewer shows unless told otherwise.
SHOWN_GROUPS = (0, 1, 2)


class RayScene:
    """The triangles of a model with their looks, placed as the model's state says.

    Args:
        model: Compiled model.
        opaque: Take the opaque geoms, or the transparent ones (0 < alpha < 1).
        groups: Geom groups that are seen.
        finer: Round things get this many times as many edges as pictures for people need.

    Attributes:
        bodies: (p,) the body of each piece; 0 is what stands still, and comes first if there is any.
        corners: (t, 3, 3) corners of all triangles, in the frame of their piece [m].
        normals: (t, 3, 3) float32 unit normals at the corners, same frame.
        uv: (t, 3, 2) float32 place of the corners in a picture, v downwards; not a number where it is not known.
        geoms: (t,) geom of each triangle.
        piece_of: (t,) piece of each triangle.
        halves: (t,) True: half of a rectangle; the other half continues it beyond its longest edge.
        centres: (p, 3) middle of each piece in its own frame [m].
        radii: (p,) distance of its farthest corner from there [m].
        rotations: (p, 3, 3) float32 world from piece, as of the last ``update``.
        translations: (p, 3) float32 [m].
        meshes: The same triangles in Embree.
    """

    def __init__(
        self, model: mujoco.MjModel, *, opaque: bool = True, groups: tuple[int, ...] = SHOWN_GROUPS, finer: int = 1
    ) -> None:
        alpha = geom_colours(model)[:, 3]
        shown = (alpha >= 0.999) if opaque else (alpha > 0.01) & (alpha < 0.999)
        by_body = body_triangles(model, shown & np.isin(model.geom_group, groups), finer)
        parts = {b: [(g, t) for g, t in part if len(t.corners)] for b, part in by_body.items()}
        parts = {body: part for body, part in parts.items() if part}
        joined = {body: longest_edge_last(Triangles.join([t for _, t in part])) for body, part in parts.items()}
        counts = [len(t.corners) for t in joined.values()]
        everything = Triangles.join(list(joined.values()))
        self.bodies = list(joined)
        self.corners = everything.corners
        self.normals: F32 = everything.normals.astype(np.float32)
        self.uv: F32 = everything.places().astype(np.float32)
        each = [(geom, len(t.corners)) for part in parts.values() for geom, t in part]
        self.geoms: I32 = np.repeat([g for g, _ in each], [n for _, n in each]).astype(np.int32)
        self.piece_of: I32 = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
        rectangular = (mujoco.mjtGeom.mjGEOM_BOX.value, mujoco.mjtGeom.mjGEOM_PLANE.value)
        self.halves = np.isin(np.asarray(model.geom_type)[self.geoms], rectangular)
        ends = [(t.corners.min((0, 1)), t.corners.max((0, 1))) for t in joined.values()]
        self.centres = np.array([(low + high) / 2 for low, high in ends]).reshape(-1, 3)
        self.radii = np.array([_reach(t, c) for t, c in zip(joined.values(), self.centres, strict=True)])
        self.rotations: F32 = np.repeat(np.eye(3, dtype=np.float32)[None], len(counts), 0)
        self.translations: F32 = np.zeros((len(counts), 3), np.float32)
        self.meshes = Meshes([t.corners for t in joined.values()])

    def update(self, data: mujoco.MjData) -> None:
        """Take the bodies' poses from ``data`` (after ``mj_kinematics`` or ``mj_forward``)."""
        if not self.bodies:
            return
        self.rotations[:] = data.xmat[self.bodies].reshape(-1, 3, 3)
        self.translations[:] = data.xpos[self.bodies]
        self.meshes.place(self.rotations, self.translations)


def _reach(triangles: Triangles, centre: NDArray[np.float64]) -> float:
    return float(np.sqrt(((triangles.corners - centre) ** 2).sum(2).max()))


def longest_edge_last(triangles: Triangles) -> Triangles:
    """Turn each triangle's corners so that its longest edge lies opposite the first one."""
    corners = triangles.corners
    opposite = np.stack(
        [np.linalg.norm(corners[:, (k + 2) % 3] - corners[:, (k + 1) % 3], axis=1) for k in range(3)], axis=1
    )
    order = (opposite.argmax(1)[:, None] + np.arange(3)) % 3
    rows = np.arange(len(corners))[:, None]
    uv = None if triangles.uv is None else triangles.uv[rows, order]
    return Triangles(corners[rows, order], triangles.normals[rows, order], uv)
