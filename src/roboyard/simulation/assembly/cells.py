"""Static geometry gathered into bodies of one place each: the engine's broad phase is fastest that way."""

from __future__ import annotations

import math

import mujoco

from roboyard.geometry import SE3
from roboyard.simulation.assembly.shapes import Shape

CELL = 6.0
"""Edge of a cell [m]; one body a geom, or one for all, both step slower (measured)."""


class Cells:
    """Hands out the body for each static shape."""

    def __init__(self, spec: mujoco.MjSpec) -> None:
        self._spec = spec
        self._bodies: dict[str, mujoco.MjsBody] = {}

    def body(self, shape: Shape, T_world_shape: SE3, *, looks: bool) -> mujoco.MjsBody:
        """The body that takes a shape standing at ``T_world_shape``.

        Planes, terrain and meshes go to the world itself, large shapes get a body each, and things only seen stay apart
        so that they widen no box that collision detection tests.  The engine looks through every shape of every body at
        every step but those of the world, which it finds by a tree: a mesh can have thousands of pieces (a rover's step
        among 5,000 takes 38 µs so, 107 in cells; in a house of 900, 45 and 75).
        """
        kinds = mujoco.mjtGeom
        if shape.type in (kinds.mjGEOM_PLANE, kinds.mjGEOM_HFIELD) or (shape.type == kinds.mjGEOM_MESH and not looks):
            return self._spec.worldbody
        if shape.type != kinds.mjGEOM_MESH and 2.0 * max(shape.size) > CELL:
            return self._make(f"large {len(self._bodies)}")
        i, j = math.floor(T_world_shape.x / CELL), math.floor(T_world_shape.y / CELL)
        return self._make(f"{'looks' if looks else 'cell'} {i} {j}")

    def _make(self, name: str) -> mujoco.MjsBody:
        if name not in self._bodies:
            self._bodies[name] = self._spec.worldbody.add_body(name=name)
        return self._bodies[name]
