"""The world as it looks: a second compilation with visuals, lamps and sky, posed like the physics."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from roboyard.description.model import World
from roboyard.simulation.assembly import Assembled, Entry, assemble
from roboyard.simulation.settings import PhysicsSettings


class Scene:
    """What renderers draw.

    Physics runs without the shapes that are only seen.  The scene has them, with bodies and joints numbered alike.

    Attributes:
        assembled: The compilation with looks.
        model: Its engine model; give it to a renderer.
        data: Its poses, after `pose_like`.
    """

    def __init__(self, world: World, entries: Sequence[Entry], settings: PhysicsSettings) -> None:
        self.assembled: Assembled = assemble(world, entries, settings, looks=True)
        self.model: mujoco.MjModel = self.assembled.model
        self.data = mujoco.MjData(self.model)

    def pose_like(self, data: mujoco.MjData) -> None:
        """Put everything where it is in ``data``, the physics of the same models."""
        self.data.qpos[:] = data.qpos
        self.data.mocap_pos[:], self.data.mocap_quat[:] = data.mocap_pos, data.mocap_quat
        self.data.time = data.time
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)
